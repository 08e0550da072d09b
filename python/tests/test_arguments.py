# SPDX-License-Identifier: MIT
"""Arguments of every kind: orders, strides, types, shapes that fit and that do not; outputs stay untouched on a refusal."""
import os
import pickle
import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import posenc
from posenc import _core, _plans

FAST = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), database=None)
TYPES = ["float32", "float64", "float16"]
BOTH = {"per_head": 2}
SMALL = {"swin": {"window": (2, 3)}, "swin_v2": {"window": (2, 3)}, "absolute_distance": {"grid": (6, 1)}}


def normal(rng, shape, dtype="float32"):
    return rng.standard_normal(shape).astype(dtype)


def attention_names():
    return [n for n, i in posenc.encodings().items() if i.place in ("score", "weight", "rotary")]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", attention_names())
def test_each_encoding_attends_in_each_type_and_either_order_alike(name, dtype):
    rng = np.random.default_rng(1)
    e = posenc.Encoding(name, **SMALL.get(name, {}))
    q, k, v = (normal(rng, (2, 2, 6, 8), dtype) for _ in range(3))
    if name == "complex_order_attention":
        v = normal(rng, (2, 2, 6, 8), dtype)
    params = e.init(H=2, D=8, Lq=6, Lk=6, dtype="float32")
    causal = e.causal_only
    wide = {"inkling": {"r": 16}, "path": {"w": 8}, "wall": {"g": 8}}.get(name, {})
    tokens = {n: normal(rng, (2, 2, 6, wide.get(n, 1)), "float32") for n in e._core.token_names()}
    o, lse = posenc.attend(q, k, v, e, causal=causal, params=params, tokens=tokens, return_lse=True)
    turned = [np.ascontiguousarray(a.swapaxes(1, 2)) for a in (q, k, v)]
    p = posenc.attend(*turned, e, causal=causal, params=params, tokens=tokens, order="blhd")
    assert o.dtype == q.dtype and np.isfinite(o.astype(np.float64)).all() and lse.shape == (2, 2, 6)
    assert np.array_equal(o, p.swapaxes(1, 2))
    exact = posenc.attend(*(a.astype(np.float64) for a in (q, k, v)), e, causal=causal, params=params,
                          tokens=tokens)
    assert np.abs(o - exact).max() < {"float32": 1e-5, "float64": 1e-12, "float16": 4e-3}[dtype]


def test_token_inputs_have_gradients_and_names():
    rng = np.random.default_rng(4)
    q, k, v, f = (normal(rng, shape, "float64") for shape in ((1, 2, 6, 8),) * 3 + ((1, 2, 6, 1),))

    def loss(f):
        return (posenc.attend(q, k, v, "fox", causal=True, tokens={"f": f}) * v).sum()
    o, lse = posenc.attend(q, k, v, "fox", causal=True, tokens={"f": f}, return_lse=True)
    g = posenc.attend_backward(v, q, k, v, o, lse, "fox", causal=True, tokens={"f": f})
    step = np.zeros_like(f)
    step[0, 1, 3] = 1e-6
    assert abs((loss(f + step) - loss(f - step)) / 2e-6 - g.tokens["f"][0, 1, 3, 0]) < 1e-7
    with pytest.raises(posenc.PosencError, match="tokens lacks f"):
        posenc.attend(q, k, v, "fox", causal=True, tokens={})
    with pytest.raises(posenc.PosencError, match="tokens has g"):
        posenc.attend(q, k, v, "fox", causal=True, tokens={"f": f, "g": f})
    with pytest.raises(posenc.PosencError, match="token input f is missing"):
        posenc.attend(q, k, v, "fox", causal=True)


def test_a_rotation_follows_token_inputs():
    rng, e = np.random.default_rng(5), "rope[content=step]"
    q, k, v, phi = (normal(rng, shape, "float64") for shape in ((1, 2, 6, 8),) * 3 + ((1, 1, 6, 4),))
    rq, rk = posenc.rotate(q, k, e, tokens={"phi": phi})
    want = posenc.attend(q, k, v, e, causal=True, tokens={"phi": phi})
    assert np.abs(posenc.attend(rq, rk, v, "nope", causal=True) - want).max() < 1e-12
    one = posenc.rotate(q[:, :, 3:4], encoding=e, q_positions=3, tokens={"phi": phi})
    assert np.abs(one - rq[:, :, 3:4]).max() < 1e-14
    dq, dk, _, named = posenc.rotate_backward(q, k, e, q=k, k=q, tokens={"phi": phi})
    step = np.zeros_like(phi)
    step[0, 0, 2, 1] = 1e-6
    loss = [sum((x * y).sum() for x, y in zip(posenc.rotate(k, q, e, tokens={"phi": phi + s}), (q, k)))
            for s in (step, -step)]
    assert dq.shape == q.shape and abs((loss[0] - loss[1]) / 2e-6 - named["phi"][0, 0, 2, 1]) < 1e-7
    with pytest.raises(posenc.PosencError, match="token input phi is missing"):
        posenc.rotate(q, k, e)
    with pytest.raises(posenc.PosencError, match="tokens has psi"):
        posenc.rotate(q, k, e, tokens={"phi": phi, "psi": phi})


def test_decoding_continues_what_one_call_computes():
    rng = np.random.default_rng(2)
    q, k, v = (normal(rng, (1, 2, 9, 8)) for _ in range(3))
    whole = posenc.attend(q, k, v, "rope", causal=True)
    last = posenc.attend(q[:, :, 8:], k, v, "rope", causal=True)
    assert np.allclose(whole[:, :, 8:], last, atol=1e-6)


def test_a_strided_view_gives_what_its_copy_gives():
    rng = np.random.default_rng(3)
    big = normal(rng, (2, 6, 20, 16))
    for view in (big[:, ::2, 3:17:2, 4:12], big[:, 1:3, :, ::2], big[::-1, :2, ::-1, :8]):
        assert np.array_equal(posenc.rotate(view, q_positions=7), posenc.rotate(view.copy(), q_positions=7))


@FAST
@given(st.integers(0, 3), st.integers(1, 4), st.integers(0, 5), st.sampled_from([2, 4, 6, 8, 10]), st.sampled_from(TYPES),
       st.sampled_from(["bhld", "blhd"]), st.integers(-5, 70000), st.integers(1, 3))
def test_rotation_keeps_norms_and_inverts(B, H, L, D, dtype, order, start, step):
    q = normal(np.random.default_rng(B + H), (B, H, L, D) if order == "bhld" else (B, L, H, D), dtype)
    base = np.zeros(q.shape[:3] + (D * step,), dtype)
    base[..., ::step] = q
    there = posenc.rotate(base[..., ::step], q_positions=start, order=order)
    back = posenc.rotate(there, q_positions=start, order=order, inverse=True)
    near = {"float32": 1e-5, "float64": 1e-13, "float16": 2e-2}[dtype]
    assert np.allclose(back, q, atol=near)
    assert np.allclose((there.astype(np.float64) ** 2).sum(-1), (q.astype(np.float64) ** 2).sum(-1), atol=near * 10)


ODD = st.one_of(st.none(), st.integers(-3, 3), st.floats(), st.text(max_size=3), st.booleans(), st.just([]), st.just({}),
                st.just(b"abc"), st.lists(st.integers(-2, 2), max_size=3), st.just(np.zeros(3, "complex64")),
                st.just(np.zeros((2, 2), "U1")), st.just(np.zeros((1, 2, 3, 8), "float32")), st.just(np.zeros((1, 2, 3), "int64")),
                st.just(np.zeros((1, 2, 3, 8), ">f4")), st.just(np.zeros((1, 1, 1, 1, 1, 1, 1), "float64")),
                st.just(np.zeros((1, 2, 0, 8), "float32")), st.just(object()))
REFUSALS = (ValueError, TypeError, NotImplementedError, OverflowError)


@settings(FAST, max_examples=300)
@given(st.data())
def test_wrong_arguments_are_refused_and_nothing_is_written(data):
    rng = np.random.default_rng(4)
    good = {"q": normal(rng, (1, 2, 3, 8)), "k": normal(rng, (1, 2, 3, 8)), "v": normal(rng, (1, 2, 3, 8)),
            "encoding": "alibi", "causal": True, "window": None, "key_allowed": None, "mask": None, "q_segments": None,
            "q_positions": None, "k_positions": None, "params": None, "scale": None, "order": "bhld", "threads": 1}
    bad = {name: data.draw(ODD, label=name) for name in data.draw(st.lists(st.sampled_from(sorted(good)), min_size=1, max_size=2))}
    out = np.full((1, 2, 3, 8), 7, np.float32)
    try:
        posenc.attend(**{**good, **bad}, out=out)
    except (posenc.PosencError, TypeError, OverflowError):
        assert (out == 7).all()


@settings(FAST, max_examples=300)
@given(st.sampled_from(["rows", "rows_backward", "rotate", "rotate_backward", "attend", "attend_backward", "scores", "bias",
                        "table", "angles", "rerotate", "pairs"]), st.lists(ODD, max_size=20), st.data())
def test_the_extension_itself_refuses_any_argument_without_a_crash(name, args, data):
    plan = _plans.get(posenc.Encoding("rope"), (2, 2, 8, 8, 16, 0), 1, 4, 4, threads=1)
    counts = {"rows": 4, "rows_backward": 6, "rotate": 8, "rotate_backward": 11, "attend": 12, "attend_backward": 18,
              "scores": 11, "bias": 11, "table": 4, "angles": 4, "rerotate": 7, "pairs": 2}
    args = [data.draw(ODD) for _ in range(counts[name])] if data.draw(st.booleans()) else args
    try:
        getattr(plan, name)(*args)
    except REFUSALS + (BufferError, MemoryError):
        pass


def test_an_output_that_overlaps_its_input_by_a_part_is_refused():
    memory = np.ones((1, 2, 9, 8), np.float32)
    with pytest.raises(posenc.PosencError, match="overlap"):
        posenc.rotate(memory[:, :, :8], out=memory[:, :, 1:])
    assert (memory == 1).all()
    assert posenc.rotate(memory, out=memory) is memory


def test_empty_arrays_are_answered():
    q = np.zeros((1, 2, 0, 8), np.float32)
    k = np.zeros((1, 2, 3, 8), np.float32)
    assert posenc.rotate(q).shape == q.shape and posenc.attend(q, k, k).shape == q.shape
    o, lse = posenc.attend(k, q, q, return_lse=True)
    assert (o == 0).all() and np.isneginf(lse).all()
    assert posenc.encode("sinusoidal", range(0), 4).shape == (0, 4)


@pytest.mark.parametrize("call, kinds, words", [
    (lambda: posenc.Encoding("rop"), (posenc.PosencError, ValueError), "did you mean 'rope'"),
    (lambda: posenc.rotate(np.zeros((1, 1, 1, 8), int)), (posenc.DtypeError, TypeError), "q has the type int64"),
    (lambda: posenc.rotate(np.zeros((1, 8), "f")), (posenc.PosencError,), r"q has the shape \[1, 8\]"),
    (lambda: posenc.attend(*[np.zeros((1, 1, 2, 8), "f")] * 3, "t5"), (posenc.PosencError,), "params lacks table"),
    (lambda: posenc.frequencies("alibi", D=8), (posenc.UnsupportedError, NotImplementedError), "rotary"),
    (lambda: posenc.inspect("/no/such/config.json"), (posenc.FileError, OSError), "/no/such"),
    (lambda: posenc.inspect(b"{"), (posenc.FormatError, posenc.PosencError), "the config"),
    (lambda: posenc.attend(*[np.zeros((1, 1, 2, 8), "f")] * 3, params={"x": 1}), (posenc.PosencError,), "no parameters"),
])
def test_a_refusal_is_of_the_kind_that_programs_expect(call, kinds, words):
    for kind in kinds:
        with pytest.raises(kind, match=words):
            call()


def test_encodings_are_values():
    a, b = posenc.Encoding("rope", base=5e5), posenc.Encoding("rope[base=5e5]")
    assert len({a, posenc.Encoding(a.spec)}) == 1 and a.parts["rotary"].name == "rope"
    assert pickle.loads(pickle.dumps(a)) == a and (posenc.Encoding("sinusoidal") + b).parts.keys() == {"input", "rotary"}
    with pytest.raises(AttributeError, match="does not change"):
        a.spec = "rope"
    held = posenc.Encoding.from_config({"model_type": "phi3", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 1,
                                        "max_position_embeddings": 128, "original_max_position_embeddings": 64,
                                        "rope_scaling": {"type": "longrope", "short_factor": [1.5] * 8,
                                                         "long_factor": [2.5] * 8}})
    again = pickle.loads(pickle.dumps(held))
    assert again == held and hash(again) == hash(held)
    assert np.array_equal(posenc.frequencies(again, D=16, length=9).w, posenc.frequencies(held, D=16, length=9).w)
    assert not np.array_equal(posenc.frequencies(held, D=16, length=9).w, posenc.frequencies("rope", D=16).w)


@pytest.mark.parametrize("a, b", [
    (posenc.Encoding("rope", base=5e5), "rope[base=5e5]"), ("rope[base=1e4]", "rope"), ("rope[base=1e+5]", "rope[base=100000]"),
    ("rope[base=2:layout=half]", "rope[layout=half:base=2.0]"), ("rope+sinusoidal", "sinusoidal+rope"),
    ("t5_nd[num_buckets=32:64:32]", "t5_nd[num_buckets=32x64x32]"), ("nope[softcap=50]", "nope[softcap=5e1]"),
])
def test_encodings_are_equal_where_their_settings_mean_the_same(a, b):
    a, b = posenc.Encoding(a), posenc.Encoding(b)
    assert a == b and len({a, b}) == 1 and a != posenc.Encoding("rope[base=3]")


def test_encodings_that_mean_something_else_differ():
    others = ["rope", "rope[base=1e5]", "rope[layout=half]", "rope[base=1e5:layout=half]", "rope[schedule=linear:factor=2]",
              "sinusoidal[preset=fairseq]", "sinusoidal", "t5_nd", "t5_nd[num_buckets=32x64x32]", "alibi", "alibi[learned=yes]"]
    assert len({posenc.Encoding(spec) for spec in others}) == len(others)


@pytest.mark.parametrize("three", [np.int64(3), np.array(3), np.float32(3), np.uint8(3), 3.0])
def test_a_number_of_numpy_is_a_number(three):
    q = normal(np.random.default_rng(8), (1, 2, 6, 8))
    assert np.array_equal(posenc.rotate(q, q_positions=three), posenc.rotate(q, q_positions=3))
    assert np.array_equal(posenc.attend(q, q, q, "rope", k_positions=three), posenc.attend(q, q, q, "rope", k_positions=3))
    assert np.array_equal(posenc.encode("sinusoidal", three, x=q[0]), posenc.encode("sinusoidal", range(3, 9), x=q[0]))
    assert np.array_equal(posenc.attend(q, q, q, scale=np.array(0.125)), posenc.attend(q, q, q, scale=0.125))


def test_queries_stand_at_the_end_of_a_range_of_keys():
    q = normal(np.random.default_rng(9), (1, 2, 6, 8))
    last = q[:, :, 4:]
    for range_of, start in ((range(10, 16), 10), (range(0, 12, 2), np.arange(0, 12, 2))):
        want = posenc.attend(last, q, q, "alibi", causal=True, k_positions=start)
        assert np.array_equal(posenc.attend(last, q, q, "alibi", causal=True, k_positions=range_of), want)


ROTATIONS = ["rope", "rope[layout=half:dim=8:offset_dim=4]", "rope[layout_out=half]", "rope[direction=inverse]", "xpos",
             "rope[schedule=yarn:factor=4:original_length=64]", "rope[temperature_rule=llama4:temperature_length=8]",
             "rope[q_phase=1.5]", "rope[axes=2:axis_rule=axial]", "rope[axes=2:axis_rule=halves]",
             "rope[axes=2:axis_rule=sections:sections=3:5:layout=half]", "rope[table_type=bf16]"]


@pytest.mark.parametrize("side", ["queries", "keys"])
@pytest.mark.parametrize("spec", ROTATIONS)
def test_cosines_in_float64_are_those_of_float32_and_finer(spec, side):
    at = np.random.default_rng(10).integers(0, 30, (24, 2)) if "axes" in spec else np.arange(24)
    narrow, wide = (posenc.cos_sin(spec, at, D=16, side=side, dtype=dtype) for dtype in ("float32", "float64"))
    for a, b in zip(narrow, wide):
        assert b.dtype == np.float64 and a.shape == b.shape and np.abs(a - b).max() < 1e-6
        assert np.array_equal(a, b.astype(np.float32)) or np.abs(a / b.astype(np.float32) - 1).max() < 1e-6
    if "table_type" not in spec:
        assert not np.array_equal(wide[0], wide[0].astype(np.float32))


def test_cosines_in_float64_are_exact():
    cos, sin = posenc.cos_sin("rope", range(0, 9000, 7), D=8, dtype="float64")
    angle = posenc.angles("rope", range(0, 9000, 7), D=8).angle[0]
    assert np.abs(cos[:, :4] - np.cos(angle)).max() < 1e-12 and np.abs(sin[:, 4:] - np.sin(angle)).max() < 1e-12


def test_the_default_scale_is_the_one_that_the_registry_names():
    rng = np.random.default_rng(11)
    q, k = normal(rng, (1, 2, 4, 8), "float64"), normal(rng, (1, 2, 4, 8), "float64")
    of = {name: posenc.encodings()[name].scale for name in ("nope", "alibi", "t5", "tupe", "inkling")}
    assert of == {"nope": "1/sqrt(D)", "alibi": "1/sqrt(D)", "t5": "1", "tupe": "1/sqrt(2*D)", "inkling": "1/D"}
    zeros = {"table": np.zeros((32, 2))}
    assert np.allclose(posenc.scores(q, k, "t5", params=zeros), q @ k.swapaxes(2, 3))
    assert np.allclose(posenc.scores(q, k, "nope"), posenc.scores(q, k, "nope", scale=8 ** -0.5))


def test_threads_share_plans_and_get_the_same_bits():
    rng = np.random.default_rng(5)
    q = normal(rng, (2, 4, 70, 32))
    want, got = posenc.attend(q, q, q, "alibi", causal=True), []
    work = lambda: got.extend(posenc.attend(q, q, q, "alibi", causal=True, threads=n) for n in (1, 2, None))
    all_of = [threading.Thread(target=work) for _ in range(8)]
    for t in all_of:
        t.start()
    for t in all_of:
        t.join()
    assert len(got) == 24 and all(np.array_equal(o, want) for o in got)


def test_a_forked_child_computes():
    q = normal(np.random.default_rng(6), (2, 4, 300, 32))
    want = posenc.attend(q, q, q, "alibi", causal=True, threads=2)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(posenc.attend(q, q, q, "alibi", causal=True, threads=2), want) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_no_more_plans_than_a_few_are_kept():
    for n in range(2 * _plans.KEPT):
        posenc.rotate(np.zeros((1, 1, 1, 2), np.float32), encoding=f"rope[base={n + 2}]")
    assert len(_plans._plans) <= _plans.KEPT


def test_bfloat16_goes_through_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    q = normal(np.random.default_rng(7), (1, 2, 3, 8)).astype(ml_dtypes.bfloat16)
    got = posenc.rotate(q, q_positions=3)
    assert got.dtype == q.dtype
    assert np.abs(got.astype(np.float64) - posenc.rotate(q.astype(np.float64), q_positions=3)).max() < 0.02


def test_importing_posenc_does_not_import_torch():
    code = "import posenc, sys; assert 'torch' not in sys.modules and 'matplotlib' not in sys.modules"
    import subprocess
    import sys
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_docstrings_are_true():
    import doctest
    import importlib
    for name in ("posenc", "posenc._encoding", "posenc._runs", "posenc._model", "posenc._check", "posenc._compare", "posenc._plot", "posenc._diagnose",
                 "posenc.positions"):
        failed, tried = doctest.testmod(importlib.import_module(name))
        assert tried and not failed, name


def test_every_public_function_has_a_docstring_and_the_stub_names_the_extension():
    for name in posenc.__all__:
        assert getattr(posenc, name).__doc__, name
    stub = (os.path.dirname(os.path.realpath(posenc.positions.__file__)) + "/_core.pyi")
    text = open(stub).read()
    assert all(f" {n}" in text for n in dir(_core) if not n.startswith("_"))


def test_the_stub_is_that_of_the_extension():
    pytest.importorskip("mypy", reason="stubtest comes with mypy")
    import subprocess
    import sys
    said = subprocess.run([sys.executable, "-m", "mypy.stubtest", "posenc._core", "--ignore-missing-stub"], capture_output=True, text=True)
    assert said.returncode == 0, said.stdout + said.stderr
