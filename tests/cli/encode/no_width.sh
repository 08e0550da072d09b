posenc encode sinusoidal --length 3; posenc encode sinusoidal --length 3 --dim 0
