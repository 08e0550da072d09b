# SPDX-License-Identifier: MIT
"""verify: does a function, or do its results, agree with an encoding; if not, where first, and what would fit."""
from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple

import numpy as np

from . import _arrays, _core, _runs
from ._encoding import Encoding, encoding as as_encoding


class Finding(NamedTuple):
    """What is wrong, where, by how much, and the cause if a known convention fits what was given."""
    where: str
    what: str
    error: float
    cause: str


class Report:
    """What was checked, and what was found; text and, in a notebook, a table."""

    def __init__(self, title: str, checked: list[tuple[str, float, float]], findings: list[Finding], notes: list[str] | None = None):
        self.title, self.checked, self.findings, self.notes = title, checked, findings, notes or []

    @property
    def ok(self) -> bool:
        return not self.findings

    def raise_if_failed(self) -> Report:
        if self.findings:
            raise _core.PosencError(str(self))
        return self

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        lines = [f"{self.title}: {'agrees' if self.ok else 'does not agree'}"]
        lines += [f"  {name}: largest error {error:.2g}, allowed {allowed:.2g}" for name, error, allowed in self.checked]
        for f in self.findings:
            lines.append(f"  {f.where}: {f.what}" + (f"; {f.cause}" if f.cause else ""))
        return "\n".join(lines + [f"  note: {n}" for n in self.notes])

    def _repr_html_(self) -> str:
        from ._html import report_table
        return report_table(self)


def check(model: Any, **options: Any) -> Report:
    """Is a transformers model's own code true to its config? posenc.torch.hf.check says what is compared."""
    from .torch.hf import check as check_model
    return check_model(model, **options)


def patched(model: Any) -> Any:
    """A context manager: the model with exact rotation in place of its own (posenc.torch.hf.patched)."""
    from .torch.hf import patched as patch_model
    return patch_model(model)


# ---------------------------------------------------------------- conventions that are tried ----

def _close(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], rtol: float) -> bool:
    return all(got[n].shape == want[n].shape and _error(got[n], want[n]) <= rtol * _scale(want[n]) for n in got)


def _scale(want: np.ndarray) -> float:
    return max(float(np.abs(want).max(initial=0)), 1e-30)


def _error(got: np.ndarray, want: np.ndarray) -> float:
    error = np.abs(got.astype(np.float64) - want)
    error[(got == want)] = 0
    return float(error.max(initial=0)) if not np.isnan(error).any() else float("inf")


def _shifted(positions: Any, by: int) -> Any:
    """A number or an array of positions, moved on."""
    at = np.asarray(positions) if isinstance(positions, range) else _arrays.positions(positions, "positions")
    return at + by


_RTOL = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}


def _as_arrays(x: Any, names: tuple[str, ...]) -> dict[str, np.ndarray]:
    items = x if isinstance(x, (tuple, list)) else (x,)
    found = {}
    for name, item in zip(names, items):
        if item is None:
            continue
        if type(item).__module__.partition(".")[0] == "torch":
            item = item.detach().cpu()
            item = item.float() if str(item.dtype) == "torch.bfloat16" else item
            item = item.numpy()
        found[name] = _arrays.floats(item, name)
    return found


_GIVES = {"rotary": "(q', k')", "input": "a table [L,D]"}  # elsewhere a bias


def _given(thing: Any, args: tuple, names: tuple[str, ...], e: Encoding, place: str) -> dict[str, np.ndarray]:
    """What thing gives of args, or what it is, by name."""
    called = {"rotary": f"f({', '.join(names[:len(args)])})", "input": "f(L, D)"}.get(place, "f(L, L)")
    try:
        found = _as_arrays(thing(*args) if callable(thing) else thing, names)
    except TypeError as error:
        if not callable(thing):
            raise
        alone = "; a function of q alone wants inputs=q" if place == "rotary" and len(args) == 2 else ""
        raise _core.PosencError(f"verify calls thing as {called}, for {e.spec} acts at place {place}; that raised: {error}{alone}") from error
    if not found:
        raise _core.PosencError(f"thing {'gave' if callable(thing) else 'is'} None; at place {place} it must "
                                f"{'give' if callable(thing) else 'be'} {_GIVES.get(place, 'a bias [H,L,L]')}")
    return found


def verify(thing: Any, encoding: Encoding | str, *, inputs: Any = None, H: int = 8, L: int = 128, D: int = 64,
           params: Mapping[str, Any] | None = None, positions: Any = None, rtol: float | None = None,
           make: Callable[[np.ndarray], Any] | None = None) -> Report:
    """Holds a function, or what it gave, against the encoding in float64.

    thing, by the place where the encoding acts: input: a table [L,D] or f(L, D). rotary: (q', k'), or f(q, k) that
    gives both; with inputs=q: q', or f(q); with inputs=(None, k): (None, k'). score: a bias [H,L,L], or f(L, L).
    inputs: the q and k that were rotated; without them both are drawn. make: turns a NumPy array into what f takes
    (torch.from_numpy). The report names the first wrong position and pair of channels, and the convention that fits
    instead, if one does.

    >>> verify(lambda q, k: rotate(q, k, "rope[layout=half]"), "rope[layout=half]").ok
    True
    >>> print(verify(lambda q, k: rotate(q, k, "rope[layout=half]"), "rope").findings[0].cause)
    it fits layout=half
    """
    e = as_encoding(encoding)
    place = next((p for p in ("rotary", "score", "weight", "input") if p in e.parts), "score")
    make = make or (lambda a: a)
    wanted: Callable[[Encoding, int, bool], dict[str, np.ndarray]]
    if place == "rotary":
        names = ("q", "k")
        if inputs is None:
            rng = np.random.default_rng(0)
            inputs = tuple(rng.standard_normal((1, H, L, D)).astype(np.float32) for _ in range(2))
        drawn = _as_arrays(inputs, names)
        args = tuple(make(a) for a in drawn.values())
        got = _given(thing, args, tuple(drawn) if callable(thing) and len(args) == 1 else names, e, place)
        if not got.keys() <= drawn.keys():
            raise _core.PosencError(f"thing has {' and '.join(got)}, and inputs has {' and '.join(drawn) or 'nothing'}; give the same of both")
        at = 0 if positions is None else positions

        def wanted(e: Encoding, shift: int, inverse: bool) -> dict[str, np.ndarray]:
            q, k = (drawn[n].astype(np.float64) if n in drawn else None for n in names)
            where = _shifted(at, shift)
            out = _runs.rotate(q, k, e, q_positions=where, inverse=inverse, params=params)
            return dict(zip(drawn, out if isinstance(out, tuple) else (out,)))
    elif place == "input":
        names = ("table",)
        got = _given(thing, (L, D), names, e, place)
        if got["table"].ndim < 2:
            raise _core.PosencError(f"the table has the shape {list(got['table'].shape)}; it must be [L,D]")
        rows, dim = got["table"].shape[-2], got["table"].shape[-1]

        def wanted(e: Encoding, shift: int, inverse: bool) -> dict[str, np.ndarray]:
            where = _shifted(np.arange(rows) if positions is None else positions, shift)
            return {"table": _runs.encode(e, where, dim, params=params, dtype="float64").reshape(got["table"].shape)}
    else:
        names = ("bias",)
        got = _given(thing, (L, L), names, e, place)
        if got["bias"].ndim < 3 or got["bias"].size != np.prod(got["bias"].shape[-3:]):
            raise _core.PosencError(f"the bias has the shape {list(got['bias'].shape)}; it must be [H,L,L]")
        got = {"bias": got["bias"].reshape(got["bias"].shape[-3:])}
        heads, Lq, Lk = got["bias"].shape

        def wanted(e: Encoding, shift: int, inverse: bool) -> dict[str, np.ndarray]:
            start = _shifted(Lk - Lq if positions is None else positions, shift)
            shapes = e.params(H=heads, D=D, L=Lk)  # with fewer buckets only the first rows of a table are read
            cut = {n: np.asarray(p)[:shapes[n].shape[0]] if n in shapes and len(shapes[n].shape) else p for n, p in (params or {}).items()}
            return {"bias": _runs.bias(e, H=heads, Lq=Lq, Lk=Lk, D=D, dtype="float64", params=cut or params, q_positions=start,
                                       k_positions=0, causal=e.causal_only) * (-1 if inverse else 1)}
    want = wanted(e, 0, False)
    want = {n: want[n] for n in got}
    limit = rtol if rtol is not None else max(_RTOL[a.dtype.name] for a in got.values())
    checked, findings = [], []
    for name in got:
        if got[name].shape != want[name].shape:
            findings.append(Finding(name, f"its shape is {list(got[name].shape)} instead of {list(want[name].shape)}",
                                    float("inf"), ""))
            continue
        error, allowed = _error(got[name], want[name]), limit * _scale(want[name])
        checked.append((name, error, allowed))
        if error > allowed:
            findings.append(_first_wrong(name, got[name], want[name], allowed, e, place, D))
    if findings:
        cause = _nearest(got, wanted, e, place, limit)
        findings = [f._replace(cause=cause) for f in findings]
    return Report(f"verify {e.spec}", checked, findings)


def _first_wrong(name: str, got: np.ndarray, want: np.ndarray, allowed: float, e: Encoding, place: str, D: int) -> Finding:
    """The first position that is wrong, and there the first channels."""
    bad = ~(np.abs(got.astype(np.float64) - want) <= allowed) & (got != want)
    at = tuple(int(n) for n in min(np.argwhere(bad), key=lambda n: (n[-2], n[-1], *n[:-2])))
    error = _error(got, want)
    numbers = f"is {float(got[at]):.7g} instead of {float(want[at]):.7g} (largest error {error:.2g})"
    if place == "rotary":
        pairs = _runs.frequencies(e, D=want.shape[-1]).pairs if not e._core.params(None) else ()
        pair = next((m for m, p in enumerate(pairs) if at[-1] in p.target), None)
        return Finding(f"{name} at row {at[-2]}, head {at[1]}, channel {at[-1]}" + (f" of pair {pair}" if pair is not None else ""),
                       numbers, error, "")
    if place == "input":
        return Finding(f"row {at[-2]}, channel {at[-1]}", numbers, error, "")
    return Finding(f"head {at[0]}, query {at[1]}, key {at[2]}", numbers, error, "")


def _nearest(got: Mapping[str, np.ndarray], wanted: Callable, e: Encoding, place: str, limit: float) -> str:
    """Which known convention gives what was given."""
    tries = [(words, e if spec is None else Encoding._with(spec, e._values), shift, inverse)
             for words, spec, shift, inverse in _core.conventions(e._core) if not (inverse and place == "input")]
    for words, other, shift, inverse in tries:
        try:
            want = wanted(other, shift, inverse)
        except (_core.PosencError, ValueError):
            continue
        if _close(got, {n: want[n] for n in got}, limit):
            return words
    return _moved(got, wanted(e, 0, False), place, limit) or "no other layout, sign, start, base or setting fits either"


def _moved(got: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], place: str, limit: float) -> str:
    """The right numbers at other places, or all multiplied by one; "" if it is neither."""
    if len(got) != 1:
        return ""
    (name, mine), right = next(iter(got.items())), next(iter(want.values()))
    tries: list[tuple[str, np.ndarray]] = []
    if place in ("score", "weight") and mine.shape[-1] == mine.shape[-2]:
        tries.append(("queries and keys are exchanged", right.swapaxes(-1, -2)))
        tries.append(("the heads are in reverse order", right[::-1]))
    if place == "input" and mine.shape[-1] % 2 == 0:
        halves, neighbours = (right.reshape(*right.shape[:-1], *two) for two in ((2, -1), (-1, 2)))
        tries += [("sines and cosines are exchanged", halves[..., ::-1, :]), ("sines and cosines are exchanged", neighbours[..., ::-1])]
    top = np.unravel_index(np.abs(right).argmax(), right.shape)
    times = float(mine[top] / right[top]) if right[top] else 1.0
    tries.append((f"all is multiplied by {times:.6g}", times * right))
    return next((words for words, other in tries if _close(got, {name: other.reshape(mine.shape)}, limit)), "")


rotate = _runs.rotate  # for the examples above
