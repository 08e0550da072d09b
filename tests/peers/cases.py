#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""cases.py OUT: reference cases of positions on grids, made by the peers' own modules, as tests/golden/grids holds them

Needs torch, transformers and timm. Every case is one run of the peer's own function in float64, forward and backward;
the format is that of docs/reference-cases.md. Read by `posenc verify OUT`.

    decomposed  SAM's get_decomposed_rel_pos (transformers), MViTv2's cal_rel_pos_type (timm): pooled keys, a class token
    swin        BEiT's table with three rows for the class token (transformers, timm), resized to other windows by both
    timestep, sinusoidal    angles of float32 (diffusers, Whisper's and XGLM's)
    sinusoidal_nd   CogVideoX-2B's table (diffusers)
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


def beit_resized(old, rows, columns):
    from transformers import BeitConfig
    from transformers.models.beit.modeling_beit import BeitRelativePositionBias

    peer = BeitRelativePositionBias(BeitConfig(num_attention_heads=H, image_size=16 * old, patch_size=16)).double()
    table = peer.relative_position_bias_table
    torch.nn.init.normal_(table)

    def score(q, k):
        return D**-0.5 * q @ k.transpose(-1, -2) + peer((rows, columns))

    return case(f"beit_{old}_to_{rows}x{columns}", "swin",
                {"window": [rows, columns], "class_token": True, "table_window": [old, old]},
                "transformers, BeitRelativePositionBias on another window", (rows * columns + 1,) * 2, {"table": table}, score)


def timm_resized(old, new, class_token):
    """timm's own function works in float32; here it is made to work in double."""
    from timm.layers.pos_embed_rel import RelPosBias, resize_rel_pos_bias_table

    peer = RelPosBias(new, H, prefix_tokens=int(class_token)).double()
    table = drawn((2 * old[0] - 1) * (2 * old[1] - 1) + 3 * class_token, H)
    kept, torch.Tensor.float = torch.Tensor.float, torch.Tensor.double
    torch.set_default_dtype(torch.float64)
    resized = resize_rel_pos_bias_table(table, new, peer.relative_position_bias_table.shape, old)
    torch.set_default_dtype(torch.float32)
    torch.Tensor.float = kept
    size = new[0] * new[1] + class_token

    def score(q, k):
        index = peer.relative_position_index.view(-1)
        return D**-0.5 * q @ k.transpose(-1, -2) + resized[index].view(size, size, H).permute(2, 0, 1)

    return case(f"timm_{old[0]}x{old[1]}_to_{new[0]}x{new[1]}", "swin",
                {"window": list(new), "class_token": bool(class_token), "table_window": list(old), "resize": "geometric"},
                "timm, resize_rel_pos_bias_table", (size, size), {"table": table}, score)


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


def table(name, encoding, settings, source, positions, rows):
    """A table without parameters."""
    arrays = {"in_pos": numpy.asarray(positions, float), "out_y": rows.detach().double().numpy()}
    entry = {"file": f"{encoding}__{name}.npz", "encoding": encoding, "settings": settings, "case": name, "source": source,
             "arrays": {key: {"shape": list(a.shape), "dtype": str(a.dtype)} for key, a in arrays.items()}}
    return entry, arrays


class double_waves:
    """The peer's own angles, and sines and cosines of them in double, so that only angles are compared."""

    def __enter__(self):
        self.kept = torch.sin, torch.cos, torch.Tensor.sin, torch.Tensor.cos
        torch.sin, torch.cos = (lambda x, f=f: f(x.double()) for f in self.kept[:2])
        torch.Tensor.sin, torch.Tensor.cos = torch.sin, torch.cos

    def __exit__(self, *why):
        torch.sin, torch.cos, torch.Tensor.sin, torch.Tensor.cos = self.kept


def timestep(name, dim, times, **settings):
    from diffusers.models.embeddings import get_timestep_embedding

    with double_waves():
        rows = get_timestep_embedding(torch.tensor(times), dim, **settings)
    return table(f"float32_{name}", "timestep", dict(settings, dim=dim, angles="float32"),
                 "diffusers, get_timestep_embedding", numpy.float32(times).astype(float), rows)


def cogvideox(dim, frames, height, width, spatial, temporal):
    """CogVideoX-2B: three eighths of the channels are of columns, three of rows, a quarter of time."""
    from diffusers.models.embeddings import get_3d_sincos_pos_embed

    rows = get_3d_sincos_pos_embed(dim, (width, height), frames, spatial, temporal).reshape(-1, dim)
    at = numpy.stack(numpy.meshgrid(range(frames), range(height), range(width), indexing="ij"), -1).reshape(-1, 3)
    return table(f"cogvideox_{frames}x{height}x{width}", "sinusoidal_nd",
                 {"preset": "cogvideox", "dim": dim, "shape": [frames, height, width], "spatial_scale": spatial,
                  "temporal_scale": temporal}, "diffusers, get_3d_sincos_pos_embed", at, rows)


def sinusoids(preset, dim, length):
    """xglm has fairseq's table, Whisper's encoder t2t's, Transformer-XL its own."""
    from transformers.models.whisper.modeling_whisper import sinusoids as whisper
    from transformers.models.xglm.modeling_xglm import XGLMSinusoidalPositionalEmbedding as xglm

    torch.set_default_dtype(torch.float32 if preset == "t2t" else torch.float64)  # what xglm's rows become in the end
    with double_waves():
        rows = whisper(length, dim) if preset == "t2t" else xglm.get_embedding(length, dim, 1)
    torch.set_default_dtype(torch.float32)
    return table(f"float32_{preset}", "sinusoidal", {"preset": preset, "dim": dim, "angles": "float32"},
                 "transformers, " + ("modeling_whisper.py" if preset == "t2t" else "modeling_xglm.py"), numpy.arange(length), rows)


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
            beit(3, 4), beit(4, 4), beit_timm(3, 3), parakeet(7), timestep("ddpm", 16, [0, 1, 77, 500, 999]), timestep("sd", 32, [3, 250, 981.5], flip_sin_to_cos=True, downscale_freq_shift=0),
            timestep("scaled", 20, [0.25, 0.5, 0.999], scale=1000, downscale_freq_shift=0.5),
            sinusoids("t2t", 16, 300), sinusoids("fairseq", 20, 300), cogvideox(32, 2, 3, 4, 1.875, 1.0),
            cogvideox(48, 3, 2, 3, 1.0, 0.7), beit_resized(3, 4, 6), beit_resized(4, 3, 2),
            timm_resized((4, 4), (6, 5), 1), timm_resized((3, 5), (2, 7), 0), layoutlm(2, 33), layoutlm(3, 40), udop(37)]
    for entry, arrays in made:
        numpy.savez(os.path.join(out, entry["file"]), **arrays)
    with open(os.path.join(out, "manifest.json"), "w") as to:
        json.dump({"float": "float64", "entries": [entry for entry, _ in made]}, to, indent=1, sort_keys=True)
        to.write("\n")


if __name__ == "__main__":
    main()
