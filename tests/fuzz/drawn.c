/* SPDX-License-Identifier: MIT */
/*
 * drawn COUNT: a harness of this folder without a fuzzer, on so many inputs of drawn bytes
 *
 * The same inputs on every machine, so a failure repeats; its number is printed before it. Under the
 * sanitizers this is a small fuzzer that every test run pays for with seconds; `make fuzz` goes on from here.
 */
#include <posenc/registry.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { LONGEST = 400 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak));

static char sentence[64];
static int  length;

static void say_which(int signal_number)
{
    if (write(STDERR_FILENO, sentence, (size_t)length) == length)
        signal(signal_number, SIG_DFL);
    raise(signal_number);
}

int main(int argc, char **argv)
{
    static const int deadly[] = {SIGABRT, SIGSEGV, SIGFPE, SIGBUS};
    const long       count    = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
    uint8_t          bytes[LONGEST];
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
        signal(deadly[i], say_which);
    if (LLVMFuzzerInitialize && LLVMFuzzerInitialize(&argc, &argv))
        return 1;
    for (long i = 0; i < count; i++) {
        const size_t n = (size_t)(posenc_random_uniform((uint64_t)i, "length", 0) * LONGEST);
        for (size_t at = 0; at < n; at++)
            bytes[at] = (uint8_t)(posenc_random_uniform((uint64_t)i, "bytes", at) * 256);
        length = snprintf(sentence, sizeof sentence, "input %ld\n", i);
        LLVMFuzzerTestOneInput(bytes, n);
    }
    return count > 0 ? 0 : 1;
}
