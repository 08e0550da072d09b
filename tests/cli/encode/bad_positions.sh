for list in 1,,2 1,2, 0:0,1 1e999 0:; do posenc encode sinusoidal2d --dim 4 --positions $list; done
posenc encode sinusoidal2d --dim 4 --positions 1,2
posenc encode sinusoidal --dim 4 --positions 1:2
posenc encode learned --dim 4 --positions 0.5
