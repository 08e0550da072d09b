# SPDX-License-Identifier: MIT
#
# setup.sh: what the scripts beside it share; sourced with $source set to the tree
#
# They run in a folder of their own with a small text, and compare results by same_numbers.py.
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
seq 30000 >text

fail() {
    echo "$(basename "$0"): $*" >&2
    cat err 2>/dev/null >&2 || :
    exit 1
}

# same DIR DIR
same() {
    "$source/tests/runs/same_numbers.py" "$1" "$2" || fail "$1 and $2 differ"
}

# expect STATUS WORDS COMMAND...: its exit status, and words on its standard error.
expect() {
    want=$1 words=$2
    shift 2
    status=0
    "$@" >printed 2>err || status=$?
    [ $status = "$want" ] || fail "exit status $status instead of $want: $*"
    grep -q -e "$words" err || fail "does not say \"$words\": $*"
}

# await COMMAND...: until it succeeds, or a minute has passed.
await() {
    n=0
    until "$@" 2>/dev/null; do
        n=$((n + 1))
        [ $n -lt 1200 ] || fail "did not come: $*"
        sleep 0.05
    done
}
