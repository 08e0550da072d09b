posenc properties sinusoidal --tokens 16 --draws 4
