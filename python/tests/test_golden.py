# SPDX-License-Identifier: MIT
"""Every reference case of tests/golden and tests/golden/rope through NumPy, in float64 and float32."""
import numpy as np
import pytest

import posenc
from golden import GRADIENT, INDEX, INFERRED, OUTPUT, PREPARED, SOLVED, cases, check

CASES = cases()


def rows(case, dtype, single):
    e, exact = case.encoding, not single
    words = "out_re" in case
    x = case.get("in_x")
    positions = None
    if words:
        ids = case["in_tokens"]
        positions = np.stack([ids, np.broadcast_to(np.arange(ids.shape[1]), ids.shape)], -1).astype(np.int64)
    elif "in_tokens" in case:
        positions = posenc.positions.fairseq(case["in_tokens"].astype(np.int64), int(case.settings.get("padding_idx", 1)))
        check(case, "out_pos", positions, INDEX)
    elif "in_mask_true_is_padding" in case:
        positions = posenc.positions.detr(case["in_mask_true_is_padding"] == 0,
                                          normalize=bool(case.settings.get("normalize", False)),
                                          eps=float(case.settings.get("eps", 1e-6)))
    else:
        for name in ("in_ids", "in_pos", "in_t"):
            if name in case:
                positions = case[name]
    want = case["out_re"] if words else case["out_y"]
    dim = 2 * want.shape[-1] if words else want.shape[-1]
    if positions is None and x is None:
        grid_rows = want.size // dim
        positions = range(grid_rows)
    states = want.ndim == 3 and x is None and not words and positions is not None and isinstance(positions, range) \
        and e._core.tokens((1, 1, 1, 1, 1, dim, dim, dim, 1)) == 0
    if states:  # several vectors a row: the last axis but one
        positions = range(want.shape[0])
    given = case.params(dtype, exact)
    xs = None if x is None else x.astype(dtype).reshape((-1,) + x.shape[-2:] if x.ndim == 3 else x.shape)
    y = posenc.encode(e, positions, dim, x=xs, params=given, dtype=dtype, exact=exact)
    slack = 0.0
    if not e._core.params(None):
        n = e._core.coordinates()
        at = np.abs(np.asarray(positions if positions is not None else range(y.size // y.shape[-1]), np.float64))
        most = at.reshape(-1, n).max(-1) if n > 1 and at.ndim > 1 else at.reshape(-1)
        count = y.size // y.shape[-1]
        most = np.resize(most, count) * abs(float(case.settings.get("scale", 1)))
        slack = np.repeat(np.ldexp(most, -52), want.reshape(-1, want.shape[-1]).shape[0] // count)
    if words:
        angle = 0.0
        if single:
            most = [max(1, np.abs(case["par_" + n]).max()) for n in ("omega", "r")]
            angle = np.ldexp((positions.shape[1] + abs(float(case.settings.get("position_start", 0)))) * most[0] * most[1], -24)
        half = y.shape[-1] // 2
        check(case, "out_re", y[..., :half], OUTPUT, single, angle)
        check(case, "out_im", y[..., half:], OUTPUT, single, angle)
        slack = angle
    else:
        check(case, "out_y", y, SOLVED if case.settings.get("solver") == "exact" else OUTPUT, single, slack)
        slack = 0.0
    if "out_u" in case:
        n = case["out_u"].shape[0]
        u = posenc.encode(e, np.arange(n) * (n + 1), dim, params=given, dtype=dtype, exact=exact)
        check(case, "out_u", u, OUTPUT, single)
    dy = case.get("gin_dy") if "gin_dy" in case else \
        np.concatenate([case["gin_dre"], case["gin_dim"]], -1) if "gin_dre" in case else None
    if dy is not None:
        if "g_x" in case:
            xs = xs if xs is not None else np.zeros(y.shape, dtype)
        dx, dparams = posenc.encode_backward(dy.astype(dtype).reshape(y.shape), e, positions, x=xs if "g_x" in case else None,
                                             params=given, exact=exact)
        if dx is not None:
            check(case, "g_x", dx, GRADIENT, single)
        for name, g in dparams.items():
            check(case, "g_" + name, g, GRADIENT, single, slack)


def rotation(case, dtype, single):
    e, exact = case.encoding, not single
    q, k, at = case["in_q"].astype(dtype), case["in_k"].astype(dtype), case["in_pos"]
    given = case.params(dtype, exact)
    D = q.shape[-1]
    found = posenc.frequencies(e, D=D, length=max(at.max() + 1, 0), params=given)
    check(case, "out_inv_freq", given.get("freq_matrix", found.w), PREPARED)
    check(case, "out_magnitude", found.magnitude, PREPARED)
    angles = posenc.angles(e, at, D=D, H=q.shape[1], params=given)
    check(case, "out_angle", angles.angle, PREPARED)
    check(case, "out_angle32", angles.angle, INDEX)
    check(case, "out_temperature", angles.temperature, PREPARED)
    if any(n in given for n in ("inv_freq", "freq_matrix", "inv_freq32", "theta_scale32")):
        slack = 0.0
    else:
        ulp = case.entry.get("details", {}).get("angle_change_per_frequency_ulp", 0)
        slack = 4 * ulp if ulp else np.ldexp(np.abs(angles.angle).max(), -52)
    to_q, to_k = posenc.rotate(q, k, e, q_positions=at, params=given, exact=exact)
    check(case, "out_q", to_q, OUTPUT, single, slack)
    check(case, "out_k", to_k, OUTPUT, single, slack)
    if "gin_dq" in case:
        dq, dk, dparams = posenc.rotate_backward(case["gin_dq"].astype(dtype), case["gin_dk"].astype(dtype), e, q=q, k=k,
                                                 q_positions=at, params=given, exact=exact)
        check(case, "g_q", dq, GRADIENT, single, slack)
        check(case, "g_k", dk, GRADIENT, single, slack)
        for name, g in dparams.items():
            check(case, "g_" + name, g, GRADIENT, single, slack)


def attention(case, dtype, single):
    e, exact = case.encoding, not single
    q, k, v = (case.get("in_" + n).astype(dtype) for n in "qkv")
    segments = case["in_segment_ids"].astype(np.int64) if "in_segment_ids" in case else None
    mask = case["in_allow"] != 0 if "in_allow" in case else None
    given = case.initial({"H": q.shape[1], "G": k.shape[1], "Lq": q.shape[2], "Lk": k.shape[2], "D": q.shape[3],
                          "Dv": v.shape[3]}, dtype)
    options = dict(causal=case.causal, mask=mask, q_segments=segments, q_positions=case.q_offset, k_positions=0, params=given,
                   exact=exact)
    o, lse = posenc.attend(q, k, v, e, return_lse=True, **options)
    check(case, "out_o", o, OUTPUT, single)
    check(case, "out_lse", lse, OUTPUT, single)
    check(case, "out_score", posenc.scores(q, k, e, **options), OUTPUT, single)
    if "out_q_rot" in case and "rotary" in e.parts:
        to_q, to_k = posenc.rotate(q, k, e, q_positions=case.q_offset, k_positions=0, params=given, exact=exact)
        check(case, "out_q_rot", to_q, OUTPUT, single)
        check(case, "out_k_rot", to_k, OUTPUT, single)
    if "out_pos_bias" in case:
        exactly = {n: np.asarray(p, np.float64) for n, p in
                   case.initial({"H": q.shape[1], "Lq": q.shape[2], "Lk": k.shape[2], "D": q.shape[3]}, np.float64).items()}
        got = posenc.bias(e, H=q.shape[1], Lq=q.shape[2], Lk=k.shape[2], D=q.shape[3], dtype="float64", causal=case.causal,
                          q_positions=case.q_offset, k_positions=0, params=exactly)
        check(case, "out_pos_bias", got, PREPARED)
    windows(case, q.shape[1], dtype)
    if case.get("gin_do") is None:
        return
    g = posenc.attend_backward(case.get("gin_do").astype(dtype), q, k, v, o, lse, e, **options)
    for name, d in (("q", g.q), ("k", g.k), ("v", g.v), *g.params.items()):
        check(case, "g_" + name, d, GRADIENT, single)


def windows(case, H, dtype):
    if "window" not in case.settings:
        return
    window, old = case.settings["window"], case.settings.get("pretrained_window", (0, 0))
    index, coordinates = posenc.window_index(*window, pretrained=old)
    check(case, "in_index", index, INDEX)
    check(case, "in_coords", coordinates, PREPARED)
    if "out_bias_table" in case:
        n = index.shape[0]
        given = case.initial({"H": H, "Lq": n, "Lk": n, "D": 8}, np.float64)
        bias = posenc.bias(case.encoding, H=H, Lq=n, Lk=n, D=8, dtype="float64", params=given)
        table = np.empty((coordinates.reshape(-1, 2).shape[0], H))
        table[index.reshape(-1)] = bias.reshape(H, -1).T
        check(case, "out_bias_table", table, PREPARED)


def index_map(case, dtype, single):
    table = case.settings["table"]
    if table == "buckets":
        for m in case.entry["settings"]["maps"]:
            settings = {k: v for k, v in m.items() if k not in ("out", "map")}
            check(case, "out_" + m["out"], posenc.index_map(m["map"], case["in_rel"], **settings), INDEX)
    elif table == "swin":
        for name in [n for n in case.arrays if n.startswith("out_")]:
            rows, columns = map(int, name.rpartition("_")[2].split("x"))
            index, coordinates = posenc.window_index(rows, columns)
            check(case, name, coordinates if "coords" in name else index, PREPARED if "coords" in name else INDEX)
    else:
        name = next(n for n in posenc.encodings() if table.startswith(n + "_"))
        for H in case.entry["settings"]["heads"]:
            start = posenc.Encoding(name).init(H=H, D=2, L=1, dtype="float64")
            check(case, f"out_H{H}", start[table[len(name) + 1:]], PREPARED)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_every_reference_case_through_numpy(case):
    for dtype, single in ((np.float64, False), (np.float32, True)):
        if case.name == "index_map":
            run = index_map
        elif case.get("in_v") is not None:
            run = attention
        else:
            run = {"input": rows, "rotary": rotation}.get(posenc.encodings()[case.name].place, attention)
        run(case, np.dtype(dtype), single)
    unused = set(case.arrays) - case.seen - INFERRED
    assert not {n for n in unused if n.startswith(("par_", "g_", "out_"))}, f"not looked at: {unused}"
    assert case.compared > 0
