# Pipes on both sides; any number of threads gives the same bytes, and an archive begins with PK.
case=$SOURCE/tests/golden/transformer_xl__bidir.npz
for threads in 1 2; do
    posenc attend transformer_xl --set d_model=12 --executor tiled --grad --threads $threads -i - -o - <"$case" >$threads
done
cmp 1 2 && head -c 2 1
