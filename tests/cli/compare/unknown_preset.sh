posenc compare --preset quikc -o out text.txt
