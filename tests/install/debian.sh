#!/bin/sh
# SPDX-License-Identifier: MIT
#
# debian.sh SOURCE FOLDER [STEP...]: the packages and the README's two commands on a Debian that has nothing else
#
# Needs root, debootstrap, autopkgtest and, once, a mirror: the one that this machine's apt names, or MIRROR. Each step works
# in a copy of the same small system (FOLDER/base, kept), in which only what it says itself is installed, on what SOURCE has
# committed:
#   packages     dpkg-buildpackage with nothing but Build-Depends; lintian
#   install      the packages by apt, used, purged: files and packages are afterwards what they were before
#   autopkgtest  debian/tests against the packages
#   sdist        the Python package from its source distribution, without a network
#   demo, test   `make demo`, `make test` after a clone, where only make and git are
# Without names all of them, in this order; what packages made stays in FOLDER/debs, what each step said in FOLDER/STEP.log.
set -eu

source=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
shift 2
suite=bookworm
[ "$(id -u)" = 0 ] || { echo "debian.sh: only root may change the root directory; run: sudo make test-debian" >&2; exit 2; }

# The mirror of this machine, where that is of the same suite.
mirror() {
    echo "${MIRROR:-$(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' 'Component: main' | sed -n "s/ $suite\$//p" | head -1)}"
}

system() { # NAME: a new copy of the small system, with the sources as a bare repository
    if [ ! -e "$folder/base.done" ]; then
        rm -rf "$folder/base"
        debootstrap --variant=minbase "$suite" "$folder/base" "$(mirror)"
        echo force-unsafe-io >"$folder/base/etc/dpkg/dpkg.cfg.d/unsafe-io" # nothing here outlives a crash
        touch "$folder/base.done"
    fi
    root=$folder/$1
    rm -rf "$root"
    cp -a "$folder/base" "$root"
    git clone --quiet --bare "$source" "$root/root/posenc.git"
    inside 'apt-get -qq update'
}

# In a space of mounts and processes of its own, so that neither outlives it; nothing of this machine's environment.
inside() { # COMMANDS: in $root, as root, in an empty environment
    printf '%s\n' "$1" >"$root/root/step"
    unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' "$root" \
        env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive sh -eux -c 'cd; . ./step' </dev/null
}

step_packages() {
    system packages
    inside '
        apt-get install -y --no-install-recommends git build-essential lintian
        git clone -q posenc.git source && cd source
        apt-get build-dep -y --no-install-recommends ./
        DEB_CFLAGS_APPEND=-Werror dpkg-buildpackage -b -us -uc
        lintian --allow-root --fail-on error,warning ../*.changes'
    rm -rf "$folder/debs"
    mkdir "$folder/debs"
    mv "$root"/root/*.deb "$folder/debs"
}

# Every file with its owner, mode, size and what it holds; not what apt and dpkg write about themselves, and caches.
trace() {
    (cd "$root" && set -- '(' -path ./proc -o -path ./dev -o -path ./root -o -path ./tmp -o -path ./var/cache -o -path ./var/log \
        -o -path ./var/lib/apt -o -path ./var/lib/dpkg ')' -prune -o &&
        { find . "$@" -printf '%u %m %y %p %l\n'; find . "$@" -type f -exec sha256sum {} +; } | sort)
    chroot "$root" dpkg-query -W
}

step_install() {
    system install
    cp -r "$source/debian/tests" "$root/root"
    mkdir "$root/root/debs"
    for name in posenc libposenc0.2 libposenc-dev python3-posenc posenc-doc; do cp "$folder/debs/$name"_*.deb "$root/root/debs"; done
    chmod -R go+rX "$root/root"
    # What packages of others leave behind is not looked for: those that apt would bring are there before.
    inside '
        apt-get install -y --no-install-recommends gcc libc6-dev pkg-config man-db
        apt-get install -y $(apt-get install --simulate ./debs/*.deb | sed -n "s/^Inst \([^ ]*\).*/\1/p" | grep -v posenc)'
    trace >"$folder/before.txt"
    inside '
        apt-get install -y ./debs/*.deb
        for name in compare example python; do AUTOPKGTEST_TMP=$(mktemp -d) sh tests/$name; done
        posenc plot bias alibi -o bias.svg
        posenc explore alibi -o page.html
        gcc -std=c17 /usr/share/doc/posenc/examples/attend.c $(pkg-config --cflags posenc) \
            -Wl,-Bstatic -lposenc -Wl,-Bdynamic $(pkg-config --static --libs posenc | sed s/-lposenc//) -lm -o attend-static
        ./attend-static
        man -P cat posenc | grep "posenc compare"
        apt-get purge -y posenc libposenc0.2 libposenc-dev python3-posenc posenc-doc'
    trace >"$folder/after.txt"
    diff "$folder/before.txt" "$folder/after.txt"
}

step_autopkgtest() {
    system autopkgtest
    rm -rf "$folder/source" "$folder/autopkgtest.out"
    git clone --quiet "$source" "$folder/source"
    unshare --mount sh -c 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec "$@"' "$root" \
        autopkgtest --output-dir "$folder/autopkgtest.out" "$folder"/debs/[!.]*.deb "$folder/source" -- chroot "$root"
}

# The machine's pip fetches what the build asks for, since an index and its certificates are matters of the machine.
step_sdist() {
    system sdist
    python3 -m pip download --quiet --dest "$root/root/wheels" --only-binary=:all: --python-version 3.11 build scikit-build-core cmake ninja numpy
    inside '
        apt-get install -y --no-install-recommends git python3-venv python3-dev gcc pkg-config libjansson-dev
        export PIP_NO_INDEX=1 PIP_FIND_LINKS=/root/wheels
        git clone -q posenc.git source
        python3 -m venv bare
        bare/bin/pip install -q build
        bare/bin/python -m build --sdist --outdir dist source
        bare/bin/pip install dist/posenc-*.tar.gz
        PATH=$PWD/bare/bin:$PATH AUTOPKGTEST_TMP=/ sh source/debian/tests/python'
}

readme() { # TARGET
    inside "
        apt-get install -y --no-install-recommends make git
        git clone -q posenc.git
        cd posenc
        make $1"
}

step_demo() {
    system demo
    readme demo
    grep -q '</html>' "$root/root/posenc/build/demo/report.html"
}

step_test() {
    system test
    readme test
}

for step in ${*:-packages install autopkgtest sdist demo test}; do
    set +e # a condition would take -e from what it calls
    (set -e; "step_$step") >"$folder/$step.log" 2>&1
    status=$?
    set -e
    if [ $status != 0 ]; then
        tail -20 "$folder/$step.log" >&2
        echo "debian.sh: $step failed, see $folder/$step.log" >&2
        exit 1
    fi
    echo "debian.sh: $step passed"
    rm -rf "${folder:?}/$step"
done
