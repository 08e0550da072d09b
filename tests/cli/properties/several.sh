posenc properties nope sinusoidal learned rope alibi --length 300 --tokens 16 --dim 16 --draws 4
