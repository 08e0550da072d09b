/* SPDX-License-Identifier: MIT */
/*
 * The target fuzz_header (targets.h) for libFuzzer. From the root of the tree, after `make build`:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc -Itests \
 *         tests/fuzz/fuzz_header.c src/files/?*.c build/default/libposenc.a -lzip -ljansson -lgomp -lm -o
 *         fuzz_header
 *     ./fuzz_header -max_len=4096 tests/fuzz/corpus/header
 */
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_header(bytes, n);
    return 0;
}
