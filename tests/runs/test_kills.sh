#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_kills.sh SOURCE POSENC [TIMES]: compare killed so many times (50) at moments drawn at random, and gone on with
#
# SIGKILL leaves a process no time for anything. However often that happens, and whatever it was doing - reading,
# training, saving a run, writing the result -, the same call with --resume ends with the numbers of the undisturbed one.
set -eu
source=$1 posenc=$2 times=${3:-50}
. "$source/tests/runs/setup.sh"

options="compare -e nope,rope,alibi --tasks posid --steps 30 --checkpoint 0 --rates 2e-3 --stability none --threads 2"

"$posenc" $options -o peace text >/dev/null 2>err || fail "it does not run"

# Two processors or one, busy or not: moments are drawn from the time that a call takes here.
start=$(date +%s)
"$posenc" $options -o measured text >/dev/null 2>err
most=$(($(date +%s) - start + 1))

killed=0 ended=0 draw=22
while [ $killed -lt "$times" ]; do
    draw=$(((draw * 1103515245 + 12345) % 2147483648))
    "$posenc" $options -o out --resume text >/dev/null 2>err &
    pid=$!
    sleep "$(awk "BEGIN {print $most * $draw / 2147483648}")"
    if kill -9 $pid 2>/dev/null; then
        killed=$((killed + 1))
    fi
    status=0
    wait $pid 2>/dev/null || status=$?
    if [ $status = 0 ]; then # it was done before: look, and begin again
        same peace out
        ended=$((ended + 1))
        rm -rf out out.partial out.tmp.*
    elif [ $status != 137 ]; then
        fail "exit status $status after $killed kills"
    fi
done
"$posenc" $options -o out --resume text >/dev/null 2>err || fail "after $killed kills it does not go on"
same peace out
[ ! -e out.partial ] || fail "out.partial is left"
set -- out.tmp.*
[ ! -e "$1" ] || fail "$1 is left"
echo "killed $killed times, ended $ended times in between: the same numbers"
