posenc compare --combine sum -o out text.txt
