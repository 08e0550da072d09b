posenc list -z
