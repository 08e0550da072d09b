/* SPDX-License-Identifier: MIT */
/* Pairs dealt out to coordinates. Contract: axes.h. */
#include "engine/axes.h"

#include "base/status.h"

/* What a rule asks of its sections. */
typedef enum need {
    NONE,
    ALL,
    SOME,
    EVEN
} need; /* none; a sum of M; one each; a sum of M or a plain division */

static const struct {
    const char *name;
    need        sections;
    int         coordinates; /* 0: any */
} rules[PE_AXIS_RULES] = {
    [PE_SECTIONS]                  = {"sections", ALL, 0},
    [PE_INTERLEAVED_SECTIONS]      = {"interleaved_sections", SOME, 0},
    [PE_INTERLEAVED_SECTIONS_GGML] = {"interleaved_sections_ggml", ALL, 4},
    [PE_ALTERNATE_SECTIONS]        = {"alternate_sections", ALL, 3},
    [PE_BALANCED]                  = {"balanced", ALL, 0},
    [PE_AXIAL]                     = {"axial", EVEN, 0},
    [PE_HALVES]                    = {"halves", EVEN, 0},
    [PE_AXIAL_ALTERNATE]           = {"axial_alternate", EVEN, 0},
    [PE_ALTERNATE]                 = {"alternate", EVEN, 0},
    [PE_MATRIX]                    = {"matrix", NONE, 0},
};

static int64_t total(const pe_axes *x)
{
    int64_t sum = 0;
    for (int n = 0; n < x->given; n++)
        sum += x->sections[n];
    return sum;
}

static int has_blocks(const pe_axes *x)
{
    return x->rule == PE_AXIAL || x->rule == PE_HALVES;
}

static posenc_status check_sections(const pe_axes *x, const char *who, posenc_error *err)
{
    const char *name = rules[x->rule].name;
    if (x->given != x->N)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "%s: axis_rule=%s needs sections, one for each of the %d axes, not %d", who, name,
                       x->N, x->given);
    if (rules[x->rule].sections != SOME && total(x) != x->M)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "%s: the sections add up to %lld pairs; they must be dim/2 = %lld", who,
                       (long long)total(x), (long long)x->M);
    if (x->rule == PE_ALTERNATE_SECTIONS && x->sections[0] != x->sections[1])
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "%s: axis_rule=%s takes sections h:w:t whose first two are equal, not %lld and %lld",
                       who, name, (long long)x->sections[0], (long long)x->sections[1]);
    return POSENC_OK;
}

posenc_status pe_axes_check(const pe_axes *x, const char *who, posenc_error *err)
{
    const need  sections = rules[x->rule].sections;
    const char *name     = rules[x->rule].name;
    if (x->N == 1 && x->given == 0)
        return POSENC_OK;
    if (rules[x->rule].coordinates && x->N != rules[x->rule].coordinates)
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: axis_rule=%s is for axes=%d, not %d", who, name,
                       rules[x->rule].coordinates, x->N);
    if (x->given && (sections == NONE || (sections == EVEN && !has_blocks(x))))
        return pe_fail(err, POSENC_ERROR_SETTING, "%s: axis_rule=%s takes no sections; leave them out", who,
                       name);
    if (sections == ALL || sections == SOME || x->given)
        return check_sections(x, who, err);
    if (sections == EVEN && x->M % x->N != 0)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "%s: axis_rule=%s deals out dim/2 = %lld pairs evenly; axes=%d must divide them", who,
                       name, (long long)x->M, x->N);
    return POSENC_OK;
}

int64_t pe_axis_block(const pe_axes *x, int n)
{
    return x->given ? x->sections[n] : x->M / x->N;
}

int64_t pe_axis_width(const pe_axes *x, int axis)
{
    if (has_blocks(x))
        return 2 * pe_axis_block(x, axis);
    return x->rule == PE_AXIAL_ALTERNATE ? 2 * (x->M / x->N) : 2 * x->M;
}

/* The section that holds pair m, and where it begins. */
static int section_of(const pe_axes *x, int64_t m, int64_t *start)
{
    int n  = 0;
    *start = 0;
    while (n < x->N - 1 && m >= *start + pe_axis_block(x, n))
        *start += pe_axis_block(x, n++);
    return n;
}

/* One pair after the other to the coordinate that has got the least of its share, but never twice in a row
   while others have some left; the last pair goes to coordinate 0, if there are three. */
static void deal_evenly(const pe_axes *x, int32_t axis[])
{
    int64_t left[PE_MAX_AXES], placed[PE_MAX_AXES] = {0};
    int     last = -1;
    for (int n = 0; n < x->N; n++)
        left[n] = x->sections[n] - (n == 0 && x->N > 2);
    for (int64_t m = 0; m < x->M; m++) {
        int best = -1;
        for (int again = 0; again < 2 && best < 0; again++) /* the second time the last one may come again */
            for (int n = 0; n < x->N; n++)
                if (left[n] > placed[n] && (n != last || again) &&
                    (best < 0 || placed[n] * left[best] < placed[best] * left[n]))
                    best = n;
        axis[m] = best < 0 ? 0 : best;
        placed[axis[m]]++;
        last = axis[m];
    }
}

static int32_t axis_of(const pe_axes *x, int64_t m)
{
    const int64_t in_turn = m % x->N, of_three = m % 3;
    int64_t       start;
    switch (x->rule) {
    case PE_INTERLEAVED_SECTIONS:
        return in_turn > 0 && m < x->N * x->sections[in_turn] ? (int32_t)in_turn : 0;
    case PE_INTERLEAVED_SECTIONS_GGML: return m < 3 * x->sections[of_three] ? (int32_t)of_three : 3;
    case PE_ALTERNATE_SECTIONS: return m < x->sections[0] + x->sections[1] ? (int32_t)(1 + m % 2) : 0;
    case PE_AXIAL_ALTERNATE: return (int32_t)in_turn;
    case PE_ALTERNATE: return (int32_t)(m / (x->M / x->N));
    case PE_SECTIONS:
    case PE_AXIAL:
    case PE_HALVES: return section_of(x, m, &start);
    default: return 0;
    }
}

static int64_t index_of(const pe_axes *x, int64_t m)
{
    int64_t start;
    switch (x->rule) {
    case PE_AXIAL:
    case PE_HALVES: section_of(x, m, &start); return m - start;
    case PE_AXIAL_ALTERNATE: return m / x->N;
    case PE_ALTERNATE: return x->N * (m % (x->M / x->N)) + m / (x->M / x->N);
    default: return m;
    }
}

void pe_axes_deal(const pe_axes *x, int32_t axis[], int32_t index[])
{
    for (int64_t m = 0; m < x->M; m++) {
        axis[m]  = x->N == 1 ? 0 : axis_of(x, m);
        index[m] = (int32_t)(x->N == 1 ? m : index_of(x, m));
    }
    if (x->rule == PE_BALANCED && x->N > 1)
        deal_evenly(x, axis);
}
