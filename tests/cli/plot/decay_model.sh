posenc plot decay --config "$SOURCE/tests/golden/peers/transformers4/qwen2_yarn.json" --length 100 --draws 20
