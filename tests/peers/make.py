#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make.py OUT: model files as the real writers make them, and what `posenc inspect` must say about them

Runs inside a virtual environment (run.sh makes two, with the versions of requirements-*.txt) and writes what is
installed there: configurations by transformers' own classes, below OUT/transformers4 or OUT/transformers5; .gguf files by
gguf's writer; .safetensors by safetensors, with the configuration beside it. Models have few layers and no weights
beyond those that carry positions, so every file is small.

OUT/NAME/expected.json says for each file what must be read. Its numbers come from the formulas below, written from the
papers in float64, never from posenc: what is tested is whether the file as it is really written is understood.
"""
import json
import math
import os
import sys


# ---------------------------------------------------------------- formulas ----------------------


def plain(dim, base):
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def linear(dim, base, factor):
    return [w / factor for w in plain(dim, base)]


def llama3(dim, base, factor, low, high, length):
    out = []
    for w in plain(dim, base):
        s = min(max((length * w / (2 * math.pi) - low) / (high - low), 0), 1)
        out.append(w * ((1 - s) / factor + s))
    return out


def yarn(dim, base, factor, length, fast=32, slow=1, truncate=True):
    def index(turns):
        return dim * math.log(length / (2 * math.pi * turns)) / (2 * math.log(base))

    low, high = index(fast), index(slow)
    if truncate:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, dim - 1)
    high += 0.001 if low == high else 0
    ramps = [min(max((i - low) / (high - low), 0), 1) for i in range(dim // 2)]
    return [w / factor * r + w * (1 - r) for w, r in zip(plain(dim, base), ramps)]


def mscale(factor, mu=1.0):
    return 1.0 if factor <= 1 else 0.1 * mu * math.log(factor) + 1


def rope(layers, inv_freq, head_dim, base, schedule="default", **more):
    out = {
        "layers": layers,
        "encoding": "rope",
        "layout": "half",
        "dim": 2 * len(inv_freq),
        "offset_dim": 0,
        "head_dim": head_dim,
        "base": float(base),
        "schedule": schedule,
        "inv_freq": inv_freq,
        "magnitude": 1.0,
        "score_scale": head_dim**-0.5,
        "axes": 1,
    }
    out.update(more)
    return out


def model(model_type, groups, max_positions, original_length=None, encoding="rope", warnings=()):
    return {
        "model_type": model_type,
        "encoding": encoding,
        "groups": groups,
        "context": {"max_positions": max_positions, "original_length": original_length},
        "warnings": sorted(warnings),
    }


def write_expected(folder, ending, expected):
    """By file, without the ending that they share; as tests/cli/agree.py reads it."""
    with open(os.path.join(folder, "ending.txt"), "w") as to:
        to.write(ending + "\n")
    with open(os.path.join(folder, "expected.json"), "w") as to:
        json.dump(expected, to, indent=1, sort_keys=True)
        to.write("\n")


# ---------------------------------------------------------------- transformers ------------------

LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}
DEEPSEEK = {
    "rope_type": "yarn",
    "factor": 40.0,
    "original_max_position_embeddings": 4096,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
}
SHORT = [1 + 0.05 * i / 47 for i in range(48)]
LONG = [1.08 + 60 * (i / 47) ** 2 for i in range(48)]
LONGROPE = {"rope_type": "longrope", "short_factor": SHORT, "long_factor": LONG}


def rotation(is_new, base, **dictionary):
    """The arguments by which a configuration gets a base and a schedule."""
    if is_new:
        return {"rope_parameters": dict({"rope_type": "default"}, rope_theta=base, **dictionary)}
    return dict({"rope_theta": base}, **({"rope_scaling": dictionary} if dictionary else {}))


def rotary_configurations(t, is_new):
    """name -> (configuration, what must be read)"""
    deepseek_g = mscale(40)
    longrope_m = math.sqrt(1 + math.log(32) / math.log(4096))
    return {
        "llama31": (
            t.LlamaConfig(
                hidden_size=4096, num_attention_heads=32, num_key_value_heads=8, num_hidden_layers=4,
                max_position_embeddings=131072, **rotation(is_new, 5e5, **LLAMA3)
            ),
            model("llama", [rope("all", llama3(128, 5e5, 8, 1, 4, 8192), 128, 5e5, "llama3", factor=8.0,
                                 low_freq_factor=1.0, high_freq_factor=4.0, original_length=8192)], 131072, 8192),
        ),
        "llama_linear": (
            t.LlamaConfig(
                hidden_size=512, num_attention_heads=8, num_hidden_layers=2, max_position_embeddings=16384,
                **rotation(is_new, 1e4, rope_type="linear", factor=4.0)
            ),
            model("llama", [rope("all", linear(64, 1e4, 4), 64, 1e4, "linear", factor=4.0)], 16384),
        ),
        "qwen2_yarn": (
            t.Qwen2Config(
                hidden_size=1024, num_attention_heads=8, num_key_value_heads=2, num_hidden_layers=2,
                max_position_embeddings=131072, **rotation(is_new, 1e6, **YARN)
            ),
            model("qwen2", [rope("all", yarn(128, 1e6, 4, 32768), 128, 1e6, "yarn", factor=4.0, original_length=32768,
                                 beta_fast=32.0, beta_slow=1.0, truncate=True, magnitude=mscale(4))], 131072, 32768),
        ),
        "gpt_oss": (
            t.GptOssConfig(num_hidden_layers=2),
            model("gpt_oss", [rope("all", yarn(64, 1.5e5, 32, 4096, truncate=False), 64, 1.5e5, "yarn", factor=32.0,
                                   original_length=4096, beta_fast=32.0, beta_slow=1.0, truncate=False,
                                   magnitude=mscale(32))], 131072, 4096, warnings=["truncate-false"]),
        ),
        "deepseek_v3": (
            t.DeepseekV3Config(num_hidden_layers=2, max_position_embeddings=163840, **rotation(is_new, 1e4, **DEEPSEEK)),
            model("deepseek_v3", [rope("all", yarn(64, 1e4, 40, 4096), 192, 1e4, "yarn", layout="interleaved",
                                       offset_dim=128, factor=40.0, original_length=4096, beta_fast=32.0,
                                       beta_slow=1.0, truncate=True, score_scale=deepseek_g**2 / 192**0.5)],
                  163840, 4096, warnings=["magnitude-dialect"]),
        ),
        "phi3_longrope": (
            t.Phi3Config(num_hidden_layers=2, max_position_embeddings=131072, original_max_position_embeddings=4096,
                         **({"rope_parameters": dict(LONGROPE, rope_theta=1e4)} if is_new
                            else {"rope_scaling": {"type": "longrope", "short_factor": SHORT, "long_factor": LONG}})),
            model("phi3", [rope("all", [w / s for w, s in zip(plain(96, 1e4), SHORT)], 96, 1e4, "longrope",
                                inv_freq_long=[w / s for w, s in zip(plain(96, 1e4), LONG)], factor=32.0,
                                original_length=4096, magnitude=longrope_m)], 131072, 4096),
        ),
        "gemma3": (
            t.Gemma3TextConfig(num_hidden_layers=7),
            model("gemma3_text", [rope([0, 1, 2, 3, 4, 6], plain(256, 1e4), 256, 1e4, score_scale=256**-0.5),
                                  rope([5], plain(256, 1e6), 256, 1e6, score_scale=256**-0.5)], 131072),
        ),
        "gpt_neox": (
            t.GPTNeoXConfig(num_hidden_layers=2),
            model("gpt_neox", [rope("all", plain(24, 1e4), 96, 1e4)], 2048),
        ),
        "phi": (
            t.PhiConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2, partial_rotary_factor=0.25),
            model("phi", [rope("all", plain(16, 1e4), 64, 1e4)], 2048),
        ),
        "glm": (
            t.GlmConfig(num_hidden_layers=2),
            model("glm", [rope("all", plain(64, 1e4), 128, 1e4, layout="interleaved")], 131072),
        ),
    }


def newer_configurations(t):
    """Types that only the new style has."""
    def eyes(pairs, head_dim, **more):
        return rope("all", 2 * plain(2 * pairs, 1e4), head_dim, 1e4, axes=2, axis_rule="axial", sections=[pairs, pairs], **more)

    return {
        "deepseek_v32": (
            t.DeepseekV32Config(num_hidden_layers=2),
            model("deepseek_v32", [rope("all", plain(64, 1e4), 192, 1e4, layout="interleaved", offset_dim=128)], 163840),
        ),
        "glm_moe_dsa": (
            t.GlmMoeDsaConfig(num_hidden_layers=2),
            model("glm_moe_dsa", [rope("all", plain(64, 1e4), 256, 1e4, layout="interleaved", offset_dim=192)], 202752),
        ),
        "bamba": (
            t.BambaConfig(num_hidden_layers=4, attn_layer_indices=[1, 3]),
            model("bamba", [rope([1, 3], plain(64, 1e4), 128, 1e4)], 262144),
        ),
        "ernie4_5_vl_moe_vision": (
            t.models.ernie4_5_vl_moe.configuration_ernie4_5_vl_moe.Ernie4_5_VLMoeVisionConfig(),
            model("ernie4_5_vl_moe_vision", [eyes(20, 80)], None),
        ),
    }


def other_configurations(t):
    slopes = [2.0 ** -(i + 1) for i in range(8)]
    return {
        "bert": (
            t.BertConfig(),
            model("bert", [{"layers": "input", "encoding": "learned", "rows": 512, "offset": 0, "dim": 768}], 512,
                  encoding="learned"),
        ),
        "t5": (
            t.T5Config(),
            model("t5", [{"layers": "all", "stack": stack, "encoding": "t5", "heads": 8, "num_buckets": 32,
                          "max_distance": 128, "bidirectional": stack == "encoder", "shared": True,
                          "score_scale": 1.0} for stack in ("encoder", "decoder")], None, encoding="t5"),
        ),
        "bloom": (
            t.BloomConfig(),
            model("bloom", [{"layers": "all", "encoding": "alibi", "heads": 8, "head_dim": 8, "slopes": slopes,
                             "bias_scale": 1.0, "score_scale": 8**-0.5}], None, encoding="alibi"),
        ),
    }


def write_configurations(out):
    import transformers

    is_new = not transformers.__version__.startswith("4.")
    folder = os.path.join(out, "transformers5" if is_new else "transformers4")
    os.makedirs(folder, exist_ok=True)
    expected = {}
    for name, (config, must) in {**rotary_configurations(transformers, is_new),
                                 **(newer_configurations(transformers) if is_new else {}),
                                 **other_configurations(transformers)}.items():
        config.to_json_file(os.path.join(folder, name + ".json"))  # as save_pretrained writes config.json
        expected[name] = must
    write_expected(folder, "json", expected)


# ---------------------------------------------------------------- GGUF --------------------------


def float32(x):
    import numpy

    return float(numpy.float32(x))


def gguf_file(path, arch, heads, width, layers, context, **keys):
    import gguf

    w = gguf.GGUFWriter(path, arch)
    w.add_context_length(context)
    w.add_embedding_length(width)
    w.add_block_count(layers)
    w.add_head_count(heads)
    for name, value in keys.items():
        if not name.startswith("tensor_"):
            getattr(w, "add_" + name)(value)
    for name, value in keys.items():
        if name.startswith("tensor_"):
            w.add_tensor(name[len("tensor_"):] + ".weight", value)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


def write_gguf(out):
    import gguf
    import numpy

    folder = os.path.join(out, "gguf")
    os.makedirs(folder, exist_ok=True)

    def at(name):
        return os.path.join(folder, name)

    divisors = numpy.array(
        [w / v for w, v in zip(plain(64, 5e5), llama3(64, 5e5, 32, 1, 4, 8192))], dtype=numpy.float32
    )
    gguf_file(at("llama32.gguf"), "llama", 32, 2048, 2, 131072, head_count_kv=8, rope_freq_base=5e5,
              rope_dimension_count=64, token_list=["<unk>", "a", "b"], tensor_rope_freqs=divisors)
    gguf_file(at("qwen2_yarn.gguf"), "qwen2", 8, 1024, 2, 131072, head_count_kv=2, rope_freq_base=1e6,
              rope_scaling_type=gguf.RopeScalingType.YARN, rope_scaling_factor=4.0,
              rope_scaling_orig_ctx_len=32768)
    gguf_file(at("bloom.gguf"), "bloom", 8, 64, 2, 2048, max_alibi_bias=8.0)
    gguf_file(at("gemma2.gguf"), "gemma2", 4, 64, 2, 8192, rope_freq_base=1e4, attn_logit_softcapping=30.0, sliding_window=16)
    sinks = {f"tensor_blk.{i}.attn_sinks": numpy.zeros(4, dtype=numpy.float32) for i in range(2)}
    gguf_file(at("gpt_oss.gguf"), "gpt-oss", 4, 64, 2, 8192, rope_freq_base=1.5e5, sliding_window=16, **sinks)
    gguf_file(at("mimo2.gguf"), "mimo2", 4, 64, 2, 8192, rope_freq_base=5e6, rope_freq_base_swa=1e4, sliding_window=16,
              sliding_window_pattern=[False, True], **{"tensor_blk.1.attn_sinks": sinks["tensor_blk.1.attn_sinks"]})
    gguf_file(at("gptneox.gguf"), "gptneox", 8, 512, 2, 2048, rope_dimension_count=16)
    write_expected(folder, "gguf", {
        "llama32": model("llama", [rope("all", [w / float(d) for w, d in zip(plain(64, 5e5), divisors)], 64,
                                             5e5, layout="interleaved", freq_factors=True)], 131072),
        "qwen2_yarn": model("qwen2", [rope("all", yarn(128, 1e6, 4, 32768), 128, 1e6, "yarn", factor=4.0,
                                                original_length=32768, beta_fast=32.0, beta_slow=1.0, truncate=True,
                                                magnitude=mscale(4))], 131072, 32768),
        "bloom": model("bloom", [{"layers": "all", "encoding": "alibi", "heads": 8, "head_dim": 8,
                                       "slopes": [2.0 ** -(i + 1) for i in range(8)], "score_scale": 8**-0.5}], 2048,
                            encoding="alibi"),
        "gemma2": model("gemma2", [rope("all", plain(16, 1e4), 16, 1e4, score_scale=None, softcap=30.0, sliding_window=[16, 0])],
                        8192),
        "gpt_oss": model("gpt-oss", [rope("all", plain(16, 1.5e5), 16, 1.5e5, sink="head", sliding_window=[16, 0])], 8192),
        "mimo2": model("mimo2", [rope([0], plain(16, 5e6), 16, 5e6, sink=None),
                                 rope([1], plain(16, 1e4), 16, 1e4, sink="head", sliding_window=16)], 8192),
        "gptneox": model("gptneox", [rope("all", plain(16, 1e4), 64, 1e4)], 2048, warnings=["base-default"]),
    })


# ---------------------------------------------------------------- safetensors -------------------


def write_safetensors(out):
    import numpy
    import transformers
    from safetensors.numpy import save_file

    folder = os.path.join(out, "safetensors")
    os.makedirs(folder, exist_ok=True)
    rows = numpy.zeros((64, 64), dtype=numpy.float16)
    save_file({"model.layers.0.self_attn.q_proj.weight": rows, "model.layers.0.self_attn.k_proj.weight": rows[:32]},
              os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})
    config = transformers.LlamaConfig(
        hidden_size=64, num_attention_heads=4, num_key_value_heads=2, num_hidden_layers=1, max_position_embeddings=512,
        rope_parameters={"rope_type": "default", "rope_theta": 1e4}
    )
    config.to_json_file(os.path.join(folder, "config.json"))
    must = model("llama", [rope("all", plain(16, 1e4), 16, 1e4)], 512)
    write_expected(folder, "safetensors", {"model": must})


# ---------------------------------------------------------------- all ---------------------------


def main():
    out = sys.argv[1]
    write_configurations(out)
    try:
        import gguf  # noqa: F401
    except ImportError:
        return
    write_gguf(out)
    write_safetensors(out)


if __name__ == "__main__":
    main()
