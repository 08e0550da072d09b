# SPDX-License-Identifier: MIT
"""Reference pages: the documents of docs/ as they are, the C API from the headers, the Python API from the package.

The headers say everything in their comments, in plain text, and the reader of a header reads them beside the declaration;
so does the page. Doxygen wants comments of its own kind for that, and breathe would take them apart.
"""
import ast
import os
import re
import textwrap

from commands import ROOT

# The documents, in the order of the contents; their title is their first line.
DOCUMENTS = {"using": ["docs/python.md", "docs/diagnose.md", "docs/models.md", "docs/inputs.md", "docs/properties.md", "docs/experiments.md",
                       "docs/slurm.md"],
             "trust": ["docs/errata.md", "docs/performance.md", "docs/reference-cases.md", "docs/reliability.md", "SECURITY.md"],
             "inside": ["docs/house.md", "CONTRIBUTING.md", "docs/tutorials/README.md", "CHANGELOG.md"]}
EXAMPLES = ("attend.c", "decode.c", "train.c", "model.c", "layers.c", "raii.cpp")
HEADERS = ("posenc.h", "rotary.h", "scores.h", "positions.h", "registry.h", "files.h")


def place(document):
    """Where the page of a document stands, in the folder reference."""
    path = document.removeprefix("docs/")
    if path == "tutorials/README.md":
        return "tutorials.md"
    return path.lower() if path.isupper() or path[0].isupper() else path


def plain(text):
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_{}\[\]<>|$#])", r"\\\1", text)


def document(path, known):
    """The text of a document whose links lead to pages of the site, or are names of files where those are no pages."""
    source, text = ROOT / path, (ROOT / path).read_text()
    here = os.path.dirname(place(path))

    def link(found):
        label, target = found[1], found[2]
        if re.match(r"[a-z]+:|#", target):
            return found[0]
        file, _, anchor = target.partition("#")
        name = os.path.relpath((source.parent / file).resolve(), ROOT)
        if name in known:
            return f"[{label}]({os.path.relpath(known[name], here or '.')}{'#' + anchor if anchor else ''})"
        return label
    text = re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", link, text)
    return re.sub(r"^```(?!c$|c\+\+|python|json|sh$|console|text|$)\w+", "```text", text, flags=re.M)


# ---------------------------------------------------------------- C

def words(text):
    """A line of a comment: `names` and *stress* are Markdown there too."""
    parts = re.split(r"(`[^`]+`)", text)
    return "".join(p if p.startswith("`") else re.sub(r"\\\*(\w+)\\\*", r"*\1*", plain(p)) for p in parts)


def comment_text(comment):
    """The words of a C comment as Markdown: indented parts as they stand."""
    body = re.sub(r"^\s*\*? ?", "", textwrap.dedent(comment[2:-2]), flags=re.M) if "\n *" in comment else textwrap.dedent("   " + comment[2:-2])
    lines, out, block = [line.rstrip() for line in body.strip("\n").split("\n")], [], []
    for i, line in enumerate(lines + [""]):
        before = lines[i - 1] if i else ""
        if i < len(lines) and re.match(r"\s{2,}[^\s-]", line) and i and (block or not before or before.endswith(":")):
            block.append(line)
        elif block and not line and i < len(lines) - 1 and re.match(r"\s{2,}[^\s-]", lines[i + 1]):
            block.append(line)
        else:
            if block:
                out += ["", "```text", *textwrap.dedent("\n".join(block)).split("\n"), "```", ""]
                block = []
            out.append(words(line.strip()))
    return "\n".join(out)


def declarations(header):
    """(section, comment, code) of a header, in order; the first is its essay, without code."""
    text = (ROOT / "include/posenc" / header).read_text()
    text = re.sub(r"#ifdef __cplusplus\n.*?#endif\n", "", text, flags=re.S)
    text = re.sub(r"^#(if|elif|else|endif).*\n|^#define POSENC_(API|CAST|PRODUCT|\w+_H)\b.*|^#undef.*\n|^#include.*\n", "", text, flags=re.M)
    text = re.sub(r"^/\* SPDX.*\n", "", text)
    section, comment, code, out = "", "", [], []

    def put():
        nonlocal comment, code
        body = "\n".join(code).strip("\n")
        body = re.sub(r"^(static inline [^{;]*?\))\n\{.*?^\}", r"\1;", body, flags=re.M | re.S)
        if body or comment:
            out.append((section, comment, body))
        comment, code = "", []
    for block in re.split(r"(^/\*.*?\*/[ \t]*\n)", text, flags=re.M | re.S):
        bar = re.match(r"/\* -{8,} (.*?) -+ \*/", block)
        if bar:
            put()
            section = bar[1]
        elif block.startswith("/*"):
            put()
            comment = block.strip()
        else:
            code = block.split("\n")
    put()
    return out


def c_page(header):
    rows = declarations(header)
    out = [f"# posenc/{header}\n"]
    last = ""
    for section, comment, code in rows:
        if section != last:
            out.append(f"## {section[:1].upper() + section[1:]}\n")
            last = section
        if code:
            names = re.findall(r"\b(posenc_\w+)\s*\(", code) or re.findall(r"(?:struct|enum|typedef\s+struct|typedef\s+enum)\s+(posenc_\w+)", code) \
                or re.findall(r"\b(posenc_\w+|POSENC_\w+)", code)
            names = [n for n in dict.fromkeys(names) if not n.startswith("POSENC_API")]
            if names:
                more = f", {names[1]}" if len(names) == 2 else f" and {len(names) - 1} more" if len(names) > 2 else ""
                out.append(f"### {plain(names[0])}{plain(more)}\n")
            out.append(f"```c\n{code}\n```\n")
        if comment:
            out.insert(1 if comment is rows[0][1] else len(out), comment_text(comment) + "\n")
    return "\n".join(out)


def example_page():
    """The programs of examples/, whole; the first line of each says what it is for."""
    out = ["# Whole programs\n", "From `examples`: each compiles by the line in its head, against an installed library (`make install`).\n"]
    for name in EXAMPLES:
        text = (ROOT / "examples" / name).read_text().partition("\n")[2]
        out.append(f"## {re.search(r'^ [*] (.+)$', text, re.M)[1]}\n\n```{'c++' if name.endswith('cpp') else 'c'}\n{text}```\n")
    return "\n".join(out)


# ---------------------------------------------------------------- Python

def docstring(node):
    text = ast.get_docstring(node)
    if not text:
        return ""
    out, code = [], False
    for line in text.split("\n"):
        if line.startswith(">>>") and not code:
            out.append("\n```pycon")
            code = True
        if code and not line.strip():
            out.append("```")
            code = False
        out.append(line if code else plain(line.strip()))
    return "\n".join(out + ["```"] * code) + "\n"


def signature(node, name):
    arguments = ast.unparse(node.args)
    whole = f"{name}({arguments})" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")
    if len(whole) > 90:
        parts = re.split(r", (?![^\[(]*[\])])", arguments)
        whole = f"{name}(\n    " + ",\n    ".join(parts) + "\n)" + (f" -> {ast.unparse(node.returns)}" if node.returns else "")
    return f"```python\n{whole}\n```\n"


def class_text(node, name):
    out = [docstring(node)]
    fields = [f"{s.target.id}: {ast.unparse(s.annotation)}" for s in node.body
              if isinstance(s, ast.AnnAssign) and not s.target.id.startswith("_")]
    if fields:
        out.append("```python\n" + "\n".join(fields) + "\n```\n")
    for s in node.body:
        if isinstance(s, ast.FunctionDef) and (not s.name.startswith("_") or s.name == "__init__"):
            is_property = any(ast.unparse(d) == "property" for d in s.decorator_list)
            if s.name == "__init__":
                s.args.args = s.args.args[1:] if not s.args.posonlyargs else s.args.args
                s.args.posonlyargs = s.args.posonlyargs[1:]
                out.insert(0, signature(s, name))
            else:
                if not is_property and s.args.args and s.args.args[0].arg in ("self", "cls"):
                    s.args.args = s.args.args[1:]
                out.append(f"```python\n{name}.{s.name}: {ast.unparse(s.returns) if s.returns else 'Any'}\n```\n" if is_property
                           else signature(s, f"{name}.{s.name}"))
                out.append(docstring(s))
    return "\n".join(out)


def definitions(path):
    return {n.name: n for n in ast.parse((ROOT / path).read_text()).body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}


def python_page(title, init, exports=None):
    """What a module exports, function by function, from its sources: nothing is imported."""
    folder = ROOT / os.path.dirname(init)
    tree = ast.parse((ROOT / init).read_text())
    found = definitions(init)
    for s in tree.body:
        if isinstance(s, ast.ImportFrom) and s.level == 1 and s.module:
            for suffix in (".py", ".pyi"):
                path = folder / (s.module + suffix)
                if path.exists():
                    there = definitions(os.path.relpath(path, ROOT))
                    found.update({a.asname or a.name: there[a.name] for a in s.names if a.name in there})
    if exports is None:
        named = [ast.literal_eval(s.value) for s in tree.body if isinstance(s, ast.Assign) and s.targets[-1].id == "__all__"]
        exports = named[0] if named else [n for n in found if not n.startswith("_")]
    out = [f"# {title}\n", docstring(tree)]
    functions = [n for n in exports if isinstance(found.get(n), ast.FunctionDef)]
    classes = [n for n in exports if isinstance(found.get(n), ast.ClassDef)]
    for heading, names in (("Functions", functions), ("Classes", classes)):
        if names:
            out.append(f"## {heading}\n")
        for n in names:
            node = found[n]
            out.append(f"### {plain(n)}\n")
            out += [signature(node, n), docstring(node)] if isinstance(node, ast.FunctionDef) else [class_text(node, n)]
    return "\n".join(out)


# ---------------------------------------------------------------- the folder

def write(folder):
    folder.mkdir(parents=True)
    decisions = sorted(str(p.relative_to(ROOT)) for p in (ROOT / "docs/decisions").glob("*.md"))
    paths = [p for group in DOCUMENTS.values() for p in group] + decisions
    known = {p: place(p) for p in paths}
    known.update({"docs/decisions": "decisions/index.md", "README.md": "../index.md",
                  **{f"include/posenc/{h}": f"c/{h[:-2]}.md" for h in HEADERS}, **{f"examples/{e}": "c/examples.md" for e in EXAMPLES}})
    (folder / "decisions").mkdir()
    for p in paths:
        (folder / place(p)).write_text(document(p, known))
    (folder / "decisions/index.md").write_text(
        "# Decisions\n\nWhy things are the way they are: one page each, with what was measured.\n\n```{toctree}\n:maxdepth: 1\n\n"
        + "\n".join(os.path.basename(d)[:-3] for d in decisions) + "\n```\n")
    (folder / "c").mkdir()
    for h in HEADERS:
        (folder / f"c/{h[:-2]}.md").write_text(c_page(h))
    (folder / "c/examples.md").write_text(example_page())
    (folder / "c/index.md").write_text(
        "# The C API\n\nFrom the headers in `include/posenc`, in their order: the declaration, and what its comment says. "
        "Begin with [](examples.md) and [posenc.h](posenc.md); the other headers are for more.\n\n"
        "```{toctree}\n:maxdepth: 1\n\nexamples\n" + "\n".join(h[:-2] for h in HEADERS) + "\n```\n")
    (folder / "api").mkdir()
    pages = {"posenc": python_page("posenc", "python/posenc/__init__.py"),
             "positions": python_page("posenc.positions", "python/posenc/positions.py"),
             "torch": python_page("posenc.torch", "python/posenc/torch/__init__.py"),
             "hf": python_page("posenc.torch.hf", "python/posenc/torch/hf.py")}
    for name, text in pages.items():
        (folder / f"api/{name}.md").write_text(text)
    (folder / "api/index.md").write_text(
        "# The Python API\n\nSignatures and docstrings of the package. Recipes: [](../python.md).\n\n```{toctree}\n:maxdepth: 1\n\n"
        + "\n".join(pages) + "\n```\n")
    tree = lambda names: "```{toctree}\n:maxdepth: 1\n\n" + "\n".join(names) + "\n```\n"
    (folder / "index.md").write_text(
        "# Reference\n\n## Interfaces\n\n" + tree(["c/index", "api/index"])
        + "\n## Using it\n\n" + tree(place(p)[:-3] for p in DOCUMENTS["using"])
        + "\n## What is promised, and measured\n\n" + tree(place(p)[:-3] for p in DOCUMENTS["trust"])
        + "\n## How it is made\n\n" + tree([*(place(p)[:-3] for p in DOCUMENTS["inside"]), "decisions/index"]))
