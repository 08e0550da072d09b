# SPDX-License-Identifier: MIT
"""compare: the engine of `posenc compare` in this process: which positional encoding suits a text."""
from __future__ import annotations

import json
import os
import re
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Sequence

import numpy as np

from . import _arrays, _core, _html
from ._encoding import Encoding


class Progress(NamedTuple):
    """Where a comparison stands. run: one that has just finished, as a dict, or None."""
    runs: int
    finished: int
    fraction: float
    seconds: float
    remaining: float
    run: Mapping[str, Any] | None


class Table(NamedTuple):
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: str


class Comparison(Mapping[str, Any]):
    """What came out; as a mapping, results.json of the command.

    tables: "losses", "tasks", "extension", "costs", "checks" and "answer", where they were measured. interrupted:
    Ctrl-C came first, and `missing` runs are not there.
    """

    def __init__(self, made: Mapping[str, Any], directory: str | None):
        self._results = json.loads(made["json"])
        self.tables = {name: Table(*t) for name, t in made["tables"].items()}
        self.interrupted, self.runs, self.missing = bool(made["interrupted"]), made["runs"], made["missing"]
        self.remarks = [made[n] for n in ("warning", "advice", "rates", "orders") if made[n]]
        self.directory = directory

    def __getitem__(self, name: str) -> Any:
        return self._results[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def report(self) -> str | None:
        """The page that was written, if a directory was named."""
        return None if self.directory is None else os.path.join(self.directory, "report.html")

    def __repr__(self) -> str:
        return f"<Comparison of {len(self['encodings'])} encodings{', interrupted' if self.interrupted else ''}>"

    def __str__(self) -> str:
        out = []
        if self.interrupted:
            out.append(f"Interrupted: {self.missing} of {self.runs} runs are missing.")
        for t in self.tables.values():
            cells = [t.columns, *t.rows]
            widths = [max(len(_first(row[c])) for row in cells) for c in range(len(t.columns))]
            out += ["  ".join(_first(x).ljust(w) for x, w in zip(row, widths)).rstrip() for row in cells]
            out += [t.notes.rstrip("\n"), ""]
        return "\n".join(out + self.remarks)

    def _repr_html_(self) -> str:
        return _html.comparison(self)


def _first(cell: str) -> str:
    """What a terminal shows of a cell: a page shows the rest below it."""
    return re.split("[\n\t]", cell, maxsplit=1)[0]


_MOST = {"tokens": 1 << 16, "token_bytes": 1 << 20}


def _ids(x: Any, name: str, dtype: Any) -> np.ndarray:
    ids = _arrays.numpy(x, name)
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise _core.PosencError(f"{name} has the type {ids.dtype} and {ids.ndim} dimensions; it must be whole numbers in one")
    wrong = np.flatnonzero((ids < 0) | (ids >= _MOST[name]))
    if len(wrong):
        raise _core.PosencError(f"{name}[{wrong[0]}] is {ids[wrong[0]]}; it must be 0 to {_MOST[name] - 1}")
    return np.ascontiguousarray(ids.astype(dtype))


def _text(text: Any) -> tuple[bytes, str]:
    """The bytes, and a name for titles. A str is the text itself, a path a file."""
    if isinstance(text, (list, tuple)):
        parts = [_text(t) for t in text]
        names = [n for _, n in parts]
        return b"".join(b for b, _ in parts), names[0] + (f" and {len(names) - 1} more" if names[1:] else "") if names else "text"
    if isinstance(text, os.PathLike):
        with open(text, "rb") as file:
            return file.read(), os.path.basename(os.fspath(text))
    if isinstance(text, str):
        if len(text) < 4096 and os.path.isfile(text):
            raise _core.PosencError(f"text is {text!r}, the name of a file; a str is the text itself: give pathlib.Path({text!r})")
        return text.encode(), "text"
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text), "text"
    raise TypeError(f"text is a {type(text).__name__}; it must be a str, bytes, a path, or a list of these")


def _list(value: Any) -> Any:
    return ",".join(map(_plain, value)) if isinstance(value, (list, tuple)) else _plain(value)


def _plain(value: Any) -> Any:
    return value.spec if isinstance(value, Encoding) else value if isinstance(value, str) else repr(value)


class _Bar:
    """tqdm's bar of the whole, with a line for each run that has finished."""

    def __init__(self, tqdm: Any):
        self.bar = tqdm(total=1.0, desc="compare", bar_format="{desc}: {percentage:3.0f}%|{bar}| {postfix}")

    def __call__(self, p: Progress) -> None:
        left = "" if p.remaining != p.remaining else f", {p.remaining:.0f} s left"
        self.bar.set_postfix_str(f"{p.finished} of {p.runs} runs{left}", refresh=False)
        self.bar.update(max(p.fraction - self.bar.n, 0))

    def close(self) -> None:
        self.bar.close()


def _watcher(progress: Any) -> Any:
    if progress is None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
        return _Bar(tqdm)
    return progress or None


def compare(text: Any = None, *, tokens: Any = None, token_bytes: Any = None, encodings: Sequence[Encoding | str] | str | None = None,
            preset: str | os.PathLike = "default", directory: str | os.PathLike | None = None, resume: bool = False, checkpoint: float = 10,
            threads: int | None = None, progress: Callable[[Progress], Any] | bool | None = None, dry_run: bool = False,
            **options: Any) -> Any:
    """Trains a small model with each encoding on a text and compares them, as `posenc compare` does, in this process.

    text: a str or bytes, a pathlib.Path, or a list of these; or tokens: whole numbers from 0 to 65535 of your own
    tokenizer. options are those of the command, with _ for -: steps, length, width, layers, heads, batch, seeds,
    tasks, rates, stability, extension, combine, bidirectional, learning_rate ... directory: where report.html, all
    numbers and pictures go (needs gnuplot, and a posenc built with libzip); without it nothing is written. progress: called with a Progress ten
    times a second; None: tqdm's bar where tqdm is installed; False: nothing. Ctrl-C keeps what is finished: the
    results say so; with none it is KeyboardInterrupt. dry_run: what would be trained and how long it takes, as a dict.

    >>> text = "In the beginning God created the heaven and the earth. " * 400
    >>> c = compare(text, encodings=["rope", "nope"], tasks="none", steps=2, length=16, reach=2, width=16, heads=2,
    ...             layers=1, seeds=1, rates="0.01", stability="none", progress=False)
    >>> sorted(e["encoding"] for e in c["encodings"])
    ['nope', 'rope']
    """
    if (text is None) == (tokens is None):
        raise _core.PosencError("compare needs a text, or tokens in its place: give one of them")
    if token_bytes is not None and tokens is None:
        raise _core.PosencError("token_bytes says how long the tokens are; give tokens too")
    data, name = (None, "tokens") if text is None else _text(text)
    ids = None if tokens is None else _ids(tokens, "tokens", np.uint16)
    sizes = None if token_bytes is None else _ids(token_bytes, "token_bytes", np.int32)
    if encodings is not None:
        options["encodings"] = encodings
    listed = ("encodings", "rates", "combine", "tasks")
    asked = {n.replace("_", "-"): _list(v) if n in listed and not _has_steps(v) else v for n, v in options.items() if v is not None}
    watch = None if dry_run else _watcher(progress)
    tell = None if watch is None else lambda *state: watch(Progress(*state))
    where = None if directory is None else os.fspath(directory)
    if where is not None and not _core.has_npz():  # found out before anything is trained
        raise _core.UnsupportedError("directory cannot be written: runs are kept as .npz, which this build of posenc does not know; "
                                     "install libzip-dev and posenc anew, or leave directory out")
    try:
        made = _core.compare(data, ids, sizes, name, where, os.fspath(preset), json.dumps(asked), threads or 0, resume, checkpoint,
                             dry_run, tell)
    except _core.PosencError as error:
        raise _renamed(error) from None
    finally:
        if isinstance(watch, _Bar):
            watch.close()
    return json.loads(made) if dry_run else Comparison(made, where)


def _has_steps(value: Any) -> bool:
    """Tasks as a preset has them: [{"name": ..., "steps": ..., "seeds": ...}]."""
    return isinstance(value, (list, tuple)) and any(isinstance(v, Mapping) for v in value)


def _renamed(error: _core.PosencError) -> _core.PosencError:
    """The command's sentence names options: --task-steps is task_steps here."""
    out = type(error)(re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", "_"), str(error)))
    out.status = error.status
    return out
