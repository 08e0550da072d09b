/* SPDX-License-Identifier: MIT */
/*
 * A target of targets.h for libFuzzer: fuzz_NAME, NAME one of arrays, config, csv, gguf, header,
 * manifest, safetensors. From the root of the tree, after `make build`:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc -Itests \
 *         -DTARGET=fuzz_NAME tests/fuzz/fuzz_files.c $(find src/files -name '?*.c') \
 *         build/default/libposenc.a -lzip -ljansson -lgomp -lm -o fuzz_NAME
 *     ./fuzz_NAME -max_len=4096 tests/fuzz/corpus/NAME
 */
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    TARGET(bytes, n);
    return 0;
}
