# A reference case in, its arrays out. The manifest says which settings it was made with.
posenc attend t5[num_buckets=8:max_distance=12:bidirectional=no] --causal --scale 1 --grad \
    -i "$SOURCE/tests/golden/t5__causal.npz" -o out.npz
ls
grep -aoE '[a-z]+_[a-z]+\.npy' out.npz | sort -u
