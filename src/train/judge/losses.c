/* SPDX-License-Identifier: MIT */
/*
 * losses.c: from runs to losses per bucket, curves, ratios and ranks
 *
 * One causal pass over windows of R L gives the loss at every shorter length, so everything follows from the
 * matrix [windows, R L] of each run: buckets, the smoothed curve, E_k = loss in [k L/2, k L) / loss in [L/2,
 * L), and the break position, the last one where the smoothed loss is within 0.1 nats of that at L. The
 * matrix of a run that diverged is NaN: so are its numbers, and it has no rank.
 *
 * A bidirectional model has read each window at five lengths instead; its matrix holds, for every length, the
 * same number in all columns from the length before, so that all this holds for it too. Nothing is smoothed
 * then.
 *
 * Buckets differ in difficulty (text further on in a window is another text), so encodings are compared
 * within a bucket only; a ratio compares two buckets and is compared with the ratio of an encoding that is
 * known to carry on.
 */
#include "train/judge/judge.h"

#include "base/status.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BREAK_NATS 0.1
#define SHARE      0.9 /* of the attention's weight */
enum { SMOOTH_PART = 8, TRAINING_PART = 20 };

/* What becomes of the loss beyond L, by E_R. */
static const char *const class_names[PE_SPREAD_CLASSES] = {"kept", "rises", "breaks"};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* One block for all arrays: NaN, except weights, which are added up. At o->numbers it begins with space for
   two curves of steps or positions, before and after smoothing. */
static int allocate_numbers(pe_outcome *o, int64_t seeds)
{
    const pe_run_config *c     = &o->config;
    const int64_t        means = seeds * c->windows, far = c->reach * c->L, space = 2 * larger(far, c->steps);
    const int64_t        count = space + (PE_MOST_BUCKETS + 1) * means + 4 * far + c->steps + c->L;
    free(o->numbers);
    double *at = o->numbers = malloc((size_t)count * sizeof *at);
    for (int64_t i = 0; at && i < count; i++)
        at[i] = NAN;
    if (!at)
        return 0;
    o->truncated = at + space;
    for (int b = 0; b < PE_MOST_BUCKETS; b++)
        o->window_means[b] = o->truncated + (b + 1) * means;
    o->curve    = o->truncated + (PE_MOST_BUCKETS + 1) * means;
    o->low      = seeds > 1 ? o->curve + far : NULL;
    o->high     = seeds > 1 ? o->curve + 2 * far : NULL;
    o->far      = o->curve + 3 * far;
    o->near     = o->far + far;
    o->training = o->near + c->L;
    for (int64_t t = 0; t < far + c->L; t++)
        o->far[t] = 0;
    return 1;
}

double pe_losses_of_window(const pe_run_result *r, const pe_run_config *c, int bucket, int64_t window)
{
    const int64_t length = c->reach * c->L;
    double        mean;
    if (!c->bidirectional &&
        bucket <= PE_AT_L) /* a causal run has scored more text than these windows hold */
        return r->scored[2 * window + bucket];
    pe_stats_bucket_means(&mean, r->window_loss + window * length, 1, length, c->L, bucket);
    return mean;
}

static void measure_buckets(pe_outcome *o, int64_t seeds)
{
    const int64_t windows = o->config.windows;
    for (int b = 0; b < PE_MOST_BUCKETS; b++) { /* NaN beyond what is read */
        for (int64_t s = 0; s < seeds && b < pe_stats_buckets(o->config.reach); s++)
            for (int64_t w = 0; w < windows; w++)
                o->window_means[b][s * windows + w] =
                    pe_losses_of_window(&o->runs[s].result, &o->config, b, w);
        o->loss[b] = pe_stats_mean(o->window_means[b], seeds * windows);
    }
    for (int b = 0; b < PE_MOST_BUCKETS; b++)
        o->ratio[b] = o->loss[b] / o->loss[PE_AT_L];
}

/* Mean over the windows of each run, by position, smoothed; over the seeds their mean, least and largest. */
static void measure_curve(pe_outcome *o, int64_t seeds)
{
    const int64_t n = o->config.reach * o->config.L, windows = o->config.windows,
                  part = o->config.L / SMOOTH_PART;
    double *raw = o->numbers, *smooth = raw + n;
    for (int64_t s = 0; s < seeds; s++) {
        for (int64_t p = 0; p < n; p++) {
            double sum = 0;
            for (int64_t w = 0; w < windows; w++)
                sum += (double)o->runs[s].result.window_loss[w * n + p];
            raw[p] = sum / (double)windows;
        }
        pe_stats_smooth(smooth, raw, n, o->config.bidirectional ? 1 : larger(1, part));
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
            mean[i] += (double)o->runs[s].result.train_loss[i] / (double)seeds;
    }
    pe_stats_smooth(o->training, mean, n, larger(1, n / TRAINING_PART));
}

/* What runs measured of their trained models (trained.h). Weights are averaged over seeds. A shift is the one
   of all seeds that is furthest from 0, as a claim of zero must hold for each. Losses with a truncated
   context stay separate by seed and window, as their differences are paired. */
static void copy_seed(pe_outcome *o, int64_t s, int64_t seeds)
{
    const pe_run_config    *c       = &o->config;
    const pe_trained_layout at      = pe_trained_lay_out(c);
    const float            *numbers = o->runs[s].result.trained;
    for (int i = 0; i < PE_SHIFTS; i++)
        if (!(fabs((double)numbers[at.shift + i]) <= fabs(o->shift[i]))) /* further, or NaN */
            o->shift[i] = (double)numbers[at.shift + i];
    for (int64_t t = 0; t < c->L; t++)
        o->near[t] += (double)numbers[at.near + t] / (double)seeds;
    for (int64_t t = 0; t < c->reach * c->L; t++)
        o->far[t] += (double)numbers[at.far + t] / (double)seeds;
    for (int64_t w = 0; w < c->windows; w++)
        o->truncated[s * c->windows + w] = (double)numbers[at.truncated + w];
}

static void copy_trained(pe_outcome *o, int64_t seeds)
{
    for (int i = 0; i < PE_SHIFTS; i++)
        o->shift[i] = 0;
    for (int64_t s = 0; s < seeds; s++)
        copy_seed(o, s, seeds);
    o->near_90 = pe_trained_distance(o->near, o->config.L, SHARE);
    o->far_90  = pe_trained_distance(o->far, o->config.reach * o->config.L, SHARE);
}

posenc_status pe_losses_measure(pe_outcome *o, int64_t seeds, posenc_error *err)
{
    if (!pe_run_all_ended(o->runs, seeds))
        return POSENC_OK;
    if (!allocate_numbers(o, seeds))
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the results of %s",
                       o->label);
    measure_buckets(o, seeds);
    measure_curve(o, seeds);
    measure_training(o, seeds);
    copy_trained(o, seeds);
    o->cosine_before = o->cosine_after = o->seconds = o->diverged = 0;
    for (int64_t s = 0; s < seeds; s++) {
        o->diverged |= o->runs[s].result.diverged;
        o->cosine_before += o->runs[s].result.cosine_before / (double)seeds;
        o->cosine_after += o->runs[s].result.cosine_after / (double)seeds;
        o->seconds += (o->runs[s].result.train_seconds + o->runs[s].result.eval_seconds) / (double)seeds;
    }
    o->break_position =
        pe_stats_break_position(o->curve, o->config.reach * o->config.L, o->loss[PE_AT_L] + BREAK_NATS);
    o->is_complete = 1;
    return POSENC_OK;
}

double pe_losses_largest_shift(const pe_outcome *o)
{
    double largest = NAN;
    for (int i = 0; i < PE_SHIFTS; i++)
        largest = fmax(largest, fabs(o->shift[i])); /* fmax ignores NaN */
    return largest;
}

/* ---------------------------------------------------------------- among encodings ----------- */

static pe_stats_sample sample_of(const pe_outcome *o, int64_t seeds, int bucket)
{
    return (pe_stats_sample){o->window_means[bucket], seeds, o->config.windows, o->spread[bucket]};
}

pe_interval pe_losses_difference(const pe_compare *c, int a, int b, int bucket)
{
    const pe_stats_sample one   = sample_of(&c->outcomes[a], c->config.preset.seeds, bucket),
                          other = sample_of(&c->outcomes[b], c->config.preset.seeds, bucket);
    return pe_stats_difference(&one, &other);
}

pe_interval pe_losses_ratio(const pe_outcome *o, int64_t seeds, int bucket)
{
    const pe_stats_sample there = sample_of(o, seeds, bucket), at_L = sample_of(o, seeds, PE_AT_L);
    return pe_stats_ratio(&there, &at_L);
}

int pe_losses_differ(const pe_compare *c, int a, int b, int bucket)
{
    const pe_interval d = pe_losses_difference(c, a, b, bucket);
    return (d.low > 0 || d.high < 0) && fabs(d.value) >= c->resolution[bucket];
}

/* a - b of two readings of the same trained models, of these classes. */
static pe_interval difference_of_readings(pe_stats_sample a, int class_a, pe_stats_sample b, int class_b,
                                          int bucket, double unit)
{
    a.spread = b.spread = (pe_spread){0, 1, 0};
    a.spread            = pe_spread_of_readings(&a, &b, bucket, class_a, class_b, unit);
    return pe_stats_difference(&a, &b);
}

double pe_losses_ranked(const pe_outcome *o, int bucket)
{
    return o && o->is_complete && !o->diverged ? o->loss[bucket] : NAN;
}

static void fill_means(double *means, const pe_compare *c, int bucket)
{
    for (int i = 0; i < c->count; i++)
        means[i] = pe_losses_ranked(&c->outcomes[i], bucket);
}

/* c->order, and from it the reference. */
static void order_outcomes(pe_compare *c, double *means)
{
    for (int b = 0; b < PE_MOST_BUCKETS; b++) {
        c->order_count = 0;
        c->order[b]    = c->order[0] + b * c->count;
        for (int i = 0; i < c->count; i++)
            if (c->outcomes[i].is_complete)
                c->order[b][c->order_count++] = i;
        fill_means(means, c, b);
        pe_stats_sort(c->order[b], means, c->order_count);
    }
    const int best = c->order_count ? c->order[PE_AT_L][0] : -1;
    c->reference   = best >= 0 && !isnan(pe_losses_ranked(&c->outcomes[best], PE_AT_L)) ? best : -1;
}

/* ---------------------------------------------------------------- spreads, resolution ------- */

/* A model whose loss is above this knows less than the frequencies of bytes, or tokens. */
static posenc_status measure_entropy(double *entropy, const pe_text *text, posenc_error *err)
{
    const int64_t words  = text->vocabulary ? text->vocabulary : PE_BYTES;
    int64_t      *counts = calloc((size_t)words, sizeof *counts);
    if (!counts)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory to count %lld tokens",
                       (long long)words);
    for (int64_t i = text->train_size; i < text->size; i++)
        counts[text->ids[i]]++;
    *entropy = pe_stats_entropy(counts, (int)words);
    free(counts);
    return POSENC_OK;
}

static void classify(pe_compare *c)
{
    for (int i = 0; i < c->count; i++) {
        pe_outcome *o   = &c->outcomes[i];
        const int class = pe_spread_class(pe_losses_ranked(o, pe_stats_furthest(o->config.reach)) /
                                          pe_losses_ranked(o, PE_AT_L));
        o->has_learned  = pe_losses_ranked(o, PE_AT_L) < c->entropy;
        o->verdict      = class < 0 ? "diverged" : o->has_learned ? class_names[class] : "not learned";
    }
}

/* Memory for one bucket of all outcomes. */
typedef struct bucket_space {
    double    *means, *widths;
    int       *classes, *ranks;
    pe_spread *spreads; /* [2 count] */
} bucket_space;

/* Up to L only the text makes a bucket harder than another. */
static int class_in(int bucket, double loss, double at_L)
{
    const int class = pe_spread_class(loss / at_L);
    return class > 0 && bucket <= PE_AT_L ? 0 : class;
}

static int class_of(const pe_outcome *o, int bucket)
{
    return class_in(bucket, pe_losses_ranked(o, bucket), pe_losses_ranked(o, PE_AT_L));
}

static void estimate_spreads(pe_compare *c, int bucket, bucket_space *space)
{
    const int64_t seeds = c->config.preset.seeds;
    for (int i = 0; i < c->count; i++) {
        const pe_outcome *o = &c->outcomes[i];
        space->classes[i]   = class_of(o, bucket);
        for (int64_t s = 0; s < seeds; s++)
            space->means[i * seeds + s] =
                o->is_complete
                    ? pe_stats_mean(o->window_means[bucket] + s * o->config.windows, o->config.windows)
                    : NAN;
    }
    const pe_spread_runs runs = {space->means, space->classes, c->count, seeds, bucket, c->unit};
    pe_spread_estimate(space->spreads, space->spreads + c->count, &runs);
    for (int i = 0; i < c->count; i++) {
        c->outcomes[i].spread[bucket]     = space->spreads[i];
        c->outcomes[i].own_spread[bucket] = space->spreads[c->count + i];
    }
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Does it count for the resolution? */
static int is_usual(const pe_outcome *o, int bucket, int class, int most)
{
    return class >= 0 && class <= most && (most == PE_SPREAD_CLASSES || !o->spread[bucket].is_odd);
}

/* Half the widths of the intervals of all pairs up to a class (PE_SPREAD_CLASSES: of all, odd ones too);
   returns how many. */
static int pair_widths(double *widths, const pe_compare *c, int bucket, const int *classes, int most)
{
    int count = 0;
    for (int a = 0; a < c->count; a++)
        for (int b = 0; b < a; b++)
            if (is_usual(&c->outcomes[a], bucket, classes[a], most) &&
                is_usual(&c->outcomes[b], bucket, classes[b], most)) {
                const pe_interval d = pe_losses_difference(c, a, b, bucket);
                widths[count++]     = (d.high - d.low) / 2;
            }
    return count;
}

/* The median over the pairs that keep their loss; over all, where there is no such pair. */
static double resolution_of(const pe_compare *c, int bucket, bucket_space *space)
{
    int count = 0;
    for (int most = 0; most <= PE_SPREAD_CLASSES && !count; most++)
        count = pair_widths(space->widths, c, bucket, space->classes, most);
    qsort(space->widths, (size_t)count, sizeof *space->widths, ascending);
    return count ? (space->widths[(count - 1) / 2] + space->widths[count / 2]) / 2 : NAN;
}

/* ---------------------------------------------------------------- ranks --------------------- */

typedef struct bucket_ranking {
    const pe_compare *c;
    int               bucket;
} bucket_ranking;

static int differs(void *self, int better, int worse)
{
    const bucket_ranking *j = self;
    return pe_losses_differ(j->c, worse, better, j->bucket);
}

/* Seeds that would tell the first from all that it cannot be told from. */
static int seeds_to_settle(const pe_compare *c, int bucket)
{
    const int first = c->order[bucket][0];
    int       most  = 0;
    for (int i = 0; i < c->count; i++) {
        if (i == first || !c->outcomes[i].rank[bucket] || pe_losses_differ(c, i, first, bucket))
            continue;
        const pe_stats_sample a = sample_of(&c->outcomes[i], c->config.preset.seeds, bucket),
                              b = sample_of(&c->outcomes[first], c->config.preset.seeds, bucket);
        const int seeds = pe_stats_seeds_to_settle(&a, &b), more = (int)c->config.preset.seeds + 1;
        most = seeds > most ? seeds : most;
        most = more > most ? more : most; /* these did not tell them apart */
    }
    return most;
}

/* What reading no further than L would lose. */
static pe_interval gain_of(const pe_compare *c, const pe_outcome *o, int bucket)
{
    const pe_stats_sample whole   = sample_of(o, c->config.preset.seeds, bucket);
    pe_stats_sample       without = whole;
    without.x                     = o->truncated;
    return o->truncated ? difference_of_readings(without, 0, whole, class_of(o, bucket), bucket, c->unit)
                        : (pe_interval){NAN, NAN, NAN};
}

static void rank_bucket(pe_compare *c, int bucket, bucket_space *space)
{
    bucket_ranking j = {c, bucket};
    estimate_spreads(c, bucket, space);
    c->resolution[bucket] = resolution_of(c, bucket, space);
    fill_means(space->means, c, bucket);
    pe_stats_rank(space->ranks, space->means, c->count, differs, &j);
    for (int i = 0; i < c->count; i++) {
        pe_outcome *o   = &c->outcomes[i];
        o->rank[bucket] = space->ranks[i];
        if (bucket == pe_stats_furthest(o->config.reach))
            o->gain = gain_of(c, o, bucket);
        o->difference[bucket] = (pe_interval){NAN, NAN, NAN};
        if (c->reference >= 0 && !isnan(space->means[i]))
            o->difference[bucket] = pe_losses_difference(c, i, c->reference, bucket);
    }
    c->seeds_to_settle[bucket] = c->reference >= 0 ? seeds_to_settle(c, bucket) : 0;
}

posenc_status pe_losses_rank(pe_compare *c, posenc_error *err)
{
    const size_t  n      = (size_t)c->count;
    posenc_status status = POSENC_OK;
    bucket_space  space  = {malloc(n * (size_t)c->config.preset.seeds * sizeof(double)),
                            malloc(n * n * sizeof(double)), malloc(n * sizeof(int)), malloc(n * sizeof(int)),
                            malloc(2 * n * sizeof(pe_spread))};
    free(c->order[0]);
    c->order[0] = malloc(n * PE_MOST_BUCKETS * sizeof *c->order[0]);
    const int enough =
        space.means && space.widths && space.classes && space.ranks && space.spreads && c->order[0];
    if (enough) {
        order_outcomes(c, space.means);
        status = measure_entropy(&c->entropy, &c->text, err);
        classify(c);
    }
    for (int b = 0; enough && b < PE_MOST_BUCKETS; b++)
        rank_bucket(c, b, &space);
    free(space.means);
    free(space.widths);
    free(space.classes);
    free(space.ranks);
    free(space.spreads);
    return enough ? status : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the ranks");
}

/* ---------------------------------------------------------------- models read further ------- */

/* Every way reads the same windows, and its model starts from the same seed's trained one, so differences are
   taken window by window and seed by seed, as between encodings. */

/* Of a reading in a bucket: [seeds, windows]. */
static double *means_at(const pe_extension *x, pe_losses_reading r, int bucket)
{
    const int64_t at =
        ((int64_t)(r.way * PE_FACTORS + r.factor_index) * PE_TUNINGS + r.tuning) * PE_FAR_BUCKETS + bucket;
    return x->means + at * x->seeds * x->windows;
}

/* What one run says about the way that is number k of its family. */
static void copy_way(pe_extension *x, const pe_extension_plan *p, int k, const float *numbers, int64_t seed)
{
    for (int f = 0; f < PE_FACTORS; f++)
        for (int t = 0; t < PE_TUNINGS; t++)
            for (int b = 0; b < PE_FAR_BUCKETS; b++) {
                const float *from = numbers + pe_extension_offset(p, k, f, t, b);
                double      *to   = means_at(x, (pe_losses_reading){p->ways[k], f, t}, b) + seed * x->windows;
                for (int64_t w = 0; w < x->windows; w++)
                    to[w] = (double)from[w];
            }
}

posenc_status pe_losses_measure_extension(pe_extension *x, posenc_error *err)
{
    const int64_t n = PE_WAYS * PE_FACTORS * PE_TUNINGS * PE_FAR_BUCKETS * x->seeds * x->windows;
    if (x->count == 0)
        return POSENC_OK;
    free(x->means);
    x->means = malloc((size_t)n * sizeof *x->means);
    if (!x->means)
        return pe_fail(err, POSENC_ERROR_MEMORY,
                       "compare: not enough memory for the losses of extended models");
    for (int64_t i = 0; i < n; i++)
        x->means[i] = NAN;
    for (int f = 0; f < x->count; f++)
        for (int64_t s = 0; pe_run_all_ended(x->outcomes[f].runs, x->seeds) && s < x->seeds; s++)
            for (int k = 0; k < x->plans[f].way_count; k++)
                copy_way(x, &x->plans[f], k, x->outcomes[f].runs[s].result.followup, s);
    return POSENC_OK;
}

double pe_losses_extended(const pe_extension *x, pe_losses_reading r, int bucket)
{
    return x->means ? pe_stats_mean(means_at(x, r, bucket), x->seeds * x->windows) : NAN;
}

static int extended_class(const pe_extension *x, pe_losses_reading r, int bucket)
{
    return class_in(bucket, pe_losses_extended(x, r, bucket),
                    pe_losses_extended(x, pe_losses_nothing_done(r.way), PE_AT_L));
}

int pe_losses_has_extended(const pe_extension *x, pe_losses_reading r)
{
    return isfinite(pe_losses_extended(x, r, PE_AT_L));
}

pe_interval pe_losses_extended_difference(const pe_extension *x, pe_losses_reading a, pe_losses_reading b,
                                          int bucket)
{
    const pe_stats_sample one   = {.x = means_at(x, a, bucket), .seeds = x->seeds, .windows = x->windows},
                          other = {.x = means_at(x, b, bucket), .seeds = x->seeds, .windows = x->windows};
    return difference_of_readings(one, extended_class(x, a, bucket), other, extended_class(x, b, bucket),
                                  bucket, x->unit);
}

pe_losses_reading pe_losses_nothing_done(int way)
{
    int first = 0;
    while (strcmp(pe_ways[first].family, pe_ways[way].family) != 0)
        first++;
    return (pe_losses_reading){first, 0, PE_UNTUNED};
}
