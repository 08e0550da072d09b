posenc plot bias alibi --heads 2 --length 32
