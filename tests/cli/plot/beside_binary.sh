posenc plot heatmap sinusoidal --length 16 --dim 8 --beside binary
