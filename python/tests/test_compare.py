# SPDX-License-Identifier: MIT
"""compare: the numbers of the command, progress, Ctrl-C, tokens, a report, refusals."""
import json
import os
import shutil
import signal
import subprocess
import threading

import numpy as np
import pytest

import posenc

TOOL = os.environ.get("POSENC_TOOL", "")
TEXT = "In the beginning God created the heaven and the earth. And the earth was without form, and void. " * 220
SMALL = dict(encodings=["rope", "nope", "t5"], tasks="none", steps=8, length=16, reach=2, width=16, heads=2, layers=1, seeds=1,
             rates="0.01", stability="none", extension="none")
BRIEF = {**SMALL, "claims": False, "progress": False}  # claims take seconds, whatever the size


@pytest.mark.skipif(not os.path.exists(TOOL), reason="the tool is not built; POSENC_TOOL names it")
def test_results_are_those_of_the_command(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    preset = tmp_path / "small.json"
    preset.write_text(json.dumps({**{n: v for n, v in SMALL.items() if n not in ("encodings", "tasks")}, "claims": False}))
    call = [TOOL, "compare", str(path), "--preset", str(preset), "-e", "rope,nope,t5", "--tasks", "none", "--extension", "none",
            "--json", "-o", str(tmp_path / "out")]
    want = json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)
    got = dict(posenc.compare(path, preset=preset, encodings=SMALL["encodings"], tasks="none", extension="none", progress=False))
    for part in ("time", "files"):
        want.pop(part), got.pop(part)
    for e in want["encodings"] + got["encodings"]:  # seconds
        for run in e.get("runs", []):
            for n in [n for n in run if "second" in n or "time" in n]:
                run.pop(n)
        for n in [n for n in e if "second" in n or "time" in n]:
            e.pop(n)
    assert got == want


def test_progress_is_called_with_every_run_and_shown_as_a_table():
    seen = []
    c = posenc.compare(TEXT, **{**BRIEF, "progress": seen.append})
    assert sorted(p.run["encoding"] for p in seen if p.run) == ["nope", "rope", "t5"]
    assert all(np.isfinite(p.run["loss_at_L"]) for p in seen if p.run)
    assert seen[-1].finished == seen[-1].runs == 3 and seen[-1].fraction == 1
    assert not c.interrupted and c.report is None and c["settings"]["steps"] == 8
    html = c._repr_html_()
    assert "<table>" in html and all(n in html and n in str(c) for n in ("rope", "nope", "t5"))


def test_what_progress_raises_ends_the_comparison():
    def progress(p):
        raise LookupError("mine")
    with pytest.raises(LookupError, match="mine"):
        posenc.compare(TEXT, **{**BRIEF, "steps": 100000, "progress": progress})


def test_ctrl_c_before_anything_is_finished_is_a_keyboard_interrupt():
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        posenc.compare(TEXT, **{**BRIEF, "steps": 1000000})


def test_ctrl_c_keeps_what_is_finished():
    def progress(p):
        if p.run:
            os.kill(os.getpid(), signal.SIGINT)
    c = posenc.compare(TEXT, **{**BRIEF, "steps": 300, "threads": 1, "progress": progress})
    assert c.interrupted and 0 < c.missing < c.runs == 3 and 0 < len(c["encodings"]) < 3
    assert "nterrupted" in str(c) and "nterrupted" in c._repr_html_()


def test_tokens_take_the_place_of_a_text():
    ids = np.random.default_rng(0).integers(0, 50, 8000)
    c = posenc.compare(tokens=ids, token_bytes=np.full(50, 3), **BRIEF)
    assert c["text"]["vocabulary"] == 50 and c["text"]["tokens"] == 8000
    with pytest.raises(posenc.PosencError, match=r"tokens\[1\] is 65536"):
        posenc.compare(tokens=[0, 65536], **BRIEF)
    with pytest.raises(posenc.PosencError, match="whole numbers"):
        posenc.compare(tokens=[0.5, 1], **BRIEF)


def test_other_python_threads_run_meanwhile():
    ticks, over = [], threading.Event()

    def tick():
        while not over.wait(0.01):
            ticks.append(1)
    thread = threading.Thread(target=tick)
    thread.start()
    posenc.compare(TEXT, **{**BRIEF, "steps": 200})
    over.set()
    thread.join()
    assert len(ticks) > 5


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="pictures need gnuplot")
@pytest.mark.skipif(not posenc._core.has_npz(), reason="posenc was built without libzip")
def test_a_directory_gets_the_report(tmp_path):
    c = posenc.compare(TEXT, directory=tmp_path / "out", **{**BRIEF, "encodings": ["nope"]})
    assert c.report == str(tmp_path / "out" / "report.html") and os.path.getsize(c.report) > 10000
    assert json.loads((tmp_path / "out" / "results.json").read_text())["encodings"] == c["encodings"]


def test_without_zip_a_directory_is_refused_before_anything_is_trained_or_made(tmp_path, monkeypatch):
    monkeypatch.setattr(posenc._core, "has_npz", lambda: False)
    with pytest.raises(posenc.UnsupportedError, match="directory cannot be written.*install libzip-dev"):
        posenc.compare(TEXT, directory=tmp_path / "out", **{**BRIEF, "steps": 1000000})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more, sentence", [
    ({"steps": 0}, "steps is 0; it must be a whole number"),
    ({"stepz": 1}, 'no field "stepz"'),
    ({"length": 15}, "length is 15; it must be even"),
    ({"encodings": ["ropee"]}, "did you mean 'rope'"),
    ({"rates": "0.1", "learning_rate": 0.1}, "learning_rate and rates exclude each other"),
    ({"tasks": "nothing"}, "nothing"),
    ({"threads": -1}, "threads is -1"),
    ({"preset": "swift"}, "swift"),
    ({"token_bytes": [1]}, "give tokens too"),
])
def test_what_cannot_be_is_refused(more, sentence):
    with pytest.raises(posenc.PosencError) as error:
        posenc.compare(TEXT, **{**BRIEF, **more})
    assert sentence in str(error.value)


def test_a_text_is_no_name_of_a_file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    with pytest.raises(posenc.PosencError, match="pathlib.Path"):
        posenc.compare(str(path), **BRIEF)
    with pytest.raises(posenc.PosencError, match="give one of them"):
        posenc.compare()
    with pytest.raises(TypeError, match="text is a int"):
        posenc.compare(3)
    plan = posenc.compare([path, b"and more"], dry_run=True, **BRIEF)
    assert plan["text"]["name"] == "text.txt and 1 more" and plan["time"]["runs"] == 3
