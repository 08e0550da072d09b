#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deps.sh [--tests]: installs the Debian packages of tools/packages.txt that are missing, and does nothing else
#
# As root directly, else through sudo when that asks for no password. Where neither is allowed it prints the one line
# to run and stops with status 1. The package lists are fetched only when they do not know a package, or when what
# they point to is gone (an old image). With --tests also those marked by a ?, which one test each wants: where they
# cannot be had, it says so and that test will be skipped.
set -eu

list=$(dirname "$0")/packages.txt
packages=$(sed -e 's/#.*//' -e '/^?/d' "$list")
wanted=
[ "${1-}" != --tests ] || wanted=$(sed -n -e 's/#.*//' -e 's/^?//p' "$list")

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "make deps: this is no Debian or Ubuntu system (no dpkg-query); install the counterparts of:" $packages >&2
    exit 1
fi

# Those of the arguments that are not installed.
missing_of() {
    for package in "$@"; do
        case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || :) in
        *" ok installed") ;;
        *) printf ' %s' "$package" ;;
        esac
    done
}

root=
if [ "$(id -u)" = 0 ]; then
    root=env
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    root="sudo -n env"
fi
apt="$root DEBIAN_FRONTEND=noninteractive apt-get"

install_all() {
    line="install -y --no-install-recommends $*"
    $apt install --simulate --no-install-recommends "$@" >/dev/null 2>&1 || $apt update
    $apt $line || { $apt update && $apt $line; }
}

missing=$(missing_of $packages)
if [ -n "$missing" ] && [ -z "$root" ]; then
    echo "make deps: packages are missing and may not be installed from here; run this and try again:" >&2
    echo "    sudo apt-get install -y --no-install-recommends$missing" >&2
    exit 1
fi
[ -z "$missing" ] || install_all $missing

missing=$(missing_of $wanted)
[ -n "$missing" ] || exit 0
if [ -z "$root" ] || ! install_all $missing; then
    echo "make deps: these cannot be installed from here, so the tests that want them are skipped:$missing" >&2
    echo "    sudo apt-get install -y --no-install-recommends$missing" >&2
fi
