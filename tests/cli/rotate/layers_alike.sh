# Full and sliding layers with the same base are one rotation: no layer need be chosen.
echo '{"model_type": "olmo3", "num_hidden_layers": 4, "hidden_size": 512, "num_attention_heads": 8, "rope_theta": 500000}' >olmo3.json
posenc encode sinusoidal --length 4 --dim 64 -o q.npy
posenc rotate --config olmo3.json -i q.npy -o out.npy && echo turned
posenc inspect olmo3.json | sed -n '/^rope/p;/ base/p'
