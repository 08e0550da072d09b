posenc encode sinusoidal --dim 4 --length many; posenc encode sinusoidal --dim 4 --length -1
