posenc compare --lang fr -o out text.txt
