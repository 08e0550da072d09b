#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh SOURCE_DIR BUILD_DIR CMAKE [TEST.c...]: the library for 64-bit ARM, and its kernels' tests under an emulator
#
# Needs Debian's cross compiler (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross) and qemu-user; tools/packages.txt names them and
# `make test-all` installs them. Where they cannot be had the test is skipped (status 77) and says so. The core is built by CMake, with
# all warnings as errors; each test of tests/kernels becomes a static program, with cmocka.h beside this file in cmocka's
# place, and must say that "neon" is what it ran on.
set -eu

source=$(realpath "$1")
mkdir -p "$2"
build=$(realpath "$2")
cmake=$3
shift 3

compiler=aarch64-linux-gnu-gcc
emulator=
for candidate in qemu-aarch64-static qemu-aarch64; do
    if command -v $candidate >/dev/null 2>&1; then
        emulator=$candidate
        break
    fi
done
if ! command -v $compiler >/dev/null 2>&1 || [ -z "$emulator" ]; then
    echo "cross/run.sh: skipped: 64-bit ARM needs the packages gcc-aarch64-linux-gnu, libc6-dev-arm64-cross and qemu-user"
    exit 77
fi

# The tests of this machine may run under other flags (sanitizers); a cross build has its own.
unset CFLAGS LDFLAGS CC
"$cmake" -S "$source" -B "$build" -G Ninja -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
    -DCMAKE_C_COMPILER=$compiler -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS=-Werror -DPOSENC_FILES=OFF \
    -DPOSENC_BUILD_TOOL=OFF -DPOSENC_BUILD_TESTS=OFF >"$build/configure.log" || { cat "$build/configure.log"; exit 1; }
"$cmake" --build "$build" --target posenc_static

# `posenc bench` is not built here, for want of its libraries; that its loops for NEON compile is still worth knowing.
$compiler -std=c17 -O3 -Wall -Wextra -Wno-unused-parameter -Wpedantic -Werror -ffp-contract=off -I "$source/include" -I "$source/src" -c \
    "$source/src/bench/limits_neon.c" -o "$build/limits_neon.o"

[ $# -gt 0 ] || set -- "$source"/tests/kernels/test_*.c
failed=0
for test in "$@"; do
    program=$build/$(basename "$test" .c)
    $compiler -std=c17 -O1 -ffp-contract=off -D_POSIX_C_SOURCE=200809L -I "$source/tests/cross" -I "$source/include" \
        -I "$source/src" -I "$source/tests" -I "$source/tests/kernels" "$test" "$build/libposenc.a" -fopenmp -lm -static \
        -o "$program"
    echo "$(basename "$test" .c):"
    $emulator "$program" || failed=1
done

# That it was NEON that passed, and nothing else.
cat >"$build/which.c" <<'END'
#include <posenc/posenc.h>
#include <stdio.h>
int main(void)
{
    return puts(posenc_isa()) < 0;
}
END
$compiler -std=c17 -I "$source/include" "$build/which.c" "$build/libposenc.a" -fopenmp -lm -static -o "$build/which"
isa=$($emulator "$build/which")
if [ "$isa" != neon ]; then
    echo "cross/run.sh: the best instruction set under $emulator is $isa, not neon" >&2
    failed=1
fi
exit $failed
