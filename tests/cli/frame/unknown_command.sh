posenc lst
