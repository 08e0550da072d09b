# The same for GGUF files, as gguf-py writes them.
python3 "$SOURCE/tests/cli/inspect/agree.py" "$SOURCE/tests/golden/gguf" gguf
