posenc list --help
