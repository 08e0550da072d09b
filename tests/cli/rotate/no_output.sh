posenc rotate -i in.npz
