#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""model_types.py POSENC FOLDER: what `posenc inspect` makes of every model type that the installed transformers knows

Each type's configuration is written to FOLDER as its class makes it, with no argument and with a longer context, and read.
The answer is held against what the configuration itself says after its class has completed it: base, schedule and
fraction of the rotation, and the window of each layer. Nothing needs PyTorch; layouts and the shapes of tables are not in
a configuration, so those are for tests/golden. Counted are files that are

    right    read, and equal in all that can be compared      guessed  read as a type that is like most
    wrong    read, and different                               unknown  named as not known
    refused  not read

A list follows with the reason for each type that is not right. Exit status 1 if any is wrong.
"""
import collections
import json
import logging
import os
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)

VARIANTS = {"default": {}, "longer": {"max_position_embeddings": 12345}}
INNER = ("text_config", "decoder", "generator", "text_encoder")  # where inspect looks for the language model


def language_model(config):
    for key in INNER:
        if isinstance(config.get(key), dict):
            return config[key]
    return config


def windows_of(config):
    """One number per layer, 0 for all keys; None if the configuration does not say. ModernBERT's counts both sides."""
    size = config.get("sliding_window") or 0
    if config.get("model_type") == "modernbert":
        size = config["local_attention"] // 2 + 1
    kinds = config.get("layer_types")
    if isinstance(kinds, list):
        return [size if kind == "sliding_attention" else 0 for kind in kinds]
    return [size] * config.get("num_hidden_layers", 0)


def differences(config, got):
    windows = windows_of(config)
    for group in got["groups"]:
        layers = range(len(windows)) if group["layers"] == "all" else group["layers"]
        if layers == "input":
            continue
        sizes = group.get("sliding_window", 0)
        for i, layer in enumerate(layers):
            size = sizes[i] if isinstance(sizes, list) else sizes
            if layer < len(windows) and size != windows[layer]:
                yield f"layer {layer} has a window of {windows[layer]}, not {size}"
                break
    rope = config.get("rope_parameters") or {}
    kinds = config.get("layer_types")
    for group in got["groups"]:
        words = rope
        if group["encoding"] != "rope":
            continue
        if rope and all(isinstance(value, dict) for value in rope.values()):
            if not isinstance(kinds, list) or group["layers"] == "input":
                continue
            first = 0 if group["layers"] == "all" else group["layers"][0]
            words = rope.get(kinds[first]) or {}
        for key, name in (("rope_theta", "base"), ("rope_type", "schedule"), ("factor", "factor")):
            if key in words and name in group and words[key] is not None and words[key] != group[name]:
                yield f"{key} is {words[key]}, not {group[name]}"


def read(posenc, path):
    """A class of the five, and why."""
    run = subprocess.run([posenc, "inspect", "--json", path], capture_output=True, text=True)
    if run.returncode not in (0, 2):
        return "wrong", f"exit status {run.returncode}"
    if run.returncode:
        return "refused", run.stderr.strip().split(": ", 3)[-1]
    got = json.loads(run.stdout)
    if "unknown-model-type" in got["warnings"]:
        return ("unknown", "") if got["encoding"] == "unknown" else ("guessed", "")
    found = list(differences(language_model(json.load(open(path))), got))
    return ("wrong", "; ".join(found[:3])) if found else ("right", "")


def main():
    from transformers import CONFIG_MAPPING, __version__

    posenc, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    counts, reasons = collections.defaultdict(collections.Counter), []
    for name in sorted(CONFIG_MAPPING):
        for variant, changes in VARIANTS.items():
            path = os.path.join(folder, f"{name}.{variant}.json")
            try:
                CONFIG_MAPPING[name](**changes).to_json_file(path, use_diff=False)
            except Exception:  # a class that cannot be made, or written, without more arguments
                counts[variant]["none"] += 1
                continue
            kind, why = read(posenc, path)
            counts[variant][kind] += 1
            if kind != "right" and variant == "default" or kind == "wrong":
                reasons.append(f"{kind:8} {name} ({variant}) {why}".rstrip())
    print(f"transformers {__version__}")
    for variant, count in counts.items():
        print(f"{variant:8}", ", ".join(f"{n} {kind}" for kind, n in count.most_common()))
    print(*sorted(reasons), sep="\n")
    sys.exit(any(count["wrong"] for count in counts.values()))


if __name__ == "__main__":
    main()
