#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""mutate.py [--seed N] [--count 100] [--first K] [--longest S] [BUILD]: do the tests notice an operator that is another one?

Draws operators of src/engine and src/encodings, changes one at a time (< to <=, + to -, && to || ...), compiles that one
file, links it before the libraries into the tests of the floors up to api and of the rooms, and runs these until one
fails: only those that reach the line, the shortest first. Which these are gcov says of one run of each test with the
folders compiled for it; the answers are kept in BUILD/reach. BUILD (build/default) has its tests built; nothing else in
it or in the sources is changed. The draw is that of the printed seed: --first K goes on where a call ended, which says K.
A mutant that compiles to the same code is not counted, nor one of tools/mutants_equal.txt, whose lines were examined: what
they change no call can see. Status 1 if fewer than nine of ten are noticed.
"""
import argparse
import json
import os
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
COUNTED = "-O1 --coverage -fprofile-update=single".split()
BYTES = 4 << 30  # of a test, whose loop may not end any more
FOLDERS = ("engine", "encodings")
TESTS = re.compile(r"(room|executors)-|(engine|api|encodings|memory)/|fuzz/api$|verify-golden")


def operators():
    """(file, offset, operator) of each, in an order that depends on the sources alone."""
    found = []
    for path in sorted(p for folder in FOLDERS for p in (SOURCE / "src" / folder).rglob("*.c")):
        text = path.read_text()
        code = PASSED_OVER.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)
        found += [(path, m.start(), m.group()) for m in OPERATOR.finditer(code)]
    return found


def tests(build):
    """name -> command of the tests of this build, without those that take minutes."""
    said = subprocess.run(["ctest", "--test-dir", build, "-LE", "^long$", "--show-only=json-v1"], check=True,
                          capture_output=True, text=True).stdout
    return {test["name"]: test["command"] for test in json.loads(said)["tests"] if TESTS.match(test["name"])}


def passes(words, seconds):
    """Does it pass in so many seconds of a processor?"""
    def bounded():
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    try:
        return not subprocess.run(words, cwd=SOURCE, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, timeout=60 + 10 * seconds, preexec_fn=bounded,
                                  env={**os.environ, "OMP_WAIT_POLICY": "passive"}).returncode
    except subprocess.TimeoutExpired:
        return False


class Bench:
    """A build whose programs are linked anew with objects of a file that is changed."""

    def __init__(self, build, folder):
        self.build, self.object = build, Path(folder) / "mutant.o"
        self.compile = {c["file"]: c["command"] for c in json.loads((build / "compile_commands.json").read_text())}
        self.links, self.sound, self.tests = {}, set(), tests(build)

    def compiled(self, path, text, to=None, options=(), source=None):
        """The object of this text as if it were the file, or None."""
        to, source = to or self.object, source or self.object.with_suffix(".c")
        if source != path:
            source.write_text(text)
        words = shlex.split(self.compile[str(path)])
        words[words.index("-o") + 1], words[words.index("-c") + 1] = str(to), str(source)
        words = [w for w in words if not w.startswith("-W")] + ["-w", f"-I{path.parent}", *options]
        return None if subprocess.run(words, cwd=self.build, capture_output=True).returncode else to.read_bytes()

    def linked(self, program, objects, *options):
        if program not in self.links:
            target = str(Path(program).relative_to(self.build))
            said = subprocess.run(["ninja", "-t", "commands", "-s", target], cwd=self.build, check=True, capture_output=True,
                                  text=True).stdout
            self.links[program] = shlex.split(said.strip().removeprefix(": && ").removesuffix(" && :"))
        words = list(self.links[program])
        at = words.index("-o")
        words[at + 1] = str(self.object.with_name(Path(program).name))
        words[at:at] = [*map(str, objects), *options]
        subprocess.run(words, cwd=self.build, check=True, capture_output=True)
        return words[words.index("-o") + 1]

    def noticed(self, names, seconds):
        """The test that fails, or None."""
        made = {}
        for name in names:
            program, *arguments = self.tests[name]
            made[program] = made.get(program) or self.linked(program, [self.object])
            limit = 5 + 5 * round(seconds[name])
            if not passes([made[program], *arguments], limit):
                self.require_sound(name, limit)
                return name
        return None

    def require_sound(self, name, limit):
        """A test that fails without a change notices none."""
        if name not in self.sound and not passes(self.tests[name], limit):
            sys.exit(f"mutate.py: {name} fails without a change; fix that first")
        self.sound.add(name)


class Reach:
    """Which lines of the folders each test runs, and how many seconds it takes."""

    def __init__(self, bench):
        self.kept = bench.build / "reach"
        self.kept.mkdir(exist_ok=True)
        self.seconds, self.lines, self.code = {}, {}, {}
        for name, (program, *arguments) in bench.tests.items():
            file = self.kept / f"{name.replace('/', '-')}.json"
            if not file.exists() or file.stat().st_mtime < Path(program).stat().st_mtime:
                file.write_text(json.dumps(self.asked(bench, name, program, arguments)))
            said = json.loads(file.read_text())
            self.seconds[name] = said["seconds"]
            for path, lines in said["lines"].items():
                self.code.setdefault(path, set()).update(line for line, _ in lines)
                self.lines[name, path] = {line for line, ran in lines if ran}

    def objects(self, bench):
        """The folders' files, compiled to count."""
        made, headers = [], max(path.stat().st_mtime for path in (SOURCE / "src").rglob("*") if path.suffix in (".h", ".def"))
        for path in sorted({path for path, _, _ in operators()}):
            made.append(self.kept / f"{'-'.join(path.relative_to(SOURCE).parts)}.o")
            if not made[-1].exists() or made[-1].stat().st_mtime < max(path.stat().st_mtime, headers):
                if bench.compiled(path, path.read_text(), made[-1], COUNTED, path) is None:
                    sys.exit(f"mutate.py: {path} does not compile")
        return made

    def asked(self, bench, name, program, arguments):
        objects = self.objects(bench)
        for data in self.kept.glob("*.gcda"):
            data.unlink()
        program = bench.linked(program, objects, "--coverage")
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        if not passes([program, *arguments], 600):
            sys.exit(f"mutate.py: {name} fails without a change; fix that first")
        seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        print(f"mutate.py: {name} {seconds:.1f} s", flush=True)
        lines, data = {}, list(self.kept.glob("*.gcda"))
        said = data and subprocess.run(["gcov", "--json-format", "--stdout", *data], cwd=bench.build, check=True,
                                       capture_output=True, text=True).stdout.splitlines()
        for file in (file for record in said for file in json.loads(record)["files"] if file["file"].endswith(".c")):
            path = Path(bench.build, file["file"]).resolve().relative_to(SOURCE)
            lines[str(path)] = [(line["line_number"], line["count"] > 0) for line in file["lines"]]
        return {"seconds": seconds, "lines": lines}

    def of(self, path, line):
        """The tests that reach a line, those that take least first. A line without code of its own is that before it."""
        code = [at for at in self.code.get(str(path), ()) if at <= line]
        return sorted((name for name in self.seconds if not code or max(code) in self.lines.get((name, str(path)), ())),
                      key=self.seconds.get)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=22)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="how many to pass over")
    parser.add_argument("--longest", type=float, default=600, help="leave out tests that take more seconds")
    parser.add_argument("build", nargs="?", type=Path, default=SOURCE / "build/default")
    asked = parser.parse_args()
    equal = set((SOURCE / "tools/mutants_equal.txt").read_text().splitlines())
    drawn = operators()
    print(f"mutate.py: seed {asked.seed}, {len(drawn)} operators", flush=True)
    random.Random(asked.seed).shuffle(drawn)
    counted = noticed = same = tried = 0
    plain = {}  # a file's object as it is
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(asked.build.resolve(), folder)
        reach = Reach(bench)
        for tried, (path, at, operator) in enumerate(drawn[asked.first:], asked.first):
            if counted == asked.count:
                break
            text, new = path.read_text(), CHANGES[operator]
            line, after = text[:at].count("\n") + 1, at + len(operator)
            said = f"{text[:at]}[{operator} to {new}]{text[after:]}".splitlines()[line - 1].strip()
            name = f"{path.relative_to(SOURCE)}: {said}"
            if path not in plain:
                plain[path] = bench.compiled(path, text)
            changed = bench.compiled(path, text[:at] + new + text[after:])
            if name in equal or changed is None or changed == plain[path]:
                same += 1
                continue
            counted += 1
            names = [test for test in reach.of(path.relative_to(SOURCE), line) if reach.seconds[test] <= asked.longest]
            by = bench.noticed(names, reach.seconds)
            noticed += by is not None
            print(f"{tried:4} {f'noticed by {by}' if by else 'MISSED':40} {line:4} {name}", flush=True)
    print(f"{noticed} of {counted} mutants noticed; {same} others are no change or do not compile; --first {tried} goes on")
    return 1 if noticed < 0.9 * counted or not counted else 0


if __name__ == "__main__":
    sys.exit(main())
