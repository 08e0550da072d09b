table=$SOURCE/tests/golden/learned__contiguous_offset.npz
posenc plot similarity --table "$table"
posenc plot similarity --table "$table:table"
posenc plot similarity --table "$table:par_table" --grid 9x9
posenc plot similarity2d --table "$table:par_table"
posenc plot similarity --table "$table:par_table" --length 4000
posenc plot similarity --table "$table:par_table" --dim 4
posenc plot similarity learned --table "$table:par_table"
posenc plot heatmap --table missing.npy
