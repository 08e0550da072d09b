# SPDX-License-Identifier: MIT
"""with_onnxruntime.py [--threads N] [--length L]: onnxruntime's contributed operators beside libposenc, in turns

RotaryEmbedding on tokens x heads x 128, MultiHeadAttention (plain, and with a bias that is given) and GroupQueryAttention (causal) on
heads 8, width 64. Models of one node are made here with the package onnx; inputs and outputs are bound to memory once (IOBinding),
so that a call is the kernel and the session around it.
"""
import sys

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from posenc_call import Plan, arguments, in_turns, load, random_array, report

HEADS, WIDTH = 8, 64
ONNX_TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64,
              np.dtype(np.int32): TensorProto.INT32}


def session(op, inputs, names, outputs, threads, **attributes):
    """inputs: name -> array; names: the node's slots, "" where one is left out."""
    node = helper.make_node(op, names, outputs, domain="com.microsoft", **attributes)
    values = [helper.make_tensor_value_info(n, ONNX_TYPES[a.dtype], a.shape) for n, a in inputs.items()]
    graph = helper.make_graph([node], "one", values, [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)],
                              ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def bound(s, inputs, outputs):
    """(a function that runs once, a function that fetches the first output)"""
    binding = s.io_binding()
    kept = [ort.OrtValue.ortvalue_from_numpy(a) for a in inputs.values()]
    for name, value in zip(inputs, kept):
        binding.bind_ortvalue_input(name, value)
    for name in outputs:
        binding.bind_output(name)
    run = lambda: s.run_with_iobinding(binding)
    run.keep = kept
    return run, lambda: binding.copy_outputs_to_cpu()[0]


def rotation(lib, threads):
    for L, H in ((4096, 32), (32768, 8), (8, 32)):
        for layout in ("half", "interleaved"):
            x = random_array(1, L, H, 128)
            angle = np.outer(np.arange(L), 10000.0 ** (-np.arange(64) / 64))
            inputs = {"x": x.reshape(1, L, H * 128).copy(), "at": np.arange(L, dtype=np.int64)[None],
                      "cos": np.cos(angle).astype(np.float32), "sin": np.sin(angle).astype(np.float32)}
            s = session("RotaryEmbedding", inputs, list(inputs), ["y"], threads, num_heads=H,
                        interleaved=int(layout == "interleaved"))
            theirs, result = bound(s, inputs, ["y"])
            plan = Plan(lib, f"rope[layout={layout}]", 1, H, H, L, 128, 0, threads)
            theirs(), plan.rotate(x)()
            difference = np.abs(x.reshape(1, L, -1) - result()).max()
            report(f"rope {layout} f32 {L} x {H} x 128: RotaryEmbedding", in_turns(plan.rotate(x), theirs, threads), difference)


def flat(x):
    """[1,H,L,D] as [1,L,H*D], in memory of its own."""
    return np.ascontiguousarray(x.transpose(0, 2, 1, 3)).reshape(1, x.shape[2], -1)


def compare(lib, name, spec, causal, threads, arrays, op, inputs, names, outputs, **attributes):
    q, k, v, o = arrays
    ours = Plan(lib, spec, 1, HEADS, HEADS, q.shape[2], WIDTH, causal, threads).attend(o, q, k, v)
    try:
        theirs, result = bound(session(op, inputs, names, outputs, threads, **attributes), inputs, outputs)
        theirs(), ours()
    except Exception as reason:
        print(f"attention f32, {name}: {op} does not run here ({str(reason).splitlines()[0][:100]})")
        return
    report(f"attention f32 L {q.shape[2]}, {name}: {op}", in_turns(ours, theirs, threads), np.abs(flat(o) - result()).max())


def attention(lib, threads, L):
    arrays = [random_array(1, HEADS, L, WIDTH) for _ in range(4)]
    q, k, v, _ = arrays
    k[...], v[...] = k[:, ::-1], v[:, :, ::-1]
    rows = {"q": flat(q), "k": flat(k), "v": flat(v)}
    slots = ["q", "k", "v"]
    compare(lib, "plain, both ways", "nope", 0, threads, arrays, "MultiHeadAttention", rows, slots, ["o"], num_heads=HEADS)
    compare(lib, "causal", "nope", 1, threads, arrays, "MultiHeadAttention", rows, slots, ["o"], num_heads=HEADS,
            unidirectional=1)
    distance = np.abs(np.arange(L)[:, None] - np.arange(L)[None]).astype(np.float32)
    bias = {"bias": -(2.0 ** (-8.0 * (np.arange(HEADS) + 1) / HEADS))[:, None, None].astype(np.float32)[None] * distance}
    compare(lib, "alibi, both ways", "alibi", 0, threads, arrays, "MultiHeadAttention", {**rows, **bias},
            slots + ["", "", "bias"], ["o"], num_heads=HEADS)
    empty = {n: np.zeros((1, HEADS, 0, WIDTH), np.float32) for n in ("past_k", "past_v")}
    lengths = {"last": np.array([L - 1], np.int32), "total": np.array(L, np.int32)}
    compare(lib, "causal", "nope", 1, threads, arrays, "GroupQueryAttention", {**rows, **empty, **lengths},
            slots + ["past_k", "past_v", "last", "total"], ["o", "now_k", "now_v"], num_heads=HEADS, kv_num_heads=HEADS)


def main():
    args = arguments().parse_args()
    lib = load()
    print(f"onnxruntime {ort.__version__}, onnx {onnx.__version__}, libposenc {lib.posenc_version().decode()} "
          f"({lib.posenc_isa().decode()}), {args.threads} thread(s)")
    rotation(lib, args.threads)
    attention(lib, args.threads, args.length)


if __name__ == "__main__":
    sys.exit(main())
