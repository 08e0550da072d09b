# SPDX-License-Identifier: MIT
"""Formulas in the notation of src/show/formula.h as MathML, which browsers draw without a script.

The rooms have their formulas in it, and so have these pages. What stands here is what src/show/mathml.c writes; the test
tests/docs/handbook.py holds both against each other on every formula of the tutorials.
"""
import re
from html import escape

TOKEN = re.compile(r'"(?P<words>[^"\n]*)"|(?P<open>frac\{|sqrt\{|matrix\{|\{)|(?P<name>[a-zA-Z]+|[Ͱ-Ͽ])|'
                   r"(?P<number>[0-9.]+)|(?P<bracket>[()\[\]|⌊⌋⌈⌉])|(?P<sign>[^}_^\n])", re.S)
TAGS = {"words": "mtext", "name": "mi", "number": "mn", "sign": "mo"}
BRACKET = 'mo stretchy="false" lspace="0" rspace="0"'


class Broken(ValueError):
    """A formula that is not well formed."""


class _Reader:
    def __init__(self, text):
        self.text, self.at = text, 0

    def peek(self):
        return self.text[self.at:self.at + 1]

    def take(self, c):
        if self.peek() != c:
            raise Broken(f"{c!r} is missing at {self.text[self.at:]!r} of {self.text!r}")
        self.at += 1

    def blanks(self):
        while self.peek() == " ":
            self.at += 1

    def braces(self):
        self.take("{")
        out = self.list("}")
        self.take("}")
        return out

    def matrix(self):
        rows, end = [[]], ""
        while end != "}":
            rows[-1].append(f"<mtd>{self.list(',;}')}</mtd>")
            end = self.peek()
            self.take(end if end in (",", ";", "}") else "}")
            if end == ";":
                rows.append([])
        if len({len(row) for row in rows}) != 1:
            raise Broken(f"rows of a matrix differ in {self.text!r}")
        return ("<mrow><mo>[</mo><mtable>" + "".join(f"<mtr>{''.join(row)}</mtr>" for row in rows)
                + "</mtable><mo>]</mo></mrow>")

    def atom(self):
        """The MathML of one atom, and its text where it is a leaf."""
        found = TOKEN.match(self.text, self.at)
        if not found:
            raise Broken(f"{self.text[self.at:]!r} cannot be read in {self.text!r}")
        kind, text = found.lastgroup, found[found.lastgroup]
        if kind == "open":
            self.at += len(text) - 1
            if text == "{":
                return f"<mrow>{self.braces()}</mrow>", ""
            if text == "sqrt{":
                return f"<msqrt>{self.braces()}</msqrt>", ""
            if text == "frac{":
                return f"<mfrac><mrow>{self.braces()}</mrow><mrow>{self.braces()}</mrow></mfrac>", ""
            self.at += 1
            return self.matrix(), ""
        self.at = found.end()
        tag = BRACKET if kind == "bracket" else TAGS[kind]
        return f"<{tag}>{escape(text)}</{tag.split()[0]}>", text

    def item(self):
        base, text = self.atom()
        below = above = ""
        if self.peek() == "_":
            self.at += 1
            below = self.atom()[0]
        if self.peek() == "^":
            self.at += 1
            above = self.atom()[0]
        names = ("", "munder", "mover", "munderover") if text == "∑" else ("", "msub", "msup", "msubsup")
        name = names[bool(below) + 2 * bool(above)]
        return (f"<{name}>{base}{below}{above}</{name}>" if name else base), text

    def list(self, end):
        out, depth = [], 0
        self.blanks()
        while self.at < len(self.text) and self.peek() != "\n":
            if self.peek() in end and (not depth or self.peek() == "}"):
                break
            mathml, text = self.item()
            out.append(mathml)
            depth += (text == "(") - (text == ")")
            self.blanks()
        return "".join(out)


def mathml(text, block=False):
    """Each line of the text as a <math> element."""
    tag = 'math display="block"' if block else "math"
    out = []
    for line in text.strip("\n").split("\n"):
        reader = _Reader(line.strip())
        out.append(f"<{tag}>{reader.list('')}</math>")
        if reader.at < len(reader.text):
            raise Broken(f"{reader.text[reader.at:]!r} is left over of {line!r}")
    return "\n".join(out)
