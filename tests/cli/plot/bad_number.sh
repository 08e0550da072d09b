posenc plot bias alibi --length ten
