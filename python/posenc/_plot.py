# SPDX-License-Identifier: MIT
"""plot: the pictures of `posenc plot`, as SVG in a notebook, as numbers, or in characters."""
from __future__ import annotations

import difflib
import functools
import inspect
import os
import re
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from . import _arrays, _core
from ._encoding import Encoding, _of_shape, dims, encoding as as_encoding

_THETAS = {"many": 1, "one": 2, "both": 3}  # PE_MANY_THETAS, PE_ONE_THETA and both of plot.h
_CONTENTS = {"ones": 1, "uniform": 2, "normal": 4}


class Picture:
    """A picture, drawn when it is looked at. svg and save() need the program gnuplot; csv and str() do not."""

    def __init__(self, kind: str, parts: list, shared: tuple):
        self.kind, self._parts, self._shared, self._svg = kind, parts, shared, None

    def _draw(self, format: str, columns: int = 100) -> Any:
        # the library adds to parameters that would leave nothing to see
        parts = tuple((p[0]._core, *p[1:7], tuple(a.copy() for a in p[7]), p[8]) for p in self._parts)
        return _core.picture(self.kind, parts, self._shared, format, columns)

    @property
    def svg(self) -> str:
        if self._svg is None:
            self._svg = self._draw("svg")
        return self._svg

    @property
    def csv(self) -> str:
        """Its numbers."""
        return self._draw("csv")

    def save(self, path: str | os.PathLike) -> None:
        """Writes F.svg, F.png, F.pdf, or the numbers as F.csv."""
        self._draw(os.fspath(path))

    def __repr__(self) -> str:
        return f"<Picture {self.kind} of {', '.join(p[6] or p[0].spec for p in self._parts)}>"

    def __str__(self) -> str:
        return self._draw("text")

    def _repr_html_(self) -> str:
        from html import escape
        try:
            return self.svg[self.svg.find("<svg"):]
        except _core.FileError as error:  # no gnuplot: what can be shown without it
            return f"<pre>{escape(str(self))}</pre><p>{escape(str(error))}</p>"


def _plot(kind: str, *encodings: Encoding | str, table: Any = None, params: Mapping[str, Any] | None = None, length: int | None = None,
          dim: int | None = None, heads: int = 8, grid: Sequence[int] | None = None, seed: int = 1, chosen: Sequence[int] = (),
          bases: Sequence[float] = (), theta: str | float | None = None, content: Sequence[str] = (), draws: int = 0,
          words: str | Sequence[str] = (), measure: str = "cosine", transpose: bool = False, digits: int | None = None,
          binary_counter: bool = False) -> Picture:
    """A picture of one encoding, or of several together; the kinds, sizes and options of `posenc plot`.

    kind: bias, buckets, curves, decay, factors, heatmap, hierarchy, mass, onehot, pair, similarity, similarity2d,
    wavelengths or words; `posenc list NAME` says which an encoding has. plot.decay("rope") is plot("decay", "rope").
    table: a table of positions [rows, width] in place of an encoding. params: trained parameters of the only encoding;
    without them it is shown as it is initialised. chosen: channels (heatmap, curves), pairs (pair), or row, column of
    points one after the other (similarity2d). A bias of a window says its window in the SPEC.

    >>> plot("decay", "rope", length=64)
    <Picture decay of rope>
    >>> plot("bias", "alibi", "kerple_log", heads=1, length=3).csv.splitlines()[1].split(",")[:2]
    ['2', '-0.0078125']
    """
    if isinstance(words, str):
        words = words.split()
    if (table is None) == (not encodings):
        raise _core.PosencError("plot needs encodings, or a table in their place: plot('heatmap', 'sinusoidal')")
    if kind == "words" and not words:
        raise _core.PosencError("plot words needs words to rotate; give words='one two three'")
    if params is not None and len(encodings) != 1:
        raise _core.PosencError(f"params belongs to one encoding; {len(encodings)} are given")
    thetas, number = _theta(theta)
    for name, value, known in (("content", content, _CONTENTS), ("measure", [measure], ("cosine", "dot"))):
        wrong = [v for v in value if v not in known]
        if wrong:
            raise _core.PosencError(f"{name} has {wrong[0]!r}; it may be {', '.join(known)}")
    shared = (transpose, -1 if digits is None else digits, binary_counter, measure == "dot", thetas, number,
              sum({_CONTENTS[c] for c in content}), draws, seed, tuple(int(c) for c in chosen), tuple(float(b) for b in bases), tuple(words))
    given: list[tuple[Encoding, Mapping[str, Any] | None, str | None]] = [(as_encoding(e), params, None) for e in encodings]
    if table is not None:
        rows = _arrays.floats(table, "table")
        if rows.ndim != 2:
            raise _core.PosencError(f"table has the shape {list(rows.shape)}; it must be [rows, width]")
        given = [(Encoding("learned", rows=rows.shape[0], dim=rows.shape[1]), {"table": rows}, "table")]
        length, dim = length or (None if grid else rows.shape[0]), rows.shape[1]
    return Picture(kind, [_part(kind, e, p, name, length or len(words) or None, dim, heads, grid, seed) for e, p, name in given], shared)


class _Plot:
    """plot("decay", "rope") is plot.decay("rope")."""
    __name__ = __qualname__ = "plot"
    __signature__ = inspect.signature(_plot)
    __call__ = staticmethod(_plot)

    def __get__(self, instance: Any, owner: Any = None) -> _Plot:
        return self  # with this help() takes it for the function that it is to its callers, and shows its arguments

    def __getattr__(self, kind: str) -> Callable[..., Picture]:
        if kind.startswith("_"):
            raise AttributeError(kind)
        if kind not in dir(self):
            near = difflib.get_close_matches(kind, dir(self), 1)
            raise AttributeError(f"plot has no kind {kind!r}; " + (f"did you mean {near[0]!r}?" if near else "it has: " + ", ".join(dir(self))))
        return functools.partial(_plot, kind)

    def __dir__(self) -> list[str]:
        return _kinds()


@functools.lru_cache
def _kinds() -> list[str]:
    return sorted({kind for row in _core.registry() for kind in re.findall(r"\w+", row["pictures"])})


plot = _Plot()
plot.__doc__ = _plot.__doc__


def _theta(theta: str | float | None) -> tuple[int, float]:
    if theta is None:
        return 0, 0.0
    if isinstance(theta, str):
        if theta not in _THETAS:
            raise _core.PosencError(f"theta is {theta!r}; it must be one, many, both, or a number above 0")
        return _THETAS[theta], 0.0
    if not 0 < theta < float("inf"):
        raise _core.PosencError(f"theta is {theta}; it must be one, many, both, or a number above 0")
    return 2, float(theta)


def _part(kind: str, e: Encoding, params: Mapping[str, Any] | None, name: str | None, length: int | None, dim: int | None,
          heads: int, grid: Sequence[int] | None, seed: int) -> tuple:
    asked = length or 0, *(grid[:2] if grid is not None else (0, 0))
    if not all(0 <= n <= 1 << 30 for n in asked) or asked[1] * asked[2] == 1 or length == 1:
        raise _core.PosencError(f"plot: {asked[1] * asked[2] or asked[0]} positions are asked for; 2 to 4096 are drawn")
    place, settings, n, rows, cols, heads, dim, d_model, Lk, L = _core.offer(e._core, kind, asked[0], dim or 0, heads, *asked[1:])
    if settings:
        e = Encoding(e, **dict(one.split("=") for one in settings.split()))
    sizes = dims(heads, dim, L, d_model=d_model, Lq=Lk, Lk=Lk)
    made = {k: np.ascontiguousarray(v, np.float64) for k, v in e._init(sizes, seed, np.dtype(np.float64)).items()}
    for k, v in _arrays.named(params).items():
        if k not in made:
            raise _core.PosencError(f"params has {k}; {e.spec} has no such parameter")
        made[k] = np.array(_of_shape(_arrays.numbers(v, k), made[k].shape, k), np.float64)
    held = {*(params or {}), *e._values}
    varied = tuple(row[2] and row[0] not in held for row in e._rows(sizes))
    return e, place, sizes, n if not rows else 0, rows, cols, name, tuple(made.values()), varied
