posenc bench --goal G3,G17 --list
