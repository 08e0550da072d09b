#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""system.py POSENC FAULTS [PART]...: the system fails, and the tool says so or does without

Reading, writing, syncing, renaming and opening fail at each of their calls in turn (strace's inject; without strace that
part is skipped), pipes give and take a byte at a time, streams are closed, disks full, files may not grow, folders
cannot be written, SIGTERM comes between writing and renaming, the clock jumps, the locale
has decimal commas. Each time: what the undisturbed call prints and writes, or status 1 or 2, one sentence, the old file and nothing beside it.
FAULTS is the library of faults.c.
"""
import os
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

CALLS = {  # what is called, and the file that it writes
    "encode sinusoidal --length 16 --dim 8 -o table.npz": "table.npz",
    "rotate -i rows.csv -o rotated.csv": "rotated.csv",
    "inspect config.json": None,
    "plot decay rope --draws 1 -o decay.csv": "decay.csv",
}
FAILING = [("write", "EIO"), ("write", "ENOSPC"), ("read", "EIO"), ("fsync", "EIO"), ("fsync", "EINTR"),
           ("rename", "EIO"), ("openat", "EMFILE"), ("close", "EIO")]
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


def each_call_fails():
    if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode:
        return print("system.py: without strace no call of the system fails here")
    for line, file in CALLS.items():
        with tempfile.TemporaryDirectory() as folder:
            allocations.prepare(Path(folder))
            run(folder, *line.split())
            new = (Path(folder) / file).read_bytes() if file else b""
        for call, error in FAILING:
            for n in range(1, 200):
                with tempfile.TemporaryDirectory() as folder:
                    folder = Path(folder)
                    allocations.prepare(folder)
                    if file:
                        (folder / file).write_text("old")
                    known = {p.name for p in folder.iterdir()}
                    done = run(folder, *line.split(), before=("strace", "-f", "-qq", "-o", "trace", "-e", f"trace={call}",
                                                               "-e", f"inject={call}:error={error}:when={n}"))
                    trace = (folder / "trace").read_bytes()
                    if b"INJECTED" not in trace:
                        break
                    if b".so" in trace.split(b"(INJECTED)")[0].split(b"\n")[-1]:
                        continue  # the loader of programs, before there is a tool
                    what = f"{line}: {call} number {n} gives {error}"
                    left = {p.name for p in folder.iterdir()} - known - {"trace"}
                    check(not left, f"{what}: {left} is left")
                    check(done.returncode in (0, 1, 2, 127), f"{what}: status {done.returncode}")
                    if done.returncode in (1, 2) and not (call == "write" and b'"posenc: ' in trace):
                        check(len(SENTENCE.findall(done.stderr)) == 1, f"{what}: it says {done.stderr!r}")
                    if file: # whole, and new where all went well
                        is_now = (folder / file).read_bytes()
                        check(is_now == new or (done.returncode and is_now == b"old"), f"{what}: the file is neither")
    return None


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
for part in (pipes, closed_streams, full_disks, endless, ended_early, clocks, locales, each_call_fails):
    if len(sys.argv) < 4 or part.__name__ in sys.argv[3:]:
        part()
print(f"{len(wrong)} wrong")
sys.exit(1 if wrong else 0)
