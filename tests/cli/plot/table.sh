table=$SOURCE/tests/golden/learned__contiguous_offset.npz
posenc plot similarity --table "$table:par_table" --length 8
posenc plot similarity2d --table "$table:par_table" --grid 2x4 --points 1x2
