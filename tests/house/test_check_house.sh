#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_check_house.sh SOURCE: the checker of the house finds every kind of fault
#
# Copies the tree's sources, sees the copy pass, then plants one fault after the other, each in a fresh copy, and wants
# it refused with a sentence that says why. A fault that passes is a hole in tools/check_house.py.
set -u

source=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

fresh() {
    rm -rf "$root/tree"
    mkdir -p "$root/tree"
    (cd "$source" && cp -r .clang-format cli docs examples include src tools "$root/tree")
    cd "$root/tree" || exit 1
}

# refused SENTENCE: the tree as it is now must fail the check, with these words.
refused() {
    if python3 tools/check_house.py >"$root/said" 2>&1; then
        echo "test_check_house: this fault passed: $1" >&2
        failed=1
    elif ! grep -q "$1" "$root/said"; then
        echo "test_check_house: expected \"$1\", but the check said:" >&2
        cat "$root/said" >&2
        failed=1
    fi
    fresh
}

# append FILE LINE...: adds lines at the end of a file.
append() {
    file=$1
    shift
    printf '%s\n' "$@" >>"$file"
}

room=$(cd "$source" && ls src/encodings/score/*.c | head -n 1)
other=$(cd "$source" && ls src/encodings/score/*.c | tail -n 1)

fresh
if ! python3 tools/check_house.py >"$root/said" 2>&1; then
    echo "test_check_house: the tree as it stands does not pass:" >&2
    cat "$root/said" >&2
    exit 1
fi

append src/base/status.c '#include "engine/terms.h"'
refused 'src/base/status.c:.*engine/terms.h, which the floor base may not see'

append "$room" '#include "engine/attend.h"'
refused 'engine/attend.h, which the floor encodings may not see'

append cli/main.c '#include "engine/terms.h"'
refused 'the floor cli may not see'

append examples/attend.c '#include "plot/plot.h"'
refused 'the floor examples may not see'

append "$room" "#include \"${other#src/}\""
refused "includes the room ${other#src/}"

append src/encodings/rotary/xpos.c '#include "encodings/rotary/rope.h"'
refused 'src/encodings/rotary/xpos.c:.*includes the room encodings/rotary/rope.h'

append src/base/status.h '#include "base/tensor.h"'
append src/base/tensor.h '#include "base/status.h"'
refused 'a circle of includes: '

append src/engine/turn.c '#include <omp.h>'
refused 'omp.h, which belongs to base/parallel.c alone'

append src/api/plan.c '#include <jansson.h>'
refused 'jansson.h, which belongs to'

append src/engine/turn.c '#include <sys/mman.h>'
refused "sys/mman.h, which is not the C library's"

append src/engine/turn.c 'void *pe_taken(void);' 'void *pe_taken(void)' '{' '    return malloc(8);' '}'
refused 'malloc in pe_taken()'

for word in Place Formula Learns Source; do
    sed -i "s/^ \* $word/ * Elsewhere/" "$room"
    refused "lacks the line \`$word\`"
done

append include/posenc/files.h 'posenc_unheard_of posenc_new(void);'
refused 'include/posenc/files.h:1: does not compile alone as c17'

# Good C, but no C++.
append include/posenc/files.h 'static inline int posenc_new(int class) { return class; }'
refused 'does not compile alone as c++17'

append src/base/status.c "/* $(printf 'TO%s' DO): later */"
refused 'work left for later'

sed -i 1d src/base/status.c
refused 'the first line is not'

mkdir src/cellar && cp src/base/half.h src/cellar
refused 'is no floor of docs/house.md'

sed -i 's/^base  .*/& engine/' docs/house.md
refused 'floor base names engine'

if clang-format-14 --version >/dev/null 2>&1 || clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    append src/base/status.c 'int   badly_set;'
    refused 'clang-format would write this differently'
fi
exit $failed
