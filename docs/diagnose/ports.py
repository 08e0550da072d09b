#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Five kinds of port bug, each made here with NumPy alone, for docs/diagnose.md: docs/diagnose/ports.py DIR"""
import math
import os
import sys

import numpy as np

rng = np.random.default_rng(0)
folder = sys.argv[1] if len(sys.argv) > 1 else "build/ports"
os.makedirs(folder, exist_ok=True)


def rotate(x, w, p, layout="half", size=1.0):
    d = 2 * len(w)
    a = p[:, None] * w
    first, second = (np.arange(d // 2), np.arange(d // 2) + d // 2) if layout == "half" else (np.arange(0, d, 2), np.arange(1, d, 2))
    y = x.copy()
    y[..., first] = size * (x[..., first] * np.cos(a) - x[..., second] * np.sin(a))
    y[..., second] = size * (x[..., second] * np.cos(a) + x[..., first] * np.sin(a))
    return y


def save(name, x, y):
    np.save(f"{folder}/{name}_before.npy", x.astype(np.float32))
    np.save(f"{folder}/{name}_after.npy", y.astype(np.float32))


x = rng.standard_normal((1, 8, 64, 128)).astype(np.float32).astype(np.float64)
p = np.arange(64.0)
w = lambda base: base ** (-np.arange(0, 128, 2) / 128)
save("layout", x, rotate(x, w(1e4), p, "interleaved"))                            # ik_llama.cpp#2290: neighbours, not halves
save("base", x, rotate(x, w(1e4), p))                                             # MarinFold#184: rope_theta 5e5 unread
save("partial", x, rotate(x, w(1e4), p))                                          # mlx-lm#1698: partial_rotary_factor 0.25 unread
save("magnitude", x, rotate(x, w(1e4), p, size=(0.1 * math.log(4) + 1) ** 2))           # sglang#33558: the factor of YaRN twice
bf16 = lambda v: ((np.asarray(v, np.float32).view(np.uint32) + 0x8000) & np.uint32(0xFFFF0000)).view(np.float32).astype(np.float64)
save("precision", x, rotate(x, bf16(w(1e4)), p + 500))                            # transformers#29285: inv_freq in bfloat16
