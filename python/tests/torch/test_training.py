# SPDX-License-Identifier: MIT
"""Training a model of two layers in torch: the losses of the C trainer's own steps, for every encoding that learns,
or whose inputs the layers make of their tokens.

What stands here is the trainer's model and recipe (src/train/model) written a second time, in torch and in float64: layers,
AdamW, Muon for the matrices, decay, clipping, the schedule. Only the encoding is posenc's.
"""
import math
import os
import subprocess

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402
from posenc import _core  # noqa: E402

TRACE = os.environ.get("POSENC_TRACE", "")
L, WIDTH, LAYERS, HEADS, BATCH, WARMUP, PEAK, DECAY = 32, 32, 2, 4, 4, 5, 0.01, 0.1
STEPS = 50
torch.set_num_threads(1)  # tensors are tiny
CAUSAL = 1


def specs():
    """As `compare` has them in a model of this size."""
    out = []
    for name, info in posenc.encodings().items():
        settings = _core.small_model(name, (BATCH, HEADS, HEADS, L, L, WIDTH // HEADS, WIDTH // HEADS, WIDTH, L), CAUSAL)
        spec = posenc.Encoding(f"{name}[{settings.replace(' ', ':')}]" if settings else name)
        if any(row[2] for row in spec._core.params(None)) or spec._core.token_names():
            out.append(spec.spec)
    return out


class Weight:
    def __init__(self, line, theta):
        self.name, *numbers = line.split()
        offset, count, self.rows, self.matrices = map(int, numbers[:4])
        self.rate, self.decays, self.trains = float(numbers[4]), int(numbers[5]), int(numbers[6])
        self.value = torch.tensor(theta[offset:offset + count], dtype=torch.float64, requires_grad=bool(self.trains))
        self.m, self.v = torch.zeros(count, dtype=torch.float64), torch.zeros(count, dtype=torch.float64)


class Model:
    def __init__(self, spec, weights):
        self.e, self.w = posenc.Encoding(spec), {w.name: w for w in weights}
        at_input = set(self.e._core.parts()) & {"input"}
        shapes = self.e.params(H=HEADS, D=WIDTH // HEADS, L=L, d_model=WIDTH)
        self.rows_params = {n: p.shape for n, p in shapes.items() if p.place == "input"}
        self.layer_params = {n: p.shape for n, p in shapes.items() if p.place != "input"}
        self.has_rows, self.by_word = bool(at_input), bool(at_input) and self.e.parts["input"].by_word

    def get(self, name, *shape):
        return self.w[name].value.view(shape)

    def norm(self, x, name):
        return F.layer_norm(x, (WIDTH,), self.get(f"{name}.gain", -1), self.get(f"{name}.bias", -1), 1e-5)

    def token(self, x, weight, name):
        """What a layer makes of its tokens: path's w has length 1, its beta lies between 0 and 2."""
        channels = {"w": WIDTH // HEADS, "g": WIDTH // HEADS, "r": 16}.get(name, 1)
        y = x @ self.get(weight, WIDTH, -1) + self.get(weight + ".bias", -1)
        y = y.view(BATCH, L, -1, channels).transpose(1, 2)
        return y / y.norm(dim=-1, keepdim=True) if name == "w" else 2 * torch.sigmoid(y) if name == "beta" else y

    def loss(self, windows):
        read, next_ = windows[:, :-1], windows[:, 1:]
        given = {n: self.get(n, *s) for n, s in self.rows_params.items()} or None
        if self.by_word:
            at = torch.stack([read, torch.arange(L).expand_as(read)], -1)
            x = pt.encode(self.e, at, WIDTH, params=given, dtype=torch.float64, L=L)
        else:
            x = self.get("embedding", -1, WIDTH)[read]
            if self.has_rows:
                x = pt.encode(self.e, torch.arange(L), x=x, params=given, L=L)
        for l in range(LAYERS):
            p = f"layer{l}."
            normed = self.norm(x, p + "norm1")
            qkv = normed @ self.get(p + "qkv", WIDTH, 3 * WIDTH)
            q, k, v = qkv.view(BATCH, L, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
            given = {n: self.get(p + n, *s) for n, s in self.layer_params.items()} or None
            acts = {"rotary", "score", "weight"} & set(self.e._core.parts())
            made = {n: self.token(normed, p + "tokens." + n, n) for n in self.e._core.token_names() if p + "tokens." + n in self.w}
            o = pt.attend(q, k, v, self.e if acts else "nope", causal=True, params=given if acts else None, tokens=made, L=L)
            x = x + o.transpose(1, 2).reshape(BATCH, L, WIDTH) @ self.get(p + "attention.out", WIDTH, WIDTH)
            h = self.norm(x, p + "norm2") @ self.get(p + "up", WIDTH, -1) + self.get(p + "up.bias", -1)
            x = x + F.gelu(h, approximate="tanh") @ self.get(p + "down", -1, WIDTH) + self.get(p + "down.bias", -1)
        logits = self.norm(x, "final") @ self.get("output", WIDTH, -1)
        return F.cross_entropy(logits.flatten(0, 1), next_.flatten())


def orthogonal(x):
    x = x / (x.norm() + 1e-12)
    for _ in range(5):
        g = x.T @ x
        x = x @ (3.4445 * torch.eye(len(g), dtype=x.dtype) - 4.7750 * g + 2.0315 * g @ g)
    return x


@torch.no_grad()
def step(weights, t, steps):
    rate = PEAK * ((t + 1) / WARMUP if t < WARMUP else (steps - t) / (steps - WARMUP))
    trained = [w for w in weights if w.trains]
    norm = math.sqrt(sum(float((w.value.grad ** 2).sum()) for w in trained if w.value.grad is not None))
    for w in trained:
        grad = torch.zeros_like(w.value) if w.value.grad is None else w.value.grad
        if w.matrices:
            grad, value, m = (a.view(w.rows, w.matrices, -1) for a in (grad, w.value, w.m))
            for i in range(w.matrices):
                m[:, i] = 0.95 * m[:, i] + 0.05 * grad[:, i]
                push = 0.05 * grad[:, i] + 0.95 * m[:, i]
                wide = push.shape[1] > push.shape[0]
                push = orthogonal(push.T if wide else push)
                ratio = value.shape[2] / value.shape[0]
                value[:, i] = (1 - 0.5 * rate * DECAY) * value[:, i] - 0.8 * rate * math.sqrt(max(ratio, 1)) * (push.T if wide else push)
        else:
            grad = grad * (1 / norm if norm > 1 else 1)
            w.m.mul_(0.9).add_(0.1 * grad)
            w.v.mul_(0.95).add_(0.05 * grad * grad)
            w.value *= 1 - rate * DECAY if w.decays else 1
            w.value -= rate * w.rate * (w.m / (1 - 0.9 ** (t + 1))) / ((w.v / (1 - 0.95 ** (t + 1))).sqrt() + 1e-8)
        w.value.grad = None


@pytest.mark.skipif(not os.path.exists(TRACE), reason="POSENC_TRACE names the program trace_steps, which the tests' build makes")
@pytest.mark.parametrize("spec", specs())
def test_losses_are_those_of_the_trainers_own_steps(spec, tmp_path):
    path = tmp_path / "steps"
    said = subprocess.run([TRACE, spec, str(STEPS), str(path)], check=True, capture_output=True, text=True).stdout.splitlines()
    data = path.read_bytes()
    size = int(said.pop().split()[1])
    theta = np.frombuffer(data, np.float32, size)
    windows = np.frombuffer(data, np.uint16, STEPS * BATCH * (L + 1), 4 * size).reshape(STEPS, BATCH, L + 1).astype(np.int64)
    wanted = np.frombuffer(data, np.float64, STEPS, len(data) - 8 * STEPS)
    weights = [Weight(line, theta) for line in said]
    model, losses = Model(spec, weights), []
    for t in range(STEPS):
        loss = model.loss(torch.from_numpy(windows[t]))
        loss.backward()
        losses.append(loss.item())
        step(weights, t, STEPS)
    off = np.abs(np.array(losses) - wanted)
    assert wanted[-1] < wanted[0] - 0.5
    assert off[:20].max() < 1e-4 and off.max() < 1e-3, (off[:20].max(), off.max())
