# SPDX-License-Identifier: MIT
"""The operators: gradients by finite differences, torch.func, torch.compile, export, fake tensors, checkpoints, refusals."""
import numpy as np
import pytest

torch = pytest.importorskip("torch")
import posenc  # noqa: E402
import posenc.torch as pt  # noqa: E402
from torch.func import grad, jacrev, vmap  # noqa: E402

SMALL = {"swin": {"window": (2, 3)}, "swin_v2": {"window": (2, 3)}, "absolute_distance": {"grid": (6, 1)}, "cope": {"npos": 8},
         "tupe": {"cls": False}}  # the class token's own row has no gradient: posenc_bias_backward


def draw(*shape, seed=0):
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def leaf(*shape, seed=0):
    return draw(*shape, seed=seed).requires_grad_()


def names(*places):
    return [n for n, i in posenc.encodings().items() if i.place in places]


@pytest.mark.parametrize("name", names("score", "weight", "rotary"))
def test_gradients_of_attention_with_each_encoding(name):
    e = posenc.Encoding(name, **SMALL.get(name, {}))
    q, k, v = leaf(1, 2, 6, 8, seed=1), leaf(1, 2, 6, 8, seed=2), leaf(1, 2, 6, 8, seed=3)
    start = e.init(H=2, D=8, Lq=6, Lk=6, dtype="float64", seed=3)
    rng = np.random.default_rng(0)
    params = {n: torch.tensor(a + (0.05 + 0.1 * rng.random(a.shape))).requires_grad_() for n, a in start.items()}
    held = list(params)
    wide = {"inkling": {"r": 16}, "path": {"w": 8}, "wall": {"g": 8}}.get(name, {})
    tokens = {n: leaf(1, 2, 6, wide.get(n, 1), seed=4) for n in e._core.token_names()}

    def run(q, k, v, *values):
        return pt.attend(q, k, v, e, params=dict(zip(held, values)), tokens=dict(zip(tokens, values[len(held):])),
                         causal=e.causal_only, return_lse=True)
    assert torch.autograd.gradcheck(run, (q, k, v, *params.values(), *tokens.values()), atol=1e-6, fast_mode=True)


@pytest.mark.parametrize("content, M", [("position", 1), ("angle", 4), ("step", 4)])
@pytest.mark.parametrize("inverse", [False, True])
def test_gradients_of_a_rotation_that_follows_its_tokens(content, M, inverse):
    e, name = f"rope[content={content}]", "z" if content == "position" else "phi"
    q, k, t = leaf(2, 4, 6, 8, seed=1), leaf(2, 2, 6, 8, seed=2), leaf(2, 2, 6, M, seed=3)
    run = lambda q, k, t: pt.rotate(q, k, e, tokens={name: t}, inverse=inverse)
    assert torch.autograd.gradcheck(run, (q, k, t), fast_mode=True)
    assert torch.autograd.gradcheck(lambda q, t: pt.rotate(q[:, :, 4:], None, e, q_positions=4, tokens={name: t}, inverse=inverse),
                                    (q, t), fast_mode=True)
    want = posenc.rotate(*(x.detach().numpy() for x in (q, k)), e, tokens={name: t.detach().numpy()}, inverse=inverse)
    assert all(np.array_equal(a.detach().numpy(), b) for a, b in zip(run(q, k, t), want))
    assert torch.equal(posenc.rotate(q, k, e, tokens={name: t}, inverse=inverse)[1], run(q, k, t)[1])
    many = torch.stack([q, -q])
    assert torch.equal(vmap(lambda q: run(q, k, t)[0])(many), torch.stack([run(q, k, t)[0] for q in many]))
    with pytest.raises(posenc.PosencError, match=f"token input {name} is missing"):
        pt.rotate(q, k, e)
    with pytest.raises(posenc.PosencError, match="tokens has psi"):
        pt.rotate(q, k, e, tokens={name: t, "psi": t})


@pytest.mark.parametrize("inverse", [False, True])
def test_gradients_of_learned_frequencies(inverse):
    e, at = "rope[axes=2:axis_rule=matrix]", torch.arange(10).reshape(5, 2)
    start = posenc.Encoding(e).init(H=2, D=8, dtype="float64", seed=3)["freq_matrix"]
    run = lambda q, k, m: pt.rotate(q, k, e, q_positions=at, params={"freq_matrix": m}, inverse=inverse)
    assert torch.autograd.gradcheck(run, (leaf(1, 2, 5, 8, seed=1), leaf(1, 2, 5, 8, seed=2), torch.tensor(start).requires_grad_()),
                                    fast_mode=True)


@pytest.mark.parametrize("name", names("input"))
def test_gradients_of_input_encodings(name):
    info = posenc.encodings()[name]
    if info.by_word:
        e, dim, positions = posenc.Encoding(name, vocab=5), 8, torch.tensor([[[1, 0], [4, 1], [1, 2]]])
    elif name in ("learned_resize",):
        e, dim, positions = posenc.Encoding(name, grid_in=(2, 2), grid_out=(3, 3)), 4, range(9)
    elif posenc.Encoding(name)._core.coordinates() > 1:
        e, dim, positions = posenc._runs._gridded(posenc.Encoding(name), (2, 3)), 8, range(6)
    else:
        e, dim, positions = posenc.Encoding(name), 4, range(6)
    L = 3 if info.by_word else len(positions)
    start = e.init(d_model=dim, D=dim, L=L, dtype="float64", seed=1)
    params = {n: torch.tensor(a + 0.01).requires_grad_() for n, a in start.items()}
    run = lambda *values: pt.encode(e, positions, dim, params=dict(zip(params, values)), dtype=torch.float64)
    if params and "exact" not in e.spec and name != "floater":
        assert torch.autograd.gradcheck(run, tuple(params.values()), atol=1e-6)
    assert run(*params.values()).shape[-2] == L


def test_second_derivatives_of_rotation():
    assert torch.autograd.gradgradcheck(lambda q, k: pt.rotate(q, k, "rope", q_positions=3), (leaf(1, 2, 3, 4), leaf(1, 1, 3, 4)))


def test_a_second_derivative_of_attention_is_refused():
    q = leaf(1, 2, 3, 4)
    g, = torch.autograd.grad(pt.attend(q, q, q).square().sum(), q, create_graph=True)
    with pytest.raises(NotImplementedError, match="second derivatives"):
        g.sum().backward()


@pytest.mark.parametrize("op, args", [
    ("rotate", lambda: (leaf(2, 4, 6, 8), leaf(2, 2, 6, 8), None, None, [], "rope", 1.0, 1.0, False, False)),
    ("rotate", lambda: (leaf(2, 4, 6, 8), None, torch.arange(6), None, [], "xpos", 0.0, 0.0, False, False)),
    ("rotate_backward", lambda: (draw(1, 2, 3, 4), None, draw(1, 2, 3, 4), None, None, None, [], "rope", 1.0, 1.0, False, False)),
    ("rotate", lambda: (leaf(1, 2, 3, 4), None, None, torch.arange(3), [leaf(1, 1, 3, 2)], "rope[content=angle]", 0.0, 0.0, True, False)),
    ("attend", lambda: (leaf(2, 4, 6, 8), leaf(2, 2, 6, 8), leaf(2, 2, 6, 4), None, None, torch.ones(2, 6, dtype=torch.bool),
                        None, None, None, [leaf(32, 4)], "t5", 0.0, 0.0, True, 0, False, -1, 0)),
    ("attend", lambda: (leaf(1, 2, 3, 4), leaf(1, 2, 3, 4), leaf(1, 2, 3, 4), torch.arange(3), torch.arange(3), None, None,
                        torch.tensor([[0, 0, 1]]), torch.tensor([[0, 0, 1]]), [torch.empty(0)], "alibi", 0.0, 0.0, True, 2,
                        False, 1, 0)),
    *(("attend_backward", lambda learns=learns: (*(draw(1, 2, 3, 4, seed=n) for n in range(1)), None, draw(1, 2, 3, 4), draw(1, 2, 3),
                                                 *(draw(1, 2, 3, 4, seed=n) for n in range(3)), None, None, None, None, None, None,
                                                 [draw(32, 2)], "t5", 0.0, 0.0, True, 0, False, -1, 0, learns)) for learns in (True, False)),
    ("rows", lambda: (None, torch.tensor([[0, 3, 3, 6]]), [leaf(7, 8)], "learned[rows=7]", 0.0, 1, 4, 8, 8, 7, torch.float64)),
    ("rows", lambda: (leaf(2, 3, 8), None, [], "sinusoidal", 4.0, 2, 3, 8, 8, 7, torch.float64)),
    ("rows_backward", lambda: (draw(1, 4, 8), None, torch.tensor([[0, 3, 3, 6]]), [draw(7, 8)], "learned[rows=7]", 0.0, 1, 4, 8,
                               8, 7, True)),
    ("bias", lambda: (None, None, [leaf(32, 2)], "t5", 2, 3, 5, 8, 2.0, 0.0, False, 0)),
    ("bias_backward", lambda: (draw(2, 3, 5), torch.arange(3), None, [draw(32, 2)], "t5", 2, 3, 5, 8, 2.0, 0.0, False, 0)),
    ("cos_sin", lambda: (torch.arange(6)[None], [], "rope", 8, 8, "half", torch.float32)),
    ("rotate_", lambda: (draw(2, 4, 6, 8), None, [], "rope", 1.0, False, False)),
])
def test_opcheck(op, args):
    torch.library.opcheck(getattr(torch.ops.posenc, op).default, args())


def loss(q, k, v):
    return pt.attend(*pt.rotate(q, k, "rope", q_positions=2), v, "alibi", causal=True).square().sum()


def test_torch_func_agrees_with_backward():
    q, k, v = leaf(1, 2, 3, 4, seed=1), draw(1, 2, 3, 4, seed=2), draw(1, 2, 3, 4, seed=3)
    loss(q, k, v).backward()
    assert torch.equal(grad(loss)(q.detach(), k, v), q.grad)
    many = draw(3, 1, 2, 3, 4)
    each = torch.stack([grad(loss)(x, k, v) for x in many])
    assert torch.equal(vmap(grad(loss), (0, None, None))(many, k, v), each)
    assert torch.allclose(vmap(lambda x: pt.rotate(x))(many), pt.rotate(many.flatten(0, 1)).view_as(many))
    assert jacrev(lambda x: pt.rotate(x, q_positions=1))(draw(1, 1, 1, 4)).shape == (1, 1, 1, 4) * 2


def mapped():
    """name -> a function of one item, and three items."""
    k, v, bias, at = draw(2, 2, 5, 8, seed=1), draw(2, 2, 5, 8, seed=2), pt.Attention("t5", 2, 8).double(), torch.arange(5)
    many, late = draw(3, 2, 2, 5, 8), at + torch.arange(3)[:, None]
    seen = torch.arange(30).reshape(3, 2, 5) % 4 != 1
    grid, rows, table = torch.arange(30).reshape(3, 5, 2), draw(3, 2, 5, 8), pt.Input("learned", 8, L=16).double()
    return {
        "attention": (lambda q, s: pt.attend(q, k, v, "rope+alibi", key_allowed=s), (many, seen)),
        "attention, a key for all": (lambda q, s: pt.attend(q, k, v, "alibi", key_allowed=s), (many, seen[:, :1])),
        "attention, positions": (lambda q, p: pt.attend(q, k, v, "rope+alibi", q_positions=p, k_positions=p), (many, late)),
        "attention, positions of each": (lambda q, p: pt.attend(q, k, v, "rope", q_positions=p, k_positions=p),
                                         (many, late[:, None].expand(3, 2, 5))),
        "attention, its gradient": (grad(lambda q: bias(q, k, v).square().sum()), (many,)),
        "rotation": (lambda q: pt.rotate(q, k, q_positions=at)[0], (many,)),
        "rotation, coordinates": (lambda q, p: pt.rotate(q, encoding="rope[axes=2:sections=2x2]", q_positions=p), (many, grid)),
        "rotation, its gradient": (grad(lambda q: pt.rotate(q).pow(3).sum()), (many,)),
        "rows": (lambda x, p: table(x, p), (rows, late)),
        "rows without a batch": (lambda x, p: table(x, p), (rows[:, 0], late)),
        "rows, their gradient": (grad(lambda x: table(x).pow(3).sum()), (rows,)),
        "rotary": (lambda x, p: pt.Rotary("rope", 8)(x, p)[0], (rows, late[:, None])),
        "parameters, item by item": (lambda p: torch.func.functional_call(bias, {"table": p}, (k, k, v)), (draw(3, 32, 2),)),
        "a bias, item by item": (lambda p: pt.bias("t5", H=2, Lq=5, Lk=5, params={"table": p}), (draw(3, 32, 2),)),
        "gradients of parameters, item by item": (grad(lambda p, q: pt.attend(q, k, v, "t5", params={"table": p}).pow(3).sum(), 0),
                                                  (draw(3, 32, 2), many)),
    }


@pytest.mark.parametrize("name, runs", [
    ("attention", 1), ("attention, a key for all", 1), ("attention, positions", 1), ("attention, positions of each", 1),
    ("attention, its gradient", 2), ("rotation", 1), ("rotation, coordinates", 1), ("rotation, its gradient", 2), ("rows", 1),
    ("rows without a batch", 1), ("rows, their gradient", 2), ("rotary", 0), ("parameters, item by item", 3),
    ("a bias, item by item", 3), ("gradients of parameters, item by item", 6)])
def test_vmap_folds_the_mapped_axis_into_the_batch(name, runs, monkeypatch):
    f, tensors = mapped()[name]
    want, made = torch.stack([f(*each) for each in zip(*tensors)]), []
    for plan in ("_attend_plan", "_rotation_plan", "_rows_plan", "_bias_args"):
        monkeypatch.setattr(pt._ops, plan, lambda *a, old=getattr(pt._ops, plan): made.append(1) or old(*a))
    assert torch.equal(vmap(f)(*tensors), want) and len(made) == runs
    last = [x.movedim(0, -1) for x in tensors]
    assert torch.equal(vmap(f, -1)(*last), want)
    twice = [torch.stack([x, x]) for x in tensors]
    assert torch.equal(vmap(vmap(f))(*twice), torch.stack([want, want]))


@pytest.mark.parametrize("backend", ["aot_eager", "eager"])
def test_torch_compile_takes_the_whole_graph(backend):
    q, k, v = leaf(1, 2, 3, 4, seed=1), draw(1, 2, 3, 4, seed=2), draw(1, 2, 3, 4, seed=3)
    want, = torch.autograd.grad(loss(q, k, v), q)
    torch.compiler.reset()
    got, = torch.autograd.grad(torch.compile(loss, fullgraph=True, backend=backend)(q, k, v), q)
    assert torch.equal(got, want)
    torch.compiler.reset()
    functional = torch.compile(lambda q, k, v: grad(loss)(q, k, v), fullgraph=True, backend=backend)
    assert torch.equal(functional(q.detach(), k, v), want)
    many = draw(2, 1, 2, 3, 4)
    each = lambda many, k, v: vmap(lambda q: pt.attend(*pt.rotate(q, k), v, "alibi", q_positions=torch.arange(3)))(many)
    assert torch.equal(torch.compile(each, fullgraph=True, backend=backend)(many, k, v), each(many, k, v))


def test_export_keeps_the_operators():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = pt.Attention("t5", 2, 4, causal=True)

        def forward(self, q):
            return self.attention(q, q, q)
    net, q = Net(), torch.randn(1, 2, 3, 4)
    program = torch.export.export(net, (q,))
    assert "posenc.attend" in str(program.graph) and torch.equal(program.module()(q), net(q))


def test_fake_tensors_have_the_shapes_and_strides_of_real_ones():
    from torch._subclasses import FakeTensorMode
    q = torch.randn(2, 3, 4, 8).transpose(1, 2)
    want = pt.attend(q, q, q), pt.rotate(q)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        f = mode.from_tensor(q)
        got = pt.attend(f, f, f), pt.rotate(f)
    assert [(x.shape, x.stride()) for x in got] == [(x.shape, x.stride()) for x in want]


def test_checkpoints_and_strides_of_zero():
    from torch.utils.checkpoint import checkpoint
    q, k, v = leaf(1, 2, 3, 4, seed=1), leaf(1, 2, 3, 4, seed=2), leaf(1, 2, 3, 4, seed=3)
    want = torch.autograd.grad(pt.attend(q, k, v, "alibi").sum(), (q, k, v))  # the cotangent of sum() has strides of 0
    got = torch.autograd.grad(checkpoint(lambda *a: pt.attend(*a, "alibi"), q, k, v, use_reentrant=False).sum(), (q, k, v))
    assert all(map(torch.equal, got, want))


def test_a_lazy_negation_counts():
    z = torch.randn(1, 1, 2, 4, dtype=torch.complex128).conj().imag
    assert z.is_neg() and torch.equal(pt.rotate(z), pt.rotate(z.resolve_neg()))


def test_half_types_views_and_empty_tensors():
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        q = torch.randn(1, 3, 2, 16).to(dtype)[..., ::2]
        got = pt.rotate(q, q_positions=5)
        assert got.dtype == dtype
        assert (got.double() - pt.rotate(q.double(), q_positions=5)).abs().max() < {torch.float32: 1e-6}.get(dtype, 0.05)
    empty = torch.zeros(1, 2, 0, 8)
    assert pt.rotate(empty).shape == empty.shape
    o, lse = pt.attend(torch.zeros(1, 2, 3, 8), empty, empty, return_lse=True)
    assert (o == 0).all() and (lse == -torch.inf).all()


def test_rotating_in_place_counts_as_a_change():
    x = torch.randn(1, 1, 2, 4)
    before, version = x.clone(), x._version
    assert pt.rotate_(x, positions=3) is x and x._version > version and torch.equal(x, pt.rotate(before, q_positions=3))
    with pytest.raises(posenc.PosencError, match="rotate_ is for caches"):
        pt.rotate_(x.requires_grad_())


def test_posenc_itself_takes_tensors_and_keeps_their_gradients():
    q = leaf(1, 2, 3, 4)
    assert posenc.rotate(q).requires_grad and posenc.attend(q, q, q).requires_grad
    assert isinstance(posenc.encode("sinusoidal", x=q[0]), torch.Tensor)


def test_other_devices_are_refused_with_a_fix():
    with pytest.raises(posenc.DeviceError, match="k lies on meta; .* call .cpu"):
        pt._ops._refuse(["q", "k"])(torch.zeros(1, 1, 1, 4), torch.zeros(1, 1, 1, 4, device="meta"))
    with pytest.raises(posenc.DtypeError, match="type"):
        pt.rotate(torch.zeros(1, 1, 1, 4, dtype=torch.int16))


def test_modules_train_and_save():
    torch.manual_seed(0)
    net = pt.Attention("shaw", 2, 4, causal=True)
    q = torch.randn(2, 2, 5, 4)
    step = torch.optim.SGD(net.parameters(), lr=0.01)
    before = net(q, q, q).square().sum()
    before.backward()
    step.step()
    assert net(q, q, q).square().sum() < before
    again = pt.Attention("shaw", 2, 4, causal=True, seed=7)
    again.load_state_dict(net.state_dict())
    assert torch.equal(again(q, q, q), net(q, q, q))
    table = pt.Input("learned", 4, L=8)
    table(torch.zeros(2, 5, 4)).sum().backward()
    assert table.table.grad is not None
    assert torch.equal(pt.Bias("alibi", 4)(3, 3)[0], torch.from_numpy(posenc.bias("alibi", H=4, Lq=3, Lk=3))[0])


@pytest.mark.parametrize("name", names("score"))
def test_gradients_of_a_bias_by_itself(name):
    e = posenc.Encoding(name, **SMALL.get(name, {}))
    if e._core.token_names():  # what is added follows from the tokens
        with pytest.raises(posenc.PosencError):
            pt.bias(e, H=2, Lq=6, Lk=6, D=8)
        return
    start = e.init(H=2, D=8, Lq=6, Lk=6, dtype="float64", seed=3)
    rng = np.random.default_rng(0)
    params = {n: torch.tensor(a + (0.05 + 0.1 * rng.random(a.shape))).requires_grad_() for n, a in start.items()}
    run = lambda *values: pt.bias(e, H=2, Lq=6, Lk=6, D=8, params=dict(zip(params, values)), causal=e.causal_only)
    if params:
        assert torch.autograd.gradcheck(run, tuple(params.values()), atol=1e-6, fast_mode=True)
    want = posenc.bias(e, H=2, Lq=6, Lk=6, D=8, params={n: p.detach().numpy() for n, p in params.items()}, dtype="float64",
                       causal=e.causal_only)
    assert np.abs(run(*params.values()).detach().numpy() - want).max() < 1e-6


def test_a_bias_trains_under_sdpa_as_in_attention():
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, 4, 7, 8, dtype=torch.float64) for _ in range(3))
    mine, theirs = pt.Attention("t5[scale=0.25]", 4, 8).double(), pt.Bias("t5[scale=0.25]", 4, D=8).double()
    a = mine(q, k, v)
    b = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=theirs(7, 7)[None], scale=0.25)
    a.square().sum().backward(), b.square().sum().backward()
    assert torch.allclose(a, b, atol=1e-12) and torch.allclose(mine.table.grad, theirs.table.grad, atol=1e-10)


@pytest.mark.parametrize("spec", ["alibi", "t5", "kerple_log"])
def test_score_mod_adds_what_the_matrix_has(spec):
    module = pt.Bias(spec, 4, D=8)
    for Lq, Lk in ((5, 5), (2, 6)):
        add, want = module.score_mod(Lq, Lk), module(Lq, Lk)
        h, i, j = torch.meshgrid(torch.arange(4), torch.arange(Lq), torch.arange(Lk), indexing="ij")
        assert torch.allclose(add(torch.zeros(4, Lq, Lk), 0, h, i, j), want, atol=1e-6)


@pytest.mark.parametrize("spec", ["rope", "rope[schedule=dynamic:factor=2:original_length=4:max_length=8]", "rope[axes=2:sections=4x4]"])
def test_rotary_in_a_compiled_graph_and_on_another_device(spec):
    rotary = pt.Rotary(spec, 16)
    lead = (1, 6, 2) if rotary.coordinates > 1 else (1, 6)
    x, at = torch.zeros(1, 6, 16), torch.arange(6 * lead[-1] if len(lead) > 2 else 6).reshape(lead)
    want = rotary(x, at)
    got = torch.compile(lambda x, at: rotary(x, at), fullgraph=True, backend="aot_eager")(x, at)
    assert all(torch.equal(a, b) for a, b in zip(got, want))
    exported = torch.export.export(rotary, (x, at)).module()(x, at)
    assert all(torch.equal(a, b) for a, b in zip(exported, want))
    meta = rotary(x.to("meta"), at.to("meta"))
    assert all(a.is_meta and a.shape == b.shape and a.dtype == b.dtype for a, b in zip(meta, want))


def test_flex_attention_by_score_mod_is_attention_with_the_bias():
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    q, k, v = (torch.randn(1, 4, 8, 16, generator=torch.Generator().manual_seed(n)) for n in range(3))
    bias = pt.Bias("t5", 4)
    with torch.no_grad():
        bias.table.normal_(generator=torch.Generator().manual_seed(5))
        got = flex.flex_attention(q, k, v, score_mod=bias.score_mod(8, 8), scale=1.0)
    assert torch.allclose(got, pt.attend(q, k, v, "t5", params=bias.params()), atol=1e-5)
