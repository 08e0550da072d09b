seq 30000 >text.txt
posenc compare -e nope,rope --tasks order,grid --steps 1 --task-steps 2 --json text.txt 2>/dev/null | grep -E '"(task|title|attention|length|n|does_not_apply|chance)"' | head -n 12
ls posenc-compare | grep csv
