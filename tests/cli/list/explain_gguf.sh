posenc list rope --explain --config "$SOURCE/tests/golden/peers/gguf/llama32.gguf"
