seq 30000 >text.txt
mkdir out.partial
echo nothing >out.partial/0123456789abcdef.npz
posenc compare -e nope --tasks none -o out --resume --dry-run text.txt | grep -v '^Estimated time'
ls out.partial
