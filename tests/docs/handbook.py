#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""handbook.py [--run POSENC SITE BUILD]: is the handbook (docs/handbook) whole, and does all of it run?

Without --run, in a second: every page is there in both languages with the same commands and programs, formulas are well formed,
links between pages lead somewhere, README.zh.md has README.md's commands and programs.

With --run, in minutes: each program of the pages in C and Python, and each line of shell, is run; SITE (make docs has just built
it, with every figure and table) has no link that leads nowhere; and formulas are the MathML of `posenc tutorial`.
BUILD is the folder with the libraries and python/posenc. A command that trains gets the preset quick and --steps 50, without tasks. Python programs need the module
(-DPOSENC_PYTHON=ON and NumPy); where it cannot be imported they are counted as not run, and the exit status is 1.
"""
import html
import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parents[2]
BOOK = ROOT / "docs/handbook"
sys.path.insert(0, str(BOOK / "_ext"))
import formulas  # noqa: E402

FENCE = re.compile(r"^```(\S+)(?: ([^\n]*))?\n(.*?)^```", re.M | re.S)
MADE = re.compile(r"(^|/)(encodings|reference|tutorials)/|^errata\.md$")  # folders and pages that build.py makes
faults = []


def fault(where, what):
    faults.append(f"{where}: {what}")


def pages(lang):
    return {str(p.relative_to(BOOK / lang)): p.read_text() for p in sorted((BOOK / lang).rglob("*.md"))}


# ---------------------------------------------------------------- in a second

# Words for a sentence differ by language, and what stands behind them.
def commands_of(text):
    return [re.sub(r" --words.*| --lang zh", "", args) for kind, args, _ in FENCE.findall(text) if kind == "{posenc}"]


def programs_of(text):
    """Code without its comments, which are translated."""
    return [re.sub(r"/\*.*?\*/|//.*|#[^i\n].*", "", body).split() for kind, _, body in FENCE.findall(text) if kind in ("c", "python", "sh")]


def check_sources():
    en, zh = pages("en"), pages("zh")
    for name in sorted((set(en) ^ set(zh)) - {"reference.md"}):  # links to the reference, which is in English
        fault(name, "is there in one language only")
    for name in sorted(set(en) & set(zh)):
        for what, of in (("commands", commands_of), ("programs", programs_of)):
            if of(en[name]) != of(zh[name]):
                fault(name, f"its {what} differ between the languages")
    for lang, found in (("en", en), ("zh", zh)):
        for name, text in found.items():
            for kind, _, body in FENCE.findall(text):
                if kind == "{formula}":
                    check_formula(f"{lang}/{name}", body.strip("\n"))
            for inline in re.findall(r"\{f\}`([^`]*)`", text):
                check_formula(f"{lang}/{name}", inline)
            for target in re.findall(r"\]\(([^)#\s]+\.md)\)", text):
                path = os.path.normpath(os.path.join(os.path.dirname(name), target))
                if path not in found and not MADE.search(path):
                    fault(f"{lang}/{name}", f"leads to {target}, which is no page")


def check_formula(where, text):
    try:
        formulas.mathml(text)
    except formulas.Broken as error:
        fault(where, error)


def check_readme():
    def commands(name):
        lines = re.findall(r"^    (\S.*)$", (ROOT / name).read_text(), re.M)
        return [re.split(r"\s{2,}|\s#\s", line)[0] for line in lines]
    en, zh = commands("README.md"), commands("README.zh.md")
    for line in sorted(set(en) - set(zh)):
        fault("README.zh.md", f"lacks the line of README.md: {line}")
    for line in sorted(set(zh) - set(en)):
        fault("README.zh.md", f"has a line that README.md lacks: {line}")
    if programs_of((ROOT / "README.md").read_text()) != programs_of((ROOT / "README.zh.md").read_text()):
        fault("README.zh.md", "its programs are not README.md's")


# ---------------------------------------------------------------- in minutes

class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.ids, self.links = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids.update(attrs[k] for k in ("id", "name") if attrs.get(k))
        self.links += [attrs[k] for k in ("href", "src") if attrs.get(k)]


def check_links(site, names):
    found = {p: Page(p.read_text()) for p in site.rglob("*.html")}
    count = 0
    for path, page in found.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            count += 1
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                fault(path.relative_to(site), f"{link} leads nowhere")
            elif target.name == "explore.html":  # whose fragment is a SPEC, and what follows & is the page's own
                spec = unquote(parts.fragment.split("&")[0])
                if spec and spec not in names:
                    fault(path.relative_to(site), f"{link}: no encoding has this name")
            elif parts.fragment and target in found and unquote(parts.fragment) not in found[target].ids:
                fault(path.relative_to(site), f"{link}: no such place on that page")
    print(f"{len(found)} pages, {count} local links")


def check_mathml(tool, scratch):
    """What formulas.py makes is what src/show/mathml.c makes."""
    count = 0
    squeeze = lambda s: re.sub(r"\s+(?=<)|(?<=>)\s+", "", html.unescape(s))
    for number in ("000", "001", "002", "003", "004"):
        rows = json.loads((ROOT / f"docs/tutorials/{number}.json").read_text())
        texts = [r["formula"] for s in rows["sections"] for r in s["rows"] if "formula" in r]
        page = scratch / f"{number}.html"
        subprocess.run([tool, "tutorial", number, "-o", page], check=True, capture_output=True, cwd=ROOT)
        made = squeeze(page.read_text())
        for text in texts:
            count += 1
            if squeeze(formulas.mathml(text, True)) not in made:
                fault(f"tutorial {number}", f"another MathML of {text!r}")
    print(f"{count} formulas")


def run(where, words, said=None, **options):
    """Runs it; what it prints must be what the page says that it prints."""
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, **options)
    if done.returncode:
        fault(where, f"exit status {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
    elif said and done.stdout.strip() != said:
        fault(where, f"prints {done.stdout.strip()!r}; the page says {said!r}")
    return done.returncode == 0


def prepare(tool, folder):
    """The files that the pages speak of: a text, a config, q before and after, a checkpoint."""
    (folder / "my.txt").write_text((ROOT / "docs/experiments.md").read_text())
    (folder / "config.json").write_text((ROOT / "tests/golden/configs/llama31_8b.json").read_text())
    (folder / "docs").symlink_to(ROOT / "docs")
    (folder / "bin").mkdir()
    # This Python, which has NumPy, whatever comes first in PATH. A link would not find the packages of a virtual environment.
    (folder / "bin/python3").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (folder / "bin/python3").chmod(0o755)
    import numpy as np
    q = np.random.default_rng(0).standard_normal((1, 2, 8, 128)).astype("float32")
    np.save(folder / "q.npy", q)
    subprocess.run([tool, "rotate", "--config", "config.json", "-i", "q.npy", "-o", "q_rotated.npy"], cwd=folder, check=True)
    (folder / "tiny.json").write_text(json.dumps({"model_type": "llama", "hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": 2,
                                                  "num_hidden_layers": 1, "rope_theta": 10000.0, "max_position_embeddings": 64}))
    rows, head, at = {"q": 32, "k": 16}, {}, 0
    for n, r in rows.items():
        head[f"model.layers.0.self_attn.{n}_proj.weight"] = {"dtype": "F32", "shape": [r, 32], "data_offsets": [at, at + r * 128]}
        at += r * 128
    text = json.dumps(head).encode()
    (folder / "meta.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + bytes(at))


def shell(line, fault_place, env, folder):
    """A line as it stands; what trains gets fewer steps, and the small checkpoint its own config."""
    if re.match(r"posenc compare", line) and "--dry-run" not in line:
        line = line.rstrip() + " --preset quick --tasks none --stability none --steps 50"
    if line.startswith("posenc permute"):
        line = line.replace("config.json", "tiny.json")
    return run(f"{fault_place}: {line.splitlines()[0]}", ["bash", "-euc", line], cwd=folder, env=env)


def check_programs(tool, build, sources):
    env = dict(os.environ, PATH=f"{tool.parent}:{os.environ['PATH']}", PYTHONPATH=str(build / "python"), OMP_NUM_THREADS="2")
    can_import = lambda module: not subprocess.run([sys.executable, "-c", f"import {module}"], env=env, capture_output=True).returncode
    has_python, has_torch = can_import("posenc"), can_import("torch")
    counts, seen, left, blocks = {"c": 0, "python": 0, "sh": 0}, set(), 0, []
    for path in sorted(sources.rglob("*.md")):
        if "/reference/" in str(path):  # the documents have tests of their own
            continue
        text = path.read_text()
        for found in FENCE.finditer(text):
            kind, body = found[1], found[3]
            said = re.match(r"\n\n(?:It prints|输出是) `([^`]+)`", text[found.end():])
            if kind in counts and (kind, body) not in seen:
                seen.add((kind, body))
                blocks.append((str(path.relative_to(sources)), kind, body, said and said[1]))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        prepare(tool, folder)
        env["PATH"] = f"{folder}/bin:{env['PATH']}"

        def one(block):
            number, (where, kind, body, said) = block
            if kind == "c":
                source, program = folder / f"p{number}.c", folder / f"p{number}"
                source.write_text(body)
                if run(where, ["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-fopenmp", f"-I{ROOT}/include", source, build / "libposenc.a",
                               "-lm", "-o", program]):
                    run(where, [program], said)
            elif kind == "python":
                run(where, [sys.executable, "-c", body], env=env, cwd=folder)
            else:
                if body.startswith("cc attend.c"):
                    return  # needs an installed library: tests/install
                shell(body, where, env, folder)
        if not has_torch:
            print(f"{sum('import torch' in b[2] for b in blocks)} programs need torch, and were not run")
            blocks = [b for b in blocks if "import torch" not in b[2]]
        wanted = [b for b in enumerate(blocks) if b[1][1] != "python" or has_python]
        left = len(blocks) - len(wanted)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, wanted))
        for _, (_, kind, *_) in wanted:
            counts[kind] += 1
    print(f"programs: {counts['c']} in C, {counts['python']} in Python; {counts['sh']} blocks of shell")
    if left:
        fault("handbook", f"{left} Python programs were not run: {sys.executable} cannot import posenc from {build}/python")


def main():
    check_sources()
    check_readme()
    if sys.argv[1:2] == ["--run"]:
        tool, site, build = (Path(p).resolve() for p in sys.argv[2:5])
        listed = subprocess.run([tool, "list", "--json"], check=True, capture_output=True, text=True).stdout
        check_links(site, {e["name"] for e in json.loads(listed)})
        check_programs(tool, build, site / "source")
        with tempfile.TemporaryDirectory() as scratch:
            check_mathml(tool, Path(scratch))
    for line in faults:
        print(line, file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
