posenc help list >a; posenc list --help >b; cmp a b
