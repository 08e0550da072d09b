#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attention.py [BUILD] [LENGTH ...] [ENCODING ...]: wall times of attention and rotation from torch, beside torch's and transformers' own.

BUILD (build/default) holds python/posenc; build it with POSENC_OPENMP=OFF, as wheels are: beside torch's OpenMP a second one
waits by spinning. Milliseconds: median (first quartile, third). All are timed in turns in one run, so
that other programs hit all alike. Eager is transformers' own function, which multiplies, masks, and adds the bias as a matrix;
SDPA has the bias as its mask. None needs gradients. 8 heads of 64, one sequence, causal.
"""
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("nope", "alibi", "t5")
LENGTHS = [int(a) for a in sys.argv[1:] if a.isdigit()] or [512, 1024, 2048, 4096, 8192]
CHOSEN = [a for a in sys.argv[1:] if a in NAMES] or NAMES
BUILD = Path(next((a for a in sys.argv[1:] if not a.isdigit() and a not in NAMES), ROOT / "build/default")).resolve()
sys.path.insert(0, str(BUILD / "python"))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from transformers import LlamaConfig  # noqa: E402
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, eager_attention_forward  # noqa: E402

import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402

H, D, SECONDS = 8, 64, 2.5


class Module(torch.nn.Module):
    num_key_value_groups = 1


def timed(ways, seconds=SECONDS, is_long=False):
    """name -> (median, first quartile, third) in ms; at least 3 rounds after one that does not count (is_long: 2, and none)."""
    times = {name: [] for name in ways}
    for f in () if is_long else ways.values():
        f()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(times.values()))) < 3 - is_long:
        for name, f in ways.items():
            start = time.perf_counter()
            f()
            times[name].append(1e3 * (time.perf_counter() - start))
    return {n: (statistics.median(t), *statistics.quantiles(t, n=4)[::2]) for n, t in times.items()}


def show(label, times):
    print(f"{label:24}" + "".join(f"  {n} {m:.4g} ({a:.4g}, {b:.4g})" for n, (m, a, b) in times.items()), flush=True)


@torch.no_grad()
def main():
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}; ms, median (quartiles)")
    posenc.set_threads(torch.get_num_threads())
    module = Module().eval()
    for L in LENGTHS:
        q, k, v = (torch.randn(1, H, L, D) for _ in range(3))
        hidden = torch.full((L, L), float("-inf")).triu(1)
        for name in CHOSEN:
            start = {} if name == "nope" else {n: torch.from_numpy(a) for n, a in posenc.Encoding(name).init(H=H, D=D).items()}
            scale = 1.0 if name == "t5" else D ** -0.5
            mask = hidden[None, None] if name == "nope" else (pt.bias(name, H=H, Lq=L, Lk=L, params=start) + hidden)[None]
            ways = {"posenc": lambda: pt.attend(q, k, v, name, causal=True, params=start or None),
                    "SDPA": (lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)) if name == "nope" else
                            (lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)),
                    "eager": lambda: eager_attention_forward(module, q, k, v, mask, scale)}
            if L <= 1024:
                outs = [ways["posenc"](), ways["SDPA"](), ways["eager"]()[0].transpose(1, 2)]
                assert all(torch.allclose(outs[0], o, atol=2e-4) for o in outs), name
            show(f"L {L} {name}", timed(ways, is_long=L > 4096))
        at, config = torch.arange(L)[None], LlamaConfig(hidden_size=H * D, num_attention_heads=H, max_position_embeddings=8192)
        ours, own = pt.Rotary("rope[layout=half]", D), LlamaRotaryEmbedding(config)
        show(f"L {L} Rotary's table", timed({"posenc": lambda: ours(q, at), "transformers": lambda: own(q, at)}, 1))


if __name__ == "__main__":
    main()
