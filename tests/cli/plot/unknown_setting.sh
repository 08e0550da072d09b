posenc plot bias alibi --set fom=distance
