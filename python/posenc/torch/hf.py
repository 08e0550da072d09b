# SPDX-License-Identifier: MIT
"""posenc under transformers: its attention, a check of any model, and exact rotation in place of a model's own."""
from __future__ import annotations

import contextlib
from inspect import signature as inspect_signature
from typing import Any, Iterator, Mapping, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from .. import _core, _runs
from .._check import Finding, Report, verify
from .._encoding import Encoding
from .._model import Model, inspect

NAME = "posenc"


# ---------------------------------------------------------------- attention -----------------

def attention(module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None,
              dropout: float = 0.0, scaling: float | None = None, is_causal: bool | None = None,
              sliding_window: int | None = None, position_bias: Tensor | None = None, softcap: float | None = None,
              s_aux: Tensor | None = None, sinks: Tensor | None = None, **options: Any) -> tuple[Tensor, None]:
    """What transformers calls in place of its own attention. q and k are rotated by the model already, and have its
    temperature; s_aux are sinks of heads, sinks those that the tokens make."""
    from . import attend
    if _turned is not None:
        _turned[id(module)] = (module, query.detach(), key.detach())
    for what, given in (("dropout while training", dropout and module.training),
                        ("choice of keys by an index", any(options.get(n) is not None for n in ("indices", "block_indices"))),
                        ("output_attentions", options.get("output_attentions"))):
        if given:
            raise _core.UnsupportedError(f"attn_implementation='posenc' has no {what}; use 'eager' for this model or call")
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    masks: dict[str, Any] = {}
    if attention_mask is not None and attention_mask.dim() == 4:
        if attention_mask.dtype != torch.bool:  # a float mask: 0 where a key may be seen, very low elsewhere
            if ((attention_mask != 0) & (attention_mask > -1e3)).any():
                raise _core.UnsupportedError("attention_mask adds numbers to the scores; attn_implementation='posenc' has no such "
                                             "bias; use 'eager' for this model or call")
            attention_mask = attention_mask > -1
        masks["mask"] = attention_mask[..., :key.shape[2]]
    else:
        causal = is_causal if is_causal is not None else getattr(module, "is_causal", True)
        masks["causal"] = bool(causal)
        if attention_mask is not None:
            masks["key_allowed"] = attention_mask[:, -key.shape[2]:]
        if sliding_window and causal:
            masks["window"] = int(sliding_window)
    settings, params, tokens = [f"scale={float(scale)!r}"], {}, {}
    if softcap:
        settings.append(f"softcap={float(softcap)!r}")
    if s_aux is not None:
        settings.append("sink=head")
        params["sink"] = s_aux
    if sinks is not None:
        settings.append("sink=token")
        tokens["sink"] = sinks
    biases = [None] if position_bias is None else list(position_bias)
    spec, out = f"{'nope' if position_bias is None else 'dense_bias'}[{':'.join(settings)}]", []
    for b, bias in enumerate(biases):  # one for all; where the tokens make it, one for each of the batch
        of = lambda x: x[b:b + 1] if len(biases) > 1 and isinstance(x, Tensor) and x.shape[0] > 1 else x
        if bias is not None:
            params["b"] = bias.expand(query.shape[1], query.shape[2], key.shape[2])
        out.append(attend(of(query), of(key), of(value), spec, params=params, tokens={n: of(x) for n, x in tokens.items()},
                          **{n: of(x) for n, x in masks.items()}))
    o = torch.cat(out) if len(out) > 1 else out[0]
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


def _table(module: nn.Module, x: Tensor, at: Tensor, kind: str | None, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    out = module(x, at) if kind is None else module(x, at, kind)
    out = (out.real, out.imag) if isinstance(out, Tensor) else out  # complex numbers: DeepSeek-V2
    cos, sin = (t.detach().double().cpu() for t in out)
    if cos.shape[-1] == pairs:  # one number for a pair
        cos, sin = (torch.cat([t, t], -1) for t in (cos, sin))
    return cos.numpy(), sin.numpy()


def _doubles(x: Any) -> np.ndarray:
    return np.ascontiguousarray(x, np.float64)


def _fixed(e: Encoding, D: int) -> tuple:
    """Parameters that a config holds: frequencies, factors."""
    return _runs._rotary(e, D, 1, None)[2]


class _Judge:
    """What a check of one model collects: what was compared, and what was found."""

    def __init__(self, model: Any):
        self.model, self.about = model, inspect(model.config)
        self.text = model.config.get_text_config() if hasattr(model.config, "get_text_config") else model.config
        self.checked: list[tuple[str, float, float]] = []
        self.findings: list[Finding] = []
        self.notes = [f"config: {w.sentence}" for w in self.about.warnings]
        self.rotary = [g for g in self.about.groups if "rotary" in g.encoding.parts]

    def turns(self, e: Encoding, D: int, at: np.ndarray, cos: np.ndarray, sin: np.ndarray) -> tuple | None:
        """posenc_core's verdict on a table [rows, width]; None: the encoding is of another kind."""
        rivals = []
        for g in self.rotary:
            if g.encoding != e:
                with contextlib.suppress(_core.PosencError):
                    rivals.append((f"the table of other layers ({', '.join(map(str, g.layers[:4]))} ...)", g.encoding._core,
                                   _fixed(g.encoding, D)))
        try:
            return _core.turns(e._core, _fixed(e, D), D, _doubles(at), _doubles(cos), _doubles(sin), tuple(rivals[:8]))
        except _core.PosencError:
            return None

    def group(self, layer: int | None) -> Any:
        for g in self.rotary:
            if layer is None or g.is_all or layer in g.layers:
                return g
        return None

    def verified(self, label: str, report: Report) -> None:
        """What verify says of something inside the model."""
        self.checked += [(f"{label}, {name}", error, allowed) for name, error, allowed in report.checked]
        self.findings += [f._replace(where=f"{label}, {f.where}") for f in report.findings]


# ---------------------------------------------------------------- tables --------------------

def _check_rotary(j: _Judge, name: str, module: nn.Module, kind: str | None, e: Encoding, D: int, ends: list[int]) -> None:
    label = name if kind is None else f"{name} ({kind})"
    device = next(module.buffers()).device
    at = np.array(sorted({n for n in ends if n >= 0}), np.int64)
    x, ids = torch.zeros(1, device=device, dtype=torch.float32), torch.from_numpy(at)[None].to(device)
    cos, sin = _table(module, x, ids, kind, _pairs(e, D) if D else 0)
    verdict = j.turns(e, D or cos.shape[-1], at, cos[0], sin[0])
    if verdict is None:
        j.notes.append(f"{label}: its positions have several coordinates; its table was not compared")
        return
    right, _, error, allowed, row, pair, _, got, wanted, cause = verdict
    j.checked.append((f"{label}, positions {', '.join(map(str, at))}", error, allowed))
    if right:
        if error > 1e-6:
            j.notes.append(f"{label} rounds angles to float32: cosines are off by {error:.1g} at position {at.max()}")
        return
    where = f"{label}, position {at[row]}, pair {pair}" if row >= 0 else label
    j.findings.append(Finding(where, f"cosine {got:.6g} instead of {wanted:.6g} (largest error {error:.2g})", error, cause))


def _check_tables(j: _Judge) -> None:
    """Biases and rows that a model computes or stores: T5's buckets, ALiBi of BLOOM and MPT, sinusoids, windows of Swin."""
    n = 24

    def of(name: str, **wanted: str) -> Encoding | None:
        fits = [g.encoding for g in j.about.groups if name in {i.name for i in g.encoding.parts.values()}]
        for e in fits:
            if all((f"{k}={v}" in e.spec) for k, v in wanted.items()):
                return e
        return fits[0] if fits and not wanted else None

    for name, module in j.model.named_modules():
        if hasattr(module, "compute_bias") and hasattr(module, "relative_attention_bias"):
            e = of("t5", bidirectional="no") if getattr(module, "is_decoder", False) else \
                next((g.encoding for g in j.about.groups if "score" in g.encoding.parts and "bidirectional=no" not in g.encoding.spec), None)
            if e is not None and "key_length" in inspect_signature(module.compute_bias).parameters:  # else by blocks: LongT5
                table = module.relative_attention_bias.weight.detach().double().cpu().numpy()
                j.verified(name, verify(module.compute_bias(n, n)[0].detach(), Encoding(e.spec), params={"table": table}))
        elif isinstance(module, nn.Embedding) and ("Sinusoidal" in type(module).__name__ or name.endswith("encoder.embed_positions")):
            e = of("sinusoidal")
            if e is not None:
                j.verified(name, verify(module.weight.detach(), e))
        for build, call in (("build_alibi_tensor", lambda f, H: f(torch.ones(1, n), H, torch.float32).reshape(H, n)),
                            ("build_mpt_alibi_tensor", lambda f, H: f(H, n).reshape(H, n))):
            e = of("alibi")
            if hasattr(module, build) and e is not None:
                heads = int(getattr(j.text, "num_attention_heads", 0) or j.text.n_heads)
                a = call(getattr(module, build), heads).double().cpu().numpy()
                behind = a[:, None, :] - a[:, :, None]  # of key j, for query i
                bias = np.where(np.tri(n, dtype=bool), behind, behind.swapaxes(1, 2))
                j.verified(f"{name}.{build}", verify(bias.astype(np.float32), Encoding(e.spec)))
        if hasattr(module, "relative_position_index") and hasattr(module, "window_size"):
            index, window = module.relative_position_index.cpu().numpy(), tuple(module.window_size)
            mine = _runs.window_index(*window)
            wanted = mine[0] if isinstance(mine, tuple) else mine
            index = index.reshape(wanted.shape)
            error = float((index != wanted).sum())
            j.checked.append((f"{name}.relative_position_index", error, 0.0))
            if error:
                q, k = (int(i) for i in np.argwhere(index != wanted)[0][-2:])
                h, w = window
                across = wanted.reshape(h, w, h, w).transpose(1, 0, 3, 2).reshape(wanted.shape) if h == w else wanted
                fits = (("queries and keys are exchanged", wanted.T), ("rows and columns are exchanged", across),
                        ("both axes and the sides are exchanged", across.T))
                cause = next((words for words, other in fits if (index == other).all()), "no transposition fits")
                j.findings.append(Finding(f"{name}.relative_position_index, query {q}, key {k}",
                                          f"row {index[q, k]} instead of {wanted[q, k]}", error, cause))


# ---------------------------------------------------------------- runs ----------------------

class _Layer(NamedTuple):
    name: str
    layer: int | None
    turns: tuple | None   # cosines, sines [B,L,width] that the layer was given
    mask: Any
    q: Any                # before rotation, [B,H,L,D], and after it
    k: Any


@contextlib.contextmanager
def _watched(model: Any) -> Iterator[list[_Layer]]:
    """What each attention is given while the model runs."""
    seen: list[_Layer] = []
    hooks = []

    def look(name: str, module: nn.Module) -> Any:
        def hook(_: nn.Module, args: tuple, kwargs: dict) -> None:
            given = [kwargs.get("position_embeddings"), *args]
            turns = next((g for g in given if isinstance(g, tuple) and len(g) == 2 and all(isinstance(t, Tensor) for t in g)), None)
            mask = kwargs.get("attention_mask")
            seen.append(_Layer(name, module.layer_idx, turns, mask, None, None))
        return hook
    for name, module in model.named_modules():
        if isinstance(getattr(module, "layer_idx", None), int) and "attn" in name.rsplit(".", 1)[-1].lower() + "attn" * ("attention" in name):
            hooks.append(module.register_forward_pre_hook(look(name, module), with_kwargs=True))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


@contextlib.contextmanager
def _rows_read(j: _Judge) -> Iterator[list[tuple[str, int, Tensor]]]:
    """(module, its first row, the rows asked for) of each look-up in a learned table of positions."""
    tables, seen = {}, []
    shapes = {tuple(g.facts.get(n, (None,))[0] for n in ("rows", "dim")): g.facts.get("offset", (0,))[0] for g in j.about.groups
              if g.is_input}
    for name, module in j.model.named_modules():
        if isinstance(module, nn.Embedding) and tuple(module.weight.shape) in shapes and ("pos" in name or "wpe" in name):
            tables[id(module.weight)] = name, shapes[tuple(module.weight.shape)]
    before = nn.functional.embedding

    def look(ids: Tensor, weight: Tensor, *more: Any, **options: Any) -> Tensor:
        if id(weight) in tables:
            seen.append((*tables[id(weight)], ids.detach()))
        return before(ids, weight, *more, **options)
    nn.functional.embedding = look
    try:
        yield seen
    finally:
        nn.functional.embedding = before


def _rows(seen: list[tuple[str, int, Tensor]], start: int, pad: int = 0) -> tuple[str, str]:
    """(where, cause) of the first look-up that does not ask for the rows of positions start, start + 1, ...; ("", "")."""
    for name, first, ids in seen:
        at = ids.reshape(-1, ids.shape[-1])[0, pad:]
        cause = _core.positions_cause(_doubles(at.cpu()), _doubles(first + start + np.arange(len(at))))
        if cause:
            return name, cause
    return "", ""


def _given(model: Any, ids: Tensor) -> dict[str, Any]:
    """Inputs that this kind of model takes."""
    c = model.config
    name = getattr(model, "main_input_name", "input_ids")
    if name == "pixel_values":
        size = c.image_size if isinstance(c.image_size, int) else c.image_size[0]
        return {name: torch.linspace(-1, 1, 2 * c.num_channels * size * size).reshape(2, c.num_channels, size, size)}
    if name == "input_features":
        return {name: torch.linspace(-1, 1, 2 * c.num_mel_bins * 2 * c.max_source_positions).reshape(2, c.num_mel_bins, -1),
                "decoder_input_ids": ids}
    return {name: ids, "decoder_input_ids": ids} if getattr(c, "is_encoder_decoder", False) else {name: ids}


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
    """The largest difference, and how much arithmetic in another order may make: some hundreds of roundings to float32."""
    return float((a - b).abs().max()), 2e-4 * max(float(a.abs().max()), 1e-3)


def _halves(a: Tensor, b: Tensor, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    """Cosines and sines [L,2M] of the first sequence; some models (GPT-J) give the sines first, and one number for a pair."""
    a, b = (t.detach().double().cpu().reshape(-1, *t.shape[-2:])[0] for t in (a, b))
    if pairs and a.shape[-1] == pairs:
        a, b = (torch.cat([t, t], -1) for t in ((b, a) if a.sum() < b.sum() else (a, b)))  # the slow pairs have barely turned
    return a.numpy(), b.numpy()


def _turning(j: _Judge, seen: list[_Layer], start: int) -> tuple[str, str]:
    """(where, cause) of the first layer whose table is not that of positions start, start + 1, ...; ("", "")."""
    for layer in seen:
        g = j.group(layer.layer)
        if layer.turns is None or g is None:
            continue
        D = int(g.sizes.get("D", 0)) or layer.turns[0].shape[-1]
        cos, sin = _halves(*layer.turns, _pairs(g.encoding, D))
        at = np.arange(start, start + len(cos))
        verdict = j.turns(g.encoding, D, at, cos, sin)
        if verdict and not verdict[0]:
            return f"{layer.name} (layer {layer.layer}), position {at[max(verdict[4], 0)]}, pair {verdict[5]}", verdict[9]
    return "", ""


def _pairs(e: Encoding, D: int) -> int:
    """How many pairs turn; 0 where it cannot be said."""
    try:
        return _runs._rotary(e, D)[1].frequencies()[1]
    except _core.PosencError:
        return 0


def _masked(j: _Judge, seen: list[_Layer], allowed: np.ndarray | None) -> tuple[str, str]:
    """(where, cause) of the first layer that sees other keys than its config and the padding let it."""
    for layer in seen:
        groups = [g for g in j.about.groups if not g.is_input and (g.is_all or layer.layer in g.layers)]
        if not isinstance(layer.mask, Tensor) or layer.mask.dim() != 4 or not groups:
            continue
        m = layer.mask[:, 0].detach()
        m = np.ascontiguousarray((m if m.dtype == torch.bool else m > -1).cpu().numpy())
        if m.shape[1] > m.shape[2]:
            continue
        if m.dtype == np.bool_ and not m[..., -1, -1].any():
            m = ~m  # a mask of what is hidden: a query always sees itself
        window = groups[0].facts.get("sliding_window", (0, ""))[0] or 0
        if isinstance(window, (list, tuple)):
            window = window[layer.layer] or 0
        keys = None if allowed is None else np.ascontiguousarray(np.broadcast_to(allowed, (m.shape[0], m.shape[2])), np.bool_)
        right, b, q, k, wrong, cause = _core.seen(m, m.shape, True, int(window), keys)
        if not right:
            return f"{layer.name} (layer {layer.layer}), query {q}, key {k}", cause
    return "", ""


@torch.no_grad()
def _check_runs(j: _Judge, ids: Tensor) -> None:
    model = j.model
    causal = not getattr(model.config, "is_encoder_decoder", False) and hasattr(model, "generate")
    with _watched(model) as seen, _rows_read(j) as rows:
        whole = _logits(model, **_given(model, ids))

    def hold(label: str, got: Tensor, want: Tensor, what: str, causes: Any, fallback: str) -> bool:
        error, allowed = _differ(want, got)
        j.checked.append((label, error, allowed))
        if error <= allowed:
            return True
        row = int((want - got).abs().flatten(2).amax(-1).amax(0).gt(allowed).nonzero()[0])
        where, cause = next((c for c in causes if c[1]), ("", fallback))
        j.findings.append(Finding(f"{label}, position {row}" + (f", {where}" if where else ""), what + f" (largest error {error:.2g})",
                                  error, cause))
        return False
    where, cause = _turning(j, seen, 0)
    if cause and not j.findings:
        j.findings.append(Finding(where, "the layer is given another table", float("inf"), cause))
    if rows:
        where, cause = _rows(rows, 0)
        j.checked.append((f"{rows[0][0]}, rows of positions", float(bool(cause)), 0.0))
        if cause:
            j.findings.append(Finding(where, "it reads other rows than those of the positions", float("inf"), cause))
    if causal:
        with contextlib.suppress(ValueError, NotImplementedError), _attention_of(model, "eager"), _watched(model) as eager:
            _logits(model, input_ids=ids)
            where, cause = _masked(j, eager, None)
            if any(isinstance(layer.mask, Tensor) for layer in eager):
                j.checked.append(("masks", float(bool(cause)), 0.0))
            if cause:
                j.findings.append(Finding(where, "the layer sees other keys", float("inf"), cause))
    try:
        with _attention_of(model, register()), _rotations() as turned:
            with _projected(model) as before:
                got = _logits(model, **_given(model, ids))
            _check_rotations(j, before, turned)
            hold("posenc's attention", got, whole, "the logits differ", [], "mask, scale or window")
    except (NotImplementedError, ValueError, AttributeError, RuntimeError) as error:
        j.notes.append(f"posenc's attention was not tried: {error}")
    if not causal:
        return
    pad, n = 3, ids.shape[1]
    padded = torch.cat([ids.new_zeros(ids.shape[0], pad), ids], 1)
    shown = torch.cat([ids.new_zeros(ids.shape[0], pad), torch.ones_like(ids)], 1)
    more = {}  # as generate() does
    if hasattr(model, "_prepare_position_ids_for_generation") and "position_ids" in inspect_signature(model.forward).parameters:
        more["position_ids"] = model._prepare_position_ids_for_generation(padded, {"attention_mask": shown})
    prepared = model.prepare_inputs_for_generation(padded, attention_mask=shown, use_cache=False, **more)
    prepared = {k: v for k, v in prepared.items() if k in ("input_ids", "attention_mask", "position_ids") and v is not None}
    with _watched(model) as seen, _rows_read(j) as rows:
        got = _logits(model, **prepared)[:, pad:]
    at = prepared.get("position_ids")
    tail = "" if at is None else _core.positions_cause(_doubles(at[0, pad:].cpu()), _doubles(np.arange(n)))
    visible = [layer._replace(turns=None if layer.turns is None else tuple(t[..., pad:, :] for t in layer.turns)) for layer in seen]
    hold("padding on the left", got, whole, "padding changes what the tokens after it give",
         [("position_ids", tail), _rows(rows, 0, pad), _turning(j, visible, 0), _masked(j, seen, shown.cpu().numpy() != 0)],
         "positions count the padding, or it is seen")
    half = n // 2
    try:
        first = model(input_ids=ids[:, :half], use_cache=True)
        with _watched(model) as seen, _rows_read(j) as rows:
            rest = model(input_ids=ids[:, half:], past_key_values=first.past_key_values, use_cache=True)
    except (TypeError, ValueError, AttributeError) as error:
        j.notes.append(f"a cache was not tried: {error}")
        return
    where, cause = next((c for c in (_turning(j, seen, half), _rows(rows, half)) if c[1]), ("", ""))
    fine = hold("with a cache", torch.cat([first.logits, rest.logits], 1).double(), whole,
                "what is decoded with a cache differs from one call", [(where, cause), _masked(j, seen, None)],
                "positions of cached decoding, or its mask")
    if fine and cause and not j.findings:  # too little for the logits of this input
        j.findings.append(Finding(f"with a cache, {where}", "other positions than those of the tokens", float("inf"), cause))


# ---------------------------------------------------------------- what is rotated -----------

_turned: dict[int, tuple[nn.Module, Tensor, Tensor]] | None = None  # by layer, while a check wants to know


@contextlib.contextmanager
def _rotations() -> Iterator[dict]:
    global _turned
    _turned = {}
    try:
        yield _turned
    finally:
        _turned = None


@contextlib.contextmanager
def _projected(model: Any) -> Iterator[dict]:
    """id of an attention -> side -> what its projection, or the norm after it, gave."""
    out: dict[int, dict[str, Tensor]] = {}
    hooks = []
    for module in model.modules():
        for side in "qk":
            last = getattr(module, f"{side}_norm", None) or getattr(module, f"{side}_layernorm", None) or getattr(module, f"{side}_proj", None)
            if isinstance(last, nn.Module) and isinstance(getattr(module, "layer_idx", None), int):
                def keep(_: nn.Module, args: tuple, y: Tensor, at: int = id(module), side: str = side) -> None:
                    out.setdefault(at, {})[side] = y
                hooks.append(last.register_forward_hook(keep))
    try:
        yield out
    finally:
        for hook in hooks:
            hook.remove()


def _by_heads(x: Tensor, like: Tensor) -> Tensor | None:
    """[B,H,L,D] as like is, of whatever order a projection or a norm has."""
    B, H, L, D = like.shape
    if x.numel() != like.numel():
        return None
    return x if x.shape == like.shape else x.reshape(B, L, H, D).transpose(1, 2)


def _check_rotations(j: _Judge, before: dict, turned: dict) -> None:
    """Are q and k rotated as the config says, where a module shows them before and after?"""
    for at, (module, q, k) in turned.items():
        g, given = j.group(getattr(module, "layer_idx", None)), before.get(at, {})
        if g is None or len(given) < 2:
            continue
        pair = [_by_heads(given[s], like) for s, like in (("q", q), ("k", k))]
        if None in pair:
            continue
        name = f"layer {module.layer_idx}"
        for side, got, given_ in zip("qk", (q, k), pair):
            both = [(x,) if side == "q" else (None, x) for x in (got, given_)]  # keys have no temperature
            report = verify(both[0], g.encoding, inputs=both[1])
            cause = "" if report.ok else _not_turned(g.encoding, *both) or report.findings[0].cause
            is_wrong = not report.ok and not j.findings and (not cause.startswith("no other") or _keeps_norms(got, given_))
            if report.ok or is_wrong:
                j.checked += [(f"{name}, rotated {side}", error, allowed) for _, error, allowed in report.checked]
            if is_wrong:
                found = report.findings[0]
                j.findings.append(found._replace(where=f"{name}, rotated, {side}{found.where[1:]}", cause=cause))


def _not_turned(e: Encoding, got: tuple, given: tuple) -> str:
    """The commonest ways not to rotate at all, or too often; "" if it is neither."""
    if torch.equal(got[-1], given[-1]):
        return "it is not rotated"
    twice = verify(got, e, inputs=given, positions=2 * np.arange(got[-1].shape[2]))
    return "it is rotated twice" if twice.ok else ""


def _keeps_norms(got: Tensor, given: Tensor) -> bool:
    """Then it was rotated, if not as the config says; else a module between has changed more than that."""
    return torch.allclose(got.double().norm(dim=-1), given.double().norm(dim=-1), rtol=1e-4)


def check(model: Any, *, input_ids: Tensor | None = None, lengths: list[int] | None = None) -> Report:
    """Is a model's own code true to its config? Rotary tables, biases and rows against exact ones; what each layer is
    given, rotates and sees; its logits through posenc's attention, with padding, and with a cache.

    lengths: positions at which tables are compared besides 0, 1, the length of pre-training and the context's end.
    The report names the module, layer, position, pair, the size of the error, and the cause where a known one fits.

    >>> from transformers import LlamaConfig, LlamaForCausalLM
    >>> check(LlamaForCausalLM(LlamaConfig(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=1,
    ...                                    num_attention_heads=2, max_position_embeddings=64))).ok
    True
    """
    j = _Judge(model)
    about, text = j.about, j.text
    ends = [0, 1, int(about.original_length or 0) - 1, int(about.max_positions or 2048) - 1, *(lengths or [])]
    was_training = model.training
    model.eval()
    try:
        for name, module in _rotary_modules(model):
            for kind in _layer_types(module):
                try:
                    e, D = _encoding_of(about, text, kind)
                except _core.PosencError as error:
                    j.notes.append(f"{name}: {error}")
                    continue
                _check_rotary(j, name, module, kind, e, D, ends)
        _check_tables(j)
        if input_ids is None:
            n = min(16, int(about.max_positions or 16))
            input_ids = torch.arange(3, 3 + 2 * n).reshape(2, n) % int(getattr(text, "vocab_size", 100))
        _check_runs(j, input_ids)
    finally:
        model.train(was_training)
    return Report(f"check {type(model).__name__}", j.checked, j.findings, j.notes)


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
