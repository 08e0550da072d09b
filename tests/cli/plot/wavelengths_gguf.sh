posenc plot wavelengths --config "$SOURCE/tests/golden/peers/gguf/llama32.gguf" --length 8192
