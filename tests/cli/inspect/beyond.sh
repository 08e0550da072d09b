posenc inspect --layer 28 "$SOURCE/tests/golden/configs/qwen2_vl_7b.json"
