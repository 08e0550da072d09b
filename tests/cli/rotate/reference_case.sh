# A reference case in, its arrays out; verify measures the same numbers.
posenc rotate -i "$SOURCE/tests/golden/rope/rope__partial_half.npz" --set layout=half --set dim=12 -o out.npz && ls && grep -ao '[a-z_]*\.npy' out.npz | sort -u
