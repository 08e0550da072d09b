#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_mpi.sh SOURCE POSENC: comparisons shared by two and four processes, and by processes that are killed
set -eu
source=$1 posenc=$2
. "$source/tests/runs/setup.sh"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # in a container

options="compare -e nope,rope,alibi --tasks posid --seeds 2 --steps 10 --checkpoint 0 --rates 2e-3 --stability none"

# ranks N OPTION...
ranks() {
    n=$1
    shift
    mpirun --oversubscribe -n "$n" "$posenc" $options "$@"
}

"$posenc" $options -o alone text >alone.txt 2>err || fail "it does not run without mpirun"
for n in 2 4; do
    ranks $n -o out$n text >printed 2>err || fail "it does not run with $n processes"
    same alone out$n
    [ "$(grep -c '^nope' printed)" = "$(grep -c '^nope' alone.txt)" ] || fail "$n processes do not print the tables of one"
    [ "$(sed -n 's/^compare: \([0-9]*\) of 12:.*/\1/p' err)" = "$(seq 12)" ] || fail "$n processes miscount the runs"
    [ ! -e out$n.partial ] || fail "out$n.partial is left"
done
# Learning rates: every process has those that process 0 chooses.
"$posenc" $options --rates 1e-4,4e-3 --stability full -o alone-rates text >/dev/null 2>err || fail "it does not try rates"
ranks 4 --rates 1e-4,4e-3 --stability full -o rates text >/dev/null 2>err || fail "4 processes do not try rates"
same alone-rates rates

# By a pipe that is filled late: mpirun 4.1 may crash where its own standard input is a file (docs/slurm.md).
{ sleep 2; cat text; } | ranks 2 -o piped - >printed 2>err || fail "it does not share standard input"
"$source/tests/runs/same_numbers.py" piped piped || fail "nothing was written"
grep -q '"name": "standard input"' piped/results.json || fail "standard input is not named"

# What one process refuses is said once, and all of them end.
expect 2 "nosuch: it cannot be opened" ranks 2 -o bad nosuch
[ "$(grep -c 'posenc: error' err)" = 1 ] || fail "more than one process speaks"
expect 2 "unknown encoding" ranks 2 -o bad -e nosuch text

# One process is killed, the first or another: the rest is kept, and the next start finishes it, with fewer processes.
for which in 1 3; do
    rm -rf out out.partial err
    mpirun --oversubscribe -n 4 "$posenc" $options -o out text >/dev/null 2>err &
    pid=$!
    await grep -q "^compare: 1 of" err
    kill -9 "$(ps -o pid= --ppid $pid | sed -n ${which}p)"
    wait $pid && fail "mpirun does not notice that a process was killed"
    ls out.partial/*.npz >/dev/null || fail "what was finished is not kept"
    [ ! -e out ] || fail "a result is there that nobody finished"
    ranks 2 --resume -o out text >/dev/null 2>err || fail "after a kill it does not go on"
    grep -q "of 12 runs are finished already" err || fail "nothing was taken over"
    same alone out
done

# A batch system's warning, which mpirun passes on.
rm -rf out out.partial err
mpirun --oversubscribe -n 2 "$posenc" $options -o out text >/dev/null 2>err &
pid=$!
await grep -q "^compare: 1 of" err
kill -USR1 $pid
status=0
wait $pid || status=$?
[ $status = 130 ] || fail "SIGUSR1 to mpirun: exit status $status instead of 130"
ranks 2 --resume -o out text >/dev/null 2>err || fail "after SIGUSR1 it does not go on"
same alone out
