#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""checkpoint.py F NAME:TYPE:SIZExSIZE...: a small .safetensors for transcripts; and F alone: what it holds

Number i of a tensor is i (of whole numbers and floats), so that one sees where each has gone. With NAME:TYPE:SIZES=a,b,...
the numbers are these. The second form prints each tensor with its numbers.
"""
import json
import struct
import sys

FORMATS = {"F64": "d", "F32": "f", "F16": "e", "I64": "q", "I32": "i", "U8": "B", "I8": "b", "F8_E4M3": "B", "BF16": "H"}


def pack(kind, numbers):
    if kind == "BF16":
        numbers = [struct.unpack("<I", struct.pack("<f", x))[0] >> 16 for x in numbers]
    elif FORMATS[kind] in "Bb":
        numbers = [x % 128 for x in numbers]
    return struct.pack(f"<{len(numbers)}{FORMATS[kind]}", *numbers)


def unpack(kind, data):
    numbers = [x[0] for x in struct.iter_unpack("<" + FORMATS[kind], data)]
    return [struct.unpack("<f", struct.pack("<I", x << 16))[0] for x in numbers] if kind == "BF16" else numbers


def write(path, words):
    entries, data = {}, b""
    for word in words:
        word, _, given = word.partition("=")
        name, kind, sizes = word.split(":")
        shape = [int(size) for size in sizes.split("x")] if sizes else []
        n = 1
        for size in shape:
            n *= size
        piece = pack(kind, [float(x) if kind[0] in "FB" else int(x) for x in given.split(",")] if given else list(range(n)))
        entries[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(piece)]}
        data += piece
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def show(path):
    with open(path, "rb") as file:
        (n,) = struct.unpack("<Q", file.read(8))
        entries, data = json.loads(file.read(n)), file.read()
    for key, text in entries.pop("__metadata__", {}).items():
        print(f"{key}: {text}")
    for name, entry in entries.items():
        begin, end = entry["data_offsets"]
        print(name, entry["dtype"], entry["shape"], *(f"{x:.6g}" for x in unpack(entry["dtype"], data[begin:end])))


if len(sys.argv) > 2:
    write(sys.argv[1], sys.argv[2:])
else:
    show(sys.argv[1])
