# SPDX-License-Identifier: MIT
"""Every reference case through torch, forward and by autograd: the calls of test_golden.py, made with tensors."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402
import test_golden  # noqa: E402


def tensor(x, grad=True):
    x = None if x is None else torch.from_numpy(np.array(x, order="C")) if isinstance(x, np.ndarray) else x
    return x.requires_grad_() if grad and isinstance(x, torch.Tensor) and x.is_floating_point() else x


def tensors(params):
    return {n: tensor(np.array(v)) for n, v in (params or {}).items()}


def plain(x):
    return None if x is None else x.detach().numpy()


def gradients(out, d, leaves):
    found = torch.autograd.grad(out, list(leaves.values()), [tensor(x, False) for x in d], allow_unused=True)
    return {n: plain(g) for n, g in zip(leaves, found) if g is not None}


class Torch:
    """posenc, whose runs go through posenc.torch."""

    def __getattr__(self, name):
        return getattr(posenc, name)

    def encode(self, e, positions, dim, *, x=None, params=None, dtype=None, exact=False):
        return plain(self._encode(e, positions, dim, tensor(x), tensors(params), dtype))

    @staticmethod
    def _encode(e, positions, dim, x, params, dtype):
        return pt.encode(e, tensor(positions, False), dim, x=x, params=params,
                         dtype=torch.float64 if np.dtype(dtype) == np.float64 else torch.float32)

    def encode_backward(self, dy, e, positions, *, x=None, params=None, exact=False):
        x, params = tensor(x), tensors(params)
        y = self._encode(e, positions, dy.shape[-1], x, params, dy.dtype)
        leaves = {**params, **({"": x} if x is not None else {})}
        g = gradients([y], [dy], leaves) if leaves else {}
        return g.pop("", None), g

    def rotate(self, q, k, e, *, q_positions=0, k_positions=None, params=None, exact=False):
        out = pt.rotate(tensor(q), tensor(k), e, q_positions=tensor(q_positions, False), k_positions=k_positions,
                        params=tensors(params), exact=exact)
        return tuple(map(plain, out))

    def rotate_backward(self, dq, dk, e, *, q, k, q_positions, params, exact):
        q, k, params = tensor(q), tensor(k), tensors(params)
        learned = {r[0] for r in e._core.params(None) if r[2]}
        out = pt.rotate(q, k, e, q_positions=tensor(q_positions, False),
                        params={n: v if n in learned else v.detach() for n, v in params.items()}, exact=exact)
        g = gradients(out, [dq, dk], {"q": q, "k": k, **{n: v for n, v in params.items() if n in learned}})
        return g.pop("q"), g.pop("k"), g

    def attend(self, q, k, v, e, *, params=None, mask=None, q_segments=None, return_lse=True, **options):
        o, lse = pt.attend(tensor(q), tensor(k), tensor(v), e, params=tensors(params), mask=tensor(mask),
                           q_segments=tensor(q_segments), return_lse=True, **options)
        return plain(o), plain(lse)

    def attend_backward(self, grad, q, k, v, o, lse, e, *, params=None, mask=None, q_segments=None, **options):
        q, k, v, params = tensor(q), tensor(k), tensor(v), tensors(params)
        o = pt.attend(q, k, v, e, params=params, mask=tensor(mask), q_segments=tensor(q_segments), **options)
        g = gradients([o], [grad], {"q": q, "k": k, "v": v, **params})
        return posenc.Grads(g.pop("q"), g.pop("k"), g.pop("v"), g, {})


@pytest.mark.parametrize("case", test_golden.cases(), ids=lambda c: c.id)
def test_every_reference_case_through_torch(case, monkeypatch):
    monkeypatch.setattr(test_golden, "posenc", Torch())
    test_golden.test_every_reference_case_through_numpy(case)
