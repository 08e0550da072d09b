# Without the digits of round-off.
posenc properties sinusoidal --sweep base=10 --length 64 --dim 8 --json | grep -v 'e-'
