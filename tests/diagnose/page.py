#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page.py POSENC: does the tool say of the ports of docs/diagnose.md what the page says, and are they fixed as it says?"""
import fnmatch
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy
except ImportError:
    print("skipped: NumPy is missing")
    sys.exit(77)

ROOT = Path(__file__).resolve().parents[2]
TOOL = os.path.abspath(sys.argv[1])
page = (ROOT / "docs/diagnose.md").read_text()
wrong = []


def posenc(words, folder):
    return subprocess.run([TOOL, *words], cwd=folder, capture_output=True, text=True)


def check(what, is_right, done):
    if not is_right:
        wrong.append(what)
        print(f"{what}\n{done.stdout}{done.stderr}")


with tempfile.TemporaryDirectory() as folder:
    subprocess.run([sys.executable, str(ROOT / "docs/diagnose/ports.py"), folder], check=True, stdout=subprocess.DEVNULL)
    rows = re.findall(r"^\| (\w+) \|.*\| `(.*)` \| (.*) \|$", page, re.M)
    for name, ask, names in rows:
        done = posenc(["diagnose", "--before", f"{name}_before.npy", "--after", f"{name}_after.npy", *ask.split(), "--json"], folder)
        said = json.loads(done.stdout)["departs"] if done.stdout else None
        check(f"{name}: {said}, not {names}", said == re.findall(r"`(\w+)`", names) and done.returncode == 1, done)
    check(f"{len(rows)} rows, not five", len(rows) == 5, posenc(["--version"], folder))
    examples = re.findall(r"^    \$ posenc (.*)\n((?:    .+\n)+)", page, re.M)
    check("no example is shown", examples, posenc(["--version"], folder))
    for call, shown in examples:
        done = posenc(call.split(), folder)
        pattern = re.sub(r"(?m)^    ", "", shown).replace("[", "[[]").replace("...\n", "*").replace("...", "*")
        check(f"posenc {call}: not as shown", fnmatch.fnmatchcase(done.stdout, pattern), done)
    fix = [posenc(call.split(), folder) for call in re.findall(r"^    posenc (.* fixed\.npy .*)$", page, re.M)]
    check("fixed, it is not same", len(fix) == 2 and fix[1].stdout.startswith("same\n") and not fix[1].returncode, fix[-1])
print(f"{len(rows)} ports of the page, {len(wrong)} not as it says")
sys.exit(len(wrong) > 0)
