posenc rotate -o out.npz
