posenc plot heatmap --config "$SOURCE/tests/golden/peers/transformers5/llama31.json"
