# SPDX-License-Identifier: MIT
"""Commands of the handbook, run once: what posenc prints, and the pictures that it draws.

What a command gave is kept under the sum of the tool and of its words, so both languages and the next build share it. A
command that trains models takes minutes: what it printed stands in docs/tutorials/stored.json, as for `posenc tutorial`.
"""
import hashlib
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STORED = json.loads((ROOT / "docs/tutorials/stored.json").read_text())
COLUMNS = 100  # of what is printed
WIDE = 400  # the same where no line may be broken
LIMIT = 300  # seconds; a command of the handbook takes a few


class Failed(Exception):
    """A command that did not do what its page says."""


class Tool:
    def __init__(self, path, cache):
        self.path, self.cache = Path(path).resolve(), Path(cache)
        self.cache.mkdir(parents=True, exist_ok=True)
        self.sum = hashlib.sha1(self.path.read_bytes()).hexdigest()

    def json(self, *words):
        return json.loads(subprocess.run([self.path, *words, "--json"], check=True, capture_output=True, text=True).stdout)

    def explorer(self, page):
        """Writes the page in which the library runs; False where the tool was built without it."""
        return not subprocess.run([self.path, "explore", "-o", page], capture_output=True).returncode

    def _place(self, command, suffix, columns=COLUMNS):
        return self.cache / (hashlib.sha1(f"{self.sum} {columns} {command}".encode()).hexdigest()[:16] + suffix)

    def _run(self, words, status=0, columns=COLUMNS):
        env = dict(os.environ, COLUMNS=str(columns), NO_COLOR="1", OMP_NUM_THREADS="2")
        done = subprocess.run([self.path, *words], capture_output=True, text=True, env=env, timeout=LIMIT, cwd=ROOT,
                              stdin=subprocess.DEVNULL)
        if done.returncode != status:
            raise Failed(f"posenc {shlex.join(words)}: exit status {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout + done.stderr

    def picture(self, command):
        """The .svg that the command draws, without its -o."""
        place = self._place(command, ".svg")
        if not place.exists():
            partial = place.with_name("partial-" + place.name)
            self._run([*shlex.split(command), "-o", str(partial)])
            partial.write_text(tidy(partial.read_text()))
            partial.rename(place)
        return place

    def text(self, command, status=0, columns=COLUMNS):
        if command in STORED:
            return STORED[command]["output"]
        place = self._place(command, ".txt", columns)
        if not place.exists():
            out = self._run(shlex.split(command), status, columns)
            partial = place.with_name("partial-" + place.name)
            partial.write_text(out)
            partial.rename(place)
        return place.read_text()


def is_picture(command):
    return command.startswith("plot ")


def tidy(svg):
    """Points of the drawing to two decimals: half the size, and nothing that is seen changes."""
    return re.sub(r"(?<=\d\.\d\d)\d+", "", svg)
