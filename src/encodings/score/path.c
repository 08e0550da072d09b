/* SPDX-License-Identifier: MIT */
/*
 * PaTH: positions by accumulated Householder transformations
 *
 * Place    score: every token between key and query transforms the query
 * Formula  S[h,i,j] = scale * q_i^T H_i H_{i-1} ... H_{j+1} k_j (+ drift),  H_l = I - beta_l w_l w_l^T
 *          w_l and beta_l the token inputs w and beta of token l; with a gate the drift of fox, made of f
 * Learns   nothing here: the model makes w, beta and f
 * Source   Yang et al. 2025, arXiv:2505.16381; fla, path_attn
 *
 * w is meant to be of unit length and beta to be from 0 to 2 (a mirror); neither is checked, and nothing is
 * normalised here. The authors make w of a projection of rank 32, a causal depthwise convolution of three
 * taps, SiLU and a norm, beta of 2 sigmoid(.), and leave out RoPE. Under gate=scaled the drift is multiplied
 * by the scale, as in fla's PaTH (and not in its FoX). Ahead of a query no token transforms it.
 *
 * Beta near 2 in bf16 makes a chain that grows, for the rounded H stretches; floats and doubles do not.
 */
#include "encodings/encoding.h"
#include "engine/score/gates.h"

enum { GATE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"gate", "word", "none", "none|plain|scaled",
     "plain: with the drift of fox, from the token input f; scaled: with that times scale"},
    {0},
};
static_assert(PE_ROWS(settings) == GATE + 1, "ORDER settings");

enum { W, BETA, F }; /* ORDER tokens */
static const posenc_token_info tokens[] = {
    {"w", "D", "the direction of a token's transformation, of unit length", 1, 0, 1, POSENC_TOKEN_UNIT},
    {"beta", "1", "how far it goes: 0 not at all, 1 w is erased, 2 it is mirrored", 1, 0, 1,
     POSENC_TOKEN_UP_TO_2},
    {"f", "1", "gate=plain, scaled: the gate of a token is 1/(1 + e^-f)", 1, 5, 0, POSENC_TOKEN_PLAIN},
    {0},
};
static_assert(PE_ROWS(tokens) == F + 1, "ORDER tokens");

static int has_token(const pe_value *set, int index)
{
    return index != F || set[GATE].integer != 0;
}

static double factor(const pe_problem *p)
{
    return p->set[GATE].integer == 2 ? p->scale : 1;
}

static void gates(const pe_problem *p, const double x[], int64_t n, double log_gate[])
{
    pe_gates_log(p, x, n, log_gate);
    for (int64_t i = 0; i < n; i++)
        log_gate[i] *= factor(p);
}

static void gates_back(const pe_problem *p, const double x[], int64_t n, double dx[])
{
    for (int64_t i = 0; i < n; i++)
        dx[i] *= factor(p) * pe_gates_share(x[i]);
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->chain = (pe_chain){1, W, BETA};
    if (p->set[GATE].integer)
        s->drift =
            (pe_drift){.kind = PE_DRIFT_GATES, .token = {F, F}, .gates = gates, .gates_back = gates_back};
}

const pe_encoding pe_path = {
    .info.name  = "path",
    .info.place = POSENC_PLACE_SCORE,
    .info.title = "transformations by the tokens between",
    .info.formula = "S_{h,i,j} = frac{q_i^⊤ H_i H_{i−1} ⋯ H_{j+1} k_j}{sqrt{D}} , H_l = I − β_l w_l w_l^⊤",
    .info.symbols     = "H_l: what token l does to every query that looks past it\n"
                        "l: a token between, the query among them\n"
                        "w_l: the token input w of token l, of unit length\n"
                        "β_l: the token input beta of token l, from 0 to 2\n"
                        "I: the identity",
    .info.paper       = "arXiv:2505.16381",
    .info.models      = "research",
    .info.beyond      = "Transformations go on at any distance: what they keep track of is not a position.",
    .info.pictures    = "",
    .info.by_distance = 1,
    .info.sees        = "what the tokens between make of the query, by their content",
    .info.causal_only = 1,
    .info.why_causal  = "ahead of a query no token transforms it",
    .no_rotation      = "the tokens between turn its queries already",
    .operations       = "H*Lq*Lk*4*D",
    .has_token        = has_token,
    .attention.terms  = terms,
    PE_TOKENS(tokens),
    PE_SETTINGS(settings),
};
