# An .npy holds the rows alone: 128 bytes of header and 8 for each number.
posenc encode sinusoidal_nd[shape=4x5] --length 20 --dim 6 -o rows.npy && wc -c rows.npy && head -c 128 rows.npy | tr -d '\223\n' | tr -s ' \001\000'
