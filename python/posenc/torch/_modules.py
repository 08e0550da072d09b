# SPDX-License-Identifier: MIT
"""Modules: Rotary, Attention, Bias, Input; their parameters are those of the encoding, under its names."""
from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from .. import _core, _runs
from .._encoding import Encoding, encoding as as_encoding
from . import _ops


class _Encoded(nn.Module):
    """Holds the parameters of an encoding: trained ones as parameters, fixed ones as buffers."""

    def __init__(self, encoding: Any, seed: int, sizes: dict[str, int]):
        super().__init__()
        self.encoding = Encoding.from_config(encoding) if not isinstance(encoding, (str, Encoding)) else as_encoding(encoding)
        self._names = []
        if self.encoding.has_params:
            start = self.encoding.init(seed=seed, dtype="float32", **sizes)
            for name, info in self.encoding.params(**sizes).items():
                held = name.replace(".", "__")
                self._names.append((name, held))
                value = torch.from_numpy(start[name].copy())
                if info.trainable:
                    self.register_parameter(held, nn.Parameter(value))
                else:
                    self.register_buffer(held, value, persistent=False)

    def params(self) -> dict[str, Tensor] | None:
        """By the encoding's own names."""
        return {name: getattr(self, held) for name, held in self._names} or None

    def extra_repr(self) -> str:
        return self.encoding.spec


class Attention(_Encoded):
    """posenc.torch.attend with the encoding's parameters: forward(q, k, v, ...).

    >>> attention, q = Attention("t5", H=2, D=8, causal=True), torch.ones(1, 2, 5, 8)
    >>> attention(q, q, q).sum().backward()
    >>> attention.table.grad.shape
    torch.Size([32, 2])
    """

    def __init__(self, encoding: Any, H: int, D: int, *, G: int | None = None, Dv: int | None = None, L: int | None = None,
                 causal: bool = False, seed: int = 0):
        sizes = {"H": H, "D": D, "G": G or H, "Dv": Dv or D, "L": L}
        super().__init__(encoding, seed, sizes)
        self.L = L
        self.causal = causal or self.encoding.causal_only

    def forward(self, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Any:
        from . import attend
        return attend(q, k, v, self.encoding, params=self.params(), **{"causal": self.causal, "L": self.L, **options})


class Input(_Encoded):
    """Adds the rows of an input encoding: forward(x, positions=0).

    >>> Input("sinusoidal", d_model=4)(torch.zeros(1, 2, 4))[0, 0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """

    def __init__(self, encoding: Any, d_model: int, *, L: int | None = None, seed: int = 0):
        super().__init__(encoding, seed, {"d_model": d_model, "D": d_model, "L": L})
        self.L = L

    def forward(self, x: Tensor, positions: Any = 0) -> Tensor:
        from . import encode
        return encode(self.encoding, positions, x=x, params=self.params(), L=self.L)


class Rotary(nn.Module):
    """Drop-in for the rotary_emb of transformers' models: forward(x, position_ids) -> cos, sin, from exact angles.

    The table is made on the CPU, once for as many positions as were seen, and kept on x's device. In a compiled or
    exported graph it is an operator, which makes the rows of each call.

    >>> cos, sin = Rotary("rope[base=5e5]", D=8)(torch.zeros(1, 3, 8), torch.arange(3)[None])
    >>> cos.shape, cos[0, 0, 0].item()
    (torch.Size([1, 3, 8]), 1.0)
    """

    def __init__(self, encoding: Any = "rope", D: int | None = None, *, layer: int | None = None, layout: str = "half"):
        super().__init__()
        if isinstance(encoding, (str, Encoding)):
            self.encoding, width = as_encoding(encoding), D
        else:
            from .._model import inspect
            model = inspect(encoding)
            self.encoding = model.encoding(layer)
            width = D or next(g.sizes.get("D") for g in model.groups if g.encoding == self.encoding)
        if not width:
            raise _core.PosencError("D is missing: the width of a head")
        if "rotary" not in self.encoding.parts:
            raise _core.PosencError(f"{self.encoding.spec} has no part at place rotary")
        self.D, self.layout = width, layout
        self._tables: dict[Any, tuple[Tensor, Tensor]] = {}
        facts = _runs._rotary(self.encoding, width)[1].sizes()
        self.coordinates, self._width = facts["coordinates"], facts["q_width"] // 2 * 2  # without a temperature
        from . import _params
        self._params = list(_params(self.encoding, None, ("rotary",)))
        schedule = self.encoding.spec
        self._follows_length = any(word in schedule for word in ("schedule=dynamic", "schedule=longrope"))

    def extra_repr(self) -> str:
        return f"{self.encoding.spec}, D={self.D}"

    def _table(self, length: int, device: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        held = self._tables.get((device, dtype))
        if held is None or held[0].shape[0] < length:
            rows = max(16, 1 << (length - 1).bit_length())
            held = self._tables[(device, dtype)] = self._make(torch.arange(rows), device, dtype)
        return held

    def _make(self, at: Tensor, device: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        cos, sin = _ops.cos_sin(at, self._params, self.encoding.spec, self.D, self._width, self.layout, dtype)
        return cos.to(device), sin.to(device)

    @torch.no_grad()
    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        at = position_ids
        if self.coordinates > 1 and at.shape[0] == self.coordinates:  # transformers has the axes first
            at = at.movedim(0, -1)
        if torch.compiler.is_compiling() or _ops._transforms() or _ops._modes() or at.is_meta:  # not known yet
            return self._make(at, x.device, x.dtype)
        if self.coordinates > 1 or self._follows_length or at.is_floating_point():
            return self._make(at, x.device, x.dtype)
        low, high = (int(n) for n in torch.aminmax(at))
        if low < 0 or high >= 1 << 24:
            return self._make(at, x.device, x.dtype)
        cos, sin = self._table(high + 1, x.device, x.dtype)
        return cos[at], sin[at]


class Bias(_Encoded):
    """The bias [H,Lq,Lk] that a score encoding adds, for scaled_dot_product_attention(attn_mask=...) on any device.

    It is computed on the CPU and brought to the device; its parameters may lie on either, and are trained through it.

    >>> Bias("alibi", H=1)(2, 2)[0].tolist()
    [[0.0, -0.00390625], [-0.00390625, 0.0]]
    """

    def __init__(self, encoding: Any, H: int, *, D: int = 64, L: int | None = None, seed: int = 0):
        super().__init__(encoding, seed, {"H": H, "D": D, "L": L})
        self.H, self.D, self.L = H, D, L

    def forward(self, Lq: int, Lk: int, *, device: Any = None, dtype: Any = None, q_positions: Any = None,
                k_positions: Any = None) -> Tensor:
        from . import bias
        given = self.params()
        values = None if given is None else {n: t.cpu() for n, t in given.items()}
        where = device or (next(iter(given.values())).device if given else "cpu")
        made = bias(self.encoding, H=self.H, Lq=Lq, Lk=Lk, D=self.D, params=values, q_positions=q_positions,
                    k_positions=k_positions, causal=self.encoding.causal_only, L=self.L)
        return made.to(device=where, dtype=dtype or made.dtype)

    def score_mod(self, Lq: int, Lk: int, *, device: Any = None, dtype: Any = None) -> Any:
        """A function for flex_attention(q, k, v, score_mod=...): one row of numbers per distance, not a matrix."""
        if not all(info.by_distance for info in self.encoding.parts.values()):
            raise _core.UnsupportedError(f"{self.encoding.spec} does not follow the distance alone; use forward's matrix")
        # By distance from 1 - Lq upwards, the last query being as late as the last key: a query at each, one key at 0.
        row = self(Lq + Lk - 1, 1, device=device, dtype=dtype, q_positions=1 - Lq, k_positions=0)[:, :, 0]

        def add(score: Tensor, b: Any, h: Any, i: Any, j: Any) -> Tensor:
            return score + row[h, i - j + Lk - 1]
        return add
