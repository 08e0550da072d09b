posenc attend alibi -o out.npz
