#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py BUILD [FOLDER]: how many lines and branches of each folder the tests have run, or which of FOLDER they have not

BUILD was compiled with --coverage (preset coverage) and its tests have run. gcov says how often each line of each
object ran, and each way out of its conditions; both count once, as run if any object that has them (headers are in every
object) ran them. Kernels are those for any processor, where each function stands once (CMakeLists.txt).
"""
import collections
import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "cli", "include")


def counted(build):
    """file -> place -> has it run, of lines (number,) and of branches (number, function, which)"""
    notes = sorted(map(str, build.rglob("*.gcno")))
    if not notes:
        sys.exit(f"coverage.py: {build} was not compiled with --coverage; make test-coverage does that")
    run = collections.defaultdict(lambda: collections.defaultdict(bool))
    for at in range(0, len(notes), 50):
        said = subprocess.run(["gcov", "--branch-probabilities", "--json-format", "--stdout", *notes[at:at + 50]], cwd=build,
                              check=True, capture_output=True, text=True).stdout
        for record in map(json.loads, filter(None, said.splitlines())):
            for file in record["files"]:
                seen = run[(Path(record["current_working_directory"]) / file["file"]).resolve()]
                for line in file["lines"]:
                    number = line["line_number"]
                    seen[number,] |= line["count"] > 0
                    for which, branch in enumerate(line["branches"]):
                        seen[number, line.get("function_name"), which] |= branch["count"] > 0
    return {path.relative_to(SOURCE): seen for path, seen in run.items()
            if path.is_relative_to(SOURCE) and path.relative_to(SOURCE).parts[0] in FOLDERS}


def share(seen, length):
    """Of lines (1) or branches (3): how many have run, of how many, and in percent."""
    ran = [one for place, one in seen if len(place) == length]
    return f"{sum(ran):6} of {len(ran):6} {100 * sum(ran) / max(len(ran), 1):5.1f} %"


def main():
    run = counted(Path(sys.argv[1]).resolve())
    if sys.argv[2:]:
        for path, seen in sorted(run.items()):
            if path.is_relative_to(sys.argv[2]):
                text = (SOURCE / path).read_text().splitlines()
                for number in sorted({place[0] for place, ran in seen.items() if not ran}):
                    print(f"{path}:{number}: {'' if seen[number,] else 'line '}{text[number - 1].strip()}")
        return
    folders = collections.defaultdict(list)
    for path, seen in run.items():
        for name in (path.parent.as_posix(), "/".join(path.parts[:2]) + ", all", "together"):
            folders[name] += seen.items()
    for folder in sorted(folders):
        print(f"{folder:28} lines {share(folders[folder], 1)}  branches {share(folders[folder], 3)}")


if __name__ == "__main__":
    main()
