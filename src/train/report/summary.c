/* SPDX-License-Identifier: MIT */
/*
 * summary.c: the tables of a comparison
 *
 * The same cells go to the terminal, the report and whoever tests them. What a column means is said next
 * to its head. A rank is shared ("2=") where two cannot be told apart: the data cannot tell, so
 * neither do we. A star marks cells that were measured with rows of a table that no training step ever
 * reached.
 */
#include "train/report/report.h"

#include "base/status.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

enum { MEASURED_STEPS = 600 }; /* the fewest of spread.def */

/* ---------------------------------------------------------------- heads --------------------- */

/* How many columns there are depends on how far beyond L is read. In these texts @ stands for a multiple of
   L, # for half of it, and & for what the column of the length L is called. ORDER put_row */
/* clang-format off */
static const pe_column first_columns[] = {
    {"encoding", "as given on the command line; settings below", 1, 0},
    {"0..L/2", "nats per byte where at most half of the training length is known", 0, 1},
    {"L/2..L", "nats per byte in the second half of the training length L", 0, 0},
};
static const pe_column first_masked_columns[] = {
    {"encoding", "as given on the command line; settings below", 1, 0},
    {"L/2", "nats per hidden byte of windows read in pieces of L/2", 0, 1},
    {"L", "nats per hidden byte of the same windows read in pieces of the training length L", 0, 0},
};
/* For x2, x4 and so on; the last is shown on a terminal too. */
static const pe_column
    loss_column       = {"x@", "nats per byte at positions from # to @ L", 0, 0},
    masked_column     = {"x@", "nats per hidden byte of the same windows read in pieces of @ L", 0, 0},
    whole_column      = {"x@", "nats per hidden byte of the same windows read whole, @ L", 0, 0},
    ratio_column      = {"E_@", "loss at x@ / loss at &", 0, 1},
    last_ratio_column = {"E_@", "loss at x@ / loss at &", 0, 0};
static const pe_column last_columns[] = {
    {"beyond L",
     "by E_@ the loss at L is kept (up to 1.1), rises (up to 1.4) or breaks; not learned: worse at & than "
     "guessing by how frequent each byte is", 1, 0},
    {"vs nope", "below where the loss at x@ is clearly below that of nope, above where above, else level", 1,
     0},
    {"breaks at", "number of bytes up to which the smoothed loss stays within 0.1 nats of that at L", 0, 1},
    {"minus best at L (95 %)",
     "difference at & from the encoding that is best there, with its paired interval", 1, 0},
    {"minus the same at x@ (95 %)", "difference from that encoding at x@", 1, 1},
    {"rank", "at &; shared (=) where two cannot be told apart", 0, 0},
    {"at x@", "rank at x@", 0, 0},
    {"params", "trained parameters of the whole model", 0, 0},
    {"own", "trained parameters of the encoding only (and W of combine=concat)", 0, 1},
    {"|cos|",
     "mean |cos| between vectors of tokens and of positions, after training; "
     "for encodings at the input", 0, 0},
    {"k/s", "thousand bytes trained on per second, one thread", 0, 1},
    {"s", "seconds for training and evaluation, one thread, mean over seeds", 0, 0},
};
/* Where it is known how many bytes a token has. */
static const pe_column byte_columns[] = {
    {"nats/B", "loss at & divided by the mean number of B of its tokens (--token-bytes)", 0, 0},
    {"nats/B x@", "loss at x@ divided by the mean number of B of its tokens (--token-bytes)", 0, 0},
};
/* clang-format on */

enum {
    MOST_COLUMNS = COUNT(first_columns) + 2 * PE_MOST_BUCKETS + COUNT(last_columns) + COUNT(byte_columns),
    TEXT         = 192
};

typedef struct head_list {
    pe_column columns[MOST_COLUMNS];
    int       count;
    char      texts[MOST_COLUMNS][2][TEXT];
} head_list;

static void fill_text(char text[TEXT], const char *from, int64_t times, int is_masked)
{
    size_t n = 0;
    for (text[0] = 0; *from && n < TEXT - 1; from++, n = strlen(text))
        if (*from == '@')
            snprintf(text + n, TEXT - n, "%lld", (long long)times);
        else if (*from == '#' && times == 2)
            snprintf(text + n, TEXT - n, "L");
        else if (*from == '#')
            snprintf(text + n, TEXT - n, "%lld L", (long long)times / 2);
        else if (*from == '&')
            snprintf(text + n, TEXT - n, "%s", is_masked ? "L" : "L/2..L");
        else
            snprintf(text + n, TEXT - n, "%c", *from);
    assert(!*from); /* else TEXT is too short */
}

static void add_heads(head_list *h, const pe_column *columns, int count, int64_t times, int is_masked)
{
    for (int i = 0; i < count; i++) {
        const int  k    = h->count++;
        pe_column *head = &h->columns[k];
        *head           = columns[i];
        head->head      = h->texts[k][0];
        head->meaning   = h->texts[k][1];
        fill_text(h->texts[k][0], columns[i].head, times, is_masked);
        fill_text(h->texts[k][1], columns[i].meaning, times, is_masked);
    }
}

/* A table with these heads, which it then owns. */
static posenc_status open_table(pe_table *t, head_list *h, int rows, posenc_error *err)
{
    const posenc_status status =
        h ? pe_table_open(t, h->columns, h->count, rows, err)
          : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the heads of a table");
    if (status)
        free(h);
    else
        t->texts = h;
    return status;
}

static head_list *write_heads(const pe_compare *c)
{
    const int     masked = c->config.bidirectional;
    const int64_t reach  = c->config.preset.reach;
    head_list    *h      = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    add_heads(h, masked ? first_masked_columns : first_columns, COUNT(first_columns), reach, masked);
    for (int64_t times = 2; times <= reach; times *= 2)
        add_heads(h,
                  !masked         ? &loss_column
                  : times < reach ? &masked_column
                                  : &whole_column,
                  1, times, masked);
    for (int64_t times = 2; times <= reach; times *= 2)
        add_heads(h, times < reach ? &ratio_column : &last_ratio_column, 1, times, masked);
    add_heads(h, last_columns, COUNT(last_columns), reach, masked);
    if (isfinite(c->token_bytes[PE_AT_L]))
        add_heads(h, byte_columns, COUNT(byte_columns), reach, masked);
    return h;
}

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

/* Is its loss at R L clearly below or above that of no encoding? A loss that stays is worth little above. */
static const char *against_nope(const pe_compare *c, const pe_outcome *o)
{
    const int nope = pe_claims_find(c, "nope"), i = (int)(o - c->outcomes);
    if (nope < 0 || nope == i || o->diverged || c->outcomes[nope].diverged)
        return "-";
    const pe_interval d = pe_losses_difference(c, i, nope, pe_stats_furthest(o->config.reach));
    return d.high < 0 ? "below" : d.low > 0 ? "above" : "level";
}

static void put_row(pe_table *t, int row, const pe_compare *c, const pe_outcome *o)
{
    const int64_t        broken = o->break_position + 1, end = o->config.reach * o->config.L;
    const int            furthest = pe_stats_furthest(o->config.reach);
    const pe_run_result *first    = &o->runs[0].result;
    int                  k        = 0; /* ORDER first_columns, loss_column ... last_columns */
    pe_table_text(t, row, k++, o->label);
    for (int b = 0; b <= furthest; b++)
        pe_table_number(t, row, k++, o->untrained_beyond && b > PE_AT_L ? "%.3f*" : "%.3f", o->loss[b]);
    for (int b = PE_AT_2L; b <= furthest; b++)
        pe_table_number(t, row, k++, "%.2f", o->ratio[b]);
    pe_table_set(t, row, k++, "%s", o->verdict);
    pe_table_set(t, row, k++, "%s", against_nope(c, o));
    pe_table_number(t, row, k++, broken >= end ? ">=%.0f" : "%.0f", o->diverged ? NAN : (double)broken);
    put_difference(t, row, k++, c, o, PE_AT_L);
    put_difference(t, row, k++, c, o, furthest);
    put_rank(t, row, k++, c, o, PE_AT_L);
    put_rank(t, row, k++, c, o, furthest);
    pe_table_set(t, row, k++, "%lld", (long long)first->parameters);
    pe_table_set(t, row, k++, "%lld", (long long)first->encoding_parameters);
    pe_table_number(t, row, k++, "%.3f", o->cosine_after);
    pe_table_number(t, row, k++, "%.0f",
                    first->tokens_per_second > 0 ? first->tokens_per_second / 1000 : NAN);
    pe_table_number(t, row, k++, "%.0f", o->seconds);
    if (isfinite(c->token_bytes[PE_AT_L])) {
        pe_table_number(t, row, k++, "%.3f", o->loss[PE_AT_L] / c->token_bytes[PE_AT_L]);
        pe_table_number(t, row, k++, "%.3f", o->loss[furthest] / c->token_bytes[furthest]);
    }
    assert(k == t->column_count);
}

/* Why encodings are missing that were asked for. */
static void add_absent_notes(const pe_compare *c, pe_table *t)
{
    for (int i = 0; i < c->absent_count; i++)
        pe_table_note(t, "%s does not apply: %s.", c->absent[i].label, c->absent[i].reason);
}

/* What can be told apart, and how many seeds would tell what cannot. */
static void add_resolution_note(const pe_compare *c, pe_table *t)
{
    const int seeds = c->seeds_to_settle[PE_AT_L];
    if (isnan(c->resolution[PE_AT_L]))
        return;
    pe_table_note(t, "Differences below %.3f at L and %.3f at x%lld are not called.", c->resolution[PE_AT_L],
                  c->resolution[pe_stats_furthest(c->config.preset.reach)],
                  (long long)c->config.preset.reach);
    if (seeds > PE_MOST_SEEDS)
        pe_table_note(t, "To tell which is best at L would take more than %d seeds.", PE_MOST_SEEDS);
    else if (seeds)
        pe_table_note(t, "To tell which is best at L would take about %d seeds.", seeds);
}

static void add_notes(const pe_compare *c, pe_table *t)
{
    const pe_preset *p       = &c->config.preset;
    int              starred = 0, undone = 0;
    for (int i = 0; i < c->count; i++) {
        starred |= c->outcomes[i].is_complete && c->outcomes[i].untrained_beyond;
        undone += !c->outcomes[i].is_complete;
    }
    pe_table_note(t,
                  "Nats per byte of held-out text (%lld windows of %lld bytes), after %lld steps at L = "
                  "%lld; lower is better.",
                  (long long)c->windows, (long long)(p->reach * p->L), (long long)p->steps, (long long)p->L);
    pe_table_note(
        t, "Objective: %s.%s", pe_outcome_objective(c->config.bidirectional),
        c->config.bidirectional
            ? " Each window is read in pieces of every length; the same 15 % of its bytes are hidden."
            : "");
    pe_table_note(t,
                  "Intervals: 95 %% of paired differences, for other windows of this text and other seeds.%s",
                  p->seeds > 1 ? "" : " One seed: how much seeds differ was measured beforehand.");
    if (p->seeds == 1 && (p->steps < MEASURED_STEPS || c->config.tokens))
        pe_table_note(
            t,
            "That was for bytes, after %d steps and more: %s differ by more from seed to seed, so that "
            "the intervals here are too narrow. --seeds 3 measures it.",
            MEASURED_STEPS, c->config.tokens ? "losses per token" : "models of fewer steps");
    add_resolution_note(c, t);
    if (c->trials->rate_count == 1)
        pe_table_note(
            t, "Learning rate: %g for every encoding; docs/experiments.md, section 18, has losses at others.",
            c->trials->rates[0]);
    if (starred)
        pe_table_note(
            t,
            "* untrained rows: a row per position is learned, and no training step reached those beyond L.");
    if (undone)
        pe_table_note(t, "%d of %d encodings did not finish and are left out.", undone, c->count);
    add_absent_notes(c, t);
}

posenc_status pe_summary_table(const pe_compare *c, pe_table *table, posenc_error *err)
{
    const int           count   = c->order_count;
    const int           verdict = 1 + 2 * pe_stats_furthest(c->config.preset.reach);
    const posenc_status status  = open_table(table, write_heads(c), count + c->absent_count, err);
    for (int row = 0; !status && row < count; row++)
        put_row(table, row, c, &c->outcomes[c->order[PE_AT_L][row]]);
    for (int i = 0; !status && i < c->absent_count; i++)
        for (int k = 0; k < table->column_count; k++) /* dashes where numbers would stand */
            pe_table_text(table, count + i, k,
                          k == 0         ? c->absent[i].label
                          : k == verdict ? "does not apply"
                                         : "-");
    if (!status)
        add_notes(c, table);
    return status;
}

/* ---------------------------------------------------------------- how rows enter ------------ */

/* Added or concatenated, at the input or in every block. One row per encoding at the input, with what the
   choice costs (parameters, time) and what it brings: the loss, and its paired difference from the same
   encoding, added, where that was trained too. The two columns of |cos| belong to the usual argument
   for adding, that random vectors of many dimensions are nearly orthogonal: they say how nearly the vectors
   that are combined are, before training, when tokens are random, and after it, when nothing is. */
/* clang-format off */
static const pe_column entry_columns[] = { /* ORDER put_row */
    {"input encoding", "as given on the command line, or by --combine", 1, 0},
    {"combine", "add: x = e + p; concat: x = [e; p] W, where W is learned and starts as the sum", 1, 0},
    {"inject", "input: before the first block; blocks: before every block", 1, 0},
    {"at L", "nats per byte at the training length", 0, 0},
    {"x@", "nats per byte at @ times the training length", 0, 0},
    {"minus added at L (95 %)", "difference from the same encoding, added, with its paired interval", 1, 0},
    {"minus added at x@ (95 %)", "the same at @ times the training length", 1, 0},
    {"params", "trained parameters of the whole model", 0, 0},
    {"own", "those of the encoding, and of W", 0, 0},
    {"k/s", "thousand bytes trained on per second, one thread", 0, 0},
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
    const pe_outcome *o        = &c->outcomes[index];
    const int         furthest = pe_stats_furthest(o->config.reach);
    int               column   = 0;
    pe_table_text(t, row, column++, o->label);
    pe_table_set(t, row, column++, "%s", pe_spec_combine_name(o->config.entry.combine));
    pe_table_set(t, row, column++, "%s", pe_spec_inject_name(o->config.entry.inject));
    pe_table_number(t, row, column++, "%.3f", o->loss[PE_AT_L]);
    pe_table_number(t, row, column++, "%.3f", o->loss[furthest]);
    put_to_sum(t, row, column++, c, index, PE_AT_L);
    put_to_sum(t, row, column++, c, index, furthest);
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
    head_list *h = calloc(1, sizeof *h);
    if (h)
        add_heads(h, entry_columns, COUNT(entry_columns), c->config.preset.reach, c->config.bidirectional);
    const posenc_status status = open_table(table, h, c->order_count, err);
    *is_plain                  = 1;
    if (!status)
        table->row_count = 0;
    for (int i = 0; i < c->order_count && !status; i++)
        if (pe_outcome_adds_rows(c->outcomes[c->order[PE_AT_L][i]].e)) {
            put_entry(table, table->row_count++, c, c->order[PE_AT_L][i]);
            *is_plain &= pe_spec_entry_is_default(&c->outcomes[c->order[PE_AT_L][i]].config.entry);
        }
    return status;
}

/* ---------------------------------------------------------------- checks, plan -------------- */

posenc_status pe_summary_checks(const pe_compare *c, pe_table *table, int whole, posenc_error *err)
{
    static const pe_column heads[] = {{"check", "number in docs/experiments.md", 0, 0},
                                      {"expected", "what must hold on an ordinary text", PE_WIDE, 0},
                                      {"result", "passed, FAILED, undecided or not applicable", PE_TEXT, 0},
                                      {"found", "what was measured, or why it cannot be judged", PE_WIDE, 0}};
    pe_check_result        all[PE_MOST_CHECKS];
    const int              count  = pe_claims_check(all, c);
    int                    passed = 0, silent = 0, row = 0;
    const posenc_status    status = pe_table_open(table, heads, COUNT(heads), count, err);
    for (const pe_check_result *r = all; !status && r < all + count; r++) {
        passed += r->verdict == PE_PASSED;
        silent += r->verdict == PE_NOT_APPLICABLE;
        if (!whole && (r->verdict == PE_PASSED || r->verdict == PE_NOT_APPLICABLE))
            continue;
        pe_table_set(table, row, 0, "%d", r->number);
        pe_table_text(table, row, 1, r->claim);
        pe_table_text(table, row, 2, pe_claims_verdict_name(r->verdict));
        pe_table_text(table, row, 3, r->found);
        pe_table_at(table, row++, 2)->kind = pe_claims_verdict_name(r->verdict);
    }
    if (!status && !whole)
        pe_table_note(table, "Checks: %s%d passed, %d not applicable.", row ? "those above; " : "", passed,
                      silent);
    table->row_count = row;
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
                                      {"settings", "those that differ from the encoding's defaults", PE_WIDE,
                                       0}};
    const posenc_status    status  = pe_table_open(table, heads, COUNT(heads), compare->count, err);
    for (int i = 0; !status && i < compare->count; i++) {
        const pe_outcome *o          = &compare->outcomes[i];
        char              places[64] = "", settings[PE_LONGEST_SPEC + 64];
        for (int k = 0; k < o->part_count; k++) /* "input", "rotary+score" */
            if (k == 0 || o->parts[k]->place != o->parts[k - 1]->place)
                snprintf(places + strlen(places), sizeof places - strlen(places), "%s%s", *places ? "+" : "",
                         posenc_place_name(o->parts[k]->place));
        pe_outcome_settings(settings, o);
        pe_table_text(table, i, 0, o->label);
        pe_table_text(table, i, 1, places);
        pe_table_text(table, i, 2, settings);
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
    if (p->positions)
        pe_table_note(table, "Training windows stand at positions %s; what is read, at 0, 1, 2 ...",
                      p->positions);
    add_trial_notes(compare, table);
    add_extension_note(compare, table);
    add_absent_notes(compare, table);
    pe_table_note(table,
                  "Text: %lld bytes, the last tenth held out; evaluated on %lld windows of %lld bytes.",
                  (long long)compare->text.size, (long long)compare->windows, (long long)(p->reach * p->L));
    if (compare->text.vocabulary)
        pe_table_note(table, "Vocabulary: %lld, the highest id plus 1.", (long long)compare->text.vocabulary);
    return POSENC_OK;
}
