#!/bin/sh
# SPDX-License-Identifier: MIT
#
# kjv_text.sh FILE: writes the King James Bible as plain text, one verse per line, labels stripped
#
# The text (public domain) comes from Debian's package bible-kjv. `bible -f` prints a verse per line with its label in
# front ("Ge1:1 In the beginning ..."). The numbers in docs/experiments.md were measured on exactly 4 137 850 bytes, so
# another size is said aloud; far fewer bytes mean that something broke. The file appears whole or not at all.
set -eu

if [ $# != 1 ]; then
    echo "usage: kjv_text.sh FILE" >&2
    exit 2
fi
expected=4137850

if ! command -v bible >/dev/null 2>&1; then
    echo "kjv_text.sh: the program \`bible\` is missing; install the Debian package bible-kjv" >&2
    exit 1
fi
temporary=$1.tmp.$$
trap 'rm -f "$temporary"' EXIT
# From the root directory: bible would prefer a file bible.data of the current one.
(cd / && bible -f 'Genesis1:1-Revelation22:21' </dev/null) | LC_ALL=C sed 's/^[^ ]* //' >"$temporary"
size=$(wc -c <"$temporary")
if [ "$size" -lt 4000000 ]; then
    echo "kjv_text.sh: \`bible\` gave only $size bytes of $expected; reinstall bible-kjv and bible-kjv-text" >&2
    exit 1
elif [ "$size" -ne $expected ]; then
    echo "kjv_text.sh: the text has $size bytes instead of $expected; results will differ a little" >&2
fi
mv "$temporary" "$1"
