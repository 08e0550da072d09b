/* SPDX-License-Identifier: MIT */
/*
 * run_check.c: whether a run can be done, before anything is made for it
 *
 * Numbers must lie within bounds, and the text must be long enough on both of its sides: one window of L to
 * train on, and all windows of 8 L that are held out. What a model can be made of (widths, heads, the
 * encoding) is model.c's to refuse.
 */
#include "train/fail.h"
#include "train/run_parts.h"

static posenc_status check_numbers(const pe_run_config *c, posenc_error *err)
{
    const struct {
        const char *name;
        double      value, low, high;
    } rows[] = {{"L", (double)c->L, 1, 1e6},
                {"steps", (double)c->steps, 1, 1e9},
                {"warmup", (double)c->warmup, 0, 1e9},
                {"windows", (double)c->windows, 1, 1e9},
                {"bidirectional", (double)c->bidirectional, 0, 1},
                {"learning_rate", c->learning_rate, 0, 1e3},
                {"weight_decay", c->weight_decay, 0, 1e3},
                {"clip", c->clip, 0, 1e9}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= rows[i].low && rows[i].value <= rows[i].high))
            return pe_train_fail(err, POSENC_ARGUMENT, "run: %s is %g; it must be %g to %g", rows[i].name,
                                 rows[i].value, rows[i].low, rows[i].high);
    return POSENC_OK;
}

static posenc_status check_text(const pe_run_config *c, posenc_error *err)
{
    const pe_text *t = c->text;
    if (!t || !t->bytes || t->train_size < 0 || t->train_size > t->size)
        return pe_train_fail(err, POSENC_ARGUMENT, "run: text has no bytes, or its training part exceeds it");
    if (t->train_size <= c->L)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "run: the training part of the text has %lld bytes; training at length %lld needs at "
            "least %lld: give a longer text",
            (long long)t->train_size, (long long)c->L, (long long)c->L + 1);
    const int64_t windows = pe_text_windows(t, c->L);
    if (windows < c->windows)
        return pe_train_fail(
            err, POSENC_ARGUMENT,
            "run: the held-out part of the text has %lld bytes; %lld window(s) of %lld predictions "
            "need %lld: give a longer text",
            (long long)(t->size - t->train_size), (long long)c->windows, (long long)(PE_REACH * c->L),
            (long long)(c->windows * PE_REACH * c->L + 1));
    return POSENC_OK;
}

posenc_status pe_run_check(const pe_run_config *c, posenc_error *err)
{
    const posenc_status status = check_numbers(c, err);
    return status ? status : check_text(c, err);
}
