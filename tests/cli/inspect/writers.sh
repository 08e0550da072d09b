# Files as transformers, gguf and safetensors themselves write them (tests/peers/write.py, versions in versions.txt).
for ending in json gguf safetensors; do
    python3 "$SOURCE/tests/cli/inspect/agree.py" "$SOURCE/tests/golden/writers" $ending expected_$ending.json
done
