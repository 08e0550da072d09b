# SPDX-License-Identifier: MIT
"""A page for each of the five tutorials, from the tables that `posenc tutorial` reads: docs/tutorials/000.json to 004.json.

Every row in the tutorial's own order: what the text shows or says, its formula, the pictures drawn by their commands, the
commands with the lines that matter of what they print, and what is right where the text is wrong.
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
                 "claims, retold in our own words, with the commands that show them. Where the text is wrong, an erratum "
                 "follows. `posenc tutorial N` prints the same, with each number held against the printed one.\n\n"
                 "The letter in 000-F1 says what it is: F a figure, E a formula, N a number, L a listing, C a claim.",
        "again": "The picture is that of {id}, above.", "printed": "The numbers stand above, at {id}.",
        "page": "{source}. Numbers and verdicts: `posenc tutorial {number}`. All errors: [](../../reference/errata.md).",
        "erratum": "**Erratum {entry}.** {text}",
    },
    "zh": {
        "title": "五篇教程，逐行核对",
        "intro": "五篇流传的中文教程，一篇一页：它的图、公式、数和论断，用我们自己的话复述，并给出能看到它们的命令。"
                 "原文有误之处，后面附有勘误。"
                 "`posenc tutorial N --lang zh` 打印同样的内容，并把每个数与印出来的数对照。\n\n"
                 "编号里的字母表示种类：F 是图，E 是公式，N 是数，L 是程序，C 是论断。",
        "again": "图与上面的 {id} 相同。", "printed": "数值见上面的 {id}。",
        "page": "{source}。数与判断：`posenc tutorial {number} --lang zh`。全部错误见[](../../errata.md)。",
        "erratum": "**勘误 {entry}**：{text}",
    },
}


def command_of(run):
    """As the pages run it: without standard input."""
    return re.sub(r"--table - (.*)< (\S+)", r"--table \2 \1", run["command"]).strip()


def prose(text):
    """Plain text but for code between backquotes."""
    parts = text.split("`")
    return "".join(f"`{part}`" if i % 2 and len(parts) % 2 else cell(part) for i, part in enumerate(parts))


def directive(run):
    """A command; of what it prints the lines that its row speaks of."""
    show, options = None if is_picture(run["command"]) else run.get("show"), []
    if isinstance(show, dict):
        options = [f":{k}: {json.dumps(show[k], ensure_ascii=False)}" for k in ("from", "to") if k in show]
    elif show:
        options = [":only: " + json.dumps(" | ".join(show), ensure_ascii=False)]
    if options:
        options.append(":wide:")  # as the tables were written
    if run.get("status"):
        options.append(f":status: {run['status']}")
    return "\n".join(["```{posenc} " + command_of(run), *options, "```\n"])


def row(r, lang, seen):
    words = WORDS[lang]
    out = [f"**{r['id']}** {prose(r[lang])}\n"]
    if "formula" in r:
        out.append("```{formula}\n" + r["formula"] + "\n```\n")
    for run in r.get("runs", []):
        block = directive(run)
        if block not in seen:
            out.append(block)
            seen[block] = r["id"]
        elif seen[block] != r["id"]:
            out.append(words["again" if is_picture(run["command"]) else "printed"].format(id=seen[block]) + "\n")
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
        out = [f"# {number} {cell(t['title'][lang])}\n", words["page"].format(source=cell(t["source"][lang][:1].upper() + t["source"][lang][1:]), number=number) + "\n"]
        seen = {}  # the row of each picture and output: a page shows it once
        for section in t["sections"]:
            out.append(f"## {cell(section[lang])}\n")
            for r in section["rows"]:
                out += row(r, lang, seen)
        (folder / f"{number}.md").write_text("\n".join(out))
    pages = "\n".join(NUMBERS)
    (folder / "index.md").write_text(f"# {words['title']}\n\n{words['intro']}\n\n```{{toctree}}\n:maxdepth: 1\n\n{pages}\n```\n")
