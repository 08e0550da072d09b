# SPDX-License-Identifier: MIT
"""agree.py FOLDER ENDING [EXPECTED]: does `posenc inspect --json` say of every file of a folder what expected.json says?

Strings, whole numbers, flags and lists of layers exactly, reals to a relative 1e-12 (0 exactly); a member that is null may be
left out, and further members are allowed. {"error": true}: exit status 2, one line of error and nothing else."""
import json, subprocess, sys


def differences(want, got, at):
    if isinstance(want, dict):
        for key, value in want.items() if isinstance(got, dict) else [("", None)]:
            if not isinstance(got, dict) or (key not in got and value is not None):
                yield f"{at}.{key} is missing"
            elif key in got:
                yield from differences(value, got[key], f"{at}.{key}")
    elif isinstance(want, list):
        if not isinstance(got, list) or len(got) != len(want):
            yield f"{at}: a list of {len(want)} is expected, not {str(got)[:60]}"
        else:
            for i, pair in enumerate(zip(want, got)):
                yield from differences(*pair, f"{at}[{i}]")
    elif isinstance(want, float) and isinstance(got, (int, float)) and not isinstance(got, bool):
        if abs(want - got) > 1e-12 * abs(want):
            yield f"{at}: {want} is expected, not {got}"
    elif want != got or isinstance(want, bool) != isinstance(got, bool):
        yield f"{at}: {want} is expected, not {got}"


def faults(path, want):
    run = subprocess.run(["posenc", "inspect", "--json", path], capture_output=True, text=True)
    if want == {"error": True}:
        if run.returncode != 2 or run.stdout or run.stderr.count("\n") != 1:
            yield f"a refusal is expected, not status {run.returncode}, {run.stdout[:60]}{run.stderr[:60]}"
    elif run.returncode:
        yield run.stderr.strip()
    else:
        yield from differences(want, json.loads(run.stdout), "")


folder, ending, *name = sys.argv[1:]
expected, agree = json.load(open(f"{folder}/{name[0] if name else 'expected.json'}")), 0
for name, want in expected.items():
    found = list(faults(f"{folder}/{name}.{ending}", want))
    agree += not found
    for fault in found[:5]:
        print(f"{name}: {fault}")
print(f"{agree} of {len(expected)} files agree")
sys.exit(agree != len(expected))
