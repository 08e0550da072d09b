# A learned table is as long as the largest position asks, unless rows says otherwise.
posenc encode learned --positions 5 --dim 1 --seed 1
posenc encode learned --positions 5 --dim 1 --seed 1 --set rows=4
