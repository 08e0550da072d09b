/* SPDX-License-Identifier: MIT */
/*
 * The target fuzz_manifest (targets.h) for libFuzzer. From the root of the tree, after `make build`:
 *     clang -g -O1 -fsanitize=fuzzer,address,undefined -D_POSIX_C_SOURCE=200809L -Iinclude -Isrc -Itests \
 *         tests/fuzz/fuzz_manifest.c src/files/?*.c build/default/libposenc.a -lzip -ljansson -lgomp -lm -o
 *         fuzz_manifest
 *     ./fuzz_manifest -max_len=4096 tests/fuzz/corpus/manifest
 */
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    fuzz_manifest(bytes, n);
    return 0;
}
