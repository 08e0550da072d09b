posenc attend alibi -i "$SOURCE/tests/golden/nope__bidir.npz"
