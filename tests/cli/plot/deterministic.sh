posenc plot decay rope --length 100 --draws 20 -o a.svg
posenc plot decay rope --length 100 --draws 20 -o b.svg
posenc plot decay rope --length 100 --draws 20 --seed 2 -o c.svg
cmp a.svg b.svg && echo same
cmp -s a.svg c.svg || echo another
