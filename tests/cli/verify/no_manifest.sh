posenc verify .
