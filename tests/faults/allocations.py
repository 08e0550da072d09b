#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""allocations.py [--each [--most N]] [--only WORD] POSENC FAULTS: memory that ends is one sentence and status 1

Runs each of the commands below once undisturbed, which counts its allocations, the libraries' and the C library's
among them, and then again with one of them failing: with --each every one, else some of every command, by a draw that
is the same each time; --most N takes N of those commands whose calls take seconds. A disturbed call must print and
write what the undisturbed one does, or end with status 1 and one sentence about memory. FAULTS is the library of
faults.c.
"""
import argparse
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
SENTENCE = re.compile(rb"posenc: error: [^\n]*not enough memory[^\n]*\n\Z")
SECONDS = 300  # of a call that takes some seconds at most
SOME = 3       # allocations of each command without --each
MOST = 500     # and with it, of a command of the second list, if --most says nothing else

CONFIG = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2,
          "max_position_embeddings": 131072, "rope_theta": 500000.0,
          "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                           "original_max_position_embeddings": 8192}}
TINY = {"encodings": "nope,alibi", "seeds": 1, "steps": 6, "length": 16, "reach": 2, "width": 16, "layers": 1, "heads": 2,
        "batch": 2, "learning-rate": 0.01, "windows": 8, "tasks": [], "extension": "none", "stability": "none"}

# The second list is for --each alone: its calls take seconds, and of each no more than --most allocations are drawn.
COMMANDS = """
list --json
list t5
list --models rope
inspect config.json --json
inspect SOURCE/tests/golden/gguf/llama31.gguf
properties t5
encode sinusoidal --length 16 --dim 8 -o table.npz
encode sinusoidal --length 16 --dim 8 -o table.csv
rotate -i rows.csv -o rotated.npz
attend alibi -i SOURCE/tests/golden/alibi__causal.npz -o out.npz --grad
explain rope --vector 1,2,3,4 --position 2
explain --config config.json
plot bias alibi
plot wavelengths --config config.json
plot bias alibi -o alibi.svg
compare text -o report --preset tiny.json --threads 1 --dry-run
"""
LONG = """
list rope --json
plot decay rope -o decay.csv
plot heatmap sinusoidal --length 10 --dim 8 -o heat.png
plot words rope --words "a b"
verify SOURCE/tests/golden --case timestep_embedding__odd.npz --json
completion bash -- posenc list al
help --man
tutorial 001
compare text -o report --preset tiny.json --threads 1
compare text -o report --preset tiny.json --threads 1 --json
"""


def prepare(folder):
    (folder / "config.json").write_text(json.dumps(CONFIG))
    (folder / "tiny.json").write_text(json.dumps(TINY))
    (folder / "rows.csv").write_text("1,2,3,4\n5,6,7,8\n")
    words = random.Random(3)
    (folder / "text").write_text(" ".join(words.choice("and the waters prevailed upon earth".split()) for _ in range(3000)))


def without_times(data):
    """Results but for what two runs may differ in: times, and pages that name them."""
    try:
        results = json.loads(data)
    except ValueError:
        return data

    def clean(value):
        if isinstance(value, dict):
            return {k: clean(v) for k, v in value.items() if k != "time" and "second" not in k}
        return [clean(v) for v in value] if isinstance(value, list) else value
    return clean(results)


def printed(out):
    """Of a table the ratios of times (x1.18) may differ, too."""
    seen = without_times(out)
    return re.sub(rb"\bx\d+\.\d+", b"x", seen) if isinstance(seen, bytes) else seen


def contents(path):
    """What a file holds, as far as two runs write the same."""
    if path.suffix != ".npz":
        return without_times(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist() if "/time." not in name}


def call(asked, words, **faults):
    """What one call leaves behind: status, standard output, standard error, files."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        prepare(folder)
        before = set(folder.iterdir())
        environment = dict(os.environ, LC_ALL="C", TERM="dumb", OMP_NUM_THREADS="1", LD_PRELOAD=str(asked.faults),
                           **{k: str(v) for k, v in faults.items()})
        try:
            done = subprocess.run([asked.posenc, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, timeout=SECONDS, check=False)
            status, out, err = done.returncode, done.stdout, done.stderr
        except subprocess.TimeoutExpired:
            status, out, err = f"still running after {SECONDS} s", b"", b""
        made = {str(p.relative_to(folder)): contents(p) for p in sorted(folder.rglob("*"))
                if p.is_file() and p not in before and p.name != "report.html"}
    return status, out, err, made


def fault_of(peace, disturbed):
    """What is wrong with a disturbed call, or None."""
    status, out, err, made = disturbed
    if status == 1:
        left = [name for name in made if ".tmp." in name and "/" not in name]
        if not SENTENCE.search(err) or err.count(b"posenc: error:") != 1:
            return f"standard error says {err[-300:]!r}"
        return f"{left[0]} is left" if left else None
    if status != peace[0]:
        return f"status {status}; standard error says {err[-300:]!r}"
    if printed(out) != printed(peace[1]):
        return "status 0 and another output"
    return None if made == peace[3] else "status 0 and other files"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", action="store_true")
    parser.add_argument("--most", type=int, default=MOST)
    parser.add_argument("--only", default="")
    parser.add_argument("posenc", type=Path)
    parser.add_argument("faults", type=Path)
    asked = parser.parse_args()
    asked.posenc, asked.faults = asked.posenc.resolve(), asked.faults.resolve()
    wrong = calls = 0
    draw = random.Random(22)
    for line in filter(None, (COMMANDS + LONG * asked.each).splitlines()):
        if asked.only not in line:
            continue
        words = shlex.split(line.replace("SOURCE", str(SOURCE)))
        with tempfile.TemporaryDirectory() as folder:
            count = Path(folder) / "count"
            peace = call(asked, words, FAULT_COUNT=count)
            if peace[0]:
                sys.exit(f"allocations.py: posenc {line}: undisturbed it ends with {peace[0]}: {peace[2].decode()}")
            total = int(count.read_text())
        chosen = list(range(1, total + 1))
        most = SOME if not asked.each else asked.most if line in LONG else total
        chosen = sorted(draw.sample(chosen, min(most, total)))
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            ends = list(pool.map(lambda n: call(asked, words, FAULT_ALLOCATION=n), chosen))
        faults = [(n, fault) for n, end in zip(chosen, ends) if (fault := fault_of(peace, end))]
        for n, fault in faults[:5]:
            print(f"posenc {line}: allocation {n} of {total}: {fault}")
        print(f"{len(faults):5} wrong of {len(chosen):6} of {total:7} allocations: posenc {line}", flush=True)
        calls, wrong = calls + len(chosen), wrong + len(faults)
    print(f"{calls} calls, {wrong} wrong")
    return 1 if wrong or not calls else 0


if __name__ == "__main__":
    sys.exit(main())
