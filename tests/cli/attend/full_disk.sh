# /dev/full refuses every byte: the tool must say so.
ln -s /dev/full out.npz
posenc attend alibi -i "$SOURCE/tests/golden/nope__bidir.npz" -o out.npz
