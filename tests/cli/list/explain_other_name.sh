posenc list xpos --explain --config "$SOURCE/tests/golden/peers/transformers5/glm.json"
