/* SPDX-License-Identifier: MIT */
/*
 * entries.c: the table of how rows enter: added or concatenated, at the input or in every block
 *
 * One row per encoding at the input, with what the choice costs (parameters, time) and what it brings: the
 * loss, and its paired difference to the same encoding, added, where that was trained beside it. The two
 * columns of |cos| belong to the usual argument for adding, that random vectors of many dimensions are nearly
 * orthogonal: they say how nearly the vectors that meet are, before training, when tokens are random, and
 * after it, when nothing is.
 */
#include "train/outcome.h"

#include "train/fail.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define COUNT(a) ((int)(sizeof(a) / sizeof *(a)))

/* clang-format off */
static const pe_column columns[] = { /* ORDER put_row */
    {"input encoding", "as it was asked for, or as --combine named it", 1, 0},
    {"combine", "add: x = e + p; concat: x = [e; p] W, where W is learned and starts as the sum", 1, 0},
    {"inject", "input: before the first block; blocks: before every block", 1, 0},
    {"at L", "nats per byte at the training length", 0, 0},
    {"x8", "nats per byte at eight times the training length", 0, 0},
    {"to its sum at L (95 %)", "difference to the same encoding, added, with its paired interval", 1, 0},
    {"to its sum at x8 (95 %)", "the same at eight times the training length", 1, 0},
    {"params", "numbers that training changes, of the whole model", 0, 0},
    {"own", "of these the encoding's own, and W", 0, 0},
    {"kB/s", "thousand bytes trained on per second, one thread", 0, 0},
    {"s", "seconds for training and evaluation, one thread, mean over seeds", 0, 0},
    {"|cos| before", "mean |cos| between what enters of a token and of a position, before training", 0, 0},
    {"after", "the same after training", 0, 0},
};
/* clang-format on */

static void put_difference(pe_table *t, int row, int column, const pe_compare *c, int index, int bucket)
{
    const int sum = pe_outcome_sum_of(c, index);
    if (sum < 0 || c->outcomes[index].diverged || c->outcomes[sum].diverged) {
        pe_table_set(t, row, column, "-");
        return;
    }
    const pe_interval d = pe_outcomes_difference(c, index, sum, bucket);
    pe_table_set(t, row, column, "%+.3f (%+.3f to %+.3f)", d.value, d.low, d.high);
}

static void put_number(pe_table *t, int row, int column, const char *format, double x)
{
    char text[64];
    snprintf(text, sizeof text, format, x);
    pe_table_set(t, row, column, "%s", isnan(x) ? "-" : text);
}

static void put_row(pe_table *t, int row, const pe_compare *c, int index)
{
    const pe_outcome *o      = &c->outcomes[index];
    int               column = 0;
    pe_table_set(t, row, column++, "%s", o->label);
    pe_table_set(t, row, column++, "%s", pe_combine_name(o->config.entry.combine));
    pe_table_set(t, row, column++, "%s", pe_inject_name(o->config.entry.inject));
    put_number(t, row, column++, "%.3f", o->loss[PE_AT_L]);
    put_number(t, row, column++, "%.3f", o->loss[PE_AT_8L]);
    put_difference(t, row, column++, c, index, PE_AT_L);
    put_difference(t, row, column++, c, index, PE_AT_8L);
    pe_table_set(t, row, column++, "%lld", (long long)o->runs[0].parameters);
    pe_table_set(t, row, column++, "%lld", (long long)o->runs[0].encoding_parameters);
    put_number(t, row, column++, "%.0f", o->runs[0].tokens_per_second / 1000);
    put_number(t, row, column++, "%.1f", o->seconds);
    put_number(t, row, column++, "%.3f", o->cosine_before);
    put_number(t, row, column++, "%.3f", o->cosine_after);
    assert(column == COUNT(columns));
}

/* The complete outcomes of the kind, best first; returns their count. */
static int choose(const pe_compare *c, int *order)
{
    int count = 0;
    for (int i = 0, n = pe_outcomes_order(c, order); i < n; i++)
        if (pe_outcome_meets(&c->outcomes[order[i]]))
            order[count++] = order[i];
    return count;
}

posenc_status pe_compare_entries(const pe_compare *compare, pe_table *table, int *is_plain, posenc_error *err)
{
    int      *order   = malloc((size_t)compare->count * sizeof *order);
    const int count   = order ? choose(compare, order) : 0;
    const int is_made = pe_table_create(table, columns, COUNT(columns), count);
    *is_plain         = 1;
    for (int row = 0; is_made && row < count; row++) {
        put_row(table, row, compare, order[row]);
        *is_plain &= pe_entry_is_standard(&compare->outcomes[order[row]].config.entry);
    }
    free(order);
    if (order && is_made)
        return POSENC_OK;
    pe_table_free(table);
    return pe_train_fail(err, POSENC_MEMORY, "compare: no memory for a table");
}
