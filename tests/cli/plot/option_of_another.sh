posenc plot heatmap sinusoidal --draws 5
posenc plot pair rope --seed 2
posenc plot mass alibi --draws 5
posenc plot mass rope --heads 2
posenc plot similarity rope --grid 4x4
posenc plot bias swin --length 10
posenc plot decay rope --theta one --bases 1e4
posenc plot heatmap sinusoidal --grid 4x4 --length 9
posenc plot heatmap sinusoidal --grid 4x4 --beside binary
posenc plot decay rope --table t.npy
posenc plot heatmap sinusoidal2d --length 16
