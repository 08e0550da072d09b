#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""registry_words.py POSENC: does the registry have its Chinese, for the handbook's pages and the explorer's?

The pages of all encodings are made, as `make docs` makes them, and what they ask the catalogues for is noted. A line for each
text without Chinese, and for each row of src/explore/zh.po that belongs to no text, that stands twice or in the report's
catalogue too, or whose % a page would take for a place. An encoding whose title has no Chinese is left in English as a whole.
"""
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "docs/handbook/_ext"))
import commands  # noqa: E402
import registry_pages  # noqa: E402

REPORT, OWN = registry_pages.CATALOGUES
# A small word that is no part of a name, a formula or a setting's value.
WORD = re.compile(r"(?<![\w./=^+-])(?!(?:sin|cos|sigma)\b)[a-z]{3,}(?![\w./=^+(-])")


def main():
    own, report, asked, faults = registry_pages.rows(OWN), dict(registry_pages.rows(REPORT)), set(), []
    known, seen = {**dict(own), **report}, set()
    with tempfile.TemporaryDirectory() as folder:
        tool = commands.Tool(sys.argv[1], folder)
        entries = tool.json("list")
        wanted = lambda text: text not in known and WORD.search(text)
        for e in entries:
            here = []
            say = lambda text: here.append(text) or text
            registry_pages.page(e, "zh", say, [], "", tool)
            if e is entries[0]:
                registry_pages.settings(e["common_settings"], registry_pages.WORDS["zh"], say)
            for symbol in e["symbols"]:  # the explorer shows these
                say(symbol.partition(": ")[2])
            asked.update(here)
            if e["title"] in known:
                faults += [f"{e['name']}: no Chinese for \"{text}\" ({OWN})" for text in dict.fromkeys(here) if wanted(text)]
            else:
                print(f"{e['name']} is in English: its title has no Chinese")
    for english, _ in own:
        if english not in asked:
            faults.append(f"{OWN}: no text of the registry is \"{english}\"")
        if english in seen or english in report:
            faults.append(f"{OWN}: \"{english}\" has another row" + (f" in {REPORT}" if english in report else ""))
        if re.search("%[sdwt]", english):
            faults.append(f"{OWN}: \"{english}\" has a place")
        seen.add(english)
    for line in faults:
        print(line, file=sys.stderr)
    if faults:
        sys.exit(f"registry_words: {len(faults)} faults")
    print(f"registry_words: {len(entries)} encodings, {len(asked & set(known))} texts in Chinese")


main()
