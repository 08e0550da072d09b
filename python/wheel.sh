#!/bin/sh
# SPDX-License-Identifier: MIT
#
# wheel.sh FOLDER: builds the source distribution, the wheel from that, and tries the wheel in a bare environment
#
# Needs Python 3.11 or later and PyPI, where scikit-build-core (and CMake, where there is none) come from. PYTHON: another
# interpreter. jansson goes into the wheel, with its licence, compiled from Debian's source package (needs dpkg-dev and cmake;
# JANSSON: a libjansson.a of position-independent code instead, with LICENSE beside it). Where pip can have auditwheel and
# abi3audit they check the wheel's tags as well.
set -eu
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
rm -rf "$folder"/*
if [ -z "${JANSSON:-}" ]; then
    JANSSON=$folder/jansson/lib/libjansson.a
    { "$root/tools/deps.sh" --sources "$folder/sources" jansson &&
        cmake -S "$folder/sources/jansson" -B "$folder/jansson" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
            -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON &&
        cmake --build "$folder/jansson" &&
        cp "$folder/sources/jansson/LICENSE" "$folder/jansson/lib"; } >"$folder/jansson.log" 2>&1 ||
        { tail -5 "$folder/jansson.log" >&2; echo "wheel.sh: jansson could not be compiled; name a libjansson.a with JANSSON=" >&2; exit 1; }
fi
"$python" -m venv "$folder/build"
"$folder/build/bin/pip" install --quiet build
"$folder/build/bin/python" -m build -Ccmake.define.POSENC_JANSSON_STATIC="$JANSSON" --outdir "$folder" "$root" >"$folder/build.log" 2>&1 || { tail -40 "$folder/build.log" >&2; exit 1; }
wheel=$(ls "$folder"/posenc-*.whl)
bytes=$(wc -c <"$wheel")
"$python" -m venv "$folder/bare"
"$folder/bare/bin/pip" install --quiet "$wheel"
if ldd "$folder"/bare/lib/python3*/site-packages/posenc/_core*.so | grep jansson; then
    echo "wheel.sh: the wheel wants the system's libjansson" >&2
    exit 1
fi
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
if "$folder/build/bin/pip" install --quiet auditwheel abi3audit 2>/dev/null; then
    "$folder/build/bin/python" -m auditwheel show "$wheel" >"$folder/auditwheel.txt"
    tr -s '\n ' ' ' <"$folder/auditwheel.txt" | grep -o 'consistent with the following platform tag: "manylinux[^"]*"' || { cat "$folder/auditwheel.txt" >&2; exit 1; }
    "$folder/build/bin/abi3audit" --strict "$wheel"
fi
