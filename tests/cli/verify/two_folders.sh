posenc verify a b
