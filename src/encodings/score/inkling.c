/* SPDX-License-Identifier: MIT */
/*
 * Inkling: relative logits from the token, without a rotation
 *
 * Place    score: a narrow second query, made by the model, meets a row of a bank by distance
 * Formula  S[h,i,j] = scale * q_i . k_j + sum over n of r_i[n] bank[n,t] where 0 <= t < extent, else no sum
 *          r the token input of query i, scale 1/D
 * Learns   bank, one for all heads or (per_head) one for each
 * Source   Thinking Machines, Inkling (2026); transformers, modeling_inkling.py; x-transformers,
 *          RelativeProjPositionalBias
 *
 * The sum is not multiplied by `scale`. The model norms q and k of each head, hence 1/D; its global layers
 * have extent=1024 and temperature=inkling, which multiplies the sum too, its sliding ones extent and window
 * 512. Inkling 2 has scale 1/sqrt(D) and sink=token. Keys ahead of the query and those extent or more behind
 * it have no row.
 */
#include "encodings/encoding.h"

enum { EXTENT, WIDTH, PER_HEAD, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"extent", "integer", "1024", "1..", "distances 0 .. extent-1 have rows in the bank, others none"},
    {"width", "integer", "16", "1..", "channels of r"},
    {"per_head", "flag", "no", "yes|no", "each head has a bank of its own"},
    {"sigma", "real", "0.02", "0..", "standard deviation of the initial bank"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { BANK }; /* ORDER params */
static const posenc_param_info params[] = {
    {"bank", "H if per_head,width,extent", "normal(0, sigma)", "what each channel of r says at a distance",
     1},
    {0},
};
static_assert(PE_ROWS(params) == BANK + 1, "ORDER params");

enum { R }; /* ORDER tokens */
static const posenc_token_info tokens[] = {
    {"r", "width", "the narrow query of a token, not normed", 0, 0, 0, POSENC_TOKEN_PLAIN},
    {0},
};
static_assert(PE_ROWS(tokens) == R + 1, "ORDER tokens");

/* Those of the distances t0 .. t0+n-1 that have rows: first .. last-1 of the n. */
static void find_rows(const pe_problem *p, int64_t t0, int64_t n, int64_t *first, int64_t *last)
{
    const int64_t extent = p->set[EXTENT].integer;
    *first               = t0 >= 0 ? 0 : -t0 < n ? -t0 : n;
    *last                = extent - t0 < n ? extent - t0 : n;
    if (*last < *first)
        *last = *first;
}

/* Where channel c of head h begins in the bank. */
static int64_t channel(const pe_problem *p, int64_t h, int64_t c)
{
    const int64_t width = p->set[WIDTH].integer;
    return ((p->set[PER_HEAD].integer ? h * width : 0) + c) * p->set[EXTENT].integer;
}

static void fill(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 double rows[])
{
    enum { SOME = 64 };
    const int64_t width = p->set[WIDTH].integer;
    double        x[SOME];
    int64_t       first, last;
    find_rows(p, t0, n, &first, &last);
    memset(rows, 0, (size_t)(n * width) * sizeof *rows);
    for (int64_t c = 0; c < width; c++)
        for (int64_t i = first; i < last; i += SOME) {
            const int64_t some = last - i < SOME ? last - i : SOME;
            pe_read(p, par, BANK, channel(p, h, c) + t0 + i, some, x);
            for (int64_t k = 0; k < some; k++)
                rows[(i + k) * width + c] = x[k];
        }
}

static void fold(const pe_problem *p, const double *const par[], int64_t h, int64_t t0, int64_t n,
                 const double drows[], double *const dpar[])
{
    const int64_t width = p->set[WIDTH].integer;
    int64_t       first, last;
    (void)par;
    find_rows(p, t0, n, &first, &last);
    for (int64_t c = 0; c < width; c++)
        for (int64_t i = first; i < last; i++)
            pe_add(dpar, BANK, channel(p, h, c) + t0 + i, drows[i * width + c]);
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale         = 1 / (double)p->D;
    s->profile       = R;
    s->profile_width = p->set[WIDTH].integer;
    s->A =
        (pe_by_distance){.fill = fill, .fold = fold, .clipped = 1, .low = -1, .high = p->set[EXTENT].integer};
}

const pe_encoding pe_inkling = {
    .info.name          = "inkling",
    .info.place         = POSENC_PLACE_SCORE,
    .info.title         = "relative logits from the token",
    .info.formula       = "S_{h,i,j} = frac{q_i · k_j}{D} + ∑_n r_{i,n} a_{n,t} , 0 ≤ t < E",
    .info.symbols       = "r_{i,n}: channel n of the token input r of query i\n"
                          "a_{n,t}: what the bank has for channel n at distance t\n"
                          "n: a channel of r, counted from 0\n"
                          "E: setting extent: farther keys have no row",
    .info.paper         = "none: Thinking Machines, Inkling (2026)",
    .info.models        = "Inkling",
    .info.scale         = "1/D",
    .info.pictures      = "bias,mass",
    .info.beyond        = "Keys beyond extent are all alike, so what was learned within it stays.",
    .info.by_distance   = 1,
    .model              = "extent=min(1024,L)",
    .attention.terms    = terms,
    .attention.in_place = 1U << BANK,
    PE_TOKENS(tokens),
    PE_SETTINGS(settings),
    PE_PARAMS(params),
};
