/* SPDX-License-Identifier: MIT */
/*
 * T5 buckets: one learned bias per head and bucket of distances
 *
 * Place    score
 * Formula  S[h,i,j] = scale * q_i . k_j + b[bucket(-t), h]      scale = 1: see below
 * Learns   b [num_buckets, H], one number per bucket and head
 * Source   Raffel et al. 2020, arXiv:1910.10683, section 2.1; mesh-tensorflow, transformer_layers.py
 *
 * Small distances have a bucket each, larger ones share buckets of logarithmic width, all beyond max_distance
 * share the last. bidirectional: one half of the buckets for keys in the past, the other for keys in the
 * future (bucket num_buckets/2 is then never used); otherwise future keys all fall into bucket 0.
 *
 * Why no 1/sqrt(D): T5 folds it into the initialisation of W_q. Set `scale` where the model does not. The
 * bias is not scaled. One table serves all layers of a stack in T5; sharing is the caller's affair.
 */
#include "encodings/encoding.h"

enum { NUM_BUCKETS, MAX_DISTANCE, BIDIRECTIONAL, SIGMA }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"num_buckets", "integer", "32", "2..1048576", "buckets of distances, both directions together"},
    {"max_distance", "integer", "128", "2..", "distances beyond share the last bucket"},
    {"bidirectional", "flag", "yes", "yes|no", "keys in the future have buckets of their own (encoders)"},
    {"sigma", "real", "1/sqrt(d_model)", "0..", "standard deviation of the initial table"},
    {0},
};
static_assert(PE_ROWS(settings) == SIGMA + 1, "ORDER settings");

enum { TABLE }; /* ORDER params */
static const posenc_param_info params[] = {
    {"table", "num_buckets,H", "normal(0, sigma)", "b: what a bucket adds to the scores of a head", 1},
    {0},
};
static_assert(PE_ROWS(params) == TABLE + 1, "ORDER params");

/* The examples' parameter values are 0, 1, 2, ... in memory order: so the bias is bucket * H + h. */
static const posenc_example examples[] = {
    {"H=1 bidirectional=no", 0, 5, 0, 5, "5 tokens back: exact bucket 5"},
    {"H=1 bidirectional=no", 0, 200, 0, 31, "beyond 128: the last bucket"},
    {"H=1 bidirectional=yes", 0, 0, 5, 21, "5 tokens ahead: bucket 16 + 5"},
    {"H=2 bidirectional=no max_distance=100", 1, 40, 0, 49, "n=40: exact arithmetic gives bucket 24, not 23"},
    {0},
};

static int64_t bucket(const pe_problem *p, int64_t t)
{
    return pe_index_t5(-t, p->set[NUM_BUCKETS].integer, p->set[MAX_DISTANCE].integer,
                       (int)p->set[BIDIRECTIONAL].integer);
}

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t per_direction = p->set[NUM_BUCKETS].integer / (p->set[BIDIRECTIONAL].integer ? 2 : 1);
    if (per_direction < 2)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "t5: num_buckets=%lld leaves fewer than 2 buckets per direction; give 4 or more",
                       (long long)p->set[NUM_BUCKETS].integer);
    if (p->set[MAX_DISTANCE].integer <= per_direction / 2)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "t5: max_distance=%lld must exceed the %lld distances with a bucket of their own",
                       (long long)p->set[MAX_DISTANCE].integer, (long long)(per_direction / 2));
    return POSENC_OK;
}

/* About where bucket c begins, as a distance: see pe_index_t5. */
static int64_t first_of(const pe_problem *p, int64_t c)
{
    const int64_t N = p->set[NUM_BUCKETS].integer / (p->set[BIDIRECTIONAL].integer ? 2 : 1), m = N / 2;
    const double  part = (double)(c - m) / (double)(N - m);
    return c < m ? c : (int64_t)ceil((double)m * pow((double)p->set[MAX_DISTANCE].integer / (double)m, part));
}

/* The first distance after t, at most `last`, that is not of t's bucket. On either side of 0 buckets only
   rise or only fall, so it is enough to look at both sides of where it should be. */
static int64_t end_of_bucket(const pe_problem *p, int64_t t, int64_t last)
{
    const int64_t N    = p->set[NUM_BUCKETS].integer / (p->set[BIDIRECTIONAL].integer ? 2 : 1);
    const int64_t here = bucket(p, t), edge = t < 0 && last > 0 ? 0 : last;
    if (bucket(p, edge - 1) == here)
        return edge;
    int64_t end = t < 0 ? 1 - first_of(p, here % N) : first_of(p, here % N + 1);
    end         = end > edge ? edge : end <= t ? t + 1 : end;
    while (bucket(p, end - 1) != here)
        end--;
    while (bucket(p, end) == here)
        end++;
    return end;
}

/* Distances of a bucket lie side by side and are found together: a logarithm is not taken for each. */
static void index_of(const pe_problem *p, int64_t h, int64_t t0, int64_t n, int64_t rows[])
{
    for (int64_t i = 0; i < n;) {
        const int64_t here = bucket(p, t0 + i) * p->H + h, end = end_of_bucket(p, t0 + i, t0 + n) - t0;
        while (i < end)
            rows[i++] = here;
    }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    const int64_t far = p->set[MAX_DISTANCE].integer;
    s->scale          = 1;
    s->bias           = (pe_by_distance){.index   = index_of,
                                         .param   = TABLE,
                                         .clipped = 1,
                                         .low     = p->set[BIDIRECTIONAL].integer ? -far : 0,
                                         .high    = far};
}

const pe_encoding pe_t5 = {
    .info.name    = "t5",
    .info.place   = POSENC_PLACE_SCORE,
    .info.title   = "bucketed relative position bias",
    .info.formula = "S_{h,i,j} = s q_i · k_j + b_{bucket(−t) , h}",
    .info.symbols =
        "s: the factor of products, 1 here\n"
        "b_{x,h}: the learned number of bucket x in head h\n"
        "bucket: the class of a distance: one each for small ones, then ever wider ones up to max_distance",
    .info.paper       = "arXiv:1910.10683",
    .info.models      = "T5, mT5, UMT5, Flan-T5, LongT5",
    .info.beyond      = "Distances beyond max_distance share a bucket: the loss is kept or rises slowly.",
    .info.pictures    = "bias,mass,buckets",
    .info.by_distance = 1,
    .info.scale       = "1",
    .model =
        "max_distance=floor(L/2) num_buckets=min(32,floor(L/2)) bidirectional=no sigma=0.1 scale=1/sqrt(D)",
    .model_both =
        "max_distance=floor(L/2) num_buckets=min(32,floor(L/2)) bidirectional=yes sigma=0.1 scale=1/sqrt(D)",
    .check           = check,
    .attention.terms = terms,
    PE_TABLES(settings, params, examples),
};
