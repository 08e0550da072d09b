#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""extend.py POSENC: extended tables against the code of the programs whose rules they follow

A BERT, a RoBERTa and a GPT-2 drawn at random are extended from 512 positions to 2048 by every rule, loaded with the
configuration that was written beside them, and asked about 2000 tokens. A ViT of 14x14 patches is resized to 17x9 and 24x24:
by timm's resample_abs_pos_embed, by DeiT's call of torch's interpolate, by DINO's with its scale factor, and by
scipy.ndimage.zoom as the original ViT does it; transformers loads what it can compute with. Needs torch, transformers, timm,
scipy and safetensors.
"""
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import scipy.ndimage
import timm.layers
import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file

RULES = ("linear", "linear_align_corners", "bilinear_align_corners", "bicubic", "bicubic_antialias", "bicubic_scale_factor",
         "repeat", "hierarchical")
SIZES = dict(hidden_size=48, num_attention_heads=4, num_hidden_layers=2, intermediate_size=64, vocab_size=97)


def posenc(tool, *words):
    done = subprocess.run([tool, "extend", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    assert not done.stderr, done.stderr


def draw(model):
    generator = torch.Generator().manual_seed(26)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator, dtype=p.dtype) * 0.3)


# ---------------------------------------------------------------- lines -------------------------


def hierarchical(table, n):
    """Su's formula, in float64."""
    p, a = table.double(), 0.4
    u = (p - a * p[:1]) / (1 - a)
    at = torch.arange(n)
    return a * u[at // len(p)] + (1 - a) * u[at % len(p)]


def line(table, n, rule):
    """What the table of n rows must be; None: the rule is one of a grid's peers."""
    if rule == "repeat":
        return table.repeat(-(-n // len(table)), 1)[:n]
    if rule == "hierarchical":
        return hierarchical(table, n)
    if rule in ("linear", "linear_align_corners"):
        return F.interpolate(table.double().T[None], size=n, mode="linear", align_corners=rule.endswith("corners"))[0].T
    return None


def text_models():
    roberta = dict(max_position_embeddings=514, pad_token_id=1)
    yield "BertModel", transformers.BertConfig(**SIZES, max_position_embeddings=512), "embeddings.position_embeddings.weight", 0, 2048
    yield "RobertaModel", transformers.RobertaConfig(**SIZES, **roberta), "embeddings.position_embeddings.weight", 2, 2050
    gpt2 = transformers.GPT2Config(n_embd=48, n_head=4, n_layer=2, vocab_size=97, n_positions=512)
    yield "GPT2Model", gpt2, "wpe.weight", 0, 2048


def extend_text(tool, folder):
    for number, (name, cfg, table, prefix, positions) in enumerate(text_models()):
        model = getattr(transformers, name)(cfg)
        draw(model)
        before = folder / f"text{number}"
        model.save_pretrained(before)
        old = load_file(before / "model.safetensors")
        for rule in RULES:
            after = folder / f"text{number}_{rule}"
            after.mkdir()
            posenc(tool, before / "model.safetensors", "-o", after / "model.safetensors", "--length", 2048, "--how", rule)
            new = load_file(after / "model.safetensors")
            told = json.loads((after / "config.json").read_text())
            assert told.get("max_position_embeddings", told.get("n_positions")) == positions, told
            assert all(torch.equal(old[k], new[k]) for k in old if k != table)
            assert torch.equal(old[table][:prefix], new[table][:prefix]) and new[table].shape == (prefix + 2048, 48)
            must = line(old[table][prefix:], 2048, rule)
            assert must is None or torch.allclose(new[table][prefix:], must.float(), rtol=0, atol=3e-7), (name, rule)
            loaded, info = getattr(transformers, name).from_pretrained(after, output_loading_info=True)
            assert not info["missing_keys"] and not info["mismatched_keys"], info
            with torch.no_grad():
                out = loaded.eval()(input_ids=torch.arange(2000)[None] % 90 + 5).last_hidden_state
            assert torch.isfinite(out).all() and out.shape == (1, 2000, 48)
        print(f"{name}: 512 -> 2048 by {len(RULES)} rules, 2000 tokens computed")


# ---------------------------------------------------------------- grids -------------------------


def as_image(table, h, w):
    return table.reshape(1, h, w, -1).permute(0, 3, 1, 2)


def as_rows(image):
    return image.permute(0, 2, 3, 1).reshape(-1, image.shape[1])


def by_timm(cell, h, w):
    return timm.layers.resample_abs_pos_embed(cell[None], [h, w], old_size=[14, 14], num_prefix_tokens=0)[0]


def by_deit(cell, h, w):
    return as_rows(F.interpolate(as_image(cell, 14, 14), size=(h, w), mode="bicubic", align_corners=False))


def by_dino(cell, h, w):
    scale = ((h + 0.1) / 14, (w + 0.1) / 14)
    return as_rows(F.interpolate(as_image(cell, 14, 14), scale_factor=scale, mode="bicubic"))


def by_vit(cell, h, w):
    grid = cell.reshape(14, 14, -1).numpy()
    return torch.from_numpy(scipy.ndimage.zoom(grid, (h / 14, w / 14, 1), order=1).reshape(h * w, -1))


def by_torch(cell, h, w):
    return as_rows(F.interpolate(as_image(cell, 14, 14), size=(h, w), mode="bilinear", align_corners=False))


PEERS = {"bicubic_antialias": by_timm, "bicubic": by_deit, "bicubic_scale_factor": by_dino, "bilinear_align_corners": by_vit,
         "linear": by_torch}


def extend_vit(tool, folder):
    cfg = transformers.ViTConfig(**{**SIZES, "image_size": 224, "patch_size": 16})
    model = transformers.ViTModel(cfg, add_pooling_layer=False)
    draw(model)
    model.save_pretrained(folder / "vit")
    before = folder / "vit" / "model.safetensors"
    old = load_file(before)
    name = "embeddings.position_embeddings"
    for rule, peer in PEERS.items():
        for h, w in ((17, 9), (24, 24)):
            after = folder / f"vit_{rule}_{h}"
            after.mkdir()
            posenc(tool, before, "-o", after / "model.safetensors", "--grid", f"{h}x{w}", "--how", rule)
            new = load_file(after / "model.safetensors")[name]
            must = peer(old[name][0, 1:], h, w)
            error = float((new[0, 1:] - must).abs().max())
            assert torch.equal(new[0, 0], old[name][0, 0]), "the class token's row"
            assert error < 2e-6, (rule, h, w, error)
            size = json.loads((after / "config.json").read_text())["image_size"]
            assert size == (384 if h == w else [16 * h, 16 * w]), size
            loaded = transformers.ViTModel.from_pretrained(after, add_pooling_layer=False).eval()
            with torch.no_grad():
                out = loaded(torch.randn(1, 3, 16 * h, 16 * w)).last_hidden_state
            assert out.shape == (1, 1 + h * w, 48) and torch.isfinite(out).all()
            print(f"ViT 14x14 -> {h}x{w}, {rule}: largest difference from {peer.__name__[3:]} {error:.1e}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        extend_text(sys.argv[1], Path(folder))
        extend_vit(sys.argv[1], Path(folder))


if __name__ == "__main__":
    main()
