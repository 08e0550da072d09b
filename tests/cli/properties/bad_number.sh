posenc properties sinusoidal --draws none
