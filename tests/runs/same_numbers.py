#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""same_numbers.py DIR DIR: do two results of `posenc compare` differ in nothing but times?

results.json and runs.jsonl are compared without their members "time" (and runs.jsonl without the check over each line, and
in any order), results.csv, curves.csv and tasks.csv to the byte. Prints what differs; exit status 1 then.
"""
import json
import sys
from pathlib import Path


def timeless(value):
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("time", "check")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def numbers(folder):
    folder = Path(folder)
    lines = (folder / "runs.jsonl").read_text().splitlines()
    return {
        "results.json": timeless(json.loads((folder / "results.json").read_text())),
        "runs.jsonl": sorted(json.dumps(timeless(json.loads(line))) for line in lines),
        "results.csv": (folder / "results.csv").read_bytes(),
        "curves.csv": (folder / "curves.csv").read_bytes(),
        "tasks.csv": (folder / "tasks.csv").read_bytes(),
    }


one, other = map(numbers, sys.argv[1:3])
different = [name for name in one if one[name] != other[name]]
for name in different:
    print(f"{name} of {sys.argv[1]} and {sys.argv[2]} differ in more than times")
sys.exit(bool(different))
