# No list and no file; positions before the first; coordinates and widths that do not fit.
for list in 0,x nan '' inf:2; do posenc encode sinusoidal --positions "$list" --dim 4; done
for name in learned learned_resize hierarchical floater; do posenc encode $name --positions -1 --dim 4; done
posenc encode sinusoidal_nd[shape=2x3] --positions 0:1:2 --dim 6
posenc encode complex_order --length 2 --dim 5
