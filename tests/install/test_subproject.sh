#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_subproject.sh SOURCE BUILD CC CMAKE: the library as a part of another project, by add_subdirectory and by FetchContent
#
# Each project builds examples/attend.c with the static library and with the shared one; all print the same. Compiled
# without optimisation and with plain kernels, as nobody measures them.
set -eu

source=$(realpath "$1") compiler=$3 cmake=$4
mkdir -p "$2"
build=$(realpath "$2")
unset CFLAGS LDFLAGS CC

for way in add_subdirectory FetchContent; do
    mkdir -p "$build/$way"
    {
        echo 'cmake_minimum_required(VERSION 3.22)'
        echo 'project(consumer C)'
        case $way in
        add_subdirectory) echo "add_subdirectory(\"$source\" posenc)" ;;
        *) echo 'include(FetchContent)'
            echo "FetchContent_Declare(posenc SOURCE_DIR \"$source\")"
            echo 'FetchContent_MakeAvailable(posenc)' ;;
        esac
        for kind in '' _static; do
            echo "add_executable(attend$kind \"$source/examples/attend.c\")"
            echo "target_link_libraries(attend$kind posenc::posenc$kind m)"
        done
    } >"$build/$way/CMakeLists.txt"
    "$cmake" -S "$build/$way" -B "$build/$way/build" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O0 \
        -DPOSENC_FILES=OFF -DPOSENC_ISA=plain >"$build/$way.log"
    "$cmake" --build "$build/$way/build" --target attend attend_static >>"$build/$way.log" || { cat "$build/$way.log"; exit 1; }
    if "$cmake" --build "$build/$way/build" --target help | grep -q '^posenc_tests:'; then
        echo "test_subproject: tests of posenc are built in another project" >&2
        exit 1
    fi
    for kind in '' _static; do "$build/$way/build/attend$kind" >"$build/$way$kind.txt"; done
    cmp "$build/add_subdirectory.txt" "$build/$way.txt"
    cmp "$build/add_subdirectory.txt" "${build}/${way}_static.txt"
done
