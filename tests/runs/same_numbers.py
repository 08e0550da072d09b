#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""same_numbers.py DIR DIR: do two results of `posenc compare` differ in nothing but times?

results.json is compared without its members "time", runs.npz without the arrays called time... and in any order of its
arrays, results.csv, curves.csv and tasks.csv to the byte. Prints what differs; exit status 1 then.
"""
import json
import sys
import zipfile
from pathlib import Path


def timeless(value):
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k != "time"}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def numbers(folder):
    folder = Path(folder)
    runs = zipfile.ZipFile(folder / "runs.npz")
    return {
        "results.json": timeless(json.loads((folder / "results.json").read_text())),
        "runs.npz": {name: runs.read(name) for name in runs.namelist() if "/time." not in name},
        "results.csv": (folder / "results.csv").read_bytes(),
        "curves.csv": (folder / "curves.csv").read_bytes(),
        "tasks.csv": (folder / "tasks.csv").read_bytes(),
    }


one, other = map(numbers, sys.argv[1:3])
different = [name for name in one if one[name] != other[name]]
for name in different:
    print(f"{name} of {sys.argv[1]} and {sys.argv[2]} differ in more than times")
sys.exit(bool(different))
