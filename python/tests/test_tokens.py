# SPDX-License-Identifier: MIT
"""Encodings whose inputs the tokens make, against loops that do as the formula says."""
import numpy as np
import pytest

import posenc

B, H, G, L, D = 2, 4, 2, 7, 6
rng = np.random.default_rng(25)
q, k, v = (rng.standard_normal((B, heads, L, D)) for heads in (H, G, G))


def log_sigmoid(x):
    return -np.logaddexp(0, -x)


def heads():
    """(batch, query head, key head)"""
    return [(b, h, h * G // H) for b in range(B) for h in range(H)]


def by_softmax(score):
    """score(b, h, g, i, j) of each key that a query sees."""
    out = np.empty((B, H, L, D))
    for b, h, g in heads():
        for i in range(L):
            a = np.exp([score(b, h, g, i, j) for j in range(i + 1)])
            out[b, h, i] = a @ v[b, g, :i + 1] / a.sum()
    return out


def agree(spec, tokens, want):
    got = posenc.attend(q, k, v, spec, causal=True, tokens=tokens)
    assert np.abs(got - want).max() < 1e-12
    single = {n: t.astype(np.float32) for n, t in tokens.items()}
    got = posenc.attend(*(x.astype(np.float32) for x in (q, k, v)), spec, causal=True, tokens=single)
    assert np.abs(got - want).max() < 2e-5


def path_tokens():
    w = rng.standard_normal((B, G, L, D))
    return {"w": w / np.linalg.norm(w, axis=-1, keepdims=True), "beta": 2 * rng.random((B, G, L, 1))}


def test_path_takes_a_query_through_the_reflections_between():
    t = path_tokens()

    def score(b, h, g, i, j):
        x = q[b, h, i]
        for m in range(i, j, -1):
            w = t["w"][b, g, m]
            x = x - t["beta"][b, g, m, 0] * (x @ w) * w
        return x @ k[b, g, j] / np.sqrt(D)
    agree("path", t, by_softmax(score))


def test_path_decodes_by_rewriting_the_keys_of_a_cache():
    """What posenc_path_keys does in C: for a new token k_j becomes k_j - beta (w.k_j) w, and attention is plain."""
    t, cache, rows = path_tokens(), k.copy(), []
    for i in range(L):
        w, beta = t["w"][:, :, i, None], t["beta"][:, :, i, None]
        old = cache[:, :, :i]
        cache[:, :, :i] = old - beta * (old * w).sum(-1, keepdims=True) * w
        rows.append(posenc.attend(q[:, :, i:i + 1], cache[:, :, :i + 1], v[:, :, :i + 1], "nope"))
    agree("path", t, np.concatenate(rows, 2))


@pytest.mark.parametrize("gates", [1, G, H])
def test_wall_has_a_gate_for_each_channel(gates):
    t = {"g": rng.standard_normal((B, gates, L, D))}
    total = log_sigmoid(t["g"]).cumsum(2)

    def score(b, h, g, i, j):
        open_ = np.exp(total[b, h * gates // H, i] - total[b, h * gates // H, j])
        return (q[b, h, i] * k[b, g, j] * open_).sum() / np.sqrt(D)
    agree("wall", t, by_softmax(score))


@pytest.mark.parametrize("remainder", ["none", "self"])
@pytest.mark.parametrize("ahead", [0, 1])
def test_stick_breaking_gives_each_key_its_share_of_what_is_left(remainder, ahead):
    out = np.zeros((B, H, L, D))
    for b, h, g in heads():
        for i in range(L):
            left = 1.0
            for j in range(i - 1 + ahead, -1, -1):
                share = left / (1 + np.exp(-q[b, h, i] @ k[b, g, j] / np.sqrt(D)))
                out[b, h, i] += share * v[b, g, j]
                left -= share
            out[b, h, i] += (remainder == "self") * left * v[b, g, i]
    current = "yes" if ahead else "no"
    agree(f"nope+stick_breaking[remainder={remainder}:attend_current={current}]", {}, out)


@pytest.mark.parametrize("content, base", [("position", 1e4), ("angle", 1e4), ("step", 5e5)])
def test_rope_turns_by_what_the_tokens_say(content, base):
    name, M = ("z", 1) if content == "position" else ("phi", D // 2)
    t = rng.standard_normal((B, G, L, M))
    speed = base ** (-2 * np.arange(D // 2) / D)
    angle = {"position": t * speed, "angle": t, "step": t.cumsum(2) * speed}[content]

    def turned(x, by):
        y = (x[..., ::2] + 1j * x[..., 1::2]) * np.exp(1j * by)
        return np.stack([y.real, y.imag], -1).reshape(x.shape)
    spec = f"rope[content={content}:base={base}]"
    want = turned(q, angle.repeat(H // G, 1)), turned(k, angle)
    got = posenc.rotate(q, k, spec, tokens={name: t})
    assert all(np.abs(a - b).max() < 1e-12 for a, b in zip(got, want))
    agree(spec, {name: t}, by_softmax(lambda b, h, g, i, j: want[0][b, h, i] @ want[1][b, g, j] / np.sqrt(D)))
