#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""model_types.py POSENC FOLDER [TYPE...]: what `posenc inspect` makes of every model type that transformers knows

Each type's configuration is written to FOLDER as its class makes it, and with other values: bases, schedules of every
kind, fractions, widths of heads, key heads, layer types. Each is read, and held against what the classes themselves
compute from it (with PyTorch; without, against the configuration alone): the frequencies and the factor of every
rotary class that takes the configuration, the shape of every table of positions in the model (made on the "meta"
device), the window of each layer. Counted are configurations that are

    right    read, and equal in all that can be compared      said      not read, with what is not known
    read     read, with nothing to compare it to              refused   not read, by the reason that follows
    wrong    read, and different                              both      refused here, and by the class as well
    guessed  read as a type that is like most                 unknown   a type that is not in the table

`rotates` counts types whose language model has a rotary class. A list follows with the reason for each that is not right.
Exit status 1 if any is wrong.
"""
import collections
import importlib
import inspect
import json
import logging
import os
import re
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

INNER = ("text_config", "decoder", "generator", "text_encoder")  # where inspect looks for the language model
LENGTHS = {"original_max_position_embeddings": 1024}
LLAMA3 = dict(LENGTHS, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0)


def schedules(width):
    """Dictionaries of each kind, for `width` channels that rotate."""
    lists = {"short_factor": [1 + i / width for i in range(width // 2)], "long_factor": [1.0 + i for i in range(width // 2)]}
    return {"linear": {"factor": 4.0}, "dynamic": {"factor": 2.0}, "yarn": dict(LENGTHS, factor=4.0), "llama3": LLAMA3,
            "longrope": dict(LENGTHS, factor=4.0, **lists)}


def language_model(config):
    for key in INNER:
        if isinstance(config, dict):
            if isinstance(config.get(key), dict):
                return config[key]
        elif hasattr(getattr(config, key, None), "to_dict"):
            return getattr(config, key)
    return config


# ---------------------------------------------------------------- what the classes say ----------


def module_of(config):
    return importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))


def rotary_classes(config):
    """Those of the module that say that they take this configuration."""
    for name, one in vars(module_of(config)).items():
        if inspect.isclass(one) and re.search("Rotary|RopePosition", name) and "forward" in vars(one):
            kind = inspect.signature(one.__init__).parameters.get("config")
            kind = kind and kind.annotation
            if (kind if isinstance(kind, str) else getattr(kind, "__name__", "")) == type(config).__name__:
                yield one


def runs(made, config):
    """Raises where the class fails on its own configuration."""
    import torch

    kinds = [[]] + [[kind] for kind in (getattr(config, "layer_types", None) or [])[:1]]
    forms = [torch.zeros(1, 4, dtype=torch.long), torch.zeros(3, 1, 4, dtype=torch.long), torch.zeros(1, 2, 4),
             torch.zeros(1, 3, 4), torch.zeros(2, 4), torch.zeros(1, 4, 2), torch.zeros(1, 3, 224, 224)]
    for form in forms:
        for kind in kinds:
            try:
                return made(torch.zeros(1, 3, 224, 224) if form.ndim == 4 else torch.zeros(1, 4, 8), form, *kind)
            except TypeError as why:
                if "positional" in str(why) and form.ndim != 4:
                    return None
                last = why
            except Exception as why:
                last = why
    raise last


def rotations(config):
    """[(frequencies, factor)] that the classes compute; None where there is no such class."""
    if getattr(config, "position_embedding_type", "") == "absolute":
        return None  # ESM has the class, and does not use it
    found, classes = [], list(rotary_classes(config))
    for one in classes:
        made = one(config)
        runs(made, config)
        for name, buffer in made.named_buffers():
            if name.endswith("inv_freq") and "original" not in name:
                scale = getattr(made, name.replace("inv_freq", "attention_scaling"), 1.0)
                found.append((buffer.double().flatten().tolist(), float(scale)))
    return found if classes else None


def model_of(config):
    """By AutoModel, or the class of its module that takes the configuration."""
    from transformers import AutoModel, PreTrainedModel

    try:
        return AutoModel.from_config(config)
    except ValueError:
        for name, one in vars(module_of(config)).items():
            if inspect.isclass(one) and issubclass(one, PreTrainedModel) and not name.endswith("PreTrainedModel"):
                if getattr(one, "config_class", None) is type(config):
                    return one(config)
        raise


def tables(config):
    """{(rows, channels)} of the tables of positions of the model's own class."""
    import torch

    with torch.device("meta"):
        model = model_of(config)
    shapes = set()
    parts = [key for key, value in config.to_dict().items() if isinstance(value, dict) and "model_type" in value]
    for name, value in model.named_parameters():
        if parts or not value.requires_grad:
            continue
        own = name.replace(".weight", "").split(".")[-1]
        if re.fullmatch(r"(wpe|(embed_)?positions?(_embed\w*)?|pos(ition\w*)?_?emb(ed\w*)?|positional_embedding\w*)", own):
            shape = [n for n in value.shape if n > 1]
            if len(shape) == 2:
                shapes.add(tuple(shape))
    return shapes


# ---------------------------------------------------------------- comparing ---------------------


def close(a, b):
    return len(a) == len(b) and all(abs(x - y) <= 2e-5 * abs(y) + 1e-12 for x, y in zip(a, b))


def windows_of(config):
    """One number per layer, 0 for all keys; None if the configuration does not say. ModernBERT's counts both sides."""
    size = config.get("sliding_window") or config.get("sliding_window_size") or 0  # Inkling's
    kinds = config.get("layer_types")
    if config.get("model_type") == "modernbert":
        size = config["local_attention"] // 2 + 1
    words = ("sliding_attention", "hybrid_sliding")
    if isinstance(kinds, list) and any(kind in words for kind in kinds):
        return [own(config, i, "sliding_window", size if kind in words else 0) or 0 for i, kind in enumerate(kinds)]
    return None


def own(config, layer, key, usual):
    """What per_layer_config says of a layer, else the usual."""
    for name, entry in (config.get("per_layer_config") or {}).items():
        if int(name) == layer and key in entry:
            return entry[key]
    return usual


def width_differences(config, got):
    """Heads whose width differs from layer to layer."""
    for group in got["groups"] if config.get("per_layer_config") else ():
        for layer in group["layers"] if isinstance(group["layers"], list) and "head_dim" in group else ():
            nope = own(config, layer, "qk_nope_head_dim", config.get("qk_nope_head_dim"))
            width = nope + config["qk_rope_head_dim"] if nope else own(config, layer, "head_dim", config.get("head_dim"))
            if width and width != group["head_dim"]:
                yield f"layer {layer} has heads {width} wide, not {group['head_dim']}"
                return


def window_differences(config, got):
    windows = windows_of(config)
    for group in got["groups"] if windows else ():
        layers = range(len(windows)) if group["layers"] == "all" else group["layers"]
        if layers == "input":
            continue
        sizes = group.get("sliding_window", 0)
        for i, layer in enumerate(layers):
            size = sizes[i] if isinstance(sizes, list) else sizes
            if layer < len(windows) and size != windows[layer]:
                yield f"layer {layer} has a window of {windows[layer]}, not {size}"
                return


def of_group(group):
    """A group's list once where two coordinates have one each; in radians per step."""
    w, axes = group["inv_freq"], group["axes"]
    if group.get("axis_rule") in ("axial", "halves", "axial_alternate"):
        w = w[: len(w) // axes]
    return [x / (2 * 3.141592653589793) for x in w] if "schedule=period" in group.get("spec", "") else w


def rotation_differences(truth, got):
    groups = [g for g in got["groups"] if g["encoding"] == "rope" and "inv_freq" in g]
    if truth and not groups and got["groups"] and not any(g["encoding"] == "nope" for g in got["groups"]):
        yield "it rotates, which is not said"
    for g in groups:
        w = of_group(g)
        if not any(close(w, f) or close(sorted(w), sorted(f)) for f, _ in truth):
            yield f"frequencies {w[1:3]} of {len(w)}, the class has " + " or ".join(f"{f[1:3]} of {len(f)}" for f, _ in truth)
        elif not any(abs(g["magnitude"] - m) < 1e-5 for _, m in truth):
            yield f"magnitude {g['magnitude']}, the class has {truth[0][1]}"


def table_differences(truth, got):
    for g in got["groups"]:
        if g["encoding"] == "learned" and truth and (g["rows"], g["dim"]) not in truth:
            yield f"a table of {g['rows']} x {g['dim']}, the class has {sorted(truth)}"
    if truth and got["encoding"] not in ("unknown",) and not any(g["layers"] == "input" for g in got["groups"]):
        yield f"tables of positions {sorted(truth)}, which are not said"


def attempt(function, config):
    """What a class says; None where there is none to ask."""
    try:
        return function(config)
    except Exception as why:
        return why


def compare(config, inner, got):
    """Differences; None where nothing could be compared."""
    found, compared = list(window_differences(inner.to_dict(), got)) + list(width_differences(inner.to_dict(), got)), False
    turned = attempt(rotations, inner)
    if isinstance(turned, list) and turned:
        found += rotation_differences(turned, got)
        compared = True
    rows = attempt(tables, inner)
    if isinstance(rows, set) and rows:
        found += table_differences(rows, got)
        compared = True
    if not compared and isinstance(rows, set):
        compared = got["encoding"] in ("none", "nope", "alibi", "t5", "sinusoidal") or bool(got["groups"])
    return found if found or compared else None


def read(posenc, path, config):
    """A class of the eight, and why."""
    run = subprocess.run([posenc, "inspect", "--json", path], capture_output=True, text=True)
    inner = language_model(config)
    if run.returncode not in (0, 2):
        return "wrong", f"exit status {run.returncode}"
    if run.returncode:
        failed = isinstance(attempt(rotations, inner), Exception)
        return "both" if failed else "refused", run.stderr.strip().split(": ", 3)[-1]
    got = json.loads(run.stdout)
    if "not-known" in got["warnings"]:
        failed = isinstance(attempt(rotations, inner), Exception)
        return "both" if failed else "said", next((w for w in run.stderr.splitlines() if w), "")
    if "unknown-model-type" in got["warnings"]:
        return ("unknown", "") if got["encoding"] == "unknown" else ("guessed", "")
    found = compare(config, inner, got)
    if found is None:
        return "read", ""
    return ("wrong", "; ".join(found[:3])) if found else ("right", "")


# ---------------------------------------------------------------- variants ----------------------


def varied(make, key):
    """{name: arguments} for the language model, of keys that its default has."""
    plain = language_model(make({})).to_dict()
    rope, out = plain.get("rope_parameters"), {"default": {}}
    if plain.get("max_position_embeddings"):
        out["longer"] = {"max_position_embeddings": 12345}
    for name, value in (("num_key_value_heads", 1), ("head_dim", 48), ("sliding_window", 77)):
        if plain.get(name) and not (name == "head_dim" and plain.get("qk_rope_head_dim")):
            out[name] = {name: value}
    if not rope:
        return out
    layered = [k for k, v in rope.items() if isinstance(v, dict)]
    width = plain.get("qk_rope_head_dim") or plain.get("head_dim") or (
        plain.get("hidden_size", 0) // (plain.get("num_attention_heads") or 1))
    width = int((width or 64) * (rope.get("partial_rotary_factor") or 1))

    def with_words(**words):
        if layered:
            return {"rope_parameters": {k: dict(rope[k], **words) for k in layered}}
        return {"rope_parameters": dict({k: v for k, v in rope.items() if k in ("rope_theta", "mrope_section", "partial_rotary_factor")}, **words)}

    if rope.get("rope_type") == "axial":
        return dict(out, base=with_words(rope_type="axial", rope_theta=777.0))
    out["base"] = with_words(rope_type="default", rope_theta=54321.0)
    out["partial"] = with_words(rope_type="default", partial_rotary_factor=0.25)
    for name, words in schedules(width).items():
        out[name] = with_words(rope_type=name, **words)
    return out


def configuration(one, changes):
    """Of a class, with changes to its language model."""
    plain = one()
    for key in INNER:
        if changes and hasattr(getattr(plain, key, None), "to_dict"):
            return one(**{key: dict(getattr(plain, key).to_dict(), **changes)})
    return one(**changes) if changes else plain


def rotates(config):
    try:
        return any(True for _ in rotary_classes(language_model(config)))
    except Exception:
        return False


def main():
    from transformers import CONFIG_MAPPING, __version__

    posenc, folder, chosen = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    counts, reasons = collections.defaultdict(collections.Counter), []
    for name in chosen or sorted(CONFIG_MAPPING):
        try:
            variants = varied(lambda changes: configuration(CONFIG_MAPPING[name], changes), name)
        except Exception:
            variants = {"default": {}}
        for variant, changes in variants.items():
            path = os.path.join(folder, f"{name}.{variant}.json")
            try:
                config = configuration(CONFIG_MAPPING[name], changes)
                config.to_json_file(path, use_diff=False)
            except Exception:  # a class that cannot be made, or written, with these arguments
                counts[variant]["none"] += 1
                continue
            kind, why = read(posenc, path, config)
            counts[variant][kind] += 1
            if variant == "default" and rotates(config):
                counts["rotates"][kind] += 1
            if kind not in ("right", "both"):
                reasons.append(f"{kind:8} {name} ({variant}) {why}".rstrip())
    print(f"transformers {__version__}")
    for variant, count in counts.items():
        print(f"{variant:8}", ", ".join(f"{n} {kind}" for kind, n in count.most_common()))
    print(*sorted(reasons), sep="\n")
    sys.exit(any(count["wrong"] for count in counts.values()))


if __name__ == "__main__":
    main()
