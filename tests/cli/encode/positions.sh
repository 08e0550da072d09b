# Real positions; a negative one; the same as pairs of coordinates.
posenc encode timestep --positions 0.5,-0.5,1e3 --dim 3 && posenc encode sinusoidal2d --positions 0:0.5,2:-1 --dim 4
