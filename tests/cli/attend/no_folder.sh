posenc attend alibi -i "$SOURCE/tests/golden/nope__bidir.npz" -o none/out.npz; status=$?; ls; exit $status
