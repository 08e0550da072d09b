# SPDX-License-Identifier: MIT
"""Plans that are kept: making one takes tens of microseconds, finding it again one."""
from __future__ import annotations

import os
import threading
from collections import OrderedDict
from typing import Any

from . import _core

CAUSAL, WINDOW, KEY_PADDING, EXPLICIT, SEGMENTS = 1, 2, 4, 8, 16
AUTO, REFERENCE = 0, 1
KEPT = 64

_plans: OrderedDict[tuple, tuple] = OrderedDict()
_lock = threading.Lock()
_threads = 0


def set_threads(n: int) -> None:
    """How many threads a call uses from now on where it does not say; 0: one for each processor."""
    global _threads
    if not 0 <= n <= 4096:
        raise _core.PosencError(f"threads is {n}; it must be 0 to 4096")
    _threads = n


def get_threads() -> int:
    """What set_threads has set, or the number of processors."""
    return _threads or len(os.sched_getaffinity(0))


def _up(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def get(encoding: Any, heads: tuple, B: int, Lq: int, Lk: int, mask: int = 0, window: int = 0,
        threads: int | None = None, executor: int = AUTO, distances: int = 0) -> Any:
    """A plan for at least these sizes. heads: (H, G, D, Dv, d_model, L)."""
    if threads is None:
        threads = _threads
    key = (encoding.spec, heads, mask, window, threads, executor)
    if encoding.is_sized:  # a parameter is as long as the run
        key += (Lq, Lk)
    kept = _plans.get(key)  # no lock: one operation of a dictionary is whole under the interpreter's own
    if kept is not None and kept[0] >= B and kept[1] >= Lq and kept[2] >= Lk and kept[3] >= distances:
        try:
            _plans.move_to_end(key)
        except KeyError:  # another thread has just let it go
            pass
        return kept[4]
    most = kept or (1, 1, 1, 0)
    if encoding.is_sized:
        B, distances = max(_up(B), most[0]), max(distances, most[3])
    else:
        B, Lq, Lk = max(_up(B), most[0]), max(_up(Lq), most[1]), max(_up(Lk), most[2])
        distances = max(_up(distances) if distances else 0, most[3])
    H, G, D, Dv, d_model, L = heads
    plan = _core.Plan(encoding._core, (B, H, G, Lq, Lk, D, Dv, d_model, L), mask, window, threads, executor, distances)
    with _lock:
        _plans[key] = (B, Lq, Lk, distances, plan)
        _plans.move_to_end(key)
        while len(_plans) > KEPT:
            _plans.popitem(last=False)
    return plan
