# SPDX-License-Identifier: MIT
"""What cannot be is refused as docs/python.md says: a PosencError, or a TypeError, that names the argument."""
import numpy as np
import pytest

import posenc

Q = np.ones((1, 2, 6, 8), np.float32)
K = np.ones((1, 2, 3, 8), np.float32)
NONE = Q[:, :, :0]
TABLE = np.ones((32, 2))


@pytest.mark.parametrize("call, words", [
    # an encoding without the part that is asked for
    (lambda: posenc.encode("rope", range(5), 8), "encode: rope has no part at place input"),
    (lambda: posenc.encode("alibi", x=Q[0]), "encode: alibi has no part at place input"),
    (lambda: posenc.encode_backward(Q[0], "rope", range(6)), "encode_backward: rope has no part at place input"),
    (lambda: posenc.cos_sin("sinusoidal", range(3), D=8), "cos_sin: sinusoidal has no part at place rotary"),
    (lambda: posenc.cos_sin("nope", range(3), D=8), "cos_sin: nope has no part at place rotary"),
    (lambda: posenc.rotate_backward(Q, encoding="alibi"), "rotate_backward: alibi has no part at place rotary"),
    # ranges of another length
    (lambda: posenc.rotate(Q, q_positions=range(5)), r"q_positions is range\(0, 5\), which has 5 positions; it must have 6"),
    (lambda: posenc.rotate(Q, K, q_positions=range(6)), "it must have 3"),
    (lambda: posenc.rotate(Q, K, k_positions=range(4)), r"k_positions is range\(0, 4\)"),
    (lambda: posenc.rotate_backward(Q, q_positions=range(7)), "q_positions is range"),
    (lambda: posenc.attend(Q, Q, Q, "rope", q_positions=range(2, 7)), "or the number 2, which stands for 2, 3, ..."),
    (lambda: posenc.attend(Q, Q, Q, "rope", k_positions=range(9)), "k_positions is range"),
    (lambda: posenc.encode("sinusoidal", range(5), x=Q[0]), "positions is range"),
    (lambda: posenc.encode_backward(Q[0], "sinusoidal", range(5)), "positions is range"),
    (lambda: posenc.rerotate(K, "rope", "rope", range(4), 0), "src_positions is range"),
    # empty arrays
    (lambda: posenc.attend(NONE, Q, Q, "nonsense"), "unknown encoding 'nonsense'"),
    (lambda: posenc.attend(NONE, Q, Q, params={"x": 1}), "params has x"),
    (lambda: posenc.attend(NONE, Q, K), r"v has the shape \[1, 2, 3, 8\]; it must be \[1,2,6,Dv\]"),
    (lambda: posenc.attend(NONE, Q[..., :4], Q), r"k has the shape \[1, 2, 6, 4\]; it must be \[1,G,Lk,8\]"),
    (lambda: posenc.attend(Q, NONE, NONE, "t5"), "params lacks table"),
    (lambda: posenc.rotate(NONE, encoding="alibi"), "no part at place rotary"),
    (lambda: posenc.encode("learned", range(0), 8), "params lacks table"),
    # sizes and shapes
    (lambda: posenc.encode("sinusoidal", range(5), 0), "dim is 0; it must be at least 1"),
    (lambda: posenc.encode("sinusoidal", x=np.ones(5)), r"x has the shape \[5\]; it must be \[L,dim\] or \[B,L,dim\]"),
    (lambda: posenc.encode("sinusoidal", x=Q), r"x has the shape \[1, 2, 6, 8\]"),
    (lambda: posenc.encode("sinusoidal2d", grid="axb", dim=8), "grid is 'axb'; it must be whole numbers"),
    (lambda: posenc.encode("sinusoidal2d", grid=3, dim=8), "grid is 3; it must be whole numbers"),
    (lambda: posenc.angles("rope", 3, D=4), r"positions is 3; it must be range\(n\) or an array \[L\] or \[B,L\]"),
    (lambda: posenc.cos_sin("rope", np.ones((1, 2, 3, 1)), D=4), r"positions has the shape \[1, 2, 3, 1\]"),
    (lambda: posenc.rotate_backward(None), "grad_q and grad_k are both None"),
    (lambda: posenc.window_index(0, 2), "rows is 0; it must be 1 to 4096"),
    (lambda: posenc.window_index(2, -1), "columns is -1"),
    (lambda: posenc.encode("learned", range(5), 8, params={"table": np.ones((16, 8))}),
     "table has 16 rows, .* say the length that it is made for: L=16"),
    # functions and tensors of another program
    (lambda: posenc.verify(lambda q, k: None, "rope"), r"thing gave None; at place rotary it must give \(q', k'\)"),
    (lambda: posenc.verify(lambda L, D: None, "sinusoidal"), r"must give a table \[L,D\]"),
    (lambda: posenc.verify(posenc.rotate, "nope"), r"calls thing as f\(L, L\), for nope acts at place score; that raised: q has"),
    (lambda: posenc.verify(lambda q: q, "rope"), r"calls thing as f\(q, k\), .* a function of q alone wants inputs=q"),
    (lambda: posenc.verify((Q, Q), "rope", inputs=Q), "thing has q and k, and inputs has q; give the same of both"),
    (lambda: posenc.verify(np.ones((4, 4)), "alibi"), r"the bias has the shape \[4, 4\]; it must be \[H,L,L\]"),
    (lambda: posenc.verify(np.ones(4), "sinusoidal"), r"the table has the shape \[4\]; it must be \[L,D\]"),
    (lambda: posenc.diagnose(Q, K, "rope"), r"q before has the shape \[1, 2, 6, 8\] and after \[1, 2, 3, 8\]; they must have the same"),
    (lambda: posenc.diagnose(None, None, "rope"), "before and after are both None"),
    (lambda: posenc.diagnose(Q, Q, "rope", positions=np.arange(5)), r"positions has the shape \[5\]; it must be a number, \[6\]"),
    (lambda: posenc.diagnose_scores(None, Q), r"scores before is None; it must be \[B,H,Lq,Lk\]"),
    (lambda: posenc.diagnose_scores(Q, Q[0]), r"scores after has the shape \[2, 6, 8\]"),
    # words
    (lambda: posenc.plot("words", "rope"), "plot words needs words to rotate; give words='one two three'"),
    (lambda: posenc.cos_sin("rope", range(3), D=4, side="zzz"), "side is 'zzz'; it must be 'queries' or 'keys'"),
    (lambda: posenc.Encoding("rope\0"), "is no SPEC: embedded null character"),
    (lambda: posenc.Encoding("rope", layout="\ud800"), "is no SPEC"),
    (lambda: posenc.attend(Q, Q, Q, "t5", params={"tabel": TABLE}), "params lacks table .*; it has tabel, which is no parameter"),
    # types
    (lambda: posenc.attend(Q, Q, Q, "t5", params={"table": TABLE * 1j}), "table has the type complex128"),
    (lambda: posenc.index_map("t5", [1.7]), "rel has the type float64; it must be of whole numbers"),
    (lambda: posenc.rotate(Q, q_positions=np.array(1j)), "q_positions has the type complex128"),
])
def test_the_argument_is_named(call, words):
    with pytest.raises(posenc.PosencError, match=words):
        call()


@pytest.mark.parametrize("call, words", [
    (lambda: posenc.Encoding(None), "encoding is a NoneType; it must be an Encoding or a SPEC"),
    (lambda: posenc.Encoding(5), "encoding is a int"),
    (lambda: posenc.Encoding(b"rope"), "encoding is a bytes"),
    (lambda: posenc.attend(Q, Q, Q, "t5", params=[TABLE]), "params is a list; it must be a mapping"),
    (lambda: posenc.attend(Q, Q, Q, "fox", tokens=[Q]), "tokens is a list; it must be a mapping"),
    (lambda: posenc.plot("bias", "t5", params=[TABLE]), "params is a list"),
    (lambda: posenc.attend(Q, Q, Q, params=TABLE), "params is a ndarray"),
    (lambda: posenc.attend(Q, Q, Q, causal=np.tri(6)), "causal is a ndarray; it must be True or False: an array goes to mask="),
    (lambda: posenc.attend(Q, Q, Q, window="3"), "window is a str; it must be a whole number"),
    (lambda: posenc.attend(Q, Q, Q, threads=1.5), "threads is a float"),
])
def test_a_wrong_type_is_a_type_error(call, words):
    with pytest.raises(TypeError, match=words):
        call()


def test_empty_arrays_that_fit_are_answered():
    assert posenc.attend(NONE, Q, Q, "t5", params={"table": TABLE}, k_positions=range(6)).shape == NONE.shape
    assert posenc.attend(Q, Q, Q[..., :0]).shape == (1, 2, 6, 0)
    assert posenc.attend(Q[:0], Q[:0], Q[:0], "alibi").shape == (0, 2, 6, 8)
    assert posenc.encode("sinusoidal", np.zeros((0, 3)), 4).shape == (0, 3, 4)
    assert posenc.cos_sin("rope", range(0), D=4, dtype="float64")[0].shape == (0, 4)
    assert posenc.index_map("t5", []).shape == (0,)
