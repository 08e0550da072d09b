#!/bin/sh
# SPDX-License-Identifier: MIT
#
# wheel.sh FOLDER: builds the source distribution, the wheel from that, and tries the wheel in a bare environment
#
# Needs Python 3.11 or later and PyPI, where scikit-build-core (and CMake, where there is none) come from. PYTHON: another
# interpreter. jansson, and for .npz libzip and zlib, go into the wheel, with their licences, compiled from Debian's source
# packages (needs dpkg-dev and cmake; STATIC: a folder with libjansson.a, libzip.a and libz.a of position-independent code
# instead, and LICENSE.NAME of each). Where pip can have auditwheel and abi3audit they check the wheel's tags as well.
set -eu
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
rm -rf "$folder"/*

built() { # NAME CMAKE_OPTION...
    name=$1
    shift
    cmake -S "$folder/sources/$name" -B "$folder/$name" -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON \
        -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DBUILD_SHARED_LIBS=OFF "$@" && cmake --build "$folder/$name"
}

# zlib by its own script: its CMake build moves a header of the sources. libzip with what an .npz asks for, which is deflate,
# and without arc4random, which would ask for a newer glibc than all else of the wheel.
libraries() {
    "$root/tools/deps.sh" --sources "$folder/sources" jansson zlib libzip &&
        built jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON &&
        (cd "$folder/sources/zlib" && CFLAGS="-O2 -fPIC" ./configure --static && make libz.a) &&
        built libzip -DZLIB_LIBRARY="$folder/sources/zlib/libz.a" -DZLIB_INCLUDE_DIR="$folder/sources/zlib" \
            -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF \
            -DHAVE_ARC4RANDOM=OFF \
            -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF &&
        mkdir "$STATIC" &&
        cp "$folder/jansson/lib/libjansson.a" "$folder/libzip/lib/libzip.a" "$folder/sources/zlib/libz.a" "$STATIC" &&
        for name in jansson zlib libzip; do cp "$folder/sources/$name/LICENSE" "$STATIC/LICENSE.$name" || return; done
}

if [ -z "${STATIC:-}" ]; then
    STATIC=$folder/static
    libraries >"$folder/libraries.log" 2>&1 || {
        tail -5 "$folder/libraries.log" >&2
        echo "wheel.sh: jansson, zlib or libzip could not be compiled; name a folder with their archives: STATIC=" >&2
        exit 1
    }
fi
"$python" -m venv "$folder/build"
"$folder/build/bin/pip" install --quiet build
"$folder/build/bin/python" -m build -Ccmake.define.POSENC_PYTHON_STATIC="$STATIC" -Ccmake.define.POSENC_ZIP=ON --outdir "$folder" "$root" \
    >"$folder/build.log" 2>&1 || { tail -40 "$folder/build.log" >&2; exit 1; }
wheel=$(ls "$folder"/posenc-*.whl)
bytes=$(wc -c <"$wheel")
"$python" -m venv "$folder/bare"
"$folder/bare/bin/pip" install --quiet "$wheel"
if ldd "$folder"/bare/lib/python3*/site-packages/posenc/_core*.so | grep -E 'jansson|libzip|libz\.'; then
    echo "wheel.sh: the wheel wants a library of the system" >&2
    exit 1
fi
cd "$folder" # not where a folder posenc lies
"$folder/bare/bin/python" - <<'EOF'
import numpy as np, posenc
q = np.random.randn(1, 8, 128, 64).astype("float32")
assert posenc.attend(q, q, q, "alibi", causal=True).shape == q.shape
assert posenc.verify(lambda q, k: posenc.rotate(q, k, "rope"), "rope").ok
assert posenc.inspect({"model_type": "gpt2"}).model_type == "gpt2"
assert posenc._core.has_npz()
print(f"posenc {posenc.__version__} on {posenc.isa()}, NumPy {np.__version__}: fine")
EOF
# What a build may lack is tried in the wheel itself: a report, whose runs are .npz, and parameters out of an .npz.
"$folder/bare/bin/pip" install --quiet pytest
"$folder/bare/bin/python" -m pytest -q -rs -p no:cacheprovider -k "directory or checkpoint" "$root/python/tests/test_compare.py" \
    "$root/python/tests/test_inspect.py"
echo "$wheel: $bytes bytes"
if "$folder/build/bin/pip" install --quiet auditwheel abi3audit 2>/dev/null; then
    "$folder/build/bin/python" -m auditwheel show "$wheel" >"$folder/auditwheel.txt"
    tr -s '\n ' ' ' <"$folder/auditwheel.txt" | grep -o 'consistent with the following platform tag: "manylinux[^"]*"' || { cat "$folder/auditwheel.txt" >&2; exit 1; }
    "$folder/build/bin/abi3audit" --strict "$wheel"
fi
