# One layer's kind alone: Llama 4 does not rotate every fourth.
posenc inspect --layer 3 "$SOURCE/tests/golden/configs/llama4_scout.json"
