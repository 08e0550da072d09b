#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""build.py POSENC OUT [LANGUAGE...]: the handbook as a static site in OUT/en and OUT/zh, with OUT/index.html above them

Three steps. Sources of a language are copied to OUT/source, and pages are made beside them: one for each encoding of the
registry, the documents of docs/, the two APIs; and the explorer above both languages. Every command that the pages name is run, two at a time; what it gave is kept in
OUT/figures, so the next build runs only what has changed. Then Sphinx makes the pages; a warning is an error.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

try:
    import furo  # noqa: F401
    import myst_parser  # noqa: F401
    import sphinx  # noqa: F401
    import sphinx_copybutton  # noqa: F401
except ImportError as missing:
    sys.exit(f"make docs: {missing.name} is missing; install what tools/packages.txt marks with @ (tools/deps.sh --docs)")

import commands  # noqa: E402
import errata_page  # noqa: E402
import reference_pages  # noqa: E402
import registry_pages  # noqa: E402
import tutorial_pages  # noqa: E402

LANGUAGES = ("en", "zh")
COMMAND = re.compile(r"^\s*```\{posenc\} (.+)$((?:\n:\w+:.*)*)", re.M)
INDEX = """<!doctype html>
<meta charset="utf-8">
<title>posenc</title>
<script>location.replace((navigator.language || "en").startsWith("zh") ? "zh/index.html" : "en/index.html")</script>
<p><a href="en/index.html">The posenc handbook</a> · <a href="zh/index.html">posenc 手册</a></p>
"""
NO_EXPLORER = """<!doctype html>
<meta charset="utf-8">
<title>posenc explore</title>
<p>The posenc that built this handbook has no explorer. Install clang, lld and wasi-libc (tools/packages.txt), then: make explore</p>
<p lang="zh">生成本手册的 posenc 没有带上互动页。安装 clang、lld 和 wasi-libc（见 tools/packages.txt），然后运行 make explore。</p>
"""


def stage(tool, out, lang):
    """The sources of a language in OUT/source/LANGUAGE, with all pages that are made."""
    folder = out / "source" / lang
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(HERE / lang, folder)
    if lang == "zh":  # a line that ends within a Chinese sentence would leave a blank there
        for page in folder.rglob("*.md"):
            page.write_text(re.sub(r"(?<=[^\x00-\x7f])\n(?=[^\x00-\x7f])", "", page.read_text()))
    (folder / "figures").symlink_to(tool.cache.resolve())
    registry_pages.write(tool, folder / "encodings", lang)
    tutorial_pages.write(folder / "ideas/tutorials", lang)
    if lang == "en":
        reference_pages.write(folder / "reference")
    else:
        errata_page.write(folder)
    return folder


def named(folders):
    """Each command of the pages with its width, and the exit status that it has."""
    found = {}
    for folder in folders:
        for page in sorted(folder.rglob("*.md")):
            for command, options in COMMAND.findall(page.read_text()):
                status = re.search(r":status: (\d+)", options)
                columns = commands.WIDE if ":wide:" in options else commands.COLUMNS
                found[" ".join(command.split()), columns] = int(status[1]) if status else 0
    return found


def warm(tool, found):
    """Runs them; what fails is said by its page."""
    def run(item):
        (command, columns), status = item
        try:
            tool.picture(command) if commands.is_picture(command) else tool.text(command, status, columns)
        except (commands.Failed, subprocess.TimeoutExpired, ValueError):
            pass
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, found.items()))


def make(folder, out, lang, tool):
    """One language by Sphinx; its exit status."""
    env = dict(os.environ, HANDBOOK_LANGUAGE=lang, HANDBOOK_TOOL=str(tool.path), HANDBOOK_FIGURES=str(tool.cache))
    return subprocess.run([sys.executable, "-m", "sphinx", "-q", "-n", "-W", "--keep-going", "-b", "html", "-c", str(HERE),
                           "-d", str(out / "doctrees" / lang), str(folder), str(out / lang)], env=env).returncode


def mend_theme(static):
    """Debian's package of furo is not what furo publishes: its style sheet wants one of Debian's folders and has lost the dark
    colours of `auto`, and its script is a module, which no browser reads from a file. Nothing is done where that is not so."""
    css, js = static / "styles/furo.css", static / "scripts/furo.js"
    text = css.read_text()
    if "prefers-color-scheme" not in text:
        dark = re.search(r'body\[data-theme="dark"\] \{[^}]*\}', text)[0].replace('"dark"', '"auto"')
        text += f"@media (prefers-color-scheme: dark) {{ @media not print {{ {dark} }} }}\n"
    css.write_text(re.sub(r"@import url\(/javascript/[^)]*\);", "", text))
    module = re.search(r'^import \w+ from "\./(.+)";\n', js.read_text())
    if module:
        js.write_text((js.parent / module[1]).read_text() + js.read_text()[module.end():])


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    start = time.monotonic()
    out, languages = Path(sys.argv[2]).resolve(), sys.argv[3:] or LANGUAGES
    out.mkdir(parents=True, exist_ok=True)
    tool = commands.Tool(sys.argv[1], out / "figures")
    if not tool.explorer(out / "explore.html"):
        (out / "explore.html").write_text(NO_EXPLORER)
        print("make docs: without the explorer, which this posenc cannot write: clang, lld and wasi-libc (tools/packages.txt)")
    folders = {lang: stage(tool, out, lang) for lang in languages}
    found = named(folders.values())
    warm(tool, found)
    for lang, folder in folders.items():
        if make(folder, out, lang, tool):
            return 1
        mend_theme(out / lang / "_static")
    (out / "index.html").write_text(INDEX)
    pages = {lang: len(list(folder.rglob("*.md"))) for lang, folder in folders.items()}
    print(f"make docs: {' and '.join(f'{n} pages in {lang}' for lang, n in pages.items())}, {len(found)} commands, "
          f"{time.monotonic() - start:.0f} s: {sys.argv[2]}/index.html")
    return 0


if __name__ == "__main__":
    sys.exit(main())
