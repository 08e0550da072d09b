posenc inspect --layer 0 "$SOURCE/tests/golden/configs/granite4_h_tiny.json"
