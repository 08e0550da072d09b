posenc plot similarity2d sinusoidal2d --points 3x6:12x20
