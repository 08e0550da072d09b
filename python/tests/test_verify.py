# SPDX-License-Identifier: MIT
"""verify: right functions pass; of wrong ones it names the place and the cause."""
import numpy as np
import pytest

import posenc


def rotate_by_hand(q, base=10000.0, start=0, half=False, sign=1):
    L, D = q.shape[-2:]
    angle = (start + np.arange(L))[:, None] * base ** (-np.arange(0, D, 2) / D) * sign
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    a, b = (q[..., :D // 2], q[..., D // 2:]) if half else (q[..., ::2], q[..., 1::2])
    x, y = a * c - b * s, a * s + b * c
    return np.concatenate([x, y], -1) if half else np.stack([x, y], -1).reshape(q.shape)


@pytest.mark.parametrize("fault, cause", [({}, None), ({"half": True}, "layout=half"), ({"base": 5e5}, "base=500000"),
                                          ({"start": 1}, "too large by one"), ({"sign": -1}, "sign"), ({"base": 77.0}, "no other")])
def test_a_rotation_written_by_hand(fault, cause):
    report = posenc.verify(lambda q, k: (rotate_by_hand(q, **fault), rotate_by_hand(k, **fault)), "rope")
    assert report.ok == (cause is None), report
    if cause:
        assert cause in report.findings[0].cause and "row" in report.findings[0].where and "pair" in report.findings[0].where
        with pytest.raises(posenc.PosencError, match="does not agree"):
            report.raise_if_failed()
    assert "<table>" in report._repr_html_()


def test_a_table_and_a_bias():
    table = posenc.encode("sinusoidal", range(9), 16)
    assert posenc.verify(table, "sinusoidal").ok
    assert "too large by one" in posenc.verify(posenc.encode("sinusoidal", range(1, 10), 16), "sinusoidal").findings[0].cause
    slopes = 2.0 ** -np.arange(1, 9, dtype=np.float32)
    bias = lambda Lq, Lk: -slopes[:, None, None] * np.abs(np.arange(Lq)[:, None] - np.arange(Lk)).astype(np.float32)
    assert posenc.verify(bias, "alibi").ok
    wrong = posenc.verify(lambda Lq, Lk: -bias(Lq, Lk), "alibi").findings[0]
    assert wrong.cause == "the sign is the other one" and wrong.where.startswith("head 0, query 0, key 1")


def test_the_wrong_number_is_the_one_that_is_named():
    q = np.ones((1, 1, 5, 8), np.float32)
    got = posenc.rotate(q)
    got[0, 0, 3, 6] += 1
    where = posenc.verify((got,), "rope", inputs=(q,)).findings[0].where
    assert where == "q at row 3, head 0, channel 6 of pair 3"


def test_a_function_of_q_alone_and_a_range_of_positions():
    q = np.random.default_rng(3).standard_normal((1, 2, 5, 8)).astype(np.float32)
    assert posenc.verify(posenc.rotate, "rope", inputs=q).ok
    assert posenc.verify(lambda k: posenc.rotate(None, k), "rope", inputs=(None, q)).ok
    assert posenc.verify(lambda q: posenc.rotate(q, q_positions=3), "rope", inputs=q, positions=range(3, 8)).ok
    assert posenc.verify(posenc.encode("sinusoidal", range(3, 8), 8), "sinusoidal", positions=range(3, 8)).ok
