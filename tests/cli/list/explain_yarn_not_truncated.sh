posenc list rope --explain --config "$SOURCE/tests/golden/peers/transformers4/gpt_oss.json"
