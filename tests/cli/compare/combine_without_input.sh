seq 30000 >text.txt
posenc compare -e alibi,rope --combine concat -o out text.txt; status=$?; ls; exit $status
