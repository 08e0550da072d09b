# Llama is interleaved in GGUF, half in its config.json; llama3's schedule is baked into a tensor.
posenc inspect "$SOURCE/tests/golden/gguf/llama31.gguf"
