# SPDX-License-Identifier: MIT
"""posenc under transformers: its attention, a check of any model, and exact rotation in place of a model's own."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from .. import _core, _runs
from .._check import Finding, Report
from .._encoding import Encoding
from .._model import Model, inspect

NAME = "posenc"


# ---------------------------------------------------------------- attention -----------------

def attention(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
              dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
              sliding_window: int | None = None, position_bias: Tensor | None = None, **options: Any) -> tuple[Tensor, None]:
    """What transformers calls in place of its own attention. q and k are rotated by the model already."""
    from . import attend
    for what, given in (("dropout while training", dropout and module.training), ("softcap", options.get("softcap")),
                        ("attention sinks", options.get("s_aux") is not None),
                        ("output_attentions", options.get("output_attentions"))):
        if given:
            raise _core.UnsupportedError(f"attn_implementation='posenc' has no {what}; use 'eager' for this model or call")
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    masks: dict[str, Any] = {}
    if attention_mask is not None and attention_mask.dim() == 4:
        if attention_mask.dtype != torch.bool:  # a float mask: 0 where a key may be seen, very low elsewhere
            attention_mask = attention_mask > -1
        masks["mask"] = attention_mask[..., :key.shape[2]]
    else:
        causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
        masks["causal"] = bool(causal)
        if attention_mask is not None:
            masks["key_allowed"] = attention_mask[:, -key.shape[2]:]
        if sliding_window and causal:
            masks["window"] = int(sliding_window)
    encoding, params = f"nope[scale={float(scale)!r}]", None
    if position_bias is not None:
        if position_bias.shape[0] != 1:
            raise _core.UnsupportedError("position_bias differs in the batch; attn_implementation='posenc' takes one for all")
        encoding = f"dense_bias[scale={float(scale)!r}]"
        params = {"b": position_bias[0].expand(query.shape[1], query.shape[2], key.shape[2])}
    o = attend(query, key, value, encoding, params=params, **masks)
    return o.transpose(1, 2).contiguous(), None


def mask(batch_size: int, q_length: int, kv_length: int, q_offset: Any = 0, kv_offset: int = 0, mask_function: Any = None,
         attention_mask: Tensor | None = None, **options: Any) -> Tensor | None:
    """Which keys may be seen: [B,Lk] where causality says the rest; else the whole [B,1,Lq,Lk], as for sdpa."""
    from transformers import masking_utils
    if mask_function is None or mask_function is masking_utils.causal_mask_function:
        if int(q_offset) + q_length == kv_length + kv_offset:
            return None if attention_mask is None else attention_mask[:, -kv_length:]
    whole = {**options, "allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
    more = {} if mask_function is None else {"mask_function": mask_function}
    return masking_utils.sdpa_mask(batch_size, q_length, kv_length, q_offset, kv_offset, attention_mask=attention_mask, **more,
                                   **whole)


def register(name: str = NAME) -> str:
    """Makes attn_implementation="posenc" known to transformers; returns the name."""
    from transformers import AttentionInterface, AttentionMaskInterface
    AttentionInterface.register(name, attention)
    AttentionMaskInterface.register(name, mask)
    return name


# ---------------------------------------------------------------- rotary modules ------------

def _rotary_modules(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    for name, module in model.named_modules():
        if "Rotary" in type(module).__name__ and any("inv_freq" in n for n, _ in module.named_buffers(recurse=False)):
            yield name, module


def _layer_types(module: nn.Module) -> list[str | None]:
    """Modules of models whose layers differ hold one table for each kind."""
    kinds = [n[:-len("_inv_freq")] for n, _ in module.named_buffers(recurse=False) if n.endswith("_inv_freq")]
    return [k for k in kinds if not k.endswith("original")] or [None]


def _encoding_of(about: Model, config: Any, kind: str | None) -> tuple[Encoding, int]:
    """What the config says that a module turns by: of the first layer of its kind."""
    rotary = [g for g in about.groups if "rotary" in g.encoding.parts]
    types = getattr(config, "layer_types", None)
    for g in rotary:
        if kind is None or types is None or any(i < len(types) and types[i] == kind for i in g.layers):
            return g.encoding, int(g.sizes.get("D", 0))
    raise _core.UnsupportedError("the config tells no rotation for this module")


def _table(module: nn.Module, x: Tensor, at: Tensor, kind: str | None) -> tuple[np.ndarray, np.ndarray]:
    out = module(x, at) if kind is None else module(x, at, kind)
    return tuple(t.detach().double().cpu().numpy() for t in out)  # type: ignore[return-value]


def _wanted(e: Encoding, D: int, at: np.ndarray, layout: str, width: int) -> tuple[np.ndarray, np.ndarray] | None:
    cos, sin = _runs.cos_sin(e, at, D=D, layout=layout)
    return (cos.astype(np.float64), sin.astype(np.float64)) if cos.shape[-1] == width else None


def _off(got: tuple, want: tuple | None) -> float:
    if want is None or got[0].shape != want[0].shape:
        return float("inf")
    return max(float(np.abs(g - w).max()) for g, w in zip(got, want))


def _causes(e: Encoding, D: int) -> Iterator[tuple[str, Encoding, int]]:
    """(what went wrong, what it then turns by, by how many positions it is off)."""
    info = e.parts["rotary"]
    for shift in (1, -1):
        yield f"positions are off by {shift:+d}", e, shift
    given = {s.name for s in info.settings if f"{s.name}=" in e.spec}
    if "schedule" in given:
        bare = [n for n in given if n in ("base", "layout", "dim")]
        keep = {n: e.spec.split(n + "=")[1].split(":")[0].rstrip("]") for n in bare}
        yield "the scaling of the config is dropped", Encoding("rope", **keep), 0
    for base in (1e4, 1e5, 5e5, 1e6, 2e6, 5e6, 1e7):
        yield f"the base is {base:g}", Encoding(e, base=base), 0
    for setting in info.settings:
        for word in setting.range.split("|") if "|" in setting.range and ".." not in setting.range else ():
            with contextlib.suppress(_core.PosencError):
                yield f"{setting.name} is {word.strip()}", Encoding(e, **{setting.name: word.strip()}), 0
    for factor in (2, 4, 8, 16, 32):
        if "factor" in given:
            with contextlib.suppress(_core.PosencError):
                yield f"the factor is {factor}", Encoding(e, factor=factor), 0


def _check_rotary(name: str, module: nn.Module, kind: str | None, e: Encoding, D: int, ends: list[int],
                  checked: list, findings: list, notes: list) -> None:
    label = name if kind is None else f"{name} ({kind})"
    device = next(module.buffers()).device
    at = np.array(sorted({n for n in ends if n >= 0}), np.int64)[None]
    got = _table(module, torch.zeros(1, device=device, dtype=torch.float32), torch.from_numpy(at).to(device), kind)
    width = got[0].shape[-1]
    D = D or width
    layouts = ("half", "interleaved")
    layout = min(layouts, key=lambda way: _off(got, _wanted(e, D, at, way, width)))
    want = _wanted(e, D, at, layout, width)
    if want is None:
        findings.append(Finding(label, f"its table is {width} wide; the config says {_runs.cos_sin(e, at, D=D)[0].shape[-1]}",
                                float("inf"), "dimension"))
        return
    error = _off(got, want)
    w = _runs.frequencies(e, D=D, length=float(at.max()) + 1).w
    rounding = 2.0 ** -23 * max(float(at.max()) * float(np.abs(w).max(initial=0)), 1.0) * 2  # angles in float32
    checked.append((f"{label}, positions {', '.join(map(str, at[0]))}", error, rounding))
    if error <= rounding:
        if error > 1e-6:
            notes.append(f"{label} rounds angles to float32: cosines are off by {error:.1g} at position {at.max()}")
        return
    bad = np.abs(got[0] - want[0]) + np.abs(got[1] - want[1]) > rounding
    row, channel = (int(n) for n in np.argwhere(bad[0])[0])
    pair = channel % (width // 2) if layout == "half" else channel // 2
    cause = "no known layout, base, schedule, factor or shift fits"
    if got[0].dtype and _is_low(module):
        cause = "its frequencies are stored in bfloat16 or float16, so angles have 8 or 11 bits"
    else:
        for words, other, shift in _causes(e, D):
            with contextlib.suppress(_core.PosencError, ValueError):
                if any(_off(got, _wanted(other, D, at + shift, way, width)) <= rounding for way in layouts):
                    cause = words
                    break
        else:
            ratio = _magnitude(got, want)
            if ratio is not None:
                cause = f"the magnitude is {ratio:.6g} times that of the config"
            elif _fits_low(got, e, D, at, layout, width):
                cause = "angles are rounded to bfloat16"
    findings.append(Finding(f"{label}, position {at[0][row]}, pair {pair}",
                            f"cosine {got[0][0, row, channel]:.6g} instead of {want[0][0, row, channel]:.6g} "
                            f"(largest error {error:.2g})", error, cause))


def _is_low(module: nn.Module) -> bool:
    return any("inv_freq" in n and b.dtype in (torch.bfloat16, torch.float16) for n, b in module.named_buffers(recurse=False))


def _fits_low(got: tuple, e: Encoding, D: int, at: np.ndarray, layout: str, width: int) -> bool:
    """Are these the cosines of angles that were rounded to bfloat16?"""
    angle = _runs.angles(e, at, D=D).angle
    low = torch.from_numpy(angle).bfloat16().double().numpy()
    M = width // 2
    near = got[0][..., :M] if layout == "half" else got[0][..., ::2]
    return near.shape == low.shape and float(np.abs(np.cos(low) - near).max()) < 1e-2 < float(np.abs(np.cos(angle) - near).max())


def _magnitude(got: tuple, want: tuple) -> float | None:
    ratio = float(np.sqrt((got[0][0, 0] ** 2).sum() / max((want[0][0, 0] ** 2).sum(), 1e-30)))
    fits = abs(ratio - 1) > 1e-4 and max(np.abs(g - ratio * w).max() for g, w in zip(got, want)) < 1e-4
    return ratio if fits else None


# ---------------------------------------------------------------- the whole model -----------

def _logits(model: nn.Module, **inputs: Any) -> Tensor:
    out = model(**inputs)
    return (out.logits if hasattr(out, "logits") else out.last_hidden_state).double()


@contextlib.contextmanager
def _attention_of(model: Any, name: str) -> Iterator[None]:
    before = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def _differ(a: Tensor, b: Tensor) -> tuple[float, float]:
    """The largest difference, and how much float32 arithmetic in another order may make."""
    return float((a - b).abs().max()), 2e-4 * max(float(a.abs().max()), 1e-3)


@torch.no_grad()
def _check_runs(model: Any, ids: Tensor, checked: list, findings: list, notes: list) -> None:
    whole = _logits(model, input_ids=ids)

    def hold(label: str, got: Tensor, want: Tensor, what: str, cause: str) -> None:
        error, allowed = _differ(want, got)
        checked.append((label, error, allowed))
        if not error <= allowed:
            row = int((want - got).abs().amax(-1).amax(0).gt(allowed).nonzero()[0])
            findings.append(Finding(f"{label}, position {row}", what + f" (largest error {error:.2g})", error, cause))
    try:
        with _attention_of(model, register()):
            hold("posenc's attention", _logits(model, input_ids=ids), whole, "the logits differ", "mask, scale or window")
    except (NotImplementedError, ValueError, AttributeError) as error:
        notes.append(f"posenc's attention was not tried: {error}")
    if getattr(model.config, "is_encoder_decoder", False) or not hasattr(model, "generate"):
        return
    pad, n = 3, ids.shape[1]
    padded = torch.cat([ids.new_zeros(ids.shape[0], pad), ids], 1)
    seen = torch.cat([ids.new_zeros(ids.shape[0], pad), torch.ones_like(ids)], 1)
    prepared = model.prepare_inputs_for_generation(padded, attention_mask=seen, use_cache=False)
    prepared = {k: v for k, v in prepared.items() if k in ("input_ids", "attention_mask", "position_ids") and v is not None}
    hold("padding on the left", _logits(model, **prepared)[:, pad:], whole, "padding changes what the tokens after it give",
         "positions count the padding, or it is seen")
    half = n // 2
    try:
        first = model(input_ids=ids[:, :half], use_cache=True)
        rest = model(input_ids=ids[:, half:], past_key_values=first.past_key_values, use_cache=True)
    except (TypeError, ValueError) as error:
        notes.append(f"a cache was not tried: {error}")
        return
    hold("with a cache", torch.cat([first.logits, rest.logits], 1).double(), whole,
         "what is decoded with a cache differs from one call", "positions of cached decoding, or its mask")


def check(model: Any, *, input_ids: Tensor | None = None, lengths: list[int] | None = None) -> Report:
    """Is a model's own code true to its config? Rotary tables against exact angles; its logits through posenc's
    attention, with padding, and with a cache.

    lengths: positions at which tables are compared besides 0, 1, the length of pre-training and the context's end.
    The report names the module, position, pair, the size of the error, and the cause where a known one fits.
    """
    about = inspect(model.config)
    text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
    checked: list = []
    findings: list = []
    notes = [f"config: {w.sentence}" for w in about.warnings]
    ends = [0, 1, int(about.original_length or 0) - 1, int(about.max_positions or 2048) - 1, *(lengths or [])]
    was_training = model.training
    model.eval()
    try:
        for name, module in _rotary_modules(model):
            for kind in _layer_types(module):
                try:
                    e, D = _encoding_of(about, text, kind)
                except _core.PosencError as error:
                    notes.append(f"{name}: {error}")
                    continue
                _check_rotary(name, module, kind, e, D, ends, checked, findings, notes)
        if input_ids is None:
            n = min(16, int(about.max_positions or 16))
            input_ids = torch.arange(3, 3 + 2 * n).reshape(2, n) % int(getattr(text, "vocab_size", 100))
        _check_runs(model, input_ids, checked, findings, notes)
    finally:
        model.train(was_training)
    return Report(f"check {type(model).__name__}", checked, findings, notes)


@contextlib.contextmanager
def patched(model: Any) -> Iterator[Any]:
    """The model with exact rotation in place of its own, to measure what rounding does to the loss."""
    from . import Rotary
    about, text = inspect(model.config), model.config.get_text_config()
    before: list[tuple[nn.Module, Any]] = []
    try:
        for _, module in _rotary_modules(model):
            exact: Mapping[str | None, Any] = {}
            exact = {kind: Rotary(*_encoding_of(about, text, kind)) for kind in _layer_types(module)}
            before.append((module, module.__dict__.get("forward")))
            module.forward = lambda x, position_ids, layer_type=None, exact=exact: exact[layer_type](x, position_ids)
        yield model
    finally:
        for module, forward in before:
            if forward is None:
                del module.forward
            else:
                module.forward = forward
