#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run.sh SOURCE BUILD CC CMAKE [--update]: what the libraries promise to linkers
#
# 1. Their public types and functions are those of posenc.abi and posenc_files.abi, by libabigail. An intended change is
#    written there with --update (`make abi`), in the same commit.
# 2. A program that was linked with this library runs with one whose options have one member more (made here), and the
#    other way round: it is refused where it sets that member, in a sentence that names the struct.
#
# Both libraries are compiled without optimisation and with plain kernels, for their types alone: a minute of a core. Without
# libabigail (package abigail-tools) the first is left out, and said so (status 77).
set -eu

here=$(dirname "$(realpath "$0")")
source=$(realpath "$1") compiler=$3 cmake=$4
mkdir -p "$2"
build=$(realpath "$2")
unset CFLAGS LDFLAGS CC

built() { # SOURCE FOLDER TARGETS...: compiled there
    from=$1 to=$2
    shift 2
    "$cmake" -S "$from" -B "$to" -G Ninja -DCMAKE_C_COMPILER="$compiler" -DCMAKE_BUILD_TYPE=Debug \
        -DCMAKE_C_FLAGS="-O0 -ffile-prefix-map=$from=." -DPOSENC_ISA=plain -DPOSENC_OPENMP=OFF -DPOSENC_ZIP=OFF -DPOSENC_BUILD_TOOL=OFF -DPOSENC_PYTHON=OFF >"$build/configure.log" ||
        { cat "$build/configure.log"; exit 1; }
    "$cmake" --build "$to" --target "$@" >"$build/build.log" || { cat "$build/build.log"; exit 1; }
}

# ---- one member more ----

newer=$build/newer
mkdir -p "$newer"
for part in CMakeLists.txt README.md README.zh.md cmake include src; do
    rm -rf "$newer/$part.new"
    cp -r "$source/$part" "$newer/$part.new"
    rm -rf "${newer:?}/$part"
    mv "$newer/$part.new" "$newer/$part"
done
sed -i 's/^} posenc_options;$/    int64_t added; \/* by a version to come *\/\n&/' "$newer/include/posenc/posenc.h"
built "$source" "$build/this" posenc_shared posenc_files_shared
built "$newer" "$build/next" posenc_shared

cat >"$build/program.c" <<'END'
#include <posenc/posenc.h>
#include <stdio.h>
#include <string.h>

/* argv[1]: the words of the refusal that is expected; none: there is none. With them the last eight bytes, which only the newer options have, are set. */
int main(int argc, char **argv)
{
    const posenc_dims dims = {.B = 1, .H = 2, .Lq = 4, .Lk = 4, .D = 8};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan = NULL;
    posenc_error      err  = {0};
    if (argc > 1)
        memset((char *)&options + options.size - 8, 1, 8);
    if (posenc_version_number() != POSENC_VERSION_NUMBER || posenc_encoding_create(&e, "rope", NULL, &err))
        return 2;
    const int status = posenc_plan_create(&plan, e, &dims, &options, &err);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    if (argc < 2 ? !status : status == POSENC_ERROR_ARGUMENT && strstr(err.message, argv[1]))
        return 0;
    fprintf(stderr, "status %d: %s\n", status, err.message);
    return 1;
}
END
for side in this next; do
    headers=$source
    [ $side = this ] || headers=$newer
    "$compiler" -std=c17 -I "$headers/include" "$build/program.c" -L "$build/$side" -lposenc -o "$build/program_$side"
    "$compiler" -std=c17 -I "$headers/include" "$source/examples/attend.c" -L "$build/$side" -lposenc -lm -o "$build/attend_$side"
done
for library in this next; do
    LD_LIBRARY_PATH=$build/$library "$build/program_this"
    LD_LIBRARY_PATH=$build/$library "$build/program_next"
    for side in this next; do LD_LIBRARY_PATH=$build/$library "$build/attend_$side" >"$build/$side-on-$library"; done
    cmp "$build/this-on-this" "$build/this-on-$library"
    cmp "$build/this-on-this" "$build/next-on-$library"
done
LD_LIBRARY_PATH=$build/this "$build/program_next" "options has 8 bytes more"
echo "abi: programs and libraries of two versions go together"

# ---- what is stored ----

if ! command -v abidw >/dev/null 2>&1; then
    echo "abi/run.sh: skipped: the description of the libraries needs the package abigail-tools"
    exit 77
fi
for library in posenc posenc_files; do
    soname=$(readelf -d "$build/this/lib$library.so" | sed -n 's/.*soname: \[\(.*\)\].*/\1/p')
    version=$(sed -nE 's/^#define POSENC_VERSION_(MAJOR|MINOR) //p' "$source/include/posenc/posenc.h" | paste -sd.)
    [ "$soname" = "lib$library.so.$version" ] || { echo "abi: the SONAME is $soname" >&2; exit 1; }
    abidw --headers-dir "$source/include" --drop-private-types --no-show-locs --no-corpus-path --no-comp-dir-path --drop-undefined-syms \
        --type-id-style hash --no-elf-needed --no-architecture "$build/this/lib$library.so" >"$build/$library.abi"
    if [ "${5-}" = --update ]; then cp "$build/$library.abi" "$here/$library.abi"; fi
    abidiff "$here/$library.abi" "$build/$library.abi" || {
        echo "abi: lib$library is not as $here/$library.abi says; if that is meant, make abi" >&2
        exit 1
    }
done
