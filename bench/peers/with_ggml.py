# SPDX-License-Identifier: MIT
"""with_ggml.py --libraries DIR [--threads N] [--length L]: ggml's rotation and flash attention beside libposenc, in turns

DIR holds libggml-base.so and libggml-cpu.so (cmake -DBUILD_SHARED_LIBS=ON; README.md). A graph of one node is made once and computed
again and again, its work buffer kept; ALiBi is ggml's own (max_bias 8), which wants a mask of Lq x Lk in float16, as a causal
mask does.
"""
import ctypes as c
import math
import sys

import numpy as np

from posenc_call import Plan, arguments, in_turns, load, random_array, report

HEADS, WIDTH = 8, 64
F32, F16, I32 = 0, 1, 26
NORMAL, NEOX = 0, 2


class InitParams(c.Structure):
    _fields_ = [("mem_size", c.c_size_t), ("mem_buffer", c.c_void_p), ("no_alloc", c.c_bool)]


class Cplan(c.Structure):
    _fields_ = [("work_size", c.c_size_t), ("work_data", c.c_void_p), ("n_threads", c.c_int), ("threadpool", c.c_void_p),
                ("abort_callback", c.c_void_p), ("abort_callback_data", c.c_void_p), ("use_ref", c.c_bool)]


class Ggml:
    """One context with its tensors; numbers are copied in, and results are looked at where they lie."""

    def __init__(self, folder, bytes_needed, threads):
        self.base = c.CDLL(f"{folder}/libggml-base.so", mode=c.RTLD_GLOBAL)
        self.cpu = c.CDLL(f"{folder}/libggml-cpu.so", mode=c.RTLD_GLOBAL)
        for name in ("ggml_init", "ggml_new_tensor_4d", "ggml_get_data", "ggml_new_graph", "ggml_rope_ext",
                     "ggml_rope_ext_inplace", "ggml_flash_attn_ext"):
            getattr(self.base, name).restype = c.c_void_p
        self.base.ggml_init.argtypes = [InitParams]
        self.base.ggml_get_data.argtypes = [c.c_void_p]
        self.cpu.ggml_graph_plan.restype = Cplan
        self.cpu.ggml_cpu_init()
        self.context = c.c_void_p(self.base.ggml_init(InitParams(bytes_needed + (64 << 20), None, False)))
        self.threads, self.kept = threads, []

    def array(self, tensor, shape, dtype):
        count = int(np.prod(shape))
        memory = (c.c_char * (count * np.dtype(dtype).itemsize)).from_address(self.base.ggml_get_data(tensor))
        return np.frombuffer(memory, dtype).reshape(shape)

    def put(self, numbers):
        """A tensor with these numbers; axes are numpy's, which ggml counts from behind."""
        kind = {np.dtype(np.float32): F32, np.dtype(np.float16): F16, np.dtype(np.int32): I32}[numbers.dtype]
        shape = ([1] * (4 - numbers.ndim) + list(numbers.shape))[::-1] if numbers.ndim != 1 else [numbers.shape[0], 1, 1, 1]
        tensor = c.c_void_p(self.base.ggml_new_tensor_4d(self.context, kind, *(c.c_int64(n) for n in shape)))
        self.array(tensor, numbers.shape, numbers.dtype)[...] = numbers
        return tensor

    def run_of(self, node):
        graph = c.c_void_p(self.base.ggml_new_graph(self.context))
        self.base.ggml_build_forward_expand(graph, c.c_void_p(node))
        plan = self.cpu.ggml_graph_plan(graph, self.threads, None)
        work = np.zeros(plan.work_size + 64, np.uint8)
        plan.work_data = work.ctypes.data
        self.kept.append(work)
        return lambda: self.cpu.ggml_graph_compute(graph, c.byref(plan))


def rotation(lib, folder, threads):
    for L, H in ((4096, 32), (32768, 8), (8, 32)):
        for layout, mode in (("half", NEOX), ("interleaved", NORMAL)):
            x = random_array(1, L, H, 128)
            g = Ggml(folder, x.nbytes, threads)
            there, at = g.put(x), g.put(np.arange(L, dtype=np.int32))
            numbers = [c.c_float(n) for n in (10000, 1, 0, 1, 32, 1)]
            node = g.base.ggml_rope_ext_inplace(g.context, there, at, None, 128, mode, 0, *numbers)
            theirs, ours = g.run_of(node), Plan(lib, f"rope[layout={layout}]", 1, H, H, L, 128, 0, threads).rotate(x)
            theirs(), ours()
            difference = np.abs(x - g.array(c.c_void_p(node), x.shape, np.float32)).max()
            report(f"rope {layout} f32 {L} x {H} x 128: rope_ext_inplace", in_turns(ours, theirs, threads), difference)
            g.base.ggml_free(g.context)


def attention(lib, folder, threads, L):
    q, k, v, o = (random_array(1, HEADS, L, WIDTH) for _ in range(4))
    k[...], v[...] = k[:, ::-1], v[:, :, ::-1]
    i = np.arange(L)
    distance = -np.abs(i[:, None] - i[None]).astype(np.float16)  # exact up to 2048, then rounded as float16 is
    causal = np.where(i[None] > i[:, None], -np.inf, 0).astype(np.float16)
    for name, spec, is_causal, mask, max_bias in (("plain, both ways", "nope", 0, None, 0), ("causal", "nope", 1, causal, 0),
                                                  ("causal + alibi", "alibi", 1, causal + distance, 8)):
        g = Ggml(folder, 5 * q.nbytes + L * L * 2, threads)
        there = [g.put(x) for x in (q, k, v)] + [None if mask is None else g.put(mask)]
        node = g.base.ggml_flash_attn_ext(g.context, *there, c.c_float(1 / math.sqrt(WIDTH)), c.c_float(max_bias), c.c_float(0))
        theirs = g.run_of(node)
        ours = Plan(lib, spec, 1, HEADS, HEADS, L, WIDTH, is_causal, threads).attend(o, q, k, v)
        theirs(), ours()
        result = g.array(c.c_void_p(node), (1, L, HEADS, WIDTH), np.float32).transpose(0, 2, 1, 3)
        report(f"attention f32 L {L}, {name}: flash_attn_ext", in_turns(ours, theirs, threads), np.abs(o - result).max())
        g.base.ggml_free(g.context)


def main():
    parser = arguments()
    parser.add_argument("--libraries", required=True)
    args = parser.parse_args()
    lib = load()
    print(f"ggml from {args.libraries}, libposenc {lib.posenc_version().decode()} ({lib.posenc_isa().decode()}), "
          f"{args.threads} thread(s)")
    rotation(lib, args.libraries, args.threads)
    attention(lib, args.libraries, args.threads, args.length)


if __name__ == "__main__":
    sys.exit(main())
