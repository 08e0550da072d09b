#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""validation.py [--check] [FOLDER]: was `posenc compare` right? What docs/validation says

Reads what tools/validation_run.py kept of comparisons and of the longer and larger runs that they should foretell, and
prints: of the pairs that a comparison called settled the share that a long run has in the same order, at L and at 8 L;
Kendall's tau of the pairs that are apart by more than the resolution of both; the share of the recommendations that
held; and, from runs of many seeds, how often the 95 % intervals of 1, 2 and 3 seeds hold the difference of all, and how
often "settled" is said where there is no difference, and where there is one. docs/experiments.md, section 21.

A recommendation holds if in the long run none of the encodings that were trained there is better than the best of
those recommended (and of those "not excluded", where it is open) by more than the resolution of the comparison.

Few runs out of few: a mean of S seeds of 12 lies closer to that of all 12 than to the truth. Deviations are divided by
the ratio of the two standard deviations, from the variances between windows and between seeds in all runs.

--check tries this on numbers that are known. Standard library only.
"""
import argparse
import json
import math
import random
import re
import sys
from itertools import combinations
from pathlib import Path
from statistics import NormalDist, fmean, variance

ROOT = Path(__file__).resolve().parent.parent
STORED, DRAWS = 8, 4000
BUCKETS = {"L": "L/2..L", "8 L": "x8"}
LEAST = {"L": 0.01, "8 L": 0.05}  # resolution of an order (src/train/judge/stability.c)


# ---------------------------------------------------------------- intervals, as src/train/run/stats.c and spread.c

def student(freedom):
    """The 97.5 % quantile (Cornish and Fisher; within 0.002 from 6 degrees of freedom on)."""
    z = NormalDist().inv_cdf(0.975)
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))


def stored(at, ratio):
    """(variance, degrees of freedom) of spread.def for an encoding whose loss is so many times that at L."""
    rows = re.findall(r"^SPREAD\((.*)\)", (ROOT / "src/train/run/spread.def").read_text(), re.M)
    row = [float(x) for x in rows[1 if at == "L" else -1].split(",")]
    k = class_of(at, ratio)
    return row[2 * k] ** 2, row[2 * k + 1]


def class_of(at, ratio):
    return 0 if at == "L" or ratio <= 1.1 else 1 if ratio <= 1.4 else 2


def spreads(means, ratios, at):
    """(variance, degrees of freedom) of each encoding, from its means by seed and those of the others."""
    seeds, classes = len(means[0]), [class_of(at, r) for r in ratios]
    off = [[x - fmean(m) for x in m] for m in means]
    centres = [o for o, k in zip(off, classes) if k == 0]
    common = [fmean(o[s] for o in centres) if len(centres) > 1 else 0 for s in range(seeds)]
    own = []
    for o, k in zip(off, classes):
        lost = len(centres) / (len(centres) - 1) if k == 0 and len(centres) > 1 else 1
        squares = sum((x - c) ** 2 for x, c in zip(o, common))
        own.append((lost * squares / (seeds - 1), (seeds - 1) / lost) if seeds > 1 else (0, 0))
    for i, (v, n) in enumerate(own):
        before, free = stored(at, ratios[i])
        pool = [(before, STORED)] + [own[j] for j in range(len(own)) if j != i and classes[j] == classes[i]]
        known = sum(f for _, f in pool)
        prior = 1 / (1 / free + 1 / known)
        yield ((prior * sum(w * f for w, f in pool) / known + n * v) / (prior + n), prior + n)


def by_window(runs):
    return [fmean(column) for column in zip(*runs)]


def half_width(a, b, of_a, of_b):
    """Half of the interval of mean(a) - mean(b), each [seeds][windows], with spreads."""
    d = [x - y for x, y in zip(by_window(a), by_window(b))]
    parts = [(variance(d) / len(d), len(d) - 1), (of_a[0] / len(a), of_a[1]), (of_b[0] / len(b), of_b[1])]
    total = sum(v for v, _ in parts)
    return sum(v * student(f) for v, f in parts if v) / math.sqrt(total)


# ---------------------------------------------------------------- long runs

def loss(run, spec, at):
    return run["encodings"][spec]["buckets"][BUCKETS.get(at, at)]["loss"]


def windows(run, spec, at):
    return [[1e-4 * x for x in seed] for seed in run["encodings"][spec]["windows"][at]]


def resolution(run, a, b, at):
    """The least difference that counts between two encodings of one set of runs with one seed."""
    one = [next(spreads([[0]], [loss(run, e, at) / loss(run, e, "L")], at)) for e in (a, b)]
    return max(LEAST[at], half_width(windows(run, a, at), windows(run, b, at), *one))


def sign(run, a, b, at, least=0):
    d = loss(run, b, at) - loss(run, a, at)
    return 0 if abs(d) <= least else math.copysign(1, d)


def orders(short, long, at):
    """(settled pairs, those in the same order; pairs apart in both, the same order less the other) of one comparison."""
    order = next(o for o in short["stability"]["orders"] if o["at"] == at)
    settled = [(p["better"], p["worse"]) for p in order["pairs"] if p["state"] == "settled"]
    settled = [p for p in settled if set(p) <= set(long["encodings"])]
    signs = [[sign(run, a, b, at, resolution(run, a, b, at)) for run in (short, long)]
             for a, b in combinations(sorted(long["encodings"]), 2)]
    return (len(settled), sum(sign(long, a, b, at) > 0 for a, b in settled),
            sum(x * y != 0 for x, y in signs), sum(x * y for x, y in signs))


def lengths_of(need):
    """The buckets that a recommendation is about; none where it is about something else than the loss."""
    if need.startswith("inputs as long"):
        return ["L/2..L"]
    found = re.match(r"inputs (\d+)(?: to (\d+))? times as long", need)
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
    return [f"x{factor}" for factor in (2, 4, 8, 16) if first <= factor <= last]


def sentences(short, long):
    """[(bucket, confidence, held)] of what can be judged."""
    for r in short["recommendations"]:
        open_too = re.search(r"not excluded: ([^;]*)", r["because"])
        named = r["choose"] + (open_too[1].split(", ") if open_too else [])
        named = [e for e in named if e in long["encodings"]]
        for bucket in lengths_of(r["for"]):
            if named and r["confidence"] in ("settled", "a tie", "open"):
                least = next(x["smallest_difference"] for x in short["resolution"] if x["name"] == bucket)
                best = min(loss(long, e, bucket) for e in long["encodings"])
                yield bucket, r["confidence"], min(loss(long, e, bucket) for e in named) <= best + least


def share(part, whole):
    return f"{part} of {whole}" + (f" = {part / whole:.2f}" if whole else "")


def judge(kept):
    """Prints a row per comparison and what all of them say."""
    total, held = {at: [0] * 4 for at in BUCKETS}, []
    print("| comparison | longer run | settled pairs that hold at L | at 8 L | tau at L (pairs) | at 8 L | sentences that hold |")
    print("|---|---|---|---|---|---|---|")
    for name, short in sorted(kept.items()):
        for kind, long in long_runs(kept, name):
            rows = {at: orders(short, long, at) for at in BUCKETS}
            said = list(sentences(short, long))
            held += said
            total = {at: [x + y for x, y in zip(total[at], rows[at])] for at in BUCKETS}
            print("|", " | ".join([name, kind, *cells(rows), share(sum(s[2] for s in said), len(said))]), "|")
    print("| all | |", " | ".join(cells(total)), "|", share(sum(s[2] for s in held), len(held)), "|\n")
    for confidence in ("settled", "a tie", "open"):
        some = [s[2] for s in held if s[1] == confidence]
        print(f"sentences that say \"{confidence}\": {share(sum(some), len(some))} held")


def cells(rows):
    return [share(rows[at][1], rows[at][0]) for at in BUCKETS] + \
        [f"{rows[at][3] / rows[at][2]:.2f} ({rows[at][2]})" if rows[at][2] else "-" for at in BUCKETS]


def long_runs(kept, name):
    """(kind, its runs as one) of a comparison default-TEXT-L, where at least two encodings were trained."""
    kinds = {}
    for other, run in kept.items():
        found = re.fullmatch(rf"(x\d+(?:-wide)?)-{name.removeprefix('default-')}-\w+", other)
        if found and name.startswith("default-"):
            known = {e: r for e, r in run["encodings"].items() if e in kept[name]["encodings"]}
            kinds.setdefault(found[1], {}).update(known)
    return [(kind, {"encodings": e}) for kind, e in sorted(kinds.items()) if len(e) > 1]


# ---------------------------------------------------------------- many seeds

def finite(a, b, seeds, count):
    """Standard deviation of a mean of so many seeds and windows about that of all here / about the truth."""
    d = [[x - y for x, y in zip(p, q)] for p, q in zip(a, b)]
    S, W = len(d), len(d[0])
    of_seeds = max(0, variance([fmean(row) for row in d]) - variance(by_window(d)) / W / S)
    of_windows = variance(by_window(d))
    parts = [(of_windows / count, count / W), (of_seeds / seeds, seeds / S)]
    return math.sqrt(sum(v * (1 - f) for v, f in parts) / sum(v for v, _ in parts))


def draw(runs, seeds, some):
    return [[runs[s][w] for w in some] for s in seeds]


def interval(a, b, ratios, at):
    of_a, of_b = spreads([[fmean(r) for r in a], [fmean(r) for r in b]], ratios, at)
    return fmean(map(fmean, a)) - fmean(map(fmean, b)), half_width(a, b, of_a, of_b)


def is_settled(quarter, whole, least):
    """As order.c judges two levels."""
    if abs(whole) <= least or abs(quarter) <= least or whole * quarter < 0:
        return False
    shrunk = whole / quarter
    return not (shrunk < 1 and abs(whole) * shrunk**3 < least)


def many_seeds(whole, quarter, at, draws=DRAWS):
    """{seeds: (intervals that hold the difference, false alarms, power at 0.02, at 0.05)} of the two encodings."""
    first, second = sorted(whole["encodings"])
    ratios = [loss(whole, e, at) / loss(whole, e, "L") for e in (first, second)]
    levels = [[windows(run, e, at) for e in (first, second)] for run in (whole, quarter)]
    true = [fmean(map(fmean, a)) - fmean(map(fmean, b)) for a, b in levels]
    S, W, rows = len(levels[0][0]), len(levels[0][0][0]), {}
    for count in (1, 2, 3):
        rng, hits = random.Random(count), [0] * 4
        factor = finite(*levels[0], count, W // 2)
        for _ in range(draws):
            some = rng.sample(range(W), W // 2)
            seeds = rng.sample(range(S), count)
            value, half = interval(*(draw(x, seeds, some) for x in levels[0]), ratios, at)
            d = (value - true[0]) / factor
            early = fmean(x - y for x, y in zip(*(draw(z, seeds[:1], some)[0] for z in levels[1]))) - true[1]
            least = max(LEAST[at], half)
            hits[0] += abs(d) <= half
            for k, more in enumerate((0, 0.02, 0.05), 1):
                hits[k] += is_settled(early + more, d + more, least)
        rows[count] = [h / draws for h in hits]
    return rows


def judge_seeds(kept):
    for name in sorted(kept):
        if f"{name}-quarter" not in kept:
            continue
        print(f"\n{name}: {', '.join(sorted(kept[name]['encodings']))}\n\n| at | seeds | intervals that hold the difference | "
              "settled without a difference | with one of 0.02 | of 0.05 |\n|---|---|---|---|---|---|")
        for at in BUCKETS:
            for count, row in many_seeds(kept[name], kept[f"{name}-quarter"], at).items():
                print(f"| {at} | {count} |", " | ".join(f"{x:.3f}" for x in row), "|")


# ---------------------------------------------------------------- known numbers

def made(losses, seeds=1, count=60, spread=0.0, rng=None, pairs=(), said=()):
    """Runs as they are kept, with these losses at L and at 8 L."""
    def some(at):
        return [[round(1e4 * (at + shift + rng.gauss(0, 0.02) if rng else 1e4 * at)) for _ in range(count)]
                for shift in (rng.gauss(0, spread) if rng else 0 for _ in range(seeds))]
    encodings = {}
    for name, (at_L, beyond) in losses.items():
        runs = {"L": some(at_L), "8 L": some(beyond)}
        mean = {BUCKETS[at]: {"loss": fmean(map(fmean, runs[at])) / 1e4} for at in BUCKETS}
        encodings[name] = {"buckets": mean, "windows": runs}
    return {"encodings": encodings, "recommendations": list(said),
            "resolution": [{"name": b, "smallest_difference": 0.01} for b in BUCKETS.values()],
            "stability": {"orders": [{"at": at, "pairs": [{"better": a, "worse": b, "state": "settled"} for a, b in pairs]}
                                     for at in BUCKETS]}}


def check():
    said = [{"for": "inputs as long as trained (64 bytes)", "choose": ["a"], "confidence": "settled", "because": ""},
            {"for": "inputs 8 times as long", "choose": ["c"], "confidence": "open", "because": "not excluded: b"}]
    rng = random.Random(1)
    short = made({"a": (1, 2), "b": (1.1, 1.5), "c": (1.2, 1.5)}, pairs=(("a", "b"), ("b", "c")), said=said, rng=rng)
    long = made({"a": (0.9, 2), "b": (0.8, 1.5), "c": (1.1, 1.4)}, rng=rng)
    assert orders(short, long, "L") == (2, 1, 3, 1), orders(short, long, "L")
    assert [s[2] for s in sentences(short, long)] == [False, True]
    assert long_runs({"default-python-64": short, "x16-python-64-a": long}, "default-python-64")[0][0] == "x16"
    for freedom, t in ((6.3158, 2.4172), (10, 2.2281), (30, 2.0423)):
        assert abs(student(freedom) - t) < 0.002, (freedom, student(freedom))
    deviation = math.sqrt(stored("L", 1)[0])
    rows = [many_seeds(*(made({"a": (1, 1), "b": (1.1, 1.1)}, 12, 96, deviation, random.Random(k + offset))
                         for offset in (0, 100)), "L", 200) for k in range(12)]
    for count in (1, 2, 3):
        hold, alarms, *power = (fmean(r[count][k] for r in rows) for k in range(4))
        assert 0.92 < hold < 0.995 and alarms < 0.02 and power[0] <= power[1] and power[1] > 0.75, (count, hold, alarms, power)
    print("validation.py: orders, sentences and intervals are as they were made")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="try this on numbers that are known")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs/validation")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    kept = {p.stem: json.loads(p.read_text()) for p in sorted(arguments.folder.glob("*.json"))}
    if not kept:
        sys.exit(f"validation.py: {arguments.folder} holds no results; tools/validation_run.py makes them")
    judge(kept)
    judge_seeds(kept)


if __name__ == "__main__":
    main()
