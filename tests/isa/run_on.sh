#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run_on.sh POSENC ISA PROGRAM [ARGUMENT]...: runs a test on one instruction set
#
# The tool itself says whether this processor has it; where not, the test is skipped (status 77), not passed.
set -eu
tool=$1
POSENC_ISA=$2
export POSENC_ISA
shift 2
if ! "$tool" --version >/dev/null 2>&1; then
    unset POSENC_ISA
    "$tool" --version
    echo "run_on.sh: this processor does not have that instruction set; the test is skipped"
    exit 77
fi
exec "$@"
