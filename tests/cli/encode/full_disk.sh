# /dev/full refuses every byte: the tool must say so, whichever the format.
ln -s /dev/full rows.csv && ln -s /dev/full rows.npy
posenc encode sinusoidal --dim 4 --length 3 -o rows.csv; posenc encode sinusoidal --dim 4 --length 3 -o rows.npy
