# SPDX-License-Identifier: MIT
"""Operators posenc::* on torch tensors, and the four ways into them.

A kernel is a function on CPU tensors with a fake one beside it and a rule for its gradient. Its arguments are tensors
(some None), parameters, and numbers and words (`said`). One kernel becomes one operator of torch's dispatcher, with
autograd, vmap and fake tensors; `call` chooses the cheapest way into it that is right: an autograd.Function of the old
style is four times as fast as register_autograd, but torch.func and the compiler do not take it.
"""
from __future__ import annotations

import functools
from typing import Any, Callable, NamedTuple

import numpy as np
import torch

from .. import _core, _encoding, _plans, _runs

Tensor = torch.Tensor
_library = torch.library.Library("posenc", "DEF")
_DIRECT = hasattr(Tensor, "__dlpack_c_exchange_api__")


def core(t: Tensor | None) -> Any:
    """What _core reads: the tensor itself, or before torch 2.10 its memory as a NumPy array."""
    if t is None or t.numel() == 0:
        return None
    if t.dim() and t.stride(-1) != 1:
        t = t.contiguous() if t.shape[-1] > 1 else t.as_strided(t.shape, t.stride()[:-1] + (1,))
    if _DIRECT:
        return t
    t = t.detach()
    return t.view(torch.int16).numpy().view(np.uint16) if t.dtype == torch.bfloat16 else t.numpy()


@functools.lru_cache(maxsize=256)
def encoding_of(spec: str) -> _encoding.Encoding:
    return _encoding.Encoding(spec)


class Kernel(NamedTuple):
    name: str
    run: Callable[..., Any]      # (tensors, params, said) -> outputs, on CPU tensors
    fake: Callable[..., Any]
    back: Callable[..., Any] | None  # (do, tensors, params, said, outputs, grads, wanted) -> grads of tensors, of params
    tensors: int
    outputs: int                 # besides the gradients of parameters
    lists: bool                  # are these an output?
    kept: int                    # outputs that the gradient needs
    is_linear: bool              # its gradient does not need what q and k were, if there are no parameters
    axes: str                    # of each tensor, for vmap: _folded
    op: Any


def _flat(out: Any, kernel: Kernel) -> tuple:
    if not kernel.lists:
        return out if isinstance(out, tuple) else (out,)
    return (*out[:-1], *out[-1]) if kernel.outputs else tuple(out)


def _refuse(names: list[str]) -> Callable:
    """What an operator does on another device: names says what its tensors are called."""
    def refuse(*args: Any) -> Any:
        params = [(f"parameter {i}", x) for a in args if isinstance(a, (list, tuple)) for i, x in enumerate(a)]
        for name, a in [*zip(names, args), *params]:
            if isinstance(a, Tensor) and a.device.type != "cpu":
                raise _core.DeviceError(f"{name} lies on {a.device}; posenc computes on the CPU: call .cpu(), or use "
                                        "posenc.torch.Rotary or Bias, whose tables are made on the CPU and kept on your device")
    return refuse


_DEVICES = ("CUDA", "XPU", "MPS", "PrivateUse1")


def kernel(name: str, tensors: str, said: str, run: Callable, fake: Callable, back: Callable | None, outputs: int,
           lists: bool = False, kept: int = 0, is_linear: bool = False, axes: str = "") -> Kernel:
    """Defines the operator: tensors "q k? v", said "str encoding, bool inverse"."""
    names = tensors.split()
    args = ", ".join(f"Tensor{'?' if n.endswith('?') else ''} {n.rstrip('?')}" for n in names)
    results = ", ".join(["Tensor"] * outputs + ["Tensor[]"] * lists)
    _library.define(f"{name}({args}, Tensor[] params, {said}) -> {'(' + results + ')' if outputs + lists > 1 else results}")
    n = len(names)
    split = lambda a: (a[:n], tuple(a[n]), a[n + 1:])
    shape = lambda out: out if not lists and outputs > 1 else out[0] if not lists else \
        (*out[:outputs], list(out[outputs:])) if outputs else list(out)
    whole = lambda out, a: tuple(next(x for x in a if isinstance(x, Tensor)).new_empty(0) if x is None else x for x in out)
    _library.impl(name, lambda *a: shape(whole(run(*split(a)), a)), "CPU")
    for device in _DEVICES:
        _library.impl(name, _refuse([n.rstrip("?") for n in names]), device)
    torch.library.register_fake(f"posenc::{name}", lambda *a: shape(whole(fake(*split(a)), a)), lib=_library)
    op = getattr(torch.ops.posenc, name).default
    made = Kernel(name, run, fake, back, n, outputs, lists, kept, is_linear, axes, op)

    def direct(k: Kernel, t: tuple, p: tuple, s: tuple) -> tuple:
        return _flat(k.op(*t, list(p), *s), k)

    def setup(ctx: Any, inputs: tuple, output: Any) -> None:
        t, p, s = split(inputs)
        outs = _flat(output, made)
        _save(ctx, t, p, s, outs[:kept])

    def backward(ctx: Any, *grads: Any) -> tuple:
        t, p, s, outs = _saved(ctx)
        dt, dp = back(direct, t, p, s, outs, grads, [True] * (n + len(p)))  # type: ignore[misc]
        return (*dt, list(dp) if len(p) else [], *([None] * len(s)))

    if back is not None:
        torch.library.register_autograd(f"posenc::{name}", backward, setup_context=setup, lib=_library)
    torch.library.register_vmap(f"posenc::{name}", lambda info, dims, *a: _vmap_op(made, info, dims, a), lib=_library)
    return made


# ---------------------------------------------------------------- gradients -----------------

def _save(ctx: Any, t: tuple, p: tuple, s: tuple, outs: tuple) -> None:
    ctx.save_for_backward(*t, *p, *outs)
    ctx.counts = (len(t), len(p), s)


def _keep(ctx: Any, k: Kernel, t: tuple, p: tuple, s: tuple, outs: tuple) -> None:
    ctx.kernel = k
    if k.is_linear and not p:
        if t[2] is None and t[3] is None:  # nothing to keep, and keeping it takes a microsecond
            ctx.counts = (len(t), 0, s)
        else:
            _save(ctx, (None, None, *t[2:]), p, s, ())
    else:
        _save(ctx, t, p, s, tuple(outs[:k.kept]))
        ctx.set_materialize_grads(False)


def _saved(ctx: Any) -> tuple:
    n, m, s = ctx.counts
    every = ctx.saved_tensors or (None,) * (n + m)
    return every[:n], every[n:n + m], s, every[n + m:]


def _backward(ctx: Any, *grads: Any) -> tuple:
    k = ctx.kernel
    if k.back is None:
        raise _core.UnsupportedError(f"posenc::{k.name} has no gradient of its own: second derivatives of attention and "
                                     "of parameters are not built")
    t, p, s, outs = _saved(ctx)
    dt, dp = k.back(call, t, p, s, outs, grads, ctx.needs_input_grad[2:])
    return (None, None, *dt, *dp)


class _Fast(torch.autograd.Function):
    """The quick way: neither torch.func nor the compiler takes it."""

    @staticmethod
    def forward(ctx: Any, k: Kernel, said: tuple, *tensors: Any) -> Any:  # type: ignore[override]
        t, p = tensors[:k.tensors], tensors[k.tensors:]
        outs = k.run(t, p, said)
        _keep(ctx, k, t, p, said, outs)
        return outs

    backward = staticmethod(_backward)  # type: ignore[assignment]


class _Alone(torch.autograd.Function):
    """The quick way of the commonest call, a rotation of one tensor by fixed angles: fewer arguments, nothing to keep."""

    @staticmethod
    def forward(ctx: Any, q: Tensor, said: tuple) -> Any:  # type: ignore[override]
        ctx.said = said
        return _rotate_run((q, None, None, None), (), said)[0]

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Any:  # type: ignore[override]
        spec, q_start, k_start, inverse, exact = ctx.said
        return call(rotate, (dy, None, None, None), (), (spec, q_start, k_start, not inverse, exact))[0], None


class _Func(torch.autograd.Function):
    """The way that torch.func takes."""

    @staticmethod
    def forward(k: Kernel, said: tuple, *tensors: Any) -> Any:  # type: ignore[override]
        return _flat(k.op(*tensors[:k.tensors], list(tensors[k.tensors:]), *said), k)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        k, said, *tensors = inputs
        _keep(ctx, k, tuple(tensors[:k.tensors]), tuple(tensors[k.tensors:]), said, output)

    backward = staticmethod(_backward)  # type: ignore[assignment]

    @staticmethod
    def vmap(info: Any, in_dims: tuple, k: Kernel, said: tuple, *tensors: Any) -> Any:
        outs = _mapped(k, info.batch_size, in_dims[2:], tensors, said, lambda t, p, s: call(k, t, p, s))
        return outs, tuple(None if x is None else 0 for x in outs)


def _vmap_op(k: Kernel, info: Any, dims: tuple, args: tuple) -> Any:
    t, p, s = args[:k.tensors], tuple(args[k.tensors]), args[k.tensors + 1:]
    dp = dims[k.tensors]
    dp = tuple(dp) if isinstance(dp, (list, tuple)) else (dp,) * len(p)
    outs = _mapped(k, info.batch_size, (*dims[:k.tensors], *dp), (*t, *p), s, lambda t, p, s: _flat(k.op(*t, list(p), *s), k))
    if k.lists and not k.outputs:
        return list(outs), [0] * len(outs)
    if k.lists:
        return (*outs[:k.outputs], list(outs[k.outputs:])), (*[0] * k.outputs, [0] * (len(outs) - k.outputs))
    return (outs, (0,) * len(outs)) if len(outs) > 1 else (outs[0], 0)


def _mapped(k: Kernel, n: int, dims: tuple, every: tuple, said: tuple, run: Callable) -> tuple:
    """n runs in one, the mapped axis folded into the batch; item by item where each has parameters, gradients of them, or
    token inputs, which have a batch of their own."""
    m = k.tensors
    if k.axes and all(d is None for d in dims[m:]) and not _split(every[m:], said)[1] and not (k.lists and every[m:] and said[-1]):
        t, s, B = _folded(k, n, dims[:m], every[:m], said)
        outs = run(t, every[m:], s)
        return tuple(x if x is None else x.unflatten(0, (n, B)) if x.dim() > 1 else x.new_empty(n, 0) for x in outs)
    pick = lambda x, d, i: x if d is None or x is None else x.select(d, i)
    each = [tuple(pick(x, d, i) for x, d in zip(every, dims)) for i in range(n)]
    return tuple(None if column[0] is None else torch.stack(column)
                 for column in zip(*(run(e[:m], e[m:], said) for e in each)))


def _folded(k: Kernel, n: int, dims: tuple, tensors: tuple, said: tuple) -> tuple[tuple, tuple, int]:
    """The n items as one batch, and how many each has. k.axes, of each tensor: b, its first axis is the batch; 1, the same, or
    one for all; p, positions, for all or of each."""
    front = [x if d is None else x.movedim(d, 0) for x, d in zip(tensors, dims)]
    is_rows = k.name.startswith("rows")
    B = said[2] if is_rows else front[0].shape[dims[0] is not None]

    def coordinates() -> int:
        e, D = encoding_of(said[0]), 0 if front[0] is None else front[0].shape[-1]
        return e._core.coordinates() if is_rows else _plans.get(e, (1, 1, D, D, D, 0), 1, 1, 1).sizes()["coordinates"]

    def lay(x: Tensor | None, is_mapped: bool, kind: str) -> Tensor | None:
        if x is None:
            return None
        axes = x.dim() - is_mapped
        is_for_all = axes == 1 or axes == 2 and coordinates() > 1 if kind == "p" else kind == "1" and x.shape[is_mapped] == 1
        if is_for_all and not is_mapped:
            return x
        x = x if is_mapped else x[None]
        x = x.unsqueeze(1) if kind == "p" and is_for_all else x
        return x.expand(n, B, *x.shape[2:]).flatten(0, 1)
    laid = tuple(lay(x, d is not None, kind) for x, d, kind in zip(front, dims, k.axes))
    return laid, (*said[:2], n * B, *said[3:]) if is_rows else said, B


# ---------------------------------------------------------------- the way in ----------------

_transforms = torch._C._are_functorch_transforms_active
_is_compiling = torch.compiler.is_compiling
_Below = torch._C._AutoDispatchBelowAutograd
_modes = torch._C._len_torch_dispatch_stack
_grad_enabled = torch.is_grad_enabled
_Parameter = torch.nn.Parameter


@torch.compiler.assume_constant_result
def _differentiates() -> bool:
    """Is one of the transforms of torch.func a derivative? Compiled, the operator takes vmap alone, _Func the others."""
    stack = torch._C._functorch.get_interpreter_stack() or []
    return any(i.key() != torch._C._functorch.TransformType.Vmap for i in stack)


def call(k: Kernel, tensors: tuple, params: tuple, said: tuple) -> tuple:
    """The outputs of a kernel, those in a list after the others."""
    if _transforms() and not (_is_compiling() and not _differentiates()):
        return _Func.apply(k, said, *tensors, *params)
    if _is_compiling():
        return _flat(k.op(*tensors, list(params), *said), k)
    needs_grad, is_plain = False, not _modes()
    for x in tensors + params:
        if x is not None:
            needs_grad = needs_grad or x.requires_grad
            is_plain = is_plain and (type(x) is Tensor or type(x) is _Parameter) and x.is_cpu and not x.is_neg()
    if needs_grad and _grad_enabled():
        if k is rotate and is_plain and not params and tensors[1] is None and tensors[2] is None:
            return _Alone.apply(tensors[0], said), None
        return _Fast.apply(k, said, *tensors, *params) if is_plain else _flat(k.op(*tensors, list(params), *said), k)
    if is_plain:  # what the operator would do, without the dispatcher
        return k.run(tensors, params, said)
    with _Below():
        return _flat(k.op(*tensors, list(params), *said), k)


# ---------------------------------------------------------------- kernels -------------------

def _at(array: Tensor | None, start: float) -> Any:
    return start if array is None else core(array)


def _cores(p: tuple) -> tuple:
    return tuple(core(x) for x in p)


def _split(p: tuple, s: tuple) -> tuple:
    """Parameters, and the token inputs that stand behind them."""
    n = len(encoding_of(s[0])._core.token_names())
    return tuple(p[:len(p) - n]), tuple(p[len(p) - n:])


def _params(p: tuple, spec: str, q: Tensor, k: Tensor | None = None, v: Tensor | None = None,
            places: tuple = ("rotary",)) -> tuple:
    """Empty ones of these places are fixed, and start as the encoding says."""
    if not p:
        return ()
    if all(x.numel() for x in p):
        return _cores(p)
    k = q if k is None else k
    (_, H, L, D), e = q.shape, encoding_of(spec)
    sizes = (1, H, k.shape[1], L, k.shape[2], D, D if v is None else v.shape[3], H * D, 0)
    return tuple(core(x) if x.numel() else e._initial(sizes, row[0]) if row[3] in places and not row[2] else None
                 for x, row in zip(p, e._rows(sizes)))


def _zeros(p: tuple, wanted: bool = True) -> tuple:
    return tuple(torch.zeros_like(x) if wanted else torch.empty_like(x) for x in p)


def _executor(exact: bool) -> int:
    return _plans.REFERENCE if exact else _plans.AUTO


def _rotation_plan(q: Tensor, k: Tensor | None, spec: str, exact: bool, tokens: tuple = ()) -> Any:
    (B, H, L, D), (G, Lk) = q.shape, _runs._keys(q, k, tokens)
    return _plans.get(encoding_of(spec), (H, G, D, D, H * D, 0), B, L, Lk, executor=_executor(exact))


def _none(x: Tensor) -> Tensor:
    return x.new_empty(0)


def _tidy(x: Tensor) -> Tensor:
    """With the last axis contiguous."""
    return x if x.stride(-1) == 1 else x.contiguous() if x.shape[-1] > 1 else core(x)


def _rotate_run(t: tuple, p: tuple, s: tuple) -> tuple:
    q, k, q_pos, k_pos = t
    spec, q_start, k_start, inverse, exact = s
    to_q, to_k = torch.empty_like(q), None if k is None else torch.empty_like(k)
    if not q.numel() or k is not None and not k.numel():
        return to_q, to_k
    y, z = _tidy(to_q), None if k is None else _tidy(to_k)
    params, tokens = _split(p, s) if p else ((), ())
    plan = _rotation_plan(q, k, spec, exact, tokens)
    if _DIRECT and k is None and not tokens:
        plan.rotate(_tidy(q), None, _at(q_pos, q_start), None, -1 if inverse else 1, _params(params, spec, q), None, y,
                    None)
    else:
        plan.rotate(core(q), core(k), _at(q_pos, q_start), _at(k_pos, k_start), -1 if inverse else 1,
                    _params(params, spec, q, k), _cores(tokens) or None, core(y), core(z))
    if y is not to_q:
        to_q.copy_(y)
    if z is not to_k:
        to_k.copy_(z)
    return to_q, to_k


def _rotate_fake(t: tuple, p: tuple, s: tuple) -> tuple:
    return torch.empty_like(t[0]), None if t[1] is None else torch.empty_like(t[1])


def _rotate_back(do: Callable, t: tuple, p: tuple, s: tuple, outs: tuple, grads: tuple, wanted: Any) -> tuple:
    q, k, q_pos, k_pos = t
    spec, q_start, k_start, inverse, exact = s
    dq = grads[0] if grads[0] is not None else torch.zeros_like(q)
    dk = grads[1] if grads[1] is not None else None if k is None else torch.zeros_like(k)
    dk = None if k is None and dk is not None and not dk.numel() and dq.numel() else dk
    if not any(wanted[4:]) or not any(x.numel() for x in p):
        back = do(rotate, (dq, dk, q_pos, k_pos), p, (spec, q_start, k_start, not inverse, exact))
        return (back[0], back[1] if dk is not None else None, None, None), (None,) * len(p)
    back = do(rotate_backward, (dq, dk, q, k, q_pos, k_pos), p, s)
    return (back[0], back[1] if k is not None else None, None, None), back[2:]


rotate = kernel("rotate", "q k? q_positions? k_positions?",
                "str encoding, float q_start, float k_start, bool inverse, bool exact", _rotate_run, _rotate_fake,
                _rotate_back, 2, is_linear=True, axes="bbpp")


def _rotate_backward_run(t: tuple, p: tuple, s: tuple) -> tuple:
    dy, dz, q, k, q_pos, k_pos = t
    spec, q_start, k_start, inverse, exact = s
    dq, dk, dp = torch.empty_like(q), _none(q) if k is None else torch.empty_like(k), _zeros(p)
    (params, tokens), (dparams, dtokens) = _split(p, s), _split(dp, s)
    if q.numel():
        _rotation_plan(q, k, spec, exact, tokens).rotate_backward(
            core(q), core(k), _at(q_pos, q_start), _at(k_pos, k_start), -1 if inverse else 1, _params(params, spec, q, k),
            _cores(tokens) or None, core(dy.contiguous()), None if dz is None else core(dz.contiguous()), core(dq), core(dk),
            _cores(dparams), _cores(dtokens) or None)
    return (dq, dk, *dp)


rotate_backward = kernel("rotate_backward", "dy dz? q k? q_positions? k_positions?",
                         "str encoding, float q_start, float k_start, bool inverse, bool exact", _rotate_backward_run,
                         lambda t, p, s: (torch.empty_like(t[2]), _none(t[2]) if t[3] is None else torch.empty_like(t[3]),
                                          *_zeros(p)), None, 2, lists=True)


def _rows_plan(shape: tuple, spec: str, last: int) -> Any:
    B, L, dim = shape
    return _plans.get(encoding_of(spec), (1, 1, dim, dim, dim, last), B, L, L)


def _rows_run(t: tuple, p: tuple, s: tuple) -> tuple:
    x, pos = t
    spec, start, B, L, dim, width, last, dtype = s
    y = torch.empty((B, L, width), dtype=dtype) if x is None else torch.empty((B, L, width), dtype=x.dtype)
    if y.numel():
        _rows_plan((B, L, dim), spec, last).rows(core(x), _at(pos, start), _cores(p), core(y))
    return (y,)


def _rows_fake(t: tuple, p: tuple, s: tuple) -> tuple:
    return (torch.empty(s[2:4] + s[5:6], dtype=s[7]) if t[0] is None else t[0].new_empty(s[2:4] + s[5:6]),)


def _rows_back(do: Callable, t: tuple, p: tuple, s: tuple, outs: tuple, grads: tuple, wanted: Any) -> tuple:
    if grads[0] is None:
        return (None, None), (None,) * len(p)
    dx, *dp = do(rows_backward, (grads[0], *t), p, (*s[:-1], any(wanted[2:])))
    return (dx if t[0] is not None else None, None), tuple(dp) or (None,) * len(p)


rows = kernel("rows", "x? positions?",
              "str encoding, float start, SymInt B, SymInt L, SymInt dim, SymInt width, SymInt last, ScalarType dtype", _rows_run,
              _rows_fake, _rows_back, 1, axes="bp")


def _rows_backward_run(t: tuple, p: tuple, s: tuple) -> tuple:
    dy, x, pos = t
    spec, start, B, L, dim, width, last, learns = s
    dx, dp = (_none(dy) if x is None else torch.empty_like(x)), _zeros(p) if learns else ()
    if dy.numel():
        _rows_plan((B, L, dim), spec, last).rows_backward(core(x), _at(pos, start), _cores(p), core(dy.contiguous()),
                                                          core(dx), _cores(dp) if learns else None)
    return (dx, *dp)


rows_backward = kernel("rows_backward", "dy x? positions?",
                       "str encoding, float start, SymInt B, SymInt L, SymInt dim, SymInt width, SymInt last, bool learns",
                       _rows_backward_run,
                       lambda t, p, s: (_none(t[0]) if t[1] is None else torch.empty_like(t[1]), *(_zeros(p) if s[-1] else ())),
                       None, 1, lists=True, axes="bbp")

_MASKS = "q_positions? k_positions? key_allowed? mask? q_segments? k_segments?"
_SAID = "str encoding, float q_start, float k_start, bool causal, int window, bool exact, int threads, SymInt L"


def _attend_plan(q: Tensor, k: Tensor, v: Tensor, rest: tuple, s: tuple) -> Any:
    spec, _, _, causal, window, exact, threads, L = s
    bits = (_plans.CAUSAL if causal else 0) | (_plans.WINDOW if window > 0 else 0)
    bits |= _plans.KEY_PADDING if rest[2] is not None else 0
    bits |= _plans.EXPLICIT if rest[3] is not None else 0
    e = encoding_of(spec)
    bits |= _plans.SEGMENTS if rest[4] is not None and not e.sees_segments else 0
    (B, H, Lq, D), G, Lk, Dv = q.shape, k.shape[1], k.shape[2], v.shape[3]
    distances = _distances(rest[0], rest[1], s[1], s[2], Lq, Lk)
    if L and e.is_sized:
        Lq, Lk = max(Lq, L), max(Lk, L)
    return _plans.get(e, (H, G, D, Dv, H * D, 0), B, Lq, Lk, bits, max(window, 0), None if threads < 0 else threads,
                      _executor(exact), distances)


def _distances(q: Any, k: Any, q_start: float, k_start: float, Lq: int, Lk: int) -> int:
    """Distances that arrays of positions may meet, where Lq + Lk are not enough."""
    if q is None and k is None:
        return 0
    ends = []
    for at, start, L in ((q, q_start, Lq), (k, k_start, Lk)):
        if at is not None and (at.is_floating_point() or not at.numel()):
            return 0
        ends.append((start, start + L - 1) if at is None else (int(at.min()), int(at.max())))
    most = int(max(ends[0][1] - ends[1][0], 0) - min(ends[0][0] - ends[1][1], 0)) + 1
    return most if Lq + Lk < most <= 1 << 24 else 0


def _attend_args(q: Tensor, k: Tensor, v: Tensor, rest: tuple, p: tuple, s: tuple) -> tuple:
    return (core(q), core(k), core(v), _at(rest[0], s[1]), _at(rest[1], s[2]), *(core(x) for x in rest[2:]),
            _params(_split(p, s)[0], s[0], q, k, v, ("rotary", "score", "weight")),
            _cores(_split(p, s)[1]) or None)


def _out_like(q: Tensor, v: Tensor) -> Tensor:
    """[B,H,Lq,Dv], in memory in q's order of heads and tokens."""
    B, H, L, _ = q.shape
    if q.stride(1) < q.stride(2) and H > 1 and L > 1:
        return q.new_empty((B, L, H, v.shape[3])).transpose(1, 2)
    return q.new_empty((B, H, L, v.shape[3]))


def _attend_fake(t: tuple, p: tuple, s: tuple) -> tuple:
    q = t[0]
    return _out_like(q, t[2]), q.new_empty(q.shape[:3], dtype=torch.float64 if q.dtype == torch.float64 else torch.float32)


def _attend_run(t: tuple, p: tuple, s: tuple) -> tuple:
    (q, k, v), rest = t[:3], t[3:]
    o, lse = _attend_fake(t, p, s)
    if o.numel() and k.numel():
        _attend_plan(q, k, v, rest, s).attend(*_attend_args(q, k, v, rest, p, s), core(o), core(lse))
    else:
        o.zero_(), lse.fill_(-torch.inf)
    return o, lse


def _attend_back(do: Callable, t: tuple, p: tuple, s: tuple, outs: tuple, grads: tuple, wanted: Any) -> tuple:
    dout = grads[0] if grads[0] is not None else torch.zeros_like(outs[0])
    dq, dk, dv, *dp = do(attend_backward, (dout, grads[1], *outs, *t), p, (*s, any(wanted[9:])))
    return (dq, dk, dv, *[None] * 6), tuple(dp) or (None,) * len(p)


attend = kernel("attend", "q k v " + _MASKS, _SAID, _attend_run, _attend_fake, _attend_back, 2, kept=2,
                axes="bbbpp1111")


def _attend_backward_fake(t: tuple, p: tuple, s: tuple) -> tuple:
    return (*(torch.empty_like(x) for x in t[4:7]), *(_zeros(p) if s[-1] else ()))


def _attend_backward_run(t: tuple, p: tuple, s: tuple) -> tuple:
    dout, dlse, o, lse, q, k, v, *rest = t
    *s, learns = s
    dp, d = _zeros(p) if learns else (), [torch.empty_like(x) for x in (q, k, v)]
    if q.numel() and k.numel():
        args = _attend_args(q, k, v, tuple(rest), p, s)
        to = [x if x.stride(-1) == 1 else torch.empty_like(x, memory_format=torch.contiguous_format) for x in d]
        _attend_plan(q, k, v, tuple(rest), s).attend_backward(
            *args, core(o), core(lse), core(dout.contiguous()), None if dlse is None else core(dlse.contiguous()),
            *(core(x) for x in to), _cores(_split(dp, s)[0]) if learns else None,
            (_cores(_split(dp, s)[1]) or None) if learns else None)
        for x, y in zip(d, to):
            if x is not y:
                x.copy_(y)
    else:
        for x in d:
            x.zero_()
    return (*d, *dp)


attend_backward = kernel("attend_backward", "dout dlse? o lse q k v " + _MASKS, _SAID + ", bool learns", _attend_backward_run,
                         _attend_backward_fake, None, 3, lists=True, axes="bbbbbbbpp1111")


def _bias_args(t: tuple, p: tuple, s: tuple) -> tuple:
    spec, H, Lq, Lk, D, q_start, k_start, causal, L = s
    e, line = encoding_of(spec), torch.zeros(D, dtype=torch.float64)
    q, k = line.expand(1, H, Lq, D), line.expand(1, H, Lk, D)
    if L and e.is_sized:
        Lq, Lk = max(Lq, L), max(Lk, L)
    plan = _plans.get(e, (H, H, D, D, H * D, 0), 1, Lq, Lk, _plans.CAUSAL if causal else 0)
    return plan, (core(q), core(k), None, _at(t[0], q_start), _at(t[1], k_start), *[None] * 4,
                  _params(p, spec, q, k, None, ("rotary", "score", "weight")), None)


def _bias_fake(t: tuple, p: tuple, s: tuple) -> tuple:
    return (torch.empty(s[1:4], dtype=torch.float64 if any(x.dtype == torch.float64 for x in p if x.numel()) else torch.float32),)


def _bias_run(t: tuple, p: tuple, s: tuple) -> tuple:
    out = _bias_fake(t, p, s)[0]
    if out.numel():
        plan, args = _bias_args(t, p, s)
        plan.bias(*args, core(out))
    return (out,)


def _bias_back(do: Callable, t: tuple, p: tuple, s: tuple, outs: tuple, grads: tuple, wanted: Any) -> tuple:
    if grads[0] is None:
        return (None, None), (None,) * len(p)
    return (None, None), tuple(do(bias_backward, (grads[0], *t), p, s))


_BIAS = "str encoding, SymInt H, SymInt Lq, SymInt Lk, SymInt D, float q_start, float k_start, bool causal, SymInt L"
bias = kernel("bias", "q_positions? k_positions?", _BIAS, _bias_run, _bias_fake, _bias_back, 1)


def _bias_backward_run(t: tuple, p: tuple, s: tuple) -> tuple:
    dp = _zeros(p)
    if t[0].numel():
        plan, args = _bias_args(t[1:], p, s)
        plan.bias_backward(*args, core(t[0]), _cores(dp))
    return dp


bias_backward = kernel("bias_backward", "grad q_positions? k_positions?", _BIAS, _bias_backward_run,
                       lambda t, p, s: _zeros(p), None, 0, lists=True)

# rotate_ writes where it reads, and says so.
_library.define("rotate_(Tensor(a!) x, Tensor? positions, Tensor[] params, str encoding, float start, bool inverse, bool is_key) -> ()")


def _rotate_in_place(x: Tensor, pos: Tensor | None, params: list, spec: str, start: float, inverse: bool, is_key: bool) -> None:
    if not x.numel():
        return
    y = x if x.stride(-1) == 1 else x.contiguous()
    q, k = (None, core(y)) if is_key else (core(y), None)
    _rotation_plan(x, None, spec, False).rotate(q, k, _at(pos, start), _at(pos, start), -1 if inverse else 1,
                                                _params(tuple(params), spec, x), None, q, k)
    if y is not x:
        x.copy_(y)


_library.impl("rotate_", _rotate_in_place, "CPU")
for _device in _DEVICES:
    _library.impl("rotate_", _refuse(["x", "positions"]), _device)
torch.library.register_fake("posenc::rotate_", lambda *a: None, lib=_library)
rotate_ = torch.ops.posenc.rotate_.default


# cos_sin makes a table, on the device where the positions lie: computed on the CPU and brought there.
_library.define("cos_sin(Tensor positions, Tensor[] params, str encoding, int D, int width, str layout, ScalarType dtype) -> (Tensor, Tensor)")


def _cos_sin(pos: Tensor, params: list, spec: str, D: int, width: int, layout: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    e = encoding_of(spec)
    given = {row[0]: x.detach().cpu().numpy() for row, x in zip(e._core.params(None), params) if x.numel()}
    wide = "float64" if dtype == torch.float64 else "float32"
    made = _runs.cos_sin(e, pos.detach().cpu().numpy(), D=D, dtype=wide, layout=layout, params=given)
    return tuple(torch.from_numpy(a).to(pos.device, dtype) for a in made)  # type: ignore[return-value]


def _cos_sin_fake(pos: Tensor, params: list, spec: str, D: int, width: int, layout: str, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    axes = _runs._rotary(encoding_of(spec), D)[1].sizes()["coordinates"]
    lead = pos.shape[:-1] if axes > 1 else pos.shape
    return pos.new_empty((*lead, width), dtype=dtype), pos.new_empty((*lead, width), dtype=dtype)


def _cos_sin_vmap(info: Any, dims: tuple, pos: Tensor, params: list, spec: str, D: int, *said: Any) -> Any:
    at = pos.movedim(dims[0], 0)
    axes = 1 + (_runs._rotary(encoding_of(spec), D)[1].sizes()["coordinates"] > 1)
    batch = at.shape[:at.dim() - axes]
    both = cos_sin(at.reshape(-1, *at.shape[at.dim() - axes:]), params, spec, D, *said)
    return tuple(x.unflatten(0, batch) for x in both), (0, 0)


_library.impl("cos_sin", _cos_sin, "CompositeExplicitAutograd")
torch.library.register_vmap("posenc::cos_sin", _cos_sin_vmap, lib=_library)
torch.library.register_fake("posenc::cos_sin", _cos_sin_fake, lib=_library)
cos_sin = torch.ops.posenc.cos_sin.default
