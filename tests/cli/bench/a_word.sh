posenc bench G8
