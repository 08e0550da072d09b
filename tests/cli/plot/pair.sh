posenc plot pair rope --pairs 0 --length 5
