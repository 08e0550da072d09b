posenc list transformer_xl
