posenc bench --goal G8,G5
