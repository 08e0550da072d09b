/* SPDX-License-Identifier: MIT */
/*
 * summary.c: the tables of a comparison
 *
 * The same cells go to the terminal, the report and whoever tests them. What a column means is said next
 * to its head. A rank is shared ("2=") where the paired interval contains zero: the data cannot tell, so
 * neither do we. A star marks cells that were measured with rows of a table that no training step ever
 * reached.
 */
#include "train/report/report.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

#define SEED_NATS 0.05 /* by so much differences change with the seed: docs/experiments.md, section 8 */

/* clang-format off */
static const pe_column columns[] = { /* ORDER put_row */
#define FIRST_COLUMNS {"encoding", "as given on the command line; settings below", 1, 0}
    FIRST_COLUMNS,
    {"0..L/2", "nats per byte where at most half of the training length is known", 0, 1},
    {"L/2..L", "nats per byte in the second half of the training length L", 0, 0},
    {"x2", "nats per byte at positions from L to 2 L", 0, 0},
    {"x4", "nats per byte at positions from 2 L to 4 L", 0, 0},
    {"x8", "nats per byte at positions from 4 L to 8 L", 0, 0},
#define LAST_COLUMNS(AT_L) \
    {"E_2", "loss at x2 / loss at " AT_L, 0, 1}, \
    {"E_4", "loss at x4 / loss at " AT_L, 0, 1}, \
    {"E_8", "loss at x8 / loss at " AT_L, 0, 0}, \
    {"class", "by E_8: extrapolates up to 1.1, degrades up to 1.4, else breaks", 1, 0}, \
    {"breaks at", "number of bytes up to which the smoothed loss stays within 0.1 nats of that at L", 0, 1}, \
    {"minus best at L (95 %)", \
     "difference at " AT_L " from the encoding that is best there, with its paired interval", 1, 0}, \
    {"minus the same at x8 (95 %)", "difference from that encoding at x8", 1, 1}, \
    {"rank", "at " AT_L "; shared (=) where the interval of the difference contains zero", 0, 0}, \
    {"at x8", "rank at x8", 0, 0}, \
    {"params", "trained parameters of the whole model", 0, 0}, \
    {"own", "trained parameters of the encoding only (and W of combine=concat)", 0, 1}, \
    {"|cos|", \
     "mean |cos| between vectors of tokens and of positions, after training; " \
     "for encodings at the input", 0, 0}, \
    {"kB/s", "thousand bytes trained on per second, one thread", 0, 1}, \
    {"s", "seconds for training and evaluation, one thread, mean over seeds", 0, 0}
    LAST_COLUMNS("L/2..L"),
};

static const pe_column masked_columns[] = { /* ORDER put_row */
    FIRST_COLUMNS,
    {"L/2", "nats per hidden byte of windows read in pieces of L/2", 0, 1},
    {"L", "nats per hidden byte of the same windows read in pieces of the training length L", 0, 0},
    {"x2", "nats per hidden byte of the same windows read in pieces of 2 L", 0, 0},
    {"x4", "nats per hidden byte of the same windows read in pieces of 4 L", 0, 0},
    {"x8", "nats per hidden byte of the same windows read whole, 8 L", 0, 0},
    LAST_COLUMNS("L"),
};

enum { VERDICT_COLUMN = 9 };

/* clang-format on */
static_assert(COUNT(columns) == COUNT(masked_columns), "ORDER columns, masked_columns");

static void put_interval(pe_table *t, int row, int column, pe_interval d)
{
    if (isnan(d.value))
        pe_table_set(t, row, column, "-");
    else
        pe_table_set(t, row, column, "%+.3f (%+.3f to %+.3f)", d.value, d.low, d.high);
}

static void put_difference(pe_table *t, int row, int column, const pe_compare *c, const pe_outcome *o,
                           int bucket)
{
    if (o - c->outcomes == c->reference)
        pe_table_set(t, row, column, "reference");
    else
        put_interval(t, row, column, o->difference[bucket]);
}

/* "2=" where others have the same. */
static void put_rank(pe_table *t, int row, int column, const pe_compare *c, const pe_outcome *o, int bucket)
{
    int shared = 0;
    for (int i = 0; i < c->count; i++)
        shared += c->outcomes[i].rank[bucket] == o->rank[bucket];
    if (o->rank[bucket])
        pe_table_set(t, row, column, "%d%s", o->rank[bucket], shared > 1 ? "=" : "");
    else
        pe_table_set(t, row, column, "-");
}

static void put_row(pe_table *t, int row, const pe_compare *c, const pe_outcome *o)
{
    const int64_t        broken = o->break_position + 1, end = PE_REACH * o->config.L;
    const pe_run_result *first = &o->runs[0].result;
    int                  k     = 0; /* ORDER columns */
    pe_table_set(t, row, k++, "%s", o->label);
    for (int b = 0; b < PE_BUCKETS; b++)
        pe_table_number(t, row, k++, o->untrained_beyond && b > PE_AT_L ? "%.3f*" : "%.3f", o->loss[b]);
    for (int b = PE_AT_2L; b < PE_BUCKETS; b++)
        pe_table_number(t, row, k++, "%.2f", o->ratio[b]);
    pe_table_set(t, row, k++, "%s", o->verdict);
    pe_table_number(t, row, k++, broken >= end ? ">=%.0f" : "%.0f", o->diverged ? NAN : (double)broken);
    put_difference(t, row, k++, c, o, PE_AT_L);
    put_difference(t, row, k++, c, o, PE_AT_8L);
    put_rank(t, row, k++, c, o, PE_AT_L);
    put_rank(t, row, k++, c, o, PE_AT_8L);
    pe_table_set(t, row, k++, "%lld", (long long)first->parameters);
    pe_table_set(t, row, k++, "%lld", (long long)first->encoding_parameters);
    pe_table_number(t, row, k++, "%.3f", o->cosine_after);
    pe_table_number(t, row, k++, "%.0f",
                    first->tokens_per_second > 0 ? first->tokens_per_second / 1000 : NAN);
    pe_table_number(t, row, k++, "%.0f", o->seconds);
    assert(k == COUNT(columns));
}

/* Why encodings are missing that were asked for. */
static void add_absent_notes(const pe_compare *c, pe_table *t)
{
    for (int i = 0; i < c->absent_count; i++)
        pe_table_note(t, "%.200s does not apply: %s.", c->absent[i].label, c->absent[i].reason);
}

static void add_notes(const pe_compare *c, pe_table *t)
{
    const pe_preset *p       = &c->config.preset;
    int              starred = 0, undone = 0, met = 0;
    for (int i = 0; i < c->count; i++) {
        met |= c->outcomes[i].is_complete && !isnan(c->outcomes[i].cosine_after);
        starred |= c->outcomes[i].is_complete && c->outcomes[i].untrained_beyond;
        undone += !c->outcomes[i].is_complete;
    }
    pe_table_note(t,
                  "Nats per byte of held-out text (%lld windows of %lld bytes), after %lld steps at L = "
                  "%lld; lower is better.",
                  (long long)c->windows, (long long)(PE_REACH * p->L), (long long)p->steps, (long long)p->L);
    pe_table_note(
        t, "Objective: %s.%s", pe_outcome_objective(c->config.bidirectional),
        c->config.bidirectional
            ? " Each window is read in pieces of every length; the same 15 % of its bytes are hidden."
            : "");
    pe_table_note(t, "Intervals: paired bootstrap over windows%s, 95 %%.%s", p->seeds > 1 ? " and seeds" : "",
                  p->seeds > 1 ? "" : " One seed: they do not cover another seed.");
    if (c->trials->rate_count == 1)
        pe_table_note(
            t, "Learning rate: %g for every encoding; docs/experiments.md, section 18, has losses at others.",
            c->trials->rates[0]);
    if (starred)
        pe_table_note(
            t,
            "* untrained rows: a row per position is learned, and no training step reached those beyond L.");
    if (met)
        pe_table_note(t, "|cos| of token and position vectors: random directions of width %lld have %.3f.",
                      (long long)p->d_model, pe_stats_random_cosine(p->d_model));
    if (undone)
        pe_table_note(t, "%d of %d encodings did not finish and are left out.", undone, c->count);
    add_absent_notes(c, t);
}

posenc_status pe_summary_table(const pe_compare *c, pe_table *table, posenc_error *err)
{
    const pe_column    *heads  = c->config.bidirectional ? masked_columns : columns;
    const int           count  = c->order_count;
    const posenc_status status = pe_table_open(table, heads, COUNT(columns), count + c->absent_count, err);
    for (int row = 0; !status && row < count; row++)
        put_row(table, row, c, &c->outcomes[c->order[PE_AT_L][row]]);
    for (int i = 0; !status && i < c->absent_count; i++)
        for (int k = 0; k < COUNT(columns); k++) /* dashes where numbers would stand */
            pe_table_set(table, count + i, k, "%s",
                         k == 0                ? c->absent[i].label
                         : k == VERDICT_COLUMN ? "does not apply"
                                               : "-");
    if (!status)
        add_notes(c, table);
    return status;
}

/* ---------------------------------------------------------------- how rows enter ------------ */

/* Added or concatenated, at the input or in every block. One row per encoding at the input, with what the
   choice costs (parameters, time) and what it brings: the loss, and its paired difference to the same
   encoding, added, where that was trained too. The two columns of |cos| belong to the usual argument
   for adding, that random vectors of many dimensions are nearly orthogonal: they say how nearly the vectors
   that are combined are, before training, when tokens are random, and after it, when nothing is. */
/* clang-format off */
static const pe_column entry_columns[] = { /* ORDER put_row */
    {"input encoding", "as given on the command line, or by --combine", 1, 0},
    {"combine", "add: x = e + p; concat: x = [e; p] W, where W is learned and starts as the sum", 1, 0},
    {"inject", "input: before the first block; blocks: before every block", 1, 0},
    {"at L", "nats per byte at the training length", 0, 0},
    {"x8", "nats per byte at eight times the training length", 0, 0},
    {"minus added at L (95 %)", "difference from the same encoding, added, with its paired interval", 1, 0},
    {"minus added at x8 (95 %)", "the same at eight times the training length", 1, 0},
    {"params", "trained parameters of the whole model", 0, 0},
    {"own", "those of the encoding, and of W", 0, 0},
    {"kB/s", "thousand bytes trained on per second, one thread", 0, 0},
    {"s", "seconds for training and evaluation, one thread, mean over seeds", 0, 0},
    {"|cos| before", "mean |cos| between the two vectors that are combined, before training", 0, 0},
    {"after", "the same after training", 0, 0},
};
/* clang-format on */

static void put_to_sum(pe_table *t, int row, int column, const pe_compare *c, int index, int bucket)
{
    const int sum    = pe_outcome_added(c, index);
    const int is_one = sum >= 0 && !c->outcomes[index].diverged && !c->outcomes[sum].diverged;
    put_interval(t, row, column,
                 is_one ? pe_losses_difference(c, index, sum, bucket) : (pe_interval){NAN, NAN, NAN});
}

static void put_entry(pe_table *t, int row, const pe_compare *c, int index)
{
    const pe_outcome *o      = &c->outcomes[index];
    int               column = 0;
    pe_table_set(t, row, column++, "%s", o->label);
    pe_table_set(t, row, column++, "%s", pe_spec_combine_name(o->config.entry.combine));
    pe_table_set(t, row, column++, "%s", pe_spec_inject_name(o->config.entry.inject));
    pe_table_number(t, row, column++, "%.3f", o->loss[PE_AT_L]);
    pe_table_number(t, row, column++, "%.3f", o->loss[PE_AT_8L]);
    put_to_sum(t, row, column++, c, index, PE_AT_L);
    put_to_sum(t, row, column++, c, index, PE_AT_8L);
    pe_table_set(t, row, column++, "%lld", (long long)o->runs[0].result.parameters);
    pe_table_set(t, row, column++, "%lld", (long long)o->runs[0].result.encoding_parameters);
    pe_table_number(t, row, column++, "%.0f", o->runs[0].result.tokens_per_second / 1000);
    pe_table_number(t, row, column++, "%.1f", o->seconds);
    pe_table_number(t, row, column++, "%.3f", o->cosine_before);
    pe_table_number(t, row, column++, "%.3f", o->cosine_after);
    assert(column == COUNT(entry_columns));
}

posenc_status pe_summary_entries(const pe_compare *c, pe_table *table, int *is_plain, posenc_error *err)
{
    const posenc_status status =
        pe_table_open(table, entry_columns, COUNT(entry_columns), c->order_count, err);
    *is_plain        = 1;
    table->row_count = 0;
    for (int i = 0; i < c->order_count && !status; i++)
        if (pe_outcome_adds_rows(c->outcomes[c->order[PE_AT_L][i]].e)) {
            put_entry(table, table->row_count++, c, c->order[PE_AT_L][i]);
            *is_plain &= pe_spec_entry_is_default(&c->outcomes[c->order[PE_AT_L][i]].config.entry);
        }
    return status;
}

/* ---------------------------------------------------------------- checks, plan -------------- */

enum { SHOWN_CLAIM = 120 }; /* letters: some claims name all encodings */

posenc_status pe_summary_checks(const pe_compare *c, pe_table *table, int whole, posenc_error *err)
{
    static const pe_column heads[] = {{"check", "number in docs/experiments.md", 0, 0},
                                      {"expected", "what must hold on an ordinary text", PE_WIDE, 0},
                                      {"result", "passed, FAILED or not applicable", PE_TEXT, 0},
                                      {"found", "what was measured, or why it cannot be judged", PE_WIDE, 0}};
    pe_check_result        all[PE_MOST_CHECKS];
    const int              count  = pe_claims_check(all, c);
    const posenc_status    status = pe_table_open(table, heads, COUNT(heads), count, err);
    for (int i = 0; !status && i < count; i++) {
        const pe_check_result *r = &all[i];
        pe_table_set(table, i, 0, "%d", r->number);
        pe_table_set(table, i, 1, "%.*s%s", SHOWN_CLAIM, r->claim,
                     strlen(r->claim) > SHOWN_CLAIM ? " ..." : "");
        pe_table_set(table, i, 2, "%s", pe_claims_verdict_name(r->verdict));
        pe_table_set(table, i, 3, "%s", r->found);
        pe_table_at(table, i, 2)->kind = pe_claims_verdict_name(r->verdict);
        if (whole) {
            pe_table_text(table, i, 1, r->claim);
            pe_table_text(table, i, 3, r->found);
        }
    }
    return status;
}

/* What is read further than it was trained, or why nothing is though the preset would. */
static void add_extension_note(const pe_compare *c, pe_table *table)
{
    const pe_extension *x = c->extension;
    if (x->reason[0])
        pe_table_note(table, "Nothing is read further than trained: %s.", x->reason);
    if (x->count)
        pe_table_note(table,
                      "In addition, %s and %s are trained and read at 2 to 16 L in %d ways (%s): %lld more "
                      "run%s, %lld windows of %lld bytes, tunings of %lld steps.",
                      x->plans[0].family, x->plans[1].family, PE_WAYS,
                      pe_preset_extent_name(x->plans[0].extend), (long long)pe_extension_runs(x),
                      pe_extension_runs(x) == 1 ? "" : "s", (long long)x->windows,
                      (long long)(PE_FURTHEST * x->L), (long long)x->plans[0].steps);
}

/* The learning rates that are tried, and the runs that show what of the order is settled. */
static void add_trial_notes(const pe_compare *c, pe_table *table)
{
    const pe_trials *t = c->trials;
    const pe_levels *l = c->levels;
    char             rates[PE_RATES_TEXT];
    const int64_t    tried = pe_trial_runs(t), runs = pe_level_runs(l);
    pe_trial_write_rates(rates, t);
    if (tried)
        pe_table_note(table, "Learning rates tried for each encoding: %s; %lld more runs of %lld steps.",
                      rates, (long long)tried, (long long)pe_trial_steps(c->config.preset.steps, t->share));
    if (l->extent != PE_EXTENT_NONE && l->uses_trials && !runs)
        pe_table_note(table, "Stability of the order (%s): from the trials, without further runs.",
                      pe_preset_extent_name(l->extent));
    else if (l->extent != PE_EXTENT_NONE)
        pe_table_note(table, "Stability of the order (%s): %lld more run%s%s.",
                      pe_preset_extent_name(l->extent), (long long)runs, runs == 1 ? "" : "s",
                      l->uses_trials ? ", and the trials" : "");
}

posenc_status pe_summary_plan(const pe_compare *compare, pe_table *table, posenc_error *err)
{
    static const pe_column heads[] = {{"encoding", "as given on the command line", 1, 0},
                                      {"place", "where it acts", 1, 0},
                                      {"settings", "those that differ from the encoding's defaults", 1, 0}};
    const posenc_status    status  = pe_table_open(table, heads, COUNT(heads), compare->count, err);
    for (int i = 0; !status && i < compare->count; i++) {
        const pe_outcome *o          = &compare->outcomes[i];
        char              places[64] = "", settings[PE_LONGEST_SPEC + 64];
        for (int place = 0; place < POSENC_PLACE_COUNT; place++) /* "input", "rotary+score" */
            if (posenc_encoding_part(o->e, (posenc_place)place))
                snprintf(places + strlen(places), sizeof places - strlen(places), "%s%s", *places ? "+" : "",
                         posenc_place_name((posenc_place)place));
        pe_outcome_settings(settings, o);
        pe_table_set(table, i, 0, "%s", o->label);
        pe_table_set(table, i, 1, "%s", places);
        pe_table_set(table, i, 2, "%s", settings);
    }
    if (status)
        return status;
    const pe_preset *p = &compare->config.preset;
    pe_table_note(
        table,
        "Model: %lld layers, width %lld, %lld heads; %lld steps of %lld x %lld bytes; %lld run%s in all.",
        (long long)p->layers, (long long)p->d_model, (long long)p->heads, (long long)p->steps,
        (long long)p->batch, (long long)p->L, (long long)(compare->count * p->seeds),
        compare->count * p->seeds == 1 ? "" : "s");
    pe_table_note(table, "Objective: %s.", pe_outcome_objective(compare->config.bidirectional));
    add_trial_notes(compare, table);
    add_extension_note(compare, table);
    add_absent_notes(compare, table);
    pe_table_note(table,
                  "Text: %lld bytes, the last tenth held out; evaluated on %lld windows of %lld bytes.",
                  (long long)compare->text.size, (long long)compare->windows, (long long)(PE_REACH * p->L));
    return POSENC_OK;
}

/* ---------------------------------------------------------------- the answer ---------------- */

__attribute__((format(printf, 2, 3))) static void append_answer(pe_compare *c, const char *format, ...)
{
    const size_t used = strlen(c->answer);
    va_list      values;
    va_start(values, format);
    vsnprintf(c->answer + used, sizeof c->answer - used, format, values);
    va_end(values);
}

/* The next from number `i` on whose interval is so wide that it does not tell it from the very first; `count`
   if there is none. */
static int next_doubtful(const pe_compare *c, int bucket, const int order[], int i, int count)
{
    while (i < count && pe_losses_difference(c, order[i], order[0], bucket).low > 0)
        i++;
    return i;
}

/* Those after the first place that cannot be told from the very first, with their losses. */
static void append_doubtful(pe_compare *c, int bucket, const int order[], int first, int count)
{
    if (first == count)
        return;
    for (int i = first; i < count; i = next_doubtful(c, bucket, order, i + 1, count))
        append_answer(c, "%s %s %.3f", i == first ? ", with" : ",", c->outcomes[order[i]].label,
                      c->outcomes[order[i]].loss[bucket]);
    append_answer(c, " not ruled out (wide interval)");
}

/* One is better than all others: by how much than the next one. One seed says little about another. */
static void append_margin(pe_compare *c, int bucket, const int order[])
{
    const pe_interval d = pe_losses_difference(c, order[1], order[0], bucket);
    append_answer(c, ", %.3f less than %s, 95 %% interval %.3f to %.3f", d.value, c->outcomes[order[1]].label,
                  d.low, d.high);
    if (c->config.preset.seeds == 1 && d.value < SEED_NATS)
        append_answer(c, ", from one seed: another may reverse a difference below %.2f", SEED_NATS);
}

/* "NAME predicts this text best (1.612 nats per byte, 0.050 less than NEXT, ...)", or all that share the
   first place. */
static void append_best(pe_compare *c, int bucket)
{
    const int *order = c->order[bucket];
    int        count = c->order_count;
    while (c->outcomes[order[count - 1]].diverged)
        count--;
    int alike = 1; /* share the first place: those up to one that is told from the very first */
    while (alike < count && c->outcomes[order[alike]].rank[bucket] == c->outcomes[order[0]].rank[bucket])
        alike++;
    const int     doubtful = next_doubtful(c, bucket, order, alike, count);
    const double *first = c->outcomes[order[0]].loss, *last = c->outcomes[order[alike - 1]].loss;
    for (int i = 0; i < alike; i++)
        append_answer(c, "%s%s", i == 0 ? "" : i + 1 < alike ? ", " : " and ", c->outcomes[order[i]].label);
    if (count == 1)
        append_answer(c, " has %.3f nats per byte (nothing was compared with it)", first[bucket]);
    else if (alike > 1)
        append_answer(c, "%s cannot be told apart (%.3f to %.3f nats per byte)",
                      alike < count ? " predict this text best and" : "", first[bucket], last[bucket]);
    else if (doubtful < count)
        append_answer(c, " has the lowest loss (%.3f nats per byte)", first[bucket]);
    else {
        append_answer(c, " predicts this text best (%.3f nats per byte", first[bucket]);
        append_margin(c, bucket, order);
        append_answer(c, ")");
    }
    append_doubtful(c, bucket, order, doubtful, count);
}

void pe_summary_write_answer(pe_compare *c)
{
    c->answer[0] = 0;
    if (c->reference < 0) {
        append_answer(c, "No encoding finished its training, so there is no answer.");
        return;
    }
    append_answer(c, "At the trained length, %lld bytes, ", (long long)c->config.preset.L);
    append_best(c, PE_AT_L);
    append_answer(c, "; at %d times that length, ", PE_REACH);
    append_best(c, PE_AT_8L);
    append_answer(c, ".");
}
