#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""binding.py [BUILD]: what a call costs beside the same call in C, in one run; with torch where it is installed.

BUILD (build/default) holds libposenc.a and python/posenc. Least of many short bursts, so that other programs matter
little. "binding" is a call's time less C's and less an empty Python call's.
"""
import ctypes
import os
import subprocess
import sys
import tempfile
import timeit
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/default").resolve()
sys.path.insert(0, str(BUILD / "python"))

import numpy as np  # noqa: E402

import posenc  # noqa: E402
from posenc import _plans  # noqa: E402


def c_call(H, L, D):
    with tempfile.TemporaryDirectory() as folder:
        library = f"{folder}/binding.so"
        subprocess.run([*os.environ.get("CC", "cc").split(), "-O2", "-std=gnu17", "-shared", "-fPIC", f"-I{ROOT}/include",
                        str(ROOT / "python/bench/binding.c"), str(BUILD / "libposenc.a"), "-fopenmp", "-lm", "-o", library],
                       check=True)
        run = ctypes.CDLL(library).rotation_ns
    run.restype = ctypes.c_double
    q = np.zeros((1, H, L, D), np.float32)
    sizes = [ctypes.c_int64(n) for n in (H, L, D)]
    return min(run(q.ctypes.data_as(ctypes.c_void_p), *sizes, 100) for _ in range(2000))


def least(call, number=100, repeat=2000):
    call()
    return min(timeit.repeat(call, number=number, repeat=repeat)) / number * 1e9


def row(name, ns, base=None):
    print(f"{name:46} {ns:9.0f} ns" + (f"   binding {ns - base:6.0f} ns" if base is not None else ""))


def main():
    for shape in ((1, 1, 8), (8, 32, 128)):
        H, L, D = shape
        print(f"\nrotation in place of {H} x {L} x {D}, one thread")
        plan = _plans.get(posenc.Encoding("rope"), (H, H, D, D, H * D, 0), 1, L, L, threads=1)
        rotate, x = plan.rotate, np.zeros((1, H, L, D), np.float32)
        in_c, empty = c_call(H, L, D), least(lambda: None)
        repeat = 2000 if L == 1 else 300
        row("C", in_c)
        row("_core, NumPy", least(lambda: rotate(x, None, 1, None, 1, (), None, x, None), repeat=repeat), in_c + empty)
        row("posenc.rotate, NumPy, new output", least(lambda: posenc.rotate(x, threads=1), repeat=repeat))
        try:
            import torch
            import posenc.torch as pt
        except ImportError:
            print("torch is not installed: its rows are left out")
            continue
        torch.set_num_threads(1)
        posenc.set_threads(1)
        t, g, d = torch.zeros(1, H, L, D), torch.zeros(1, H, L, D, requires_grad=True), torch.zeros(1, H, L, D)
        row("_core, torch", least(lambda: rotate(t, None, 1, None, 1, (), t, None), repeat=repeat), in_c + empty)
        row("posenc.torch.rotate", least(lambda: pt.rotate(t), repeat=repeat))
        row("posenc.torch.rotate, with a gradient", least(lambda: pt.rotate(g), repeat=repeat))
        row("the same, and backward", least(lambda: torch.autograd.grad(pt.rotate(g), g, d), repeat=repeat))
        row("x * 2 in torch, for comparison", least(lambda: t * 2, repeat=repeat))


if __name__ == "__main__":
    main()
