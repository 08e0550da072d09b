# Every command of docs/inputs.md: odd widths, denominators of zero, rows before a grid, grids that are not square.
show() { echo "-- $*"; posenc encode "$@"; }
show 'complex_order' --length 2 --dim 5
show 'learned' --length 2 --dim 5
show 'learned_resize' --grid 3x4 --dim 2
show 'learned_resize[grid_in=2x2:prefix_rows=2]' --grid 2x3 --dim 1
show 'learned_resize[kind=linear_align_corners:grid_in=3]' --grid 1 --dim 1
show 'sinusoidal' --length 2 --dim 5
show 'sinusoidal2d' --grid 1x2 --dim 7
show 'sinusoidal2d[preset=big_vision]' --grid 1x2 --dim 4
show 'sinusoidal2d[preset=mae:prefix_rows=2]' --grid 2x3 --dim 4
show 'sinusoidal2d[preset=mocov3]' --grid 2x3 --dim 4
show 'sinusoidal[preset=marian]' --length 2 --dim 5
show 'sinusoidal[preset=t2t]' --length 2 --dim 2
show 'sinusoidal[preset=t2t]' --length 2 --dim 5
show 'sinusoidal[preset=transformer_xl]' --length 2 --dim 5
show 'sinusoidal[preset=tutorial003]' --length 2 --dim 5
show 'sinusoidal_nd' --grid 1x2 --dim 5
show 'sinusoidal_nd' --positions 0:1:2,2:3:1 --dim 6
show 'sinusoidal_nd[preset=t2t]' --grid 1x2 --dim 4
show 'sinusoidal_nd[preset=t2t]' --grid 1x2 --dim 5
show 'timestep' --positions 1 --dim 5
show 'timestep[downscale_freq_shift=2]' --positions 1 --dim 4
