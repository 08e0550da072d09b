seq 30000 >text.txt
posenc compare -e 'nope,xpos,swin' --tasks posid,sort,grid --task-steps 50 --dry-run text.txt | grep -v '^Estimated time'
