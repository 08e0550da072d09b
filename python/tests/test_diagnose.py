# SPDX-License-Identifier: MIT
"""diagnose_scores: what another program made of scores; that it is the command's finding is seen in its own tests."""
import numpy as np
import pytest

import posenc

SCORES = np.random.default_rng(0).standard_normal((2, 4, 24, 24)).astype(np.float32)
ALIBI = posenc.bias("alibi", H=4, Lq=24, Lk=24)
T = np.arange(24)[:, None] - np.arange(24)


def hide(scores, seen):
    return np.where(seen, scores, np.float32(-np.inf))


@pytest.mark.parametrize("after, expected, options, departs", [
    (SCORES + ALIBI, "alibi", {}, []),
    (SCORES + 2 * ALIBI, "alibi", {}, ["slopes"]),
    (SCORES / 8 + ALIBI, "alibi", {"scale": 0.125}, []),
    (SCORES / 8 + ALIBI, "alibi", {"scale": 0.25}, ["scale"]),
    (30 * np.tanh(SCORES * 9 / 30), "nope", {"scale": 9, "softcap": 30}, []),
    (30 * np.tanh(SCORES * 9 / 30), "nope", {"scale": 9, "softcap": 50}, ["softcap"]),
    (hide(SCORES, (T >= 0) & (T < 5)), "nope", {"causal": True, "window": 5}, []),
    (hide(SCORES, (T >= 0) & (T < 6)), "nope", {"causal": True, "window": 5}, ["mask"]),
])
def test_what_departs_is_named(after, expected, options, departs):
    found = posenc.diagnose_scores(SCORES, after.astype(np.float32), expected, **options)
    assert (found["verdict"], found["departs"]) == ("different" if departs else "same", departs), found


def test_a_model_says_its_scale_and_its_bias():
    rng = np.random.default_rng(1)
    q, k = rng.standard_normal((1, 4, 24, 16)), rng.standard_normal((1, 4, 24, 16))
    bloom = posenc.inspect({"model_type": "bloom", "hidden_size": 64, "n_head": 4, "n_layer": 1})
    right = q @ k.swapaxes(2, 3) / 4 + ALIBI
    assert posenc.diagnose_scores((q, k), right, bloom)["departs"] == []
    assert posenc.diagnose_scores((q, k), right + ALIBI, bloom)["departs"] == ["slopes"]
    assert posenc.diagnose_scores((q, k), right * 2 - ALIBI, bloom)["departs"] == ["scale"]


def test_a_model_says_its_rotation():
    q = np.random.default_rng(2).standard_normal((1, 4, 40, 16)).astype(np.float32)
    llama = posenc.inspect({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1,
                            "rope_theta": 5e5})
    assert posenc.diagnose(q, posenc.rotate(q, None, llama.encoding()), llama)["departs"] == []
    assert posenc.diagnose(q, posenc.rotate(q, None, "rope[base=5e5]"), llama, layer=0)["departs"] == ["layout"]


def test_without_anything_expected_it_says_what_it_found():
    found = posenc.diagnose_scores(SCORES, hide(SCORES + ALIBI, T >= 0))["found"]
    assert found["encoding"] == "alibi" and np.allclose(found["slopes"], [0.25, 0.0625, 0.015625, 0.00390625], rtol=1e-3)
    assert found["mask"][0] == 0


def test_shapes_that_do_not_fit_are_refused():
    for bad in (SCORES[:1], SCORES[0], SCORES[:0]):
        with pytest.raises(posenc.PosencError, match="^scores (before|after) has the shape"):
            posenc.diagnose_scores(SCORES, bad)


def test_a_causal_mask_departs_only_where_none_is_expected():
    s = np.random.default_rng(0).standard_normal((1, 4, 16, 16)).astype(np.float32)
    bias = posenc.bias("alibi", H=4, Lq=16, Lk=16)
    hidden = np.where(np.tri(16, dtype=bool), s + bias, -np.inf).astype(np.float32)
    said = {causal: posenc.diagnose_scores(s, hidden, "alibi", causal=causal) for causal in (None, True, False)}
    assert said[None].ok and said[True].ok and said[False]["departs"] == ["mask"]
    assert posenc.diagnose_scores(s, s + bias, "alibi", causal=False).ok
    assert posenc.diagnose_scores(s, s + bias, "alibi", causal=True)["departs"] == ["mask"]
