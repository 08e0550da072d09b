/* SPDX-License-Identifier: MIT */
/*
 * What of an order is settled: pairs of all kinds by hand, groups against every possible cut, and Kendall's
 * tau against counts of pairs.
 */
#include "train/run/order.h"

#include <posenc/registry.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define RESOLUTION 0.02

static double same_everywhere(const void *self, int level, int a, int b)
{
    (void)level;
    (void)a;
    (void)b;
    return *(const double *)self;
}

static pe_order *order_of(int items, int levels, const double *losses, const double *resolution)
{
    pe_order             *o;
    const pe_order_losses q = {items, levels, losses, same_everywhere, resolution};
    assert_int_equal(pe_order_create(&o, &q, NULL), POSENC_OK);
    return o;
}

/* ---------------------------------------------------------------- pairs --------------------- */

typedef struct pair_case {
    double        difference[3]; /* second - first, at each of three levels */
    pe_pair_state state;
    const char   *reason;
} pair_case;

static void a_pair_is_judged_by_all_levels(void **state)
{
    static const double    resolution = RESOLUTION;
    static const pair_case cases[]    = {
           {{0.05, 0.06, 0.07}, PE_PAIR_SETTLED, NULL},
           {{0.01, 0.05, 0.07}, PE_PAIR_SETTLED, NULL}, /* the first need not count, if it is not reversed */
           {{0.07, 0.065, 0.06}, PE_PAIR_SETTLED, NULL},
           {{0.00, 0.01, 0.01}, PE_PAIR_TIED, NULL},
           {{0.30, 0.01, 0.01}, PE_PAIR_TIED, NULL},
           {{0.10, 0.03, 0.01}, PE_PAIR_MOVING, "apart before, not now"},
           {{0.01, 0.01, 0.03}, PE_PAIR_MOVING, "apart only now"},
           {{-0.01, 0.03, 0.05}, PE_PAIR_MOVING, "order changed"},
           {{0.20, 0.15, 0.09}, PE_PAIR_MOVING, "closing"},
           {{0.40, 0.25, 0.24}, PE_PAIR_SETTLED, NULL}, /* 0.052 after 64 times the steps */
           {{0.40, 0.25, 0.18}, PE_PAIR_MOVING, "closing"},
           {{-0.05, 0.03, 0.05}, PE_PAIR_CROSSED, "crossed"},
           {{0.05, -0.03, 0.05}, PE_PAIR_CROSSED, "crossed"},
           {{NAN, 0.05, 0.05}, PE_PAIR_SETTLED, NULL}, /* that level says nothing */
           {{0.05, NAN, 0.05}, PE_PAIR_SETTLED, NULL},
           {{NAN, NAN, 0.05}, PE_PAIR_UNMEASURED, "not measured with less training"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int swap = 0; swap < 2; swap++) { /* whichever of the two is named first */
            double losses[6];
            for (int k = 0; k < 3; k++) {
                losses[2 * k + swap]  = 2;
                losses[2 * k + !swap] = 2 + cases[i].difference[k];
            }
            pe_order            *o = order_of(2, 3, losses, &resolution);
            const pe_order_pair *p = &o->pairs[0];
            if (p->state != cases[i].state || (p->reason && strcmp(p->reason, cases[i].reason) != 0))
                fail_msg("case %zu: %s, %s", i, pe_order_state_name(p->state), p->reason ? p->reason : "-");
            assert_true(!p->reason == !cases[i].reason);
            assert_int_equal(p->better, swap);
            assert_int_equal(o->groups, cases[i].state == PE_PAIR_SETTLED ? 2 : 1);
            pe_order_free(o);
        }
}

static void what_has_no_loss_at_the_end_is_not_ranked(void **state)
{
    static const double resolution = RESOLUTION;
    static const double losses[]   = {2, 1, 3, 2, NAN, 3};
    (void)state;
    pe_order *o = order_of(3, 2, losses, &resolution);
    assert_int_equal(o->ranked, 2);
    assert_int_equal(o->group[1], -1);
    assert_int_equal(o->pair_count, 1);
    assert_int_equal(o->sorted[0], 0);
    assert_int_equal(o->sorted[1], 2);
    pe_order_free(o);
}

/* ---------------------------------------------------------------- groups -------------------- */

static int is_cut(const pe_order *o, int before)
{
    for (const pe_order_pair *p = o->pairs; p < o->pairs + o->pair_count; p++) {
        int better = 0, worse = 0;
        for (int i = 0; i < before; i++) {
            better |= o->sorted[i] == p->better;
            worse |= o->sorted[i] == p->worse;
        }
        if (better && !worse && p->state != PE_PAIR_SETTLED)
            return 0;
    }
    return 1;
}

static void groups_are_cut_wherever_all_pairs_across_are_settled(void **state)
{
    enum { ITEMS = 7, LEVELS = 3, ROUNDS = 300 };
    static const double resolution = 0.1;
    int                 cuts = 0, joints = 0;
    (void)state;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        double losses[LEVELS * ITEMS];
        for (int i = 0; i < LEVELS * ITEMS; i++)
            losses[i] = 0.25 * (i % ITEMS) + 0.4 * posenc_random_uniform(round, "losses", (uint64_t)i);
        pe_order *o = order_of(ITEMS, LEVELS, losses, &resolution);
        for (int i = 1; i < ITEMS; i++) {
            const int cut = o->group[o->sorted[i]] != o->group[o->sorted[i - 1]];
            assert_int_equal(cut, is_cut(o, i));
            cuts += cut;
            joints += !cut;
        }
        assert_int_equal(o->group[o->sorted[ITEMS - 1]] + 1, o->groups);
        pe_order_free(o);
    }
    assert_true(cuts > 100 && joints > 100);
}

/* ---------------------------------------------------------------- Kendall's tau ------------- */

static void tau_counts_pairs_and_knows_ties(void **state)
{
    static const double none = 0, some = RESOLUTION;
    static const double swapped[] = {2, 1, 4, 3, 1, 2, 3, 4}; /* 4 pairs alike, 2 reversed of 6 */
    static const double tied[]    = {1, 3, 2, 3, 1, 2, 3, 4}; /* 4 alike, 1 reversed, 1 tied */
    static const double reverse[] = {3, 2, 1, 1, 2, 3};
    static const double close[]   = {1.01, 1, 2, 1, 1.01, 2}; /* the first two are tied in both */
    static const double nothing[] = {1, 1.01, 1, 2};          /* no order at the first level */
    pe_order           *o;
    (void)state;
    o = order_of(4, 2, swapped, &none);
    assert_true(fabs(o->tau[0] - 2.0 / 6) < 1e-12 && fabs(o->tau[1] - 1) < 1e-12);
    pe_order_free(o);
    o = order_of(4, 2, tied, &none);
    assert_true(fabs(o->tau[0] - 3 / sqrt(5.0 * 6)) < 1e-12);
    pe_order_free(o);
    o = order_of(3, 2, reverse, &none);
    assert_true(fabs(o->tau[0] + 1) < 1e-12);
    pe_order_free(o);
    o = order_of(3, 2, close, &some);
    assert_true(fabs(o->tau[0] - 1) < 1e-12);
    pe_order_free(o);
    o = order_of(2, 2, nothing, &some);
    assert_true(isnan(o->tau[0]) && fabs(o->tau[1] - 1) < 1e-12);
    pe_order_free(o);
}

/* ---------------------------------------------------------------- words --------------------- */

static void the_line_joins_what_is_not_settled(void **state)
{
    static const double      resolution = RESOLUTION;
    static const char *const labels[]   = {"a", "b", "c", "d", "e"};
    static const double      losses[]   = {1.00, 1.01, 1.50, 2.10, 2.00, /* d and e cross, a and b are tied */
                                           1.01, 1.00, 1.50, 2.00, 2.10};
    char                     text[400];
    (void)state;
    pe_order *o = order_of(5, 2, losses, &resolution);
    pe_order_write(text, sizeof text, o, labels);
    assert_string_equal(text, "{b, a} < c < {d, e}; not settled: d, e (crossed)");
    pe_order_free(o);
}

static void a_long_line_counts_what_it_does_not_show(void **state)
{
    enum { ITEMS = 5 };
    static const double      resolution = RESOLUTION;
    static const char *const labels[]   = {"a", "b", "c", "d", "e"};
    double                   losses[2 * ITEMS];
    char                     text[400], shorter[20];
    (void)state;
    for (int i = 0; i < ITEMS; i++) { /* all ten pairs cross */
        losses[i]         = 2 - 0.1 * i;
        losses[ITEMS + i] = 1 + 0.1 * i;
    }
    pe_order *o = order_of(ITEMS, 2, losses, &resolution);
    pe_order_write(text, sizeof text, o, labels);
    assert_non_null(strstr(text, "{a, b, c, d, e}; not settled: a, b (crossed); a, c"));
    assert_non_null(strstr(text, "; and 4 more"));
    pe_order_write(shorter, sizeof shorter, o, labels);
    assert_int_equal(strlen(shorter), sizeof shorter - 1);
    pe_order_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_is_judged_by_all_levels),
        cmocka_unit_test(what_has_no_loss_at_the_end_is_not_ranked),
        cmocka_unit_test(groups_are_cut_wherever_all_pairs_across_are_settled),
        cmocka_unit_test(tau_counts_pairs_and_knows_ties),
        cmocka_unit_test(the_line_joins_what_is_not_settled),
        cmocka_unit_test(a_long_line_counts_what_it_does_not_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
