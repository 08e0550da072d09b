#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deps.sh: installs the Debian packages of tools/packages.txt that are missing, and does nothing else
#
# As root directly, else through sudo when that asks for no password. Where neither is allowed it prints the one line
# to run and stops with status 1. The package lists are fetched only when they do not know a package, or when what
# they point to is gone (an old image).
set -eu

list=$(dirname "$0")/packages.txt
packages=$(sed 's/#.*//' "$list")

if ! command -v dpkg-query >/dev/null 2>&1; then
    echo "make deps: this is no Debian or Ubuntu system (no dpkg-query); install the counterparts of:" $packages >&2
    exit 1
fi

missing=
for package in $packages; do
    case $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || :) in
    *" ok installed") ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

line="apt-get install -y --no-install-recommends$missing"
if [ "$(id -u)" = 0 ]; then
    root=env
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
    root="sudo -n env"
else
    echo "make deps: packages are missing and may not be installed from here; run this and try again:" >&2
    echo "    sudo $line" >&2
    exit 1
fi

apt="$root DEBIAN_FRONTEND=noninteractive apt-get"
$apt install --simulate --no-install-recommends $missing >/dev/null 2>&1 || $apt update
$root DEBIAN_FRONTEND=noninteractive $line || { $apt update && $root DEBIAN_FRONTEND=noninteractive $line; }
