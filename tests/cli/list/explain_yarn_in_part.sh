# yarn_ext_factor 0.5: half of what YaRN leaves alone is slowed all the same.
python3 - <<'EOF'
import struct
text = lambda s: struct.pack('<Q', len(s)) + s.encode()
word = lambda k, v: text(k) + struct.pack('<I', 8) + text(v)
whole = lambda k, v: text('qwen2.' + k) + struct.pack('<II', 4, v)
real = lambda k, v: text('qwen2.' + k) + struct.pack('<If', 6, v)
keys = [word('general.architecture', 'qwen2'), whole('block_count', 4), whole('embedding_length', 256),
        whole('attention.head_count', 4), whole('context_length', 4096), real('rope.freq_base', 1e6),
        word('qwen2.rope.scaling.type', 'yarn'), real('rope.scaling.factor', 4),
        whole('rope.scaling.original_context_length', 1024), real('rope.scaling.yarn_ext_factor', 0.5)]
open('half.gguf', 'wb').write(b'GGUF' + struct.pack('<IQQ', 3, 0, len(keys)) + b''.join(keys))
EOF
posenc list rope --explain --config half.gguf | sed -n '/How fast/,/^$/p'
posenc inspect half.gguf | grep extrapolation
