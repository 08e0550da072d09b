# A learned table of 1 + 2 x 2 rows, read on a grid of 3 x 2: the class token's row stays and counts.
posenc encode learned_resize --grid 3x2 --set grid_in=2x2 --set prefix_rows=1 --dim 2 --seed 3
