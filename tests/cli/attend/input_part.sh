posenc attend sinusoidal+t5 -i "$SOURCE/tests/golden/nope__bidir.npz" -o out.npz; status=$?; ls; exit $status
