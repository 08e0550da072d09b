posenc encode sinusoidal --dim 4; posenc encode sinusoidal --dim 4 --length 3 --grid 2x2
