# MoCo v3 goes down the columns, after the zero row of its class token.
posenc encode sinusoidal2d --grid 2x3 --dim 4 --set preset=mocov3 --set prefix_rows=1
