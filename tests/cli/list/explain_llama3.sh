posenc list rope --explain --config "$SOURCE/tests/golden/peers/transformers5/llama31.json"
