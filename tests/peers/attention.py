#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""attention.py POSENC FOLDER [SEED [COUNT]] [TYPE...]: tiny random models of transformers against posenc

The types of EVERY are taken, and COUNT others (40) drawn by SEED (printed; today's by default); or those that are named. A tiny
model of each is made with random weights, and run. What it did in one layer is then done by posenc from the model's config.json:

    attend   q, k before their rotation, and v: the output of attention
    rotate   where the model changes q and k after their rotation: the rotated q and k
    encode   rows that an embedding of positions adds, from the model's .safetensors

Each must agree within 2e-5 of the largest number (float32); the logits of EVERY, taken from the logarithm of weights, within 2e-6
of the largest, or of 1. What scores have besides - sinks, a cap, a temperature -
is in the SPEC. Types whose attention has terms that no SPEC says (other_terms) must be refused by attend with that
reason, and are not drawn. A type that cannot be made so small, or does not show its q and k, is named and another is drawn.
Exit status 1 if any differs.
"""
import datetime
import importlib
import inspect
import json
import logging
import os
import random
import subprocess
import sys
import warnings

warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"

LENGTH, TOLERANCE, LOGITS, LARGEST = 12, 2e-5, 2e-6, 1 << 25
EVERY = ("gpt_oss llama4_text smollm3 cohere2 exaone4 gemma2 gemma3_text ministral3 inkling_text inkling2_text mimo_v2_flash").split()
TINY = dict(
    hidden_size=64, d_model=64, n_embd=64, emb_dim=64, embed_dim=64, dim=64, num_attention_heads=4, n_head=4, n_heads=4,
    num_heads=4, attention_heads=4, encoder_attention_heads=4, decoder_attention_heads=4, decoder_num_attention_heads=4,
    encoder_num_attention_heads=4, num_key_value_heads=2, decoder_num_key_value_heads=2, encoder_num_key_value_heads=2,
    kv_channels=16, num_hidden_layers=4, n_layer=4, n_layers=4, num_layers=4, encoder_layers=2, decoder_layers=2,
    intermediate_size=48, ffn_dim=48, d_ff=48, n_inner=48, encoder_ffn_dim=48, decoder_ffn_dim=48, d_kv=16, head_dim=16,
    moe_intermediate_size=32, shared_expert_intermediate_size=32, vocab_size=99, num_local_experts=4, num_experts=4,
    n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=2, moe_topk=2, n_group=1, topk_group=1, embedding_size=32,
    qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, q_lora_rank=24, kv_lora_rank=24, max_position_embeddings=64,
    n_positions=64, type_vocab_size=2, num_decoder_layers=2, num_encoder_layers=2, global_head_dim=32, n_ctx=64,
    hidden_size_per_layer_input=8, vocab_size_per_layer_input=99, rotary_dim=16, lm_head_rank=8, altup_num_inputs=2,
    laurel_rank=8, num_kv_shared_layers=0,
    log_scaling_n_floor=4, attn_logit_softcapping=0.5, swa_num_attention_heads=4, swa_num_key_value_heads=2, swa_head_dim=16, d_rel=6, rel_extent=9,
    sliding_window_size=5, floor_scale=4, use_qk_norm=False)


def tiny(one):
    """A configuration of the class, as small as its keys allow; of the language model where there are several parts."""
    plain = one()
    known = plain.to_dict()
    changes = {key: value for key, value in TINY.items() if known.get(key) is not None and not isinstance(known[key], (dict, list))}
    if known.get("num_key_value_heads") == known.get("num_attention_heads"):
        changes.pop("num_key_value_heads", None), changes.update(num_key_value_heads=4)
    if "head_dim" in known and "qk_rope_head_dim" in known:
        changes["head_dim"] = 16
    if "attention_value_scale" in known:  # MiMo turns 0.334 of a head, which must be even
        changes["head_dim"] = 24
    for key in ("pad_token_id", "bos_token_id", "eos_token_id"):
        if isinstance(known.get(key), int) and known[key] >= 99:
            changes[key] = 1
    for key in known:
        if key in ("layer_types", "mlp_layer_types", "layers_block_type", "no_rope_layers") and isinstance(known[key], list):
            depth = changes.get("num_hidden_layers", 4)
            kinds = list(dict.fromkeys(known[key]))
            changes[key] = [known[key][i % len(known[key])] for i in range(depth - len(kinds) + 1)] + kinds[1:]
            changes[key] = changes[key][:depth]
    return one(**changes)


def token_inputs_of(layer):
    """What an attention of Inkling makes of its tokens besides q, k and v: r, and the sink of Inkling 2."""
    layer.token_inputs = {}
    parts = (("r", getattr(layer, "r_proj", None)), ("sink", getattr(layer, "sink_proj", None)),
             ("r", getattr(getattr(layer, "relative_position_bias", None), "norm", None)))
    for name, part in parts:
        if part is not None:
            def keep(_, __, out, name=name):
                layer.token_inputs[name] = out.view(*out.shape[:2], layer.num_heads, -1).transpose(1, 2)
            part.register_forward_hook(keep)


class Spy:
    """What a model's modules did: rotations, and attentions."""

    def __init__(self, module):
        self.rotated, self.attended, self.apart, self.module = None, [], [], module
        for name, function in list(vars(module).items()):
            if name.startswith("apply_rotary") and inspect.isfunction(function):
                setattr(module, name, self.rotation(function))
        if hasattr(module, "eager_attention_forward"):
            self.eager = module.eager_attention_forward
            module.eager_attention_forward = self.attention

    def rotation(self, function):
        def call(q, k, *rest, **more):
            out = function(q, k, *rest, **more)
            if isinstance(out, tuple):
                self.rotated = (q, k, out[0], out[1])
            else:  # Gemma 4: queries first, then keys, tokens before heads
                self.apart = [*self.apart, q.transpose(1, 2), out.transpose(1, 2)][-4:]
                self.rotated = tuple(self.apart[0::2] + self.apart[1::2]) if len(self.apart) == 4 else None
            return out

        return call

    def attention(self, layer, q, k, v, mask, *rest, **more):
        out = self.eager(layer, q, k, v, mask, *rest, **more)
        made = {name: array(x) for name, x in getattr(layer, "token_inputs", {}).items()}
        self.attended.append((getattr(layer, "layer_idx", None), q, k, v, mask, out, self.rotated, made))
        self.rotated, self.apart = None, []
        return out


def run(posenc, *arguments):
    done = subprocess.run([posenc, *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stderr.strip()


def off(a, b):
    import numpy

    if a.shape != b.shape:
        return f"shape {a.shape}, not {b.shape}"
    worst = numpy.abs(a.astype(float) - b).max() / max(1e-30, numpy.abs(b).max())
    return None if worst <= TOLERANCE else f"off by {worst:.2g}"


def array(x):
    return x.detach().float().contiguous().numpy()


def logits_off(posenc, folder, where, arrays, weights):
    """Where v is the identity, the output is the weights."""
    import numpy

    B, G, Lk = arrays["k"].shape[:3]
    doubles = {name: a.astype(float) if a.dtype == numpy.float32 else a for name, a in arrays.items()}
    numpy.savez(f"{folder}/in.npz", **(doubles | {"v": numpy.broadcast_to(numpy.eye(Lk), (B, G, Lk, Lk))}))
    status, why = run(posenc, "attend", *where, "-i", f"{folder}/in.npz", "-o", f"{folder}/out.npz")
    if status:
        return why.splitlines()[-1]
    got, seen = numpy.load(f"{folder}/out.npz")["out_o"], weights > 1e-30
    if ((got > 1e-30) != seen).any():
        return "other keys are seen"
    a, b = numpy.log(got[seen]), numpy.log(weights[seen].astype(float))
    worst = numpy.abs(a - b).max() / max(1, numpy.abs(b).max())
    return None if worst <= LOGITS else f"logits off by {worst:.2g}"


def before(x, given, offset):
    """The query of attention with the rotated channels as they were before."""
    width = given.shape[-1]
    if given.shape[1] != x.shape[1]:
        given = given.expand(-1, x.shape[1], -1, -1)
    if width == x.shape[-1]:
        return given
    out = x.clone()
    out[..., offset : offset + width] = given
    return out


def held(posenc, folder, path, group, layer, seen, exact):
    """None if attention, or else the rotation, agrees; a reason if not. And which it was."""
    import numpy

    _, q, k, v, mask, out, rotated, made = seen
    if rotated is not None and rotated[0].shape[1] == q.shape[2] != q.shape[1]:  # Llama 4: tokens before heads
        rotated = tuple(x.transpose(1, 2) for x in rotated)
    offset = group.get("offset_dim", 0)
    arrays = {"v": array(v), "q": array(q), "k": array(k)} | made
    temperature = group.get("temperature") or {}
    if rotated is None and temperature:  # the query comes tempered
        share = (numpy.arange(arrays["q"].shape[2]) + 1) / temperature["length"]
        tau = 1 + temperature["scale"] * (numpy.log1p(numpy.floor(share)) if temperature["rule"] == "llama4" else numpy.log(numpy.maximum(share, 1)))
        for name in {"q"} | ({"r"} & set(arrays) if "sink" in arrays else set()):  # Inkling 2 tempers r itself
            arrays[name] = arrays[name] / tau.astype(numpy.float32)[:, None]
    if rotated is not None:
        arrays.update(q=array(before(q, rotated[0], offset)), k=array(before(k, rotated[1], offset)))
    if mask is not None and hasattr(mask, "dtype"):
        allowed = (mask if mask.dtype.is_floating_point is False else mask > -1).expand(q.shape[0], -1, -1, -1)
        arrays["allowed"] = array(allowed[..., : k.shape[2]]).astype(numpy.uint8)
    numpy.savez(f"{folder}/in.npz", **arrays)
    where = ["--config", path] + ([] if layer is None else ["--layer", layer])
    status, why = run(posenc, "attend", *where, "-i", f"{folder}/in.npz", "-o", f"{folder}/out.npz")
    if status:
        return why.splitlines()[-1], "attend"
    wrong = off(numpy.load(f"{folder}/out.npz")["out_o"].transpose(0, 2, 1, 3), array(out[0]))
    if not wrong and exact:
        return logits_off(posenc, folder, where, arrays, array(out[1])), "logits"
    if not wrong or rotated is None or rotated[0].shape[-1] != group["head_dim"]:
        return wrong, "attend"
    numpy.savez(f"{folder}/in.npz", q=array(rotated[0]), k=array(rotated[1]))
    status, why = run(posenc, "rotate", *where, "-i", f"{folder}/in.npz", "-o", f"{folder}/out.npz")
    if status:
        return why.splitlines()[-1], "rotate"
    got = numpy.load(f"{folder}/out.npz")
    name = "q" if "q" in got else "out_q"
    worst = off(got[name], array(rotated[2])) or off(got[name.replace("q", "k")], array(rotated[3]))
    return (f"attend {wrong}, rotate {worst}" if worst else None), "rotate"


def rows(posenc, folder, model, group):
    """Rows of a learned table: the checkpoint's own, by encode --config."""
    import numpy

    status, why = run(posenc, "encode", "--config", f"{folder}/model.safetensors", *(["--tower", group["stack"]] if group.get("stack") else []), "--length", LENGTH, "-o", f"{folder}/out.npy")
    if status:
        return why.splitlines()[-1]
    got = numpy.load(f"{folder}/out.npy")
    tables = [array(p) for n, p in model.named_parameters() if "pos" in n or "wpe" in n]
    tables = [t.reshape(t.shape[-2], t.shape[-1]) for t in tables if t.ndim >= 2 and t.size == t.shape[-1] * t.shape[-2]]
    first = group["offset"]
    return None if any(not off(got, t[first : first + LENGTH]) for t in tables if t.shape[-1] == got.shape[-1]) else "other rows"


def made(config):
    """A model of the configuration: by AutoModel, or the class of its module that says that it takes it."""
    from transformers import AutoModel, PreTrainedModel

    config._attn_implementation = "eager"
    try:
        return AutoModel.from_config(config, attn_implementation="eager")
    except ValueError:
        module = importlib.import_module(type(config).__module__.replace("configuration_", "modeling_"))
        for name, one in vars(module).items():
            if inspect.isclass(one) and issubclass(one, PreTrainedModel) and name.endswith("Model") and not name.endswith(
                    "PreTrainedModel") and getattr(one, "config_class", None) is type(config):
                return one(config)
        raise


def trial(posenc, folder, name):
    """(how, reason or None) of a type; raises where it cannot be made or shows nothing."""
    import torch
    from transformers import CONFIG_MAPPING

    config = tiny(CONFIG_MAPPING[name])
    with torch.device("meta"):
        if sum(p.numel() for p in made(config).parameters()) > LARGEST:
            raise MemoryError("its keys do not make it small")
    torch.manual_seed(0)
    model = made(config).eval().float()
    for one, p in model.named_parameters():
        if p.ndim > 1 or one.endswith("sinks"):
            torch.nn.init.normal_(p, std=0.2 if p.ndim > 1 else 1)
    model.save_pretrained(folder)
    path = f"{folder}/config.json"
    for layer in model.modules():
        token_inputs_of(layer)
    spy = Spy(importlib.import_module(type(model).__module__))
    ids = torch.randint(3, 90, (1, LENGTH))
    with torch.no_grad():
        try:
            model(input_ids=ids)
        except Exception:
            model(input_ids=ids, decoder_input_ids=ids)
    done = subprocess.run([posenc, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode:
        return "inspect", done.stderr.strip()
    got, results = json.loads(done.stdout), []
    for group in got["groups"]:
        if group["encoding"] == "learned":
            results.append(("encode", rows(posenc, folder, model, group)))
        if group["layers"] == "input":
            continue
        one = None if group["layers"] == "all" else group["layers"][-1]
        seen = [s for s in spy.attended if one is None or s[0] == one]
        one = seen[-1][0] if seen and isinstance(group.get("sliding_window"), list) else one
        if seen:
            trained = f"{folder}/model.safetensors" if group.get("trained") else path
            wrong, how = held(posenc, folder, trained, group, one, seen[-1], name in EVERY)
            results.append((how, wrong))
    if not results:
        raise LookupError("it does not show its q and k")
    return "+".join(dict.fromkeys(h for h, _ in results)), next((w for _, w in results if w), None)


def drawable(posenc, path, config):
    """Does inspect name an encoding, with no term besides?"""
    config.to_json_file(path)
    done = subprocess.run([posenc, "inspect", "--json", path], capture_output=True, text=True)
    if done.returncode or any(isinstance(v, dict) and "model_type" in v for v in config.to_dict().values()):
        return False  # the parts of a model are types of their own
    groups = json.loads(done.stdout)["groups"]
    return any(g["encoding"] in ("rope", "learned", "alibi", "nope") for g in groups) and not any(
        "other_terms" in g for g in groups)


def main():
    from transformers import CONFIG_MAPPING, __version__

    posenc, folder, rest = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    numbers, named = [int(x) for x in rest if x.isdigit()], [x for x in rest if not x.isdigit()]
    seed = numbers[0] if numbers else int(datetime.date.today().strftime("%Y%m%d"))
    count = len(named) or len(EVERY) + (numbers[1] if len(numbers) > 1 else 40)
    os.makedirs(folder, exist_ok=True)
    print(f"transformers {__version__}, seed {seed}", flush=True)
    drawn = random.Random(seed).sample(sorted(CONFIG_MAPPING), k=len(list(CONFIG_MAPPING)))
    types = named or EVERY + [name for name in drawn if name not in EVERY]
    done = failed = skipped = 0
    for name in types:
        if done == count:
            break
        try:
            if not named and name not in EVERY and not drawable(posenc, f"{folder}/default.json", CONFIG_MAPPING[name]()):
                continue
            how, wrong = trial(posenc, folder, name)
        except Exception as why:
            skipped, failed = skipped + 1, failed + (name in EVERY)
            print(f"not made  {name}: {type(why).__name__}: {str(why).strip().splitlines()[0][:90] if str(why).strip() else ''}", flush=True)
            continue
        done, failed = done + 1, failed + bool(wrong)
        print(f"{'differs' if wrong else 'agrees':9} {name} by {how}" + (f": {wrong}" if wrong else ""), flush=True)
    print(f"{done - failed} of {done} agree; {skipped} could not be made")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
