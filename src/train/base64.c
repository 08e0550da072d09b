/* SPDX-License-Identifier: MIT */
/*
 * base64.c: arrays of float32 as text, bit for bit
 *
 * A line of runs.jsonl must give back the very numbers that training left, NaN included, which JSON's own
 * numbers do not, and at four characters for three bytes it is half as long as decimals would be. Bytes are
 * little-endian on every machine, so that a line may be read on another one.
 *
 * Source: RFC 4648, section 4.
 */
#include "train/base64.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 6, GROUP = 4, NUMBER = 4 /* bytes */ };

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static size_t text_length(int64_t n)
{
    return ((size_t)n * NUMBER + 2) / 3 * GROUP;
}

/* Byte i of the numbers. */
static unsigned byte_at(const float *x, size_t i)
{
    uint32_t bits;
    memcpy(&bits, &x[i / NUMBER], sizeof bits);
    return bits >> (8 * (i % NUMBER)) & 0xff;
}

char *pe_base64_write(const float *x, int64_t n)
{
    const size_t length = text_length(n), bytes = (size_t)n * NUMBER;
    char        *text = malloc(length + 1), *to = text;
    if (!text)
        return NULL;
    for (size_t i = 0; i < bytes; i += 3) {
        const size_t have  = bytes - i < 3 ? bytes - i : 3;
        unsigned     group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < have ? byte_at(x, i + k) : 0);
        for (size_t k = 0; k < GROUP; k++)
            *to++ = k <= have ? letters[group >> (BITS * (GROUP - 1 - k)) & 63] : '=';
    }
    *to = 0;
    return text;
}

/* The value of a letter, or -1. */
static int value_of(char letter)
{
    const char *at = letter ? strchr(letters, letter) : NULL;
    return at ? (int)(at - letters) : -1;
}

/* Bytes of one group of four letters; their number, 1 to 3, or 0 if it is none. */
static int read_group(unsigned char bytes[3], const char *text)
{
    unsigned  group = 0;
    const int have  = text[GROUP - 1] != '=' ? 3 : text[GROUP - 2] != '=' ? 2 : 1;
    for (int k = 0; k < GROUP; k++) {
        const int value = k <= have ? value_of(text[k]) : 0;
        if (value < 0)
            return 0;
        group = group << BITS | (unsigned)value;
    }
    for (int k = 0; k < 3; k++)
        bytes[k] = (unsigned char)(group >> (8 * (2 - k)));
    return have;
}

int pe_base64_read(float *x, int64_t n, const char *text, size_t length)
{
    uint32_t bits = 0;
    size_t   done = 0; /* bytes */
    if (length != text_length(n))
        return 0;
    for (size_t i = 0; i < length; i += GROUP) {
        unsigned char bytes[3];
        const int     have = read_group(bytes, text + i);
        if (!have || (have < 3 && i + GROUP < length))
            return 0;
        for (int k = 0; k < have; k++, done++) {
            bits = bits >> 8 | (uint32_t)bytes[k] << 24; /* the first of four ends lowest */
            if (done % NUMBER == NUMBER - 1 && done / NUMBER < (size_t)n)
                memcpy(&x[done / NUMBER], &bits, sizeof bits);
        }
    }
    return done == (size_t)n * NUMBER;
}
