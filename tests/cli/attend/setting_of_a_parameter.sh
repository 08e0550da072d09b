# The case has 8 buckets: the table says so, and the setting need not be given.
posenc attend t5 -i "$SOURCE/tests/golden/t5__bidir.npz" --scale 1 --set max_distance=20 -o out.npz; status=$?; ls; exit $status
