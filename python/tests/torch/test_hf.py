# SPDX-License-Identifier: MIT
"""transformers: tiny random models through posenc's attention, and with exact rotation (test_check.py: check)."""
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import posenc.torch as pt  # noqa: E402
from posenc.torch import hf  # noqa: E402
from models import make  # noqa: E402

def rotary(model):
    return next(m for _, m in hf._rotary_modules(model))


def test_gradients_of_the_weights_are_those_of_eager():
    hf.register()
    model, ids = make("llama").double(), torch.arange(3, 23).reshape(2, 10)
    grads = []
    for kind in ("eager", "posenc"):
        model.set_attn_implementation(kind)
        model.zero_grad()
        model(input_ids=ids, labels=ids).loss.backward()
        grads.append([p.grad.clone() for p in model.parameters()])
    assert max(float((a - b).abs().max()) for a, b in zip(*grads)) < 1e-7  # eager's softmax is in float32


@pytest.mark.parametrize("name", ["gemma2, capped", "gpt_oss", "mimo_v2_flash", "llama4", "ministral3", "inkling", "inkling2"])
def test_caps_sinks_temperatures_and_biases_of_tokens_are_those_of_eager(name):
    hf.register()
    model, ids = make(name), torch.arange(3, 27).reshape(2, 12)
    for one, p in model.named_parameters():
        if one.endswith("sinks"):
            torch.nn.init.normal_(p)
    logits, grads = [], []
    for kind in ("eager", "posenc"):
        model.set_attn_implementation(kind)
        model.zero_grad()
        out = model(input_ids=ids, labels=ids)
        out.loss.backward()
        logits.append(out.logits.detach())
        grads.append({n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None})
    assert float((logits[0] - logits[1]).abs().max()) < 2e-6 * max(1, float(logits[0].abs().max()))
    assert grads[0].keys() == grads[1].keys()
    assert max(float((g - grads[1][n]).abs().max()) for n, g in grads[0].items()) < 2e-6


def test_generation_is_that_of_eager():
    hf.register()
    model, ids = make("llama"), torch.arange(3, 23).reshape(2, 10)
    out = []
    for kind in ("eager", "posenc"):
        model.set_attn_implementation(kind)
        out.append(model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=8, do_sample=False))
    assert torch.equal(*out)


def test_what_posenc_has_not_is_refused():
    hf.register()
    model = make("llama")
    model.set_attn_implementation("posenc")
    model.model.layers[0].self_attn.attention_dropout = 0.1
    with pytest.raises(NotImplementedError, match="dropout"):
        model.train()(input_ids=torch.ones(1, 4, dtype=torch.long))
    x = torch.ones(1, 4, 3, 8)
    with pytest.raises(NotImplementedError, match="no choice of keys by an index; use 'eager'"):
        hf.attention(model, x, x, x, None, indices=torch.zeros(1, 3, 2))


@pytest.mark.parametrize("name", ["llama, yarn", "gemma3", "stablelm"])
def test_patched_models_rotate_exactly_and_are_as_before_afterwards(name):
    model, ids = make(name), torch.arange(3, 23).reshape(2, 10)
    with torch.no_grad():
        before = model(input_ids=ids).logits
        with hf.patched(model):
            inside = model(input_ids=ids).logits
        after = model(input_ids=ids).logits
    assert torch.equal(before, after) and 0 < float((inside - before).abs().max()) < 1e-4


def test_rotary_is_a_drop_in_for_the_module_of_a_model():
    model = make("llama, llama3")
    x, at = torch.zeros(1), torch.arange(40)[None]
    mine, own = pt.Rotary(model.config)(x, at), rotary(model)(x, at)
    assert all(a.shape == b.shape and (a - b).abs().max() < 1e-5 for a, b in zip(mine, own))
