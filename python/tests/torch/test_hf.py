# SPDX-License-Identifier: MIT
"""transformers: tiny random models through posenc's attention, checked right and broken; exact rotation in their place."""
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402
from posenc.torch import hf  # noqa: E402

SMALL = dict(vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2)
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64, "rope_theta": 5e5}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64, "rope_theta": 1e4}
MODELS = {
    "llama": ("Llama", {}),
    "llama, linear": ("Llama", {"rope_parameters": {"rope_type": "linear", "factor": 4.0, "rope_theta": 1e4}}),
    "llama, llama3": ("Llama", {"rope_parameters": LLAMA3}),
    "llama, yarn": ("Llama", {"rope_parameters": YARN}),
    "llama, base 5e5": ("Llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}),
    "mistral": ("Mistral", {"sliding_window": 5}),
    "qwen2": ("Qwen2", {}),
    "qwen3": ("Qwen3", {"head_dim": 8}),
    "gemma": ("Gemma", {"head_dim": 8}),
    "gemma3": ("Gemma3", {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8}),
    "phi3": ("Phi3", {}),
    "olmo2": ("Olmo2", {}),
    "starcoder2": ("Starcoder2", {}),
    "stablelm": ("StableLm", {"partial_rotary_factor": 0.5}),
}


def make(name):
    kind, more = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind + ("TextConfig" if kind == "Gemma3" else "Config"))(**{**SMALL, **more})
    return getattr(transformers, kind + "ForCausalLM")(config).eval()


@pytest.mark.parametrize("name", MODELS)
def test_check_finds_nothing_on_a_right_model(name):
    report = hf.check(make(name))
    assert report.ok, report
    assert len(report.checked) >= 3 and not any("not tried" in n for n in report.notes), report


def rotary(model):
    return next(m for _, m in hf._rotary_modules(model))


def scale_frequencies(model, by):
    for n, b in rotary(model).named_buffers(recurse=False):
        b.mul_(by)


def wrap(model, change):
    module = rotary(model)
    old = module.forward
    module.forward = lambda x, position_ids, *a: change(old, x, position_ids, *a)


def other_base(model):
    module = rotary(model)
    module.inv_freq.copy_(1e6 ** (-torch.arange(0, 8, 2) / 8))


def interleaved(cos):
    return cos[..., :cos.shape[-1] // 2].repeat_interleave(2, -1)


BROKEN = {
    "wrong base": (lambda m: other_base(m), "base=1000000"),
    "positions one too far": (lambda m: wrap(m, lambda f, x, p, *a: f(x, p + 1, *a)), "off by one more"),
    "positions one too near": (lambda m: wrap(m, lambda f, x, p, *a: f(x, p - 1, *a)), "off by one less"),
    "low frequencies": (lambda m: rotary(m).to(torch.bfloat16), "bfloat16"),
    "magnitude": (lambda m: wrap(m, lambda f, x, p, *a: tuple(1.2 * t for t in f(x, p, *a))), "magnitude is 1.2"),
    "sign of the sine": (lambda m: wrap(m, lambda f, x, p, *a: f(x, -p, *a)), "sign"),
}


@pytest.mark.parametrize("fault", BROKEN)
@pytest.mark.parametrize("name", ["llama", "mistral", "qwen2", "olmo2"])
def test_check_names_what_is_broken(name, fault):
    model = make(name)
    change, cause = BROKEN[fault]
    with torch.no_grad():
        change(model)
    report = hf.check(model)
    assert not report.ok
    assert cause in report.findings[0].cause and "rotary_emb" in report.findings[0].where, report


@pytest.mark.parametrize("name", ["llama, linear", "llama, llama3"])
def test_check_names_a_dropped_schedule(name):
    model, plain = make(name), make("llama" if "linear" in name else "llama, base 5e5")
    rotary(model).inv_freq.copy_(rotary(plain).inv_freq)
    report = hf.check(model)
    assert not report.ok and "dropped" in report.findings[0].cause, report


def test_check_sees_positions_that_count_the_padding():
    model = make("llama")
    prepare = model.prepare_inputs_for_generation
    model.prepare_inputs_for_generation = lambda ids, **k: {**prepare(ids, **k), "position_ids": 2 * torch.arange(ids.shape[1])[None]}
    report = hf.check(model)
    assert not report.ok and "padding" in report.findings[0].where, report


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
