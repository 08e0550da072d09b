posenc plot decay rope --length 200 --draws 50
