#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate.py [--seed N] [--count 100] [--first K] [BUILD]: do the tests notice an operator that is another one?

Draws operators of src/engine and src/encodings, changes one at a time (< to <=, + to -, && to || ...), compiles that one
file, links it before the libraries into the tests of its folder, and runs these until one fails. BUILD (build/default)
has its tests built; nothing in it or in the sources is changed. The draw is that of the printed seed, so --first K goes
on where a call of --count K ended. A mutant that compiles to the same code is not counted, nor one of
tools/mutants_equal.txt, whose lines were examined: what they change no call can see. Status 1 if fewer than nine of ten
are noticed.
"""
import argparse
import json
import random
import re
import resource
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent
CHANGES = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+", "*": "/", "/": "*",
           "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "++": "--", "--": "++", "%": "/"}
# Binary operators stand between blanks (clang-format), but for ++ and --.
OPERATOR = re.compile(r"(?<= )(?:<=?|>=?|==|!=|\+=?|-=?|\*|/|%|&&|\|\|)(?= )|\+\+|--")
PASSED_OVER = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|/\*.*?\*/|//[^\n]*|^\s*#[^\n]*|static_assert[^;]*;',
                         re.DOTALL | re.MULTILINE)
SECONDS, BYTES = 120, 4 << 30  # of a test, whose loop may not end any more
# Tests of the engine: encodings that use each of its parts first, then its own, then what calls it.
SPREAD = "rope t5 shaw transformer_xl deberta tupe cope urpe swin_v2 fire alibi xpos learned".split()
FOLDERS = {"engine": ("executors", "engine", "api", "encodings", "verify"), "encodings": ("room", "encodings", "verify")}


def operators():
    """(file, offset, operator) of each, in an order that depends on the sources alone."""
    found = []
    for path in sorted(p for folder in FOLDERS for p in (SOURCE / "src" / folder).rglob("*.c")):
        text = path.read_text()
        code = PASSED_OVER.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        found += [(path, m.start(), m.group()) for m in OPERATOR.finditer(code)]
    return found


def rows():
    """Encodings of a room's file."""
    text = (SOURCE / "src/encodings/encodings.def").read_text()
    return re.findall(r"^ENCODING\((\w+), (\w+), (\w+)\)", text, re.MULTILINE)


def tests_of(path, build):
    """(program, arguments) of the tests that a file of this folder has, those that are likely to notice first."""
    folder = path.relative_to(SOURCE / "src").parts[0]
    every = [name for _, _, name in rows()]
    room = [name for _, room, name in rows() if path.stem == room or path.stem.startswith(room + "_")]
    names = room or SPREAD + [name for name in every if name not in SPREAD]
    chosen = []
    for kind in FOLDERS[folder]:
        if kind in ("room", "executors"):
            chosen += [("test_encodings_rooms", [n]) for n in names if kind == "room"]
            chosen += [("test_encodings_executors", [n]) for n in names]
        elif kind == "verify":
            chosen.append(("posenc", ["verify", str(SOURCE / "tests/golden")]))
        else:
            own = sorted((SOURCE / "tests" / kind).glob("test_*.c"), key=lambda p: (path.stem not in p.stem, p.stem))
            chosen += [(f"test_{kind}_{p.stem[5:]}", []) for p in own if p.stem not in ("test_rooms", "test_executors")]
    for program in {program for program, _ in chosen}:
        if not (build / ("posenc" if program == "posenc" else f"tests/{program}")).exists():
            sys.exit(f"mutate.py: {program} is not built; run make test first")
    return chosen


def bounded():
    resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))


def passes(words):
    try:
        return not subprocess.run(words, cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=SECONDS, preexec_fn=bounded).returncode
    except subprocess.TimeoutExpired:
        return False


class Bench:
    """A build whose programs are linked anew with one object changed."""

    def __init__(self, build, folder):
        self.build, self.object = build, Path(folder) / "mutant.o"
        self.compile = {c["file"]: c["command"] for c in json.loads((build / "compile_commands.json").read_text())}
        self.links, self.sound = {}, set()

    def compiled(self, path, text):
        """The object of this text as if it were the file, or None."""
        changed = self.object.with_suffix(".c")
        changed.write_text(text)
        words = shlex.split(self.compile[str(path)])
        words[words.index("-o") + 1], words[words.index("-c") + 1] = str(self.object), str(changed)
        words = [w for w in words if not w.startswith("-W")] + ["-w", f"-I{path.parent}"]
        return self.object.read_bytes() if not subprocess.run(words, cwd=self.build, capture_output=True).returncode else None

    def linked(self, program):
        if program not in self.links:
            target = "posenc" if program == "posenc" else f"tests/{program}"
            said = subprocess.run(["ninja", "-t", "commands", "-s", target], cwd=self.build, check=True, capture_output=True,
                                  text=True).stdout
            self.links[program] = shlex.split(said.strip().removeprefix(": && ").removesuffix(" && :"))
        words = list(self.links[program])
        at = words.index("-o")
        words[at + 1] = str(self.object.with_name(program))
        words.insert(at, str(self.object))
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)
        return words[words.index("-o") + 1]

    def noticed(self, tests):
        """The test that fails, or None."""
        made = {}
        for program, arguments in tests:
            made[program] = made.get(program) or self.linked(program)
            if not passes([made[program], *arguments]):
                self.require_sound(program, arguments)
                return " ".join([program, *arguments[-1:]])
        return None

    def require_sound(self, program, arguments):
        """A test that fails without a change notices none."""
        if (program, *arguments) in self.sound:
            return
        if not passes([self.build / ("posenc" if program == "posenc" else f"tests/{program}"), *arguments]):
            sys.exit(f"mutate.py: {program} {' '.join(arguments)} fails without a change; mend that first")
        self.sound.add((program, *arguments))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="how many to pass over")
    parser.add_argument("build", nargs="?", type=Path, default=SOURCE / "build/default")
    asked = parser.parse_args()
    equal = set((SOURCE / "tools/mutants_equal.txt").read_text().splitlines())
    drawn = operators()
    print(f"mutate.py: seed {asked.seed}, {len(drawn)} operators", flush=True)
    random.Random(asked.seed).shuffle(drawn)
    counted = noticed = same = 0
    plain = {}  # a file's object as it is
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.build.resolve(), folder)
        for path, at, operator in drawn[asked.first:]:
            if counted == asked.count:
                break
            text, new = path.read_text(), CHANGES[operator]
            line = text[:at].count("\n")
            name = f"{path.relative_to(SOURCE)}: {operator} to {new}: {text.splitlines()[line].strip()}"
            if path not in plain:
                plain[path] = bench.compiled(path, text)
            after = bench.compiled(path, text[:at] + new + text[at + len(operator):])
            if name in equal or after is None or after == plain[path]:
                same += 1
                continue
            counted += 1
            by = bench.noticed(tests_of(path, asked.build.resolve()))
            noticed += by is not None
            print(f"{f'noticed by {by}' if by else 'MISSED':50} {path.name}:{line + 1}: {name}", flush=True)
    print(f"{noticed} of {counted} mutants noticed; {same} others are no change or do not compile")
    return 1 if noticed < 0.9 * counted or not counted else 0


if __name__ == "__main__":
    sys.exit(main())
