# Rows before the grid of a table: up to two are passed over, more must be said.
posenc encode learned --length 19 --dim 4 -o t.npz
posenc plot heatmap --table t.npz:par_table --grid 4x4 | head -3
posenc plot heatmap --table t.npz:par_table --grid 4x4 --prefix-rows 3 | head -3
posenc plot heatmap --table t.npz:par_table --grid 4x4 --prefix-rows 2
posenc plot heatmap --table t.npz:par_table --grid 3x6 | head -3
posenc plot heatmap --table t.npz:par_table --prefix-rows 1
posenc plot heatmap learned --grid 4x4 --prefix-rows 1
posenc plot pair rope --prefix-rows 1
