posenc compare --checkpoint often text.txt
