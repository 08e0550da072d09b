posenc plot wavelengths --config "$SOURCE/tests/golden/peers/transformers5/llama31.json"
