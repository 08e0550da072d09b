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
import xml.dom.minidom
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

    def go(self, address):
        """The same page at another address: what is after its #."""
        self.js(f"clearTimeout(remembering); if (location.hash !== {json.dumps(address)}) {{ const gone = new Promise(r => addEventListener('hashchange', r, {{once: true}})); "
                f"location.hash = {json.dumps(address)}; await gone; }} {AFTER}")

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


def set_field(page, name, value, event="onchange"):
    page.js(f"const e = $('{name}'); e.value = {json.dumps(value)}; e.{event}({{target: e}});" + AFTER)


def page_does_what_it_says(page, url):
    wrong = []
    def must(what, holds):
        if not holds:
            wrong.append(what)
    page.open(url + "#sinusoidal&kind=heatmap&length=2&dim=4")
    first = page.js("return Array.from(numbers(shown.values))")
    must("the first numbers of a sinusoid", len(first) == 8 and abs(first[1] - math.sin(1)) < 1e-12)
    set_field(page, "spec", "rope[base=500000]")
    must("settings of one encoding and those of all are shown", page.js("return $('settings').textContent.includes('softcap') && $('settings').querySelectorAll('input, select').length > 10"))
    must("the base has a slider", page.js("return !!document.querySelector('[data-name=base]')"))
    page.js("await new Promise(r => setTimeout(r, 350))")
    must("a SPEC is kept in the address", "rope%5Bbase%3D500000%5D" in page.js("return location.hash"))
    set_field(page, "spec", "rope[bases=1]")
    must("a wrong SPEC is one sentence", "base" in page.js("return $('problem').hidden ? '' : $('problem').textContent"))
    set_field(page, "spec", "t5")
    page.js("const s = document.querySelector('[data-name=length]'); s.value = 300; s.oninput()")
    page.js(AFTER)
    must("a slider changes the picture", page.js("return Math.max(...Array.from(numbers(shown.curves[0].x)))") >= 299)
    page.js("document.querySelector('[data-kind=sentence]').click()")
    set_field(page, "words", "one two three two", "oninput")
    must("a sentence has scores and weights, and those of a query", page.js("return shown.panels.map(p => p.rows).join()") == "4,4,1,1")
    must("the weights of a query sum to one", abs(page.js("return Array.from(numbers(shown.panels[3].values)).reduce((a, b) => a + b)") - 1) < 1e-12)
    page.js("choose('spec', 'learned'); pick('heatmap'); choose('spec', 'learned'); document.querySelector('[data-name=twice]').click();" + AFTER)
    must("twice as long as its table is made for breaks a learned one", "outside the table" in page.js("return $('problem').textContent"))
    page.js("document.querySelector('[data-name=twice]').click();" + AFTER)
    must("and is fixed", page.js("return $('problem').hidden && shown.cols") == 128)
    page.js("$('kinds').firstChild.onkeydown({key: 'ArrowRight', preventDefault() {}});" + AFTER)
    must("arrow keys choose a picture", page.js("return document.activeElement.dataset.kind") == "curves")
    page.js("choose('spec', 't5'); $('kinds').lastChild.click();" + AFTER)
    page.js("const s = document.querySelector('[data-name=heads]'); s.focus(); s.value = 3; s.oninput(); window.same = s.isConnected; s.onchange();" + AFTER)
    must("a slider stays while it moves, and the focus with it", page.js("return window.same && document.activeElement.dataset.name == 'heads' && !!document.querySelector('[data-name=head]')"))
    page.js("$('figure').focus(); onKey({key: 'ArrowRight', preventDefault() {}})")
    must("arrow keys read numbers", ":" in page.js("return $('readout').textContent"))
    page.js("state.second = ''; $('language').click();" + AFTER)
    must("it speaks Chinese", page.js("return $('kinds').textContent").endswith("句子") and page.js("return document.documentElement.lang").startswith("zh"))
    page.js("$('language').click(); state.second = 'alibi'; choose('spec', 't5'); $('kinds').firstChild.click();" + AFTER)
    must("two encodings beside each other", "alibi" in page.js("return $('figure').textContent"))
    return wrong


def shifts_say_what_is_true(page, url):
    """Every encoding in the sentence; parameters that start at zero are varied before anything is said of them."""
    wrong, relative = [], ("t5", "rope", "alibi", "shaw", "swin", "relative_table", "kerple_log", "fire", "fox")
    page.open(url + "#t5&kind=sentence&shift=3&words=one%20two%20three%20two")
    for name in json.loads(page.js("return JSON.stringify(registry.encodings.map(e => e.name))")):
        page.js(f"choose('spec', '{name}');" + AFTER)
        said = page.js("return [$('changed').textContent, $('problem').hidden ? '' : $('problem').textContent]")
        if not said[0] and " position" in said[1] or "token numbers" in said[1]:
            continue # its table ends: the sentence says so
        if said[1] or "3" not in said[0]:
            wrong.append(f"the sentence under {name}: {said}")
        elif name in relative and "None of these weights" not in said[0] or name in ("timestep", "sinusoidal", "complex_order") and "matters" not in said[0]:
            wrong.append(f"{name}, shifted: {said[0]}")
    return wrong


def specs_survive(page, url):
    """What is pasted stays, whatever is changed beside it."""
    wrong = []
    for spec, change, then in (
            ("rope+t5", "const s = document.querySelector('[data-name=base]'); s.value = 9; s.oninput()", "rope[base=512]+t5"),
            ("rope[axes=3:sections=24:20:20]", "setSetting('spec', 0, 'base', '500')", "rope[axes=3:sections=24:20:20:base=500]"),
            ("rope[axes=3,sections=24:20:20]+t5[num_buckets=16]", "setSetting('spec', 1, 'max_distance', '64')",
             "rope[axes=3:sections=24:20:20]+t5[num_buckets=16:max_distance=64]"),
            ("swin[window=5x5]", "setSetting('spec', 0, 'scale', '1')", "swin[window=5x5:scale=1]"),
            ("rope[base=500]", "setSetting('spec', 0, 'base', '')", "rope")):
        page.js("state.second = ''")
        set_field(page, "spec", spec)
        before = page.js("return JSON.stringify(ask('explore_offers', {spec: state.spec}).error ?? '')")
        page.js(change + ";" + AFTER)
        got = page.js("return [$('spec').value, state.spec, ask('explore_offers', {spec: state.spec}).error ?? '']")
        if got != [then, then, ""]:
            wrong.append(f"{spec} ({before}) becomes {got}, not {then}")
    page.js("state.second = ''; choose('spec', 'rope'); choose('second', 'rope[base=100]');" + AFTER)
    page.js("setSetting('second', 0, 'schedule', 'linear'); setSetting('second', 0, 'factor', '4');" + AFTER)
    if page.js("return [$('spec').value, $('second').value, $('second').parentNode.hidden]") != ["rope", "rope[base=100:schedule=linear:factor=4]", False]:
        wrong.append("the second SPEC: " + page.js("return $('second').value"))
    page.js("choose('spec', 'rope[axes=3,sections=24:20:20]+t5'); choose('second', 'alibi+rope'); state.kind = 'sentence'; state.words = 'a + b = 5 % & #';" + AFTER)
    page.js("clearTimeout(remembering); write()")
    kept = page.js("return [location.hash, state.spec, state.second, state.kind, state.words]")
    page.go("#nope")
    page.go(kept[0])
    if page.js("return [state.spec, state.second, state.kind, state.words]") != kept[1:]:
        wrong.append(f"the address {kept[0]} brings back {page.js('return [state.spec, state.second, state.kind, state.words]')}")
    page.js("choose('second', '')")
    return wrong


def sentences_take_what_is_typed(page, url):
    wrong = []
    page.open(url + "#alibi&kind=sentence&dim=4&words=a%20b%20c")
    page.js("$('typed').open = true")
    set_field(page, "q", "2 0; 0 1; 1 1", "oninput")
    set_field(page, "k", "1 3", "oninput")
    got = page.js("return [...numbers(ask('explore_attend', {...sentenceOf(), spec: 'nope', causal: 0}).figure.panels[0].values)]")
    if any(abs(x - y) > 1e-12 for x, y in zip(got, [1, 1, 1, 1.5, 1.5, 1.5, 2, 2, 2])):
        wrong.append(f"typed q and k: {got}")
    set_field(page, "q", "2 0; 0 1", "oninput")
    if "one for each of the 3 words" not in page.js("return $('problem').textContent"):
        wrong.append("two q for three words are refused: " + page.js("return $('problem').textContent"))
    set_field(page, "q", "0", "oninput")
    page.js("choose('spec', 'fox')")
    drawn = page.js(AFTER + "return [$('problem').hidden, $('tokens').parentNode.hidden, ...numbers(shown.panels[0].values)]")
    if drawn[:2] != [True, False] or not math.isfinite(drawn[2]):
        wrong.append(f"fox draws its token inputs: {drawn[:2]} " + page.js("return $('problem').textContent"))
    set_field(page, "tokens", "f: 0 1 2", "oninput")
    gates = [math.log(1 / (1 + math.exp(-x))) for x in (1, 2)]
    got = page.js("return [$('problem').textContent, ...numbers(shown.panels[0].values)]")
    if got[0] or abs(got[7] - sum(gates)) > 1e-12 or abs(got[8] - gates[1]) > 1e-12:
        wrong.append(f"fox of typed gates: {got}, not {sum(gates)}, {gates[1]}")
    set_field(page, "tokens", "f: 1 2", "oninput")
    if "for each of the 3 words" not in page.js("return $('problem').textContent"):
        wrong.append("two gates for three words are refused: " + page.js("return $('problem').textContent"))
    set_field(page, "tokens", "", "oninput")
    page.js("state.times = 2; choose('spec', 'learned');" + AFTER)
    if "3" not in page.js("return $('problem').textContent"):
        wrong.append("a sentence twice as long as a learned table is refused: " + page.js("return $('problem').textContent"))
    return wrong


def pictures_say_it_in_both_languages(page, url):
    """Titles, axes and names; curves that are seen on dark paper, legends with whole names."""
    wrong = []
    page.open(url)
    for where in ("#rope&kind=decay&length=64", "#sinusoidal&kind=heatmap", "#t5&kind=bias", "#rope&kind=wavelengths", "#alibi&kind=mass", "#alibi&kind=sentence",
                  "#sinusoidal&kind=similarity", "#rope&kind=pair", "#t5&kind=buckets", "#sinusoidal&kind=curves"):
        page.go(where + "&lang=zh")
        texts = page.js(AFTER + "return [...document.querySelectorAll('#figure text')].map(e => e.textContent)")
        english = [one for one in texts if len([w for w in one.replace("_", " ").split() if w.isascii() and w.isalpha() and len(w) > 3 and w not in ("alibi", "rope", "sinusoidal")]) > 1]
        if english:
            wrong.append(f"in the Chinese page {where}: {english[:3]}")
        plain = page.js("return [...document.querySelectorAll('#settings small')].map(e => e.textContent).filter(s => !/[\\u4e00-\\u9fff]/.test(s))")
        if plain:
            wrong.append(f"in the Chinese page {where}, settings in English: {plain[:3]}")
    if "词元" not in page.js("choose('spec', 'xlnet'); return $('formula').textContent"):
        wrong.append("letters of the formula are in English on the Chinese page")
    tongue = "return document.documentElement.lang"
    page.go("#rope&kind=decay&length=64")
    if not page.js(tongue).startswith("zh"):
        wrong.append("an address without a language changes it")
    page.js("$('language').click()")
    page.go("#rope&kind=decay&length=32")
    if page.js(tongue) != "en":
        wrong.append("an address without a language changes the one that was chosen")
    page.go("#rope&lang=zh")
    if not page.js(tongue).startswith("zh"):
        wrong.append("an address with a language does not change it")
    page.js("$('language').click()")
    page.go("#alibi&kind=bias&heads=16")
    page.js("document.documentElement.dataset.theme = 'dark'; show()")
    dark = page.js("""return [...document.querySelectorAll('#figure g path[stroke]')].map(e => getComputedStyle(e).stroke.match(/\\d+/g).map(Number))
                      .filter(c => .3 * c[0] + .6 * c[1] + .1 * c[2] < 90).length""")
    if dark:
        wrong.append(f"{dark} curves are too dark for dark paper")
    page.go("#sinusoidal&kind=curves")
    if page.js("return [...document.querySelectorAll('#figure text')].some(e => e.textContent.includes('…'))"):
        wrong.append("a name in the legend is cut")
    return wrong


def addresses_are_written_seldom(page, url):
    page.open(url + "#sinusoidal&kind=heatmap")
    count = page.js("let n = 0; const real = history.replaceState; history.replaceState = function (...a) { n++; return real.apply(this, a); };"
                    "for (let i = 0; i < 40; i++) { state.length = 60 + i; show(); await new Promise(r => setTimeout(r, 5)); }"
                    "await new Promise(r => setTimeout(r, 400)); return [n, location.hash]")
    return [] if count[0] <= 5 and "length=99" in count[1] else [f"the address is written {count[0]} times in 40 steps and ends as {count[1]}"]


def files_are_read(page, url, posenc, folder, configs):
    """Each config.json dropped says what `posenc inspect --json` prints."""
    wrong = []
    page.open(url + "#rope")
    if "without jansson" in page.js("return send('explore_model', '{}').error ?? ''"):
        print("explore: no config.json is read: the page was made without jansson's source (make explore fetches it)")
        return wrong
    for path in configs:
        text = path.read_text()
        ran = subprocess.run([posenc, "inspect", "--json", str(path)], capture_output=True, text=True)
        got = page.js(f"const a = send('explore_model', {json.dumps(text)}); return JSON.stringify(a.error ?? a.model)")
        if ran.returncode == 0 and json.loads(got) != json.loads(ran.stdout):
            wrong.append(f"{path.name}: the page reads {got[:200]}")
        if ran.returncode and not isinstance(json.loads(got), str):
            wrong.append(f"{path.name}: the tool refuses it, the page does not")
    page.js("""const files = new DataTransfer(); files.items.add(new File([%s], 'config.json'));
               dispatchEvent(new DragEvent('drop', {dataTransfer: files, cancelable: true}));
               while (!dropped) await new Promise(r => setTimeout(r, 20));""" % json.dumps((configs[0].parent / "llama31_8b.json").read_text()) + AFTER)
    seen = page.js("return [state.spec, $('model').textContent, $('problem').textContent, state.kind]")
    if "llama3" not in seen[0] or "inv_freq" not in seen[1] or "131072" not in seen[1] or seen[2]:
        wrong.append(f"a dropped config.json: {seen}")
    for name in ("llama31_8b", "phi3_mini_128k"):  # the numbers of the file, at its context
        path = configs[0].parent / f"{name}.json"
        page.js("""dropped = null; await readFile(new File([%s], 'config.json')); pick('wavelengths'); choose('spec', state.spec);""" % json.dumps(path.read_text()) + AFTER)
        subprocess.run([posenc, "plot", "wavelengths", "--config", str(path), "-o", str(folder / "config.csv")], check=True)
        if difference := far(page.js("return text(module.explore_csv())"), (folder / "config.csv").read_text()):
            wrong.append(f"wavelengths of {name}: {difference}")
        page.js("pick('sentence'); choose('spec', state.spec);" + AFTER)
        if page.js("return $('problem').textContent"):
            wrong.append(f"a sentence under {name}: " + page.js("return $('problem').textContent"))
    page.js("dropped = null; send('explore_model', '{'); const files = new DataTransfer(); files.items.add(new File(['{'], 'bad.json'));"
            "dispatchEvent(new DragEvent('drop', {dataTransfer: files, cancelable: true})); await new Promise(r => setTimeout(r, 200));")
    if "bad.json" not in page.js("return $('problem').textContent"):
        wrong.append("a file that is no JSON is refused: " + page.js("return $('problem').textContent"))
    return wrong


def what_is_seen_is_saved(page, url):
    """Whole files: SVG that is well-formed, PNG, CSV."""
    wrong = []
    page.open(url + "#sinusoidal&kind=heatmap&length=8&dim=4")
    page.js("const all = window.saved = []; URL.createObjectURL = blob => { all.push(blob); return 'data:,'; }; HTMLAnchorElement.prototype.click = () => {};"
            "for (const what of ['svg', 'png', 'csv']) { document.querySelector(`[data-save=${what}]`).click(); while (all.length < ['svg', 'png', 'csv'].indexOf(what) + 1) await new Promise(r => setTimeout(r, 20)); }")
    svg, png, table = page.js("return [await saved[0].text(), [...new Uint8Array(await saved[1].arrayBuffer())].slice(1, 4), await saved[2].text()]")
    if xml.dom.minidom.parseString(svg).documentElement.tagName != "svg" or "sinusoidal" not in svg:
        wrong.append("the SVG")
    if bytes(png) != b"PNG":
        wrong.append(f"the PNG begins with {png}")
    if len(rows(table)) != 5:
        wrong.append(f"the CSV: {table[:100]}")
    return wrong


def narrow_pages_hold_everything(page, url):
    """At 360 pixels nothing stands beside the page."""
    wrong = []
    page.call("Emulation.setDeviceMetricsOverride", width=360, height=800, deviceScaleFactor=1, mobile=True)
    page.open(url)
    for where in ("#sinusoidal&kind=heatmap&counter=1", "#rope&kind=decay&second=xpos", "#swin&kind=bias", "#fox&kind=sentence&lang=zh", "#rope&kind=pair"):
        page.go(where)
        page.js("document.querySelectorAll('details').forEach(d => d.open = true);" + AFTER)
        wide = page.js("return Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('body *:not(svg *)')].map(e => Math.ceil(e.getBoundingClientRect().right)))")
        if wide > 361:
            wrong.append(f"{where} is {wide} pixels wide")
    page.call("Emulation.clearDeviceMetricsOverride")
    return wrong


def everything_has_a_name(page, url):
    """Whatever takes the focus has a name for a screen reader."""
    page.open(url + "#rope&kind=sentence")
    found = page.call("Accessibility.getFullAXTree")["nodes"]
    asked = {"button", "textbox", "combobox", "slider", "checkbox", "spinbutton", "tab", "MenuListPopup"}
    return [f"a {n['role']['value']} has no name" for n in found
            if not n.get("ignored") and n.get("role", {}).get("value") in asked - {"MenuListPopup"} and not n.get("name", {}).get("value")]


def steps_of_a_slider(page, url):
    """Milliseconds of a step at 256 positions and 128 channels, by kind of picture: the least of fifteen, for other
    programs take their share of the rest."""
    took = {}
    page.open(url)
    for where in ("sinusoidal&kind=heatmap", "sinusoidal&kind=similarity", "rope&kind=decay", "rope&kind=mass", "t5&kind=bias", "alibi&kind=sentence"):
        page.go(f"#{where}&length=256&dim=128")
        took[where.replace("&kind=", " ")] = min(page.js(
            "dragged = true; const took = []; for (let i = 0; i < 15; i++) { state.dim = 128 - 2 * (i % 2); show();" + AFTER + "took.push(state.took); } return took"))
    return took


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
            for part in (page_does_what_it_says, shifts_say_what_is_true, specs_survive, sentences_take_what_is_typed, pictures_say_it_in_both_languages,
                         addresses_are_written_seldom, everything_has_a_name, what_is_seen_is_saved, narrow_pages_hold_everything):
                wrong += [f"{part.__name__}: {one}" for one in part(page, url)]
            configs = sorted(p for p in (Path(__file__).parent.parent / "golden/configs").glob("*.json") if p.name != "expected.json")
            wrong += files_are_read(page, url, args.posenc, folder, configs if args.all else configs[::8])
            different, count = numbers_are_the_tool_s(page, args.posenc, folder, args.all)
            took = steps_of_a_slider(page, url)
            wrong += different + [f"the console said: {s}" for s in page.said]
            wrong += [f"it asked for {u}" for u in page.asked if not u.startswith(("file:", "data:", "about:", "blob:"))]
            if args.pictures:
                screenshots(page, url, args.pictures)
        finally:
            page.close()
    for sentence in wrong:
        print("wrong:", sentence)
    print("explore: a slider's step at 256 positions and 128 channels takes at least " + ", ".join(f"{v:.0f} ms ({k})" for k, v in took.items()))
    print(f"explore: {count} pictures, {size} bytes, {len(wrong)} wrong")
    sys.exit(bool(wrong))


main()
