# SPDX-License-Identifier: MIT
"""inspect: what the tool prints, as a mapping; encodings with the numbers that a model's file holds."""
import copy
import json
import os
import pickle
import subprocess
from pathlib import Path

import numpy as np
import pytest

import posenc

CONFIGS = sorted(p for p in (Path(__file__).resolve().parents[2] / "tests/golden/configs").rglob("*.json")
                 if p.name != "expected.json")
TOOL = os.environ.get("POSENC_TOOL", "")


@pytest.mark.skipif(not os.path.exists(TOOL), reason="the tool is not built; POSENC_TOOL names it")
def test_a_model_is_the_mapping_that_the_tool_prints():
    for path in CONFIGS[::8]:
        said = subprocess.run([TOOL, "inspect", "--json", str(path)], capture_output=True, text=True)
        if said.returncode == 0:
            want = json.loads(said.stdout)
            assert dict(posenc.inspect(path)) == (want[0] if isinstance(want, list) else want), path.name


def test_every_config_is_read_and_its_encodings_can_be_made():
    assert len(CONFIGS) > 70
    for path in CONFIGS:
        try:
            model = posenc.inspect(path)
        except posenc.FormatError:
            continue
        assert model.groups is not None and "<table>" in model._repr_html_()
        from_bytes = posenc.inspect(path.read_bytes())
        assert [g.encoding for g in from_bytes.groups] == [g.encoding for g in model.groups]


def test_a_layer_has_its_own_encoding_and_the_whole_none_where_layers_differ():
    model = posenc.inspect({"model_type": "gemma3_text", "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16,
                            "num_hidden_layers": 12, "sliding_window": 32})
    assert model.encoding(0) != model.encoding(5)
    with pytest.raises(posenc.PosencError, match="say which layer"):
        model.encoding()


@pytest.mark.skipif(not posenc._core.has_npz(), reason="posenc was built without libzip")
def test_parameters_come_out_of_a_checkpoint(tmp_path):
    table = np.random.default_rng(0).standard_normal((32, 4)).astype(np.float32)
    np.savez(tmp_path / "t5.npz", **{"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": table})
    model = posenc.inspect({"model_type": "t5", "d_model": 32, "num_heads": 4, "d_kv": 8, "num_layers": 2,
                            "is_encoder_decoder": False, "use_cache": False})
    group = next(i for i, g in enumerate(model.groups) if g.encoding.parts.get("score", None))
    assert np.array_equal(model.params(tmp_path / "t5.npz", group=group)["table"], table)


def test_a_notebook_shows_every_encoding_and_how_a_models_pairs_stand_to_its_context():
    import xml.etree.ElementTree as xml
    drawn = set()
    for name, info in posenc.encodings().items():
        html = posenc.Encoding(name)._repr_html_()
        start = html.find("<svg")
        if start >= 0:
            drawing = xml.fromstring(html[start:html.find("</svg>") + 6])
            assert all(len(line.get("points").split()) >= 2 for line in drawing), name
            drawn.add(name)
    assert {"sinusoidal", "rope", "alibi", "t5"} <= drawn
    slope = posenc.Encoding("alibi")._repr_html_()
    assert "63,15.75" in slope  # the first of four heads: -63/4, drawn downwards
    model = posenc.inspect({"model_type": "llama", "hidden_size": 1024, "num_attention_heads": 8, "num_hidden_layers": 2,
                            "rope_theta": 5e5, "max_position_embeddings": 4096})
    html = model._repr_html_()
    assert "<td>4096</td>" in html and "1 to 32 rotations" in html and "6.283 to" in html


def test_pairs_of_a_layer_with_a_window_are_counted_within_it():
    model = posenc.inspect({"model_type": "gemma3_text", "hidden_size": 64, "num_attention_heads": 4, "head_dim": 16,
                            "num_hidden_layers": 12, "sliding_window": 32, "max_position_embeddings": 4096})
    html = model._repr_html_()
    assert "<td>32</td><td>1 to 32 rotations</td>" in html and "<td>4096</td>" in html


def test_a_model_whose_positions_are_in_the_embeddings_says_so_of_a_layer():
    model = posenc.inspect({"model_type": "bert"})
    assert model.encoding().parts["input"].name == "learned"
    with pytest.raises(posenc.PosencError, match="positions are in the embeddings .*; leave layer out"):
        model.encoding(layer=0)


def test_a_model_is_copied_and_pickled(tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "t5", "d_model": 32, "num_heads": 4, "d_kv": 8, "num_layers": 2}')
    for model in (posenc.inspect(path), posenc.inspect(path.read_bytes())):
        again = pickle.loads(pickle.dumps(model))
        assert dict(again) == dict(model) and [g.encoding for g in again.groups] == [g.encoding for g in model.groups]
        assert copy.deepcopy(model) is model and copy.copy(model) is model
