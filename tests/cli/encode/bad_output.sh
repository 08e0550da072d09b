posenc encode sinusoidal --dim 4 --length 3 -o rows.txt; ls
