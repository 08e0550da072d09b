posenc attend alibbi -i "$SOURCE/tests/golden/nope__bidir.npz" -o out.npz
