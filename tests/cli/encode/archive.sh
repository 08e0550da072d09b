# What an archive says is enough to make it again: its positions and its parameters come back in.
posenc encode learned --positions 2,0 --dim 3 --seed 7 -o a.npz && grep -aoE '[a-z]+_[a-z]+\.npy' a.npz | sort -u
posenc encode learned --positions a.npz --dim 3 --params a.npz -o b.npz && cmp a.npz b.npz && ls
