#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_explore.py POSENC [--all] [--pictures DIR]: the explorer's page, driven in a headless chromium

Numbers of its pictures equal those of `posenc plot ... -o F.csv`; nothing is asked of a network, and the console stays
empty; sliders, the SPEC, the sentence, the arrow keys and the two languages do what they say. --all: every picture of
every encoding, else a few. --pictures: writes screenshots of two widths, light and dark. Skipped (77) without chromium,
or where posenc was built without the module. Standard library only.
"""
import argparse
import base64
import csv
import fcntl
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SIZES = {"decay": {"length": 64, "draws": 5}, "mass": {"length": 64, "draws": 5}}
OPTIONS = {"dim": "--dim", "length": "--length", "heads": "--heads", "draws": "--draws", "seed": "--seed"}


class Browser:
    """Chromium through its debugging pipe: messages are JSON with a zero byte behind."""

    def __init__(self, program, folder):
        mine, its = os.pipe(), os.pipe()
        def pipes():
            a, b = fcntl.fcntl(mine[0], fcntl.F_DUPFD, 10), fcntl.fcntl(its[1], fcntl.F_DUPFD, 10)
            os.dup2(a, 3), os.dup2(b, 4)
        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--disable-dev-shm-usage",
             "--no-first-run", f"--user-data-dir={folder}/profile", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(mine[0]), os.close(its[1])
        self.to, self.out, self.rest, self.count, self.said, self.asked = mine[1], its[0], b"", 0, [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    session = None

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.out, 1 << 20)
            if not more:
                raise RuntimeError("chromium ended")
            self.rest += more
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, **params):
        self.count += 1
        message = {"id": self.count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.count:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if answer.get("method") in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"):
                self.said.append(json.dumps(answer["params"])[:300])
            if answer.get("method") == "Network.requestWillBeSent":
                self.asked.append(answer["params"]["request"]["url"][:60])

    def js(self, code):
        got = self.call("Runtime.evaluate", expression=f"(async () => {{ {code} }})()", awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in got:
            raise RuntimeError(f"{code}: {json.dumps(got['exceptionDetails'])[:400]}")
        return got["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)
        self.js("while (typeof registry === 'undefined' || !registry || !document.querySelector('#figure svg, #problem:not([hidden])')) "
                "await new Promise(r => setTimeout(r, 20)); return 1")

    def close(self):
        self.process.kill()
        self.process.wait()


AFTER = "await new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)));"


def rows(text):
    return list(csv.reader(text.splitlines()))


def far(a, b):
    """Where two CSV files differ: texts at all, numbers by more than 1e-9 of them or of 1; "" where they do not."""
    a, b = rows(a), rows(b)
    if [len(r) for r in a] != [len(r) for r in b]:
        return f"{len(a)} lines, not {len(b)}"
    for i, (x, y) in enumerate(zip(a, b)):
        for k, (p, q) in enumerate(zip(x, y)):
            try:
                p, q = float(p), float(q)
            except ValueError:
                if p != q:
                    return f"line {i + 1}: \"{p}\", not \"{q}\""
                continue
            if not (abs(p - q) <= 1e-9 * max(1, abs(q)) or (math.isnan(p) and math.isnan(q))):
                return f"line {i + 1}, column {k + 1}: {p!r}, not {q!r}"
    return ""


def numbers_are_the_tool_s(page, posenc, folder, every):
    wrong, count = [], 0
    encodings = json.loads(page.js("return JSON.stringify(registry.encodings.map(e => [e.name, e.pictures]))"))
    chosen = {"sinusoidal", "rope", "alibi", "t5", "swin", "sinusoidal_2d", "urpe"}
    for name, pictures in encodings:
        for kind in filter(None, (pictures or "").split(",")) if every or name in chosen else ():
            kind, sizes = kind.strip(), dict(SIZES.get(kind.strip(), {}))
            asked = {"spec": name, "kind": kind, **sizes, **({"words": "how far apart"} if kind == "words" else {})}
            if name not in chosen and kind == "mass":
                asked["length"] = sizes["length"] = 32
            offer = json.loads(page.js(f"return JSON.stringify(ask('explore_offers', {{spec: {json.dumps(name)}}}))"))
            place = next(k["place"] for k in offer["kinds"] if k["kind"] == kind)
            if place == "score":
                sizes.pop("draws", None)
            got = page.js(f"const f = ask('explore_picture', {json.dumps(asked)}); return f.error ?? text(module.explore_csv())")
            out = folder / "tool.csv"
            command = [posenc, "plot", kind, name, "-o", str(out)]
            for k, v in sizes.items():
                command += [OPTIONS[k], str(v)]
            if kind == "words":
                command += ["--words", "how far apart"]
            ran = subprocess.run(command, capture_output=True, text=True)
            want = out.read_text() if ran.returncode == 0 else ran.stderr.strip().removeprefix("posenc: error: ")
            out.unlink(missing_ok=True)
            count += 1
            if ran.returncode:
                if got not in want and want not in got:
                    wrong.append(f"{name} {kind}: the page says \"{got[:200]}\", the tool \"{want}\"")
            elif difference := far(got, want):
                wrong.append(f"{name} {kind}: {difference}")
    return wrong, count


def page_does_what_it_says(page, url):
    wrong = []
    def must(what, holds):
        if not holds:
            wrong.append(what)
    page.open(url + "#sinusoidal&kind=heatmap&length=2&dim=4")
    first = page.js("return Array.from(numbers(shown.values))")
    must("the first numbers of a sinusoid", len(first) == 8 and abs(first[1] - math.sin(1)) < 1e-12)
    page.js("choose('rope[base=500000]')")
    page.js(AFTER)
    must("a SPEC is kept in the address", "rope%5Bbase%3D500000%5D" in page.js("return location.hash"))
    must("its settings are shown", page.js("return $('settings').querySelectorAll('input, select').length") > 5)
    must("the base has a slider", page.js("return !!document.querySelector('[data-name=base]')"))
    page.js("choose('rope[bases=1]')")
    must("a wrong SPEC is one sentence", "base" in page.js("return $('problem').hidden ? '' : $('problem').textContent"))
    page.js("choose('t5')")
    page.js("const s = document.querySelector('[data-name=length]'); s.value = 300; s.oninput()")
    page.js(AFTER)
    must("a slider changes the picture", page.js("return Math.max(...Array.from(numbers(shown.curves[0].x)))") >= 299)
    page.js("document.querySelector('[data-kind=sentence]').click()")
    page.js("$('words').value = 'one two three two'; $('words').oninput({target: $('words')});" + AFTER)
    must("a sentence has scores and weights", page.js("return shown.panels.length == 2 && shown.panels[0].rows") == 4)
    must("its weights of a query sum to one", page.js("return Array.from(numbers(shown.panels[1].values)).slice(12).reduce((a, b) => a + b)") - 1 < 1e-12)
    for spec, same in (("t5", 1), ("rope", 1), ("sinusoidal", 0)):
        said = page.js(f"state.shift = 100; choose('{spec}'); {AFTER} return $('changed').textContent")
        must(f"{spec} shifted: \"{said}\"", ("Nothing depends" in said) == bool(same) and "100" in said)
    page.js("$('figure').focus(); onKey({key: 'ArrowRight', preventDefault() {}})")
    must("arrow keys read numbers", "value" in page.js("return $('readout').textContent") or page.js("return $('readout').textContent"))
    page.js("$('language').click();" + AFTER)
    must("it speaks Chinese", page.js("return $('kinds').textContent").endswith("句子") and page.js("return document.documentElement.lang") == "zh")
    page.js("$('language').click(); state.shift = 0; state.second = 'alibi'; choose('t5'); $('kinds').firstChild.click();" + AFTER)
    must("two encodings beside each other", "alibi" in page.js("return $('figure').textContent"))
    return wrong


def step_of_a_slider(page, url):
    page.open(url + "#sinusoidal&kind=heatmap&length=256&dim=128")
    return sorted(page.js("const took = []; for (let i = 0; i < 15; i++) { state.dim = 128 - 2 * (i % 2); show();" + AFTER +
                          "took.push(state.took); } return took"))[7]


def screenshots(page, url, folder):
    folder.mkdir(exist_ok=True)
    for width in (1280, 360):
        for theme in ("light", "dark"):
            for lang, where in (("en", "#sinusoidal&kind=heatmap&counter=1"), ("zh", "#rope&kind=decay&lang=zh"), ("en", "#t5&kind=bias"), ("en", "#alibi&kind=sentence&heads=4&shift=10"), ("en", "#rope&kind=pair")):
                page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 400)
                page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
                page.open(url + where)
                page.js(AFTER)
                name = where[1:].replace("&", "_").replace("=", "-")
                picture = page.call("Page.captureScreenshot", format="png")["data"]
                (folder / f"{width}-{theme}-{name}.png").write_bytes(base64.b64decode(picture))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("posenc")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--pictures", type=Path)
    args = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        made = subprocess.run([args.posenc, "explore", "-o", folder / "page.html"], capture_output=True, text=True)
        if made.returncode and "without the page's module" in made.stderr:
            print("explore: skipped: posenc was built without the module (tools/packages.txt: clang, lld, wasi-libc)")
            sys.exit(77)
        if made.returncode:
            sys.exit(f"wrong: {made.stderr}")
        size = (folder / "page.html").stat().st_size
        wrong = [] if size < 2 << 20 else [f"the page has {size} bytes"]
        if not program:
            print("explore: skipped: chromium is not installed")
            sys.exit(77)
        page, url = Browser(program, folder), f"file://{folder}/page.html"
        try:
            page.call("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)
            wrong += page_does_what_it_says(page, url)
            different, count = numbers_are_the_tool_s(page, args.posenc, folder, args.all)
            took = step_of_a_slider(page, url)
            wrong += different + [f"the console said: {s}" for s in page.said]
            wrong += [f"it asked for {u}" for u in page.asked if not u.startswith(("file:", "data:", "about:", "blob:"))]
            if args.pictures:
                screenshots(page, url, args.pictures)
        finally:
            page.close()
    for sentence in wrong:
        print("wrong:", sentence)
    print(f"explore: {count} pictures, {size} bytes, {took:.0f} ms for a slider's step of 256 positions and 128 channels, {len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
