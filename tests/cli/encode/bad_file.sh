posenc encode sinusoidal --dim 4 --positions nothing.npy
posenc encode sinusoidal --dim 4 --positions "$SOURCE/tests/golden/t5__bidir.npz"
posenc encode sinusoidal --dim 4 --positions "$SOURCE/tests/golden/sinusoidal_nd__3d.npz"
posenc encode learned --dim 3 --length 2 --params "$SOURCE/tests/golden/learned__contiguous_offset.npz" -o rows.csv
ls
