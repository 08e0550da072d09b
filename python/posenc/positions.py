# SPDX-License-Identifier: MIT
"""Positions by the rules of published models: arrays for q_positions, k_positions and encode."""
from __future__ import annotations

from typing import Any, NamedTuple, Sequence

import numpy as np

from . import _arrays, _core

__all__ = ["Segment", "detr", "fairseq", "from_mask", "segments"]


def from_mask(mask: Any) -> np.ndarray:
    """Hugging Face's rule for padded batches: cumsum(mask) - 1 where mask is not 0, else 1.

    >>> from_mask([[0, 0, 1, 1]]).tolist()
    [[1, 1, 0, 1]]
    """
    mask = _arrays.mask(mask, "mask")
    out = np.empty(mask.shape, np.int64)
    _core.positions_from_mask(mask, out)
    return out


def fairseq(tokens: Any, padding_idx: int = 1) -> np.ndarray:
    """fairseq's and RoBERTa's rule: padding stands at padding_idx, the others count from the next number.

    >>> fairseq([[5, 7, 1]]).tolist()
    [[2, 3, 1]]
    """
    tokens = _arrays.whole(tokens, "tokens").astype(np.int64, copy=False)
    out = np.empty(tokens.shape, np.int64)
    _core.positions_fairseq(tokens, padding_idx, out)
    return out


def detr(valid: Any, *, normalize: bool = False, eps: float = 1e-6) -> np.ndarray:
    """DETR's rule for padded images: valid [B,h,w] is true where the image is; [B,h*w,2], (y, x).

    >>> detr([[[1, 1]]])[0].tolist()
    [[1.0, 1.0], [1.0, 2.0]]
    """
    valid = _arrays.mask(valid, "valid")
    if valid.ndim != 3:
        raise _core.PosencError(f"valid has the shape {list(valid.shape)}; it must be [B,h,w]")
    out = np.empty((valid.shape[0], valid.shape[1] * valid.shape[2], 2))
    _core.positions_detr(valid, normalize, eps, out)
    return out


class Segment(NamedTuple):
    """A piece of a sequence of text, images and videos; posenc/positions.h says what each number means."""
    kind: str = "text"
    tokens: int = 0
    frames: int = 0
    rows: int = 0
    columns: int = 0
    merge: int = 0
    seconds: float = 0.0
    rate: float = 0.0
    sound: int = 0
    chunk: int = 0
    restart: bool = False


_KINDS = ("text", "image", "video", "lines")


def segments(pieces: Sequence[Segment], *, axes: int = 3, ignore_time: bool = False,
             whole_seconds: bool = False) -> tuple[np.ndarray, int]:
    """Positions [tokens,axes] of M-RoPE (axes=4: XD-RoPE), and rope_delta.

    >>> segments([Segment("text", tokens=1), Segment("image", rows=1, columns=2)])[0].tolist()
    [[0, 0, 0], [1, 1, 1], [1, 1, 2]]
    """
    rows = []
    for s in pieces:
        if s.kind not in _KINDS:
            raise _core.PosencError(f"a segment has the kind {s.kind!r}; it must be one of {', '.join(_KINDS)}")
        rows.append((_KINDS.index(s.kind), s.restart, s.tokens, s.frames, s.rows, s.columns, s.merge, float(s.seconds),
                     float(s.rate), s.sound, s.chunk))
    rules = (1 if ignore_time else 0) | (2 if whole_seconds else 0)
    tokens, _ = _core.positions_segments(tuple(rows), rules, None)
    out = np.empty((tokens, axes), np.int64)
    _, delta = _core.positions_segments(tuple(rows), rules, out)
    return out, delta
