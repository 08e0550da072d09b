# SPDX-License-Identifier: MIT
"""Positional encodings of Transformers, exact and differentiable.

>>> import numpy as np, posenc
>>> q = np.ones((1, 8, 16, 64), np.float32)
>>> posenc.rotate(q, q, "rope[base=5e5]")[0].shape
(1, 8, 16, 64)
>>> posenc.attend(q, q, q, "alibi", causal=True).shape
(1, 8, 16, 64)

Arrays in, arrays of the same library out: NumPy here; torch tensors go through posenc.torch, with gradients.
"""
from . import positions
from ._check import Finding, Report, check, patched, verify
from ._core import (DeviceError, DtypeError, FileError, FormatError, OutOfMemoryError, PosencError, UnsupportedError)
from ._core import isa, version as _version
from ._compare import Comparison, Progress, compare
from ._diagnose import Diagnosis, diagnose, diagnose_scores
from ._encoding import Encoding, Info, ParamInfo, Setting, encodings
from ._model import Group, Model, inspect
from ._plot import Picture, plot
from ._plans import get_threads, set_threads
from ._runs import (Angles, Frequencies, Grads, Pair, angles, attend, attend_backward, bias, bias_backward, cos_sin, encode, encode_backward,
                    frequencies, index_map, rerotate, rope, rotate, rotate_backward, scores, window_index)

version = __version__ = _version()
__all__ = ["Angles", "Comparison", "DeviceError", "Diagnosis", "DtypeError", "Encoding", "FileError", "Finding", "FormatError", "Frequencies", "Grads", "Group", "Info",
           "Model", "OutOfMemoryError", "Pair", "ParamInfo", "Picture", "PosencError", "Progress", "Report", "Setting", "UnsupportedError", "angles", "attend",
           "attend_backward", "bias", "bias_backward", "check", "compare", "cos_sin", "diagnose", "diagnose_scores", "encode", "encode_backward", "encodings", "frequencies", "get_threads",
           "index_map", "inspect", "isa", "patched", "plot", "positions", "rerotate", "rope", "rotate", "rotate_backward", "scores",
           "set_threads", "verify", "version", "window_index"]
