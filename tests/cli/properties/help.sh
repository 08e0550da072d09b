posenc properties --help
