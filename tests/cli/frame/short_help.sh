posenc -h >a; posenc --help >b; cmp a b
