posenc attend t5 --set max_distanse=64 -i "$SOURCE/tests/golden/nope__bidir.npz" -o out.npz
