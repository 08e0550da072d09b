# A checkpoint says nothing about its rotation; the config.json beside it does. Types that cannot be loaded do not matter.
cp "$SOURCE/tests/golden/configs/bert_base.json" config.json
python3 - <<EOF
import struct
header = b'{"w":{"dtype":"F8_E4M3","shape":[2,3],"data_offsets":[0,6]}}'
open("model.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(6))
open("cut.safetensors", "wb").write(struct.pack("<Q", len(header)) + header + bytes(5))
EOF
posenc inspect model.safetensors
posenc inspect cut.safetensors
