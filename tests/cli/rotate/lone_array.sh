# The rows of a table, turned as if they were queries: an .npy in, an .npy out.
posenc encode sinusoidal --length 4 --dim 8 -o rows.npy && posenc rotate -i rows.npy -o out.npy --offset 3 && ls
