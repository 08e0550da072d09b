posenc compare --extension far -o out text.txt
