/* SPDX-License-Identifier: MIT */
/*
 * order.c: which pairs are settled, and how alike two orders are. Contract: order.h.
 *
 * Settled   A difference counts at a level where it exceeds the resolution there. A pair is settled if the
 *           same one is better at every level, if the difference counts at the two last, and if it would
 *           still count after 64 times the steps, were it to shrink on as it did since the first level.
 * Groups    The order of the last level is cut wherever all pairs across the cut are settled. So items of
 *           two groups are in a settled order, and those of one group are not all.
 * tau-b     Kendall 1945: with s = 1, 0 or -1 for each pair, 0 where the difference does not count, the sum
 *           of s s' over the square root of (sum of s^2)(sum of s'^2). 1: the same order, -1: the reverse.
 *
 * Source    Kendall 1945, "The treatment of ties in ranking problems", Biometrika 33, 239-251.
 */
#include "train/run/order.h"

#include "base/status.h"
#include "train/run/stats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN_PAIRS = 6 };

static double loss_at(const pe_order_losses *q, int level, int item)
{
    return q->losses[level * q->items + item];
}

/* The sign of b - a at a level where it counts; 0 where it does not; NaN where it was not measured. */
static double sign_of(const pe_order_losses *q, int level, int a, int b)
{
    const double d = loss_at(q, level, b) - loss_at(q, level, a);
    if (isnan(d))
        return NAN;
    return fabs(d) > q->resolution(q->self, level, a, b) ? copysign(1, d) : 0;
}

/* ---------------------------------------------------------------- pairs --------------------- */

/* What the levels before the last say of a pair. */
typedef struct history {
    int first, previous; /* level: the first and the last of them that were measured; -1: none */
    int reversed;        /* the other order at one of them; 2: by a difference that counts */
} history;

static history look_back(const pe_order_losses *q, const pe_order_pair *p)
{
    history h = {-1, -1, 0};
    for (int k = 0; k + 1 < q->levels; k++) {
        const double sign = sign_of(q, k, p->better, p->worse);
        if (isnan(sign))
            continue;
        h.first    = h.first < 0 ? k : h.first;
        h.previous = k;
        if (p->difference[k] < 0 && h.reversed < 2)
            h.reversed = sign < 0 ? 2 : 1;
    }
    return h;
}

/* Would nothing that counts be left after 64 times the steps? From the first level, a quarter of the steps,
   to the last the difference has shrunk by a factor; that many steps are three times that factor. (After 16
   times the steps, pairs that only just passed had changed places: docs/experiments.md, section 21.) */
static int is_closing(const pe_order_losses *q, const pe_order_pair *p, double first, double last)
{
    const double share = last / first;
    return share < 1 &&
           last * share * share * share < q->resolution(q->self, q->levels - 1, p->better, p->worse);
}

static void judge_pair(const pe_order_losses *q, pe_order_pair *p)
{
    const int     last = q->levels - 1, counts = sign_of(q, last, p->better, p->worse) > 0;
    const history h      = look_back(q, p);
    const int     before = h.previous >= 0 && sign_of(q, h.previous, p->better, p->worse) != 0;
    const struct {
        int           applies;
        pe_pair_state state;
        const char   *reason;
    } rules[] = {{h.previous < 0, PE_PAIR_UNMEASURED, "not measured with less training"},
                 {!counts && !before, PE_PAIR_TIED, NULL},
                 {!counts, PE_PAIR_MOVING, "apart before, not now"},
                 {h.reversed == 2, PE_PAIR_CROSSED, "crossed"},
                 {!before, PE_PAIR_MOVING, "apart only now"},
                 {h.reversed == 1, PE_PAIR_MOVING, "order changed"},
                 {h.previous >= 0 && is_closing(q, p, p->difference[h.first], p->difference[last]),
                  PE_PAIR_MOVING, "closing"},
                 {1, PE_PAIR_SETTLED, NULL}};
    int rule  = 0;
    while (!rules[rule].applies)
        rule++;
    p->state  = rules[rule].state;
    p->reason = rules[rule].reason;
}

static void fill_pairs(pe_order *o, const pe_order_losses *q)
{
    for (int i = 0; i < o->ranked; i++)
        for (int j = i + 1; j < o->ranked; j++) {
            pe_order_pair *p = &o->pairs[o->pair_count++];
            p->better        = o->sorted[i];
            p->worse         = o->sorted[j];
            for (int k = 0; k < q->levels; k++)
                p->difference[k] = loss_at(q, k, p->worse) - loss_at(q, k, p->better);
            judge_pair(q, p);
        }
}

/* ---------------------------------------------------------------- groups, tau --------------- */

/* Position of the last item that is bound to one at or before position i by a pair that is not settled:
   pairs[] has those of position 0 first, then those of position 1 ... */
static void fill_groups(pe_order *o)
{
    int                  bound = 0;
    const pe_order_pair *p     = o->pairs;
    for (int i = 0; i < o->items; i++)
        o->group[i] = -1;
    for (int i = 0; i < o->ranked; i++) {
        o->groups += i == 0 || i > bound;
        o->group[o->sorted[i]] = o->groups - 1;
        bound                  = bound < i ? i : bound;
        for (int j = i + 1; j < o->ranked; j++, p++)
            if (p->state != PE_PAIR_SETTLED && j > bound)
                bound = j;
    }
}

static double tau_of(const pe_order_losses *q, int level)
{
    double both = 0, here = 0, there = 0;
    for (int a = 0; a < q->items; a++)
        for (int b = a + 1; b < q->items; b++) {
            const double s = sign_of(q, level, a, b), t = sign_of(q, q->levels - 1, a, b);
            if (isnan(s) || isnan(t))
                continue;
            both += s * t;
            here += s * s;
            there += t * t;
        }
    return here > 0 && there > 0 ? both / sqrt(here * there) : NAN;
}

posenc_status pe_order_create(pe_order **order, const pe_order_losses *q, posenc_error *err)
{
    const size_t  n    = (size_t)q->items;
    const double *last = q->losses + (q->levels - 1) * q->items;
    pe_order     *o = *order = calloc(1, sizeof *o);
    if (o) {
        o->sorted = malloc((n + 1) * sizeof *o->sorted);
        o->group  = malloc((n + 1) * sizeof *o->group);
        o->pairs  = calloc(n * n / 2 + 1, sizeof *o->pairs);
    }
    if (!o || !o->sorted || !o->group || !o->pairs) {
        pe_order_free(o);
        *order = NULL;
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the order of %d encodings",
                       q->items);
    }
    o->items  = q->items;
    o->levels = q->levels;
    for (int i = 0; i < q->items; i++)
        if (!isnan(last[i]))
            o->sorted[o->ranked++] = i;
    pe_stats_sort(o->sorted, last, o->ranked);
    fill_pairs(o, q);
    fill_groups(o);
    for (int k = 0; k < q->levels; k++)
        o->tau[k] = tau_of(q, k);
    return POSENC_OK;
}

void pe_order_free(pe_order *order)
{
    if (!order)
        return;
    free(order->sorted);
    free(order->group);
    free(order->pairs);
    free(order);
}

/* ---------------------------------------------------------------- words --------------------- */

const char *pe_order_state_name(pe_pair_state state)
{
    static const char *const names[] = {"settled", "tied", "still moving", "crossed", "not measured"};
    return names[state]; /* ORDER pe_pair_state */
}

static void append(char *text, size_t n, const char *a, const char *b)
{
    const size_t used = strlen(text);
    snprintf(text + used, n - used, "%s%s", a, b);
}

/* Is the item at position i of the order the first or the last of its group? */
static int begins(const pe_order *o, int i)
{
    return i == 0 || o->group[o->sorted[i]] != o->group[o->sorted[i - 1]];
}

static int ends(const pe_order *o, int i)
{
    return i + 1 == o->ranked || begins(o, i + 1);
}

void pe_order_write_groups(char *text, size_t n, const pe_order *o, const char *const *labels)
{
    text[0] = 0;
    for (int i = 0; i < o->ranked; i++) {
        append(text, n, i == 0 ? "" : begins(o, i) ? " < " : ", ", begins(o, i) && !ends(o, i) ? "{" : "");
        append(text, n, labels[o->sorted[i]], ends(o, i) && !begins(o, i) ? "}" : "");
    }
}

void pe_order_write(char *text, size_t n, const pe_order *o, const char *const *labels)
{
    char pair[600], count[32];
    int  open = 0;
    pe_order_write_groups(text, n, o, labels);
    for (const pe_order_pair *p = o->pairs; p < o->pairs + o->pair_count; p++) {
        if (!p->reason || ++open > SHOWN_PAIRS)
            continue;
        snprintf(pair, sizeof pair, "%.250s, %.250s (%s)", labels[p->better], labels[p->worse], p->reason);
        append(text, n, open == 1 ? "; not settled: " : "; ", pair);
    }
    snprintf(count, sizeof count, "; and %d more", open - SHOWN_PAIRS);
    if (open > SHOWN_PAIRS)
        append(text, n, count, "");
}
