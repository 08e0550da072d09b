posenc plot wavelengths --config "$SOURCE/tests/golden/peers/transformers5/bloom.json"
