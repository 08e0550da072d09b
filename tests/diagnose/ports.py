#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ports.py: rotations of other programs, right and broken, and whether posenc diagnose names what is wrong

    tests/diagnose/ports.py build/default/posenc [--seed N] [--count 330] [--only K] [--keep DIR]

Shares nothing with posenc: frequencies, pairs and positions are made here, in float64, from the formulas of the papers.
Sizes and settings are drawn from a seed, which is printed. A port is a config, what the port does instead (nothing, one
fault, or two), and tensors before and after. A fault whose rms difference from the right rotation is below four times the
rounding of the dump cannot be heard: there the tool must say `same`, or list the cause among the alternatives.
"""
import argparse
import json
import math
import os
import resource
import struct
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    print("skipped: NumPy is missing")
    sys.exit(77)

# ---------------------------------------------------------------- the rotation, once more ----------


def yarn(w, base, d, factor, length, truncate=True):
    """Peng et al. 2023: pairs that turn often stay, the others are slowed, between them a ramp."""
    low, high = (d * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(base)) for turns in (32, 1))
    low, high = (math.floor(low), math.ceil(high)) if truncate else (low, high)
    low, high = max(low, 0), min(high, d - 1)
    high += 0.001 if low == high else 0
    ramp = np.clip((np.arange(len(w)) - low) / (high - low), 0, 1)
    return w / factor * ramp + w * (1 - ramp)


def llama3(w, factor, low, high, length):
    smooth = np.clip((length * w / (2 * math.pi) - low) / (high - low), 0, 1)
    return w * ((1 - smooth) / factor + smooth)


def frequencies(c, longest):
    """The frequencies of a config, and the factor on cosine and sine."""
    d, base, f = c["dim"], c["base"], c.get("factor", 1.0)
    index = np.arange(0, d, 2) / c.get("exponent", d)
    if c["schedule"] == "ntk":
        base = base * c["alpha"] ** (d / (d - 2))
    if c["schedule"] == "dynamic":
        base = base * (f * max(longest, c["length"]) / c["length"] - (f - 1)) ** (d / (d - 2))
    w = base ** -index
    if c.get("in_float32"):  # as transformers has it: 1.0 / (base ** (arange(0, d, 2).float() / d))
        w = (np.float32(1) / np.float32(base) ** index.astype(np.float32)).astype(np.float64)
    if c["schedule"] == "linear":
        w = w / f
    if c["schedule"] == "yarn":
        return yarn(w, base, d, f, c["length"]), 0.1 * math.log(f) + 1
    if c["schedule"] == "llama3":
        w = llama3(w, f, 1, 4, c["length"])
    if c["schedule"] == "uneven":  # a list of factors, as LongRoPE has, that nobody says
        w = w / np.linspace(1, f, len(w))
    return w, 1.0


def bf16(x):
    bits = np.asarray(x, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32).astype(np.float64)


def angles(w, p, kind):
    """[..., M] from positions [...]."""
    if kind == "exact":
        return p[..., None] * w
    w32, p32 = w.astype(np.float32), p.astype(np.float32)
    if kind == "float32":
        return (p32[..., None] * w32).astype(np.float64)
    if kind == "bf16":  # all of it in bfloat16, as model.to(bfloat16) does
        return bf16(bf16(p32)[..., None] * bf16(w32))
    return p[..., None] * bf16(w32)  # bf16 frequencies


def axis_of(c, m):
    """Which coordinate each of m pairs follows."""
    s, rule = c["sections"], c["axis_rule"]
    if rule == "sections":
        return np.repeat(np.arange(len(s)), s)
    at = np.zeros(m, int)
    for i in range(m):
        if i % 3 and i < 3 * s[i % 3]:
            at[i] = i % 3
    return at


def rotate(x, p, c):
    """x [B,H,L,D], p [B,L] or [B,L,N], as config c says."""
    p = np.asarray(p, np.float64)
    w, size = frequencies(c, p.max() + 1)
    size = {"once": size, "twice": size * size, "never": 1.0}[c.get("magnitude", "once")]
    if "sections" in c:
        at = axis_of(c, len(w))
        a = sum(angles(w * (at == n), p[..., n], c["angles"]) for n in range(p.shape[-1]))
    else:
        a = angles(w, p, c["angles"])
    a = a[:, None] * (-1 if c["direction"] == "inverse" else 1)
    d, o, y = c["dim"], c["offset_dim"], x.copy()
    m = d // 2
    first, second = {"half": (np.arange(m), np.arange(m) + m), "interleaved": (2 * np.arange(m), 2 * np.arange(m) + 1)}[c["layout"]]
    to_first, to_second = first, second
    if c.get("layout_out", c["layout"]) != c["layout"]:
        to_first, to_second = {"half": (np.arange(m), np.arange(m) + m), "interleaved": (2 * np.arange(m), 2 * np.arange(m) + 1)}[c["layout_out"]]
    u, v = x[..., o + first], x[..., o + second]
    y[..., o + to_first] = size * (u * np.cos(a) - v * np.sin(a))
    y[..., o + to_second] = size * (v * np.cos(a) + u * np.sin(a))
    return y


# ---------------------------------------------------------------- drawing --------------------------


def draw(rng):
    """A config as it should be."""
    D = int(rng.choice([64, 80, 96, 128]))
    d = int(rng.choice([D, D, D, D // 2, D // 4]))
    c = dict(D=D, dim=d, offset_dim=int(rng.choice([0, 0, D - d])), layout=str(rng.choice(["half", "interleaved"])),
             base=float(rng.choice([1e4, 1e4, 5e5, 1e6, 1.5e5, float(rng.integers(2, 90)) * 1e4])), schedule="default",
             direction="forward", angles=str(rng.choice(["exact", "float32"])))
    c["in_float32"] = c["angles"] == "float32" and bool(rng.integers(2))
    c["schedule"] = str(rng.choice(["default", "default", "default", "linear", "ntk", "yarn", "llama3", "dynamic"]))
    if c["schedule"] == "ntk":
        c["alpha"] = float(rng.choice([2, 4, 8]))
    elif c["schedule"] != "default":
        c["factor"] = float(rng.choice([2, 4, 8, 16]))
    if c["schedule"] in ("yarn", "llama3", "dynamic"):
        c["length"] = int(rng.choice([256, 1024, 4096, 8192]))
    return c


def settings(c):
    names = dict(layout=c["layout"], dim=c["dim"], offset_dim=c["offset_dim"], base=repr(c["base"]), schedule=c["schedule"])
    names.update({k: c[k] for k in ("factor", "alpha") if k in c})
    if c["schedule"] in ("yarn", "llama3"):
        names["original_length"] = c["length"]
    if c["schedule"] == "llama3":
        names.update(low_freq_factor=1, high_freq_factor=4)
    if c["schedule"] == "dynamic":
        names["max_length"] = c["length"]
    if "sections" in c:
        names.update(axes=3, axis_rule=c["axis_rule"], sections=":".join(map(str, c["sections"])))
    if c["direction"] != "forward":
        names["direction"] = c["direction"]
    if c.get("layout_out", c["layout"]) != c["layout"]:
        names["layout_out"] = c["layout_out"]
    return [word for k, v in names.items() for word in ("--set", f"{k}={v}")]


def other(rng, values, not_this):
    return [v for v in values if v != not_this][int(rng.integers(len([v for v in values if v != not_this])))]


# Each fault: changes config or positions of the port, and gives the names of which one must be said. None: not for this.
def wrong_layout(rng, c, p):
    if rng.random() < 0.3:
        c["layout_out"] = other(rng, ["half", "interleaved"], c["layout"])
    else:
        c["layout"] = other(rng, ["half", "interleaved"], c["layout"])
    return "layout", p


def wrong_base(rng, c, p):
    c["base"] = float(other(rng, [1e4, 5e5, 1e6, 1e5, 2e4, round(c["base"] * float(rng.uniform(1.5, 20)), -3)], c["base"]))
    return "base", p


def wrong_offset(rng, c, p):
    return "positions", p + int(rng.choice([-1, 1, 2, int(rng.integers(3, 200))]))


def wrong_direction(rng, c, p):
    c["direction"] = "inverse"
    return "direction", p


def wrong_factor(rng, c, p):
    key = "alpha" if c["schedule"] == "ntk" else "factor"
    if key not in c or c["schedule"] == "default":
        return None
    c[key] = float(other(rng, [2, 3, 4, 6, 8, 16, 32], c[key]))
    return "factor", p


def wrong_schedule(rng, c, p):
    before = c["schedule"]
    if before != "default" and rng.random() < 0.7:
        c["schedule"] = "default"
        return "schedule", p
    c["schedule"] = other(rng, ["linear", "yarn", "llama3", "uneven"], before)
    c.setdefault("factor", float(rng.choice([2, 4, 8])))
    c.setdefault("length", int(rng.choice([1024, 4096, 8192])))
    return "schedule", p


def wrong_dim(rng, c, p):
    if "sections" in c:
        return None
    c["dim"] = int(other(rng, [c["D"], c["D"] // 2, c["D"] // 4], c["dim"]))
    c["offset_dim"] = 0 if c["offset_dim"] == 0 else c["D"] - c["dim"]
    return "dim", p


def wrong_magnitude(rng, c, p):
    if c["schedule"] != "yarn":
        return None
    c["magnitude"] = str(rng.choice(["twice", "never"]))
    return "magnitude", p


def low_angles(rng, c, p):
    c["angles"] = str(rng.choice(["bf16", "bf16 frequencies"]))
    return "angles", p


def reset_positions(rng, c, p):
    if p.ndim > 2:
        return None
    at = int(rng.integers(p.shape[1] // 4 + 1, p.shape[1]))
    q = p.copy()
    q[:, at:] -= q[:, at:at + 1]
    return "positions", q


def packed_positions(rng, c, p):
    if p.ndim > 2:
        return None
    q = p.copy()
    for at in sorted(rng.integers(2, p.shape[1] - 1, 3)):
        q[:, at:] -= q[:, at:at + 1]
    return "positions", q


def padded_positions(rng, c, p):
    """Counted from the first token that is no padding; padding has 0 or 1."""
    if p.ndim > 2:
        return None
    padding = rng.integers(1, p.shape[1] // 2, p.shape[0])
    return "positions", np.where(np.arange(p.shape[1]) < padding[:, None], int(rng.integers(2)), np.arange(p.shape[1]) - padding[:, None]).astype(float)


def doubled_positions(rng, c, p):
    return "positions", 2 * p


def repeated_positions(rng, c, p):
    return ("positions", p // 2) if p.ndim == 2 else None


def item_positions(rng, c, p):
    if p.shape[0] < 2 or p.ndim > 2:
        return None
    return "positions", p + rng.integers(1, 50, (p.shape[0], 1)) * np.arange(p.shape[0])[:, None]


def wrong_axes(rng, c, p):
    if "sections" not in c:
        return None
    c["axis_rule"] = other(rng, ["sections", "interleaved_sections"], c["axis_rule"])
    return "axes", p


FAULTS = [wrong_layout, wrong_base, wrong_offset, wrong_direction, wrong_factor, wrong_schedule, wrong_dim, wrong_magnitude, low_angles,
          reset_positions, doubled_positions, repeated_positions, item_positions, packed_positions, padded_positions, wrong_axes]
# Two at once: those that do not hide each other.
TWO = [wrong_layout, wrong_base, wrong_offset, wrong_direction, wrong_magnitude, wrong_factor, low_angles, reset_positions]

# ---------------------------------------------------------------- files ----------------------------


def stored(x, kind):
    return x.astype({"f32": np.float32, "f16": np.float16}[kind]).astype(np.float64) if kind != "bf16" else bf16(x)


def write_safetensors(path, arrays, kind):
    header, blobs, at = {}, [], 0
    for name, x in arrays.items():
        raw = x.astype({"f32": "<f4", "f16": "<f2"}[kind]).tobytes() if kind != "bf16" else (x.astype(np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
        header[name] = {"dtype": kind.upper(), "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        blobs.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def write(path, arrays, kind):
    if path.endswith(".safetensors"):
        write_safetensors(path, arrays, kind)
    elif path.endswith(".npz"):
        np.savez(path, **{k: x.astype(np.float16 if kind == "f16" else np.float32) for k, x in arrays.items()})
    else:
        np.save(path, next(iter(arrays.values())).astype(np.float16 if kind == "f16" else np.float32))


# ---------------------------------------------------------------- one port -------------------------


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Port:
    def __init__(self, seed, number):
        rng = self.rng = np.random.default_rng([seed, number])
        self.number, self.seconds = number, 0  # of the longest call
        self.right = draw(rng)
        is_axes = number % 9 == 8
        if is_axes:
            D = self.right["D"]
            self.right.update(dim=D, offset_dim=0, schedule="default", layout="half", axis_rule=str(rng.choice(["sections", "interleaved_sections"])))
            third = D // 2 // 3
            self.right["sections"] = [D // 2 - 2 * third, third, third]
        B, L = int(rng.choice([1, 1, 2])), int(round(math.exp(rng.uniform(math.log(16), math.log(2000)))))
        self.kind = ["f32", "bf16", "f16"][int(rng.integers(3))]
        H = int(rng.choice([2, 4, 8, 16, 32, 64]))
        while B * H * L * self.right["D"] > 3e6 and H > 2:
            H //= 2
        self.H = H
        p = np.tile(np.arange(L, dtype=float), (B, 1))
        if is_axes:
            side = max(2, int(math.sqrt(L)))
            p = np.stack([np.zeros((B, L)), p // side, p % side], -1) + float(rng.integers(0, 20))
        self.start = 0 if is_axes else int(rng.choice([0, 0, 0, 7, 100]))
        self.p = p + self.start
        self.port, q, self.causes = dict(self.right), self.p, []
        kinds = [] if number % 5 == 0 else [FAULTS[number % len(FAULTS)]]
        if number % 5 == 4:
            kinds = list(rng.permutation(np.array(TWO, object))[:2])
        for fault in kinds:
            done = fault(rng, self.port, q)
            while not done:  # not for this config: another one
                done = FAULTS[int(rng.integers(len(FAULTS)))](rng, self.port, q)
            self.causes.append(done[0])
            q = done[1]
        q = np.maximum(q, 0) if q.min() >= 0 else q
        names = ["q", "k"][:int(rng.integers(1, 3))] if rng.random() < 0.8 else ["k"]
        self.before = {n: stored(rng.standard_normal((B, H if n == "q" else max(2, H // 2), L, self.right["D"])), self.kind) for n in names}
        exact = {n: rotate(x, q, self.port) for n, x in self.before.items()}
        self.after = {n: stored(y, self.kind) for n, y in exact.items()}
        kind = "exact" if "angles" in self.causes or not self.causes else self.port["angles"]  # float32 is no fault
        wanted = {n: rotate(x, self.p, dict(self.right, angles=kind)) for n, x in self.before.items()}
        square = lambda a, b: sum(float(((a[n] - b[n]) ** 2).sum()) for n in a)
        self.rounding = math.sqrt(square(self.after, exact)) + 1e-300
        self.ratio = math.sqrt(square(exact, wanted)) / self.rounding
        self.is_strict = self.port["angles"] == "float32" and not self.causes and number % 10 == 5
        if self.is_strict:
            self.causes = ["angles"]
        if "angles" in self.causes and len(self.causes) > 1:  # beside the other cause it may not be heard
            other_angles = {n: rotate(x, q, dict(self.port, angles="exact")) for n, x in self.before.items()}
            if math.sqrt(square(exact, other_angles)) < 4 * self.rounding:
                self.causes.remove("angles")
        for cause, keys in (("factor", ("factor", "alpha")), ("schedule", ("schedule", "factor", "alpha", "length"))):
            if cause in self.causes and len(self.causes) > 1:  # dynamic scaling below its length is none
                other_port = dict(self.port, **{k: self.right[k] for k in keys if k in self.right})
                if math.sqrt(square(exact, {n: rotate(x, q, other_port) for n, x in self.before.items()})) < 4 * self.rounding:
                    self.causes.remove(cause)
        if self.port["schedule"] == "uneven" and "schedule" in self.causes:  # frequencies that nobody says have neither
            self.causes = [x for x in self.causes if x not in ("base", "factor")]
        # positions divided and linear scaling are one rotation, and so are doubled ones and frequencies that nobody says:
        # then one of the two names both
        steps = np.diff(q if q.ndim == 2 else q[..., -1]) * 1.0
        is_other_step = "positions" in self.causes and np.median(steps) not in (0, 1)
        self.is_one = is_other_step and len(self.causes) > 1 and bool({"linear", "uneven"} & {self.port["schedule"], self.right["schedule"]})

    def run(self, tool, folder, right=None):
        rng = self.rng
        ending = str(rng.choice([".npy", ".npz", ".safetensors"])) if len(self.before) == 1 else str(rng.choice([".npz", ".safetensors"]))
        before, after = (os.path.join(folder, n + ending) for n in ("k" if list(self.before) == ["k"] else "before", "after"))
        is_blhd = rng.random() < 0.3
        for path, arrays in ((before, self.before), (after, self.after)):
            write(path, {n: x.transpose(0, 2, 1, 3) if is_blhd else x for n, x in arrays.items()}, self.kind)
        call = [tool, "diagnose", "--before", before, "--after", after, "--json", *settings(right or self.right)]
        call += ["--heads-layout", "blhd"] * is_blhd
        if self.is_strict:
            call += ["--set", "angles=exact"]
        if self.p.ndim > 2:
            np.save(os.path.join(folder, "positions.npy"), self.p)
            call += ["--positions", os.path.join(folder, "positions.npy")]
        elif self.start:
            call += ["--offset", str(self.start)]
        self.call = " ".join(call)
        before = seconds_of_children()
        done = subprocess.run(call, capture_output=True, text=True)
        self.seconds = max(self.seconds, seconds_of_children() - before)
        if done.returncode not in (0, 1) or not done.stdout:
            return {"verdict": f"exit {done.returncode}: {done.stderr.strip()}", "departs": [], "alternatives": []}, done.returncode
        return json.loads(done.stdout), done.returncode

    def judge(self, found, status):
        """What is wrong with the answer; None."""
        named = set(found["departs"])
        listed = set(sum((a["departs"] for a in found["alternatives"]), []))
        causes = set(self.causes)
        if not causes:
            return None if found["verdict"] == "same" and not named and status == 0 else "a right port is not same"
        if self.ratio < 4:
            return None if found["verdict"] == "same" or causes <= listed | named else "below four roundings, neither same nor listed"
        if found["verdict"] != "different" or status != 1:
            return "it is not different"
        if causes <= named or (self.is_one and causes & (named | listed)):
            return None
        if any(causes <= set(a["departs"]) for a in found["alternatives"]):
            return None
        return "the cause is not named"


# ---------------------------------------------------------------- angles of each type --------------


def angles_of_types(w, p):
    """Angles by the type that they were computed in; ggml multiplies one float32 angle from pair to pair."""
    f16 = lambda x: np.asarray(x, np.float16).astype(np.float64)
    step, theta, ggml = np.float32(w[1]), p.astype(np.float32), []
    for _ in w:
        ggml.append(theta.astype(np.float64))
        theta = (theta * step).astype(np.float32)
    return {"exact": p[:, None] * w, "float32": angles(w, p, "float32"), "bfloat16": angles(w, p, "bf16"),
            "float16": f16(f16(p)[:, None] * f16(w)), "ggml": np.stack(ggml, -1)}


def judge_types(tool, folder, seed):
    """Each type named, with a config and without one; how many are not."""
    rng, D, L, wrong = np.random.default_rng([seed, 2]), 64, 600, 0
    before, after = (os.path.join(folder, n + ".npy") for n in ("before", "after"))
    config = os.path.join(folder, "config.json")
    q = stored(rng.standard_normal((1, 8, L, D)), "f32")
    w, p = 1e4 ** -(np.arange(0, D, 2) / D), np.arange(L, dtype=float)
    np.save(before, q.astype(np.float32))
    with open(config, "w") as f:
        json.dump({"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 1, "rope_theta": 10000.0}, f)
    for kind, a in angles_of_types(w, p).items():
        u, v = q[..., :D // 2], q[..., D // 2:]
        np.save(after, np.concatenate([u * np.cos(a) - v * np.sin(a), v * np.cos(a) + u * np.sin(a)], -1).astype(np.float32))
        is_right = kind in ("exact", "float32")
        for more in ([], ["--config", config], ["--set", "layout=half"]):
            done = subprocess.run([tool, "diagnose", "--before", before, "--after", after, "--json", *more], capture_output=True, text=True)
            found = json.loads(done.stdout) if done.stdout else {"verdict": done.stderr, "departs": [], "found": None, "expected": 0}
            good = (found["found"] or {}).get("angles") == kind and (found["expected"] is None) == (not more)
            good &= found["departs"] == ([] if is_right or not more else ["angles"])
            good &= done.returncode == (0 if is_right or not more else 1)
            wrong += not good
            if not good:
                print(f"angles of {kind}, {more}: {found['verdict']} {found['departs']} {found['found']}", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tool")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "little"))
    parser.add_argument("--count", type=int, default=330)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep")
    a = parser.parse_args()
    print(f"seed {a.seed}, {a.count} ports", flush=True)
    wrong = heard = right = 0
    longest, slowest = 0, None
    with tempfile.TemporaryDirectory() as temporary:
        folder = a.keep or temporary
        os.makedirs(folder, exist_ok=True)
        wrong += judge_types(a.tool, folder, a.seed) if a.only is None else 0
        for number in range(a.count) if a.only is None else [a.only]:
            port = Port(a.seed, number)
            found, status = port.run(a.tool, folder)
            why = port.judge(found, status)
            heard += bool(port.causes) and port.ratio >= 4
            right += not port.causes
            if not why and not port.causes:  # and against a wrong config
                wrong_config = dict(port.right, layout=other(port.rng, ["half", "interleaved"], port.right["layout"]))
                found, status = port.run(a.tool, folder, wrong_config)
                why = None if found["verdict"] == "different" and status == 1 and "layout" in found["departs"] else "against a wrong config it does not differ in layout"
            if port.seconds > longest:
                longest, slowest = port.seconds, number
            if why or a.only is not None:
                wrong += bool(why)
                some = {k: found.get(k) for k in ("verdict", "departs", "residual", "difference", "advice")}
                print(f"port {number}: {why}\n  {port.kind}, {[x.shape for x in port.before.values()]}, causes {port.causes}, ratio {port.ratio:.3g}\n"
                      f"  right {port.right}\n  port  {port.port}\n  says  {some}\n  or    {[x['departs'] for x in found['alternatives']]}\n  {port.call}", flush=True)
    print(f"{a.count} ports, {right} right, {heard} with a fault that can be heard: {wrong} wrong answers")
    print(f"{seconds_of_children():.0f} s of a core, the longest call {longest:.1f} s (port {slowest})")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
