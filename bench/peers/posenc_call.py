# SPDX-License-Identifier: MIT
"""posenc_call.py: attention and rotation of libposenc on NumPy arrays, by ctypes, and a clock for two programs in turns

The structures are in posenc_structs.py. Plans and workspaces are made once, outside what is timed, as a
C program would; a call then is one function of the library on the caller's own memory, which a peer reads too.
"""
import argparse
import ctypes as c
import os
import statistics
import time

import numpy as np

from posenc_structs import (CAUSAL, F32, MAX_DIMS, RUN_ATTEND, RUN_ROTATE, AttendIn, AttendOut, Dims, Error, Options, Positions,
                            RotateIo, Tensor, Workspace)


def arguments():
    """A parser of what all scripts take."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--length", type=int, default=4096)
    return parser


def load():
    lib = c.CDLL(os.environ.get("POSENC_LIBRARY", "build/default/libposenc.so"))
    lib.posenc_plan_workspace.restype = c.c_size_t
    lib.posenc_plan_workspace.argtypes = [c.c_void_p, c.c_int, c.c_void_p]
    lib.posenc_isa.restype = c.c_char_p
    lib.posenc_version.restype = c.c_char_p
    return lib


def tensor(array, order=None):
    """A view of an array; `order` reads its axes in another order (0, 2, 1, 3: [B,L,H,D] as [B,H,L,D])."""
    t = Tensor(data=array.ctypes.data, dtype=F32, ndim=array.ndim)
    for to, axis in enumerate(order or range(array.ndim)):
        t.shape[to], t.stride[to] = array.shape[axis], array.strides[axis] // array.itemsize
    return t


def aligned(count, alignment=64):
    """An uninitialised float array; pages are touched by whoever fills it."""
    raw = np.empty(count + alignment // 4, np.float32)
    skip = -raw.ctypes.data % alignment // 4
    return raw[skip:skip + count]


class Plan:
    """A plan with its workspace and parameters: Plan("alibi", B, H, G, L, D, causal, threads)."""

    def __init__(self, lib, spec, B, H, G, L, D, causal, threads):
        self.lib, self.err = lib, Error()
        e, self.plan = c.c_void_p(), c.c_void_p()
        dims = Dims(B, H, G, L, L, D, D, 0, 0)
        options = Options(size=c.sizeof(Options), executor=0, mask=CAUSAL if causal else 0, threads=threads)
        self.check(lib.posenc_encoding_create(c.byref(e), spec.encode(), None, c.byref(self.err)))
        self.check(lib.posenc_plan_create(c.byref(self.plan), e, c.byref(dims), c.byref(options), c.byref(self.err)))
        self.params, self.numbers = self.make_params(e, dims)
        self.memory = aligned(lib.posenc_plan_workspace(self.plan, RUN_ROTATE | RUN_ATTEND, None) // 4)
        self.work = Workspace(size=c.sizeof(Workspace), memory=self.memory.ctypes.data, bytes=self.memory.nbytes)

    def check(self, status):
        if status:
            raise SystemExit("libposenc: " + self.err.message.decode())

    def make_params(self, e, dims):
        count = self.lib.posenc_param_count(e)
        tensors, numbers = (Tensor * max(count, 1))(), []
        for i in range(count):
            ndim, shape = c.c_int32(), (c.c_int64 * MAX_DIMS)()
            self.check(self.lib.posenc_param_shape(e, c.byref(dims), i, c.byref(ndim), shape, c.byref(self.err)))
            numbers.append(np.zeros(shape[:ndim.value], np.float32))
            tensors[i] = tensor(numbers[-1])
        if count:
            self.check(self.lib.posenc_param_init(e, c.byref(dims), tensors, c.c_uint64(1), c.byref(self.err)))
        return tensors, numbers

    def attend(self, o, q, k, v):
        """A function of no arguments that runs once; arrays are [B,H,L,D]."""
        ahead = Positions(0, 1)
        into = AttendIn(size=c.sizeof(AttendIn), q=tensor(q), k=tensor(k), v=tensor(v), q_pos=ahead, k_pos=ahead,
                        params=self.params)
        out, work = AttendOut(size=c.sizeof(AttendOut), o=tensor(o)), c.byref(self.work)
        return lambda: self.check(self.lib.posenc_attend(self.plan, c.byref(into), c.byref(out), work, c.byref(self.err)))

    def rotate(self, x):
        """The same for a rotation in place; x is [B,L,H,D]."""
        t = tensor(x, (0, 2, 1, 3))
        io = RotateIo(size=c.sizeof(RotateIo), q=t, to_q=t, q_pos=Positions(0, 1), k_pos=Positions(0, 1), direction=1)
        work = c.byref(self.work)
        return lambda: self.check(self.lib.posenc_rotate(self.plan, c.byref(io), work, c.byref(self.err)))


def in_turns(ours, theirs, threads, seconds=2.0, least=3, most=61):
    """Runs both in turns; (our milliseconds, theirs, median of theirs over ours, its quartiles).
    What one thread does is timed by the seconds that it worked, what several do by the clock on the wall."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    times, start = [], time.perf_counter()
    ours(), theirs()
    while len(times) < least or (len(times) < most and time.perf_counter() - start < seconds):
        a = clock()
        ours()
        b = clock()
        theirs()
        times.append((b - a, clock() - b))
    ratios = sorted(t / o for o, t in times)
    n = len(ratios)
    return (1e3 * statistics.median(o for o, _ in times), 1e3 * statistics.median(t for _, t in times),
            statistics.median(ratios), ratios[n // 4], ratios[n - 1 - n // 4])


def report(name, figures, difference):
    ours, theirs, ratio, low, high = figures
    print(f"{name:<58} ours {ours:9.2f} ms  theirs {theirs:9.2f} ms  theirs/ours {ratio:7.2f} [{low:.2f} {high:.2f}]"
          f"  largest difference {difference:.1e}", flush=True)


def random_array(*shape):
    a = aligned(int(np.prod(shape))).reshape(shape)
    a[...] = np.random.default_rng(1 + len(shape) + a.size % 97).standard_normal(shape, dtype=np.float32)
    return a
