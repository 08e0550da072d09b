/* SPDX-License-Identifier: MIT */
/*
 * advice.c: who is recommended. Contract: advice.h.
 *
 * Everybody is compared with the first, the one with the least number. Who is behind it by an interval that
 * is clear of zero, and by more than the resolution, is out. The others are level with it: in the group if
 * they differ by less than what matters, else doubtful. One whose order with the first still changes with the
 * training is doubtful too.
 */
#include "train/report/advice.h"

#include <math.h>

static int first_of(const pe_contest *c)
{
    int first = -1;
    for (int i = 0; i < c->count; i++)
        if (!isnan(c->value[i]) && (first < 0 || c->value[i] < c->value[first]))
            first = i;
    return first;
}

/* Into a list in the order of their numbers. */
static void add(int *list, int *count, const double *value, int candidate)
{
    int at = *count;
    if (at == PE_MOST_ADVISED)
        return;
    for (; at > 0 && value[list[at - 1]] > value[candidate]; at--)
        list[at] = list[at - 1];
    list[at] = candidate;
    ++*count;
}

/* Returns whether the other is in the group, and may differ from the first by what matters. */
static int place(pe_advice *a, const pe_contest *c, int other, int first)
{
    const pe_interval d         = c->behind(c->self, other, first);
    const int         is_level  = !(d.low > 0) || d.value < c->resolution;
    const int         is_moving = c->is_moving && c->is_moving(c->self, other, first);
    const int         is_near   = is_level && d.value < c->margin;
    if (is_near)
        add(a->group, &a->count, c->value, other);
    else if (is_level || is_moving)
        add(a->doubtful, &a->doubtful_count, c->value, other);
    return is_near && c->matters > 0 && d.high > c->matters;
}

pe_advice pe_advice_decide(const pe_contest *c)
{
    const int first = first_of(c);
    int       part = 0, wide = 0;
    pe_advice a = {.confidence = PE_NOBODY};
    if (first < 0)
        return a;
    add(a.group, &a.count, c->value, first);
    for (int i = 0; i < c->count; i++) {
        part += !isnan(c->value[i]);
        if (i != first && !isnan(c->value[i]))
            wide += place(&a, c, i, first);
    }
    a.confidence = c->value[first] > c->most ? PE_FAILED_ALL
                   : part == 1               ? PE_SINGLE
                   : a.doubtful_count + wide ? PE_OPEN
                   : a.count > 1             ? PE_TIE
                                             : PE_SETTLED;
    return a;
}

const char *pe_advice_name(pe_confidence confidence)
{
    static const char *const names[] = {"settled",      "a tie",       "open", "nothing to compare with",
                                        "none does it", "not measured"}; /* ORDER pe_confidence */
    return names[confidence];
}
