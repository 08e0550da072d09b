# A word where there is no number, and the notes that explain it.
NO_COLOR=1 posenc properties nope sinusoidal2d xpos swin cope hierarchical --length 96 --tokens 16 --dim 8 --draws 2
