posenc attend --help | head -n 1
