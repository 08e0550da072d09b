posenc inspect --json --layer 3 "$SOURCE/tests/golden/configs/llama4_scout.json"
