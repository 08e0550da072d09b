posenc list --explain --config "$SOURCE/tests/golden/peers/transformers4/phi3_longrope.json"
