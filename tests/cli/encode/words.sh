# The first coordinate of complex_order is a word: a grid of words and positions lists all of them.
posenc encode complex_order --grid 2x2 --dim 2 && posenc encode complex_order --positions 0:0,0:1,1:0,1:1 --dim 2
