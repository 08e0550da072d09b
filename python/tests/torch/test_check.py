# SPDX-License-Identifier: MIT
"""check: nothing on models as transformers has them; on broken ones the fault, by its name."""
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
import posenc  # noqa: E402
from posenc.torch import hf  # noqa: E402
from models import LLAMA3, MODELS, YARN, make  # noqa: E402


@pytest.mark.parametrize("name", MODELS)
def test_check_finds_nothing_on_a_right_model(name):
    report = hf.check(make(name))
    assert report.ok, report
    assert report.checked and not any("cache was not tried" in n for n in report.notes), report


# ---------------------------------------------------------------- what breaks a model ----------
# Each takes the model (and pytest's monkeypatch) and puts a fault into it that runs without a word.

def rotary(model):
    return next(m for _, m in hf._rotary_modules(model))


def modeling(model):
    return sys.modules[type(model).__module__]


def wrap(change):
    """The rotary module's call, changed: change(call, x, positions, more)."""
    def fault(model, patch):
        module = rotary(model)
        old = module.forward
        module.forward = lambda x, position_ids, *a: change(old, x, position_ids, *a)
    return fault


def frequencies(change):
    def fault(model, patch):
        for name, w in list(rotary(model).named_buffers(recurse=False)):
            if "original" not in name:
                rotary(model).register_buffer(name, change(w), persistent=False)
    return fault


def based(base, width=8):
    return frequencies(lambda w: base ** (-torch.arange(0, 2 * len(w), 2) / (2 * len(w))))


def rounded(dtype):
    return frequencies(lambda w: w.to(dtype).float())


def low_angles(dtype):
    def fault(model, patch):
        module = rotary(model)

        def forward(x, position_ids, *a):
            angle = (position_ids[..., None].float() * module.inv_freq).to(dtype).float()
            return tuple(f(torch.cat([angle, angle], -1)) for f in (torch.cos, torch.sin))
        module.forward = forward
    return fault


def tables_in(dtype):
    return wrap(lambda f, x, p, *a: tuple(t.to(dtype).float() for t in f(x, p, *a)))


def pairs_neighbours(model, patch):
    def rotate_half(x):
        return torch.stack([-x[..., 1::2], x[..., ::2]], -1).flatten(-2)

    def apply(q, k, cos, sin, *a, unsqueeze_dim=1, **more):
        cos, sin = (t[..., :t.shape[-1] // 2].repeat_interleave(2, -1).unsqueeze(unsqueeze_dim) for t in (cos, sin))
        return q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
    patch.setattr(modeling(model), "apply_rotary_pos_emb", apply)


def other_sign(model, patch):
    old = modeling(model).apply_rotary_pos_emb
    patch.setattr(modeling(model), "apply_rotary_pos_emb", lambda q, k, cos, sin, *a, **m: old(q, k, cos, -sin, *a, **m))


def applied(change):
    """The rotation of q and k, changed: change(its function, q, k, cos, sin)."""
    def fault(model, patch):
        old = modeling(model).apply_rotary_pos_emb
        patch.setattr(modeling(model), "apply_rotary_pos_emb",
                      lambda q, k, cos, sin, *a, **m: change(lambda *x: old(*x, *a, **m), q, k, cos, sin))
    return fault


def window(by):
    def fault(model, patch):
        from transformers import masking_utils
        old = masking_utils.sliding_window_overlay
        patch.setattr(masking_utils, "sliding_window_overlay", lambda n: old(n + by))
    return fault


def one_table(kind):
    return wrap(lambda f, x, p, layer_type=None: f(x, p, kind))


def learned_positions(by):
    """Of the padded call alone, where a mask is given."""
    def fault(model, patch):
        old = model.prepare_inputs_for_generation

        def prepare(ids, **k):
            out = old(ids, **k)
            return {**out, "position_ids": by(out["position_ids"], k["attention_mask"])}
        model.prepare_inputs_for_generation = prepare
    return fault


def under_cache(change):
    """Of the second call alone, whose positions do not begin at 0 or 1."""
    return wrap(lambda f, x, p, *a: f(x, change(p) if int(p[0, 0]) > 1 and p.shape[-1] > 5 else p, *a))


def unseen_padding(model, patch):
    old = model.forward

    def forward(*a, attention_mask=None, **k):
        return old(*a, **k)
    forward.__signature__ = __import__("inspect").signature(old)
    model.forward = forward


def buckets(**other):
    def fault(model, patch):
        for _, m in model.named_modules():
            if hasattr(m, "_relative_position_bucket"):
                old = m._relative_position_bucket
                m._relative_position_bucket = lambda rel, old=old, **k: old(rel, **{**k, **{n: v for n, v in other.items() if n in k}})
    return fault


def mirrored_buckets(model, patch):
    for _, m in model.named_modules():
        if hasattr(m, "_relative_position_bucket"):
            old = m._relative_position_bucket
            m._relative_position_bucket = lambda rel, old=old, **k: old(-rel, **k)


def slopes(change, name="build_alibi_tensor"):
    def fault(model, patch):
        for m in model.modules():
            if hasattr(m, name):
                old = getattr(m, name)
                setattr(m, name, lambda *a, old=old, **k: change(old(*a, **k)))
    return fault


def sinusoids(change):
    def fault(model, patch):
        for name, m in model.named_modules():
            if "Sinusoidal" in type(m).__name__ or name.endswith("encoder.embed_positions"):
                m.weight.copy_(change(m.weight.clone()))
    return fault


def next_rows(w):
    return torch.from_numpy(posenc.encode("sinusoidal[preset=transformer_xl]", range(1, 1 + len(w)), w.shape[-1]))


def rows_read(change):
    """Of a learned table of positions, at each call."""
    def fault(model, patch):
        for name, m in model.named_modules():
            if name.rsplit(".", 1)[-1] in ("wpe", "embed_positions", "position_embeddings") and isinstance(m, torch.nn.Embedding):
                old = m.forward
                m.forward = lambda ids, *a, old=old, **k: old(change(ids), *a, **k)
    return fault


def across_index(model, patch):
    for m in model.modules():
        if hasattr(m, "relative_position_index"):
            h, w = m.window_size
            m.relative_position_index = m.relative_position_index.reshape(h, w, h, w).permute(1, 0, 3, 2).reshape(h * w, h * w)


def later_rows(model, patch):
    for m in model.modules():
        if hasattr(m, "embed_positions"):
            m.embed_positions.copy_(torch.roll(m.embed_positions, -1, 0))


def exchanged_index(model, patch):
    for m in model.modules():
        if hasattr(m, "relative_position_index"):
            m.relative_position_index = m.relative_position_index.reshape(16, 16).T.contiguous()


def reconfigured(model, parameters):
    """Its rotary module made anew for another config than the model's."""
    import copy
    config = copy.deepcopy(model.config)
    config.rope_parameters = parameters
    model.model.rotary_emb = type(rotary(model))(config=config)


def unscaled(base):
    return based(base)


SIMPLE = ["llama", "mistral", "qwen2", "olmo2"]
BROKEN = [
    *((n, "another base", based(1e6), "base=1000000") for n in [*SIMPLE, "qwen3", "gemma", "granite", "smollm3"]),
    *((n, "a base that nobody uses", based(123456), "base=123456") for n in ("llama", "phi3")),
    *((n, "one too far", wrap(lambda f, x, p, *a: f(x, p + 1, *a)), "too large by one") for n in SIMPLE),
    *((n, "one too near", wrap(lambda f, x, p, *a: f(x, p - 1, *a)), "too small by one") for n in SIMPLE),
    *((n, "two too far", wrap(lambda f, x, p, *a: f(x, p + 2, *a)), "off by +2") for n in ("llama", "starcoder2")),
    *((n, "the sign", wrap(lambda f, x, p, *a: f(x, -p, *a)), "sign") for n in ("llama", "stablelm")),
    *((n, "a magnitude", wrap(lambda f, x, p, *a: tuple(1.2 * t for t in f(x, p, *a))), "magnitude is 1.2") for n in ("llama", "phi")),
    ("llama, yarn", "no magnitude", lambda m, _: setattr(rotary(m), "attention_scaling", 1.0), "magnitude is 0.878"),
    *((n, "bf16 frequencies", rounded(torch.bfloat16), "frequencies are rounded to bfloat16") for n in (*SIMPLE, "llama, llama3")),
    ("llama", "f16 frequencies", rounded(torch.float16), "frequencies are rounded to float16"),
    *((n, "bf16 angles", low_angles(torch.bfloat16), "angles are rounded to bfloat16") for n in SIMPLE),
    ("llama", "f16 angles", low_angles(torch.float16), "angles are rounded to float16"),
    *((n, "a bf16 table", tables_in(torch.bfloat16), "cosines and sines are rounded to bfloat16") for n in ("llama", "arcee")),
    ("llama, linear", "no scaling", unscaled(1e4), "scaling of the config is dropped"),
    ("llama, llama3", "no scaling", unscaled(5e5), "scaling of the config is dropped"),
    ("qwen2", "scaling of nobody", frequencies(lambda w: w / 3), "linear scaling by 3"),
    ("qwen2, yarn", "another factor", lambda m, _: reconfigured(m, {**YARN, "factor": 3.0}), "factor=3"),
    ("llama, llama3", "another factor", lambda m, _: reconfigured(m, {**LLAMA3, "factor": 5.0}), "factor=5"),
    ("llama, linear", "another factor", frequencies(lambda w: w / 2), "factor=8"),
    ("stablelm", "the width of the head", frequencies(lambda w: 1e4 ** (-torch.arange(0, 2 * len(w), 2) / (4 * len(w)))), "the width of a head"),
    *((n, "neighbours", pairs_neighbours, "layout=interleaved") for n in (*SIMPLE, "qwen3", "gemma", "smollm3", "granite")),
    *((n, "the other sign", other_sign, "sign is the other one") for n in ("llama", "qwen2")),
    *((n, "not rotated", applied(lambda f, q, k, cos, sin: (q, k)), "it is not rotated") for n in ("llama", "olmo2")),
    *((n, "keys not rotated", applied(lambda f, q, k, cos, sin: (f(q, k, cos, sin)[0], k)), "it is not rotated") for n in ("llama", "qwen3")),
    ("mistral", "rotated twice", applied(lambda f, q, k, cos, sin: f(*f(q, k, cos, sin), cos, sin)), "it is rotated twice"),
    ("qwen2", "the sign of keys", applied(lambda f, q, k, cos, sin: (f(q, k, cos, sin)[0], f(q, k, cos, -sin)[1])), "sign is the other one"),
    ("llama", "cosines and sines exchanged", applied(lambda f, q, k, cos, sin: f(q, k, sin, cos)), "no other"),
    *((n, "a window too wide by one", window(1), "the window is 6 keys instead of 5") for n in ("mistral", "gemma2", "gemma3", "cohere2", "olmo3")),
    *((n, "a window too narrow by one", window(-1), "the window is 4 keys instead of 5") for n in ("mistral", "gemma2", "gemma3", "cohere2", "olmo3")),
    ("mistral", "no window", window(1000), "the window of 5 keys is dropped"),
    *(("gemma3", f"the table of {kind} for all", one_table(kind), "the table of other layers") for kind in ("full_attention", "sliding_attention")),
    *((n, "one too far with a cache", under_cache(lambda p: p + 1), "too large by one") for n in (*SIMPLE, "gemma")),
    *((n, "one too near with a cache", under_cache(lambda p: p - 1), "too small by one") for n in ("llama", "phi3")),
    *((n, "from 0 with a cache", under_cache(lambda p: p - p[:, :1]), "start again at 0 instead of 8") for n in ("llama", "qwen3")),
    ("gpt2", "one too far under padding", learned_positions(lambda p, seen: p + 1), "off by +1"),
    ("gpt2", "padding counted", learned_positions(lambda p, seen: torch.arange(p.shape[1])[None].expand_as(p)), "off by +3"),
    *((n, "rows one too far", later_rows, "too large by one") for n in ("gptj", "codegen")),
    *((n, "rows one too far", rows_read(lambda i: i + 1), "off by +1") for n in ("gpt2", "bert")),
    ("gpt2", "every second row", rows_read(lambda i: 2 * i), "multiplied by 2"),
    ("llama", "every second position under padding", learned_positions(lambda p, seen: 2 * p), "multiplied by 2"),
    *((n, "padding seen", unseen_padding, "it is seen") for n in ("llama", "qwen2")),
    *((n, "mirrored buckets", mirrored_buckets, "queries and keys are exchanged") for n in ("t5", "mt5")),
    *((n, "buckets of another distance", buckets(max_distance=64), "max_distance=64") for n in ("t5", "mt5")),
    *((n, "fewer buckets", buckets(num_buckets=16), "num_buckets=16") for n in ("t5", "mt5")),
    ("bloom", "the heads reversed", slopes(lambda a: a.flip(0)), "the heads are in reverse order"),
    ("bloom", "the slopes' sign", slopes(lambda a: -a), "sign"),
    ("bloom", "steeper slopes", slopes(lambda a: 2 * a), "all is multiplied by 2"),
    ("mpt", "the slopes' sign", slopes(lambda a: -a, "build_mpt_alibi_tensor"), "sign"),
    ("marian", "rows one too far", sinusoids(next_rows), "too large by one"),
    ("whisper", "sine and cosine exchanged", sinusoids(lambda w: torch.cat(w.chunk(2, -1)[::-1], -1)), "sines and cosines are exchanged"),
    ("swin", "queries and keys exchanged", exchanged_index, "queries and keys are exchanged"),
    ("swinv2", "queries and keys exchanged", exchanged_index, "queries and keys are exchanged"),
    ("swin", "rows and columns exchanged", across_index, "rows and columns are exchanged"),
]


def test_there_are_enough_of_either():
    assert len(MODELS) >= 40 and len(BROKEN) >= 60


@pytest.mark.parametrize("name, what, fault, cause", BROKEN, ids=[f"{n}: {w}" for n, w, *_ in BROKEN])
def test_check_names_what_is_broken(name, what, fault, cause, monkeypatch):
    model = make(name)
    with torch.no_grad():
        fault(model, monkeypatch)
    report = hf.check(model)
    assert not report.ok, report
    assert cause in report.findings[0].cause and report.findings[0].where, report
