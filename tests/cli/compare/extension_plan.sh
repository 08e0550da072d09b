seq 100000 >text.txt
posenc compare -e rope --tasks none --extension full --tune-steps 50 --dry-run text.txt | grep -v '^Estimated time'
