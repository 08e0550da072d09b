posenc encode --length 3 --dim 4
