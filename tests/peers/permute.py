#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""permute.py POSENC: permuted weights in transformers, with the rotation of the other layout

Small models of transformers' own classes, drawn at random, are saved, permuted by `posenc permute`, and loaded again into
the same class, whose rotation is replaced by that of the other layout, written here. The logits must be those of the
model as it was; with the rotation that the class has they must not. Permuted back each file must have
its bytes again. Needs torch, transformers and safetensors.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

TOLERANCE = 1e-5  # norms and softmax of the classes work in float32, and sum the same numbers in another order
SIZES = dict(hidden_size=64, num_attention_heads=4, num_hidden_layers=3, intermediate_size=96, vocab_size=97)


def halves(x):
    return x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2 :]


def turn_pairs(x, cos, sin):
    """Neighbours, by tables of one number per pair."""
    even, odd = x[..., 0::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, odd * cos + even * sin), -1).flatten(-2)


def turn_halves(x, cos, sin):
    a, b = halves(x)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


def pairs_for_halves(q, k, cos, sin, *rest, unsqueeze_dim=1, **more):
    """In the place of apply_rotary_pos_emb of a class that pairs halves."""
    cos, sin = (halves(t)[0].unsqueeze(unsqueeze_dim) for t in (cos, sin))
    d = 2 * cos.shape[-1]
    return tuple(torch.cat((turn_pairs(x[..., :d], cos, sin), x[..., d:]), -1) for x in (q, k))


def halves_for_pairs(x, sin, cos):
    """The same for GPT-J's, which gets one tensor [B,L,H,d]."""
    return turn_halves(x, cos[:, :, None, :], sin[:, :, None, :])


def config(name, **more):
    return getattr(transformers, name + "Config")(**{**SIZES, **more})


def cases():
    old = dict(n_embd=64, n_head=4, n_layer=3, vocab_size=97, rotary_dim=8)
    falcon = dict(alibi=False, bias=True)
    mla = dict(q_lora_rank=24, kv_lora_rank=32, qk_rope_head_dim=8, qk_nope_head_dim=16, v_head_dim=16, num_key_value_heads=4,
               first_k_dense_replace=3, n_routed_experts=4, n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=32)
    yield "llama", config("Llama", num_key_value_heads=2, attention_bias=True), "ForCausalLM"
    yield "qwen3", config("Qwen3", num_key_value_heads=1, head_dim=32), "ForCausalLM"
    yield "olmo2", config("Olmo2", num_key_value_heads=2), "ForCausalLM"
    yield "gpt_neox", config("GPTNeoX", rotary_pct=0.25), "ForCausalLM"
    yield "gptj", transformers.GPTJConfig(**old), "ForCausalLM"
    yield "codegen", transformers.CodeGenConfig(**old), "ForCausalLM"
    yield "phi", config("Phi", partial_rotary_factor=0.5, qk_layernorm=True, num_key_value_heads=2), "ForCausalLM"
    yield "phi3", config("Phi3", num_key_value_heads=2, pad_token_id=0), "ForCausalLM"
    yield "persimmon", config("Persimmon", partial_rotary_factor=0.5), "ForCausalLM"
    yield "modernbert", config("ModernBert", pad_token_id=0, global_attn_every_n_layers=2), "ForMaskedLM"
    yield "falcon", config("Falcon", new_decoder_architecture=True, num_kv_heads=2, **falcon), "ForCausalLM"
    yield "falcon", config("Falcon", new_decoder_architecture=False, multi_query=True, **falcon), "ForCausalLM"
    yield "falcon", config("Falcon", new_decoder_architecture=False, multi_query=False, **falcon), "ForCausalLM"
    yield "deepseek_v3", config("DeepseekV3", **mla), "ForCausalLM"
    yield "deepseek_v3", config("DeepseekV3", **{**mla, "q_lora_rank": None}), "ForCausalLM"


def build(cfg, head):
    cfg._attn_implementation = "eager"
    name = type(cfg).__name__.removesuffix("Config") + head
    return getattr(transformers, name)(cfg).double().eval()


def draw(model):
    """Every parameter, norms and biases too, which begin as ones and zeros."""
    generator = torch.Generator().manual_seed(26)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype) * 0.3 + (1 if p.ndim == 1 else 0))


def module_of(model):
    return sys.modules[type(model).__module__]


def other_rotation(name, cfg, module):
    """Replaces the rotation of the class; gives back what it was."""
    if name == "deepseek_v3":
        cfg.rope_interleave = False
        return lambda: setattr(cfg, "rope_interleave", True)
    saved = module.apply_rotary_pos_emb
    module.apply_rotary_pos_emb = halves_for_pairs if name in ("gptj", "codegen") else pairs_for_halves
    return lambda: setattr(module, "apply_rotary_pos_emb", saved)


def logits(cfg, head, weights):
    model = build(cfg, head)
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert not unexpected, unexpected
    assert not [m for m in missing if "lm_head" not in m and "decoder.weight" not in m and "embed_out" not in m], missing
    model.tie_weights()
    ids = torch.arange(2 * 23).reshape(2, 23) * 7 % 97
    with torch.no_grad():
        return model(input_ids=ids).logits


def rms(x):
    return float(x.pow(2).mean().sqrt())


def posenc(tool, *words):
    done = subprocess.run([tool, "permute", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def run(tool, name, cfg, head, folder):
    model = build(cfg, head)
    draw(model)
    before = folder / "model.safetensors"
    weights = {k: v.contiguous().clone() for k, v in model.state_dict().items()}
    save_file(weights, before, metadata={"format": "pt"})
    cfg.save_pretrained(folder)
    at_first, to = ("interleaved", "half") if name in ("gptj", "codegen", "deepseek_v3") else ("half", "interleaved")
    told = json.loads(posenc(tool, before, "-o", folder / "there", "--to", to, "--config", folder / "config.json", "--json"))
    posenc(tool, folder / "there", "-o", folder / "back", "--to", at_first, "--config", folder / "config.json")
    assert (folder / "back").read_bytes() == before.read_bytes(), f"{name}: there and back differs"
    weights_there = load_file(folder / "there")
    changed = sorted(k for k in weights if not torch.equal(weights[k], weights_there[k]))
    listed = sorted(c["tensor"] for c in told["changes"])
    assert changed == listed, (name, set(changed) ^ set(listed))
    plain = logits(cfg, head, load_file(before))
    wrong = logits(cfg, head, weights_there)
    restore = other_rotation(name, cfg, module_of(model))
    right = logits(cfg, head, weights_there)
    restore()
    scale = rms(plain)
    error, unpermuted = rms(right - plain) / scale, rms(wrong - plain) / scale
    print(f"{name}: {len(listed)} tensors, rms difference {error:.1e} with the other rotation, {unpermuted:.1e} without")
    assert error < TOLERANCE and unpermuted > 1e-3, name


def main():
    for number, (name, cfg, head) in enumerate(cases()):
        with tempfile.TemporaryDirectory() as folder:
            run(sys.argv[1], name, cfg, head, Path(folder))


if __name__ == "__main__":
    main()
