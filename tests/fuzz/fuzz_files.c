/* SPDX-License-Identifier: MIT */
/*
 * A target of targets.h for libFuzzer: fuzz_NAME, NAME one of arrays, config, csv, gguf, header, manifest,
 * safetensors. `make fuzz` builds and runs them.
 */
#include "fuzz/targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    TARGET(bytes, n);
    return 0;
}
