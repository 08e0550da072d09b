posenc rotate -i "$SOURCE/tests/golden/rope/rope__defaults.npz" -o - >/dev/full
