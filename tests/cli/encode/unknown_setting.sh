posenc encode sinusoidal --dim 4 --length 3 --set bse=3
