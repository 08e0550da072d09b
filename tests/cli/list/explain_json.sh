posenc list rope --explain --json --config "$SOURCE/tests/golden/peers/transformers5/glm.json"
