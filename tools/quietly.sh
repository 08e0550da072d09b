#!/bin/sh
# SPDX-License-Identifier: MIT
#
# quietly.sh COMMAND [ARGUMENT]...: runs a build or a test without its lines of progress
#
# Left out are ninja's `[n/m] ...`, CMake's `-- ...`, ctest's lines of tests that start, pass or are skipped (its summary
# names the last again), and verify's cases that are ok. All else is shown as it comes, warnings and failures whole. The
# exit status is the command's.
exec 4>&1
status=$({ { "$@" 3>&- 4>&-; echo $? >&3; } 2>&1 | sed -u -E \
    -e '/^\[[0-9]+\/[0-9]+\] |^ninja: no work to do|^Test project |^-- [A-Z][A-Za-z]+ (mismatch|done|files)/d' \
    -e '/^ok +[a-z0-9_]+ .* (tiled|reference)$/d' \
    -e '/^ *Start +[0-9]+: |^ *[0-9]+\/[0-9]+ Test +#[0-9]+: .*(Passed +|\*\*\*Skipped +)[0-9.]+ sec$/d' >&4; } 3>&1)
exit "$status"
