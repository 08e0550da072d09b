#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""names.py POSENC: what a stranger wrote is shown, and nothing else

Names that a terminal would obey, that are no UTF-8, that close a quote, a tag or a section, that a spreadsheet would run
or a shell expand, are given as file names, names of arrays, words, SPECs, members of a config.json and of a manifest. On
every way out - both streams, SVG, HTML, CSV, JSON - they must be text of that format, and no program may have run.
"""
import csv
import io
import json
import os
import struct
import subprocess
import sys
import tempfile
import xml.dom.minidom
import zipfile
from html.parser import HTMLParser
from pathlib import Path

NAMES = [b"it's", b"a]]>b", b"\x1b[31mred\x1b]0;title\x07", b"\xff\xfe", b"=1+1", b"+cmd|' /C calc'!A0", b"@SUM(A1)", b"-2",
         b"<script>alert(1)</script>", b"`touch harmed`", b"$(touch harmed)", b'"; system("touch harmed"); "', b"%s%n%d",
         b"&amp;", b"x" * 109 + "é".encode(), "\u202eabc".encode(), "\u009b31m".encode(), "\u061c\ufffe\uffff".encode(), "\uff1d1+1".encode(), b"a\nb", b"\\", b"'.system('touch harmed').'"]
TINY = {"encodings": "nope,alibi", "seeds": 1, "steps": 2, "length": 16, "reach": 2, "width": 16, "layers": 1, "heads": 2,
        "batch": 2, "learning-rate": 0.01, "windows": 8, "tasks": [], "extension": "none", "stability": "none"}
faults = []


def npy(rows, columns):
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, {columns}), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + struct.pack(
        f"<{rows * columns}d", *((7 * i % 5) - 2.0 for i in range(rows * columns)))


def say(words, what):
    faults.append(what)
    print(f"posenc {b' '.join(words)!r}: {what}")


def check_text(words, data, what):
    """UTF-8 without characters that act."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        return say(words, f"{what} is not UTF-8: {error}")
    acting = [c for c in text if (ord(c) < 0x20 and c not in "\n\t") or 0x7f <= ord(c) < 0xa0 or "\u202a" <= c <= "\u202e"
              or "\u2066" <= c <= "\u2069" or c in "\u061c\u200e\u200f\ufeff\ufffe\uffff"]
    return say(words, f"{what} has {acting[:3]!r}") if acting else None


def check_csv(words, data):
    for row in csv.reader(io.StringIO(data.decode())):
        for cell in row:
            try:
                float(cell)
            except ValueError:
                if cell.strip()[:1] in tuple("=+-@\uff1d\uff0b\uff0d\uff20"):
                    say(words, f"a cell begins {cell[:10]!r}")


class Page(HTMLParser):
    """The tags of a page that a name has no business to make."""
    def handle_starttag(self, tag, attributes):
        if tag == "script" and "alert(1)" in (self.rawdata[self.offset_now():][:60]):
            raise ValueError("a script came through")

    def offset_now(self):
        line, column = self.getpos()
        return sum(len(l) + 1 for l in self.rawdata.split("\n")[:line - 1]) + column


def call(posenc, folder, *words):
    words = [w if isinstance(w, bytes) else w.encode() for w in words]
    done = subprocess.run([os.fsencode(posenc), *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=300, check=False, env=dict(os.environ, TERM="dumb", LC_ALL="C", OMP_NUM_THREADS="1"))
    check_text(words, done.stdout, "standard output")
    check_text(words, done.stderr, "standard error")
    if done.returncode not in (0, 1, 2):
        say(words, f"exit status {done.returncode}")
    if (Path(os.fsdecode(folder)) / "harmed").exists():
        say(words, "a program has run")
    return done


def drawn(posenc, folder, *words):
    """A picture is drawn whatever it is called, and as SVG and CSV it is what it says."""
    for ending in (b"svg", b"csv"):
        path = os.path.join(folder, b"picture." + ending)
        done = call(posenc, folder, *words, "-o", path)
        if done.returncode:
            say(list(map(repr, words)) and [str(w).encode() for w in words], f"no picture: {done.stderr!r}")
            continue
        data = Path(os.fsdecode(path)).read_bytes()
        check_text([b"plot"], data, os.fsdecode(path))
        try:
            if ending == b"svg":
                xml.dom.minidom.parseString(data)
            else:
                check_csv([str(w).encode() for w in words], data)
        except Exception as error:  # whatever the parser has to say
            say([str(w).encode() for w in words], f"{ending.decode()}: {error}")
    call(posenc, folder, *words)


def one_name(posenc, folder, name):
    word = name.replace(b" ", b"_").replace(b"\n", b"_").replace(b"\t", b"_")
    in_json = name.decode(errors="replace")
    file = name.replace(b"/", b"_")
    path = os.path.join(folder, file)
    drawn(posenc, folder, "plot", "words", "rope", "--words", word + b" b")
    drawn(posenc, folder, "plot", "buckets", "shaw", "--set", "max_relative=2", "--words", word + b" b", "--digits", "0")
    # arrays and files
    with zipfile.ZipFile(os.path.join(folder, b"a.npz").decode(), "w") as z:
        z.writestr(in_json + ".npy", npy(8, 4))
    call(posenc, folder, "plot", "similarity", "--table", b"a.npz:" + name)
    call(posenc, folder, "rotate", "-i", "a.npz", "-o", "rotated.csv")
    Path(os.fsdecode(path + b".npy")).write_bytes(npy(8, 4))
    drawn(posenc, folder, "plot", "similarity", "--table", file + b".npy")
    call(posenc, folder, "rotate", "-i", file + b".npy", "-o", "-.csv")
    call(posenc, folder, "list", b"x" + name)
    call(posenc, folder, "encode", b"sinusoidal[" + name + b"=1]", "-o", "t.npy")
    call(posenc, folder, "plot", "bias", "alibi", "--" + "set", name)
    # models
    for config in ({"model_type": in_json, "rope_theta": 1e4}, {"model_type": "llama", "hidden_size": 64,
                   "num_attention_heads": 4, "max_position_embeddings": 64, "rope_scaling": {"rope_type": in_json, "factor": 2}},
                   {"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 64}):
        Path(os.fsdecode(path + b".json")).write_text(json.dumps(config))
        for more in ((), ("--json",)):
            done = call(posenc, folder, "inspect", b"./" + file + b".json", *more)
            if done.returncode == 0 and more:
                json.loads(done.stdout)
    drawn(posenc, folder, "plot", "wavelengths", "--config", b"./" + file + b".json")
    # reference cases
    (Path(os.fsdecode(folder)) / "manifest.json").write_text(json.dumps({"entries": [
        {"file": in_json, "encoding": in_json, "settings": {in_json: in_json}},
        {"file": "a.npz", "encoding": "index_map", "settings": {"table": in_json}},
        {"file": "a.npz", "encoding": "alibi", "settings": {}}]}))
    call(posenc, folder, "verify", folder)
    done = call(posenc, folder, "verify", folder, "--json")
    json.loads(done.stdout)


def one_comparison(posenc, folder, name):
    file = b"./" + name.replace(b"/", b"_")
    out = Path(os.fsdecode(folder)) / "report"
    text = Path(os.fsdecode(os.path.join(folder, file)))
    text.write_text("and the waters prevailed upon the earth " * 200)
    (Path(os.fsdecode(folder)) / "tiny.json").write_text(json.dumps(TINY))
    done = call(posenc, folder, "compare", file, "-o", "report", "--preset", "tiny.json")
    if done.returncode:
        return say([b"compare", file], f"{done.returncode}: {done.stderr!r}")
    results = json.loads((out / "results.json").read_bytes())
    for member in ("text", "time", "settings", "encodings"):
        if member not in results:
            say([b"compare", file], f"results.json has no {member}")
    for made in out.iterdir():
        if made.suffix in (".html", ".json", ".csv", ".svg"):
            check_text([b"compare", file], made.read_bytes(), made.name)
        if made.suffix == ".csv":
            check_csv([b"compare", file], made.read_bytes())
    Page().feed((out / "report.html").read_text())
    return None


def main():
    posenc = Path(sys.argv[1]).resolve()
    names = NAMES if "--each" in sys.argv else NAMES[:12:2] + NAMES[12:]
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            one_name(posenc, os.fsencode(folder), name)
    for name in NAMES if "--each" in sys.argv else (b"".join(n for n in NAMES[:9] if b"\n" not in n)[:100],):
        with tempfile.TemporaryDirectory() as folder:
            one_comparison(posenc, os.fsencode(folder), name)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
