posenc plot similarity sinusoidal2d --grid 3x4 --dim 16
