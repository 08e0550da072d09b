posenc encode sinusoidal --length 4 --dim 64 -o q.npy && posenc rotate --config "$SOURCE/tests/golden/peers/transformers5/gpt_oss.json" -i q.npy -o out.npy && ls
