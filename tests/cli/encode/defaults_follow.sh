# What nobody sets follows from what was said: rows from the offset, the table from the grid, axes from the coordinates.
posenc encode learned --length 2 --dim 2 --set padding_idx=1 --seed 1
posenc encode learned --length 2 --dim 2 --set offset=2 --seed 1
posenc encode learned --positions 2,3 --dim 2 --seed 1
posenc encode learned_resize --grid 2x2 --dim 1 --seed 1
posenc encode sinusoidal_nd --positions 0:1:2,2:3:1 --dim 6
posenc encode sinusoidal_nd --positions 0:1:2,2:3:1 --dim 6 --set shape=3x4x3
posenc encode sinusoidal_nd --positions -0.5:1e12 --dim 4
