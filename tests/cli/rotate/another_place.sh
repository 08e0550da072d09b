posenc rotate alibi -i in.npz -o out.npz
