# The case has 8 buckets.
posenc attend t5 --set num_buckets=32 -i "$SOURCE/tests/golden/t5__bidir.npz" -o out.npz; status=$?; ls; exit $status
