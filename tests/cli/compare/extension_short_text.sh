seq 2000 >text.txt
posenc compare -e rope --tasks none --extension brief -o out text.txt
