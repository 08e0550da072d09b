posenc rotate --help
