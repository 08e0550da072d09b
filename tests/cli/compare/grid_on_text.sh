seq 30000 >text.txt
posenc compare -e 'nope,sinusoidal2d' --tasks grid --task-steps 50 --dry-run text.txt | grep -v '^Estimated time'
posenc compare -e sinusoidal2d -o out text.txt
