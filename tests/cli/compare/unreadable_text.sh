posenc compare -o out missing.txt; status=$?; ls; exit $status
