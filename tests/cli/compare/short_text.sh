echo "In the beginning" >short.txt
posenc compare -o out short.txt; status=$?; ls; exit $status
