#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""run.py [--rewrite] [--about NAME] POSENC [COMMAND | COMMAND/CASE]...: what the tool prints, to the byte

Beside this script lies one transcript per command of the tool, in the manner of cram. A case is

    name_of_the_case:
    Words that say what it is about, where the commands do not.

      $ posenc list alibbi
      > and the next lines of a command that takes several
      what it prints on standard output
      ! what it prints on standard error
      [2]

with its exit status at the end, unless that is 0. The commands of a case are one script of sh, in an empty folder of
its own; $SOURCE is the tree. The names of both differ from run to run and are written TMP and SOURCE. A line that could
be misread (a control character; $, > or ! at its start; blanks alone) has such characters as \\x24 and ends with (esc);
a last line that nothing ends is marked (no-eol).

Without names all cases of all commands run; with --about those whose commands name that encoding, and EVERY. --rewrite
takes what happened as right: look at the difference before you commit it.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
NAME = re.compile(rb"[a-z0-9_]+:")
ODD = rb"[\x00-\x08\x0b-\x1f\x7f]"
EVERY = ("list/all", "explain/letters", "explain/narrow")  # cases that a new encoding can fail without being named
MISREAD = re.compile(ODD + rb"|^([$>!]|\[\d+\]$)|^[ \t]+$| \((esc|no-eol)\)$")


def is_text(line):
    try:
        return bool(line.decode()) or True
    except UnicodeDecodeError:
        return False


def shown(data, mark):
    """What was printed on one stream, as lines of a transcript: no two things that differ look the same."""
    lines = data.split(b"\n")
    end = b" (no-eol)" if lines.pop() else b""
    lines = data.split(b"\n") if end else lines
    for number, line in enumerate(lines, 1):
        is_last = number == len(lines)
        if MISREAD.search(line) or not is_text(line) or (is_last and not line):
            line = re.sub(ODD + rb"|\\|^[$>!\[ \t]" + (b"" if is_text(line) else rb"|[\x80-\xff]"),
                          lambda c: b"\\x%02x" % c[0][0], line) + b" (esc)"
        line += end if is_last else b""
        yield b"  " + mark + line if line else mark and b"  !"


class Case:
    """path and name; head, commands and outcome are lines of the transcript."""
    def __init__(self, path, number, name):
        self.path, self.number, self.name = path, number, f"{path.stem}/{name[:-1].decode()}"
        self.head, self.commands, self.outcome = [name], [], []

    def add(self, line):
        if not self.commands and not line.startswith(b"  "):
            self.head.append(line)
        elif not self.outcome and line[:3] in (b"  $", b"  >"):
            self.commands.append(line)
        else:
            self.outcome.append(line)

    def lines(self):
        return self.head + self.commands + self.outcome + [b""]

    def script(self):
        return b"".join(line[4:] + b"\n" for line in self.commands)

    def run(self, root):
        """The outcome as it is today."""
        folder = Path(tempfile.mkdtemp(dir=root))
        (folder / "TMP").mkdir()
        (folder / "case.sh").write_bytes(self.script())
        done = subprocess.run(["sh", folder / "case.sh"], cwd=folder / "TMP", stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)
        streams = [stream.replace(str(folder / "TMP").encode(), b"TMP").replace(str(SOURCE).encode(), b"SOURCE")
                   for stream in (done.stdout, done.stderr)]
        return [*shown(streams[0], b""), *shown(streams[1], b"! "),
                *([b"  [%d]" % done.returncode] if done.returncode else [])]


def read(path):
    """The lines before the first case, and the cases."""
    before, cases = [], []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if NAME.fullmatch(line):
            cases.append(Case(path, number, line))
        elif cases:
            cases[-1].add(line)
        else:
            before.append(line)
    for case in cases:
        while case.outcome and not case.outcome[-1]:
            case.outcome.pop()
    return before, cases


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split(":")[0])
    parser.add_argument("--rewrite", action="store_true")
    parser.add_argument("--about", metavar="NAME")
    parser.add_argument("posenc", type=Path)
    parser.add_argument("names", nargs="*")
    asked = parser.parse_args()
    if not os.access(asked.posenc, os.X_OK) or asked.posenc.is_dir():
        sys.exit(f"run.py: {asked.posenc} is no program; build it first")
    books = {path: read(path) for path in sorted(HERE.glob("*.txt"))}
    cases = [case for _, book in books.values() for case in book]
    for name in asked.names:
        if name not in [case.name for case in cases] + [path.stem for path in books]:
            sys.exit(f"run.py: {name} is no command and no case of one")
    about = re.compile(rb"(?<!\w)%s(?!\w)" % re.escape(asked.about or "").encode())
    cases = [case for case in cases if not asked.names or {case.name, case.path.stem} & set(asked.names)]
    named = [case for case in cases if about.search(case.script())]
    cases = [case for case in cases if not asked.about or case in named or case.name in EVERY]

    failed = 0
    with tempfile.TemporaryDirectory() as root:
        root = Path(root).resolve()
        (root / "bin").mkdir()
        (root / "bin/posenc").symlink_to(asked.posenc.resolve())
        os.environ.update(SOURCE=str(SOURCE), LC_ALL="C", TERM="dumb", OMP_NUM_THREADS="2",
                          PATH=f"{root}/bin:{os.environ['PATH']}")
        for name in ("NO_COLOR", "POSENC_ISA", "COLUMNS"):
            os.environ.pop(name, None)
        for case in cases:
            outcome = case.run(root)
            if asked.rewrite:
                case.outcome = outcome
            elif outcome != case.outcome:
                failed += 1
                difference = difflib.unified_diff(*([line.decode(errors="backslashreplace") for line in lines]
                                                    for lines in (case.outcome, outcome)),
                                                  "expected", "actual", lineterm="", n=1)
                print(f"{case.path}:{case.number}: {case.name}", *difference, sep="\n", flush=True)
    if asked.rewrite:
        for path, (before, book) in books.items():
            path.write_bytes(b"\n".join(before + [line for case in book for line in case.lines()]))
    unnamed = f"; no transcript names {asked.about}" if asked.about and not named else ""
    print(f"run.py: {len(cases) - failed} of {len(cases)} cases are as written{unnamed}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
