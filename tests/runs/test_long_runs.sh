#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_long_runs.sh SOURCE POSENC: the tool interrupted, killed and out of space, then gone on with
set -eu
source=$1 posenc=$2
. "$source/tests/runs/setup.sh"

options="compare -e nope,rope,alibi --tasks posid --steps 30 --checkpoint 0 --rates 2e-3 --stability none"

compare() {
    "$posenc" $options "$@" text
}

compare --threads 1 -o peace >/dev/null 2>err || fail "it does not run"
[ ! -e peace.partial ] || fail "peace.partial is left"

# One worker or two: the same but for times.
compare --threads 2 -o two >/dev/null 2>err || fail "it does not run with two threads"
same peace two

# SIGINT, and SIGTERM and SIGUSR1 of batch systems: what is finished is printed and written, and gone on with.
for signal in INT TERM USR1; do
    rm -rf out out.partial err
    "$posenc" $options --threads 1 -o out text >printed 2>err &
    pid=$!
    await grep -q "^compare: 1 of" err # it is kept before it is told
    kill -$signal $pid
    status=0
    wait $pid || status=$?
    [ $status = 130 ] || fail "SIG$signal: exit status $status instead of 130"
    grep -q "^nope" printed || fail "SIG$signal: what was finished is not printed"
    grep -q "resume" err || fail "SIG$signal: it does not name --resume"
    grep -q "^posenc: interrupted: " err || fail "SIG$signal: it is not acknowledged"
    head -n 1 printed | grep -q "^Interrupted: [0-9]* of 6 runs are missing" ||
        fail "SIG$signal: the first line does not say that runs are missing"
    [ -s out/report.html ] || fail "SIG$signal: what was finished is not written"
    grep -q "<p class=FAILED>Interrupted: [0-9]* of 6 runs are missing" out/report.html ||
        fail "SIG$signal: the report does not say that runs are missing"
    expect 2 "posenc: error: .*--resume" compare -o out
    expect 0 "of 6 runs are finished already" compare -o out --resume
    same peace out
    [ ! -e out.partial ] || fail "out.partial is left"
done

# kill -9.
rm -rf out
"$posenc" $options -o out text >/dev/null 2>&1 & # not by the function: it is this process that is killed
pid=$!
await [ -e out.partial/lock ]
sleep 1
kill -9 $pid 2>/dev/null || :
wait $pid 2>/dev/null || :
compare -o out --resume >/dev/null 2>err || fail "after kill -9 it does not go on"
same peace out

# The same while learning rates are tried, and after: 6 trials, then 3 runs on the text and 3 on the task.
rm -rf out
compare --rates 1e-3,4e-3 --stability brief -o tried >/dev/null 2>err || fail "it does not try learning rates"
for runs in 2 8; do
    "$posenc" $options --rates 1e-3,4e-3 --stability brief -o out text >/dev/null 2>err &
    pid=$!
    await grep -q "^compare: $runs of 12" err
    kill -9 $pid 2>/dev/null || :
    wait $pid 2>/dev/null || :
    expect 0 "of 12 runs are finished already" compare --rates 1e-3,4e-3 --stability brief -o out --resume
    same tried out
    rm -rf out
done

# A disk that is full: a tmpfs of 3 MB where one can be mounted (two checkpoints of 2.3 MB do not fit), else a limit on
# the size of files. The error names the place, and what was kept is gone on with.
rm -rf out
cat >full.sh <<'END'
mount -t tmpfs -o size=3m none "$2" 2>/dev/null || exit 77
"$1" $3 --threads 1 -o "$2/out" text >out.txt 2>err
status=$?
cp -r "$2/out.partial" saved
exit $status
END
mkdir disk
status=0
unshare -rm sh full.sh "$posenc" disk "$options" 2>/dev/null || status=$?
if [ $status = 1 ] && [ -d saved ]; then
    grep -q "posenc: error: .*out.partial.*No space left" err || fail "a full disk is not named"
    [ -z "$(ls saved | grep tmp)" ] || fail "a half-written file is left on the full disk"
    mv saved out.partial
    echo "a full disk: seen on a tmpfs"
else
    [ $status = 77 ] || [ ! -d saved ] || fail "on a full disk: exit status $status instead of 1"
    (ulimit -f 2000; trap '' XFSZ; compare -o out >/dev/null 2>err) && fail "a file that cannot grow is no error"
    grep -q "posenc: error: .*out.partial" err || fail "a file that cannot grow is not named"
    echo "a full disk: as a limit on file sizes, for want of a tmpfs"
fi
compare -o out --resume >/dev/null 2>err || fail "after a full disk it does not go on"
same peace out
