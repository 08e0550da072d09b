# SPDX-License-Identifier: MIT
"""posenc on torch tensors: with gradients, torch.compile, torch.func; modules; the attention of transformers.

>>> import torch, posenc.torch
>>> q = torch.ones(1, 8, 16, 64, requires_grad=True)
>>> posenc.torch.attend(q, q, q, "alibi", causal=True).sum().backward()
"""
from __future__ import annotations

from typing import Any, Mapping

import numpy as _numpy
import torch as _torch

from .. import _arrays, _core
from .._encoding import Encoding, also_has, encoding as _encoding
from . import _ops

__all__ = ["Attention", "Bias", "Input", "Rotary", "attend", "bias", "encode", "hf", "rotate", "rotate_"]
Tensor = _torch.Tensor


def _positions(x: Any, start: int = 0) -> tuple[Any, float]:
    """(array or None, start)."""
    if x is None:
        return None, float(start)
    if isinstance(x, (int, float, _numpy.number)):
        return None, float(x)
    x = _torch.as_tensor(x)
    if not x.dim():
        return None, float(x)
    if not x.is_floating_point() and x.dtype not in (_torch.int64, _torch.int32):
        x = x.to(_torch.int64)
    elif x.is_floating_point() and x.dtype != _torch.float64:
        x = x.to(_torch.float64)
    return x.contiguous(), 0.0


_constant = _torch.compiler.assume_constant_result


def _spec(e: Encoding | str) -> str:
    return e if isinstance(e, str) else e.spec


@_constant
def _facts(spec: str) -> tuple[bool, int, bool]:
    """Has it parameters; numbers per position of its input part; does it say how many rows it has?"""
    e = _ops.encoding_of(spec)
    return e.has_params, e._core.coordinates(), not e.is_sized


@_constant
def _names(spec: str) -> tuple:
    """(name, must it be given, place) of each parameter."""
    return tuple((row[0], row[2], row[3]) for row in _ops.encoding_of(spec)._core.params(None))


def _params(e: Encoding | str, given: Mapping[str, Any] | None, places: tuple[str, ...]) -> tuple:
    """Every parameter as a float tensor, in the encoding's order; empty where it is fixed, or nobody reads it."""
    spec, held = _spec(e), {} if isinstance(e, str) else e._values
    given = _arrays.named(given)
    if not _facts(spec)[0]:
        if given:
            raise _core.PosencError(f"params has {', '.join(given)}; {spec} has no parameters")
        return ()
    out = []
    for name, trained, place in _names(spec):
        value = given.pop(name, held.get(name))
        if place not in places or (value is None and not trained):
            out.append(_torch.empty(0))
        elif value is None:
            raise _core.PosencError(f"params lacks {name}, which {spec} learns{also_has(given, _names(spec))}; Encoding.init(...) makes one")
        elif isinstance(value, Tensor) and value.is_complex():
            raise _core.DtypeError(f"{name} has the type {value.dtype}; it must be of real numbers, as float32 or float64")
        elif not isinstance(value, Tensor):
            out.append(_torch.tensor(value, dtype=_torch.float64))
        else:
            out.append((value if value.dtype in (_torch.float32, _torch.float64) else value.float()).contiguous())
    if given:
        raise _core.PosencError(f"params has {', '.join(given)}; {spec} has no such parameter")
    return tuple(out)


def _turn(x: Any, order: str) -> Any:
    if order not in ("bhld", "blhd"):
        raise _core.PosencError(f"order is {order!r}; it must be 'bhld' or 'blhd'")
    if x is not None and x.dim() != 4:
        raise _core.PosencError(f"a tensor has the shape {list(x.shape)}; it must have four axes, [{','.join(order.upper())}]")
    return x if x is None or order == "bhld" else x.transpose(1, 2)


def rotate(q: Tensor, k: Tensor | None = None, encoding: Encoding | str = "rope", *, q_positions: Any = 0,
           k_positions: Any = None, params: Mapping[str, Any] | None = None, tokens: Any = None, inverse: bool = False,
           order: str = "bhld", exact: bool = False) -> Any:
    """posenc.rotate with gradients of q, k, parameters and token inputs."""
    q, k = _turn(q, order), _turn(k, order)
    q_at, q_start = _positions(q_positions)
    if k_positions is None and (k is not None or tokens is None):
        k_at, k_start = q_at, q_start
    else:  # where q comes alone, its tokens are numbered from 0 on
        k_at, k_start = _positions(k_positions)
    p = (*_params(encoding, params, ("rotary",)), *_token_inputs(_spec(encoding), tokens, is_rotation=True))
    a, b = _ops.call(_ops.rotate, (q, k, q_at, None if k is None and tokens is None else k_at), p,
                     (_spec(encoding), q_start, k_start, inverse, exact))
    return _turn(a, order) if k is None else (_turn(a, order), _turn(b, order))


def rotate_(x: Tensor, encoding: Encoding | str = "rope", *, positions: Any = 0, inverse: bool = False, order: str = "bhld",
            is_key: bool = False) -> Tensor:
    """Rotates in place, outside of autograd: for caches. Returns x."""
    if _torch.is_grad_enabled() and x.requires_grad:
        raise _core.PosencError("x requires a gradient; rotate_ is for caches: use rotate")
    at, start = _positions(positions)
    view = _turn(x, order)
    _ops.rotate_(view, at, list(_params(encoding, None, ("rotary",))), _spec(encoding), start, inverse, is_key)
    _torch.autograd.graph.increment_version(x)
    return x


def attend(q: Tensor, k: Tensor, v: Tensor, encoding: Encoding | str = "nope", *, causal: bool = False,
           window: int | None = None, key_allowed: Tensor | None = None, mask: Tensor | None = None,
           q_segments: Tensor | None = None, k_segments: Tensor | None = None, q_positions: Any = None,
           k_positions: Any = None, params: Mapping[str, Any] | None = None, tokens: Any = None, scale: float | None = None,
           order: str = "bhld", return_lse: bool = False, L: int | None = None, exact: bool = False,
           threads: int | None = None) -> Any:
    """posenc.attend with gradients of q, k, v, parameters, and of lse."""
    if scale is not None:
        encoding = _scaled(encoding, scale)
    q, k, v = _turn(q, order), _turn(k, order), _turn(v, order)
    Lq, Lk = q.shape[2], k.shape[2]
    if window is not None and window < 1:
        raise _core.PosencError(f"window is {window}; it must be at least 1")
    k_at, k_start = _positions(k_positions)
    if q_positions is None and k_at is not None:
        q_at, q_start = (k_at[..., Lk - Lq:].contiguous(), 0.0) if k_at.dim() <= 2 and Lk >= Lq else (None, float(Lk - Lq))
    else:
        q_at, q_start = _positions(q_positions, int(k_start) + Lk - Lq)
    p = (*_params(encoding, params, ("rotary", "score", "weight")), *_token_inputs(_spec(encoding), tokens))
    two = lambda x: None if x is None else x.reshape((1,) * (2 - x.dim()) + tuple(x.shape)).contiguous()
    seen = lambda x: x if x is None or x.dtype in (_torch.bool, _torch.uint8) else x != 0
    k_segments = q_segments if k_segments is None else k_segments
    mask = seen(mask)
    mask = None if mask is None else mask.reshape((1,) * (4 - mask.dim()) + tuple(mask.shape))
    said = (_spec(encoding), q_start, k_start, causal, window or 0, exact, -1 if threads is None else threads, L or 0)
    o, lse = _ops.call(_ops.attend, (q, k, v, q_at, k_at, two(seen(key_allowed)), mask, two(q_segments), two(k_segments)), p,
                       said)
    o = _turn(o, order)
    return (o, lse) if return_lse else o


@_constant
def _token_names(spec: str) -> list[str]:
    return _ops.encoding_of(spec)._core.token_names()


def _token_inputs(spec: str, tokens: Mapping[str, Tensor] | None, is_rotation: bool = False) -> tuple:
    """In the encoding's order; for a rotation, which reads its own alone, empty where none is given."""
    names, given = _token_names(spec), dict(tokens or {})
    lacking = [name for name in names if name not in given]
    if lacking and not is_rotation:
        raise _core.PosencError(f"tokens lacks {lacking[0]}, which {spec} needs: [B, H or G or 1, L, channels]")
    more = [name for name in given if name not in names]
    if more:
        raise _core.PosencError(f"tokens has {', '.join(more)}; {spec} needs {', '.join(names) or 'none'}")
    return tuple(given[name].contiguous() if name in given else _torch.empty(0) for name in names)


def encode(encoding: Encoding | str, positions: Any = None, dim: int | None = None, *, x: Tensor | None = None,
           grid: Any = None, params: Mapping[str, Any] | None = None, dtype: Any = None, L: int | None = None) -> Tensor:
    """Rows [L,dim] or [B,L,dim] of an input encoding, added to x if given, with gradients of x and parameters."""
    if grid is not None:
        encoding = _gridded(encoding, grid)
    spec = _spec(encoding)
    _, coordinates, has_rows = _facts(spec)
    count = None
    if isinstance(positions, range):
        positions, count = (positions.start, len(positions)) if positions.step == 1 else (_torch.tensor(positions), None)
    dim = dim or (x.shape[-1] if x is not None else None)
    if dim is None:
        raise _core.PosencError("dim is missing: the width of the rows")
    at, start = _positions(positions)
    lead = () if at is None else tuple(at.shape[:-1]) if coordinates > 1 else tuple(at.shape)
    if x is not None:
        if x.dim() not in (2, 3):
            raise _core.PosencError(f"x has the shape {list(x.shape)}; it must be [L,dim] or [B,L,dim]")
        B, n = (x.shape[0] if x.dim() == 3 else 1), x.shape[-2]
        if count is not None and count != n:
            raise _core.PosencError(f"positions is a range of {count}; it must have {n}, as x has rows")
    elif at is not None:
        B, n = (lead[0] if len(lead) == 2 else 1), lead[-1]
    else:
        B, n = 1, count or _tokens(spec, dim)
        if not n:
            raise _core.PosencError("positions is missing: range(n), or a tensor")
    is_known = L or has_rows or at is None or not at.numel() or _torch.compiler.is_compiling() or _ops._transforms()
    last = int(start) + n if is_known else int(at.max()) + 1
    last = max(last if last < 1 << 30 and not L else n, n, L or 1)
    p = _params(encoding, params, ("input",))
    width = _width(spec, dim, last)
    batched = (x is not None and x.dim() == 3) or len(lead) == 2
    said = (spec, start, B, n, dim, width, last, dtype or _torch.get_default_dtype())
    y = _ops.call(_ops.rows, (None if x is None else x.reshape(B, n, x.shape[-1]), at), p, said)[0]
    return y if batched else y[0]


def bias(encoding: Encoding | str, *, H: int, Lq: int, Lk: int, D: int = 64, params: Mapping[str, Any] | None = None,
         q_positions: Any = None, k_positions: Any = None, causal: bool = False, L: int | None = None) -> Tensor:
    """posenc.bias with gradients of parameters: [H,Lq,Lk] on the CPU, float32 (float64 where a parameter is)."""
    k_at, k_start = _positions(k_positions)
    q_at, q_start = _positions(q_positions, int(k_start) + Lk - Lq)
    said = (_spec(encoding), H, Lq, Lk, D, q_start, k_start, causal, L or 0)
    return _ops.call(_ops.bias, (q_at, k_at), _params(encoding, params, ("rotary", "score", "weight")), said)[0]


@_constant
def _scaled(encoding: Encoding | str, scale: float) -> Encoding:
    from .._runs import _scaled
    return _scaled(_encoding(encoding), scale)


@_constant
def _gridded(encoding: Encoding | str, grid: Any) -> Encoding:
    from .._runs import _gridded
    return _gridded(_encoding(encoding), grid)


@_constant
def _tokens(spec: str, dim: int) -> int:
    return _ops.encoding_of(spec)._core.tokens((1, 1, 1, 1, 1, dim, dim, dim, 1))


@_constant
def _width(spec: str, dim: int, last: int) -> int:
    from .. import _plans
    from .._runs import _has_part
    _has_part(_ops.encoding_of(spec), "input", "encode")
    return _plans.get(_ops.encoding_of(spec), (1, 1, dim, dim, dim, last), 1, 1, 1).sizes()["rows_width"]


# posenc.rotate, attend and encode of torch tensors come here.

def _checked_out(out: Any) -> None:
    if out is not None:
        raise _core.UnsupportedError("out= is for NumPy arrays; with tensors use what is returned, or posenc.torch.rotate_")


def _rotate_any(q: Any, k: Any, encoding: Any, *, out: Any, threads: Any, **options: Any) -> Any:
    _checked_out(out)
    if q is None:
        raise _core.PosencError("q is None; with tensors pass q, or q and k")
    return rotate(q, k, encoding, **options)


def _attend_any(q: Any, k: Any, v: Any, encoding: Any, *, out: Any, **options: Any) -> Any:
    _checked_out(out)
    return attend(q, k, v, encoding, **options)


def _encode_any(encoding: Any, positions: Any, dim: Any, *, dtype: Any, **options: Any) -> Any:
    return encode(encoding, positions, dim, dtype=_dtype(dtype), **options)


def _bias_any(encoding: Any, *, dtype: Any, **options: Any) -> Any:
    return bias(encoding, **options).to(_dtype(dtype))


def _dtype(name: Any) -> Any:
    return name if isinstance(name, _torch.dtype) else getattr(_torch, str(name), None) or getattr(_torch, str(_numpy.dtype(name)))


from ._modules import Attention, Bias, Input, Rotary  # noqa: E402
from . import hf  # noqa: E402  (transformers itself is imported where it is needed)
