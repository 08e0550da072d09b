#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh [--rewrite] POSENC CASE.sh...: runs transcripts of the tool
#
# A case is a few lines of shell that call `posenc`. It runs in an empty folder of its own, and what it prints and its
# exit status are compared with CASE.stdout, CASE.stderr and CASE.exit beside it; a missing file means empty, or 0. The
# names of that folder and of the tree, which differ from run to run, are written TMP and SOURCE. --rewrite takes what
# happened as right: look at the difference before you commit it.
set -u

rewrite=0
if [ "${1-}" = --rewrite ]; then
    rewrite=1
    shift
fi
if [ $# -lt 2 ]; then
    echo "usage: run.sh [--rewrite] POSENC CASE.sh..." >&2
    exit 2
fi
tool=$(realpath "$1")
shift
if [ ! -x "$tool" ]; then
    echo "run.sh: $tool is no program; build it first" >&2
    exit 2
fi

SOURCE=$(realpath "$(dirname "$0")/../..")
export SOURCE LC_ALL=C TERM=dumb OMP_NUM_THREADS=2
unset NO_COLOR POSENC_ISA COLUMNS
root=$(realpath "$(mktemp -d)")
trap 'rm -rf "$root"' EXIT
mkdir "$root/bin"
ln -s "$tool" "$root/bin/posenc"
PATH=$root/bin:$PATH
failed=0

# What was expected: the file beside the case, else the default.
expected() {
    if [ -f "$1" ]; then cat "$1"; else printf '%s' "$2"; fi
}

# keep FILE GOT DEFAULT: writes an expectation, or removes one that says no more than the default.
keep() {
    if [ "$(cat "$2")" = "$3" ]; then rm -f "$1"; else cp "$2" "$1"; fi
}

for case in "$@"; do
    case=$(realpath "$case")
    base=${case%.sh}
    rm -rf "$root/TMP"
    mkdir "$root/TMP"
    (cd "$root/TMP" && sh "$case" >"$root/stdout.raw" 2>"$root/stderr.raw" </dev/null)
    printf '%s\n' $? >"$root/exit"
    for stream in stdout stderr; do
        sed -e "s|$root/TMP|TMP|g" -e "s|$SOURCE|SOURCE|g" "$root/$stream.raw" >"$root/$stream"
    done
    if [ $rewrite = 1 ]; then
        keep "$base.stdout" "$root/stdout" ''
        keep "$base.stderr" "$root/stderr" ''
        keep "$base.exit" "$root/exit" 0
        continue
    fi
    for stream in stdout stderr exit; do
        default=''
        [ $stream != exit ] || default='0
'
        expected "$base.$stream" "$default" >"$root/expected"
        if ! diff -u --label "expected $stream" --label "actual $stream" "$root/expected" "$root/$stream"; then
            echo "run.sh: $stream of $(basename "$(dirname "$case")")/$(basename "$case") differs" >&2
            failed=1
        fi
    done
done
exit $failed
