#!/bin/sh
# SPDX-License-Identifier: MIT
#
# platforms.sh [NAME...]: builds the library in each configuration of the table below, runs its tests, prints what passed
#
# Without names all of them, in build/platforms/NAME; one whose compiler is not here is named as missing. A row of `core`
# builds the core and its tests, one of `tool` the files library and the tool besides, which then verifies the reference cases.
# gcc 12's own vectoriser for 64-bit ARM stops with an internal error in two test programs, and is off there. What tests and
# files need on other machines is compiled from Debian's source packages (tools/deps.sh --sources). In each configuration a
# warning is a fault, and the program tests/platforms/results.c writes what every encoding computes, with the plain kernels and
# with the best ones: by these numbers a row is compared with the first one, "the same" meaning each bit.
set -eu

source=$(dirname "$(dirname "$(realpath "$0")")")
all=$source/build/platforms
jobs=${JOBS:-2}
export WINEPREFIX="$all/wine" WINEDEBUG=-all
first=gcc
floors='^(base|kernels|engine|encodings|api|memory|fuzz|examples)/|^(room|executors)-'

# name | compiler | machine | what | options of CMake
table() {
    sed 's/ *| */|/g' <<'END'
gcc          | gcc                          | here    | tool |
clang        | clang                        | here    | tool |
static       | gcc                          | here    | core | -DBUILD_SHARED_LIBS=OFF
shared       | gcc                          | here    | core | -DBUILD_SHARED_LIBS=ON
lto          | gcc                          | here    | core | -DCMAKE_INTERPROCEDURAL_OPTIMIZATION=ON
small        | gcc                          | here    | core | -DCMAKE_BUILD_TYPE=MinSizeRel
plain        | gcc                          | here    | core | -DPOSENC_ISA=plain
no-openmp    | gcc                          | here    | core | -DPOSENC_OPENMP=OFF
no-files     | gcc                          | here    | core | -DPOSENC_FILES=OFF
musl         | musl-gcc                     | musl    | tool | -DPOSENC_OPENMP=OFF -DPOSENC_ISA=plain
arm32        | arm-linux-gnueabihf-gcc      | arm     | tool | -DPOSENC_OPENMP=OFF
arm64        | aarch64-linux-gnu-gcc        | aarch64 | tool | -DPOSENC_OPENMP=OFF -DCMAKE_C_FLAGS=-fno-tree-vectorize
windows      | x86_64-w64-mingw32-gcc-posix | windows | core | -DPOSENC_FILES=OFF -DPOSENC_OPENMP=OFF -DPOSENC_ISA=plain -DCMAKE_C_FLAGS=-Werror
windows-avx  | x86_64-w64-mingw32-gcc-posix | windows | core | -DPOSENC_FILES=OFF -DPOSENC_OPENMP=OFF
END
}

# machine MACHINE COMPILER: what CMake has to know of it, a line each
machine() {
    [ "$1" = here ] && return
    printf '%s\n' -DCMAKE_CXX_COMPILER= "-DCMAKE_EXE_LINKER_FLAGS=-static"
    case $1 in
    musl) printf '%s\n' -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=x86_64 ;;
    windows) printf '%s\n' -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_SYSTEM_PROCESSOR=x86_64 -DCMAKE_CROSSCOMPILING_EMULATOR="$(emulator windows)" ;;
    *) printf '%s\n' -DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$1" "-DCMAKE_CROSSCOMPILING_EMULATOR=$(emulator "$1")" ;;
    esac
}

emulator() {
    case $1 in
    here | musl) ;;
    windows) command -v wine64 || command -v wine || echo /usr/lib/wine/wine64 ;;
    *) command -v "qemu-$1" || command -v "qemu-$1-static" ;;
    esac
}

# Every option of a configuration, a line each.
options() { # COMPILER MACHINE OPTIONS
    printf '%s\n' -G Ninja "-DCMAKE_C_COMPILER=$1" -DCMAKE_BUILD_TYPE=Release -DPOSENC_BUILD_TESTS=ON -DPOSENC_PYTHON=OFF
    machine "$2"
    printf "%s\n" $3
}

configure() { # FOLDER SOURCE, options on lines of standard input
    to=$1 from=$2
    set --
    while IFS= read -r option; do set -- "$@" "$option"; done
    cmake -S "$from" -B "$to" "$@" >"$to.log" 2>&1 </dev/null
}

# Debian's source package | what CMake has to know of it
sources() {
    sed 's/ *| */|/g' <<'END'
cmocka  | -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF
jansson | -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF -DJANSSON_WITHOUT_TESTS=ON
libzip  | -DENABLE_OPENSSL=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
END
}

# What tests and files need, for another machine, in build/platforms/for-MACHINE
foreign() { # MACHINE COMPILER PACKAGE...
    prefix=$all/for-$1
    machine=$1 compiler=$2
    shift 2
    "$source/tools/deps.sh" --sources "$all/sources" "$@" >"$prefix.log" 2>&1 || return
    for package in "$@"; do
        [ ! -e "$prefix/$package.done" ] || continue
        if [ "$package" = zlib ]; then # has no CMakeLists.txt that Debian's sources fit
            ar=$(command -v "${compiler%gcc}ar" || echo ar)
            rm -rf "$prefix/zlib" && cp -r "$all/sources/zlib" "$prefix/zlib" &&
                (cd "$prefix/zlib" && CC=$compiler AR=$ar CFLAGS=-fPIC ./configure --static --prefix="$prefix" && make && make install) >>"$prefix.log" 2>&1 &&
                touch "$prefix/zlib.done" || return
            continue
        fi
        { printf '%s\n' -G Ninja "-DCMAKE_C_COMPILER=$compiler" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_POLICY_VERSION_MINIMUM=3.5 \
            "-DCMAKE_INSTALL_PREFIX=$prefix" "-DCMAKE_PREFIX_PATH=$prefix" -DCMAKE_INSTALL_LIBDIR=lib $(sources | sed -n "s/^$package|//p")
            machine "$machine"; } | configure "$prefix/$package" "$all/sources/$package" &&
            cmake --build "$prefix/$package" >>"$prefix.log" 2>&1 && cmake --install "$prefix/$package" >>"$prefix.log" 2>&1 || return
        touch "$prefix/$package.done"
    done
    rm -f "$prefix"/lib/*.so* "$prefix"/lib/libcmocka.dll.a # what is linked is static
    [ ! -e "$prefix/lib/libcmocka-static.a" ] || mv "$prefix/lib/libcmocka-static.a" "$prefix/lib/libcmocka.a"
    [ ! -e "$prefix/lib/pkgconfig/libzip.pc" ] || sed -i 's/^Libs:.*/& -lz/' "$prefix/lib/pkgconfig/libzip.pc"
}

kilobytes() { # FILES: of the one that is there
    for file in "$@"; do [ -e "$file" ] && { echo $(($(wc -c <"$file") / 1024)); return; }; done
    echo -
}

# How far two lists of numbers lie apart: relative to 1 and to what they are.
apart() {
    if [ ! -s "$1" ] || [ ! -s "$2" ]; then echo '?'; elif cmp -s "$1" "$2"; then echo 'the same'; else
        paste -d ' ' "$1" "$2" | awk '
            NF % 2 || $1 != $(NF / 2 + 1) { bad = 1; exit }
            { for (i = 2; i <= NF / 2; i++) {
                x = $i; y = $(i + NF / 2); d = x - y; d = d < 0 ? -d : d; s = x < 0 ? -x : x; d /= s > 1 ? s : 1
                if (x != y && d > most) most = d
                if (x != y && !(d >= 0)) bad = 1 } }
            END { if (bad) print "differs"; else printf "%.1e\n", most }'
    fi
}

row() { # NAME COMPILER MACHINE WHAT OPTIONS
    name=$1 compiler=$2 machine=$3 what=$4 options=$5
    build=$all/$name
    if ! command -v "$compiler" >/dev/null 2>&1 || { [ "$machine" != here ] && [ "$machine" != musl ] && [ -z "$(emulator "$machine")" ]; }; then
        echo "| $name | missing: $compiler, or what runs its programs (tools/packages.txt) |"
        return
    fi
    mkdir -p "$build"
    if [ "$machine" != here ]; then
        mkdir -p "$all/for-$machine"
        foreign "$machine" "$compiler" cmocka $([ "$what" = core ] || echo jansson zlib libzip) ||
            { echo "| $name | missing: a library for it, see $all/for-$machine.log |"; return; }
        export PKG_CONFIG_LIBDIR="$all/for-$machine/lib/pkgconfig"
    else
        unset PKG_CONFIG_LIBDIR
    fi
    [ "$what" = tool ] || options="-DPOSENC_BUILD_TOOL=OFF $options"
    targets=posenc_tests
    [ "$what" = tool ] && targets="all posenc_tests"
    if ! options "$compiler" "$machine" "$options" | configure "$build" "$source" ||
        ! cmake --build "$build" -j "$jobs" --target posenc_static posenc_shared $targets results -- -k 0 >"$build/build.log" 2>&1; then
        echo "| $name | does not build: $build.log, $build/build.log |"
        failed=1
        return
    fi
    if grep 'warning:' "$build/build.log"; then failed=1; fi
    begun=$(date +%s)
    OMP_WAIT_POLICY=passive ctest --test-dir "$build" -R "$floors" -LE "$([ "$machine" = arm ] && echo '^(slow|long)$' || echo '^long$')" -j "$jobs" --output-on-failure >"$build/tests.log" 2>&1 || :
    seconds=$(($(date +%s) - begun))
    run=$(sed -n 's/.* tests failed out of \([0-9]*\)$/\1/p' "$build/tests.log")
    bad=$(sed -n 's/.*, \([0-9]*\) tests failed out of .*/\1/p' "$build/tests.log")
    [ "${bad:-1}" = 0 ] || failed=1
    program=$build/tests/results
    [ -e "$program.exe" ] && program=$program.exe
    for isa in plain ''; do
        POSENC_ISA=$isa $(emulator "$machine") "$program" 2>/dev/null | tr -d '\r' >"$build/results-${isa:-best}.txt" || :
    done
    cases=-
    if [ "$what" = tool ]; then
        POSENC_ISA=plain $(emulator "$machine") "$build/posenc" verify --json "$source/tests/golden" >"$build/verify.json" && cases=pass || { cases=fail; failed=1; }
    fi
    echo "| $name | ${run:-0} | $((${run:-0} - ${bad:-0})) | $seconds | $(apart "$all/$first/results-plain.txt" "$build/results-plain.txt")" \
        "| $(apart "$all/$first/results-best.txt" "$build/results-best.txt") | $cases" \
        "| $(kilobytes "$build/libposenc.a") | $(kilobytes "$build/libposenc.so" "$build/libposenc.dll") |"
}

failed=0
mkdir -p "$all"
echo '| configuration | tests | passed | seconds | plain kernels | best kernels | reference cases | .a KiB | .so KiB |'
echo '|---|---|---|---|---|---|---|---|---|'
names="${*:-$(table | cut -d'|' -f1)}"
for wanted in $names; do
    line=$(table | grep "^$wanted|") || { echo "platforms.sh: $wanted is not one of:" $(table | cut -d'|' -f1) >&2; exit 2; }
    IFS='|' read -r name compiler machine what options <<END
$line
END
    row "$name" "$compiler" "$machine" "$what" "$options"
done
exit $failed
