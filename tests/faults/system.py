#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""system.py POSENC FAULTS [PART]...: the system fails, and the tool says so or does without

Reading, writing, syncing, renaming, opening and others fail or are interrupted at each of their calls in turn (strace's
inject; without strace that part is skipped), reads and writes are short (short.c), pipes give and take a byte at a time,
streams are closed, disks full, files may not grow, folders cannot be written, SIGTERM comes between writing and renaming,
the clock jumps, the locale has decimal commas. Each time: what the undisturbed call prints and writes, or status 1 or 2, one
sentence, the old file and nothing beside it but runs that --resume goes on with. FAULTS is the library of faults.c, and
beside it is the program of short.c.
"""
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import allocations

# A call of each command that reads or writes files. NEW is a file or a folder that it writes over an older one, if any.
CALLS = """
encode sinusoidal --length 16 --dim 8 -o NEW.npz
encode sinusoidal --length 16 --dim 8 -o NEW.csv
rotate -i rows.csv -o NEW.csv
attend alibi -i SOURCE/tests/golden/alibi__causal.npz -o NEW.npz --grad
inspect config.json
inspect SOURCE/tests/golden/gguf/llama31.gguf
explain --config config.json
plot decay rope --draws 1 -o NEW.csv
plot bias alibi -o NEW.svg
verify SOURCE/tests/golden --case timestep_embedding__odd.npz
diagnose --before rows.npy --after rows.npy
permute weights.safetensors -o NEW.safetensors --to interleaved --heads 2 --kv-heads 1 --head-dim 4
extend weights.safetensors -o NEW.safetensors --length 6 --how linear
explore -o NEW.html
compare text -o NEW --preset tiny.json --threads 1 --json
""".strip().splitlines()
WEIGHTS = ["model.layers.0.self_attn.q_proj.weight:F32:8x1", "model.layers.0.self_attn.k_proj.weight:F16:4x2", "wpe.weight:F32:3x2"]
# At which of its calls of each kind a command is disturbed: all that are no loader's, or so many of them that are drawn.
MOST = 24
FAILING = {"write": "EIO ENOSPC EINTR", "read": "EIO EINTR", "pread64": "EIO", "fsync": "EIO EINTR", "rename": "EIO EINTR",
           "openat": "EMFILE EACCES EINTR", "close": "EIO EINTR", "mkdir": "EROFS", "unlink": "EIO", "getdents64": "EIO",
           "newfstatat": "EIO", "lseek": "EIO"}
SENTENCE = re.compile(rb"posenc: error: [^\n]+\n")
wrong = []


def check(is_so, what):
    if not is_so:
        wrong.append(what)
        print(f"system.py: {what}", flush=True)


def run(folder, *words, before=(), **more):
    environment = {**os.environ, "LC_ALL": "C", "TERM": "dumb", "OMP_NUM_THREADS": "1", **more.pop("env", {})}
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run([*before, str(posenc), *words], cwd=folder, env=environment, capture_output=True, timeout=300,
                          check=False, **more)


def prepare(folder):
    allocations.prepare(folder)
    tool = allocations.SOURCE / "tests/cli/checkpoint.py"
    subprocess.run([sys.executable, tool, folder / "weights.safetensors", *WEIGHTS], check=True)
    run(folder, "encode", "sinusoidal", "--length", "8", "--dim", "4", "-o", "rows.npy")


def disturbed(line, before, stale=True):
    """How a call ends, what it leaves where it was told to write, and what else is there then that was not before."""
    words = line.replace("SOURCE", str(allocations.SOURCE)).split()
    new = next((word for word in words if word.startswith("NEW")), None)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        prepare(folder)
        if stale and new and "." in new:
            (folder / new).write_text("old")
        known = {*folder.iterdir(), folder / "trace"}
        done = run(folder, *words, before=before)
        done.stdout = allocations.without_times(done.stdout)
        made = {p.relative_to(folder).as_posix(): allocations.without_times(p.read_bytes()) for p in folder.rglob("*")
                if new and p.relative_to(folder).parts[0] == new and p.is_file() and p.name not in ("report.html", "runs.npz")}
        more = {p.name for p in folder.iterdir()} - {p.name for p in known} - {new}
        trace = (folder / "trace").read_text(errors="replace") if (folder / "trace").exists() else ""
        goes_on = more == {f"{new}.partial"} and done.returncode == 1 and run(folder, *words, "--resume").returncode == 0
    return done, made, more - {f"{new}.partial"} if goes_on else more, trace


def each_call_fails():
    if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode:
        return print("system.py: without strace no call of the system fails here")
    draw, calls = random.Random(22), 0
    for line in CALLS:
        peace, new, _, trace = disturbed(line, ("strace", "-qq", "-o", "trace", "-e", "trace=" + ",".join(FAILING)))
        check(not peace.returncode, f"{line}: undisturbed it ends with {peace.returncode}: {peace.stderr!r}")
        rows = trace.splitlines()  # of the tool alone: what becomes of a gnuplot that fails is plot/test_plot's
        loaded = max((i for i, row in enumerate(rows) if ".so" in row), default=-1)
        for call, errors in FAILING.items():
            ours = [i for i, row in enumerate(rows) if row.startswith(f"{call}(")]
            ours = [n for n, i in enumerate(ours, 1) if i > loaded + 3] # what follows reads it, asks for its size, closes it
            for n, error in ((n, error) for error in errors.split() for n in sorted(draw.sample(ours, min(MOST, len(ours))))):
                done, made, left, trace = disturbed(line, ("strace", "-qq", "-o", "trace", "-e", f"trace={call}",
                                                           "-e", f"inject={call}:error={error}:when={n}"))
                what = f"{line}: {call} number {n} gives {error}"
                calls += 1
                check(not left, f"{what}: {left} is left")
                if not done.returncode:
                    check((made, done.stdout) == (new, peace.stdout), f"{what}: it says nothing, and the result is another")
                    continue
                mute = call == "write" and '"posenc: ' in trace  # the sentence itself
                check(done.returncode in (1, 2), f"{what}: status {done.returncode}")
                told = len(SENTENCE.findall(done.stderr)) == 1 or b"0 of 1 cases pass" in done.stdout  # verify says it of its case
                check(mute or told, f"{what}: it says {done.stderr!r}")
                check(made == new or not made or [*made.values()] == [b"old"], f"{what}: the file is neither old nor new")
    return print(f"{calls} calls of the system failed")


def short_calls():
    """Reads and writes move seven bytes at most, of pages of a megabyte 997: nothing is lost, and nobody notices."""
    if run(".", "--version", before=(short, "7")).returncode == 77:
        print("system.py: without ptrace no read is short here")
        sys.exit(77)
    for line in CALLS:
        peace, new, _, _ = disturbed(line, ())
        done, made, left, _ = disturbed(line, (short, "997" if line.startswith(("compare", "explore")) else "7"))
        check((done.returncode, made) == (0, new) and not left, f"{line}: short reads and writes change it: {done.stderr!r} {left}")
        if not line.startswith("compare"): # which says how long it took
            check((done.stdout, done.stderr) == (peace.stdout, peace.stderr), f"{line}: short reads and writes change what it says")


def pipes():
    """A byte at a time, in and out."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        allocations.prepare(folder)
        for words, source in ((("rotate", "-i", "-", "-o", "-"), b"1,2,3,4\n5,6,7,8\n"),
                              (("inspect", "-", "--json"), (folder / "config.json").read_bytes())):
            whole = run(folder, *words, stdin=None, input=source)
            slow = subprocess.Popen([str(posenc), *words], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for byte in source:
                os.write(slow.stdin.fileno(), bytes([byte]))
            slow.stdin.close()
            out = b""
            while part := os.read(slow.stdout.fileno(), 1):
                out += part
            check(slow.wait() == whole.returncode == 0 and out == whole.stdout, f"{words}: a byte at a time changes it")
            slow.stdout.close()
        early = subprocess.run(["sh", "-c", f"'{posenc}' list --json | head -c 1"], capture_output=True, check=False)
        check(early.stdout == b"[" and not early.stderr, f"a closed pipe: {early.stderr!r}")


def closed_streams():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        allocations.prepare(folder)
        words = "compare text --preset tiny.json --threads 1 --tasks none -o".split()
        run(folder, *words, "peace")
        subprocess.run(["sh", "-c", f"'{posenc}' {' '.join(words)} out >&- 2>&- <&-"], cwd=folder, check=False)
        check((folder / "out").is_dir(), "with closed streams there is no result")
        for made in (folder / "out").glob("*"):
            check(b"posenc: " not in made.read_bytes() and b"compare: 1 of" not in made.read_bytes(),
                  f"with closed streams a message is in {made.name}")
        check((folder / "out/results.csv").read_bytes() == (folder / "peace/results.csv").read_bytes(),
              "with closed streams the results differ")
        closed = subprocess.run(["sh", "-c", f"'{posenc}' list >&-"], capture_output=True, check=False)
        check(closed.returncode == 1 and b"standard output" in closed.stderr, f"list >&-: {closed}")


def full_disks():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        allocations.prepare(folder)
        for line in ("list", "list --json", "help", "inspect config.json", "plot bias alibi", "version --json",
                     "compare text -o full --preset tiny.json"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([str(posenc), *line.split()], cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False)
            check(done.returncode == 1 and b"No space left on device" in done.stderr, f"{line} >/dev/full: {done.stderr!r}")
        (folder / "t.npy").write_text("old")

        def small():
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        known = {p.name for p in folder.iterdir()}
        done = run(folder, "encode", "sinusoidal", "--length", "512", "--dim", "64", "-o", "t.npy", preexec_fn=small)
        check(done.returncode == 1 and b"File too large" in done.stderr, f"a file that may not grow: {done}")
        check({p.name for p in folder.iterdir()} == known and (folder / "t.npy").read_text() == "old",
              "a file that may not grow leaves something")
        for place in ("/proc/t.npy", "/dev/null/t.npy", "no/such/t.npy"):
            done = run(folder, "encode", "sinusoidal", "--length", "8", "--dim", "8", "-o", place)
            check(done.returncode == 1 and len(SENTENCE.findall(done.stderr)) == 1, f"{place}: {done}")


def endless():
    """A file that never ends is left after the most that is read of one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for words in (("inspect", "/dev/zero"), ("compare", "/dev/zero", "-o", "out"), ("rotate", "-i", "/dev/zero", "-o", "o.csv")):
            done = run(folder, *words)
            check(done.returncode == 2 and b"longer than" in done.stderr and len(SENTENCE.findall(done.stderr)) == 1,
                  f"{words}: {done}")
        check(not list(folder.iterdir()), f"an input without an end leaves {list(folder.iterdir())}")


def ended_early():
    """SIGTERM, SIGINT and SIGHUP while the temporary file is there: standard input is awaited behind an open output."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            child = subprocess.Popen([str(posenc), *"encode sinusoidal --length 4096 --dim 1024 -o t.csv".split()], cwd=folder,
                                     preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            end = time.monotonic() + 120
            while not any(folder.glob("t.csv.tmp.*")) and child.poll() is None and time.monotonic() < end:
                time.sleep(0.005)
            child.send_signal(number)
            check(child.wait(60) == -number, f"{number.name}: status {child.returncode}")
            check(not list(folder.iterdir()), f"{number.name}: {list(folder.iterdir())} is left")


def clocks():
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        allocations.prepare(folder)
        words = "compare text --preset tiny.json --threads 1 --checkpoint 0 -o".split()
        run(folder, *words, "peace")
        done = run(folder, *words, "jumped", env={"LD_PRELOAD": str(faults), "FAULT_CLOCK": "100000"})
        check(done.returncode == 0, f"a clock that jumps: {done.stderr!r}")
        for name in ("results.csv", "curves.csv"):
            check((folder / "peace" / name).read_bytes() == (folder / "jumped" / name).read_bytes(),
                  f"a clock that jumps changes {name}")


def locales():
    """A locale with decimal commas, made here if the machine has none."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        allocations.prepare(folder)
        if not shutil.which("localedef") or subprocess.run(["localedef", "-c", "-i", "de_DE", "-f", "UTF-8", folder / "de_DE.UTF-8"],
                                                           capture_output=True, check=False).returncode:
            return print("system.py: without localedef and its sources no locale is tried here")
        german = {"LC_ALL": "de_DE.UTF-8", "LOCPATH": str(folder)}
        for line in ("inspect config.json --json", "encode timestep[downscale_freq_shift=0.5] --length 4 --dim 6 -o -", "explain alibi",
                     "rotate -i rows.csv --set base=12345.5", "properties alibi --json"):
            peace, done = run(folder, *line.split()), run(folder, *line.split(), env=german)
            check(peace.returncode == 0 and (done.stdout, done.stderr) == (peace.stdout, peace.stderr), f"a locale changes {line}")


posenc, faults = (Path(word).resolve() for word in sys.argv[1:3])
short = faults.with_name("posenc_short")
for part in (pipes, short_calls, closed_streams, full_disks, endless, ended_early, clocks, locales, each_call_fails):
    if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
        part()
print(f"{len(wrong)} wrong")
sys.exit(1 if wrong else 0)
