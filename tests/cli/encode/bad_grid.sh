for grid in 3x 0x3 3x-1 3,4 x3 99999x99999; do posenc encode sinusoidal2d --dim 4 --grid $grid; done
posenc encode sinusoidal --dim 4 --grid 3x3
posenc encode sinusoidal2d --dim 4 --grid 3x3x3
