posenc
