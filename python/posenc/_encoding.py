# SPDX-License-Identifier: MIT
"""Encoding: what a SPEC describes, immutable; parameters by name."""
from __future__ import annotations

import functools
import re
from typing import Any, Callable, Mapping, NamedTuple

import numpy as np

from . import _arrays, _core


class Setting(NamedTuple):
    name: str
    type: str
    default: str
    range: str
    meaning: str


class Info(NamedTuple):
    """What the registry knows of an encoding (`posenc list NAME`). scale: what q . k is multiplied by, of scores."""
    name: str
    title: str
    place: str
    paper: str
    models: str
    by_distance: bool
    causal_only: bool
    by_word: bool
    beyond: str
    formula: str
    settings: tuple[Setting, ...]
    scale: str = "1/sqrt(D)"


class ParamInfo(NamedTuple):
    shape: tuple[int, ...]
    trainable: bool
    place: str
    letters: str
    init: str
    meaning: str


@functools.lru_cache
def encodings() -> Mapping[str, Info]:
    """Every encoding by name.

    >>> encodings()["alibi"].place
    'score'
    """
    rows = _core.registry()
    return {row["name"]: Info(**{f: row[f] for f in Info._fields if f != "settings"},
                              settings=tuple(Setting(*s) for s in row["settings"])) for row in rows}


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ":".join(map(_word, value))
    if hasattr(value, "tolist"):  # arrays and scalars of NumPy and torch
        return _word(value.tolist())
    return repr(value) if isinstance(value, float) else str(value)


def _settings(settings: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={_word(value)}" for name, value in settings.items() if value is not None)


def _parsed(spec: str, settings: str) -> Any:
    try:
        return _core.Encoding(spec, settings)
    except _core.PosencError:
        raise
    except ValueError as error:  # a NUL, or half of a surrogate pair
        raise _core.PosencError(f"{(spec + ' ' + settings).strip()!r} is no SPEC: {error}") from None


def _number(text: str) -> str:
    """A setting's value with one spelling for each number: 5e5 is 500000.0, and 2x3 is 2.0:3.0, as lists may be written."""
    try:
        return ":".join(repr(float(word)) for word in re.split("[:x]", text))
    except ValueError:
        return text


_PART, _SETTING = re.compile(r"(\w+)\[([^\]]*)\]"), re.compile(r"(\w+)=([^=]*?)(?=:\w+=|$)")


def _each_setting(spec: str, change: Callable[[str, str, str], str]) -> str:
    """spec with the value of each setting changed by change(part, name, value)."""
    return _PART.sub(lambda p: f"{p[1]}[{_SETTING.sub(lambda s: f'{s[1]}={change(p[1], s[1], s[2])}', p[2])}]", spec)


@functools.lru_cache(maxsize=256)
def _meaning(spec: str) -> str:
    """One text for all SPECs that mean the same; the library has already put places and settings in order."""
    defaults = lambda part: {s.name: s.default for s in encodings()[part].settings} if part in encodings() else {}

    def usual(part: str, name: str, value: str) -> str:
        default = defaults(part).get(name, value)
        return default if _number(default) == _number(value) else value
    plain = _each_setting(spec, usual)
    if plain != spec:  # the library leaves out what it has as a default
        plain = _core.Encoding(plain).spec()
    return _each_setting(plain, lambda part, name, value: _number(value))


class Encoding:
    """One encoding, or several joined by '+', with their settings; immutable, hashable, picklable.

    Two are equal where their settings mean the same, however these are written.

    >>> Encoding("t5", num_buckets=16, bidirectional=False)
    Encoding('t5[num_buckets=16:bidirectional=no]')
    >>> Encoding("sinusoidal") + "rope[base=5e5]"
    Encoding('sinusoidal+rope[base=5e5]')
    >>> Encoding("rope", base=5e5) == Encoding("rope[base=5e5]")
    True
    """
    __slots__ = ("_core", "spec", "_values", "_key", "places", "is_sized", "has_params", "_fixed", "__weakref__")
    spec: str

    def __init__(self, spec: str | Encoding, /, **settings: Any):
        if not isinstance(spec, (str, Encoding)):
            raise _wrong_type(spec)
        self._set(str(spec), settings, spec._values if isinstance(spec, Encoding) else {})

    @classmethod
    def _with(cls, spec: str, values: Mapping[str, Any]) -> Encoding:
        """Of a SPEC and values of its parameters, as a model's file holds them."""
        self = object.__new__(cls)
        self._set(spec, {}, values)
        return self

    def _set(self, spec: str, settings: Mapping[str, Any], values: Mapping[str, Any]) -> None:
        core = _parsed(spec, _settings(settings))
        held = {name: np.array(value, np.float64) for name, value in values.items()}
        for value in held.values():
            value.flags.writeable = False
        put = functools.partial(object.__setattr__, self)
        put("_core", core)
        put("spec", core.spec())
        put("_values", held)
        put("_key", (_meaning(self.spec), tuple((n, held[n].shape, held[n].tobytes()) for n in sorted(held))))
        put("places", frozenset(core.parts()))
        put("is_sized", _is_sized(core))
        put("has_params", bool(core.params(None)))
        put("_fixed", {})

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an Encoding does not change; make another: Encoding({self.spec!r}, {name}=...)")

    def __repr__(self) -> str:
        return f"Encoding({self.spec!r})"

    def __str__(self) -> str:
        return self.spec

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoding) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __reduce__(self) -> Any:
        return Encoding._with, (self.spec, self._values)

    def __add__(self, other: Encoding | str) -> Encoding:
        other = encoding(other)
        return Encoding._with(f"{self.spec}+{other.spec}", {**self._values, **other._values})

    @classmethod
    def from_config(cls, source: Any, *, layer: int | None = None) -> Encoding:
        """Of a model's config.json, .gguf or .safetensors; a dict or a PretrainedConfig.

        >>> Encoding.from_config({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4,
        ...                       "num_hidden_layers": 2, "rope_theta": 500000.0}).parts["rotary"].name
        'rope'
        """
        from ._model import inspect
        return inspect(source).encoding(layer)

    @property
    def parts(self) -> Mapping[str, Info]:
        """Place -> what acts there."""
        return {place: encodings()[name] for place, name in self._core.parts().items()}

    @property
    def has_rows(self) -> bool:
        """Does the input part say by its own settings how many positions have a row?"""
        return not self.is_sized

    @property
    def sees_segments(self) -> bool:
        """Do scores depend on segments, which then are no mask?"""
        return "xlnet" in self._core.parts().values()

    @property
    def causal_only(self) -> bool:
        return any(info.causal_only for info in self.parts.values())

    def _rows(self, dims: tuple) -> list:
        return self._core.params(dims)

    def params(self, *, H: int = 1, D: int = 0, L: int | None = None, G: int | None = None, Dv: int | None = None,
               d_model: int | None = None, Lq: int | None = None, Lk: int | None = None) -> dict[str, ParamInfo]:
        """Its parameters for these sizes.

        >>> Encoding("t5").params(H=8, D=64)["table"].shape
        (32, 8)
        """
        return {row[0]: ParamInfo(*row[1:]) for row in self._rows(dims(H, D, L, G, Dv, d_model, Lq, Lk))}

    def init(self, *, H: int = 1, D: int = 0, L: int | None = None, G: int | None = None, Dv: int | None = None,
             d_model: int | None = None, Lq: int | None = None, Lk: int | None = None, seed: int = 0,
             dtype: Any = "float32") -> dict[str, np.ndarray]:
        """New parameters as the encoding's source draws them; what a model's file holds is taken from there."""
        return self._init(dims(H, D, L, G, Dv, d_model, Lq, Lk), seed, _arrays.dtype(dtype))

    def _init(self, sizes: tuple, seed: int, dtype: Any) -> dict[str, np.ndarray]:
        made = {row[0]: np.empty(row[1], dtype) for row in self._rows(sizes)}
        self._core.init(sizes, tuple(made.values()), seed)
        for name, value in self._values.items():
            if name in made:
                made[name][...] = _of_shape(value, made[name].shape, name)
        return made

    def _fill(self, given: Mapping[str, Any] | None, sizes: tuple, places: tuple[str, ...]) -> tuple:
        """What a run reads: a tuple in the encoding's order, None where another place's parameter stands."""
        given = {} if given is None else _arrays.named(given)
        if not self.has_params:
            if given:
                raise _core.PosencError(f"params has {', '.join(given)}; {self.spec} has no parameters")
            return ()
        out: list = []
        rows = self._rows(sizes)
        for name, shape, trainable, place, *_ in rows:
            value = given.pop(name, self._values.get(name))
            if place not in places:
                value = None
            elif value is None and trainable:
                raise _core.PosencError(f"params lacks {name} {list(shape)}, which {self.spec} learns{also_has(given, rows)}; "
                                        f"Encoding.init(...) makes one")
            elif value is None:
                value = self._initial(sizes, name)
            else:
                value = _arrays.numbers(value, name)
                if value.dtype not in (np.float32, np.float64):
                    value = value.astype(np.float32)
                value = np.ascontiguousarray(value).reshape(value.shape)  # which keeps no axes at all
            out.append(value)
        if given:
            raise _core.PosencError(f"params has {', '.join(given)}; {self.spec} has no such parameter")
        return tuple(out)

    def _initial(self, sizes: tuple, name: str) -> np.ndarray:
        if sizes not in self._fixed:
            if len(self._fixed) >= 16:
                self._fixed.clear()
            self._fixed[sizes] = self._init(sizes, 0, np.dtype(np.float64))
        return self._fixed[sizes][name]

    def _repr_html_(self) -> str:
        from ._html import encoding_card
        return encoding_card(self)


def also_has(given: Mapping[str, Any], rows: Any) -> str:
    """Of a parameter that is missing: what stands in its place may be its name misspelt."""
    unknown = sorted(given.keys() - {row[0] for row in rows})
    return f"; it has {', '.join(unknown)}, which is no parameter of it" if unknown else ""


def _of_shape(value: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The same numbers; axes of one element may be there or not, and no others."""
    if [n for n in value.shape if n != 1] != [n for n in shape if n != 1]:
        raise _core.PosencError(f"{name} has the shape {list(value.shape)}; it must be {list(shape)}")
    return value.reshape(shape)


def _is_sized(core: Any) -> bool:
    """Does a parameter's shape follow the lengths of a run? Then plans are made for exactly these."""
    if not core.params(None):
        return False
    try:
        a, b = ([row[1] for row in core.params((1, 12, 12, L, L, 12, 12, 144, 0))] for L in (36, 64))
    except _core.PosencError:
        return True
    return a != b


def dims(H: int, D: int, L: int | None, G: int | None = None, Dv: int | None = None, d_model: int | None = None,
         Lq: int | None = None, Lk: int | None = None, B: int = 1) -> tuple:
    """The nine sizes of posenc_dims."""
    L = L or 0
    return (B, H, G or H, Lq or L or 1, Lk or L or Lq or 1, D, Dv or D, d_model or H * D, L)


@functools.lru_cache(maxsize=256)
def _named(spec: str) -> Encoding:
    return Encoding(spec)


def encoding(e: Encoding | str) -> Encoding:
    """An Encoding, of its SPEC too."""
    if type(e) is Encoding:
        return e
    if isinstance(e, str):
        return _named(e)
    raise _wrong_type(e)


def _wrong_type(e: Any) -> TypeError:
    return TypeError(f"encoding is a {type(e).__name__}; it must be an Encoding or a SPEC such as 'rope[base=5e5]'")
