#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cases.py OUT: reference cases of positions on grids, made by the peers' own modules, as tests/golden/peers_grids holds them

Needs torch, transformers and timm. Every case is one run of the peer's own function in float64, forward and backward;
the format is that of docs/reference-cases.md. Read by `posenc verify OUT`.

    decomposed  SAM's get_decomposed_rel_pos (transformers), MViTv2's cal_rel_pos_type (timm): pooled keys, a class token
    swin        BEiT's table with three rows for the class token (transformers, timm)
    t5_nd       LayoutLMv2's, LayoutLMv3's and UDOP's sums of buckets (transformers), on boxes of a page
    transformer_xl  Parakeet's Conformer, whose sines and cosines stand in turn (transformers)
"""
import json
import os
import sys

import numpy
import torch

B, H, D = 2, 3, 8


def drawn(*shape, scale=1.0):
    return (torch.randn(*shape, dtype=torch.float64) * scale).requires_grad_()


def case(name, encoding, settings, source, tokens, params, score, places=None):
    """score(q, k) -> logits before the mask, by the peer. A pair (entry, arrays)."""
    lq, lk = tokens
    q, k, v = drawn(B, H, lq, D), drawn(B, H, lk, D), drawn(B, H, lk, D)
    logits = score(q, k)
    out = logits.softmax(-1) @ v
    do = torch.randn_like(out)
    out.backward(do)
    arrays = {"in_q": q, "in_k": k, "in_v": v, "out_score": logits, "out_lse": logits.logsumexp(-1), "out_o": out,
              "gin_do": do, "g_q": q.grad, "g_k": k.grad, "g_v": v.grad}
    if places is not None:
        arrays["in_q_pos"] = arrays["in_k_pos"] = places
    for parameter, value in params.items():
        arrays["par_" + parameter], arrays["g_" + parameter] = value, value.grad
    arrays = {key: value.detach().numpy() for key, value in arrays.items()}
    entry = {"file": f"{encoding}__{name}.npz", "encoding": encoding, "settings": settings, "case": name, "source": source,
             "arrays": {key: {"shape": list(a.shape), "dtype": str(a.dtype)} for key, a in arrays.items()}}
    return entry, arrays


def sam(rows, columns):
    from transformers.models.sam.configuration_sam import SamVisionConfig
    from transformers.models.sam.modeling_sam import SamVisionAttention

    config = SamVisionConfig(hidden_size=H * D, num_attention_heads=H, image_size=16 * 4, patch_size=16, use_rel_pos=True)
    peer = SamVisionAttention(config, window_size=0).double()
    height, width = drawn(2 * rows - 1, D), drawn(2 * columns - 1, D)

    def score(q, k):
        flat = q.reshape(B * H, rows * columns, D)
        added = peer.get_decomposed_rel_pos(flat, height, width, (rows, columns), (rows, columns))
        return D**-0.5 * q @ k.transpose(-1, -2) + added.reshape(B, H, rows * columns, rows * columns)

    return case(f"sam_{rows}x{columns}", "decomposed", {"grid": [rows, columns]},
                "Kirillov et al. 2023; transformers, SamVisionAttention.get_decomposed_rel_pos", (rows * columns,) * 2,
                {"Rh": height, "Rw": width}, score)


def mvit(q_size, k_size, prefix):
    from timm.models.mvitv2 import cal_rel_pos_type

    height = drawn(2 * max(q_size[0], k_size[0]) - 1, D)
    width = drawn(2 * max(q_size[1], k_size[1]) - 1, D)
    tokens = prefix + q_size[0] * q_size[1], prefix + k_size[0] * k_size[1]

    def score(q, k):
        logits = D**-0.5 * q @ k.transpose(-1, -2)
        return cal_rel_pos_type(logits.clone(), q, bool(prefix), list(q_size), list(k_size), height, width)

    return case(f"mvit_{q_size[0]}x{q_size[1]}_{k_size[0]}x{k_size[1]}_{prefix}", "decomposed",
                {"grid": list(q_size), "key_grid": list(k_size), "prefix": prefix},
                "Li et al. 2022; timm, cal_rel_pos_type", tokens, {"Rh": height, "Rw": width}, score)


def beit(rows, columns):
    from transformers import BeitConfig
    from transformers.models.beit.modeling_beit import BeitRelativePositionBias

    peer = BeitRelativePositionBias(BeitConfig(num_attention_heads=H, image_size=(16 * rows, 16 * columns), patch_size=16))
    index = peer.generate_relative_position_index((rows, columns))
    table = drawn((2 * rows - 1) * (2 * columns - 1) + 3, H)

    def score(q, k):
        return D**-0.5 * q @ k.transpose(-1, -2) + table[index].permute(2, 0, 1)

    return case(f"beit_{rows}x{columns}", "swin", {"window": [rows, columns], "class_token": True},
                "Bao et al. 2021; transformers, BeitRelativePositionBias", (rows * columns + 1,) * 2, {"table": table}, score)


def beit_timm(rows, columns):
    from timm.layers.pos_embed_rel import RelPosBias

    peer = RelPosBias((rows, columns), H, prefix_tokens=1).double()
    table = peer.relative_position_bias_table

    def score(q, k):
        return D**-0.5 * q @ k.transpose(-1, -2) + peer.get_bias()

    return case(f"beit_timm_{rows}x{columns}", "swin", {"window": [rows, columns], "class_token": True},
                "timm, RelPosBias with a class token", (rows * columns + 1,) * 2, {"table": table}, score)


def boxes(length, share):
    """Left, upper, right, lower edge of boxes on B pages, in thousandths; some stand in one column, or on one line."""
    at = torch.randint(0, 900, (B, length, 2))
    at[:, ::3, 0], at[:, 1::4, 1] = 120, 333
    both = torch.cat([at, at + torch.randint(1, 100, (B, length, 2))], dim=-1)
    return both.double() / 1000 if share else both


def layoutlm(version, length):
    """The buckets are the peer's; its newest code takes no gradient through them, so that the look-up is done here."""
    from transformers import LayoutLMv2Config, LayoutLMv3Config
    from transformers.models.layoutlmv2.modeling_layoutlmv2 import relative_position_bucket
    from transformers.models.layoutlmv3.modeling_layoutlmv3 import LayoutLMv3Encoder

    config = (LayoutLMv2Config if version == 2 else LayoutLMv3Config)(num_hidden_layers=0)
    bucket = relative_position_bucket if version == 2 else LayoutLMv3Encoder(config).relative_position_bucket
    page = boxes(length, False)
    places = torch.stack([torch.arange(length).expand(B, -1), page[..., 0], page[..., 3]], dim=-1)
    buckets = [config.rel_pos_bins, config.rel_2d_pos_bins, config.rel_2d_pos_bins]
    far = [config.max_rel_pos, config.max_rel_2d_pos, config.max_rel_2d_pos]
    tables = [drawn(n, H) for n in buckets]
    by = D**-0.5 if version == 3 else 1.0

    def score(q, k):
        step = places[:, None] - places[:, :, None]
        added = sum(t[bucket(step[..., a], num_buckets=buckets[a], max_distance=far[a])] for a, t in enumerate(tables))
        return D**-0.5 * q @ k.transpose(-1, -2) + by * added.permute(0, 3, 1, 2)

    return case(f"layoutlmv{version}_{length}", "t5_nd",
                {"num_buckets": buckets, "max_distance": far, "bias_scale": by},
                f"transformers, LayoutLMv{version}'s relative_position_bucket", (length, length),
                {f"table{a + 1}": t for a, t in enumerate(tables)}, score, places)


def udop(length):
    from transformers import UdopConfig
    from transformers.models.udop.modeling_udop import RelativePositionBiasAggregated, create_relative_bias

    config = UdopConfig(num_heads=H, d_model=H * D, d_kv=D)
    peer = RelativePositionBiasAggregated(create_relative_bias(config)).double()
    page = boxes(length, True)
    places = torch.stack([torch.arange(length).expand(B, -1), page[..., [0, 2]].mean(-1), page[..., [1, 3]].mean(-1)], dim=-1)
    for bias in peer.biases:
        torch.nn.init.normal_(bias.relative_attention_bias.weight)

    def score(q, k):
        return q @ k.transpose(-1, -2) + peer(attention_mask=torch.ones(B, length), bbox=page)

    return case(f"udop_{length}", "t5_nd",
                {"num_buckets": [b.relative_attention_num_buckets for b in peer.biases], "scale": 1.0,
                 "max_distance": [b.max_distance for b in peer.biases], "factor": [b.scaling_factor for b in peer.biases]},
                "transformers, UDOP's RelativePositionBiasAggregated", (length, length),
                {f"table{a + 1}": b.relative_attention_bias.weight for a, b in enumerate(peer.biases)}, score, places)


def parakeet(length):
    from transformers import ParakeetEncoderConfig
    from transformers.models.parakeet import modeling_parakeet as peer

    config = ParakeetEncoderConfig(hidden_size=H * D, num_attention_heads=H, num_key_value_heads=H, num_hidden_layers=1)
    layer = peer.ParakeetEncoderAttention(config, 0).double()
    angles = torch.arange(length - 1, -length, -1, dtype=torch.float64)[:, None] * 1e4 ** (
        -torch.arange(0, H * D, 2, dtype=torch.float64) / (H * D))  # ParakeetEncoderRelPositionalEncoding, not rounded to float32
    places = torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(2 * length - 1, H * D)
    u, w, wr = drawn(H, D), drawn(H, D), drawn(H * D, H, D)
    in_turn = torch.arange(H * D) // 2 + torch.arange(H * D) % 2 * (H * D // 2)  # where the peer's rows are in Wr

    def score(q, k):
        rows = places @ wr[in_turn].reshape(H * D, H * D)
        relative = (q + w[:, None]) @ rows.reshape(-1, H, D).permute(1, 2, 0)
        return D**-0.5 * ((q + u[:, None]) @ k.transpose(-1, -2) + layer._rel_shift(relative)[..., :length])

    return case(f"parakeet_{length}", "transformer_xl", {"d_model": H * D}, "transformers, ParakeetEncoderAttention",
                (length, length), {"u_bias": u, "v_bias": w, "Wr": wr}, score)


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    torch.manual_seed(0)
    made = [sam(4, 4), sam(3, 5), mvit((4, 6), (2, 3), 1), mvit((2, 2), (4, 4), 0), mvit((3, 3), (3, 3), 1), mvit((7, 7), (4, 4), 1),
            beit(3, 4), beit(4, 4), beit_timm(3, 3), parakeet(7), layoutlm(2, 33), layoutlm(3, 40), udop(37)]
    for entry, arrays in made:
        numpy.savez(os.path.join(out, entry["file"]), **arrays)
    with open(os.path.join(out, "manifest.json"), "w") as to:
        json.dump({"float": "float64", "entries": [entry for entry, _ in made]}, to, indent=1, sort_keys=True)
        to.write("\n")


if __name__ == "__main__":
    main()
