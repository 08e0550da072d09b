# SPDX-License-Identifier: MIT
"""The runs: rotate, attend, encode, bias, scores, and what a rotation is made of; NumPy in, NumPy out.

Everything here is about arguments: names, defaults, axes, copies. What is computed, the C library computes.
"""
from __future__ import annotations

from typing import Any, Mapping, NamedTuple

import numpy as np

from . import _arrays, _core, _plans
from ._encoding import Encoding, encoding as as_encoding

ROTARY, SCORES, INPUT = ("rotary",), ("rotary", "score", "weight"), ("input",)
SIDES = ("queries", "keys")  # ORDER posenc_side


class Grads(NamedTuple):
    """What attend_backward gives: the gradients of q, k, v, and of parameters and token inputs by name."""
    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    params: dict[str, np.ndarray]
    tokens: dict[str, np.ndarray]


class Pair(NamedTuple):
    """Two channels that turn together: where they come from, where they go, which coordinate turns them."""
    source: tuple[int, int]
    target: tuple[int, int]
    coordinate: int
    w: float


class Angles(NamedTuple):
    """angle [B or 1, L, M] in radians (head by head where each has its own), temperature [B or 1, L]."""
    angle: np.ndarray
    temperature: np.ndarray


class Frequencies(NamedTuple):
    w: np.ndarray
    pairs: tuple[Pair, ...]
    magnitude: float


def _executor(exact: bool) -> int:
    return _plans.REFERENCE if exact else _plans.AUTO


def _torch() -> Any:
    from . import torch
    return torch


def _output(out: Any, like: np.ndarray, shape: tuple, name: str = "out") -> np.ndarray:
    if out is None:
        return np.empty(shape, like.dtype)
    if not isinstance(out, np.ndarray):
        raise _core.DtypeError(f"{name} is a {type(out).__name__}; it must be a NumPy array")
    if not out.flags.writeable:
        raise _core.PosencError(f"{name} may not be written to; pass an array that may")
    if not out.dtype.isnative or out.shape[-1:] != (1,) and out.ndim and out.strides[-1] != out.itemsize \
            or any(s % out.itemsize for s in out.strides) or not out.flags.aligned:
        raise _core.PosencError(f"{name} must be aligned, in native byte order, with a contiguous last axis")
    return _arrays.floats(out, name)


def _shaped(out: np.ndarray, shape: tuple, name: str = "out") -> None:
    if out.shape != shape:
        raise _core.PosencError(f"{name} has the shape {list(out.shape)}; it must be {list(shape)}")


def _distances(q: Any, k: Any, Lq: int, Lk: int) -> int:
    """Distances that a run with arrays of positions may meet; 0 where Lq + Lk are enough."""
    if not isinstance(q, np.ndarray) and not isinstance(k, np.ndarray):
        return 0
    ends = []
    for p, L in ((q, Lq), (k, Lk)):
        if isinstance(p, np.ndarray):
            if p.dtype.kind != "i" or not p.size:
                return 0
            ends.append((int(p.min()), int(p.max())))
        else:
            start = int(p[0] if isinstance(p, tuple) else p or 0)
            ends.append((start, start + L - 1))
    most = max(ends[0][1] - ends[1][0], 0) - min(ends[0][0] - ends[1][1], 0) + 1
    return most if Lq + Lk < most <= 1 << 24 else 0


def _rotation_tokens(e: Encoding, tokens: Mapping[str, Any] | None) -> tuple | None:
    """In the encoding's order, None where another part wants it: a rotation reads its own alone."""
    if tokens is None:
        return None
    names, given = e._core.token_names(), _arrays.named(tokens, "tokens")
    out = [given.pop(name, None) for name in names]
    if given:
        raise _core.PosencError(f"tokens has {', '.join(given)}; {e.spec} needs {', '.join(names) or 'none'}")
    return tuple(None if x is None else _arrays.raw(np.ascontiguousarray(_arrays.floats(x, n)))
                 for x, n in zip(out, names)) or None


def _keys(q: Any, k: Any, tokens: tuple) -> tuple[int, int]:
    """Heads and number of the keys: where q is rotated alone, they are those of its tokens."""
    shapes = [x.shape for x in tokens if x is not None and len(x.shape) == 4]
    if k is not None or not shapes:
        return (q if k is None else k).shape[1:3]
    return max(s[1] for s in shapes), max([q.shape[2], *(s[2] for s in shapes)])


def _both_positions(q: Any, k: Any, Lq: int, Lk: int, alone: bool) -> tuple[Any, Any]:
    """Where queries and keys stand, keys as queries; where q comes alone, its tokens are numbered from 0 on."""
    q_at = _arrays.positions(q, "q_positions", Lq)
    if k is None and (alone or not isinstance(q, range)):
        return q_at, 0 if alone else q_at
    return q_at, _arrays.positions(q if k is None else k, "q_positions" if k is None else "k_positions", Lk)


def _has_part(e: Encoding, place: str, run: str) -> None:
    """The library's own refusal, for runs of which it would make nothing."""
    if place not in e.places:
        raise _core.UnsupportedError(f"{run}: {e.spec} has no part at place {place}")


def _rotation_params(e: Encoding, given: Any, sizes: tuple) -> tuple:
    return e._fill(given, sizes, ROTARY)


def rotate(q: Any, k: Any = None, encoding: Encoding | str = "rope", *, q_positions: Any = 0, k_positions: Any = None,
           params: Mapping[str, Any] | None = None, tokens: Mapping[str, Any] | None = None, inverse: bool = False, order: str = "bhld", out: Any = None,
           exact: bool = False, threads: int | None = None) -> Any:
    """q (and k) rotated by their positions: arrays of the same shape and type.

    q [B,H,Lq,D] and k [B,G,Lk,D] (order="blhd": [B,L,H,D]). Positions: a number n stands for n, n+1, ...; or an
    array [L], [B,L], with N coordinates [...,L,N]; k_positions None: as q's. out: an array, or a pair; q itself
    rotates in place. inverse=True turns back. exact=True computes in float64 whatever the type. tokens: what angles
    follow in place of positions (rope[content=step]: phi [B,G,Lk,dim/2]). threads: how many this call uses; None: what
    set_threads has set.

    >>> rotate(np.array([[[[1.0, 0.0]]]]), q_positions=1).round(4)
    array([[[[0.5403, 0.8415]]]])
    """
    if _arrays.is_torch(q, k):
        return _torch()._rotate_any(q, k, encoding, q_positions=q_positions, k_positions=k_positions, params=params,
                                    tokens=tokens, inverse=inverse, order=order, out=out, exact=exact, threads=threads)
    e = as_encoding(encoding)
    outs = out if isinstance(out, (tuple, list)) else (out, None)
    if out is not None and k is not None and (not isinstance(out, (tuple, list)) or len(out) != 2):
        raise _core.PosencError("out must be a pair of arrays where k is given")
    x = [None if a is None else _arrays.floats(a, n) for a, n in ((q, "q"), (k, "k"))]
    if x[0] is None and x[1] is None:
        raise _core.PosencError("q and k are both None; pass at least one")
    y = [None if a is None else _output(o, a, a.shape, n) for a, o, n in zip(x, outs, ("out", "out of k"))]
    v = [None if a is None else _arrays.four_axes(a, n, order) for a, n in zip(x, ("q", "k"))]
    w = [None if a is None else _arrays.four_axes(a, n, order) for a, n in zip(y, ("out", "out of k"))]
    for a, b, n in zip(v, w, ("out", "out of k")):
        if a is not None:
            _shaped(b, a.shape, n)
    first = next(a for a in v if a is not None)
    other = v[1] if v[1] is not None else first
    B, H, Lq, D = first.shape
    _has_part(e, "rotary", "rotate")
    made = _rotation_tokens(e, tokens)
    G, Lk = _keys(first, v[1], made or ())
    q_at, k_at = _both_positions(q_positions, k_positions, Lq, Lk, x[1] is None and tokens is not None)
    if all(a is None or not a.size for a in v):
        return y[0] if k is None else y[1] if q is None else tuple(y)
    plan = _plans.get(e, (H, G, D, D, H * D, 0), B, Lq, Lk, threads=threads, executor=_executor(exact))
    values = _rotation_params(e, params, (1, H, other.shape[1], Lq, other.shape[2], D, D, H * D, 0))
    plan.rotate(_arrays.raw(v[0]), _arrays.raw(v[1]), q_at, k_at, -1 if inverse else 1, values, made,
                _arrays.raw(w[0]), _arrays.raw(w[1]))
    return y[0] if k is None else y[1] if q is None else tuple(y)


def rope(q: Any, k: Any = None, positions: Any = 0, *, config: Any = None, layer: int | None = None,
         order: str = "bhld", out: Any = None, **settings: Any) -> Any:
    """rotate with rope: its settings by name, or as a model's config says.

    >>> rope(np.ones((1, 1, 2, 4), np.float32), layout="half").shape
    (1, 1, 2, 4)
    """
    e = Encoding.from_config(config, layer=layer) if config is not None else Encoding("rope")
    if settings:
        e = Encoding(e, **settings)
    return rotate(q, k, e, q_positions=positions, order=order, out=out)


@_arrays.of_its_kind
def rotate_backward(grad_q: Any, grad_k: Any = None, encoding: Encoding | str = "rope", *, q: Any = None, k: Any = None,
                    q_positions: Any = 0, k_positions: Any = None, params: Mapping[str, Any] | None = None,
                    tokens: Mapping[str, Any] | None = None, order: str = "bhld", exact: bool = False,
                    threads: int | None = None) -> Any:
    """(dq, dk, gradients of parameters by name) of rotate, from the gradients of what it gave.

    q and k, as they were before, are needed for the gradients of parameters and of tokens alone. With tokens a fourth
    is returned: their gradients by name.
    """
    e = as_encoding(encoding)
    view = lambda a, n: None if a is None else _arrays.four_axes(_arrays.floats(a, n), n, order)
    dy = [view(grad_q, "grad_q"), view(grad_k, "grad_k")]
    if dy[0] is None and dy[1] is None:
        raise _core.PosencError("grad_q and grad_k are both None; pass at least one")
    _has_part(e, "rotary", "rotate_backward")
    x = [view(q, "q"), view(k, "k")]
    first = next(a for a in dy if a is not None)
    other = dy[1] if dy[1] is not None else first
    B, H, Lq, D = first.shape
    sizes = (1, H, other.shape[1], Lq, other.shape[2], D, D, H * D, 0)
    rows = e._rows(sizes)
    values = _rotation_params(e, params, sizes)
    learns = x[0] is not None or x[1] is not None
    dparams = tuple(np.zeros(row[1], value.dtype) if learns and row[3] == "rotary" and row[2] else None
                    for row, value in zip(rows, values))
    dx = [None if a is None else np.empty(a.shape, a.dtype) for a in dy]
    made = _rotation_tokens(e, tokens)
    dtokens = made and tuple(np.empty(t.shape, t.dtype) if t is not None and learns else None for t in made)
    G, Lk = _keys(first, dy[1], made or ())
    q_at, k_at = _both_positions(q_positions, k_positions, Lq, Lk, x[1] is None and tokens is not None)
    plan = _plans.get(e, (H, G, D, D, H * D, 0), B, Lq, Lk, threads=threads, executor=_executor(exact))
    src = [a if a is not None else g for a, g in zip(x, dy)]
    raw = _arrays.raw
    plan.rotate_backward(raw(src[0]), raw(src[1]), q_at, k_at, 1, values, made, raw(dy[0]), raw(dy[1]), raw(dx[0]),
                         raw(dx[1]), dparams, dtokens)
    named = {row[0]: d for row, d in zip(rows, dparams) if d is not None}
    back = [None if a is None else _arrays.axes(a, order) for a in dx]
    if tokens is not None:
        learnt = {n: d for n, d in zip(e._core.token_names(), dtokens or ()) if d is not None}
        return back[0], back[1], named, learnt
    return back[0], back[1], named


def _last_of(k_at: Any, Lq: int, Lk: int) -> Any:
    """Where queries stand if nobody says: the last one where the last key does."""
    if isinstance(k_at, tuple):
        return k_at[0] + (Lk - Lq) * k_at[1], k_at[1]
    if isinstance(k_at, np.ndarray) and k_at.ndim <= 2 and k_at.shape[-1] >= Lq:
        return k_at[..., k_at.shape[-1] - Lq:]
    return (0 if k_at is None else k_at) + Lk - Lq


def _checked_words(causal: Any, **counts: Any) -> None:
    """Whole numbers, or None; and causal is no mask."""
    if causal is not None and not isinstance(causal, (bool, int, np.bool_)):
        raise TypeError(f"causal is a {type(causal).__name__}; it must be True or False: an array goes to mask=")
    for name, n in counts.items():
        if n is not None and not isinstance(n, (int, np.integer)):
            raise TypeError(f"{name} is a {type(n).__name__}; it must be a whole number")


class _Attention:
    """The arguments of attend as _core wants them, which backward, scores and bias share."""

    def __init__(self, q: np.ndarray, k: np.ndarray, v: np.ndarray | None, encoding: Any, *, causal: bool = False,
                 window: int | None = None, key_allowed: Any = None, mask: Any = None, q_segments: Any = None,
                 k_segments: Any = None, q_positions: Any = None, k_positions: Any = None, params: Any = None,
                 tokens: Any = None, scale: float | None = None, L: int | None = None, exact: bool = False,
                 threads: int | None = None):
        self.e = e = as_encoding(encoding)
        _checked_words(causal, window=window, threads=threads, L=L)
        if scale is not None:
            self.e = e = _scaled(e, scale)
        (B, H, Lq, D), G, Lk = q.shape, k.shape[1], k.shape[2]
        Dv = D if v is None else v.shape[3]
        self.shape = (B, H, Lq, Lk, Dv)
        q_at = _arrays.positions(q_positions, "q_positions", Lq)
        k_at = _arrays.positions(k_positions, "k_positions", Lk)
        q_at = _last_of(k_at, Lq, Lk) if q_at is None else q_at
        bits = (_plans.CAUSAL if causal else 0) | (_plans.WINDOW if window is not None else 0)
        bits |= _plans.KEY_PADDING if key_allowed is not None else 0
        bits |= _plans.EXPLICIT if mask is not None else 0
        k_segments = q_segments if k_segments is None else k_segments
        bits |= _plans.SEGMENTS if q_segments is not None and not e.sees_segments else 0
        heads = (H, G, D, Dv, H * D, 0)
        if L and e.is_sized:
            Lq, Lk = max(Lq, L), max(Lk, L)
        B, Lq, Lk = max(B, 1), max(Lq, 1), max(Lk, 1)  # empty arrays are checked as others are
        self.plan = _plans.get(e, heads, B, Lq, Lk, bits, window or 0, threads, _executor(exact),
                               _distances(q_at, k_at, Lq, Lk))
        self.sizes = (1, H, G, Lq, Lk, D, Dv, H * D, 0)
        self.params = e._fill(params, self.sizes, SCORES)
        raw = _arrays.raw
        self.args = (raw(q), raw(k), raw(v), q_at, k_at,
                     None if key_allowed is None else _two(_arrays.mask(key_allowed, "key_allowed")),
                     None if mask is None else _four(_arrays.mask(mask, "mask")),
                     None if q_segments is None else _two(_arrays.whole(q_segments, "q_segments")),
                     None if k_segments is None else _two(_arrays.whole(k_segments, "k_segments")), self.params,
                     _token_inputs(e, tokens))
        self.tokens = self.args[-1]


def _token_inputs(e: Encoding, tokens: Mapping[str, Any] | None) -> tuple | None:
    """In the encoding's order. Without any the library says which is missing; a bias may need none."""
    if tokens is None:
        return None
    names, given = e._core.token_names(), _arrays.named(tokens, "tokens")
    out = []
    for name in names:
        if name not in given:
            raise _core.PosencError(f"tokens lacks {name}, which {e.spec} needs: [B, H or G or 1, L, channels]")
        out.append(np.ascontiguousarray(_arrays.floats(given.pop(name), name)))
    if given:
        raise _core.PosencError(f"tokens has {', '.join(given)}; {e.spec} needs {', '.join(names) or 'none'}")
    return tuple(_arrays.raw(x) for x in out) or None


def _scaled(e: Encoding, scale: float) -> Encoding:
    if len(e.parts) == 1:
        return Encoding(e, scale=scale)
    for place in ("score", "weight", "rotary", "input"):
        if place in e.parts:
            return Encoding(e, **{f"{e.parts[place].name}.scale": scale})
    return e


def _two(x: np.ndarray) -> np.ndarray:
    return x.reshape((1,) * (2 - x.ndim) + x.shape)


def _four(x: np.ndarray) -> np.ndarray:
    return x.reshape((1,) * (4 - x.ndim) + x.shape)


def _qkv(order: str, **arrays: Any) -> list[np.ndarray]:
    views = [_arrays.four_axes(_arrays.floats(a, n), n, order) for n, a in arrays.items()]
    q, k = views[0], views[1]
    if not q.shape[1] or not k.shape[1] or not q.shape[3]:
        raise _core.PosencError(f"q has the shape {list(q.shape)} and k {list(k.shape)}; heads and widths must not be 0")
    if not all(a.size for a in views):
        _empty_but_fit(*views[:3])
    return views


def _empty_but_fit(q: np.ndarray, k: np.ndarray, v: np.ndarray | None = None) -> None:
    """What the library checks of arrays that are not empty."""
    (B, H, _, D), (_, G, Lk, _) = q.shape, k.shape
    if k.shape != (B, G, Lk, D) or H % G:
        raise _core.PosencError(f"k has the shape {list(k.shape)}; it must be [{B},G,Lk,{D}] for this q, and G must divide {H}")
    if v is not None and v.shape[:3] != (B, G, Lk):
        raise _core.PosencError(f"v has the shape {list(v.shape)}; it must be [{B},{G},{Lk},Dv] for this k")


def attend(q: Any, k: Any, v: Any, encoding: Encoding | str = "nope", *, causal: bool = False,
           window: int | None = None, key_allowed: Any = None, mask: Any = None, q_segments: Any = None,
           k_segments: Any = None, q_positions: Any = None, k_positions: Any = None,
           params: Mapping[str, Any] | None = None, tokens: Any = None, scale: float | None = None,
           order: str = "bhld", return_lse: bool = False, out: Any = None, L: int | None = None, exact: bool = False,
           threads: int | None = None) -> Any:
    """Attention with positions, in memory linear in the length: o [B,H,Lq,Dv], and lse [B,H,Lq] if asked for.

    q [B,H,Lq,D], k [B,G,Lk,D], v [B,G,Lk,Dv]; G divides H. The encoding's rotary part, if it has one, is applied
    inside. Masks combine by "and": causal; window (distances below it); key_allowed [B or 1, Lk]; mask
    [B or 1, H or 1, Lq, Lk], both true where a key may be seen; segments [B or 1, L]. Without q_positions the last
    query stands at the last key, as in decoding with a cache. L: the length that parameters are made for, where their
    shape follows it (Encoding.init(L=...)). tokens: by name, the inputs per token that the encoding needs (fox: f
    [B, H or G or 1, Lk, 1]), as the model makes them.

    scale: what q . k is multiplied by; None: what the encoding's source has, encodings()[name].scale: mostly 1/sqrt(D),
    but 1 for t5 and swin_v2, 1/sqrt(2D) for tupe, 1/sqrt(3D) for deberta with both of its terms, 1/D for inkling,
    1/sqrt(D/2) for complex_order_attention.
    order: "bhld" as above; "blhd": q, k, v and o are [B,L,H,D], lse stays [B,H,Lq].
    out: an array of o's shape, and usually of q's type, to write into; it is returned.
    exact: True computes in float64 with the reference executor, which forms all scores.
    threads: how many this call uses; None: what set_threads has set; 0: one for each processor.

    >>> q = np.zeros((1, 2, 3, 8), np.float32)
    >>> attend(q, q, q, "alibi", causal=True).shape
    (1, 2, 3, 8)
    """
    if _arrays.is_torch(q, k, v):
        return _torch()._attend_any(q, k, v, encoding, causal=causal, window=window, key_allowed=key_allowed, mask=mask,
                                    q_segments=q_segments, k_segments=k_segments, q_positions=q_positions,
                                    k_positions=k_positions, params=params, tokens=tokens, scale=scale, order=order,
                                    return_lse=return_lse, out=out, L=L, exact=exact, threads=threads)
    q, k, v = _qkv(order, q=q, k=k, v=v)
    shape = (q.shape[0], q.shape[1], q.shape[2], v.shape[3])
    o = _output(out, q, shape if order == "bhld" else (shape[0], shape[2], shape[1], shape[3]))
    view = _arrays.four_axes(o, "out", order)
    _shaped(view, shape)
    lse = np.empty(shape[:3], np.float64 if q.dtype == np.float64 else np.float32) if return_lse else None
    a = _Attention(q, k, v, encoding, causal=causal, window=window, key_allowed=key_allowed, mask=mask,
                   q_segments=q_segments, k_segments=k_segments, q_positions=q_positions, k_positions=k_positions,
                   params=params, tokens=tokens, scale=scale, L=L, exact=exact, threads=threads)
    if not o.size or not k.shape[2]:
        o[...] = 0
        if lse is not None:
            lse[...] = -np.inf
    else:
        a.plan.attend(*a.args, _arrays.raw(view), lse)
    return (o, lse) if return_lse else o


@_arrays.of_its_kind
def attend_backward(grad: Any, q: Any, k: Any, v: Any, o: Any, lse: Any, encoding: Encoding | str = "nope", *,
                    dlse: Any = None, order: str = "bhld", **options: Any) -> Grads:
    """The gradients of attend, from o and lse as it gave them (return_lse=True) and the gradient of o.

    options: those of attend.
    """
    q, k, v, o, grad = _qkv(order, q=q, k=k, v=v, o=o, grad=grad)
    a = _Attention(q, k, v, encoding, **options)
    d = [np.empty(x.shape, x.dtype) for x in (q, k, v)]
    dparams = tuple(None if p is None else np.zeros(p.shape, p.dtype) for p in a.params)
    dtokens = tuple(np.empty(t.shape, t.dtype) for t in a.tokens) if a.tokens else None
    raw = _arrays.raw
    a.plan.attend_backward(*a.args, raw(o), _arrays.floats(lse, "lse"), raw(grad),
                           None if dlse is None else _arrays.floats(dlse, "dlse"), raw(d[0]), raw(d[1]), raw(d[2]),
                           dparams, dtokens)
    rows = a.e._rows(a.sizes) if a.params else []
    named = {row[0]: g for row, g in zip(rows, dparams) if g is not None}
    return Grads(*(_arrays.axes(x, order) for x in d), named, dict(zip(a.e._core.token_names(), dtokens or ())))


@_arrays.of_its_kind
def scores(q: Any, k: Any, encoding: Encoding | str = "nope", *, order: str = "bhld", **options: Any) -> np.ndarray:
    """The scores [B,H,Lq,Lk] before any mask: quadratic, for tests and pictures. options: those of attend."""
    q, k = _qkv(order, q=q, k=k)
    a = _Attention(q, k, None, encoding, **options)
    out = np.empty(a.shape[:4], q.dtype)
    a.plan.scores(*a.args, _arrays.raw(out))
    return out


def bias(encoding: Encoding | str, *, H: int, Lq: int, Lk: int, D: int = 64, params: Mapping[str, Any] | None = None,
         dtype: Any = "float32", **options: Any) -> np.ndarray:
    """What the encoding adds to scores whatever the content: [H,Lq,Lk]. options: those of attend.

    >>> bias("alibi", H=8, Lq=1, Lk=3)[0].tolist()
    [[-1.0, -0.5, 0.0]]
    """
    if _arrays.is_torch(*options.values(), *_arrays.values(params)):
        return _torch()._bias_any(encoding, dtype=dtype, H=H, Lq=Lq, Lk=Lk, D=D, params=params, **options)
    a = _bias_run(encoding, H, Lq, Lk, D, _arrays.dtype(dtype), params, options)
    out = np.empty((H, Lq, Lk), _arrays.dtype(dtype))
    if out.size:
        a.plan.bias(*a.args, _arrays.raw(out))
    return out


@_arrays.of_its_kind
def bias_backward(grad: Any, encoding: Encoding | str, *, D: int = 64, params: Mapping[str, Any] | None = None,
                  **options: Any) -> dict[str, np.ndarray]:
    """Gradients of the parameters of bias, by name, from the gradient [H,Lq,Lk] of what it gave."""
    g = _arrays.floats(grad, "grad")
    if g.ndim != 3:
        raise _core.PosencError(f"grad has the shape {list(g.shape)}; it must be [H,Lq,Lk]")
    a = _bias_run(encoding, *g.shape, D, g.dtype, params, options)
    d = tuple(None if p is None else np.zeros(p.shape, p.dtype) for p in a.params)
    if g.size:
        a.plan.bias_backward(*a.args, _arrays.raw(g), d)
    return {row[0]: x for row, x in zip(a.e._rows(a.sizes), d) if x is not None}


def _bias_run(encoding: Any, H: int, Lq: int, Lk: int, D: int, dtype: Any, params: Any, options: Any) -> _Attention:
    q, k = (np.broadcast_to(np.zeros(D, dtype), (1, H, L, D)) for L in (Lq, Lk))
    return _Attention(q, k, None, encoding, params=params, **options)


def _gridded(e: Encoding, grid: Any) -> Encoding:
    """With the tokens of a grid, by the settings that this encoding has for it."""
    info = e.parts.get("input")
    if info is None:
        raise _core.UnsupportedError(f"grid: {e.spec} has no part at place input")
    try:
        sizes = [int(n) for n in (grid.split("x") if isinstance(grid, str) else grid)]
    except (TypeError, ValueError):
        raise _core.PosencError(f"grid is {grid!r}; it must be whole numbers, as (14, 14) or '14x14'") from None
    known = {s.name for s in info.settings}
    name = info.name + "." if len(e.parts) > 1 else ""
    for setting in ("shape", "grid_out", "grid_in"):
        if setting in known:
            return Encoding(e, **{name + setting: sizes})
    if not {"height", "width"} <= known or len(sizes) != 2:
        raise _core.PosencError(f"grid is {'x'.join(map(str, sizes))}; it does not fit {info.name}")
    return Encoding(e, **{name + "height": sizes[0], name + "width": sizes[1]})


def encode(encoding: Encoding | str, positions: Any = None, dim: int | None = None, *, x: Any = None, grid: Any = None,
           params: Mapping[str, Any] | None = None, dtype: Any = "float32", L: int | None = None, exact: bool = False,
           threads: int | None = None) -> np.ndarray:
    """Rows of an input encoding: [L,dim], or [B,L,dim] where positions or x have a batch; added to x if given.

    positions: an array [L], [B,L] or, with coordinates, [...,L,N]; range(n); with x also a number. Ids of learned
    tables are positions. grid: the tokens of a grid, as in "14x14". exact, threads: as in attend.
    L: the length that a learned table is made for (Encoding.init(L=...)).

    >>> encode("sinusoidal", range(2), 4).round(3).tolist()
    [[0.0, 1.0, 0.0, 1.0], [0.8410000205039978, 0.5400000214576721, 0.009999999776482582, 1.0]]
    """
    if _arrays.is_torch(x) or x is None and _arrays.is_torch(positions, *_arrays.values(params)):
        return _torch()._encode_any(encoding, positions, dim, dtype=dtype, x=x, grid=grid, params=params, L=L)
    e = as_encoding(encoding)
    _has_part(e, "input", "encode")
    if grid is not None:
        e = _gridded(e, grid)
    if x is not None:
        x = _arrays.floats(x, "x")
        if x.ndim not in (2, 3):
            raise _core.PosencError(f"x has the shape {list(x.shape)}; it must be [L,dim] or [B,L,dim]")
    dim = _width(dim, x)
    at = _arrays.positions(positions, "positions", None if x is None else x.shape[-2])
    many = isinstance(at, np.ndarray)
    coordinates = e._core.coordinates()
    lead = at.shape[:-1] if many and coordinates > 1 else at.shape if many else ()
    if x is not None:
        B, n = (x.shape[0] if x.ndim == 3 else 1), x.shape[-2]
    elif many:
        B, n = (lead[0] if len(lead) == 2 else 1), lead[-1]
    elif isinstance(positions, range):
        B, n = 1, len(positions)
    elif positions is None:
        B, n = 1, e._core.tokens((1, 1, 1, 1, 1, dim, dim, dim, 1))
        if not n:
            raise _core.PosencError("positions is missing: range(n), or an array")
    else:
        raise _core.PosencError(f"positions is {positions!r}, a start; say how many: range(start, end), or pass x")
    plan, sizes = _rows_plan(e, B, n, dim, at, exact, threads, L)
    values = _row_params(e, params, sizes)
    width = plan.sizes()["rows_width"]
    batched = (x is not None and x.ndim == 3) or len(lead) == 2
    y = np.empty((B, n, width), _arrays.dtype(dtype) if x is None else x.dtype)
    if y.size:
        plan.rows(None if x is None else _arrays.raw(x.reshape(B, n, x.shape[-1])), at, values, _arrays.raw(y))
    return y if batched else y[0]


def _width(dim: int | None, x: np.ndarray | None) -> int:
    if dim is None and x is None:
        raise _core.PosencError("dim is missing: the width of the rows")
    if dim is not None and dim < 1:
        raise _core.PosencError(f"dim is {dim}; it must be at least 1")
    return x.shape[-1] if dim is None else dim  # type: ignore[union-attr]


def _row_params(e: Encoding, params: Any, sizes: tuple) -> tuple:
    """What a run of rows reads; a table of another length than the positions ask for needs its L said."""
    values, L = e._fill(params, sizes, INPUT), sizes[-1]
    for value, (name, shape, *_) in zip(values, e._rows(sizes) if e.is_sized else ()):
        if value is not None and value.shape[1:] == shape[1:] and value.ndim and value.shape[0] > shape[0]:
            raise _core.PosencError(f"{name} has {value.shape[0]} rows, and for positions up to {L - 1} it would have {shape[0]}; "
                                    f"say the length that it is made for: L={L + value.shape[0] - shape[0]}")
    return values


@_arrays.of_its_kind
def encode_backward(grad: Any, encoding: Encoding | str, positions: Any = None, *, x: Any = None, grid: Any = None,
                    params: Mapping[str, Any] | None = None, L: int | None = None,
                    exact: bool = False) -> tuple[Any, dict[str, np.ndarray]]:
    """(dx or None, gradients of the parameters by name) of encode, from the gradient [B,L,dim] or [L,dim] of its rows."""
    e = as_encoding(encoding)
    _has_part(e, "input", "encode_backward")
    if grid is not None:
        e = _gridded(e, grid)
    dy = _arrays.floats(grad, "grad")
    if dy.ndim not in (2, 3):
        raise _core.PosencError(f"grad has the shape {list(dy.shape)}; it must be [L,dim] or [B,L,dim]")
    shape, dy = dy.shape, dy.reshape((1,) * (3 - dy.ndim) + dy.shape)
    B, n, dim = dy.shape
    at = _arrays.positions(positions, "positions", n)
    plan, sizes = _rows_plan(e, B, n, dim, at, exact, None, L)
    values = _row_params(e, params, sizes)
    d = tuple(None if p is None else np.zeros(p.shape, p.dtype) for p in values)
    dx = None if x is None else np.empty(dy.shape, dy.dtype)
    plan.rows_backward(None if x is None else _arrays.raw(_arrays.floats(x, "x").reshape(dy.shape)), at, values,
                       _arrays.raw(dy), _arrays.raw(dx), d)
    named = {row[0]: g for row, g in zip(e._rows(sizes), d) if g is not None}
    return None if dx is None else dx.reshape(shape), named


def _rows_plan(e: Encoding, B: int, L: int, dim: int, at: Any, exact: bool, threads: int | None,
               made_for: int | None) -> tuple:
    """A table of rows is as long as the last position asks, where the encoding does not say."""
    if isinstance(at, np.ndarray):
        last = int(at.max()) + 1 if at.size and at.max() < 1 << 30 else L
    else:
        start, step = at if isinstance(at, tuple) else (at or 0, 1)
        last = int(start + (L - 1) * step) + 1
    last, B, L = max(last, L, made_for or 1), max(B, 1), max(L, 1)  # of no rows a plan of one
    plan = _plans.get(e, (1, 1, dim, dim, dim, last), B, L, L, threads=threads, executor=_executor(exact))
    return plan, (1, 1, 1, L, L, dim, dim, dim, last)


def _rotary(encoding: Any, D: int, L: int = 1, params: Any = None, H: int = 1) -> tuple:
    e = as_encoding(encoding)
    return e, _plans.get(e, (H, H, D, D, H * D, 0), 1, L, L), e._fill(params, (1, H, H, L, L, D, D, H * D, 0), ROTARY)


def frequencies(encoding: Encoding | str = "rope", *, D: int, length: float | None = None,
                params: Mapping[str, Any] | None = None) -> Frequencies:
    """Radians per position of each pair of channels, the pairs, and the factor on cosine and sine.

    length: of the sequence, for schedules that follow it.

    >>> frequencies("rope", D=4).w.tolist()
    [1.0, 0.01]
    """
    _, plan, values = _rotary(encoding, D, params=params)
    _, _, magnitude = plan.frequencies()
    pairs = tuple(Pair(*row) for row in plan.pairs(values, float(length or 1)))
    return Frequencies(np.array([p.w for p in pairs]), pairs, magnitude)


def _lead(positions: Any, at: Any, coordinates: int) -> tuple[int, ...]:
    """[L] or [B,L] of positions of which each has so many numbers."""
    if isinstance(positions, range):
        return (len(positions),)
    if not isinstance(at, np.ndarray) or not 0 < at.ndim < 4:
        shape = f"has the shape {list(at.shape)}" if isinstance(at, np.ndarray) else f"is {positions!r}"
        wanted = "[L] or [B,L]" if coordinates == 1 else f"[L,{coordinates}] or [B,L,{coordinates}]"
        raise _core.PosencError(f"positions {shape}; it must be range(n) or an array {wanted}")
    return at.shape[:-1] if at.ndim == 3 or at.ndim == 2 and coordinates > 1 else at.shape


def angles(encoding: Encoding | str, positions: Any, *, D: int, H: int = 1,
           params: Mapping[str, Any] | None = None) -> Angles:
    """The angles that queries are rotated by, as products in float64, and the factor on them.

    >>> angles("rope", range(3), D=4).angle[0, 2].tolist()
    [2.0, 0.02]
    """
    at = _arrays.positions(positions, "positions")
    e, plan, values = _rotary(encoding, D, 1, params, H)
    facts = plan.sizes()
    lead = _lead(positions, at, facts["coordinates"])
    B, L = (lead[0] if len(lead) == 2 else 1), lead[-1]
    plan = _plans.get(e, (H, H, D, D, H * D, 0), B, L, L)
    angle = np.empty((B, L, plan.frequencies()[1] * facts["heads"]))
    temperature = np.empty((B, L))
    if angle.size:
        plan.angles(at, values, angle, temperature)
    return Angles(angle, temperature)


@_arrays.of_its_kind
def cos_sin(encoding: Encoding | str, positions: Any, *, D: int, dtype: Any = "float32", layout: str = "half",
            params: Mapping[str, Any] | None = None, side: str = "queries") -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines [...,L,2M] as transformers' rotary modules give them, from exact angles.

    layout "half": M numbers, and the same again; "interleaved": each number twice. positions: [L], [B,L], with
    coordinates [...,L,N]; range(n). dtype "float64" is computed in float64. side: whose they are, "queries" or "keys",
    which differ for xpos; the temperature of queries is not in them.

    >>> cos_sin("rope", range(2), D=4)[0].shape
    (2, 4)
    """
    if layout not in ("half", "interleaved"):
        raise _core.PosencError(f"layout is {layout!r}; it must be 'half' or 'interleaved'")
    if side not in SIDES:
        raise _core.PosencError(f"side is {side!r}; it must be 'queries' or 'keys'")
    at, to = _arrays.positions(positions, "positions"), _arrays.dtype(dtype)
    e, plan, values = _rotary(encoding, D, 1, params)
    _has_part(e, "rotary", "cos_sin")
    lead = _lead(positions, at, plan.sizes()["coordinates"])
    both = _cosines_and_sines(e, _table(e, D, at, lead, values, side), plan.sizes()["coordinates"])
    if to == np.float64 and both[0].size:
        both = _exact_cosines_and_sines(e, D, at, lead, values, side)
    spread = (lambda a: np.concatenate([a, a], -1)) if layout == "half" else (lambda a: np.repeat(a, 2, -1))
    return tuple(spread(a).astype(to, copy=False) for a in both)  # type: ignore[return-value]


def _table(e: Encoding, D: int, at: Any, lead: tuple, values: tuple, side: str) -> np.ndarray:
    B, L = (lead[0] if len(lead) == 2 else 1), lead[-1]
    plan = _plans.get(e, (1, 1, D, D, D, 0), max(B, 1), max(L, 1), max(L, 1))
    out = np.empty((B, L, plan.sizes()["q_width" if side == "queries" else "k_width"]), np.float32)
    if out.size:
        plan.table(at, values, SIDES.index(side), out)
    return out.reshape(lead + out.shape[-1:])


def _cosines_and_sines(e: Encoding, table: np.ndarray, coordinates: int) -> tuple[np.ndarray, np.ndarray]:
    """[...,M] each; what follows them in a row is the temperature of queries."""
    lead, M = table.shape[:-1], table.shape[-1] // 2
    if "axis_rule=halves" not in e.spec:
        return table[..., :M], table[..., M:2 * M]
    rows = table[..., :2 * M].reshape(*lead, coordinates, 2, M // coordinates)  # of each coordinate its own, one after the other
    return rows[..., 0, :].reshape(*lead, M), rows[..., 1, :].reshape(*lead, M)


def _exact_cosines_and_sines(e: Encoding, D: int, at: Any, lead: tuple, values: tuple, side: str) -> tuple:
    """The same in float64, which tables are not: where the first channel of each pair is 1, it turns to (cos, sin)."""
    B, L = (lead[0] if len(lead) == 2 else 1), lead[-1]
    plan = _plans.get(e, (1, 1, D, D, D, 0), B, L, L, executor=_plans.REFERENCE)
    pairs = [Pair(*row) for row in plan.pairs(values, float(L))]
    ones, turned = np.zeros((B, 1, L, D)), np.empty((B, 1, L, D))
    ones[..., [p.source[0] for p in pairs]] = 1
    # Queries also have the phase and the temperature, which are not in a table; magnitudes of either side are (xpos: nan).
    is_query = side == "queries" and np.isnan(plan.frequencies()[2])
    q, k, to_q, to_k = (ones, None, turned, None) if is_query else (None, ones, None, turned)
    plan.rotate(q, k, at, at, 1, values, None, to_q, to_k)
    return tuple(turned[..., [p.target[i] for p in pairs]].reshape(*lead, len(pairs)) for i in (0, 1))


@_arrays.of_its_kind
def rerotate(k: Any, src: Encoding | str, dst: Encoding | str, src_positions: Any, dst_positions: Any, *,
             params: Mapping[str, Any] | None = None, dst_params: Mapping[str, Any] | None = None, order: str = "bhld",
             out: Any = None) -> np.ndarray:
    """Cached keys [B,G,L,D] that src rotated at src_positions, rotated on to where dst has them at dst_positions.

    >>> keys = np.ones((1, 1, 2, 4))
    >>> np.allclose(rerotate(rotate(keys, q_positions=5), "rope", "rope", 5, 0), rotate(keys))
    True
    """
    x = _arrays.floats(k, "k")
    y = _output(out, x, x.shape)
    view, to = _arrays.four_axes(x, "k", order), _arrays.four_axes(y, "out", order)
    _shaped(to, view.shape)
    B, G, L, D = view.shape
    if x.size:
        heads, sizes = (G, G, D, D, G * D, 0), (1, G, G, L, L, D, D, G * D, 0)
        a, b = as_encoding(src), as_encoding(dst)
        _plans.get(a, heads, B, L, L).rerotate(
            _plans.get(b, heads, B, L, L), _arrays.raw(view), _arrays.positions(src_positions, "src_positions", L),
            _arrays.positions(dst_positions, "dst_positions", L), a._fill(params, sizes, ROTARY),
            b._fill(dst_params, sizes, ROTARY), _arrays.raw(to))
    return y


def index_map(name: str, rel: Any, **settings: Any) -> np.ndarray:
    """The row that "t5" or "deberta" finds for each distance.

    >>> index_map("t5", [0, -1, -200], num_buckets=32, max_distance=128, bidirectional=False).tolist()
    [0, 1, 31]
    """
    from ._encoding import _settings
    rel = _arrays.numpy(rel, "rel")
    rel = np.ascontiguousarray(_arrays.whole(rel, "rel") if rel.size else rel, np.int64).reshape(rel.shape)
    out = np.empty(rel.size, np.int64)
    _core.index_map(name, _settings(settings), rel.reshape(-1), out)
    return out.reshape(rel.shape)


def window_index(rows: int, columns: int, pretrained: tuple[int, int] = (0, 0)) -> tuple[np.ndarray, np.ndarray]:
    """Swin's window: which offset lies between query and key [n,n], and the offsets' coordinates.

    >>> window_index(2, 2)[0][0].tolist()
    [4, 3, 1, 0]
    """
    for name, number in (("rows", rows), ("columns", columns)):
        if not 1 <= number <= 4096:
            raise _core.PosencError(f"{name} is {number}; it must be 1 to 4096")
    n = rows * columns
    index, coordinates = np.empty((n, n), np.int64), np.empty((2 * rows - 1, 2 * columns - 1, 2))
    _core.windows(rows, columns, *pretrained, index, coordinates)
    return index, coordinates
