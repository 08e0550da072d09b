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
    :quiet:                            only the command is shown
    :status: 2                         the exit status that it has
    ```
    ```{formula}                       MathML; {f}`q_i` inside a line
    S_{i,j} = frac{q_i · k_j}{sqrt{D}}
    ```
    {en}`properties <reference/properties>`      a page of the English site, from the Chinese one
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
    if "from" in options:
        first = next((i for i, line in enumerate(lines) if options["from"] in line), None)
        if first is None:
            raise commands.Failed(f"prints no line with {options['from']!r}")
        lines = lines[first:]
    if "to" in options:
        last = next((i for i, line in enumerate(lines) if i and options["to"] in line), None)
        if last is None:
            raise commands.Failed(f"prints no line with {options['to']!r} after the first one")
        lines = lines[:last]
    lines = lines[:options.get("lines", len(lines))]
    while lines and not lines[-1].strip():
        lines.pop()
    return "\n".join(lines)


class Posenc(SphinxDirective):
    required_arguments, final_argument_whitespace, has_content = 1, True, True
    option_spec = {"from": directives.unchanged_required, "to": directives.unchanged_required, "status": int,
                   "lines": directives.positive_int, "expect": directives.unchanged_required, "quiet": directives.flag}

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
        figure = nodes.figure("", image, classes=["posenc-figure"])
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
        out = self.config.posenc_tool.text(command, self.options.get("status", 0))
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


class English(SphinxRole):
    def run(self):
        words, page = re.fullmatch(r"(.+?)\s*<(.+)>", self.text).groups()
        where = "../" * (self.env.docname.count("/") + 1) + f"en/{page}.html"
        return [nodes.reference("", words, refuri=where, internal=True)], []


def link_language(app, page, template, context, doctree):
    """Above each page, a link to the same page in the other language, or to its beginning where it has none."""
    other, word = ("en", "English") if app.config.language.startswith("zh") else ("zh", "中文版")
    has_it = page.startswith(("encodings/", "ideas/tutorials/")) or (Path(app.confdir) / other / f"{page}.md").exists()
    where = "../" * (page.count("/") + 1) + f"{other}/{page if has_it else 'index'}.html"
    context["theme_announcement"] = f'<a href="{where}">{word}</a>'


def setup(app):
    app.connect("html-page-context", link_language)
    app.add_config_value("posenc_tool", None, "")
    app.add_directive("posenc", Posenc)
    app.add_directive("formula", Formula)
    app.add_role("f", FormulaRole())
    app.add_role("en", English())
    return {"parallel_read_safe": True}
