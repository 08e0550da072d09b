#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scores.py: logits of other programs, right and broken, and whether posenc diagnose names what was done to them

    tests/diagnose/scores.py build/default/posenc [--seed N] [--count 72] [--only K]

Shares nothing with posenc: slopes, buckets and masks are made here. Sizes are drawn from a seed, which is printed.
"""
import argparse
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is missing")
    sys.exit(77)

from ports import bf16


def slopes(H, rule="paper"):
    power = 2 ** int(math.floor(math.log2(H)))
    first = [2 ** (-8 * (h + 1) / power) for h in range(power)]
    more = [2 ** (-4 * (2 * h + 1) / power) for h in range(H - power)]
    paper = np.array(first + more)
    return {"paper": paper, "shifted": 2 * paper, "reversed": paper[::-1], "halved": paper / 2, "sign": -paper}[rule]


def bucket(t, n, most, both):
    """Key j - i = -t."""
    base = 0
    if both:
        n //= 2
        base = n * (t < 0)
        t = abs(t)
    t = max(t, 0)
    exact = n // 2
    if t < exact:
        return base + t
    return base + min(n - 1, exact + int(math.log(t / exact) / math.log(most / exact) * (n - exact) + 1e-9))


def packed(rng, L):
    """Which keys are of a query's own text, of two or three in a row."""
    text = np.searchsorted(np.sort(rng.choice(np.arange(3, L - 2), int(rng.integers(1, 3)), replace=False)), np.arange(L), "right")
    return text[:, None] == text[None, :]


def summed(q, k):
    """q times k, as float32 adds one channel after the other."""
    total = np.zeros((*q.shape[:-1], k.shape[-2]), np.float32)
    for c in range(q.shape[-1]):
        total += q[..., :, None, c].astype(np.float32) * k[..., None, :, c].astype(np.float32)
    return total.astype(np.float64)


class Port:
    def __init__(self, seed, number):
        rng = self.rng = np.random.default_rng([seed, number, 1])
        more = np.random.default_rng([seed, number, 3])
        H, L = int(rng.choice([2, 4, 8, 12, 16])), int(rng.choice([16, 24, 40, 64, 100]))
        B = int(rng.integers(1, 3))
        self.kind = ["f32", "bf16"][int(rng.integers(2))]
        self.content = rng.random() < 0.3
        D = 64
        q, k = (bf16(rng.standard_normal((B, H, L, D))) for _ in range(2))
        raw = q @ k.transpose(0, 1, 3, 2)
        self.q, self.k = q, k
        port_raw = summed(q, k) if more.random() < 0.4 else raw
        scale = 1 / math.sqrt(D)
        store = (lambda x: x.astype(np.float32).astype(np.float64)) if self.kind == "f32" else bf16
        self.before = store(raw * scale)
        x = port_raw * scale if self.content or (self.kind == "f32" and port_raw is not raw) else self.before
        t = np.arange(L)[:, None] - np.arange(L)[None, :]
        kinds = ["alibi", "t5", "none"]
        what = kinds[number % 3]
        fault = {"alibi": ["", "slopes", "scale", "mask", "temperature"], "t5": ["", "buckets", "scale", "mask", "buckets"],
                 "none": ["", "scale", "softcap", "mask", "temperature"]}[what][number // 3 % 5]
        self.causes = [fault] if fault else []
        self.call = ["--set", f"encoding={ {'alibi': 'alibi', 't5': 't5', 'none': 'nope'}[what]}"]
        bias = np.zeros((H, L, L))
        if what == "alibi":
            rule = str(rng.choice(["shifted", "reversed", "halved", "sign"])) if fault == "slopes" else "paper"
            bias = -slopes(H, rule)[:, None, None] * np.abs(t)
        if what == "t5":
            n, most, both = int(rng.choice([16, 32])), int(rng.choice([32, 64, 128])), bool(rng.integers(2))
            self.call += ["--set", f"num_buckets={n}", "--set", f"max_distance={most}", "--set", f"bidirectional={'yes' if both else 'no'}"]
            table = rng.standard_normal((n * 2 + 64, H)) * 2
            groups = [np.unique([bucket(int(d), n, most, side) for d in range(-L + 1, L)], return_inverse=True)[1] for side in (both, not both)]
            if fault == "buckets":
                both = not both
            bias = np.array([[table[bucket(int(d), n, most, both)] for d in row] for row in t]).transpose(2, 0, 1)
        if fault == "scale":
            x = x * float(rng.choice([math.sqrt(D), 1 / math.sqrt(D), 2, 0.5, 1.25]))
        if fault == "temperature":
            x = x * (1 + 0.1 * np.log(1 + np.floor((np.arange(L) + 1) / float(rng.choice([4, 8])))))[:, None]
        y = x + bias
        if fault == "softcap":
            cap = float(rng.choice([5, 10, 20, 30]))
            y = cap * np.tanh(y / cap)
            if more.random() < 0.5:  # the config asks for it once
                self.call += ["--set", f"softcap={cap:g}"]
                once, y = y, cap * np.tanh(y / cap)
        is_causal, window = rng.random() < 0.6 or fault == "mask", int(rng.integers(4, L // 2)) if rng.random() < 0.4 else 0
        seen = np.ones((L, L), bool)
        if is_causal:
            self.call += ["--set", "causal=yes"]
            seen = t >= 0
            if window:
                self.call += ["--set", f"window={window}"]
                seen &= t < window
        texts = packed(more, L) if is_causal and more.random() < 0.3 else None
        if texts is not None and fault == "mask":  # the port parts the texts, and should not
            seen &= texts
        elif fault == "mask":
            if window:
                seen = (t >= 0) & (t < window + int(rng.choice([-1, 1])))
            else:
                seen = t >= int(rng.choice([-1, 1]))
                seen[0, 0] = True
        if texts is not None and fault != "mask" and not self.content:  # the scores before are parted too
            seen &= texts
            self.before = np.where(texts, self.before, -1e9)
        self.rows = slice(-1, None) if fault in ("", "slopes", "buckets", "scale") and more.random() < 0.15 else slice(None)  # one step
        alone = lambda g: len(np.unique(g[t[-1][seen[-1]] + L - 1])) == seen[-1].sum()
        if what == "t5" and self.rows.start == -1 and any(map(alone, groups)):
            self.rows = slice(None)  # of a step whose keys all have buckets of their own nothing can be told
        if fault == "buckets":  # distances that are seen may have the same buckets one-sided and two-sided
            shown = [int(d) + L - 1 for d in np.unique(t[self.rows][seen[self.rows]])]
            if [tuple(g[shown] == g[i]) for g in groups[:1] for i in shown] == [tuple(g[shown] == g[i]) for g in groups[1:] for i in shown]:
                self.causes = []
        right = (raw * scale if self.content else self.before) + (0 if fault in ("slopes", "buckets") else bias)
        if "softcap" in " ".join(self.call):
            right = once
        rounding = math.sqrt(float(((store(y) - y)[..., seen] ** 2).mean())) + 1e-300
        self.ratio = math.inf if fault in ("mask", "slopes", "buckets") else math.sqrt(float(((y - right)[..., seen] ** 2).mean())) / rounding
        y = store(y)
        self.after = np.where(seen, y, -np.inf if rng.random() < 0.5 else -1e9)
        self.what = what

    def run(self, tool, folder, wrong=()):
        before, after, content = (os.path.join(folder, n) for n in ("before.npy", "after.npy", "qk.npz"))
        np.save(before, self.before[:, :, self.rows].astype(np.float32))
        np.save(after, self.after[:, :, self.rows].astype(np.float32))
        call = [tool, "diagnose", "--scores-after", after, "--json", *(wrong or self.call)]
        if self.content:
            np.savez(content, q=self.q[:, :, self.rows], k=self.k)
            call += ["-i", content]
            if self.what == "t5":
                call += ["--set", "scale=0.125"]
        else:
            call += ["--scores-before", before]
        self.shown = " ".join(call)
        done = subprocess.run(call, capture_output=True, text=True)
        if done.returncode not in (0, 1) or not done.stdout:
            return {"verdict": f"exit {done.returncode}: {done.stderr.strip()}", "departs": [], "alternatives": []}, done.returncode
        return json.loads(done.stdout), done.returncode


def judge(port, found, status):
    if not port.causes:
        return None if found["verdict"] == "same" and not found["departs"] and status == 0 else "a right port is not same"
    if port.ratio < 4 and found["verdict"] == "same":
        return None
    if found["verdict"] != "different" or status != 1:
        return "it is not different"
    named = set(found["departs"]) | set(sum((a["departs"] for a in found["alternatives"]), []))
    return None if set(port.causes) <= named else "the cause is not named"


BLOOM = {"model_type": "bloom", "hidden_size": 512, "n_head": 8, "n_layer": 1}
T5 = {"model_type": "t5", "d_model": 512, "num_heads": 8, "num_layers": 1, "d_kv": 64, "relative_attention_num_buckets": 32,
      "relative_attention_max_distance": 128}


def judge_configs(tool, folder, seed):
    """What is expected said by a config; how many answers are wrong."""
    rng, H, L, wrong = np.random.default_rng([seed, 2]), 8, 64, 0
    before, after, config = (os.path.join(folder, n) for n in ("before.npy", "after.npy", "config.json"))
    x, t = rng.standard_normal((1, H, L, L)), np.arange(L)[:, None] - np.arange(L)[None, :]
    table = rng.standard_normal((64, H))
    alibi = lambda rule: -slopes(H, rule)[:, None, None] * np.abs(t)
    t5 = lambda both: np.array([[table[bucket(int(d), 32, 128, both)] for d in row] for row in t]).transpose(2, 0, 1)
    np.save(before, x.astype(np.float32))
    for model, more, bias, departs in ((BLOOM, [], alibi("paper"), []), (BLOOM, [], alibi("shifted"), ["slopes"]),
                                       (T5, ["--tower", "encoder"], t5(True), []), (T5, ["--tower", "encoder"], t5(False), ["buckets"])):
        np.save(after, (x + bias).astype(np.float32))
        with open(config, "w") as f:
            json.dump(model, f)
        done = subprocess.run([tool, "diagnose", "--scores-before", before, "--scores-after", after, "--json", "--config", config, *more],
                              capture_output=True, text=True)
        named = json.loads(done.stdout)["departs"] if done.stdout else done.stderr
        if named != departs or done.returncode != bool(departs):
            wrong += 1
            print(f"config of {model['model_type']}: {named}, not {departs}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--count", type=int, default=75)
    parser.add_argument("--only", type=int)
    a = parser.parse_args()
    print(f"seed {a.seed}, {a.count} ports of scores", flush=True)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        wrong += judge_configs(a.tool, folder, a.seed) if a.only is None else 0
        for number in range(a.count) if a.only is None else [a.only]:
            port = Port(a.seed, number)
            found, status = port.run(a.tool, folder)
            why = judge(port, found, status)
            if not why and not port.causes and port.what != "none":
                found, status = port.run(a.tool, folder, ["--set", "encoding=nope"])
                why = None if found["verdict"] == "different" else "against a wrong config it does not differ"
            wrong += bool(why)
            if why or a.only is not None:
                print(f"port {number}: {why}\n  {port.kind} {port.after.shape} {port.what}, causes {port.causes}\n  says "
                      f"{ {k: found.get(k) for k in ('verdict', 'departs', 'found', 'residual', 'advice')} }\n  {port.shown}", flush=True)
    print(f"{a.count} ports of scores: {wrong} wrong answers")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
