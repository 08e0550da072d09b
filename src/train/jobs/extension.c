/* SPDX-License-Identifier: MIT */
/*
 * extension.c: the ways to read further, as SPECs and rows, and what of a comparison is extended
 *
 * A way of a rotation is a SPEC. A way of a table is rows: those of other encodings, which are asked to make
 * f L rows of the L that were trained; so the arithmetic of stretching and of digits stands in their rooms
 * alone. Rows beyond those that a way makes stay as they were born, and a table that is tuned at f L trains
 * the first f L of them.
 *
 * One family is one outcome, made like any other, whose runs carry a sequel (extension_run.c). Every way
 * reads the same windows, and its model stems from the same seed's trained one, so differences are taken
 * window by window and seed by seed, as between encodings (statistics.c). A family counts when the runs of
 * all its seeds have ended.
 */
#include "train/jobs/extension.h"

#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64, LEAST_L = 16, RESAMPLES = 2000, TUNE_WARMUP_PART = 10 };
#define TUNE_RATE      0.25 /* of the peak of training */
#define BOOTSTRAP_SEED 1

enum { EVERY_FACTOR = PE_EVERY_FACTOR, EVERY_LENGTH = PE_EVERY_LENGTH };
static const pe_way ways[] = {
#define WAY(...) {__VA_ARGS__},
#include "train/jobs/extensions.def"
#undef WAY
};

enum { WAYS = sizeof ways / sizeof *ways };

int64_t pe_factor_at(int i)
{
    return (int64_t)2 << i;
}

int pe_way_count(void)
{
    return WAYS;
}

const pe_way *pe_way_at(int index)
{
    return &ways[index];
}

int pe_way_find(const char *family, const char *name)
{
    for (int i = 0; i < WAYS; i++)
        if (!strcmp(ways[i].family, family) && !strcmp(ways[i].name, name))
            return i;
    return -1;
}

const char *pe_tuning_name(int tuning)
{
    return tuning == PE_TUNED ? "tuned" : "untuned";
}

const char *pe_far_bucket_name(int bucket)
{
    return bucket == PE_AT_16L ? "x16" : pe_bucket_name(bucket);
}

static const char *const words[] = {"none", "brief", "full"}; /* ORDER pe_extend */

enum { WORDS = sizeof words / sizeof *words };

posenc_status pe_extend_read(pe_extend *extend, const char *word, posenc_error *err)
{
    for (int i = 0; i < WORDS; i++)
        if (!strcmp(words[i], word)) {
            *extend = (pe_extend)i;
            return POSENC_OK;
        }
    return pe_train_fail(err, POSENC_ARGUMENT,
                         "extension: \"%.40s\" is not known; it must be none, brief or full", word);
}

posenc_status pe_compare_extension_check(const char *word, posenc_error *err)
{
    pe_extend extend;
    return pe_extend_read(&extend, word, err);
}

const char *pe_extend_name(pe_extend extend)
{
    return words[extend];
}

/* ---------------------------------------------------------------- a way as a SPEC ----------- */

/* room[settings of_factor=.. ...]: what of a SPEC depends on factor and length. */
static void write_settings(char *to, size_t n, const pe_way *way, int64_t factor, int64_t L)
{
    const struct {
        const char *name;
        double      value;
    } given[]   = {{way->of_factor, (double)factor},
                   {way->of_length, (double)L},
                   {way->of_longer, (double)(factor * L)},
                   {way->base_power ? "base" : NULL, 1e4 * pow((double)factor, way->base_power)}};
    size_t used = (size_t)snprintf(to, n, "%s[%s", way->room, way->settings);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].name)
            used += (size_t)snprintf(to + used, n - used, "%s%s=%.12g", to[used - 1] == '[' ? "" : " ",
                                     given[i].name, given[i].value);
    snprintf(to + used, n - used, "]");
}

posenc_status pe_way_spec(char spec[PE_LONGEST_SPEC], const pe_way *way, int64_t factor,
                          const posenc_dims *dims, posenc_error *err)
{
    char        given[PE_LONGEST_SPEC];
    const char *row_limit = posenc_encoding_find(way->family)->row_limit;
    if (row_limit) /* the family's own, raised: a table that holds the furthest position */
        snprintf(given, sizeof given, "%s[%s=%lld]", way->family, row_limit,
                 (long long)(PE_FURTHEST * dims->L));
    else
        write_settings(given, sizeof given, way, factor, dims->L);
    return pe_spec_complete(spec, PE_LONGEST_SPEC, given, dims, POSENC_MASK_CAUSAL, err);
}

/* ---------------------------------------------------------------- a way as rows ------------- */

static posenc_status make_rows(float *rows, int64_t count, const posenc_plan *plan, const float *table,
                               int64_t L, int64_t width, posenc_error *err)
{
    const int64_t shape[2] = {L, width}, out[3] = {1, count, width};
    posenc_tensor param     = posenc_tensor_contiguous((float *)table, POSENC_F32, 2, shape),
                  y         = posenc_tensor_contiguous(rows, POSENC_F32, 3, out);
    const posenc_rows_in in = {.params = &param};
    void *workspace = aligned_alloc(ALIGNMENT, posenc_plan_workspace(plan, POSENC_FORWARD) + ALIGNMENT);
    const posenc_status status =
        workspace ? posenc_rows(plan, &in, &y, workspace, err)
                  : pe_train_fail(err, POSENC_MEMORY, "extension: no memory for %lld rows", (long long)count);
    free(workspace);
    return status;
}

posenc_status pe_way_rows(float *rows, int64_t count, const pe_way *way, int64_t factor, const float *table,
                          int64_t L, int64_t width, posenc_error *err)
{
    char             spec[PE_LONGEST_SPEC];
    posenc_encoding *e       = NULL;
    posenc_plan     *plan    = NULL;
    posenc_options   options = posenc_options_default();
    posenc_dims      dims    = {.B = 1, .H = 1, .G = 1, .Lq = count, .Lk = count, .L = L};
    options.threads          = 1;
    dims.D = dims.Dv = dims.d_model = width;
    write_settings(spec, sizeof spec, way, factor, L);
    posenc_status status = posenc_encoding_create(&e, spec, NULL, err);
    if (!status)
        status = posenc_plan_create(&plan, e, &dims, &options, err);
    if (!status)
        status = make_rows(rows, count, plan, table, L, width, err);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return status;
}

/* ---------------------------------------------------------------- of a comparison ----------- */

/* Why nothing can be extended here, or NULL. */
static const char *reason_against(const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    if (c->config.bidirectional)
        return "the models see both sides, and lengths are read one by one";
    if (p->L < LEAST_L)
        return "L must be at least 16";
    if (pe_text_windows(&c->text, 2 * p->L) < 1 || c->text.train_size <= PE_FURTHEST * p->L)
        return "the text is too short for windows of 16 L";
    return NULL;
}

static void add_way(pe_extension *x, int way)
{
    int f = 0;
    while (f < x->count && strcmp(x->plans[f].family, ways[way].family) != 0)
        f++;
    x->count                = f == x->count ? f + 1 : x->count;
    pe_extension_plan *p    = &x->plans[f];
    p->family               = ways[way].family;
    p->ways[p->way_count++] = way;
}

static void plan_family(pe_extension *x, int family, const pe_compare *c, pe_extend extend)
{
    const pe_preset   *preset = &c->config.preset;
    pe_extension_plan *p      = &x->plans[family];
    p->extend                 = extend;
    p->windows                = x->windows;
    p->L                      = preset->L;
    p->batch                  = preset->batch;
    p->steps                  = c->config.tune_steps ? c->config.tune_steps : preset->tune_steps;
    p->warmup                 = p->steps / TUNE_WARMUP_PART;
    p->learning_rate          = TUNE_RATE * preset->learning_rate;
    x->sequels[family]        = pe_extension_sequel(p);
}

/* The family's encoding with the settings of its room for a small model, as the comparison's own. */
static posenc_status make_outcome(pe_extension *x, int family, const pe_compare *c, posenc_error *err)
{
    static const pe_entry entry = {0};
    char                  spec[PE_LONGEST_SPEC];
    pe_outcome           *o     = &x->outcomes[family];
    const size_t          seeds = (size_t)x->seeds;
    const posenc_dims     dims  = pe_compare_dims(&c->config.preset);
    posenc_status         status =
        pe_spec_complete(spec, sizeof spec, x->plans[family].family, &dims, POSENC_MASK_CAUSAL, err);
    snprintf(o->label, sizeof o->label, "%s, extended", x->plans[family].family);
    if (!status)
        status = posenc_encoding_create(&o->e, spec, NULL, err);
    if (status)
        return status;
    o->config          = pe_compare_run_config(c, o->e, &entry);
    o->config.measures = 0;
    o->config.sequel   = &x->sequels[family];
    o->runs            = calloc(seeds, sizeof *o->runs);
    o->progress        = calloc(seeds, sizeof *o->progress);
    o->ended           = calloc(seeds, sizeof *o->ended);
    return o->runs && o->progress && o->ended
               ? POSENC_OK
               : pe_train_fail(err, POSENC_MEMORY, "compare: no memory for %s", o->label);
}

static posenc_status fill(pe_extension *x, const pe_compare *c, pe_extend extend, posenc_error *err)
{
    const int64_t fit = pe_text_windows(&c->text, 2 * x->L), part = extend == PE_EXTEND_FULL ? 2 : 4,
                  wanted = (c->config.preset.windows + part - 1) / part;
    posenc_status status = POSENC_OK;
    x->windows           = fit < wanted ? fit : wanted;
    for (int i = 0; i < WAYS; i++)
        add_way(x, i);
    for (int f = 0; f < x->count && !status; f++) {
        plan_family(x, f, c, extend);
        status = make_outcome(x, f, c, err);
    }
    if (!status)
        status = pe_bootstrap_create(&x->bootstrap, x->seeds, x->windows, RESAMPLES, BOOTSTRAP_SEED, err);
    return status;
}

posenc_status pe_extension_create(pe_extension **extension, const pe_compare *c, posenc_error *err)
{
    pe_extend     extend = PE_EXTEND_NONE;
    const char   *asked = c->config.extension, *preset = c->config.preset.extension, *why = reason_against(c);
    pe_extension *x = calloc(1, sizeof *x);
    *extension      = x;
    if (!x)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory to extend models");
    x->seeds             = c->config.preset.seeds;
    x->L                 = c->config.preset.L;
    posenc_status status = asked || preset ? pe_extend_read(&extend, asked ? asked : preset, err) : POSENC_OK;
    if (status || extend == PE_EXTEND_NONE)
        return status;
    if (why && asked) /* in so many words */
        return pe_train_fail(err, POSENC_ARGUMENT, "extension: %s cannot be done here: %s; leave it out",
                             asked, why);
    if (why)
        snprintf(x->reason, sizeof x->reason, "%s", why);
    return why ? POSENC_OK : fill(x, c, extend, err);
}

void pe_extension_free(pe_extension *x)
{
    if (!x)
        return;
    for (int f = 0; f < x->count; f++)
        pe_outcome_free(&x->outcomes[f], x->seeds);
    pe_bootstrap_free(x->bootstrap);
    free(x->means);
    free(x);
}

int64_t pe_extension_runs(const pe_extension *x)
{
    return x ? x->count * x->seeds : 0;
}

/* ---------------------------------------------------------------- what came out ------------- */

/* Of way, factor and tuning in a bucket: [seeds, windows]. */
static double *means_at(const pe_extension *x, int way, int factor, int tuning, int bucket)
{
    const int64_t at = ((int64_t)(way * PE_FACTORS + factor) * PE_TUNINGS + tuning) * PE_FAR_BUCKETS + bucket;
    return x->means + at * x->seeds * x->windows;
}

/* What one run says about the way that is number k of its family. */
static void take_way(pe_extension *x, const pe_extension_plan *p, int k, const float *numbers, int64_t seed)
{
    for (int f = 0; f < PE_FACTORS; f++)
        for (int t = 0; t < PE_TUNINGS; t++)
            for (int b = 0; b < PE_FAR_BUCKETS; b++) {
                const float *from = numbers + pe_extension_at(p, k, f, t, b);
                double      *to   = means_at(x, p->ways[k], f, t, b) + seed * x->windows;
                for (int64_t w = 0; w < x->windows; w++)
                    to[w] = (double)from[w];
            }
}

posenc_status pe_extension_measure(pe_extension *x, posenc_error *err)
{
    const int64_t n = pe_way_count() * PE_FACTORS * PE_TUNINGS * PE_FAR_BUCKETS * x->seeds * x->windows;
    if (x->count == 0)
        return POSENC_OK;
    free(x->means);
    x->means = malloc((size_t)n * sizeof *x->means);
    if (!x->means)
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the losses of extended models");
    for (int64_t i = 0; i < n; i++)
        x->means[i] = NAN;
    for (int f = 0; f < x->count; f++)
        for (int64_t s = 0; pe_run_all_ended(x->outcomes[f].ended, x->seeds) && s < x->seeds; s++)
            for (int k = 0; k < x->plans[f].way_count; k++)
                take_way(x, &x->plans[f], k, x->outcomes[f].runs[s].sequel, s);
    return POSENC_OK;
}

double pe_extension_loss(const pe_extension *x, int way, int factor, int tuning, int bucket)
{
    return x->means ? pe_mean(means_at(x, way, factor, tuning, bucket), x->seeds * x->windows) : NAN;
}

int pe_extension_has(const pe_extension *x, int way, int factor, int tuning)
{
    return isfinite(pe_extension_loss(x, way, factor, tuning, PE_AT_L));
}

pe_interval pe_extension_difference(const pe_extension *x, pe_spot a, pe_spot b, int bucket)
{
    return pe_bootstrap_difference(x->bootstrap, means_at(x, a.way, a.factor, a.tuning, bucket),
                                   means_at(x, b.way, b.factor, b.tuning, bucket));
}
