posenc encode sinusoidal --dim 4 --length 3 -o no/rows.csv; status=$?; ls; exit $status
