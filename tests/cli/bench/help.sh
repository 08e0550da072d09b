posenc bench --help
