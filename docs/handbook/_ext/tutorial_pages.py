# SPDX-License-Identifier: MIT
"""A page for each of the five tutorials, from the tables that `posenc tutorial` reads: docs/tutorials/000.json to 004.json.

Every row in the tutorial's own order: what the text shows or says, its formula, the pictures drawn by their commands, the
commands that print numbers, and what is right where the text is wrong.
"""
import json
import re

from commands import ROOT, is_picture
from registry_pages import cell

NUMBERS = ("000", "001", "002", "003", "004")
WORDS = {
    "en": {
        "title": "The five tutorials, line by line",
        "intro": "Five introductions that circulate in Chinese. Each page follows one of them: its figures, formulas, numbers and "
                 "claims, retold in our own words, with the commands that show them. `posenc tutorial N` prints the same, with "
                 "each number held against the printed one.",
        "page": "{source}. Numbers and verdicts: `posenc tutorial {number}`. All errors: [](../../reference/errata.md).",
        "erratum": "**Erratum {entry}.** {text}",
    },
    "zh": {
        "title": "五篇教程，逐行核对",
        "intro": "五篇流传的中文教程，一篇一页：它的图、公式、数和论断，用我们自己的话复述，并给出能看到它们的命令。"
                 "`posenc tutorial N --lang zh` 打印同样的内容，并把每个数与印出来的数对照。",
        "page": "{source}。数与判断：`posenc tutorial {number} --lang zh`。全部错误见[](../../errata.md)。",
        "erratum": "**勘误 {entry}。**{text}",
    },
}


def command_of(run):
    """As the pages run it: without standard input."""
    return re.sub(r"--table - (.*)< (\S+)", r"--table \2 \1", run["command"]).strip()


def prose(text):
    """Plain text but for code between backquotes."""
    parts = text.split("`")
    return "".join(f"`{part}`" if i % 2 and len(parts) % 2 else cell(part) for i, part in enumerate(parts))


def row(r, lang):
    words = WORDS[lang]
    out = [f"**{r['id']}** {prose(r[lang])}\n"]
    if "formula" in r:
        out.append("```{formula}\n" + r["formula"] + "\n```\n")
    commands = [command_of(run) for run in r.get("runs", [])]
    out += ["```{posenc} " + c + "\n```\n" for c in commands if is_picture(c)]
    others = [f"$ posenc {c}" for c in commands if not is_picture(c)]
    if others:
        out.append("```console\n" + "\n".join(others) + "\n```\n")
    if "erratum" in r:
        out.append(words["erratum"].format(entry=r["erratum"]["entry"], text=prose(r["erratum"][lang])) + "\n")
    if "note" in r:
        out.append(prose(r["note"][lang]) + "\n")
    return out


def write(folder, lang):
    folder.mkdir()
    words = WORDS[lang]
    for number in NUMBERS:
        t = json.loads((ROOT / f"docs/tutorials/{number}.json").read_text())
        out = [f"# {number} {cell(t['title'][lang])}\n", words["page"].format(source=cell(t["source"][lang]), number=number) + "\n"]
        for section in t["sections"]:
            out.append(f"## {cell(section[lang])}\n")
            for r in section["rows"]:
                out += row(r, lang)
        (folder / f"{number}.md").write_text("\n".join(out))
    pages = "\n".join(NUMBERS)
    (folder / "index.md").write_text(f"# {words['title']}\n\n{words['intro']}\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n")
