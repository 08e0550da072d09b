# SPDX-License-Identifier: MIT
"""The reference cases as NumPy arrays, and how far a result may be from them (docs/reference-cases.md)."""
from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np

import posenc

ROOT = Path(__file__).resolve().parents[2] / "tests/golden"
# Not outputs of a call: test_golden.py does not ask for them, `posenc verify` infers them from scores.
INFERRED = {"out_positions", "out_r_rows_dist_lo_to_hi"}
OUTPUT, GRADIENT, SOLVED, PREPARED, INDEX = range(5)
FACTOR = {OUTPUT: (1e-12, 2e-6), GRADIENT: (1e-11, 2e-5), SOLVED: (1e-10, 2e-6), PREPARED: (1e-12, 1e-12), INDEX: (0, 0)}


def setting(value):
    if isinstance(value, dict):
        return ":".join(f"{k}={v}" for k, v in value.items())
    return value


class Case:
    def __init__(self, folder, entry):
        self.id = f"{folder.name}/{entry['file'][:-4]}"
        self.path, self.entry = folder / entry["file"], entry
        self.name = entry["encoding"]
        self.settings = {k: setting(v) for k, v in entry["settings"].items() if v is not None}
        self.causal = bool(self.settings.pop("causal", False))
        self.q_offset = self.settings.pop("q_offset", 0)
        self.seen = set()

    @functools.cached_property
    def arrays(self):
        with np.load(self.path) as file:
            return {name: file[name] for name in file.files}

    def __contains__(self, name):
        return name in self.arrays

    def __getitem__(self, name):
        self.seen.add(name)
        return self.arrays[name]

    def get(self, name):
        """An array, or its real and imaginary parts along the last axis; None."""
        if name in self:
            return self[name]
        if name + "r" in self:
            return np.concatenate([self[name + "r"], self[name + "i"]], -1)
        return None

    @functools.cached_property
    def encoding(self):
        info = posenc.encodings()[self.name]
        more = {}
        flags = {s.name for s in info.settings if s.type == "flag"}
        for name in self.arrays:
            plain = name.partition("_")[2]
            if name.startswith(("par_", "in_")) and plain in flags and plain not in self.settings:
                more[plain] = True
        e = posenc.Encoding(self.name, **self.settings, **more)
        whole = {s.name for s in info.settings if s.type == "integer"}
        for name, _, _, _, p, *_ in e._core.params(None):
            array = self.arrays.get("par_" + name)
            axes = p.split(",") if p else []
            if array is None or array.ndim != len(axes) or " if " in p:
                continue
            if p.startswith("grid1*grid2") and "grid" not in self.settings:
                more["grid"] = (array.shape[0], 1)
            more.update({a: n for a, n in zip(axes, array.shape) if a in whole and a not in self.settings})
        return posenc.Encoding(self.name, **self.settings, **more)

    def params(self, dtype, exact):
        """Those that the file has; the rotary part's in float64 always."""
        out = {}
        for name, _, _, place, *_ in self.encoding._core.params(None):
            for prefix in ("par_", "in_"):
                if prefix + name in self:
                    value = self[prefix + name]
                    out[name] = value.astype(np.float64 if place == "rotary" or exact else dtype)
                    break
        return out

    def initial(self, sizes, dtype):
        """With what the file lacks as the encoding starts it."""
        start = self.encoding.init(**sizes, dtype="float64")
        mine = self.params(dtype, False)
        rotary = {row[0] for row in self.encoding._core.params(None) if row[3] == "rotary"}
        return {n: mine.get(n, v.astype(v.dtype if n in rotary else dtype)) for n, v in start.items()}


def cases():
    out = []
    for folder in (ROOT, ROOT / "rope"):
        out += [Case(folder, e) for e in json.loads((folder / "manifest.json").read_text())["entries"]]
    return out


def check(case, name, got, kind=OUTPUT, single=False, slack=0.0):
    """Compares an array of the case, if it has it; every difference must be within what the page allows."""
    parts = [name] if name in case else [name + "r", name + "i"] if name + "r" in case else []
    if not parts:
        return
    got = np.asarray(got, np.float64)
    pieces = [got] if len(parts) == 1 else np.split(got, 2, -1)
    for part, piece in zip(parts, pieces):
        want = np.asarray(case[part], np.float64)
        assert piece.size == want.size, f"{part}: {piece.shape} for {want.shape}"
        rows, flat = want.reshape(-1, want.shape[-1] if want.ndim else 1), piece.reshape(want.shape)
        flat = flat.reshape(rows.shape)
        finite = np.abs(np.where(np.isfinite(rows), rows, 0))
        most, array = finite.max(-1, keepdims=True, initial=0), finite.max(initial=0)
        least = 1e-3 * array
        if kind == GRADIENT and array <= 1e-11:
            least = max(np.abs(v).max() for n, v in case.arrays.items() if n.startswith("g_"))
        factor = FACTOR[kind][single]
        base = np.maximum(most, least) if single and kind in (OUTPUT, GRADIENT, SOLVED) else np.maximum(1, finite)
        allowed = factor * base + np.reshape(slack, (-1, 1)) * np.maximum(1, most)
        with np.errstate(invalid="ignore"):
            fine = (flat == rows) | (np.abs(flat - rows) <= allowed)
        at = np.argwhere(~fine)
        assert not len(at), f"{part}{at[0]}: {flat[tuple(at[0])]!r} for {rows[tuple(at[0])]!r}"
        case.compared = getattr(case, "compared", 0) + 1
