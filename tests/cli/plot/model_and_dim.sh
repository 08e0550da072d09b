posenc plot decay --config "$SOURCE/tests/golden/peers/transformers4/qwen2_yarn.json" --dim 64
