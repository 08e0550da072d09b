posenc encode sinusodial --dim 4 --length 3
