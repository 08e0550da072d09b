posenc plot decay rope --length 100 --bases 1e4:1e6 --theta many --content ones
