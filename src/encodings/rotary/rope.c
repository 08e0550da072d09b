/* SPDX-License-Identifier: MIT */
/*
 * RoPE: rotary position embedding
 *
 * Place    rotary: q and k are turned by their positions before their product
 * Formula  pair m of channels, (x, y) at position P: (x cos a - y sin a, y cos a + x sin a), a = P * w_m
 *          w_m = base^(-2m/dim), m = 0 .. dim/2 - 1
 *          so q_i . k_j depends on content and on P(i) - P(j) alone
 * Learns   nothing
 * Source   Su et al. 2021, arXiv:2104.09864, eq. 34; half-split pairing: EleutherAI/gpt-neox
 *
 * Which two channels make a pair is written in no model file, and a wrong guess runs without an error: `interleaved`
 * pairs neighbours (the paper, GPT-J, Llama as stored by Meta and in GGUF), `half` pairs m with m + dim/2 (GPT-NeoX,
 * Llama as stored by Hugging Face). Channels beyond `dim` pass unchanged.
 */
#include "encodings/encoding.h"

#include <math.h>

enum { LAYOUT, DIM, BASE, SCHEDULE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"layout", "word", "interleaved", "interleaved|half", "pairs (2m, 2m+1), or (m, m + dim/2)"},
    {"dim", "integer", "D", "2..", "rotated channels, even; the rest of the head passes unchanged"},
    {"base", "real", "10000", "1<..", "theta: the slowest pair turns by about 1/base per token"},
    {"schedule", "word", "default", "default", "how frequencies follow from base"},
    {0},
};
static_assert(PE_ROWS(settings) == SCHEDULE + 1, "ORDER settings");

static const posenc_example examples[] = {
    {"D=128", 0, 0, 0, 1.0, "w_0 = 1 whatever the base"},
    {"D=128", 1, 0, 0, 0.865964323360065, "10000^(-2/128)"},
    {"D=128", 63, 0, 0, 1.15478198468946e-4, "slowest pair: wavelength 54410 tokens"},
    {"D=128 base=5e5", 1, 0, 0, 0.814617233856545, "Llama 3's base"},
    {"D=64 dim=32", 15, 0, 0, 1.7782794100389228e-4, "partial: 10000^(-30/32)"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t dim = p->set[DIM].integer;
    if (dim % 2 || dim > p->D)
        return pe_fail(err, POSENC_SETTING, "rope: dim=%lld must be even and at most the head width %lld",
                       (long long)dim, (long long)p->D);
    return POSENC_OK;
}

static void turn(const pe_problem *p, pe_turn *t)
{
    const int64_t dim = p->set[DIM].integer;
    t->M              = dim / 2;
    t->first          = 0;
    t->layout         = p->set[LAYOUT].integer == 0 ? PE_INTERLEAVED : PE_HALF;
    t->magnitude      = 1;
    for (int64_t m = 0; m < t->M; m++)
        t->w[m] = pow(p->set[BASE].real, -2.0 * (double)m / (double)dim);
}

const pe_encoding pe_rope = {
    .info =
        {
            .name          = "rope",
            .place         = POSENC_ROTARY,
            .title         = "rotary position embedding",
            .paper         = "arXiv:2104.09864",
            .models        = "GPT-J, GPT-NeoX, Llama, Mistral, Qwen, Gemma, most since 2022",
            .pictures      = "similarity,decay,mass,pair,wavelengths",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .by_distance   = 1,
        },
    .examples = examples,
    .check    = check,
    .turn     = turn,
};
