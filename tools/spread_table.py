#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spread_table.py RESULTS.json... [-o src/train/run/spread.def]: how much losses vary between seeds, measured

From comparisons with several seeds (at least four) of several encodings: the table that intervals use where a
comparison has few seeds. Per bucket and class of encodings (loss / loss at L up to 1.1, up to 1.4, above): the root
of the pooled variance between seeds, without what is common to all encodings, and as degrees of freedom how alike the
variances of the encodings are (Smyth 2004, section 6.2: by the scatter of their logarithms; 3 to 30). A class that is
not in the files keeps the row that it has. Prints also, of the tasks, what belongs into RATE_DEVIATION and
RATE_FREEDOM of spread.c. --check tries this on numbers that are known. Standard library only.

With docs/validation/seeds-TEXT-quarter.json of several texts instead: the rows up to L alone, the root of the mean of the
texts' variances. Seeds differ by ten times as much on one text as on another, so one text says little of the next. Two
encodings show no more: beyond L one of them breaks, and how alike variances are is not seen.
"""
import argparse
import json
import math
import random
import re
import sys
from pathlib import Path

TABLE = Path(__file__).resolve().parent.parent / "src/train/run/spread.def"
AT_L, LIMITS, FEWEST = 1, (1.1, 1.4), 3


def mean(x):
    return sum(x) / len(x)


def digamma(x):
    return digamma(x + 1) - 1 / x if x < 8 else math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


def trigamma(x):
    return trigamma(x + 1) + 1 / x**2 if x < 8 else 1 / x + 1 / (2 * x**2) + 1 / (6 * x**3) - 1 / (30 * x**5)


def pool(spreads):
    """[(variance, its degrees of freedom)] -> deviation, degrees of freedom of the scatter."""
    variance = sum(v * n for v, n in spreads) / sum(n for _, n in spreads)
    if len(spreads) < FEWEST:
        return math.sqrt(variance), FEWEST
    logs = [math.log(v) - digamma(n / 2) + math.log(n / 2) for v, n in spreads]
    scatter = sum((x - mean(logs)) ** 2 for x in logs) / (len(logs) - 1) - mean([trigamma(n / 2) for _, n in spreads])
    low, high = FEWEST, 30
    while high - low > 0.1:  # trigamma falls
        middle = (low + high) / 2
        low, high = (middle, high) if trigamma(middle / 2) > scatter else (low, middle)
    return math.sqrt(variance), round(low)


def spreads_of(losses, bucket):
    """{encoding: [seed][bucket]} -> [(class, variance, degrees of freedom)] of one bucket."""
    found = []
    means = {e: [run[bucket] for run in runs] for e, runs in losses.items()}
    ratio = {e: mean(means[e]) / mean([run[AT_L] for run in runs]) for e, runs in losses.items()}
    group = {e: 0 if bucket <= AT_L else sum(ratio[e] > limit for limit in LIMITS) for e in losses}
    centres = [e for e in losses if group[e] == 0]
    off = {e: [y - mean(means[e]) for y in means[e]] for e in losses}
    for e in losses:
        seeds, share = len(means[e]), 1.0
        common = [0] * seeds
        if len(centres) > 1:
            common = [mean([off[c][s] for c in centres]) for s in range(seeds)]
            share = 1 - 1 / len(centres) if e in centres else 1.0
        squares = sum((x - c) ** 2 for x, c in zip(off[e], common))
        found.append((group[e], squares / (seeds - 1) / share, (seeds - 1) * share))
    return found


def rates_of(results):
    """Deviations of the logits of right answers above chance, per task, encoding and length."""
    found = []
    for task in results["tasks"]:
        for cell in task["encodings"]:
            for length in cell.get("lengths", []):
                seeds = [x for x in length["accuracy_by_seed"] if x is not None]
                shares = [(x - task["chance"]) / (1 - task["chance"]) for x in seeds]
                if len(seeds) > 1 and 0.03 < mean(shares) < 0.97:
                    q = mean(shares)
                    variance = sum((x - q) ** 2 for x in shares) / (len(seeds) - 1)
                    found.append((max(variance, 1e-6) / (q * (1 - q)) ** 2, len(seeds) - 1))
    return found


def read(path):
    results = json.loads(Path(path).read_text())
    runs = {e["encoding"]: [r["loss"] for r in e["runs"]] for e in results["encodings"] if not e["diverged"]}
    seeds = min(len(r) for r in runs.values())
    if seeds < 2:
        sys.exit(f"spread_table.py: {path} has one seed; give results of --seeds 4 or more")
    return results, runs, seeds


def table_of(files):
    """[losses] -> {(bucket, class): (deviation, freedom)}"""
    found = {}
    for losses in files:
        for bucket in range(len(next(iter(losses.values()))[0])):
            for group, variance, freedom in spreads_of(losses, bucket):
                found.setdefault((bucket, group), []).append((variance, freedom))
    return {at: pool(spreads) for at, spreads in found.items()}


def across_texts(kept):
    """[what validation_run.py keeps] -> {(bucket, 0): (deviation, None)} up to L, where encodings are told from the seed."""
    found = {}
    for run in kept:
        for bucket, name in enumerate(("0..L/2", "L/2..L")):
            own = [e["buckets"][name]["spread"]["own_deviation"] for e in run["encodings"].values()]
            found.setdefault((bucket, 0), []).append(mean([x**2 for x in own]))
    return {at: (math.sqrt(mean(variances)), None) for at, variances in found.items()}


def write(path, table, words):
    text = path.read_text()
    rows = [[float(x) for x in row.split(",")] for row in re.findall(r"^SPREAD\((.*)\)", text, re.M)]
    for (bucket, group), (deviation, freedom) in table.items():
        row = rows[min(bucket, len(rows) - 1)]
        row[2 * group : 2 * group + 2] = deviation, freedom or row[2 * group + 1]
    lines = ["SPREAD(" + ", ".join(f"{r[i]:.4f}, {r[i + 1]:.0f}" for i in (0, 2, 4)) + ")" for r in rows]
    head = text[: text.index("SPREAD(")]
    if words:
        head = re.sub(r" \* Measured:.*?\n \*/", lambda _: f" * Measured: {words}\n */", head, flags=re.S)
    path.write_text(head + "\n".join(lines) + "\n")


def check():
    draw = random.Random(1)
    losses = {}
    for e in range(40):
        own = 0.01 * math.sqrt(6 / sum(draw.gauss(0, 1) ** 2 for _ in range(6)))
        losses[f"steady{e}"] = [[2 + own * draw.gauss(0, 1)] * 3 for _ in range(12)]
    for e in range(4):
        losses[f"moving{e}"] = [[2, 2, 4 + draw.gauss(0, 0.3)] for _ in range(12)]
    for runs in losses.values():  # what all have in common must not count
        for s, run in enumerate(runs):
            run[:] = [x + 0.1 * (s % 2) for x in run]
    table = table_of([losses])
    steady, moving = table[(2, 0)], table[(2, 2)]
    is_right = 0.009 < steady[0] < 0.015 and 4 <= steady[1] <= 10 and 0.22 < moving[0] < 0.38
    rows = re.findall(r"^SPREAD\(([^()]*)\)$", TABLE.read_text(), re.M)
    texts = [{"encodings": {e: {"buckets": {b: {"spread": {"own_deviation": x}} for b in ("0..L/2", "L/2..L")}} for e in "ab"}}
             for x in (0.001, 0.007)]
    is_right = is_right and abs(across_texts(texts)[(AT_L, 0)][0] - 0.005) < 1e-9
    sys.exit(0 if is_right and len(rows) == 5 and all(len(r.split(",")) == 6 for r in rows) else f"wrong: {table}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*")
    parser.add_argument("-o", type=Path, help="the table to write; without it nothing is written")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.check:
        check()
    if not args.results:
        parser.error("give results.json of comparisons with several seeds")
    files, words, rates = [], [], []
    kept = [json.loads(Path(path).read_text()) for path in args.results]
    if all(isinstance(run["encodings"], dict) for run in kept):
        args.results, table = [], across_texts(kept)
    for path in args.results:
        results, losses, seeds = read(path)
        files.append(losses)
        rates += rates_of(results)
        s = results["settings"]
        words.append(
            f"{results['text']['name']}, {s['steps']} steps, L = {s['L']}, {seeds} seeds of {len(losses)} encodings"
        )
    table = table_of(files) if files else table
    for (bucket, group), (deviation, freedom) in sorted(table.items()):
        print(f"bucket {bucket} class {group}: deviation {deviation:.4f}, freedom {freedom}")
    if rates:
        print("rates: deviation %.2f, freedom %d, from %d cells" % (*pool(rates), len(rates)))
    if args.o:
        write(args.o, table, "; ".join(words) + "." if words else "")


main()
