posenc compare -e 'nope,t5[combine=concat]' -o out text.txt
