#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_checkpoints.py POSENC [--sparse]: checkpoints larger than memory, and killed runs

A file of 200 MB is permuted there and back and extended by a tool that may have 32 MiB of address space in all; each row must
stand where the formula of the permutation says. The tool is killed while it writes: the old file is whole, a divided
checkpoint has no index in its new folder, and the next run gives what an undisturbed one gives. With --sparse a file of 20 GB
is permuted whose blocks are zero but for some rows: it must take less than 200 MB of memory, and the output no more of the
disk than the input.
"""
import hashlib
import json
import os
import random
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

POSENC = sys.argv[1]
LIMIT = 32 << 20
TYPES = {"BF16": 2, "F32": 4}


def header(tensors):
    """The header of {name: (type, shape)} and where each tensor begins in the file."""
    entries, places, at = {}, {}, 0
    for name, (kind, shape) in tensors.items():
        n = TYPES[kind]
        for size in shape:
            n *= size
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + n]}
        places[name] = (at, n)
        at += n
    text = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, {k: (8 + len(text) + a, n) for k, (a, n) in places.items()}, at


def places_of(path):
    with open(path, "rb") as file:
        n = struct.unpack("<Q", file.read(8))[0]
        entries = json.loads(file.read(n))
    return {k: 8 + n + v["data_offsets"][0] for k, v in entries.items() if k != "__metadata__"}


def limited():
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def run(*words, limit=True, quiet=False):
    """Runs the tool; the most memory that it had, in bytes."""
    child = subprocess.Popen([POSENC, *map(str, words)], preexec_fn=limited if limit else None,
                             stderr=subprocess.DEVNULL if quiet else None)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = 0
    assert status == 0, words
    return usage.ru_maxrss << 10


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(file.read()).hexdigest()


def old_row(row, head_dim):
    """half -> interleaved: the row that stands at `row` afterwards."""
    head, r = divmod(row, head_dim)
    return head * head_dim + (r % 2) * (head_dim // 2) + r // 2


# ---------------------------------------------------------------- 200 MB ------------------------

DIM = 2048
SMALL = {"model.embed_positions.weight": ("F32", [512, 512])}
for layer in range(6):
    base = f"model.layers.{layer}.self_attn."
    SMALL |= {base + "q_proj.weight": ("BF16", [DIM, DIM]), base + "q_proj.bias": ("BF16", [DIM]),
              base + "k_proj.weight": ("BF16", [512, DIM]), base + "v_proj.weight": ("BF16", [512, DIM]),
              f"model.layers.{layer}.mlp.up_proj.weight": ("BF16", [4864, DIM])}
SIZES = ("--heads", 32, "--kv-heads", 8, "--head-dim", 64)


def write_small(path):
    top, places, n = header(SMALL)
    numbers = random.Random(26)
    with open(path, "wb") as file:
        file.write(top)
        for left in range(n, 0, -(1 << 20)):
            file.write(numbers.randbytes(min(left, 1 << 20)))
    assert 190e6 < path.stat().st_size < 230e6, path.stat().st_size
    return places


def check_rows(before, after, places):
    now = places_of(after)
    old, new = before.read_bytes(), after.read_bytes()
    for name, (at, n) in places.items():
        kind, shape = SMALL[name]
        is_changed = "q_proj" in name or "k_proj" in name
        if not is_changed:
            assert old[at : at + n] == new[now[name] : now[name] + n], name
            continue
        size = n // shape[0]
        for row in range(shape[0]):
            there, here = now[name] + row * size, at + old_row(row, 64) * size
            assert new[there : there + size] == old[here : here + size], (name, row)


def limits(folder):
    before, there, back, longer = (folder / f"{n}.safetensors" for n in ("before", "there", "back", "longer"))
    places = write_small(before)
    most = run("permute", before, "-o", there, "--to", "interleaved", *SIZES)
    check_rows(before, there, places)
    run("permute", there, "-o", back, "--to", "half", *SIZES)
    assert digest(before) == digest(back)
    wider = run("extend", before, "-o", longer, "--length", 1500, "--how", "repeat", "--tensor", "model.embed_positions.weight", quiet=True)
    print(f"200 MB in {LIMIT >> 20} MiB of address space: permute {most / 1e6:.1f} MB, extend {wider / 1e6:.1f} MB")
    return before, there


# ---------------------------------------------------------------- kills -------------------------


def kill_while_it_writes(words, folder, delay):
    """Kills the tool when a temporary file has been there for so long. Did it live until then?"""
    child = subprocess.Popen([POSENC, *map(str, words)])
    while child.poll() is None and not list(folder.glob("*.tmp.*")):
        time.sleep(0.001)
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    lived = child.wait() == -signal.SIGKILL
    for left in folder.glob("*.tmp.*"):
        left.unlink()
    return lived


def kills(before, there, folder):
    place = folder / "place"
    place.mkdir()
    target = place / "model.safetensors"
    os.link(before, target)
    old, new = digest(before), digest(there)
    words = ("permute", target, "-o", target, "--to", "interleaved", *SIZES)
    killed = 0
    for i in range(8):
        lived = kill_while_it_writes(words, place, i * 0.01)
        killed += lived
        assert digest(target) in (old, new)
        if digest(target) == new:
            assert not lived or i, "the first was not killed in the middle"
            target.unlink()
            os.link(before, target)
    assert killed, "no run was killed in the middle"
    run(*words, limit=False)
    assert digest(target) == new
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": dict.fromkeys(SMALL, before.name)}))
    other = folder / "other"
    other.mkdir()
    words = ("permute", index, "-o", other / index.name, "--to", "interleaved", *SIZES)
    kill_while_it_writes(words, other, 0)
    assert not (other / index.name).exists()
    assert digest(before) == old
    for left in other.iterdir():
        left.unlink()
    run(*words, limit=False)
    assert digest(other / before.name) == new and (other / index.name).read_text() == index.read_text()
    print(f"{killed} runs killed while they wrote: the old file was whole each time")


# ---------------------------------------------------------------- 20 GB -------------------------

WIDE = 16384
LARGE = {}
for layer in range(10):
    base = f"model.layers.{layer}."
    LARGE |= {base + "self_attn.q_proj.weight": ("BF16", [WIDE, WIDE]), base + "self_attn.k_proj.weight": ("BF16", [2048, WIDE]),
              base + "mlp.up_proj.weight": ("BF16", [45056, WIDE])}


def sparse(folder):
    before, there, back = (folder / f"{n}.safetensors" for n in ("before", "there", "back"))
    top, places, n = header(LARGE)
    name, size = "model.layers.3.self_attn.q_proj.weight", 2 * WIDE
    rows = [5 * 128 + i for i in range(128)]
    with open(before, "wb") as file:
        file.truncate(len(top) + n)
        file.write(top)
        for row in rows:
            file.seek(places[name][0] + row * size)
            file.write(struct.pack("<q", row + 1) * 8)
    begun = time.monotonic()
    most = run("permute", before, "-o", there, "--to", "interleaved", "--heads", 128, "--kv-heads", 16, "--head-dim", 128, limit=False)
    took = time.monotonic() - begun
    with open(there, "rb") as file:
        at = places_of(there)[name]
        for row in rows:
            file.seek(at + row * size)
            assert struct.unpack("<q", file.read(8))[0] == old_row(row, 128) + 1, row
    run("permute", there, "-o", back, "--to", "half", "--heads", 128, "--kv-heads", 16, "--head-dim", 128, limit=False)
    assert subprocess.run(["cmp", before, back]).returncode == 0
    used = [512 * os.stat(p).st_blocks for p in (before, there, back)]
    print(f"{os.stat(before).st_size / 1e9:.1f} GB in {took:.1f} s: {most / 1e6:.1f} MB of memory; on the disk "
          f"{used[0] / 1e6:.2f} MB before, {used[1] / 1e6:.2f} MB permuted, {used[2] / 1e6:.2f} MB back")
    assert most < 200e6 and os.stat(before).st_size > 20e9
    assert max(used[1:]) <= 2 * used[0] + (1 << 20)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "--sparse" in sys.argv:
            sparse(folder)
        else:
            kills(*limits(folder), folder)


if __name__ == "__main__":
    main()
