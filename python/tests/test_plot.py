# SPDX-License-Identifier: MIT
"""plot: the numbers of the command's pictures; drawings; refusals."""
import copy
import inspect
import os
import pickle
import pydoc
import shutil
import subprocess
import xml.dom.minidom

import numpy as np
import pytest

import posenc

TOOL = os.environ.get("POSENC_TOOL", "")
SIZE = {"length": 40}
PICTURES = {
    "decay": (["rope"], SIZE, []), "mass": (["alibi"], SIZE, []), "bias": (["t5"], SIZE, []), "pair": (["rope"], {"chosen": [1]}, ["--pairs", "1"]),
    "heatmap": (["sinusoidal"], SIZE, []), "curves": (["sinusoidal"], {"chosen": [4, 5]}, ["--channels", "4:5"]),
    "similarity": (["sinusoidal"], {**SIZE, "measure": "dot"}, ["--measure", "dot"]), "similarity2d": (["sinusoidal2d"], {}, []),
    "wavelengths": (["rope"], {}, []), "words": (["rope"], {"words": "one two three"}, ["--words", "one two three"]),
    "buckets": (["t5"], SIZE, []), "factors": (["urpe"], {"length": 20}, []), "hierarchy": (["hierarchical"], {}, []),
    "onehot": (["learned"], {}, []),
}


@pytest.mark.skipif(not os.path.exists(TOOL), reason="the tool is not built; POSENC_TOOL names it")
@pytest.mark.parametrize("kind", PICTURES)
def test_numbers_are_those_of_the_command(kind, tmp_path):
    encodings, options, said = PICTURES[kind]
    path = tmp_path / "numbers.csv"
    more = ["--length", str(options["length"])] if "length" in options else []
    subprocess.run([TOOL, "plot", kind, *encodings, *more, *said, "-o", str(path)], check=True, capture_output=True)
    assert posenc.plot(kind, *encodings, **options).csv == path.read_text()


def test_a_table_and_trained_parameters_are_what_is_drawn():
    rows = np.arange(24.0).reshape(6, 4)
    drawn = [[float(x) for x in line.split(",")[1:]] for line in posenc.plot("heatmap", table=rows).csv.splitlines()[1:]]
    assert np.array_equal(np.array(drawn), rows.T) or np.array_equal(np.array(drawn), rows.T[::-1])
    slopes = np.array([0.5])
    line = posenc.plot("bias", "alibi", params={"slopes": slopes}, heads=1, length=3).csv.splitlines()[1:]
    assert [float(x.split(",")[1]) for x in line] == [-1.0, -0.5, 0.0, -0.5, -1.0]


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="pictures need gnuplot")
def test_a_drawing_is_svg_and_shows_in_a_notebook(tmp_path):
    picture = posenc.plot("bias", "alibi", "kerple_log", heads=1, length=16)
    assert xml.dom.minidom.parseString(picture.svg).documentElement.tagName == "svg"
    assert picture._repr_html_().startswith("<svg") and "alibi" in picture.svg
    picture.save(tmp_path / "bias.png")
    assert (tmp_path / "bias.png").read_bytes().startswith(b"\x89PNG")


def test_without_gnuplot_a_notebook_has_characters_and_the_reason(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    picture = posenc.plot("decay", "rope", length=16, content=["ones"])
    with pytest.raises(posenc.FileError, match="gnuplot"):
        picture.svg
    html = picture._repr_html_()
    assert html.startswith("<pre>") and "install" in html and picture.csv


@pytest.mark.parametrize("call, sentence", [
    (lambda: posenc.plot("decay", "alibi"), 'alibi has no picture "decay"; it has: '),
    (lambda: posenc.plot("decay"), "plot needs encodings"),
    (lambda: posenc.plot("decay", "rope", theta="three"), "theta is 'three'"),
    (lambda: posenc.plot("decay", "rope", theta=-1.0), "theta is -1.0"),
    (lambda: posenc.plot("decay", "rope", content=["twos"]), "content has 'twos'"),
    (lambda: posenc.plot("decay", "rope", length=1), "1 positions"),
    (lambda: posenc.plot("heatmap", table=np.ones(3)), "table has the shape [3]"),
    (lambda: posenc.plot("bias", "alibi", params={"slope": [1]}), "no such parameter"),
    (lambda: posenc.plot("bias", "t5", params={"table": np.ones((8, 32))}), "table has the shape [8, 32]; it must be [32, 8]"),
    (lambda: posenc.plot("bias", "alibi").save("picture.gif"), ".gif"),
    (lambda: posenc.plot("bias", *["alibi"] * 9).csv, "9 encodings"),
])
def test_what_cannot_be_drawn_is_refused(call, sentence):
    with pytest.raises(ValueError) as error:
        call()
    assert sentence in str(error.value)


def test_help_and_misspelt_kinds():
    assert all(f" {kind}" in posenc.plot.__doc__ or f"kind: {kind}" in posenc.plot.__doc__ for kind in dir(posenc.plot))
    assert "params" in inspect.signature(posenc.plot).parameters
    text = pydoc.plain(pydoc.render_doc(posenc.plot))
    assert "plot(kind" in text and "A picture of one encoding" in text
    with pytest.raises(AttributeError, match="no kind 'deacy'; did you mean 'decay'"):
        posenc.plot.deacy
    assert not hasattr(posenc.plot, "nothing at all")


def test_a_picture_is_copied_and_pickled():
    picture = posenc.plot.bias("t5", length=16, params={"table": np.ones((32, 8))})
    for again in (pickle.loads(pickle.dumps(picture)), copy.deepcopy(picture)):
        assert again.csv == picture.csv and repr(again) == repr(picture)
