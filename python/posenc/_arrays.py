# SPDX-License-Identifier: MIT
"""Arrays of any library as NumPy arrays that _core takes: a float type, native order, last axis contiguous."""
from __future__ import annotations

import functools
from typing import Any, Callable, Mapping

import numpy as np

from . import _core

FLOATS = ("float32", "float64", "float16", "bfloat16")


def is_torch(*arrays: Any) -> bool:
    """Is one of them a torch tensor? Torch itself is never imported for this."""
    return any(type(a).__module__.partition(".")[0] == "torch" or hasattr(type(a), "__torch_function__")
               for a in arrays if a is not None and type(a) is not np.ndarray)


def of_its_kind(f: Callable) -> Callable:
    """f of arrays, which answers torch tensors with torch tensors; those with a gradient it refuses (numpy())."""
    @functools.wraps(f)
    def run(*args: Any, **options: Any) -> Any:
        out = f(*args, **options)
        return _tensors(out) if is_torch(*args, *options.values(), *values(options.get("params"))) else out
    return run


def values(params: Any) -> Any:
    return params.values() if isinstance(params, Mapping) else ()


def _tensors(x: Any) -> Any:
    if isinstance(x, dict):
        return {name: _tensors(a) for name, a in x.items()}
    if isinstance(x, tuple):
        return type(x)(*map(_tensors, x)) if hasattr(x, "_fields") else tuple(map(_tensors, x))
    if not isinstance(x, np.ndarray):
        return x
    import torch
    return torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) if x.dtype.name == "bfloat16" else torch.from_numpy(x)


def numpy(x: Any, name: str) -> np.ndarray:
    """x as a NumPy array, without a copy where it already is one in other clothes."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "__dlpack_device__"):
        kind = int(x.__dlpack_device__()[0])
        if kind not in (1, 3):
            raise _core.DeviceError(f"{name} lies on {getattr(x, 'device', 'another device')}; posenc computes on the "
                                    "CPU: bring it there first")
        if str(x.dtype) == "torch.bfloat16":
            import torch
            return x.view(torch.int16).numpy().view(dtype("bfloat16"))
        try:
            return np.asarray(x) if hasattr(x, "__array__") else np.from_dlpack(x)
        except (BufferError, RuntimeError, TypeError) as error:
            raise _core.DtypeError(f"{name} cannot be read as a NumPy array: {error}") from error
    return np.asarray(x)


def _tidy(x: np.ndarray) -> np.ndarray:
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if x.ndim and (x.strides[-1] != x.itemsize and x.shape[-1] > 1 or any(s % x.itemsize for s in x.strides)):
        x = np.ascontiguousarray(x)
    if x.ndim and x.shape[-1] == 1 and x.strides[-1] != x.itemsize:  # a stride that nobody ever takes
        x = np.lib.stride_tricks.as_strided(x, strides=x.strides[:-1] + (x.itemsize,), writeable=x.flags.writeable)
    return x if x.flags.aligned else x.copy()


def floats(x: Any, name: str) -> np.ndarray:
    """Of one of the four float types."""
    x = numpy(x, name)
    if x.dtype.char not in "fde" and x.dtype.name != "bfloat16":
        raise _core.DtypeError(f"{name} has the type {x.dtype}; it may be {', '.join(FLOATS)}: convert it with "
                               f".astype('float32')")
    return _tidy(x)


def raw(x: np.ndarray | None) -> np.ndarray | None:
    """As _core reads it: bfloat16 (ml_dtypes) by its bits."""
    return x.view(np.uint16) if x is not None and x.dtype.name == "bfloat16" else x


def whole(x: Any, name: str) -> np.ndarray:
    """int64 or int32: ids, segments."""
    x = numpy(x, name)
    if x.dtype.kind not in "iu" or x.dtype == np.uint64:
        raise _core.DtypeError(f"{name} has the type {x.dtype}; it must be of whole numbers (int64 or int32)")
    return _contiguous(x if x.dtype in (np.int32, np.int64) else x.astype(np.int64))


def mask(x: Any, name: str) -> np.ndarray:
    """bool or uint8; other whole numbers (a tokenizer's attention_mask) by whether they are 0."""
    x = numpy(x, name)
    if x.dtype.kind not in "biu":
        raise _core.DtypeError(f"{name} has the type {x.dtype}; it must be bool, true where a key may be seen")
    return _contiguous(x if x.dtype in (np.bool_, np.uint8) else x != 0)


def positions(x: Any, name: str, L: int | None = None) -> Any:
    """A number, a pair (start, step) for _core, or an array of int64, int32 or float64. L: how many a range must have."""
    if x is None or isinstance(x, (int, float)):
        return x
    if isinstance(x, range):
        if L is not None and len(x) != L:
            raise _core.PosencError(f"{name} is {x}, which has {len(x)} positions; it must have {L}: pass as many, or the number "
                                    f"{x.start}, which stands for {x.start}, {x.start + 1}, ...")
        return (float(x.start), float(x.step))
    x = numpy(x, name)
    if not x.ndim and x.dtype.kind in "iuf":  # a scalar of NumPy or torch is a number too
        return x.item()
    if x.dtype.kind in "iu":
        return whole(x, name)
    if x.dtype.kind != "f":
        raise _core.DtypeError(f"{name} has the type {x.dtype}; positions are int64, int32 or float64")
    return _contiguous(x.astype(np.float64, copy=False))


def _contiguous(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("=")))


def dtype(name: Any) -> np.dtype:
    """The type of an array to make; bfloat16 needs ml_dtypes, whose type NumPy then knows."""
    if str(name) == "bfloat16":
        import ml_dtypes
        return np.dtype(ml_dtypes.bfloat16)
    found = np.dtype(name)
    if found.name not in FLOATS:
        raise _core.DtypeError(f"dtype is {found}; it may be {', '.join(FLOATS)}")
    return found


def named(params: Any, name: str = "params") -> dict[str, Any]:
    """A copy of a mapping of names to arrays."""
    if params is not None and not isinstance(params, Mapping):
        raise TypeError(f"{name} is a {type(params).__name__}; it must be a mapping of names to arrays, such as {{'table': table}}")
    return dict(params or {})


def numbers(x: Any, name: str) -> np.ndarray:
    """Of any type of real numbers, as parameters may be."""
    x = numpy(x, name)
    if x.dtype.kind not in "fiu" and x.dtype.name != "bfloat16":
        raise _core.DtypeError(f"{name} has the type {x.dtype}; it must be of real numbers, as float32 or float64")
    return x


def axes(x: np.ndarray, order: str) -> np.ndarray:
    """[B,H,L,D] seen in an array of either order; and back."""
    return x if checked_order(order) == "bhld" else x.swapaxes(1, 2)


def checked_order(order: Any) -> str:
    if not isinstance(order, str) or order not in ("bhld", "blhd"):
        raise _core.PosencError(f"order is {order!r}; it must be 'bhld' or 'blhd'")
    return order


def four_axes(x: np.ndarray, name: str, order: str) -> np.ndarray:
    if x.ndim != 4:
        raise _core.PosencError(f"{name} has the shape {list(x.shape)}; it must have four axes, "
                                f"[{','.join(checked_order(order).upper())}]")
    return axes(x, order)
