posenc properties sinusoidal2d --length 16 --tokens 4 --dim 8 --heads 1 --draws 2
