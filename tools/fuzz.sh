#!/bin/sh
# SPDX-License-Identifier: MIT
#
# [RUNS=N] fuzz.sh [SECONDS] [NAME]...: builds the fuzzers of tests/fuzz and runs each, or those named, for so long
# (20), or until it has run N inputs, however long that takes
#
# As many at a time as there are processors (JOBS). Each begins with tests/fuzz/corpus/NAME, if there is one (header: with that of safetensors), and with what earlier runs have found worth keeping, in
# build/fuzz/corpus/NAME. A line for each says how many inputs it has run, and in what time of a processor. An input that breaks something is kept in
# build/fuzz/found, the command that repeats it is printed, and the status is 1. Without clang there is nothing to
# build: it says so, and the status is 0.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-20}
runs=${RUNS:-}
[ -z "$runs" ] || seconds=0
[ $# -eq 0 ] || shift
all="api expression positions resume spec verify arrays config csv gguf header manifest safetensors"

if ! command -v clang >/dev/null 2>&1; then
    echo "make fuzz: clang is missing, so nothing was fuzzed (tools/deps.sh --all installs it)"
    exit 0
fi
cmake --preset fuzz >/dev/null
tools/quietly.sh cmake --build --preset fuzz

mkdir -p build/fuzz/found
one() { # NAME
    name=$1
    program=build/fuzz/tests/fuzz/fuzz_$name
    kept=build/fuzz/corpus/$name
    seeds=tests/fuzz/corpus/$name
    mkdir -p "$kept"
    [ "$name" != header ] || seeds=tests/fuzz/corpus/safetensors
    [ -d "$seeds" ] || seeds=
    log=build/fuzz/$name.log
    # a slow machine is no fault: an input has a minute, and memory only what a fault would take. Freed memory waits
    # in a small queue, which stays in the cache; how often each branch was seen is not counted for every input.
    if ! (ASAN_OPTIONS=quarantine_size_mb=16 "$program" -runs="${runs:--1}" -max_total_time="$seconds" -max_len=4096 \
        -timeout=60 -rss_limit_mb=3000 -entropic=0 -print_final_stats=1 -artifact_prefix=build/fuzz/found/"$name"- \
        "$kept" $seeds >"$log" 2>&1 && times >"$log.times"); then
        grep -aE 'ERROR|SUMMARY|runtime error|is wrong|without a sentence' "$log" >&2 || tail -20 "$log" >&2
        found=$(sed -n 's/.*Test unit written to //p' "$log")
        echo "fuzz_$name: to repeat: $program $found" >&2
        return 1
    fi
    echo "fuzz_$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in" \
        "$(tail -n 1 "$log.times" | cut -d ' ' -f 1), nothing found"
}

failed=0 running=
for name in ${*:-$all}; do
    one "$name" &
    running="$running $!"
    set -- $running
    [ $# -lt "${JOBS:-$(nproc)}" ] || { wait "$1" || failed=1; shift; running=$*; }
done
for pid in $running; do wait "$pid" || failed=1; done
exit $failed
