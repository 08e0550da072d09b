posenc rotate --set bass=1e4 -i in.npz -o out.npz
