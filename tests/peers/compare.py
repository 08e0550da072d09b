#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py POSENC DIR...: does `posenc inspect --json` say of each file what its folder's expected.json says?

Texts, whole numbers and lists of layers and warnings must be equal, other numbers within 1e-12 of the expected one. A
member that is null may be left out, and further members are allowed.
"""
import json
import os
import subprocess
import sys


def differences(got, want, at=""):
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return [f"{at or 'it'} is {got!r}"]
        return [d for key in want for d in differences(got.get(key), want[key], f"{at}.{key}" if at else key)]
    if isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            return [f"{at} is {got!r} instead of {want!r}"]
        return [d for i, pair in enumerate(zip(got, want)) for d in differences(*pair, f"{at}[{i}]")]
    if isinstance(want, float) and isinstance(got, (int, float)) and not isinstance(got, bool):
        return [] if abs(got - want) <= 1e-12 * abs(want) else [f"{at} is {got!r} instead of {want!r}"]
    return [] if got == want and isinstance(got, bool) == isinstance(want, bool) else [f"{at} is {got!r} instead of {want!r}"]


def check(posenc, path, want):
    ran = subprocess.run([posenc, "inspect", path, "--json"], capture_output=True, text=True)
    if ran.returncode:
        return [ran.stderr.strip() or f"exit status {ran.returncode}"]
    return differences(json.loads(ran.stdout), want)


def main():
    posenc, folders = sys.argv[1], sys.argv[2:]
    files = failed = 0
    for folder in folders:
        with open(os.path.join(folder, "expected.json")) as text:
            expected = json.load(text)
        for name in sorted(expected):
            wrong = check(posenc, os.path.join(folder, name), expected[name])
            files += 1
            failed += bool(wrong)
            for line in wrong[:5]:
                print(f"{os.path.join(os.path.basename(folder), name)}: {line}")
    print(f"{files - failed} of {files} files are read as they were written")
    return failed > 0 or files == 0


if __name__ == "__main__":
    sys.exit(main())
