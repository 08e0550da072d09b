# What strangers send: one line each, status 2, nothing on standard output.
try() {
    posenc inspect --json "$1"
    echo "status $?"
}
sized='"hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "max_position_embeddings": 64'
echo '{"model_type": "llama", ' >cut.json
echo '[1, 2]' >list.json
echo '{"model_type": "llama", "rope_theta": NaN}' >nan.json
echo '{"model_type": "llama", "rope_theta": Infinity}' >infinity.json
echo '{"model_type": "llama", "rope_theta": 1e999}' >overflow.json
echo '{"model_type": "llama", "rope_theta": 1e4, "rope_theta": 1e6}' >twice.json
echo '{"model_type": "llama", "hidden_size": 99999999999999999999}' >big.json
echo '{"model_type": "llama", "num_hidden_layers": 4000000000}' >layers.json
echo '{"model_type": "llama", "rope_theta": 1}' >base.json
echo "{\"model_type\": \"llama\", $sized, \"rope_scaling\": {\"type\": \"linear\", \"factor\": 0}}" >factor.json
echo "{\"model_type\": \"llama\", $sized, \"rope_parameters\": {\"full_attention\": {\"rope_theta\": 1e4}}}" >layered.json
echo "{\"model_type\": \"gemma3_text\", $sized, \"rope_parameters\": {\"rope_theta\": 1e4}}" >flat.json
echo "{\"model_type\": \"qwen3\", $sized, \"layer_types\": [\"full_attention\"]}" >short.json
python3 -c 'print("{\"a\": " + "[" * 100000 + "]" * 100000 + "}")' >deep.json
head -c 300 "$SOURCE/tests/golden/gguf/llama31.gguf" >cut.gguf
printf 'GGUF\001\0\0\0' >old.gguf
printf 'GGUF\003\0\0\0\0\0\0\0\0\0\0\0\377\377\377\377\377\377\377\177' >many.gguf
for file in cut list nan infinity overflow twice big layers base factor layered flat short deep; do try $file.json; done
for file in cut old many; do try $file.gguf; done
