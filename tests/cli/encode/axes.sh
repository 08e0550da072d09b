# Three axes and a width that they do not divide.
posenc encode sinusoidal_nd --grid 2x1x2 --dim 7 --set preset=t2t -o -
