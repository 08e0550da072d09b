#!/bin/sh
# SPDX-License-Identifier: MIT
#
# test_install.sh SOURCE BUILD CC CMAKE: what a user of the installed library sees
#
# Installs into an empty prefix, moves it (nothing may remember where it was), and builds every program of examples/ by
# pkg-config against the shared and the static libraries; each must run, and its exit status says whether what it computed is
# right. Another project finds the package by find_package. Checks as well that the man page is there, that the version
# is the same wherever it is written, and that the shared libraries export nothing but the public names.
set -eu

source=$1 build=$2 compiler=$3 cmake=$4
root=$(realpath "$(mktemp -d)")
trap 'rm -rf "$root"' EXIT

"$cmake" --install "$build" --prefix "$root/first" >/dev/null
mv "$root/first" "$root/prefix"
pc=$(dirname "$(find "$root/prefix" -name posenc.pc)")
lib=$(dirname "$pc")
export PKG_CONFIG_PATH="$pc"
export LD_LIBRARY_PATH="$lib"

diff -r "$source/include" "$root/prefix/include"
pages=$(dirname "$(find "$root/prefix" -name README.zh.md)")
for readme in README.md README.zh.md; do
    for page in $(grep -o ']([^):#]*)' "$pages/$readme" | tr -d ']()'); do test -e "$pages/$page"; done
done
example() { # PROGRAM PACKAGES [FILE]: with the shared libraries and with the static ones, to the same output
    name=$(basename "${1%.*}")
    case $1 in
    *.cpp) compile="${CXX:-c++} -std=c++17" ;;
    *) compile="$compiler -std=c17" ;;
    esac
    archives=$(printf "$lib/lib%s.a " $2)
    others=$(pkg-config --print-requires-private $2) # jansson and libzip as shared ones: Debian's libzip-dev brings not what its archive wants
    others=${others:+$(pkg-config --libs $others)}
    $compile -Wall -Wextra -Werror "$1" $(pkg-config --cflags --libs $2) -lm -pthread -o "$root/$name"
    $compile "$1" $(pkg-config --cflags $2) $archives \
        $(pkg-config --static --libs-only-l --libs-only-other posenc | sed 's/-lposenc[a-z_]*//g') $others -lm -o "$root/$name-static"
    "$root/$name" $3 >"$root/$name.shared"
    "$root/$name-static" $3 >"$root/$name.static"
    cmp "$root/$name.shared" "$root/$name.static"
    cat "$root/$name.shared"
}
config=$source/tests/golden/configs/llama31_8b.json
for program in "$source"/examples/*.c "$source"/examples/*.cpp; do
    packages=posenc file=
    if grep -q "<posenc/files.h>" "$program"; then packages="posenc_files posenc" file=$config; fi
    example "$program" "$packages" "$file"
done

# What is in an archive may become a part of somebody's shared library: it is independent of its position. The shared library of
# the same objects names every other that they call.
for name in posenc posenc_files; do
    named=$(objdump -p "$lib/lib$name.so" | sed -n 's/^ *NEEDED */-l:/p')
    "$compiler" -shared -Wl,-z,text,-z,defs -Wl,--whole-archive "$lib/lib$name.a" -Wl,--no-whole-archive -L"$lib" $named -o "$root/plugin.so"
done

cat >"$root/files.c" <<'EOF'
#include <posenc/files.h>
#include <string.h>
int main(void)
{
    posenc_arrays set = {0};
    posenc_error  err;
    return posenc_arrays_read(&set, "missing.npy", &err) == POSENC_ERROR_FILE && strstr(err.message, "missing.npy") ? 0 : 1;
}
EOF
"$compiler" -std=c17 "$root/files.c" $(pkg-config --cflags --libs posenc_files) -o "$root/files"
"$root/files"

mkdir "$root/consumer"
cp "$source/examples/attend.c" "$root/files.c" "$root/consumer"
cat >"$root/consumer/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(consumer C)
find_package(posenc 0.2 REQUIRED COMPONENTS files)
foreach(kind "" _static)
  add_executable(attend${kind} attend.c)
  target_link_libraries(attend${kind} posenc::posenc${kind} m)
  add_executable(files${kind} files.c)
  target_link_libraries(files${kind} posenc::files${kind})
endforeach()
EOF
"$cmake" -S "$root/consumer" -B "$root/consumer/build" -DCMAKE_PREFIX_PATH="$root/prefix" \
    -DCMAKE_C_COMPILER="$compiler" >/dev/null
"$cmake" --build "$root/consumer/build" >/dev/null
sed -i 's/COMPONENTS files/COMPONENTS gpu/' "$root/consumer/CMakeLists.txt"
if "$cmake" -S "$root/consumer" -B "$root/consumer/none" -DCMAKE_PREFIX_PATH="$root/prefix" \
    -DCMAKE_C_COMPILER="$compiler" >/dev/null 2>"$root/none" || ! grep -q "no component 'gpu'" "$root/none"; then
    echo "test_install: a component that does not exist is found, or refused without a reason" >&2
    exit 1
fi
for name in attend attend_static files files_static; do "$root/consumer/build/$name" >/dev/null; done

mkdir "$root/plusplus"
cp "$source/examples/raii.cpp" "$root/plusplus"
cat >"$root/plusplus/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(plusplus CXX)
find_package(posenc 0.2 REQUIRED COMPONENTS files)
foreach(kind "" _static)
  add_executable(raii${kind} raii.cpp)
  target_link_libraries(raii${kind} posenc::posenc${kind} m)
endforeach()
EOF
"$cmake" -S "$root/plusplus" -B "$root/plusplus/build" -DCMAKE_PREFIX_PATH="$root/prefix" >/dev/null
"$cmake" --build "$root/plusplus/build" >/dev/null
for name in raii raii_static; do "$root/plusplus/build/$name" >/dev/null; done

version=$("$root/prefix/bin/posenc" version --json | sed -n 's/.*"version": "\([0-9.]*\)".*/\1/p')
for said in "CITATION.cff:^version: $version\$" "CHANGELOG.md:^## $version " "debian/changelog:^posenc ($version) "; do
    grep -q "${said#*:}" "$source/${said%%:*}" || { echo "test_install: ${said%%:*} does not speak of $version" >&2; exit 1; }
done
# Until it is released neither says a day.
day=$(sed -n "s/^## $version (\([0-9-]*\))\$/\1/p" "$source/CHANGELOG.md")
[ "$day" = "$(sed -n 's/^date-released: //p' "$source/CITATION.cff")" ] ||
    { echo "test_install: CHANGELOG.md and CITATION.cff say different days of $version" >&2; exit 1; }
test -s "$root/prefix/share/man/man1/posenc.1"
for library in "$lib"/libposenc.so "$lib"/libposenc_files.so; do
    if nm -D --defined-only "$library" | awk '$2 ~ /[A-TV-Z]/ && $3 !~ /^posenc_/' | grep .; then
        echo "test_install: $library exports these names, which are not public" >&2
        exit 1
    fi
done
if grep -rlI "$source\|$root/first" "$root/prefix/lib" "$root/prefix/include"; then
    echo "test_install: these installed files remember where they were built" >&2
    exit 1
fi
