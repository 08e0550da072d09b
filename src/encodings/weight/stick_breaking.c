/* SPDX-License-Identifier: MIT */
/*
 * Stick-breaking attention: the nearest keys take their share first
 *
 * Place    weight: in place of the softmax, of whatever scores stand beside it
 * Formula  A[h,i,j] = sigma(S_ij) times the product over the keys l between j and i of (1 - sigma(S_il))
 *          o_i = sum over j of A_ij v_j, and (remainder=self) what all keys leave times the query's own value
 * Learns   nothing
 * Source   Tan et al. 2024, arXiv:2410.17980; shawntan/stickbreaking-attention
 *
 * Weights sum to 1 or less: no softmax, so no sink and no largest score to subtract. Of two keys with equal
 * scores the nearer one gets more, which is a sense of order without a position. lse of a run is the
 * logarithm of what is left; parts of the keys are joined by it, from the right. How: engine/score/stick.c.
 */
#include "encodings/encoding.h"

enum { ATTEND_CURRENT, REMAINDER }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"attend_current", "flag", "no", "yes|no", "a query sees the key at its own position too"},
    {"remainder", "word", "none", "none|self", "self: what all keys leave goes to the query's own value"},
    {0},
};
static_assert(PE_ROWS(settings) == REMAINDER + 1, "ORDER settings");

static void terms(const pe_problem *p, pe_terms *s)
{
    s->stick = (pe_stick){1, (int)p->set[ATTEND_CURRENT].integer, p->set[REMAINDER].integer == 1};
}

const pe_encoding pe_stick_breaking = {
    .info.name  = "stick_breaking",
    .info.place = POSENC_PLACE_WEIGHT,
    .info.title = "weights that break a stick",
    .info.formula = "o_i = ∑_{j<i} A_{i,j} v_j , A_{i,j} = σ(S_{i,j}) ∏_{l=j+1}^{i−1} (1 − σ(S_{i,l}))",
    .info.symbols  = "A_{i,j}: the weight of key j, its share of what the keys behind it have left\n"
                     "S: the scores\n"
                     "l: a key between key and query\n"
                     "σ: 1/(1 + e^{−x})",
    .info.paper    = "arXiv:2410.17980",
    .info.models   = "research",
    .info.beyond   = "Near keys take their share first at any length; what lies behind gets what they leave.",
    .info.pictures = "",
    .info.by_distance      = 1,
    .info.sees             = "the scores of the keys between, which follow their content",
    .info.replaces_softmax = 1,
    .info.causal_only      = 1,
    .info.why_causal       = "keys take their share in their order, from the query on to the left",
    .operations            = "H*Lq*(3*Lk+remainder*(1+2*Dv))",
    .attention.terms       = terms,
    PE_SETTINGS(settings),
};
