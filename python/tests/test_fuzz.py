# SPDX-License-Identifier: MIT
"""Arguments of any kind into every function of _core and every public one: an exception or a result, never a crash.

POSENC_FUZZ: how many calls (3000). A crash ends the interpreter, so each is repeatable by its number. Under the sanitizers'
build this is where reads and writes beyond an array would show.
"""
import os
import random

import numpy as np

import posenc
from posenc import _core

CALLS = int(os.environ.get("POSENC_FUZZ", "3000"))
SPECS = ["rope", "alibi", "t5", "sinusoidal", "nope", "learned[rows=8:dim=8]", "shaw", "fire", "xpos", "rope[schedule=longrope]", "swin[window=2x2]",
         "complex_order", "urpe", "cope", "tupe", "floater", "rope[dim=4]", "sinusoidal+t5", "deberta", "rope[per_head=yes]"]


class Odd:
    """Says that it is an array and is none."""
    __array_interface__ = {"shape": (3,), "typestr": "<f4", "version": 3}
    __slots__ = ()

    def __dlpack__(self, **_):
        return None

    def __dlpack_device__(self):
        return (1, 0)


def array(r):
    shape = tuple(r.choice([0, 1, 2, 3, 4, 6, 8, 16]) for _ in range(r.choice([0, 1, 2, 3, 4, 4, 4, 5])))
    a = np.ones(shape, r.choice(["f4", "f4", "f8", "f2", "i8", "i4", "u1", "?", "c8", "U3", "O", ">f4", "i2", "u2"]))
    kind = r.randrange(6)
    if a.ndim and kind == 1:
        a = a[::r.choice([-1, 2])]
    elif a.ndim > 1 and kind == 2:
        a = a.swapaxes(0, -1)
    elif kind == 3:
        a.flags.writeable = False
    elif a.ndim and kind == 4:
        a = np.broadcast_to(a[..., :1], a.shape)
    return a


def thing(r, depth=0):
    kind = r.randrange(17)
    if kind < 5:
        return array(r)
    if kind < 7:
        return r.choice([0, 1, 2, -1, 8, 1 << 31, -(1 << 63), 1 << 70, 4096, 3])
    if kind == 7:
        return r.choice([0.5, -1.0, float("nan"), float("inf"), 1e308])
    if kind == 8:
        return r.choice(SPECS + ["", "rope[", "\0", "x" * 5000, "half", "blhd", "queries", "heatmap", "svg", "csv", "decay", "\udcff"])
    if kind == 9 and depth < 3:
        return tuple(thing(r, depth + 1) for _ in range(r.randrange(13)))
    if kind == 10 and depth < 3:
        return {r.choice(["table", "slopes", "a", 3]): thing(r, depth + 1) for _ in range(r.randrange(3))}
    if kind == 11:
        return r.choice([None, True, False])
    if kind == 12:
        return tuple(r.choice([0, 1, 2, 4, 8, 16, -1, 1 << 40]) for _ in range(9))
    if kind == 13:
        return r.choice([b"", b"{}", b'{"model_type": "llama"}', bytes(64), bytearray(24)])
    if kind == 14:
        return r.choice([Odd(), object(), int, print, range(3), [1, 2], memoryview(b"12345678")])
    if kind == 15:
        return plan_of(r, r.choice(SPECS))
    return _core.Encoding(r.choice(SPECS))


def plan_of(r, spec):
    try:
        return _core.Plan(_core.Encoding(spec), (1, 2, 2, 8, 8, 8, 8, 16, 8), r.choice([0, 1]), 0, 1, r.choice([0, 1, 2]), 0)
    except _core.PosencError:
        return None


FUNCTIONS = [(n, getattr(_core, n)) for n in dir(_core) if callable(getattr(_core, n)) and not n.startswith("_") and not n.endswith("Error")]
PUBLIC = [(n, getattr(posenc, n)) for n in posenc.__all__ if callable(getattr(posenc, n)) and not isinstance(getattr(posenc, n), type)
          and n not in ("set_threads", "check", "patched", "compare")]  # compare would train


def call(r):
    kind = r.randrange(3)
    if kind == 0:
        name, f = r.choice(FUNCTIONS)
        if name == "compare":
            return name, f, [thing(r) for _ in range(r.choice([0, 3, 12]))], {}
    elif kind == 1:
        spec = r.choice(SPECS)
        owner = r.choice([plan_of(r, spec), _core.Encoding(spec), None]) or _core.Model(b'{"model_type": "llama", "hidden_size": 64, '
                                                                                        b'"num_attention_heads": 4}', "config.json")
        name = r.choice([n for n in dir(owner) if not n.startswith("_")])
        return name, getattr(owner, name), [thing(r) for _ in range(r.choice([0, 1, 2, 3, 5, 8, 10, 12, 14, 16, 20]))], {}
    else:
        name, f = r.choice(PUBLIC)
    options = r.sample(["params", "causal", "window", "mask", "key_allowed", "scale", "out", "threads", "q_positions", "k_positions", "order", "H", "D",
                        "Lq", "Lk", "length", "dim", "grid", "dtype", "config", "layer"], r.choice([0, 0, 1, 2, 3]))
    return name, f, [thing(r) for _ in range(r.randrange(7))], {o: thing(r) for o in options} if kind == 2 else {}


def plausible(r):
    """Mostly right: one argument of a right call is exchanged for anything."""
    q = np.ones((1, 2, r.choice([0, 1, 5]), 8), np.float32)
    e = r.choice(SPECS)
    name, f, args = r.choice([("rotate", posenc.rotate, [q, q, e]), ("attend", posenc.attend, [q, q, q, e]), ("encode", posenc.encode, [e, range(4), 8]),
                              ("rerotate", posenc.rerotate, [q, e, e, 0, 1]), ("cos_sin", posenc.cos_sin, [e, range(3)]),
                              ("attend_backward", posenc.attend_backward, [q, q, q, q, q, q[..., 0], e])])
    args[r.randrange(len(args))] = thing(r)
    return name, f, args, {"D": 8} if name == "cos_sin" else {}


def test_no_argument_crashes():
    refused = answered = 0
    for number in range(CALLS):
        r = random.Random(number)
        _, f, args, options = plausible(r) if number % 2 else call(r)
        before = [a.copy() for a in args if isinstance(a, np.ndarray)]
        try:
            with np.errstate(all="ignore"):
                f(*args, **options)
            answered += 1
        except Exception:
            refused += 1
            if f in (posenc.rotate, posenc.attend, posenc.encode, posenc.rerotate, posenc.attend_backward):
                for a, b in zip((a for a in args if isinstance(a, np.ndarray)), before):
                    assert a.dtype == b.dtype and (a.dtype == object or a.tobytes() == b.tobytes()), number
    assert refused > CALLS // 10 and answered > CALLS // 100
