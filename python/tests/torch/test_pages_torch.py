# SPDX-License-Identifier: MIT
"""The blocks of docs/python.md that need torch, and the examples of the docstrings."""
import doctest
import importlib

import pytest
import torch
import transformers
from torch.nn.attention.flex_attention import flex_attention

import pages
import posenc

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def test_the_page():
    torch.manual_seed(0)
    L, model = 32, transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=97, hidden_size=256, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=128))
    of_cpu = {n: torch.randn(1, 8, L, 64, requires_grad=True) for n in ("q", "k", "v")}
    check, train, on_device = pages.blocks("docs/python.md", True)
    names = dict(of_cpu, model=model.eval(), posenc=posenc)  # imported by a block above
    pages.run(check, names)
    pages.run(train, names)
    names["o"].sum().backward()
    assert names["attention"].table.grad.abs().sum() > 0 and of_cpu["q"].grad is not None
    names.update({n: t.detach().to(DEVICE) for n, t in of_cpu.items()}, Lq=L, Lk=L, flex_attention=flex_attention,
                 hidden=torch.zeros(1, L, 256, device=DEVICE), position_ids=torch.arange(L, device=DEVICE)[None])
    first, second = on_device.rsplit("o = ", 1)  # two ways to the same
    pages.run(first.replace('"cuda"', f'"{DEVICE}"'), names)
    dense = names["o"]
    pages.run("o = " + second.replace('"cuda"', f'"{DEVICE}"'), names)
    assert torch.allclose(dense, names["o"], atol=1e-5)


@pytest.mark.parametrize("name", ["posenc.torch", "posenc.torch._modules", "posenc.torch.hf"])
def test_the_docstrings_are_true(name):
    failed, tried = doctest.testmod(importlib.import_module(name))
    assert tried and not failed
