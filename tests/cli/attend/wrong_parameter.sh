# The case has 8 buckets, the standard is 32.
posenc attend t5 -i "$SOURCE/tests/golden/t5__bidir.npz" -o out.npz; status=$?; ls; exit $status
