# SPDX-License-Identifier: MIT
"""inspect: which encoding a model was trained with, from its own file."""
from __future__ import annotations

import json
import os
from typing import Any, Iterator, Mapping, NamedTuple

import numpy as np

from . import _core
from ._encoding import Encoding


class Warning_(NamedTuple):
    code: str
    sentence: str


class Group(NamedTuple):
    """Layers that are alike. facts: name -> (value, the rule that gave it)."""
    encoding: Encoding
    layers: tuple[int, ...]
    stack: str | None
    is_input: bool
    is_all: bool
    sizes: Mapping[str, int]
    facts: Mapping[str, tuple[Any, str]]


_SIZES = ("B", "H", "G", "Lq", "Lk", "D", "Dv", "d_model", "L")


def _array(shape: tuple[int, ...], data: bytes) -> np.ndarray:
    count = int(np.prod(shape, dtype=np.int64))
    return np.frombuffer(data, np.float64 if len(data) == 8 * count else np.float32).reshape(shape)


class Model(Mapping[str, Any]):
    """What a model's file says of its positions; as a mapping, what `posenc inspect --json` prints.

    It never changes, so that a copy is the model itself. It is pickled as what was inspected: a path, or the config.
    """

    def __init__(self, core: Any, source: Any):
        self._core, self._source = core, source
        self._json = json.loads(core.json(-1))
        self._about = core.describe()
        self.warnings = tuple(Warning_(*w) for w in core.warnings())
        self.groups = tuple(self._group(g) for g in core.groups())

    @staticmethod
    def _group(g: Mapping[str, Any]) -> Group:
        values = {name: _array(*value) for name, value in g["params"].items()}
        return Group(Encoding._with(g["spec"], values), tuple(g["layers"]), g["stack"], g["is_input"], g["is_all"],
                     {n: s for n, s in zip(_SIZES, g["dims"]) if s}, g["facts"])

    def __reduce__(self) -> Any:
        return inspect, (self._source,)

    def __copy__(self) -> Model:
        return self

    def __deepcopy__(self, memo: Any) -> Model:
        return self

    def __getitem__(self, key: str) -> Any:
        return self._json[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._json)

    def __len__(self) -> int:
        return len(self._json)

    def params(self, checkpoint: str | os.PathLike[str] | None = None, *, group: int = 0,
               layer: int | None = None) -> dict[str, np.ndarray]:
        """The parameters that a group's encoding learns, out of a .safetensors, its index, or an .npz."""
        found = self._core.checkpoint(group, -1 if layer is None else layer, checkpoint)
        return {name: _array(*value).copy() for name, value in found.items()}

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["_about"][name]
        except KeyError:
            raise AttributeError(f"a Model has no {name}") from None

    def _layer(self, layer: int | None) -> Group:
        """The group of a layer (not the embeddings); without a layer, where all have one encoding."""
        if layer is not None:
            at = self._core.group_of(layer)
            if at < 0:
                raise self._layer_without(layer)
            return self.groups[at]
        inner = [g for g in self.groups if not g.is_input] or list(self.groups)
        found = {g.encoding for g in inner}
        if len(found) != 1:
            raise _core.PosencError(f"the model has {len(found)} different encodings; say which layer: layer=0"
                                    if found else "the model's file tells no encoding")
        return inner[0]

    def _layer_without(self, layer: int) -> _core.PosencError:
        if self.groups and all(g.is_input for g in self.groups):
            return _core.PosencError(f"layer {layer} has no encoding of its own: this model's positions are in the embeddings "
                                     f"({self.groups[0].encoding.spec}); leave layer out")
        return _core.PosencError(f"layer {layer} has no attention here")

    def encoding(self, layer: int | None = None) -> Encoding:
        """Of a layer (not of the embeddings); without a layer, where all are alike."""
        return self._layer(layer).encoding

    def __repr__(self) -> str:
        kinds = ", ".join(dict.fromkeys(g.encoding.spec for g in self.groups))
        return f"<posenc.Model {self._about['model_type']}: {kinds}; {len(self.warnings)} warnings>"

    def _repr_html_(self) -> str:
        from ._html import model_card
        return model_card(self)


def inspect(source: Any) -> Model:
    """Reads a config.json, .gguf or .safetensors by its path; its bytes; a dict; transformers' PretrainedConfig.

    >>> inspect({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 128}).model_type
    'gpt2'
    """
    if isinstance(source, Model):
        return source
    if hasattr(source, "to_json_string"):
        source = source.to_json_string(use_diff=False).encode()
    elif isinstance(source, Mapping):
        source = json.dumps(source).encode()
    elif isinstance(source, (str, os.PathLike)):
        return Model(_core.Model(source), os.path.abspath(source))
    if not isinstance(source, (bytes, bytearray)):
        raise TypeError(f"source is a {type(source).__name__}; it must be a path, bytes, a dict or a PretrainedConfig")
    return Model(_core.Model(bytes(source), "the config"), bytes(source))
