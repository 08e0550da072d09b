# SPDX-License-Identifier: MIT
"""The Python blocks of docs/python.md and README.md, and a way to run them."""
import contextlib
import doctest
import io
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRINTS = re.compile(r"^print\(.*?(?:\n# .*)+", re.M)  # print(...) with what it shows as comments below
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page, with_torch):
    """Those that need torch (or a model), or those that do not."""
    every = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.M | re.S)
    return [b for b in every if bool(re.search(r"torch|\(model[,.)]", b)) == with_torch]


def run(block, names):
    """Runs a block in these names; what a print shows must be what stands below it. How many were compared."""
    seen = io.StringIO()
    with contextlib.redirect_stdout(seen):
        exec(compile(block, "<page>", "exec"), names)
    shown = "".join(re.sub(r"^# ", "", line, flags=re.M) + "\n" for p in PRINTS.findall(block) for line in p.split("\n")[1:])
    assert not shown or doctest.OutputChecker().check_output(shown, seen.getvalue(), SAME), seen.getvalue()
    return bool(shown)
