# SPDX-License-Identifier: MIT
"""diagnose: which rotation, or which bias, scale and mask, turned one tensor into another, and what of it is wrong."""
from __future__ import annotations

from typing import Any, Iterator, Mapping

import numpy as np

from . import _arrays, _core, _runs
from ._check import Finding, Report, _as_arrays
from ._encoding import Encoding, encoding as as_encoding
from ._model import Model


class Diagnosis(Report, Mapping[str, Any]):
    """A Report of what departs from what is expected; as a mapping, what the command's --json says."""

    def __init__(self, of: str, said: Mapping[str, Any]):
        self._said, verdict = said, said["verdict"]
        is_right = verdict in ("same", "found")
        wrong = [] if is_right else list(said["advice"])
        cause, reading = ", ".join(said["departs"]), said["found"] or {}
        found = [Finding(of, what, said["residual"], cause) for what in wrong or ["nothing known explains it"] * (not is_right)]
        super().__init__(f"diagnose: {of}", [], found, [f"found: {reading.get('spec') or reading.get('encoding', 'nothing')}"])

    def __getitem__(self, key: str) -> Any:
        return self._said[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._said)

    def __len__(self) -> int:
        return len(self._said)


def diagnose(before: Any, after: Any, encoding: Encoding | Model | str | None = None, *, layer: int | None = None,
             positions: Any = 0, params: Mapping[str, Any] | None = None, order: str = "bhld") -> Diagnosis:
    """What `posenc diagnose` says of tensors before and after another program rotated them.

    before, after: q, or (q, k), [B,H,L,D] (order="blhd": [B,L,H,D]), NumPy or torch. encoding: what is expected, a
    rope or a model's (inspect(F), of which `layer`); None: nothing is. positions: a number n stands for n, n+1, ...; or
    an array [L], [B,L], with N coordinates [...,L,N]. Keys: verdict (same, different, unexplained; found where nothing
    is expected), departs, found, expected (layout, dim, base, schedule ... as the command's --json has them; None:
    nothing is), alternatives, residual, difference (rms, in units of the rounding of after), advice, and side ("q" or
    "k") where the other is as expected.

    >>> q = np.random.default_rng(0).standard_normal((1, 4, 32, 64)).astype(np.float32)
    >>> found = diagnose(q, _runs.rotate(q, None, "rope[layout=half]"), "rope[layout=half:base=5e5]")
    >>> found.ok, found["verdict"], found["departs"]
    (False, 'different', ['base'])
    >>> found["found"]["layout"], found["found"]["base"], found["expected"]["base"]
    ('half', 10000.0, 500000.0)
    >>> diagnose(q, q)["expected"] is None, diagnose(q, q)["verdict"]
    (True, 'found')
    """
    encoding = encoding.encoding(layer) if isinstance(encoding, Model) else encoding
    e = None if encoding is None else as_encoding(encoding)
    names = ("q", "k")
    pairs = [_as_arrays(x, names) for x in (before, after)]
    if list(pairs[0]) != list(pairs[1]):
        raise _core.PosencError("before has q and k and after has not, or the other way round; pass the same of both")
    if not pairs[0]:
        raise _core.PosencError("before and after are both None; pass q, or (q, k)")
    views, places = [], []
    N = int(_setting(e, "axes", "1"))  # numbers of a position
    for name in pairs[0]:
        _alike(pairs[0][name], pairs[1][name], name, "[B,H,L,D]")
        for arrays in pairs:
            views.append(_arrays.raw(np.ascontiguousarray(_arrays.four_axes(arrays[name], name, order))))
        places.append(_places(positions, views[-1].shape[0], views[-1].shape[2], N))
    D, H = views[-1].shape[3], views[0].shape[1]
    sizes = (1, H, H, 1, 1, D, D, H * D, 0)
    values = () if e is None else _runs._rotation_params(e, params, sizes)
    is_strict = e is not None and "angles=exact" in e.spec
    said = _core.rotation(None if e is None else e._core, tuple(values), tuple(views), tuple(places), N, is_strict)
    said["found"] = _reading(said["found"], D) if said["verdict"] != "unexplained" else None
    said["expected"] = None if e is None else _reading(said["expected"], D)
    if said["side"] is None:
        del said["side"]
    said["alternatives"] = [{**_reading(r, D), "departs": r["departs"], "words": r["words"] or None,
                             "residual": r["residual"]} for r in said["alternatives"]]
    return Diagnosis("rotation", said)


# Settings of a rope that a reading names, what they are where the SPEC does not say them, and their type.
_SETTINGS = (("layout", "interleaved", str), ("layout_out", None, str), ("dim", None, float), ("offset_dim", "0", float),
             ("base", "10000", float), ("schedule", "default", str), ("factor", None, float), ("alpha", None, float),
             ("axis_rule", None, str))


def _reading(r: dict[str, Any], D: int) -> dict[str, Any]:
    """One way to understand a rotation, with the keys of the command's --json."""
    given = dict(x.split("=", 1) for x in r["spec"].partition("[")[2].strip("]").split(":") if "=" in x)
    out: dict[str, Any] = {"spec": r["spec"]}
    for name, otherwise, kind in _SETTINGS:
        text = given.get(name, otherwise)
        out[name] = None if text is None else kind(text)
    out["layout_out"] = out["layout"] if out["layout_out"] in (None, "same") else out["layout_out"]
    out["dim"] = float(D) if out["dim"] is None else out["dim"]
    is_inverse = (r["step"] < 0) != (given.get("direction") == "inverse")
    out["direction"] = "inverse" if is_inverse else "forward"
    out["magnitude"] = r["magnitude"]
    out["positions"] = {"words": r["positions"], "step": abs(r["step"]), "offset": -r["offset"] if r["step"] < 0 else r["offset"]}
    out["angles"] = r["angles"]
    return out


def diagnose_scores(before: Any, after: Any, encoding: Encoding | Model | str | None = None, *, layer: int | None = None,
                    scale: float | None = None, softcap: float | None = None, causal: bool | None = None,
                    window: int | None = None) -> Diagnosis:
    """What `posenc diagnose --scores-before` says: which bias, scale, cap and mask turned scores into others.

    before, after: [B,H,Lq,Lk], the last query at the last key; before may be (q, k), whose products it then is. What is
    expected: encoding (alibi, t5; inspect(F), of which `layer`; None: nothing is), scale, softcap (0: none), causal and
    window; a model says its own scale of (q, k), softcap and window. causal: True, False (keys of the future are seen), or
    None: not said, so that a causal mask beside a bias is no fault. Keys: verdict, departs, found (encoding, scale,
    temperature from row to row, softcap, mask as (lowest, highest distance), slopes, buckets as (number, max_distance,
    bidirectional)), alternatives, residual and advice.

    >>> s = np.random.default_rng(0).standard_normal((1, 4, 16, 16)).astype(np.float32)
    >>> found = diagnose_scores(s, s + 2 * _runs.bias("alibi", H=4, Lq=16, Lk=16), "alibi")
    >>> found["verdict"], found["departs"]
    ('different', ['slopes'])
    """
    usual = 1.0
    facts: Mapping[str, Any] = encoding._layer(layer).facts if isinstance(encoding, Model) else {}
    if isinstance(before, (tuple, list)):
        before, usual = _products(*before)
        usual = facts["scale"][0] if "scale" in facts else usual
    given = {name: _as_arrays(x, (name,)).get(name) for name, x in (("before", before), ("after", after))}
    _alike(given["before"], given["after"], "scores", "[B,H,Lq,Lk]")
    (_, _, Lq, Lk), size = given["after"].shape, given["after"].size
    if Lq > Lk or not size:
        raise _core.PosencError(f"scores before and after have the shape {list(given['after'].shape)}; it must be [B,H,Lq,Lk] with Lq <= Lk, "
                                "and not empty")
    pair = tuple(_arrays.raw(np.ascontiguousarray(x)) for x in given.values())
    if encoding is None:
        return Diagnosis("scores", _core.scores_cause(pair, None))
    e = encoding.encoding(layer) if isinstance(encoding, Model) else as_encoding(encoding)
    name = e.parts["score"].name if "score" in e.parts else "none"
    name = {"nope": "none"}.get(name, name if name in ("none", "alibi", "t5") else "unknown")
    scale = scale if scale is not None else 1.0 if name == "t5" else usual
    softcap = softcap if softcap is not None else facts["softcap"][0] if "softcap" in facts else 0.0
    if window is None and "window" in facts:
        window, causal = facts["window"][0], causal is None or causal
    far = pair[1].shape[-1] if window is None else window - 1
    seen = (0 if causal else -far, far) if causal is not None or window is not None else (1, 0)
    buckets = (int(_setting(e, "num_buckets", "32")), int(_setting(e, "max_distance", "128")), _setting(e, "bidirectional", "yes") != "no")
    return Diagnosis("scores", _core.scores_cause(pair, (name, scale, softcap, *seen, *buckets)))


def _alike(before: np.ndarray | None, after: np.ndarray | None, name: str, axes: str) -> None:
    """Of four axes, and of one shape?"""
    for when, x in (("before", before), ("after", after)):
        if x is None or x.ndim != 4:
            raise _core.PosencError(f"{name} {when} " + ("is None" if x is None else f"has the shape {list(x.shape)}") + f"; it must be {axes}")
    if before.shape != after.shape:  # type: ignore[union-attr]
        raise _core.PosencError(f"{name} before has the shape {list(before.shape)} and after {list(after.shape)}; "  # type: ignore[union-attr]
                                "they must have the same")


def _products(q: Any, k: Any) -> tuple[np.ndarray, float]:
    """Of every query and key, grouped heads or not, and the usual scale of them."""
    pair = _as_arrays((q, k), ("q", "k"))
    x, y = (_arrays.four_axes(pair[n], n, "bhld").astype(np.float64) for n in ("q", "k"))
    if x.shape[1] % y.shape[1]:
        raise _core.PosencError(f"q has {x.shape[1]} heads and k {y.shape[1]}; heads of k must divide heads of q")
    return x @ np.repeat(y, x.shape[1] // y.shape[1], 1).swapaxes(2, 3), x.shape[-1] ** -0.5


def _setting(e: Encoding | None, name: str, otherwise: str) -> str:
    """What a SPEC says of a setting; `otherwise` where it does not."""
    words = [] if e is None else e.spec.replace("]", "").replace("[", ":").split(":")
    return next((w[len(name) + 1:] for w in words if w.startswith(f"{name}=")), otherwise)


def _places(positions: Any, B: int, L: int, N: int) -> np.ndarray:
    at = np.asarray(positions, np.float64) if np.ndim(positions) else float(positions) + np.arange(L, dtype=np.float64)
    at = at[..., None] if N > 1 and (at.ndim < 2 or at.shape[-1] != N) else at
    shape = (B, L, N) if N > 1 else (B, L)
    if at.ndim > len(shape) or any(n not in (1, m) for n, m in zip(at.shape[::-1], shape[::-1])):
        raise _core.PosencError(f"positions has the shape {list(np.shape(positions))}; it must be a number, [{L}] or [{B},{L}]"
                                + (f", with {N} coordinates each" if N > 1 else ""))
    return np.ascontiguousarray(np.broadcast_to(at, shape).reshape(B * L, N))
