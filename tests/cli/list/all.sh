posenc list
