posenc list rope --explain --config "$SOURCE/tests/golden/peers/transformers5/deepseek_v3.json"
