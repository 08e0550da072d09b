# Neither queries nor keys.
posenc encode sinusoidal --length 4 --dim 8 -o rows.npz && posenc rotate -i rows.npz -o out.npz
