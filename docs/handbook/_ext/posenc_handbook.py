# SPDX-License-Identifier: MIT
"""What the pages write besides Markdown: commands that are run, and formulas.

    ```{posenc} plot bias alibi        a picture, its caption, and the command beneath
    The caption.
    ```
    ```{posenc} properties rope        the command, and what it prints
    :from: relativity                  from the first line that has this text ...
    :to: decay                         ... to before the next that has this one
    :lines: 3                          at most so many lines
    :expect: 0.0508 | relative         these texts must be in the whole output, or the build fails
    :only: eta | rho                   only lines with one of these texts
    :wide:                             no line of it is broken
    :quiet:                            only the command is shown
    :status: 2                         the exit status that it has
    ```
    ```{formula}                       MathML; {f}`q_i` inside a line
    S_{i,j} = frac{q_i · k_j}{sqrt{D}}
    ```
    {en}`properties <reference/properties>`      a page of the English site, from the Chinese one
    {site}`play <explore.html#rope>`             a file above both sites
"""
import re
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

import commands
import formulas

log = logging.getLogger(__name__)


def squeezed(text):
    return re.sub(r"\s+", " ", text)


def shown(text, options):
    lines = text.rstrip("\n").split("\n")
    has = lambda line, part: part in f"\n{line}\n"  # with a newline a part begins or ends a line
    if "from" in options:
        first = next((i for i, line in enumerate(lines) if has(line, options["from"])), None)
        if first is None:
            raise commands.Failed(f"prints no line with {options['from']!r}")
        lines = lines[first:]
    if "to" in options:
        last = next((i for i, line in enumerate(lines) if i and has(line, options["to"])), None)
        if last is None:
            raise commands.Failed(f"prints no line with {options['to']!r} after the first one")
        lines = lines[:last]
    if "only" in options:
        wanted = options["only"].split(" | ")
        lines = [line for line in lines if any(has(line, w) for w in wanted)]
        if not lines:
            raise commands.Failed(f"prints no line with {options['only']!r}")
    lines = lines[:options.get("lines", len(lines))]
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(narrowed(lines) if "only" in options else lines)


def narrowed(lines):
    """Lines of a table without the width that the others needed: at most two blanks between columns."""
    width = max(map(len, lines))
    lines = [line.ljust(width) for line in lines]
    blank = [all(line[i] == " " for line in lines) for i in range(width)]
    kept = [i for i in range(width) if not (blank[i] and i > 1 and blank[i - 1] and blank[i - 2])]
    return ["".join(line[i] for i in kept).rstrip() for line in lines]


class Posenc(SphinxDirective):
    required_arguments, final_argument_whitespace, has_content = 1, True, True
    option_spec = {"from": directives.unchanged_required, "to": directives.unchanged_required, "status": int,
                   "lines": directives.positive_int, "expect": directives.unchanged_required, "quiet": directives.flag,
                   "only": directives.unchanged_required, "wide": directives.flag}

    def run(self):
        command = squeezed(self.arguments[0])
        try:
            return list(self.picture(command) if commands.is_picture(command) else self.text(command))
        except (commands.Failed, OSError) as error:
            log.warning("posenc %s: %s", command, error, location=self.get_location())
            return []

    def words(self, text, name):
        node = nodes.literal_block(text, text, classes=[name])
        node["language"] = "console" if name == "posenc-command" else "none"
        return node

    def picture(self, command):
        found = self.config.posenc_tool.picture(command)
        image = nodes.image(uri=f"/figures/{found.name}", alt=f"posenc {command}")
        alone = nodes.reference("", "", image, refuri="../" * self.env.docname.count("/") + f"_images/{found.name}", internal=True)
        figure = nodes.figure("", alone, classes=["posenc-figure"])
        if self.content:
            holder = nodes.Element()
            self.state.nested_parse(self.content, self.content_offset, holder)
            if len(holder) and isinstance(holder[0], nodes.paragraph):
                figure += nodes.caption("", "", *holder[0].children)
                if len(holder) > 1:
                    figure += nodes.legend("", *holder.children[1:])
        yield figure
        yield self.words(f"$ posenc {command} -o picture.svg", "posenc-command")

    def text(self, command):
        columns = commands.WIDE if "wide" in self.options else commands.COLUMNS
        out = self.config.posenc_tool.text(command, self.options.get("status", 0), columns)
        for want in filter(None, (w.strip() for w in self.options.get("expect", "").split(" | "))):
            if want not in squeezed(out):
                raise commands.Failed(f"does not print {want!r}, which the page expects")
        yield self.words(f"$ posenc {command}", "posenc-command")
        if command in commands.STORED:
            chinese = (self.config.language or "").startswith("zh")
            on = commands.STORED[command]["on"]["zh" if chinese else "en"]
            yield nodes.paragraph("", ("保存的一次运行：" if chinese else "A stored run: ") + on
                                  + ("。" if chinese else "."), classes=["posenc-stored"])
        if "quiet" not in self.options:
            yield self.words(shown(out, self.options), "posenc-output")


class Formula(SphinxDirective):
    has_content = True

    def run(self):
        try:
            return [nodes.raw("", f'<div class="formula">{formulas.mathml(chr(10).join(self.content), True)}</div>', format="html")]
        except formulas.Broken as error:
            log.warning("%s", error, location=self.get_location())
            return []


class FormulaRole(SphinxRole):
    def run(self):
        try:
            return [nodes.raw("", formulas.mathml(self.text), format="html")], []
        except formulas.Broken as error:
            log.warning("%s", error, location=self.get_location())
            return [], []


class Above(SphinxRole):
    """A link that Sphinx does not look after: it leads out of the site of this language."""
    def __init__(self, where):
        super().__init__()
        self.where = where

    def run(self):
        words, page = re.fullmatch(r"(.+?)\s*<(.+)>", self.text).groups()
        uri = "../" * (self.env.docname.count("/") + 1) + self.where.format(page)
        return [nodes.reference("", words, refuri=uri, internal=True)], []


def link_language(app, page, template, context, doctree):
    """Above each page, a link to the same page in the other language, or to its beginning where it has none."""
    other, word = ("en", "English") if app.config.language.startswith("zh") else ("zh", "中文版")
    has_it = page.startswith(("encodings/", "ideas/tutorials/")) or (Path(app.confdir) / other / f"{page}.md").exists()
    twin = {"errata": "reference/errata", "reference/errata": "errata", "reference": "reference/index"}.get(page)
    if not twin:
        twin = page if has_it else "reference" if page.startswith("reference/") else "index"
    where = "../" * (page.count("/") + 1) + f"{other}/{twin}.html"
    context["theme_announcement"] = f'<a href="{where}">{word}</a>'


def setup(app):
    app.connect("html-page-context", link_language)
    app.add_config_value("posenc_tool", None, "")
    app.add_directive("posenc", Posenc)
    app.add_directive("formula", Formula)
    app.add_role("f", FormulaRole())
    app.add_role("en", Above("en/{}.html"))
    app.add_role("site", Above("{}"))
    return {"parallel_read_safe": True}
