/* SPDX-License-Identifier: MIT */
/*
 * Wall attention: every channel forgets at its own rate
 *
 * Place    score: each channel of a product lets a share of the past through, by the tokens between
 * Formula  S[h,i,j] = scale * sum over channels n of q_in k_jn e^(G_in - G_jn), and gate=yes FoX's sum
 *          G_jn = ls(g_0n) + ... + ls(g_jn), ls(x) = -ln(1 + e^-x); of a query that of its own key
 * Learns   nothing here: g and f are token inputs, which the model makes
 * Source   fla, ops/wall_attn (Tilde 2026), whose g is the logarithm; here it is the logit
 *
 * A gate of 1 in all channels is plain attention. FoX adds to a score, this multiplies its channels. The
 * projection's bias starts at 8 (gates of 0.9997). Ahead of a query the factors are 1, so attention wants a
 * causal mask. Running sums are double, and no factor is above 1: engine/tiled/wall.c. A rotation turns pairs
 * of channels, which would be gated apart: it is refused.
 */
#include "encodings/encoding.h"
#include "engine/score/gates.h"

enum { GATE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"gate", "flag", "no", "yes|no", "a gate of the whole score besides, as fox has it"},
    {0},
};
static_assert(PE_ROWS(settings) == GATE + 1, "ORDER settings");

enum { G, F }; /* ORDER tokens */
static const posenc_token_info tokens[] = {
    {"g", "D", "the gate of a channel of a token is 1/(1 + e^-g)", 1, 8, 0, POSENC_TOKEN_PLAIN},
    {"f", "1", "gate=yes: the gate of a token is 1/(1 + e^-f)", 1, 5, 0, POSENC_TOKEN_PLAIN},
    {0},
};
static_assert(PE_ROWS(tokens) == F + 1, "ORDER tokens");

static int has_token(const pe_value *set, int index)
{
    return index == G || set[GATE].integer != 0;
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->wall = (pe_walled){1, G, pe_gates_log, pe_gates_log_back};
    if (p->set[GATE].integer)
        s->drift = (pe_drift){
            .kind = PE_DRIFT_GATES, .token = {F, F}, .gates = pe_gates_log, .gates_back = pe_gates_log_back};
}

const pe_encoding pe_wall = {
    .info.name        = "wall",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "gates of channels",
    .info.formula     = "S_{h,i,j} = frac{1}{sqrt{D}} ∑_{n=1}^D q_{i,n} k_{j,n} ∏_{l=j+1}^i a_{l,n} , "
                        "a_{l,n} = frac{1}{1 + e^{−x_{l,n}}}",
    .info.symbols     = "a_{l,n}: the gate of channel n of token l, what it lets through of all before it\n"
                        "l: a token between, the query among them\n"
                        "n: a channel of a head\n"
                        "x_{l,n}: the token input g of token l",
    .info.paper       = "fla-org/flash-linear-attention",
    .info.models      = "research",
    .info.beyond      = "Gates go on at any distance: what was forgotten within the trained length stays so.",
    .info.pictures    = "",
    .info.by_distance = 1,
    .info.sees        = "the gates of the tokens between, channel by channel, which follow their content",
    .info.causal_only = 1,
    .info.why_causal  = "ahead of a query no token gates it",
    .no_rotation      = "its channels have gates of their own, and a rotation would mix two of them",
    .operations       = "H*D*(7*Lk+2*Lq)",
    .has_token        = has_token,
    .attention.terms  = terms,
    PE_TOKENS(tokens),
    PE_SETTINGS(settings),
};
