# SPDX-License-Identifier: MIT
"""with_torch.py [--threads N] [--length L]: PyTorch beside libposenc, on the same memory, in turns

Rotation as Hugging Face writes it (rotate_half), attention written out in eager mode, scaled_dot_product_attention (PyTorch 2),
with a bias, and FlexAttention where torch.compile works on this machine (PyTorch 2.5 and a C++ compiler). README.md says
which environment makes the comparison fair.
"""
import math
import os
import sys

import numpy as np
import torch

from posenc_call import Plan, arguments, in_turns, load, random_array, report

HEADS, WIDTH = 8, 64


def slopes(H):
    return torch.tensor([2.0 ** (-8.0 * (h + 1) / H) for h in range(H)])


def alibi_bias(H, L, causal):
    i = torch.arange(L)
    bias = -slopes(H)[:, None, None] * (i[:, None] - i[None, :]).abs().float()
    return bias.masked_fill(i[None, None, :] > i[None, :, None], -math.inf) if causal else bias


def causal_bias(L):
    i = torch.arange(L)
    return torch.zeros(L, L).masked_fill(i[None, :] > i[:, None], -math.inf)


def eager(q, k, v, bias):
    s = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    return (s if bias is None else s + bias).softmax(-1) @ v


def rotate_half(x, cos, sin):
    a, b = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
    return x * cos + torch.cat((-b, a), -1) * sin


def rotation(lib, threads):
    for L, H in ((4096, 32), (32768, 8), (8, 32)):
        x = random_array(1, L, H, 128)
        theirs = torch.from_numpy(x.copy())
        angle = torch.outer(torch.arange(L).double(), 10000.0 ** (-torch.arange(64).double() / 64))
        cos, sin = (torch.cat((f(angle), f(angle)), -1).float()[None, :, None, :] for f in (torch.cos, torch.sin))
        plan = Plan(lib, "rope[layout=half]", 1, H, H, L, 128, 0, threads)
        want = rotate_half(theirs, cos, sin)
        plan.rotate(x)()
        difference = np.abs(x - want.numpy()).max()
        report(f"rope half f32 {L} x {H} x 128: rotate_half", in_turns(plan.rotate(x), lambda: rotate_half(theirs, cos, sin), threads),
               difference)


def attention(lib, threads, L):
    q, k, v, o = (random_array(1, HEADS, L, WIDTH) for _ in range(4))
    k[...], v[...] = k[:, ::-1], v[:, :, ::-1]  # three different tensors
    tq, tk, tv = (torch.from_numpy(x) for x in (q, k, v))
    sdpa = getattr(torch.nn.functional, "scaled_dot_product_attention", None)
    cases = [("plain, both ways", "nope", 0, lambda: None), ("causal", "nope", 1, lambda: causal_bias(L)),
             ("causal + alibi", "alibi", 1, lambda: alibi_bias(HEADS, L, True)),
             ("alibi, both ways", "alibi", 0, lambda: alibi_bias(HEADS, L, False))]
    for name, spec, causal, bias_of in cases:
        ours = Plan(lib, spec, 1, HEADS, HEADS, L, WIDTH, causal, threads).attend(o, q, k, v)
        bias = bias_of()
        runs = [("eager", lambda: eager(tq, tk, tv, bias))]
        if sdpa:
            runs.append(("SDPA with that bias" if bias is not None else "SDPA", lambda: sdpa(tq, tk, tv, attn_mask=bias)))
        if sdpa and name == "causal":
            runs.append(("SDPA is_causal", lambda: sdpa(tq, tk, tv, is_causal=True)))
        for how, theirs in runs + flex_runs(name, tq, tk, tv, L):
            ours()
            difference = np.abs(o - theirs().numpy()).max()
            report(f"attention f32 L {L}, {name}: {how}", in_turns(ours, theirs, threads), difference)


def flex_runs(name, q, k, v, L):
    """FlexAttention, compiled; none where this PyTorch or this machine cannot."""
    try:
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        compiled = torch.compile(flex_attention)
        m = slopes(HEADS)
        score = (lambda s, b, h, i, j: s - m[h] * (i - j).abs()) if "alibi" in name else None
        mask = (create_block_mask(lambda b, h, i, j: i >= j, None, None, L, L, device="cpu") if "causal" in name else None)
        run = lambda: compiled(q, k, v, score_mod=score, block_mask=mask)
        run()
        return [("FlexAttention, compiled", run)]
    except Exception as reason:  # whatever keeps it from compiling is what is to be said
        print(f"attention f32 L {L}, {name}: no FlexAttention here ({type(reason).__name__}: {str(reason).splitlines()[0][:90]})")
        return []


def main():
    args = arguments().parse_args()
    torch.set_num_threads(args.threads)
    lib = load()
    heap = "recycling" if os.environ.get("MALLOC_MMAP_MAX_") == "0" else "as installed"
    print(f"PyTorch {torch.__version__}, libposenc {lib.posenc_version().decode()} ({lib.posenc_isa().decode()}), "
          f"{args.threads} thread(s), heap {heap}, OPENBLAS_CORETYPE {os.environ.get('OPENBLAS_CORETYPE', 'not set')}")
    with torch.no_grad():
        rotation(lib, args.threads)
        attention(lib, args.threads, args.length)


if __name__ == "__main__":
    sys.exit(main())
