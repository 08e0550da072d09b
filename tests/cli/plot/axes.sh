# Grids of more axes, row by row; a grid decides how many coordinates a position has.
posenc plot heatmap sinusoidal_nd --grid 2x3x4 --dim 12
posenc plot similarity2d sinusoidal_nd --grid 2x4 --points 0x1 --dim 12
posenc plot heatmap sinusoidal2d --grid 2x3x4
posenc plot similarity sinusoidal_nd --grid 2x3x4
posenc plot curves sinusoidal_nd --grid 64x64x64
posenc plot heatmap --table "$SOURCE/tests/golden/learned__contiguous_offset.npz:par_table" --grid 1x2x5
posenc plot similarity sinusoidal2d --grid 4x100
