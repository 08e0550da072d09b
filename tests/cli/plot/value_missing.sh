posenc plot bias alibi --length
