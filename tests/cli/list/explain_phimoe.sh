# Two lists and two magnitudes, by the length of the sequence; the people's table says so too.
eight() { echo "[$1, $1, $1, $1, $1, $1, $1, $1]"; }
cat >phimoe.json <<EOF
{"model_type": "phimoe", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 128, "rope_theta": 1e6,
 "rope_scaling": {"type": "longrope", "short_factor": $(eight 1.0), "long_factor": $(eight 2.0), "short_mscale": 1.1,
 "long_mscale": 1.3, "original_max_position_embeddings": 16}}
EOF
posenc list rope --explain --config phimoe.json
posenc inspect phimoe.json | grep magnitude
