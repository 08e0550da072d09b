/* SPDX-License-Identifier: MIT */
/*
 * outcome.c: from runs to losses per bucket, curves, ratios and ranks
 *
 * One causal pass over windows of 8 L gives the loss at every shorter length, so everything follows from the
 * matrix [windows, 8 L] of each run: buckets, the smoothed curve, E_k = loss in [k L/2, k L) / loss in [L/2,
 * L), and the break position, the last one where the smoothed loss is within 0.1 nats of that at L. A run
 * that diverged has no such matrix: its numbers stay NaN and it has no rank.
 *
 * A bidirectional model has read each window at five lengths instead; its matrix holds, for every length, the
 * same number in all columns from the length before, so that all this holds for it too. Nothing is smoothed
 * then.
 *
 * Buckets differ in difficulty (text further on in a window is another text), so encodings are compared
 * within a bucket only; a ratio compares two buckets and is read beside the ratio of an encoding that is
 * known to carry on.
 */
#include "train/jobs/outcome.h"

#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BREAK_NATS 0.1
#define SHARE      0.9 /* of the attention's weight */
enum { SMOOTH_PART = 8, TRAINING_PART = 20 };

/* Classes by E_8. */
static const struct {
    double      most;
    const char *name;
} classes[] = {{1.1, "extrapolates"}, {1.4, "degrades"}, {INFINITY, "breaks"}};

const char *pe_objective_name(int bidirectional)
{
    return bidirectional ? "masked bytes" : "next byte";
}

const char *pe_objective_text(int bidirectional)
{
    return bidirectional ? "predicting bytes that are hidden from it (15 %) from all bytes around them"
                         : "predicting the next byte";
}

const char *pe_outcome_bucket(const pe_outcome *o, int bucket, int64_t *first)
{
    *first = o->config.bidirectional ? 0 : pe_bucket_edge(o->config.L, bucket);
    return o->config.bidirectional ? pe_length_name(bucket) : pe_bucket_name(bucket);
}

void pe_reason_copy(char *reason, size_t n, const posenc_error *why)
{
    const char *at = strstr(why->message, ": ");
    at             = at ? at + 2 : why->message;
    snprintf(reason, n, "%.*s", (int)strcspn(at, ";"), at);
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* One block for all arrays: NaN, but for weights, which are added up. Begins with room for two curves of
   steps or positions. */
static int allocate(pe_outcome *o, int64_t seeds)
{
    const pe_run_config *c     = &o->config;
    const int64_t        means = seeds * c->windows, far = PE_REACH * c->L, room = 2 * larger(far, c->steps);
    const int64_t        count = room + (PE_BUCKETS + 1) * means + 4 * far + c->steps + c->L;
    free(o->numbers); /* measured again: tests do that */
    double *at = o->numbers = malloc((size_t)count * sizeof *at);
    for (int64_t i = 0; at && i < count; i++)
        at[i] = NAN;
    if (!at)
        return 0;
    o->truncated = at + room;
    for (int b = 0; b < PE_BUCKETS; b++)
        o->window_means[b] = o->truncated + (b + 1) * means;
    o->curve    = o->truncated + (PE_BUCKETS + 1) * means;
    o->low      = seeds > 1 ? o->curve + far : NULL;
    o->high     = seeds > 1 ? o->curve + 2 * far : NULL;
    o->far      = o->curve + 3 * far;
    o->near     = o->far + far;
    o->training = o->near + c->L;
    for (int64_t t = 0; t < far + c->L; t++)
        o->far[t] = 0;
    return 1;
}

static void measure_buckets(pe_outcome *o, int64_t seeds)
{
    const int64_t windows = o->config.windows;
    for (int b = 0; b < PE_BUCKETS; b++) {
        for (int64_t s = 0; s < seeds; s++)
            pe_bucket_means(o->window_means[b] + s * windows, o->runs[s].window_loss, windows, o->config.L,
                            b);
        o->loss[b] = pe_mean(o->window_means[b], seeds * windows);
    }
    for (int b = 0; b < PE_BUCKETS; b++)
        o->ratio[b] = o->loss[b] / o->loss[PE_AT_L];
}

/* Mean over the windows of each run, by position, smoothed; over the seeds their mean, least and largest. */
static void measure_curve(pe_outcome *o, int64_t seeds)
{
    const int64_t n = PE_REACH * o->config.L, windows = o->config.windows, part = o->config.L / SMOOTH_PART;
    double       *raw = o->numbers, *smooth = raw + n;
    for (int64_t s = 0; s < seeds; s++) {
        for (int64_t p = 0; p < n; p++) {
            double sum = 0;
            for (int64_t w = 0; w < windows; w++)
                sum += (double)o->runs[s].window_loss[w * n + p];
            raw[p] = sum / (double)windows;
        }
        pe_smooth(smooth, raw, n, o->config.bidirectional ? 1 : larger(1, part));
        for (int64_t p = 0; p < n; p++) {
            o->curve[p] = (s ? o->curve[p] : 0) + smooth[p] / (double)seeds;
            if (seeds > 1) {
                o->low[p]  = fmin(smooth[p], o->low[p]); /* fmin ignores the NaN that was there */
                o->high[p] = fmax(smooth[p], o->high[p]);
            }
        }
    }
}

static void measure_training(pe_outcome *o, int64_t seeds)
{
    const int64_t n    = o->config.steps;
    double       *mean = o->numbers;
    for (int64_t i = 0; i < n; i++) {
        mean[i] = 0;
        for (int64_t s = 0; s < seeds; s++)
            mean[i] += (double)o->runs[s].train_loss[i] / (double)seeds;
    }
    pe_smooth(o->training, mean, n, larger(1, n / TRAINING_PART));
}

/* What runs measured of their trained models (trained.h). Weights are averaged over seeds. Of the shifts that
   of the seed stands there which notices it most: a claim of zero must hold for each. Losses with a truncated
   context stay apart by seed and window, as their differences are paired. */
static void take_seed(pe_outcome *o, int64_t s, int64_t seeds)
{
    const pe_run_config    *c       = &o->config;
    const pe_trained_layout at      = pe_trained_lay_out(c);
    const float            *numbers = o->runs[s].trained;
    for (int i = 0; i < PE_SHIFTS; i++)
        if (!(fabs((double)numbers[at.shift + i]) <= fabs(o->shift[i])))
            o->shift[i] = (double)numbers[at.shift + i];
    for (int64_t t = 0; t < c->L; t++)
        o->near[t] += (double)numbers[at.near + t] / (double)seeds;
    for (int64_t t = 0; t < PE_REACH * c->L; t++)
        o->far[t] += (double)numbers[at.far + t] / (double)seeds;
    for (int64_t w = 0; w < c->windows; w++)
        o->truncated[s * c->windows + w] = (double)numbers[at.truncated + w];
}

static void take_trained(pe_outcome *o, int64_t seeds)
{
    for (int i = 0; i < PE_SHIFTS; i++)
        o->shift[i] = 0;
    for (int64_t s = 0; s < seeds; s++)
        take_seed(o, s, seeds);
    o->near_90 = pe_mass_distance(o->near, o->config.L, SHARE);
    o->far_90  = pe_mass_distance(o->far, PE_REACH * o->config.L, SHARE);
}

posenc_status pe_outcome_measure(pe_outcome *o, int64_t seeds, posenc_error *err)
{
    if (!pe_run_all_ended(o->ended, seeds))
        return POSENC_OK;
    if (!allocate(o, seeds))
        return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the results of %s", o->label);
    measure_buckets(o, seeds);
    measure_curve(o, seeds);
    measure_training(o, seeds);
    take_trained(o, seeds);
    for (int64_t s = 0; s < seeds; s++) {
        o->diverged |= o->runs[s].diverged;
        o->cosine_before += o->runs[s].cosine_before / (double)seeds;
        o->cosine_after += o->runs[s].cosine_after / (double)seeds;
        o->seconds += (o->runs[s].train_seconds + o->runs[s].eval_seconds) / (double)seeds;
    }
    o->break_position = pe_break_position(o->curve, PE_REACH * o->config.L, o->loss[PE_AT_L] + BREAK_NATS);
    int class         = 0;
    while (o->ratio[PE_AT_8L] > classes[class].most)
        class ++;
    o->verdict     = o->diverged || isnan(o->ratio[PE_AT_8L]) ? "diverged" : classes[class].name;
    o->is_complete = 1;
    return POSENC_OK;
}

void pe_outcome_free(pe_outcome *o, int64_t seeds)
{
    for (int64_t s = 0; o->runs && s < seeds; s++)
        pe_run_result_free(&o->runs[s]);
    free(o->runs);
    free(o->progress);
    free(o->ended);
    free(o->numbers);
    posenc_encoding_free(o->e);
}

double pe_outcome_largest_shift(const pe_outcome *o)
{
    double largest = NAN;
    for (int i = 0; i < PE_SHIFTS; i++)
        if (!isnan(o->shift[i]))
            largest = isnan(largest) ? fabs(o->shift[i]) : fmax(largest, fabs(o->shift[i]));
    return largest;
}

/* ---------------------------------------------------------------- among encodings ----------- */

void pe_outcome_settings(char text[PE_LONGEST_SPEC + 64], const pe_outcome *o)
{
    const pe_entry *entry = &o->config.entry;
    snprintf(text, PE_LONGEST_SPEC + 64, "%s%s%s%s%s", posenc_encoding_spec(o->e),
             entry->combine == PE_ADD ? "" : ", combine=",
             entry->combine == PE_ADD ? "" : pe_combine_name(entry->combine),
             entry->inject == PE_AT_INPUT ? "" : ", inject=",
             entry->inject == PE_AT_INPUT ? "" : pe_inject_name(entry->inject));
}

int pe_outcome_meets(const pe_outcome *o)
{
    const posenc_encoding_info *input = posenc_encoding_part(o->e, POSENC_INPUT);
    return input && !input->by_word;
}

int pe_outcome_sum_of(const pe_compare *c, int i)
{
    const pe_outcome *joint = &c->outcomes[i];
    for (int k = 0; k < c->count && joint->config.entry.combine == PE_CONCAT; k++) {
        const pe_outcome *o = &c->outcomes[k];
        if (o->is_complete && pe_entry_is_standard(&o->config.entry) &&
            !strcmp(posenc_encoding_spec(o->e), posenc_encoding_spec(joint->e)))
            return k;
    }
    return -1;
}

pe_interval pe_outcomes_difference(const pe_compare *c, int a, int b, int bucket)
{
    return pe_bootstrap_difference(c->bootstrap, c->outcomes[a].window_means[bucket],
                                   c->outcomes[b].window_means[bucket]);
}

/* Loss in a bucket, NaN for what has no rank. */
static double ranked_loss(const pe_outcome *o, int bucket)
{
    return o->is_complete && !o->diverged ? o->loss[bucket] : NAN;
}

int pe_outcomes_order(const pe_compare *c, int order[])
{
    int count = 0;
    for (int i = 0; i < c->count; i++)
        if (c->outcomes[i].is_complete)
            order[count++] = i;
    for (int i = 1; i < count; i++) /* few items: insertion, which keeps equals in order */
        for (int k = i; k > 0; k--) {
            const double above = ranked_loss(&c->outcomes[order[k - 1]], PE_AT_L);
            const double here  = ranked_loss(&c->outcomes[order[k]], PE_AT_L);
            if (!(here < above || (isnan(above) && !isnan(here))))
                break;
            const int swap = order[k];
            order[k]       = order[k - 1];
            order[k - 1]   = swap;
        }
    return count;
}

typedef struct judge {
    const pe_compare *c;
    int               bucket;
} judge;

/* Is the interval of the difference clear of zero? */
static int tells(void *self, int better, int worse)
{
    const judge      *j = self;
    const pe_interval d = pe_outcomes_difference(j->c, worse, better, j->bucket);
    return d.low > 0;
}

static void rank_bucket(pe_compare *c, int bucket, double *means, int *ranks)
{
    judge j = {c, bucket};
    for (int i = 0; i < c->count; i++)
        means[i] = ranked_loss(&c->outcomes[i], bucket);
    pe_rank(ranks, means, c->count, tells, &j);
    for (int i = 0; i < c->count; i++) {
        pe_outcome *o   = &c->outcomes[i];
        o->rank[bucket] = ranks[i];
        if (bucket == PE_AT_8L)
            o->gain = o->truncated
                          ? pe_bootstrap_difference(c->bootstrap, o->truncated, o->window_means[bucket])
                          : (pe_interval){NAN, NAN, NAN};
        o->difference[bucket] = (pe_interval){NAN, NAN, NAN};
        if (c->reference >= 0 && !isnan(means[i]))
            o->difference[bucket] = pe_outcomes_difference(c, i, c->reference, bucket);
    }
}

posenc_status pe_outcomes_rank(pe_compare *c, posenc_error *err)
{
    double *means = malloc((size_t)c->count * sizeof *means);
    int    *ranks = malloc((size_t)c->count * sizeof *ranks);
    if (means && ranks) {
        const int n  = pe_outcomes_order(c, ranks);
        c->reference = n > 0 && !isnan(ranked_loss(&c->outcomes[ranks[0]], PE_AT_L)) ? ranks[0] : -1;
        for (int b = 0; b < PE_BUCKETS; b++)
            rank_bucket(c, b, means, ranks);
    }
    const int enough = means && ranks;
    free(means);
    free(ranks);
    return enough ? POSENC_OK : pe_train_fail(err, POSENC_MEMORY, "compare: no memory for the ranks");
}
