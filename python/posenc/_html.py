# SPDX-License-Identifier: MIT
"""What a notebook shows, from the standard library alone."""
from __future__ import annotations

from html import escape
from typing import Any, Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    line = lambda tag, cells: "<tr>" + "".join(f"<{tag}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"
    return "<table>" + line("th", head) + "".join(line("td", r) for r in rows) + "</table>"


def encoding_card(e: Any) -> str:
    out = [f"<b>{escape(e.spec)}</b>"]
    for place, info in e.parts.items():
        out.append(f"<p>{escape(info.title)} <small>({place}; {escape(info.paper)})</small></p>"
                   f"<pre>{escape(info.formula)}</pre>")
        if info.settings:
            out.append(table(("setting", "default", "range", "meaning"),
                             ((s.name, s.default, s.range, s.meaning) for s in info.settings)))
    return "".join(out)


def model_card(m: Any) -> str:
    layers = lambda g: "embeddings" if g.is_input else "all" if g.is_all else ", ".join(map(str, g.layers))
    out = [f"<b>{escape(str(m.model_type))}</b>",
           table(("layers", "encoding"), ((layers(g), g.encoding.spec) for g in m.groups))]
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
