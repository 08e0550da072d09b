posenc bench --goal G10 --list --json
