# Without the digits of round-off.
NO_COLOR=1 posenc properties alibi --json --length 32 --tokens 8 --dim 4 --heads 2 --draws 2 | grep -v '"value": .*e-'
