#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""performance_table.py [--check]: writes the table of docs/performance.md from the rows of docs/performance.csv

Several rows of `posenc bench` stand in one row of the table: the goal's number, a pattern that their names match and
the words that the reader sees are below. The figure is that of the row that does worst, of the first machine in the
file and its latest date; "met" holds only if it holds for all of them. --check changes nothing: it exits with 1 where
page and file differ. Standard library only.
"""
import csv
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
RMW, COPY, STORE, PEAK, PLAIN = ("pass in place", "memcpy", "best store", "multiply-add loop", "time without the encoding")
READ, TABLE, ONE, F32, NONE, ALONE = "read", "finished table", "speed of one thread", "speed in f32", "none", "read by one thread"
CYCLE, TORCH, ORT, GGML = "2 x width x clock x units", "PyTorch 1.13, its time", "onnxruntime 1.31.1, its time", "ggml d99724f, its time"
SCRIPTS = {TORCH: "with_torch.py", ORT: "with_onnxruntime.py", GGML: "with_ggml.py"}

# what, limit, goal, pattern of names
GROUPS = [
    ("Clock, GHz", NONE, "limits", r"^clock"),
    ("Multiply-adds f32, AVX-512", CYCLE, "limits", r"multiply-adds f32 avx512, of"),
    ("Multiply-adds f32, AVX2", CYCLE, "limits", r"multiply-adds f32 avx2, of"),
    ("Dot products bf16", CYCLE, "limits", r"dot products bf16, of"),
    ("Pass in place over 16 KiB, GB/s", NONE, "limits", r"in-place.* 16 KiB"),
    ("Pass in place over 256 KiB, GB/s", NONE, "limits", r"in-place.* 256 KiB"),
    ("Pass in place over 4 MiB, GB/s", NONE, "limits", r"in-place.* 4 MiB"),
    ("Pass in place over 256 MiB, GB/s", NONE, "limits", r"in-place.* 256 MiB"),
    ("RoPE in place, f32, 32 heads", RMW, "G1", r"4096 x 32 .*modify"),
    ("RoPE in place, f32, 8 heads", RMW, "G1", r"32768 x 8 .*modify"),
    ("RoPE in place, f32", COPY, "G1", r"memcpy"),
    ("RoPE in place, bf16, 32 heads", RMW, "G2", r"bf16 .*4096 x 32 "),
    ("RoPE in place, bf16, 8 heads", RMW, "G2", r"bf16 .*32768 x 8 "),
    ("RoPE in place, f16, 32 heads", RMW, "G2", r" f16 .*4096 x 32 "),
    ("RoPE in place, f16, 8 heads", RMW, "G2", r" f16 .*32768 x 8 "),
    ("RoPE of 8 tokens by a table, in the second cache", RMW, "G3", r"place by a table"),
    ("RoPE of 8 tokens from positions, in the second cache", RMW, "G3", r"place from positions"),
    ("Overhead of a call of RoPE by a table, ns", NONE, "G3", r"overhead .*by a table"),
    ("Overhead of a call of RoPE from positions, ns", NONE, "G3", r"overhead .*from positions"),
    ("RoPE out of place, f32", COPY, "G4", r""),
    ("RoPE that makes its cosines and sines, 32 heads", TABLE, "G6", r"4096 x 32 "),
    ("RoPE that makes its cosines and sines, 8 heads", TABLE, "G6", r"32768 x 8 "),
    ("RoPE that makes its cosines and sines, 8 tokens", TABLE, "G6", r"in L2"),
    ("Rotary table, out of cache", STORE, "G7", r"rotary .*out of cache"),
    ("Sinusoidal table, out of cache", STORE, "G7", r"sinusoidal .*out of cache"),
    ("Rotary table, in cache", STORE, "G7", r"rotary .*in cache"),
    ("Sinusoidal table, in cache", STORE, "G7", r"sinusoidal .*in cache"),
    ("Attention forward, f32, D 64, L 4096 and 8192", PEAK, "G8", r"D 64"),
    ("Attention forward, f32, D 128, L 4096 and 8192", PEAK, "G8", r"D 128"),
    ("Attention forward, f32, L 1024, both ways", PEAK, "G9", r"both ways"),
    ("Attention forward, f32, L 1024, causal", PEAK, "G9", r"causal"),
    ("Attention forward, AVX2, L 4096", PEAK, "G10", r""),
    ("Attention with a bias by distance", PLAIN, "G11", r"^(alibi|t5|kerple_log|kerple_power|sandwich|toeplitz|relative_table) "),
    ("Attention with a dense bias", PLAIN, "G11", r"^dense_bias "),
    ("Attention with Transformer-XL", PLAIN, "G11", r"^transformer_xl "),
    ("Attention with Shaw, keys only", PLAIN, "G11", r"^shaw\[values=no\] "),
    ("Attention with Shaw, keys and values", PLAIN, "G11", r"^shaw "),
    ("Attention with DeBERTa", PLAIN, "G11", r"^deberta "),
    ("Attention with URPE's gate", PLAIN, "G11", r"^urpe "),
    ("Attention with RoPE", PLAIN, "G11", r"^rope "),
    ("Attention with RoPE by a map of distances", PLAIN, "G11", r"^rope\[map"),
    ("Attention with PoPE", PLAIN, "G11", r"^pope "),
    ("Attention with FoX", PLAIN, "G11", r"^fox\[form=token\] "),
    ("Attention with Inkling", PLAIN, "G11", r"^inkling "),
    ("Attention with a temperature", PLAIN, "G11", r"^nope\[temperature"),
    ("Attention with sinks", PLAIN, "G11", r"^nope\[sink"),
    ("Attention with a softcap", PLAIN, "G11", r"^nope\[softcap"),
    ("Attention with PaTH", PLAIN, "G11", r"^path "),
    ("Attention with gates of channels (`wall`)", PLAIN, "G11", r"^wall "),
    ("Attention with stick-breaking", PLAIN, "G11", r"^stick_breaking "),
    ("Attention with xPos", PLAIN, "G11", r"^xpos "),
    ("Attention with CoPE", PLAIN, "G11", r"^cope "),
    ("Attention with FIRE", PLAIN, "G11", r"^fire "),
    ("Attention with Swin", PLAIN, "G11", r"^swin "),
    ("Attention with Swin v2", PLAIN, "G11", r"^swin_v2 "),
    ("Attention with absolute distance", PLAIN, "G11", r"^absolute_distance "),
    ("Attention with complex order", PLAIN, "G11", r"^complex_order_attention "),
    ("Attention with Huang M4", PLAIN, "G11", r"^huang_m4 "),
    ("Attention with XLNet", PLAIN, "G11", r"^xlnet "),
    ("Attention with TUPE", PLAIN, "G11", r"^tupe "),
    ("Memory at 2 L, every encoding", "memory at L", "G12", r""),
    ("Attention forward, two threads", ONE, "G14", r"forward"),
    ("Attention backward, two threads", ONE, "G14", r"backward"),
    ("Training step, d 128, L 256", PEAK, "G15", r"d 128"),
    ("Training step, d 64, L 64 (presets of `compare`)", PEAK, "G15", r"d 64"),
    ("Two training runs side by side", "speed of one run", "G15", r"side by side"),
    ("A million tokens, ALiBi, window 4096, s", NONE, "G17", r"window 4096: seconds"),
    ("A million tokens, ALiBi, window 4096, MiB beyond inputs and outputs", NONE, "G17", r"window 4096: MiB"),
    ("262144 tokens, ALiBi, without a window, s", NONE, "G17", r"in full: seconds"),
    ("262144 tokens, ALiBi, without a window, MiB beyond inputs and outputs", NONE, "G17", r"in full: MiB"),
    ("Attention backward, f32, L 4096, causal", PEAK, "G18", r"^attention"),
    ("Attention backward with a bias by distance", PLAIN, "G18", r"^(alibi|t5|kerple|sandwich|toeplitz|relative).*plain"),
    ("Attention backward with FoX", PLAIN, "G18", r"^fox.*plain"),
    ("Attention backward with Inkling", PLAIN, "G18", r"^inkling.*plain"),
    ("Attention backward with PaTH", PLAIN, "G18", r"^path.*plain"),
    ("Attention backward with gates of channels (`wall`)", PLAIN, "G18", r"^wall.*plain"),
    ("Attention backward with stick-breaking", PLAIN, "G18", r"^stick_breaking.*plain"),
    ("Attention forward, bf16, L 4096", F32, "G19", r""),
    ("One token against 32768 keys, f32", READ, "G20", r"(nope|alibi|t5), f32"),
    ("One token against 32768 keys, bf16", READ, "G20", r"(nope|alibi|t5), bf16"),
    ("One token against 32768 keys that RoPE rotates, f32", READ, "G20", r"rope, f32"),
    ("One token against 32768 keys, FoX with running sums", PLAIN, "G20", r"fox with running sums"),
    ("One token against 512 keys, one thread", ALONE, "G21", r" 512 keys side .*one thread, of"),
    ("One token against 512 keys, two threads", ALONE, "G21", r" 512 keys side .*two threads"),
    ("One token against 4096 keys, one thread", ALONE, "G21", r" 4096 keys side .*one thread, of"),
    ("One token against 4096 keys, two threads", ALONE, "G21", r" 4096 keys side .*two threads"),
    ("One token against 32768 keys, one thread", ALONE, "G21", r" 32768 keys side .*one thread, of"),
    ("One token against 32768 keys, two threads", ALONE, "G21", r" 32768 keys side .*two threads"),
    ("One token against 32768 keys in pages, one thread", ALONE, "G21", r" 32768 keys in pages.*one thread, of"),
    ("One token against 32768 keys in pages, two threads", ALONE, "G21", r" 32768 keys in pages.*two threads"),
    ("A call of one key, every encoding, bound", PLAIN, "G22", r"parameters bound"),
    ("A call of one key, every encoding, not bound", PLAIN, "G22", r"not bound"),
    ("FLOATER's rows forward, 1 state", PEAK, "FLOATER", r"forward .*one state"),
    ("FLOATER's rows backward, 1 state", PEAK, "FLOATER", r"backward .*one state"),
    ("FLOATER's rows forward, 16 states", PEAK, "FLOATER", r"forward .*16 states"),
    ("FLOATER's rows backward, 16 states", PEAK, "FLOATER", r"backward .*16 states"),
] + [(what, program, "peers", pattern + program[:7]) for what, pattern in (
    ("RoPE in place, half, 32 heads", r"rope half f32, 4096 .*time of "),
    ("Attention forward, both ways, L 4096", r"both ways, time of "),
    ("Attention forward, causal, L 4096", r"4096, causal, time of "),
    ("Attention forward, causal with ALiBi, L 4096", r"causal, alibi, time of ")) for program in SCRIPTS]


def line(what, limit, goal, rows):
    """One row of the table, of the worst of these rows."""
    wants_little = any(re.search("at most|overhead|time over|memory at|: seconds", row["name"]) for row in rows)
    worst = (max if wants_little else min)(rows, key=lambda row: float(row["value"]))
    value, met = float(worst["value"]), {row["met"] for row in rows}
    cells = [what if goal in ("limits", "peers") else f"{what} ({goal})",
             f"{limit}, {float(worst['limit']):.3g} {worst['unit']}" if worst["limit"] and limit != NONE else limit,
             f"{value:.3f}" if value < 10 else f"{value:.1f}",
             worst["wanted"] and ("at most " if wants_little else "at least ") + worst["wanted"],
             "NO" if "no" in met else "yes" if "yes" in met else "",
             f"`bench/peers/{SCRIPTS[limit]}`" if goal == "peers" else
             f"`posenc bench --goal {goal}{' --long' if goal == 'G17' else ''}`"]
    return "| " + " | ".join(cells).replace("|  |", "| |").replace("|  |", "| |") + " |"


def table():
    with open(DOCS / "performance.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    rows = [row for row in rows if row["machine"] == rows[0]["machine"] and row["value"]]
    yield "| what | limit | reached | wanted | met | command |"
    yield "|---|---|---|---|---|---|"
    for what, limit, goal, pattern in GROUPS:
        found = [row for row in rows if row["goal"] == goal and re.search(pattern, row["name"])]
        found = [row for row in found if row["date"] == max(row["date"] for row in found)]
        if found:
            yield line(what, limit, goal, found)


def main():
    page = DOCS / "performance.md"
    text = page.read_text(encoding="utf-8")
    new = re.sub(r"^\| what \|.*?(?=^[^|])", "\n".join(table()) + "\n", text, flags=re.M | re.S)
    if sys.argv[1:] != ["--check"]:
        page.write_text(new, encoding="utf-8")
    elif new != text:
        sys.exit("performance_table: docs/performance.md differs from docs/performance.csv; run tools/performance_table.py")


main()
