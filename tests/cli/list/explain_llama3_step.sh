# Llama 3's factors the wrong way round: transformers makes a step of them, and so does this.
echo '{"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "rope_theta": 1e4, "max_position_embeddings": 4096,
 "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 4.0, "high_freq_factor": 1.0,
 "original_max_position_embeddings": 1024}}' >step.json
posenc list rope --explain --config step.json | sed -n '/How fast/,/^$/p'
posenc inspect --json step.json | grep warnings
