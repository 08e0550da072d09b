/* SPDX-License-Identifier: MIT */
/* Which pair follows which coordinate: the expected rule, others, coordinates taken for each other. */
#include "diagnose/search.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_RULES = 40 };

/* Which pair follows which coordinate. */
typedef struct follow {
    char     settings[64];
    int      axes[PE_MOST_AXES];
    unsigned departs;
    double   disorder;
} follow;

static void add_follow(follow *list, int *count, const pe_search *s, const char *rule, unsigned departs)
{
    if (*count == MOST_RULES)
        return;
    follow *f = &list[(*count)++];
    *f        = (follow){.departs = departs};
    snprintf(f->settings, sizeof f->settings, "%s%s", *rule ? "axis_rule=" : "", rule);
    memcpy(f->axes, s->axes, sizeof f->axes);
}

/* The expected rule, others, and the expected one with coordinates taken for each other. */
static int list_follows(follow *list, pe_search *s)
{
    static const char *const rules[] = {"sections",
                                        "interleaved_sections",
                                        "interleaved_sections_ggml",
                                        "alternate_sections",
                                        "balanced",
                                        "axial",
                                        "axial_alternate",
                                        "alternate"};
    char                     value[64];
    int                      count = 0;
    pe_spec_said(value, sizeof value, s->base, "axis_rule");
    add_follow(list, &count, s, "", 0);
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(rules[i], *value ? value : "sections"))
            add_follow(list, &count, s, rules[i], 1u << PE_AXES);
    for (int way = 1; way < 27 && s->N <= 3; way++) {
        int is_identity = 1, is_possible = 1;
        for (int n = 0, left_over = way; n < s->N; n++, left_over /= 3) {
            s->axes[n] = (n + left_over) % 3;
            is_identity &= s->axes[n] == n;
            is_possible &= s->axes[n] < s->N;
        }
        if (is_possible && !is_identity)
            add_follow(list, &count, s, "", 1u << PE_AXES);
    }
    return count;
}

/* A rule by which pairs turn with no one speed is not tried: that would take long, and in vain. */
void pe_axes_try(pe_search *s, int p)
{
    follow    list[MOST_RULES];
    double    least = 1;
    const int count = s->N > 1 ? list_follows(list, s) : 0;
    if (s->N == 1)
        pe_schedules_try(s, p, "", 0);
    for (int i = 0; i < count; i++) {
        memcpy(s->axes, list[i].axes, sizeof s->axes);
        list[i].disorder = pe_numbers_of_axes(s, p, list[i].settings);
        least            = fmin(least, list[i].disorder);
    }
    for (int i = 0; i < count; i++) {
        memcpy(s->axes, list[i].axes, sizeof s->axes);
        if (list[i].disorder <= 3 * least + 0.02)
            pe_schedules_try(s, p, list[i].settings, list[i].departs);
    }
    for (int n = 0; n < PE_MOST_AXES; n++)
        s->axes[n] = n;
}
