#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh POSENC BUILD [--keep]: model files from the real writers, made anew, and read by `posenc inspect`
#
# Two virtual environments below BUILD hold the packages of requirements-*.txt (PyPI, with PyTorch; some GB). What
# make.py writes there lies in BUILD/files; --keep also takes it as tests/golden/peers, which `make test` reads, and the
# cases of cases.py as tests/golden/grids. Then every model type is read (model_types.py), and tiny models of 11 types, and of
# 40 drawn by the day or by SEED, are run beside posenc (attention.py). A third environment, with requirements-torch.txt, computes with what permute and extend write; POSENC_PEERS_PYTHON names an interpreter that has
# those packages, and is taken in its place.
set -eu

posenc=$(realpath "$1")
mkdir -p "$2"
build=$(realpath "$2")
here=$(realpath "$(dirname "$0")")
files=$build/files
rm -rf "$files"
for name in old new; do
    python=$build/$name/bin/python
    if ! cmp -s "$here/requirements-$name.txt" "$build/$name/installed.txt"; then
        python3 -m venv "$build/$name"
        "$python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements-$name.txt"
        cp "$here/requirements-$name.txt" "$build/$name/installed.txt"
    fi
    "$python" "$here/make.py" "$files" 2>"$build/$name.log" || {
        cat "$build/$name.log" >&2
        exit 1
    }
done
"$build/new/bin/python" -m pip freeze --quiet --disable-pip-version-check | grep -iE '^(transformers|gguf|safetensors|numpy)=' |
    sed 's/$/ (new)/' >"$files/versions.txt"
"$build/old/bin/python" -m pip freeze --quiet --disable-pip-version-check | grep -iE '^(transformers|numpy)=' |
    sed 's/$/ (old)/' >>"$files/versions.txt"
chmod -R u=rwX,go=rX "$files"
if [ "${3-}" = --keep ]; then
    rm -rf "$here/../golden/peers"
    cp -r "$files" "$here/../golden/peers"
    "$build/new/bin/python" "$here/cases.py" "$here/../golden/grids"
fi
mkdir -p "$build/bin"
ln -sf "$posenc" "$build/bin/posenc"
for folder in "$files"/*/; do
    printf '%s: ' "$(basename "$folder")"
    PATH=$build/bin:$PATH python3 "$here/../cli/agree.py" "$folder" "$(cat "$folder/ending.txt")"
done
"$build/new/bin/python" "$here/model_types.py" "$posenc" "$build/types" >"$build/types.txt" || {
    grep '^wrong' "$build/types.txt" >&2
    exit 1
}
sed '/^[a-z]* *[^ ]* ([a-z]*)/d' "$build/types.txt" # the counts; the reasons stay in the file
"$build/new/bin/python" "$here/cases.py" "$build/grids"
"$posenc" verify "$build/grids" | tail -n 1
"$build/new/bin/python" "$here/attention.py" "$posenc" "$build/tiny" ${SEED-} >"$build/tiny.txt" 2>"$build/tiny.log" || {
    grep '^differs' "$build/tiny.txt" >&2
    exit 1
}
sed -n '1p;$p' "$build/tiny.txt"

torch=${POSENC_PEERS_PYTHON-$build/torch/bin/python}
if [ -z "${POSENC_PEERS_PYTHON-}" ] && ! cmp -s "$here/requirements-torch.txt" "$build/torch/installed.txt"; then
    python3 -m venv "$build/torch"
    "$torch" -m pip install --quiet --disable-pip-version-check -r "$here/requirements-torch.txt"
    cp "$here/requirements-torch.txt" "$build/torch/installed.txt"
fi
for name in permute extend; do
    "$torch" "$here/$name.py" "$posenc" 2>"$build/$name.log" || {
        cat "$build/$name.log" >&2
        exit 1
    }
done
"$here/../runs/test_checkpoints.py" "$posenc" --sparse
