posenc plot mass rope --length 128 --draws 20
