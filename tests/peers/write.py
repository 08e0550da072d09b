# SPDX-License-Identifier: MIT
"""Model files as the real writers make them, and what `posenc inspect --json` must say about each.

write.py FOLDER needs the packages of requirements.txt. The configurations are saved by transformers' own classes, the GGUF by
gguf's writer, the checkpoint by safetensors; the frequencies are computed here once more. `make test-peers` runs this in an
environment of its own and compares with tests/golden/writers, which is what `make test` reads."""
import importlib.metadata, json, math, os, sys

import gguf, numpy, safetensors.numpy, transformers

folder = sys.argv[1]
packages = ("transformers", "gguf", "safetensors", "numpy")
expected = {}


def frequencies(base, dim):
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def llama3(w, factor, low, high, length):
    smooth = [min(max((length * x / (2 * math.pi) - low) / (high - low), 0), 1) for x in w]
    return [x * ((1 - s) / factor + s) for x, s in zip(w, smooth)]


def says(name, model_type, encoding, group, context, warnings=()):
    expected[name] = {"model_type": model_type, "encoding": encoding, "groups": [group],
                      "context": {"max_positions": context}, "warnings": sorted(warnings)}


def rope(layers="all", **members):
    return {"layers": layers, "encoding": "rope", **members}


def save(name, config):
    """As save_pretrained writes a config.json, but under a name of its own."""
    config.to_json_file(f"{folder}/{name}.json")


def configurations():
    scaled = {"rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
              "original_max_position_embeddings": 8192}
    save("llama", transformers.LlamaConfig(hidden_size=512, num_attention_heads=8, num_hidden_layers=4,
                                           max_position_embeddings=131072, rope_parameters=scaled))
    says("llama", "llama", "rope", rope(layout="half", dim=64, head_dim=64, base=5e5, schedule="llama3", factor=8.0,
                                        inv_freq=llama3(frequencies(5e5, 64), 8, 1, 4, 8192), magnitude=1.0), 131072)
    save("phi", transformers.PhiConfig(hidden_size=256, num_attention_heads=4, num_hidden_layers=2,
                                       partial_rotary_factor=0.25))
    says("phi", "phi", "rope", rope(layout="half", dim=16, head_dim=64, base=1e4, schedule="default",
                                    inv_freq=frequencies(1e4, 16)), 2048)
    save("t5", transformers.T5Config(num_heads=4, d_model=256, d_kv=64))
    expected["t5"] = {"model_type": "t5", "encoding": "t5", "groups": [
        {"layers": "all", "stack": stack, "heads": 4, "num_buckets": 32, "bidirectional": stack == "encoder"}
        for stack in ("encoder", "decoder")]}


def container():
    divisors = numpy.array([1] * 20 + [2] * 6 + [8] * 6, dtype=numpy.float32)
    writer = gguf.GGUFWriter(f"{folder}/container.gguf", "llama")
    writer.add_block_count(4)
    writer.add_context_length(131072)
    writer.add_embedding_length(512)
    writer.add_head_count(8)
    writer.add_head_count_kv(2)
    writer.add_rope_dimension_count(64)
    writer.add_rope_freq_base(500000.0)
    writer.add_token_list(["<unk>", "a", "b"])
    writer.add_tensor("rope_freqs.weight", divisors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    w = [x / float(d) for x, d in zip(frequencies(5e5, 64), divisors)]
    says("container", "llama", "rope", rope(layout="interleaved", dim=64, base=5e5, schedule="default", freq_factors=True,
                                            inv_freq=w), 131072)


def checkpoint():
    os.makedirs(f"{folder}/checkpoint", exist_ok=True)
    config = transformers.GPT2Config(n_embd=64, n_head=4, n_layer=2, n_positions=128)
    config.to_json_file(f"{folder}/checkpoint/config.json")
    safetensors.numpy.save_file({"wpe.weight": numpy.zeros((128, 64), dtype=numpy.float16)},
                                f"{folder}/checkpoint/model.safetensors", metadata={"format": "pt"})
    says("checkpoint/model", "gpt2", "learned",
         {"layers": "input", "encoding": "learned", "rows": 128, "offset": 0, "dim": 64}, 128)


os.makedirs(folder, exist_ok=True)
configurations()
container()
checkpoint()
endings = {"json": ("llama", "phi", "t5"), "gguf": ("container",), "safetensors": ("checkpoint/model",)}
for ending, names in endings.items():
    with open(f"{folder}/expected_{ending}.json", "w") as file:
        json.dump({name: expected[name] for name in names}, file, indent=1)
        file.write("\n")
with open(f"{folder}/versions.txt", "w") as file:
    file.writelines(f"{package} {importlib.metadata.version(package)}\n" for package in packages)
