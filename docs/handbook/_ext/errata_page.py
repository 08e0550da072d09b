# SPDX-License-Identifier: MIT
"""The errata in Chinese, from the tables that `posenc tutorial` reads: docs/tutorials/000.json to 004.json."""
import json

from commands import ROOT
from registry_pages import cell


def write(folder):
    out = ["# 五篇教程的勘误\n",
           "本页由 `docs/tutorials` 中的表格生成，`posenc tutorial --lang zh` 读的也是它们：原文怎么说，正确的是什么。"
           "编号对应英文的{en}`勘误页 <reference/errata>`，那里给出出处和可以核对的命令。\n"]
    for number in ("000", "001", "002", "003", "004"):
        t = json.loads((ROOT / f"docs/tutorials/{number}.json").read_text())
        out += [f"## {number} {t['title']['zh']}\n", t["source"]["zh"] + "\n"]
        for section in t["sections"]:
            for row in section["rows"]:
                if "erratum" in row:
                    out.append(f"- **{row['id']}**（勘误 {row['erratum']['entry']}）原文：{cell(row['zh'])} "
                               f"更正：{cell(row['erratum']['zh'])}")
        out.append("")
    (folder / "errata.md").write_text("\n".join(out))
