posenc plot bias alibbi
