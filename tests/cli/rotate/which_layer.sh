posenc rotate --config "$SOURCE/tests/golden/peers/transformers5/gemma3.json" -i q.npy -o out.npy
