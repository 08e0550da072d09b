#!/bin/sh
# SPDX-License-Identifier: MIT
#
# deps.sh [--tests | --all | --platforms | --debian | --docs | --missing | --sources FOLDER PACKAGE...]: installs the Debian packages of tools/packages.txt that are missing, and nothing else
#
# As root directly, else through sudo when that asks for no password. Where neither is allowed it prints the one line
# to run and stops with status 1. The package lists are fetched only when they do not know a package, or when what
# they point to is gone (an old image). With --tests also what `make test` needs; with --all what one test each of `make
# test-all` wants besides, with --platforms compilers for other machines (`make test-platforms`): where these cannot be had, it
# says so and what needs them will be skipped. With --docs also what `make docs` needs, with --debian only what `make test-debian` needs. With --missing it installs
# nothing: it names in one line what the build lacks, or has status 1 if that is nothing. With --sources it unpacks Debian's
# source packages into FOLDER/PACKAGE, by a source list of its own, of the places that the machine's names: that stays as it is.
set -eu

if [ "${1-}" = --sources ]; then
    mkdir -p "$2"
    folder=$(realpath "$2")
    shift 2
    lists=$(mktemp -d)
    trap 'rm -rf "$lists"' EXIT
    mkdir -p "$lists/lists/partial"
    chmod -R go+rX "$lists"
    apt-get indextargets --format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' | grep -v -e -security -e -updates | sort -u >"$lists/sources.list"
    source_of() {
        apt-get -q -o Dir::Etc::sourcelist="$lists/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$lists/lists" \
            -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= "$@"
    }
    for package in "$@"; do
        [ ! -e "$folder/$package" ] || continue
        [ -e "$lists/known" ] || { source_of update && touch "$lists/known"; }
        mkdir -p "$lists/$package"
        (cd "$lists/$package" && source_of source "$package" && mv "$package"-*/ "$folder/$package")
    done
    exit 0
fi

# The packages of the list whose mark is one of these ("-" for none).
marked() {
    sed -e 's/#.*//' -e 's/^\([a-z]\)/- \1/' "$(dirname "$0")/packages.txt" | sed -n "s/^[$1] *//p"
}

wanted=
case ${1-} in
--tests) packages=$(marked '>+-') ;;
--all) packages=$(marked '>+-') wanted=$(marked '?') ;;
--platforms) packages=$(marked '>+-') wanted=$(marked '?*') ;;
--debian) packages=$(marked '%') ;;
--docs) packages=$(marked '>@-') ;;
--missing) packages=$(marked '-') ;;
*) packages=$(marked '>-') ;;
esac

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

missing=$(missing_of $packages)
if [ "${1-}" = --missing ]; then
    [ -n "$missing" ] || exit 1
    case $missing in *" "*" "*) are=are ;; *) are=is ;; esac
    echo "make:$missing $are missing; run: make deps" >&2
    exit 0
fi

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
