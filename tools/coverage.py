#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py BUILD: how many lines of each folder the tests have run

BUILD was compiled with --coverage (preset coverage) and its tests have run. gcov says how often each line of each
object ran; a line counts once, as run if any object that has it (kernels have theirs once per instruction set, headers
in every object) ran it.
"""
import collections
import json
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "cli", "include")


def main():
    build = Path(sys.argv[1]).resolve()
    notes = sorted(map(str, build.rglob("*.gcno")))
    if not notes:
        sys.exit(f"coverage.py: {build} was not compiled with --coverage; make test-coverage does that")
    run = collections.defaultdict(dict)  # file -> line -> has it run
    for at in range(0, len(notes), 50):
        said = subprocess.run(["gcov", "--json-format", "--stdout", *notes[at:at + 50]], cwd=build, check=True,
                              capture_output=True, text=True).stdout
        for record in map(json.loads, filter(None, said.splitlines())):
            for file in record["files"]:
                path = (Path(record["current_working_directory"]) / file["file"]).resolve()
                for line in file["lines"]:
                    seen = run[path]
                    seen[line["line_number"]] = seen.get(line["line_number"], False) or line["count"] > 0
    total, hit = collections.Counter(), collections.Counter()
    for path, lines in run.items():
        if path.is_relative_to(SOURCE) and path.relative_to(SOURCE).parts[0] in FOLDERS:
            folder = path.relative_to(SOURCE).parent.as_posix()
            for name in (folder, "together"):
                total[name] += len(lines)
                hit[name] += sum(lines.values())
    for folder in sorted(total):
        print(f"{folder:24} {hit[folder]:6} of {total[folder]:6} lines  {100 * hit[folder] / total[folder]:5.1f} %")


if __name__ == "__main__":
    main()
