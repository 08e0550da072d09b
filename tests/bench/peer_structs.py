#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""peer_structs.py SOURCE COMPILER: the structures that bench/peers gives to ctypes are those of the header

A C program made from the lists of bench/peers/posenc_structs.py prints size and place of each field as the compiler sees them,
and this compares them with those that ctypes works out. A field that the header has and the list lacks may hide where the
compiler would have left a gap, with no size changed; so each structure is also initialised with one value for each field of
the list, and the compiler is told to refuse both one too few and one too many.
"""
import ctypes
import os
import subprocess
import sys
import tempfile


def field_lines(kind):
    """What the C program prints of one structure, worked out by ctypes."""
    lines = [f"{kind} {ctypes.sizeof(STRUCTURES[kind])}"]
    for name, _ in STRUCTURES[kind]._fields_:
        field = getattr(STRUCTURES[kind], name)
        lines.append(f"{kind}.{name} {field.offset} {field.size}")
    return lines


def values(structure):
    """An initialiser with one value for each of its fields, and theirs."""
    def value(kind):
        return values(kind) if issubclass(kind, ctypes.Structure) else "{0}" if issubclass(kind, ctypes.Array) else "0"
    return "{" + ", ".join(value(kind) for _, kind in structure._fields_) + "}"


def program():
    """The source of that program."""
    lines = ["#include <posenc/posenc.h>", "#include <stddef.h>", "#include <stdio.h>", "int main(void)", "{"]
    for kind, structure in STRUCTURES.items():
        lines.append(f'{{ const {kind} x = {values(structure)}; printf("{kind} %zu\\n", sizeof x);')
        lines += [f'printf("{kind}.{name} %zu %zu\\n", offsetof({kind}, {name}), sizeof x.{name});'
                  for name, _ in structure._fields_]
        lines.append("}")
    lines += [f'printf("{name} %d\\n", (int){name});' for name in CONSTANTS]
    return "\n".join(lines + ["return 0;", "}", ""])


def compiled_lines(source, compiler):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "structs.c")
        with open(path, "w", encoding="ascii") as file:
            file.write(program())
        built = subprocess.run([compiler, "-std=c17", "-Wmissing-field-initializers", "-Werror", "-I", f"{source}/include",
                                path, "-o", f"{folder}/structs"], capture_output=True, text=True, check=False)
        if built.returncode:
            raise SystemExit(f"peer_structs: bench/peers/posenc_structs.py does not have the fields of posenc.h:\n{built.stderr}")
        return subprocess.run([f"{folder}/structs"], capture_output=True, text=True, check=True).stdout.split("\n")[:-1]


def main():
    source, compiler = sys.argv[1:]
    ours = [line for kind in STRUCTURES for line in field_lines(kind)] + [f"{k} {v}" for k, v in CONSTANTS.items()]
    theirs = compiled_lines(source, compiler)
    for python, c in zip(ours, theirs):
        if python != c:
            print(f"peer_structs: posenc_structs.py has \"{python}\" where posenc.h has \"{c}\"")
    if ours != theirs:
        raise SystemExit(1)
    print(f"peer_structs: {len(STRUCTURES)} structures in {len(ours)} lines are as posenc.h has them")


sys.path.insert(0, os.path.join(sys.argv[1], "bench", "peers"))
sys.dont_write_bytecode = True
from posenc_structs import CONSTANTS, STRUCTURES

main()
