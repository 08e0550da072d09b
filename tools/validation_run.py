#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""validation_run.py [options] POSENC TEXTS WORK: the long runs that say whether `posenc compare` is right

Trains what docs/experiments.md, section 21, judges: comparisons as a user makes them, and longer and larger runs that
they should foretell. TEXTS is the folder of tools/validation_texts.sh, with kjv.txt of tools/kjv_text.sh beside them;
results lie in WORK. What the judgement needs of each, a few KB, is kept in docs/validation/NAME.json; a run whose file
is there is done, and a run that was killed goes on where it stood, so the queue may be ended and started at any time.

Two runs at a time, a thread each, at the lowest priority, if not told otherwise. A long run has the learning rate at
which the comparison before it found its encoding best, times the root of its shorter steps / its own
(docs/decisions/0014-recipe.md); TWICE lists those that were better at twice that.
Standard library only.
"""
import argparse
import array
import json
import math
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

KEPT = Path(__file__).resolve().parent.parent / "docs/validation"
LONG = ("transformer_xl", "rope", "t5", "sinusoidal", "alibi", "nope")
WIDE = ("transformer_xl", "rope", "alibi", "nope")
TEXTS = ("python", "chinese", "logs")
STEPS, WIDTH = 2400, 64  # of the preset default
ON_TEXT = "--tasks none --extension none"
ALONE = ON_TEXT + " --stability none"
# Where the comparison's best rate was the lowest that it tried, the long run was made at twice the rule's rate too, and was better.
TWICE = ("x16-python-64-rope", "x16-python-64-fox", "x4-wide-python-64-rope")


def job(name, text, options, **more):
    return {"name": name, "text": text, "options": options.split(), **more}


def default(text, length):
    return job(f"default-{text}-{length}", text, f"--length {length} {ON_TEXT}")


def long(text, length, encoding, times=16, more=""):
    """So many times the steps of `default`, at its rate."""
    return job(f"x{times}{'-wide' if more else ''}-{text}-{length}-{encoding}", text,
               f"-e {encoding} --length {length} --steps {times * STEPS} {ALONE} {more}",
               rate_of=(f"default-{text}-{length}", encoding, times))


def quarter(text, seeds):
    """How much losses differ between seeds; spread_table.py makes its table of these."""
    return job(f"seeds-{text}-quarter", text, f"--preset quick -e rope,alibi --seeds {seeds} --steps {STEPS // 4} "
               f"--learning-rate 0.048 {ALONE}")


def rates(length):
    """Is a rate as good at another length? As 0.024, 0.048 and 0.096 in the second table of decision 0014."""
    preset = {"length": length, "steps": 600, "encodings": "rope,t5,sinusoidal", "tasks": [], "stability": "none",
              "extension": "none", "rates": "0.024,0.048,0.096", "rate-share": 1}
    return job(f"rates-python-{length}", "python", "", preset=preset)


JOBS = [
    *(default(text, 64) for text in TEXTS),
    *(long("python", 64, e) for e in (*LONG, "fox")),
    *(long(text, 64, e) for text in ("chinese", "logs") for e in LONG),
    job("seeds-python", "python", f"--preset quick -e rope,alibi --seeds 12 {ALONE}"),
    quarter("python", 12),
    *(quarter(text, 4) for text in ("chinese", "logs", "kjv")),
    rates(128), rates(256),
    *(default(text, 128) for text in TEXTS),
    *(long("python", 64, e, 4, f"--width {2 * WIDTH} --heads 8") for e in WIDE),
    *(long("python", 128, e) for e in LONG),
    *(default(text, 256) for text in TEXTS),
]


# ---------------------------------------------------------------- what is kept

def numbers(archive, name):
    """The numbers of an .npy file in an archive, flat."""
    data = archive.read(name)
    end = 10 + int.from_bytes(data[8:10], "little")
    kind = {"<f4": "f", "<f8": "d", "|u1": "B"}[data[10:end].split(b"'descr': '")[1].split(b"'")[0].decode()]
    return array.array(kind, data[end:])


def windows_of(archive, run, bucket, windows):
    """Loss of each held-out window in units of 0.0001 nats, at L (stretches of short windows) or in the last bucket."""
    scored, losses = numbers(archive, f"{run}/scored.npy"), numbers(archive, f"{run}/window_loss.npy")
    longest = len(losses) // windows
    if bucket == "L":
        return [round(1e4 * scored[2 * w + 1]) for w in range(windows)]
    return [round(1e4 * sum(losses[(w + 1) * longest - longest // 2:(w + 1) * longest]) / (longest // 2))
            for w in range(windows)]


def runs_of(archive, settings):
    """{(encoding, seed): its name in the archive} of the runs with all steps and all that is measured of one."""
    found = {}
    for name in archive.namelist():
        if name.endswith("/run.npy"):
            run = json.loads(numbers(archive, name).tobytes())
            if run.get("steps") == settings["steps"] and run.get("d_model") == settings["d_model"] \
                    and name.replace("run.npy", "scored.npy") in archive.namelist() and not run.get("followup"):
                found[run["encoding"], run["seed"]] = name.split("/")[0]
    return found


def keep(done, folder):
    results = json.loads((folder / "results.json").read_text())
    settings, windows = results["settings"], results["text"]["windows"]
    kept = {"call": done["call"], "version": results["version"],
            "time": {k: v for k, v in results["time"].items() if k != "call"},  # which names the folders of this machine
            "text": results["text"],
            "settings": settings, "rates": results["rates"], "resolution": results["resolution"],
            "stability": results["stability"], "recommendations": results["recommendations"],
            "checks": [{k: c[k] for k in ("id", "verdict", "found")} for c in results["checks"] if c["applicable"]],
            "tasks": {t["task"]: {e["encoding"]: {n["length"]: [n["accuracy_by_seed"], n["exact_match"]["value"]]
                                                  for n in e.get("lengths", [])}
                                   for e in t["encodings"]} for t in results["tasks"]},
            "encodings": {}}
    with zipfile.ZipFile(folder / "runs.npz") as archive:
        runs = runs_of(archive, settings)
        for e in results["encodings"]:
            kept["encodings"][e["encoding"]] = {
                "spec": e["spec"], "learning_rate": e["learning_rate"], "diverged": e["diverged"], "loss_beyond_L": e["loss_beyond_L"],
                "buckets": {b["name"]: {k: b[k] for k in ("loss", "to_reference", "rank", "spread")} for b in e["buckets"]},
                "windows": {bucket: [windows_of(archive, runs[e["spec"], r["seed"]], bucket, windows) for r in e["runs"]]
                            for bucket in ("L", "8 L")}}
    text = json.dumps(kept, separators=(",", ":"), ensure_ascii=False)
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{done['name']}.json"
    path.with_suffix(".tmp").write_text(text.replace('},"', '},\n"').replace(']},{', ']},\n{') + "\n")
    path.with_suffix(".tmp").rename(path)


# ---------------------------------------------------------------- the queue

def rate_for(done):
    """The rate of a long run, or None while the comparison that says it is not done."""
    name, encoding, times = done["rate_of"]
    path = KEPT / f"{name}.json"
    if path.exists():
        rate = json.loads(path.read_text())["encodings"][encoding]["learning_rate"] / math.sqrt(times)
        return 2 * rate if done["name"] in TWICE else rate
    return None


def command(done, arguments):
    """What is called; None: not yet."""
    options = list(done["options"])
    if "rate_of" in done:
        rate = rate_for(done)
        if rate is None:
            return None
        options += ["--learning-rate", f"{rate:g}"]
    if "preset" in done:
        path = arguments.work / f"{done['name']}.json"
        path.write_text(json.dumps(done["preset"]))
        options += ["--preset", str(path)]
    done["call"] = " ".join(["posenc compare", *(Path(o).name if o.startswith("/") else o for o in options), done["text"]])
    idle = ["chrt", "-i", "0", "nice", "-n", "19"]
    return [*(idle if arguments.priority is None else ["nice", "-n", str(arguments.priority)]), str(arguments.posenc), "compare", *options, "--threads", "1",
            "--resume", "-o", str(arguments.work / done["name"]), str(arguments.texts / f"{done['text']}.txt")]


def run(done, arguments):
    """0 where it is done; the status of the tool; None where it must wait."""
    called = command(done, arguments)
    if not called:
        return None
    print(time.strftime("%H:%M:%S"), done["call"], flush=True)
    with open(arguments.work / f"{done['name']}.log", "a") as log:
        status = subprocess.run(called, stdout=log, stderr=log).returncode
    if status == 0:
        keep(done, arguments.work / done["name"])
    print(time.strftime("%H:%M:%S"), done["name"], "done" if status == 0 else f"ended with status {status}", flush=True)
    return status


def lane(waiting, lock, arguments):
    """Takes the first run that can start, until none is left or one fails."""
    while True:
        with lock:
            ready = next((j for j in waiting if "rate_of" not in j or rate_for(j) is not None), None)
            if ready:
                waiting.remove(ready)
        if not ready and not waiting:
            return
        if not ready:
            time.sleep(5)
        elif run(ready, arguments) != 0:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--list", action="store_true", help="say what is done and what is not, and stop")
    parser.add_argument("--lanes", type=int, default=2, help="runs at a time (2)")
    parser.add_argument("--priority", type=int, help="of `nice`, for a machine that is never idle")
    for name in ("posenc", "texts", "work"):
        parser.add_argument(name, type=lambda p: Path(p).resolve())
    arguments = parser.parse_args()
    waiting = [j for j in JOBS if not (KEPT / f"{j['name']}.json").exists()]
    if arguments.list:
        for j in JOBS:
            print("waiting" if j in waiting else "done   ", j["name"])
        return
    arguments.work.mkdir(parents=True, exist_ok=True)
    lock = threading.Lock()
    lanes = [threading.Thread(target=lane, args=(waiting, lock, arguments)) for _ in range(arguments.lanes)]
    for thread in lanes:
        thread.start()
    for thread in lanes:
        thread.join()
    sys.exit(1 if waiting else 0)


if __name__ == "__main__":
    main()
