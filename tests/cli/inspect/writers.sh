# Files as transformers, gguf and safetensors themselves write them (tests/peers/make.py, versions in versions.txt).
for folder in transformers4 transformers5 gguf safetensors; do
    files=$SOURCE/tests/golden/peers/$folder
    python3 "$SOURCE/tests/cli/inspect/agree.py" "$files" "$(cat "$files/ending.txt")"
done
