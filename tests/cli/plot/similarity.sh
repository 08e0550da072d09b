posenc plot similarity sinusoidal --length 24 --dim 32
