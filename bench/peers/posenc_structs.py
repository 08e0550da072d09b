# SPDX-License-Identifier: MIT
"""posenc_structs.py: the structures of include/posenc/posenc.h for ctypes, field by field in its order

ctypes believes whatever stands here: a structure without the header's newest field is too short, and the library then reads
what lies behind it. So tests/bench/peer_structs.py, which needs no NumPy, holds this file against the header: names, order, places
and sizes of the fields and the constants.
"""
import ctypes as c

MAX_DIMS = 6
F32 = 0
CAUSAL = 1
RUN_ROTATE, RUN_ATTEND = 1 << 10, 1 << 12


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("dtype", c.c_int), ("ndim", c.c_int32),
                ("shape", c.c_int64 * MAX_DIMS), ("stride", c.c_int64 * MAX_DIMS)]


class Positions(c.Structure):
    _fields_ = [("start", c.c_double), ("step", c.c_double), ("array", Tensor)]


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 244)]


class Dims(c.Structure):
    _fields_ = [(n, c.c_int64) for n in ("B", "H", "G", "Lq", "Lk", "D", "Dv", "d_model", "L")]


class Allocator(c.Structure):
    _fields_ = [("size", c.c_size_t)] + [(n, c.c_void_p) for n in ("allocate", "release", "context")]


class Options(c.Structure):
    _fields_ = [("size", c.c_size_t), ("executor", c.c_int), ("mask", c.c_int), ("window", c.c_int64),
                ("threads", c.c_int), ("tile_q", c.c_int64), ("tile_k", c.c_int64), ("max_distances", c.c_int64),
                ("products", c.c_int), ("isa", c.c_char_p), ("parallel_for", c.c_void_p),
                ("parallel_context", c.c_void_p), ("cancel", c.c_void_p), ("allocator", c.POINTER(Allocator))]


class Workspace(c.Structure):
    _fields_ = [("size", c.c_size_t), ("memory", c.c_void_p), ("bytes", c.c_size_t), ("threads", c.c_int)]


class AttendIn(c.Structure):
    _fields_ = ([("size", c.c_size_t)] + [(n, Tensor) for n in ("q", "k", "v")] + [(n, Positions) for n in ("q_pos", "k_pos")] +
                [(n, Tensor) for n in ("key_allowed", "allowed", "q_segments", "k_segments")] +
                [("params", c.POINTER(Tensor))] +
                [(n, Tensor) for n in ("k_lengths", "k_pages", "k_scale", "v_scale")] +
                [("bound", c.c_void_p), ("tokens", c.POINTER(Tensor)), ("sums", c.POINTER(Tensor))])


class AttendOut(c.Structure):
    _fields_ = [("size", c.c_size_t), ("o", Tensor), ("lse", Tensor)]


class RotateIo(c.Structure):
    _fields_ = [("size", c.c_size_t), ("q", Tensor), ("k", Tensor), ("q_pos", Positions), ("k_pos", Positions), ("to_q", Tensor),
                ("to_k", Tensor), ("direction", c.c_int), ("params", c.POINTER(Tensor)), ("q_table", Tensor),
                ("k_table", Tensor), ("bound", c.c_void_p), ("tokens", c.POINTER(Tensor)), ("sums", c.POINTER(Tensor))]


STRUCTURES = {
    "posenc_tensor": Tensor,
    "posenc_positions": Positions,
    "posenc_error": Error,
    "posenc_dims": Dims,
    "posenc_allocator": Allocator,
    "posenc_options": Options,
    "posenc_workspace": Workspace,
    "posenc_attend_in": AttendIn,
    "posenc_attend_out": AttendOut,
    "posenc_rotate_io": RotateIo,
}
CONSTANTS = {"POSENC_MAX_DIMS": MAX_DIMS, "POSENC_DTYPE_F32": F32, "POSENC_MASK_CAUSAL": CAUSAL,
             "POSENC_RUN_ROTATE": RUN_ROTATE, "POSENC_RUN_ATTEND": RUN_ATTEND}
