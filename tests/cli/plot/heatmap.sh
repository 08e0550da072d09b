posenc plot heatmap sinusoidal --length 24 --dim 16
