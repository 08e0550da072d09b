posenc compare -e 'learned[combine=concat:inject=blocks]' -o out text.txt
