#!/bin/sh
# SPDX-License-Identifier: MIT
#
# validation_texts.sh DIR: three texts that are not the Bible, made from Debian packages: python.txt, chinese.txt, logs.txt
#
# Source code: the modules of Python's standard library. Chinese: the manual pages of manpages-zh without their troff
# requests. Logs: what servers wrote (the samples that fail2ban is tested with) and what apt's resolver says while it
# plans the installation of large packages on a machine that has none. Nothing is installed; packages are downloaded and
# unpacked beside the texts.
#
# A comparison holds out the last tenth of a text, so that every tenth must be like the others: files come in the order
# of their MD5 sums, and parts of logs in turns. The texts follow the packages of the release: docs/experiments.md,
# section 21, has the sizes of the ones that were measured.
set -eu

if [ $# != 1 ]; then
    echo "usage: validation_texts.sh DIR" >&2
    exit 2
fi
most=4000000 # bytes of a text
parts=40     # of each log
large="gnome kde-full xfce4 lxqt texlive-full octave-doc gimp-plugin-registry r-recommended science-physics science-chemistry
    education-desktop-other games-strategy multimedia-video med-imaging debian-games"

mkdir -p "$1"
cd "$1"
folder=$PWD/unpacked.$$
mkdir "$folder"
trap 'rm -rf "$folder"' EXIT
python=libpython$(python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')-stdlib

(cd "$folder" && apt-get -q download "$python" manpages-zh fail2ban >/dev/null 2>&1) || {
    echo "validation_texts.sh: apt-get cannot download $python, manpages-zh and fail2ban; try apt-get update" >&2
    exit 1
}
for package in "$folder"/*.deb; do
    dpkg-deb -x "$package" "$folder"
done

# shuffled FOLDER PATTERN: its files of such names in the order of their MD5 sums, a fixed shuffle.
shuffled() {
    find "$1" -name "$2" -type f -exec md5sum {} + | LC_ALL=C sort | cut -c 35-
}

# keep NAME: the first lines of standard input become the text, which appears whole or not at all.
keep() {
    cat >"$folder/all"
    head -c $most "$folder/all" | sed '$d' >"$folder/$1"
    if [ "$(wc -c <"$folder/$1")" -lt 2000000 ]; then
        echo "validation_texts.sh: $1 has less than 2 MB; the packages of this release have changed" >&2
        exit 1
    fi
    mv "$folder/$1" "$1"
}

shuffled "$folder/usr/lib" '*.py' | xargs cat | keep python.txt

shuffled "$folder/usr/share/man/zh_CN" '*.gz' | xargs zcat |
    sed -e "/^[.']/d" -e 's/\\f[BIPRC]//g' -e 's/\\-/-/g' -e 's/\\[&,/]//g' | keep chinese.txt

mkdir "$folder/logs"
: >"$folder/status" # what this machine has installed does not change the text
find "$folder" -path '*/tests/files/logs/*' -type f -exec cat {} + | grep -v '^#' | grep . >"$folder/logs/servers"
for package in $large; do
    apt-get -s -o Dir::State::status="$folder/status" -o Debug::pkgDepCache::Marker=1 -o Debug::pkgDepCache::AutoInstall=1 install "$package" 2>&1 |
        grep -E '^(Inst|Conf) |MarkInstall|Installing ' >"$folder/logs/$package" || :
done
for log in "$folder"/logs/*; do
    split -n l/$parts -d -a 2 "$log" "$log.part."
done
for part in $(seq -w 0 $((parts - 1))); do
    cat "$folder"/logs/*.part."$part"
done | keep logs.txt
