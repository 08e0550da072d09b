posenc encode --help
