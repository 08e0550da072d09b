posenc -- list
