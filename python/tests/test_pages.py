# SPDX-License-Identifier: MIT
"""What docs/python.md and README.md show runs as it stands there; the blocks with torch are tried in torch/."""
import functools
import json
import shutil

import numpy as np
import pytest

import pages
import posenc

LLAMA = {"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 2, "rope_theta": 5e5,
         "max_position_embeddings": 4096}
SMALL = dict(steps=8, length=16, reach=2, width=16, heads=2, layers=1, seeds=1, rates="0.01", stability="none", extension="none",
             tasks="none", claims=False, progress=False)  # the page's own call takes minutes


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="the page's pictures are drawn by gnuplot")
def test_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(posenc, "compare", functools.partial(posenc.compare, **SMALL))
    (tmp_path / "config.json").write_text(json.dumps(LLAMA))
    (tmp_path / "my.txt").write_text("In the beginning God created the heaven and the earth. " * 400)
    names = {"model_table": posenc.Encoding("t5").init(H=8, D=64)["table"], "my_rows": posenc.encode("sinusoidal", range(32), 16),
             "attention_mask": np.ones((1, 4), np.int64)}
    compared = [pages.run(block, names) for block in pages.blocks("docs/python.md", False)]
    assert len(compared) == 5 and any(compared)
    assert (tmp_path / "bias.svg").exists() and (tmp_path / "report/report.html").exists()


def test_the_readme():
    blocks = pages.blocks("README.md", False)
    assert len(blocks) == 1
    pages.run(blocks[0], {})
