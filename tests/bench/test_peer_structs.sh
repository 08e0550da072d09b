#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_peer_structs.sh SOURCE CC: bench/peers mirrors the header's structures, and it is seen when it does not
#
# Runs peer_structs.py on the tree, then on copies whose header or list was changed by one thing: each must be refused. Skipped (77)
# without python3.
set -u

source=$1 compiler=$2
check="$source/tests/bench/peer_structs.py"
if ! command -v python3 >/dev/null; then
    echo "test_peer_structs: skipped: no python3, which compares the structures of bench/peers with posenc.h"
    exit 77
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

python3 "$check" "$source" "$compiler" || failed=1

# refused WORDS FILE SED-COMMAND: the tree with FILE changed so must fail, and say WORDS.
refused() {
    rm -rf "$root/tree"
    mkdir -p "$root/tree/bench"
    cp -r "$source/include" "$root/tree"
    cp -r "$source/bench/peers" "$root/tree/bench"
    sed -i "$3" "$root/tree/$2"
    if cmp -s "$source/$2" "$root/tree/$2"; then
        echo "test_peer_structs: this changed nothing: $3" >&2
        failed=1
    elif python3 "$check" "$root/tree" "$compiler" >"$root/said" 2>&1; then
        echo "test_peer_structs: this change passed: $3" >&2
        failed=1
    elif ! grep -q "$1" "$root/said"; then
        echo "test_peer_structs: expected \"$1\" of $3, but it said:" >&2
        cat "$root/said" >&2
        failed=1
    fi
}

header=include/posenc/posenc.h list=bench/peers/posenc_structs.py
# the header gains a field: behind the last, and in a gap, where no size or place changes
refused 'missing .*late' $header 's/^} posenc_options;/int late;\n&/'
refused 'missing initializer.*allocator' $header '/^typedef struct posenc_options/,/^}/s/^ *int  *threads;/int gap;\n&/'
# the list gains one, loses one, has two in the wrong order, a wrong size, a wrong constant
refused 'no member named.*M' $list 's/"d_model", "L")/"d_model", "L", "M")/'
refused 'missing .*lse' $list 's/, ("lse", Tensor)//'
refused 'posenc_tensor.dtype 12 4.* 8 4' $list 's/("dtype", c.c_int), ("ndim", c.c_int32)/("ndim", c.c_int32), ("dtype", c.c_int)/'
refused 'posenc_error.message 4 200.* 4 244' $list 's/c.c_char \* 244/c.c_char * 200/'
refused 'POSENC_MASK_CAUSAL 2' $list 's/^CAUSAL = 1/CAUSAL = 2/'
exit $failed
