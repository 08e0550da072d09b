posenc compare -e alibbi -o out text.txt
