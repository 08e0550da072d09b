# Whatever acts at the input gives rows; which encodings those are, the registry says. Only failures are printed.
tried=0
for name in $(posenc list | awk '$2 == "input" { print $1 }'); do
    posenc encode "$name" --length 3 --dim 8 -o rows.csv && [ "$(wc -l <rows.csv)" = 3 ] || echo "$name: no 3 rows"
    tried=$((tried + 1))
done
[ $tried -ge 5 ] || echo "only $tried encodings"
