posenc inspect --help
