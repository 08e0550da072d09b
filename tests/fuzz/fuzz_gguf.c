/* SPDX-License-Identifier: MIT */
/*
 * The target fuzz_gguf (targets.h) for libFuzzer. From the root of the tree, after `make build`:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc -Itests \
 *         tests/fuzz/fuzz_gguf.c src/files/?*.c build/default/libposenc.a -lzip -ljansson -lgomp -lm -o
 *         fuzz_gguf
 *     ./fuzz_gguf -max_len=4096 tests/fuzz/corpus/gguf
 */
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_gguf(bytes, n);
    return 0;
}
