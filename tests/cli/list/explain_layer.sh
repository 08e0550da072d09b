posenc list rope --explain --config "$SOURCE/tests/golden/peers/transformers5/gemma3.json" --layer 5
