# SPDX-License-Identifier: MIT
"""What a notebook shows, from the standard library alone."""
from __future__ import annotations

import csv
from html import escape
from typing import Any, Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    line = lambda tag, cells: "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"
    return "<table>" + line("th", head) + "".join(line("td", r) for r in rows) + "</table>"


_KINDS = {"input": "curves", "rotary": "decay", "score": "bias"}  # the pictures that are curves by position


def _numbers(kind: str, e: Any, length: int, **options: Any) -> list[list[str]] | None:
    """The rows of a picture after their heading; None where the encoding has no such picture."""
    from . import _core, _plot
    try:
        rows = list(csv.reader(_plot.plot(kind, e, length=length, **options).csv.splitlines()))
    except (_core.PosencError, NotImplementedError):
        return None
    return [row for row in rows if len(row) > 1]  # not the titles


def _thumbnail(place: str, e: Any) -> str:
    """Curves of the numbers of `posenc plot`; the drawing is as large as they reach, and the browser scales it."""
    options = {"theta": "many"} if place == "rotary" else {"heads": 4}
    found = _numbers(_KINDS[place], e, 64, **options) if place in _KINDS else None
    try:
        head, *rows = found or [[]]
        points = [[float(x) for x in row] for row in rows]
    except ValueError:  # words, of a picture that is a map
        points = []
    if not points:
        return ""
    names = head[1:2] if place == "rotary" else head[1:5]  # a rotation's first curve: two equal vectors
    xs, ys = [p[0] for p in points], [y for p in points for y in p[1:1 + len(names)]]
    low, high = min(ys), max(ys)
    box = f"{min(xs)} {-high} {max(xs) - min(xs)} {(high - low) or 1}"
    lines = "".join(f'<polyline fill="none" stroke="{c}" vector-effect="non-scaling-stroke" points="'
                    + " ".join(f"{p[0]:g},{-p[i + 1]:g}" for p in points) + f'"><title>{escape(n)}</title></polyline>'
                    for i, (n, c) in enumerate(zip(names, ("#4477aa", "#ee6677", "#228833", "#aa3377"))))
    return (f'<svg width="240" height="80" viewBox="{box}" preserveAspectRatio="none" overflow="visible">{lines}</svg>'
            f"<p><small>{escape(head[0])}: {escape('; '.join(names))}; from {low:.4g} to {high:.4g}</small></p>")


def _reach(g: Any, context: int) -> int:
    """Over how many positions the keys of a query lie: the window of layers that all have one, else the context."""
    window = g.facts.get("sliding_window", (0, ""))[0]
    window = 0 if isinstance(window, list) and not all(window) else max(window) if isinstance(window, list) else window
    return min(window, context or window) if window else context


def _wavelengths(m: Any) -> str:
    """How the pairs of each rotation stand to the context or window, as `posenc plot wavelengths` counts them."""
    rows = []
    for g in m.groups:
        reach = _reach(g, m.max_positions)
        found = _numbers("wavelengths", g.encoding, reach, dim=g.sizes.get("D")) if reach else None
        pairs = [row for row in found or [] if len(row) == 3 and row[0] != "curve" and not row[0].startswith("context")]
        for name in dict.fromkeys(row[0] for row in pairs):
            waves = [float(row[2]) for row in pairs if row[0] == name]
            rows.append((g.encoding.spec, reach, name, len(waves), f"{waves[0]:.4g} to {waves[-1]:.4g}"))
    return table(("encoding", "positions that a query sees", "of these", "pairs", "tokens per rotation"), rows) if rows else ""


def encoding_card(e: Any) -> str:
    out = [f"<b>{escape(e.spec)}</b>"]
    for place, info in e.parts.items():
        out.append(f"<p>{escape(info.title)} <small>({place}; {escape(info.paper)})</small></p>"
                   f"<pre>{escape(info.formula)}</pre>" + _thumbnail(place, e))
        if info.settings:
            out.append(table(("setting", "default", "range", "meaning"),
                             ((s.name, s.default, s.range, s.meaning) for s in info.settings)))
    return "".join(out)


def model_card(m: Any) -> str:
    layers = lambda g: "embeddings" if g.is_input else "all" if g.is_all else ", ".join(map(str, g.layers))
    out = [f"<b>{escape(str(m.model_type))}</b>",
           table(("layers", "encoding"), ((layers(g), g.encoding.spec) for g in m.groups)), _wavelengths(m)]
    if m.warnings:
        out.append(table(("warning", "what it means"), m.warnings))
    return "".join(out)


def report_table(r: Any) -> str:
    out = [f"<b>{escape(r.title)}: {'agrees' if r.ok else 'does not agree'}</b>"]
    if r.findings:
        out.append(table(("where", "what", "error", "cause"), ((f.where, f.what, f"{f.error:.2g}", f.cause) for f in r.findings)))
    if r.checked:
        out.append(table(("checked", "largest error", "allowed"), ((n, f"{e:.2g}", f"{a:.2g}") for n, e, a in r.checked)))
    return "".join(out + [f"<p>{escape(n)}</p>" for n in r.notes])


def comparison(c: Any) -> str:
    titles = {"losses": "Loss", "tasks": "Tasks: share of right answers", "extension": "Read further than trained", "costs": "Cost",
              "checks": "Checks", "answer": "Which to choose"}
    out = [f"<b>Interrupted: {c.missing} of {c.runs} runs are missing</b>"] if c.interrupted else []
    for name, t in c.tables.items():
        out += [f"<p><b>{titles[name]}</b></p>", table(t.columns, t.rows), f"<p><small>{escape(t.notes)}</small></p>"]
    return "".join(out + [f"<p>{escape(r)}</p>" for r in c.remarks])
