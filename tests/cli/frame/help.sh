posenc --help
