posenc attend nope -i "$SOURCE/tests/golden/learned__contiguous_offset.npz" -o out.npz; status=$?; ls; exit $status
