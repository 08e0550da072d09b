#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_check_house.sh SOURCE: the checker of the house finds every kind of fault
#
# Makes a small house with the real checker and the real docs/house.md, two or three sources on a floor, sees it pass,
# then plants one fault after the other, each in a fresh copy, and wants it refused with a sentence that says why. A
# fault that passes is a hole in tools/check_house.py.
set -u

source=$1
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

# file PATH LINE...: a source of the small house.
file() {
    mkdir -p "$(dirname "$1")"
    printf '%s\n' '/* SPDX-License-Identifier: MIT */' >"$1"
    path=$1
    shift
    [ $# = 0 ] || printf '%s\n' "$@" >>"$path"
}

# room PATH [LINE]: one with its head comment.
room() {
    file "$1" '/*' ' * A room' ' *' ' * Place    score' ' * Formula  S[h,i,j] = 0' ' * Learns   nothing' \
        ' * Source   nobody' ' */' '#include "encodings/encoding.h"' "${2-#include <math.h>}"
}

small_house() {
    mkdir -p docs tools
    cp "$source/.clang-format" .
    cp "$source/docs/house.md" docs
    cp "$source/tools/check_house.py" tools
    file include/posenc/posenc.h '#pragma once' '#include <stdint.h>' 'typedef int64_t posenc_size;'
    file include/posenc/files.h '#pragma once' '#include "posenc/posenc.h"'
    file src/base/half.h
    file src/base/tensor.h '#include <posenc/posenc.h>'
    file src/base/status.h '#include <stddef.h>'
    file src/base/status.c '#include "base/status.h"'
    file src/base/openmp.c '#include <omp.h>'
    file src/engine/score/terms.h '#include "base/tensor.h"'
    file src/engine/score/attention.h
    file src/engine/rotation/rotation.c '#include "base/tensor.h"'
    file src/encodings/encoding.h '#include "engine/score/terms.h"'
    file src/encodings/encodings.def 'ENCODING(score, alibi, alibi)' 'ENCODING(score, t5, t5)' \
        'ENCODING(rotary, rope, rope)' 'ENCODING(rotary, xpos, xpos)'
    room src/encodings/score/alibi.c
    room src/encodings/score/t5.c
    room src/encodings/rotary/rope.c '#include "encodings/rotary/rope.h"'
    file src/encodings/rotary/rope_turn.c '#include "encodings/rotary/rope.h"'
    file src/encodings/rotary/rope.h
    room src/encodings/rotary/xpos.c
    file src/api/plan.c '#include "encodings/encoding.h"' 'void *pe_plan_create(void);' 'void *pe_plan_create(void)' \
        '{' '    return malloc(8);' '}'
    file src/files/json.c '#include <jansson.h>' '#include <posenc/files.h>'
    file src/plot/plot.h '#include <posenc/posenc.h>'
    file src/train/tasks/task.h
    file src/train/run/run.h '#include "train/tasks/task.h"'
    file src/train/run/run.c '#include "train/run/run.h"' 'int pe_run(int n)' '{' '    return pe_run_unit(n);' '}'
    file src/train/run/run_unit.c 'int pe_run_unit(int n)' '{' '    return n + 1; /* not pe_run(n) */' '}'
    file src/train/compare.h '#include "train/jobs/preset.h"'
    file src/train/jobs/preset.h '#include "train/run/run.h"'
    mkdir -p src/train/report
    printf '%s\n' '<p>this stands on the page</p><p>and so does this</p>' >src/train/report/report.html
    printf '%s\n' 'msgid "this stands on the page"' 'msgstr "..."' 'msgid "loss at %d"' 'msgstr "%1 ..."' >src/train/report/zh.po
    file cli/main.c '#include "cli/frame/cli.h"'
    file cli/frame/cli.h
    file cli/commands/cmd_plot.c '#include "plot/plot.h"'
    file examples/attend.c '#include <posenc/posenc.h>'
    file tests/base/test_status.c '#include "base/status.h"'
}

fresh() {
    cd "$root" || exit 1
    rm -rf tree
    cp -r house tree
    cd tree || exit 1
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
    elif ! grep -q 'check_house: [12] faults' "$root/said"; then
        echo "test_check_house: more than this fault (twice at most) was said:" >&2
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

mkdir "$root/house" && cd "$root/house" || exit 1
small_house
fresh
if ! python3 tools/check_house.py >"$root/said" 2>&1; then
    echo "test_check_house: the small house as it stands does not pass:" >&2
    cat "$root/said" >&2
    exit 1
fi

append src/base/status.c '#include "engine/score/terms.h"'
refused 'src/base/status.c:.*engine/score/terms.h, which the floor base may not see'

append src/base/status.c 'struct pair {' '    int a;' '};'
append src/engine/rotation/rotation.c 'struct pair {' '    int b;' '};'
refused 'src/engine/rotation/rotation.c:.*struct pair is also in src/base/status.c'

append src/base/status.c '#include <posenc/files.h>'
refused 'src/base/status.c:.*posenc/files.h, which the floor base may not see'

append src/encodings/score/alibi.c '#include "engine/score/attention.h"'
refused 'engine/score/attention.h, which the floor encodings may not see'

append cli/main.c '#include "engine/score/terms.h"'
refused 'the floor cli may not see'

append examples/attend.c '#include "plot/plot.h"'
refused 'the floor examples may not see'

append src/encodings/score/alibi.c '#include "encodings/score/t5.c"'
refused 'includes the room encodings/score/t5.c'

append src/encodings/rotary/xpos.c '#include "encodings/rotary/rope.h"'
refused 'src/encodings/rotary/xpos.c:.*includes the room encodings/rotary/rope.h'

append src/base/status.h '#include "base/tensor.h"'
append src/base/tensor.h '#include "base/status.h"'
refused 'a circle of includes: '

append src/train/run/run.h '#include "train/jobs/preset.h"'
refused 'src/train/run/run.h:.*train/jobs/preset.h, which the floor train/run may not see'

append src/train/compare.h '#include "train/tasks/task.h"'
refused 'train/tasks/task.h, which the floor train may not see'

file src/train/attic/old.h
refused 'its folder train/attic is no floor of docs/house.md'

append src/train/run/run_unit.c 'int pe_run_twice(int n)' '{' '    return pe_run(pe_run(n));' '}'
refused 'a circle of calls: src/train/run/run.c calls pe_run_unit, src/train/run/run_unit.c calls pe_run'

for number in $(seq 40); do
    file "src/base/part$number.h"
done
refused 'src/base:1: 4[0-9] files; a folder has at most 30'

append src/engine/rotation/rotation.c '#include <omp.h>'
refused 'omp.h, which belongs to base/openmp.c only'

append src/api/plan.c '#include <jansson.h>'
refused 'jansson.h, which belongs to'

append src/engine/rotation/rotation.c '#include <sys/mman.h>'
refused "sys/mman.h, which is not the C library's"

append src/engine/rotation/rotation.c 'void *pe_taken(void);' 'void *pe_taken(void)' '{' '    return malloc(8);' '}'
refused 'malloc in pe_taken()'

for word in Place Formula Learns Source; do
    sed -i "s/^ \* $word/ * Elsewhere/" src/encodings/score/alibi.c
    refused "lacks the line \`$word\`"
done

append src/encodings/score/alibi.c '__attribute__((noinline)) int pe_slow(void);'
refused '__attribute__ is no C'

append include/posenc/files.h 'posenc_unheard_of *posenc_new(void);'
refused 'include/posenc/files.h:1: does not compile alone as c99'

# Good C, but no C++.
append include/posenc/files.h 'static inline int posenc_new(int class)' '{' '    return class;' '}'
refused 'does not compile alone as c++11'

append include/posenc/files.h '#include <stdint.h>' '#define POSENC_API' \
    'POSENC_API int posenc_far(int a, int b, int c, int d,' '                          int e, int f, int g);'
refused 'include/posenc/files.h:6: posenc_far takes 7 arguments; at most 6'

for i in $(seq 41); do append include/posenc/posenc.h "static inline int posenc_f$i(void)" '{' '    return 0;' '}'; done
refused 'include/posenc/posenc.h:1: 41 functions; at most 40'

append src/base/status.c "/* $(printf 'TO%s' DO): later */"
refused 'work left for later'

append tests/base/test_status.c "/* $(printf '%0105d' 0) */"
refused 'test_status.c:3: 111 columns'

sed -i 1d src/base/status.c
refused 'the first line is not'

mkdir src/cellar && cp src/base/half.h src/cellar
refused 'is no floor of docs/house.md'

sed -i 's/^base  .*/& engine/' docs/house.md
refused 'floor base names engine'

append src/train/report/zh.po 'msgid "loss at %s and %s"' 'msgstr "%1"'
refused 'the places of "loss at %s and %s" and "%1" do not agree'

append src/train/report/zh.po 'msgid "loss at %d"' 'msgstr "%1"'
refused '"loss at %d" has another row'

# What has no translation is no fault, but counted.
python3 tools/check_house.py | grep 'zh.po lacks 1 sentence, which stays in English' >/dev/null || {
    echo "test_check_house: a sentence without a translation is not counted" >&2
    failed=1
}

if clang-format-14 --version >/dev/null 2>&1 || clang-format --version 2>/dev/null | grep -q 'version 14\.'; then
    append src/base/status.c 'int   badly_set;'
    refused 'clang-format would write this differently'
fi
exit $failed
