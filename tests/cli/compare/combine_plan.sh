seq 30000 >text.txt
posenc compare -e 'sinusoidal,alibi,learned[inject=blocks]' --combine add,concat --dry-run text.txt | grep -v '^Estimated time'
