seq 30000 >text.txt
mkdir out.partial
echo '{"encoding":"rope"}' >out.partial/runs.jsonl
posenc compare -e nope --tasks none -o out text.txt; status=$?; ls . out.partial; exit $status
