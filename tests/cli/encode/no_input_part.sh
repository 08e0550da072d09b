posenc encode rope --dim 4 --length 3; posenc encode sinusoidal+t5 --dim 4 --length 3
