# Encodings that are no rotation.
for name in falcon_rw_1b deberta_v3_base t5_base roberta_base vit_base whisper_small mamba_130m; do
    posenc inspect "$SOURCE/tests/golden/configs/$name.json"
    echo
done
