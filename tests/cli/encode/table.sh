# Three rows of the paper's table, on standard output.
posenc encode sinusoidal --length 3 --dim 4
