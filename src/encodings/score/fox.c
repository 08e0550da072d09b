/* SPDX-License-Identifier: MIT */
/*
 * FoX: the Forgetting Transformer
 *
 * Place    score: every token between key and query lets a share of the past through
 * Formula  S[h,i,j] = scale * q_i . k_j + sum of ln f_l over the tokens l = j+1 .. i
 *          ln f_l = ls(x_l) = -ln(1 + e^-x_l), x_l the token input f of token l (form=token), which the
 *          model makes, or the parameter b_h for all tokens (form=constant)
 * Learns   form=constant: b, one for each head; form=token: nothing here
 * Source   Lin et al. 2025, arXiv:2503.02130; zhixuan-lin/forgetting-transformer; fla, forgetting_attn;
 *          gate_of=key, bidirectional: x-transformers, DataDependentAlibi
 *
 * The sum is a difference of running sums, so memory is linear and scores stay products of queries and keys.
 * Keys of a segment lie side by side. The sum is not multiplied by `scale`. The query's own gate counts, the
 * key's does not (gate_of=key: the other way round). With one gate for all tokens it is ALiBi with slope ln(1
 * + e^-b), which starts at 1/T: T from decay_time_min to decay_time_max, evenly in the logarithm, over the
 * heads.
 *
 * Ahead of the query the same difference grows, so attention wants a causal mask; bidirectional has gates of
 * its own for that side, the far key's included. ln f is never the logarithm of a sigmoid, which is 0 below
 * -90 in float. The official layer starts f without a bias; 5 (gates of 0.993) is x-transformers' start.
 */
#include "encodings/encoding.h"
#include "engine/score/gates.h"

enum { FORM, GATE_OF, BIDIRECTIONAL, DECAY_TIME_MIN, DECAY_TIME_MAX }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"form", "word", "token", "token|constant",
     "token: a gate for each token, made by the model; constant: one for each head, learned"},
    {"gate_of", "word", "query", "query|key",
     "whose gate counts beside those between: the query's or the key's"},
    {"bidirectional", "flag", "no", "yes|no", "tokens ahead of the query have gates of their own"},
    {"decay_time_min", "real", "2", "0<..",
     "form=constant: tokens after which 1/e is left, of head 0 at the start"},
    {"decay_time_max", "real", "256", "0<..", "the same, of the last head"},
    {0},
};
static_assert(PE_ROWS(settings) == DECAY_TIME_MAX + 1, "ORDER settings");

enum { B, B_AHEAD }; /* ORDER params */
static const posenc_param_info params[] = {
    {"b", "H", "-ln(e^(1/T) - 1), T from decay_time_min to decay_time_max",
     "form=constant: the gate of head h is 1/(1 + e^-b)", 1},
    {"b_ahead", "H", "the same", "form=constant, bidirectional: that of tokens ahead", 1},
    {0},
};
static_assert(PE_ROWS(params) == B_AHEAD + 1, "ORDER params");

enum { F, F_AHEAD }; /* ORDER tokens */
static const posenc_token_info tokens[] = {
    {"f", "1", "form=token: the gate of a token is 1/(1 + e^-f)", 1, 5, 0, POSENC_TOKEN_PLAIN},
    {"f_ahead", "1", "form=token, bidirectional: that of tokens ahead", 1, 5, 0, POSENC_TOKEN_PLAIN},
    {0},
};
static_assert(PE_ROWS(tokens) == F_AHEAD + 1, "ORDER tokens");

static const posenc_example examples[] = {
    {"H=2 form=constant", 0, 5, 2, -2.0794415416798357, "b = 0: three gates of 1/2"},
    {"H=2 form=constant", 1, 3, 1, -0.62652337503644567, "b = 1: twice -ln(1 + e^-1)"},
    {"H=2 form=constant bidirectional=yes", 0, 2, 5, -2.0794415416798357, "as far ahead, b_ahead = 0"},
    {0},
};

static int is_constant(const pe_value *set)
{
    return set[FORM].integer == 1;
}

static int has(const pe_value *set, int index)
{
    return is_constant(set) && (index == B || set[BIDIRECTIONAL].integer);
}

static int has_token(const pe_value *set, int index)
{
    return !is_constant(set) && (index == F || set[BIDIRECTIONAL].integer);
}

static int sees_future(const pe_value *set)
{
    return (int)set[BIDIRECTIONAL].integer;
}

/* 1/T = ln(1 + e^-b): b = -ln(e^(1/T) - 1), which a short T does not overflow */
static double init(const pe_problem *p, int index, pe_random *rng, int64_t h)
{
    const double low = log(p->set[DECAY_TIME_MIN].real), high = log(p->set[DECAY_TIME_MAX].real),
                 step = p->H > 1 ? (double)h / (double)(p->H - 1) : 0,
                 rate = exp(-(low + (high - low) * step));
    return -(rate + log(-expm1(-rate)));
}

/* c(P) = ls(b) P behind; ahead c'(P) = ls(b_ahead) P */
static double rate(const pe_problem *p, const double *const par[], int64_t h, int side)
{
    const double x = par[side == PE_BEHIND ? B : B_AHEAD][h];
    return fmin(x, 0) - log1p(exp(-fabs(x)));
}

static void rate_back(const pe_problem *p, const double *const par[], int64_t h, int side, double drate,
                      double *const dpar[])
{
    const int index = side == PE_BEHIND ? B : B_AHEAD;
    pe_add(dpar, index, h, drate * pe_gates_share(par[index][h]));
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->drift = (pe_drift){.kind       = is_constant(p->set) ? PE_DRIFT_RATE : PE_DRIFT_GATES,
                          .by_key     = p->set[GATE_OF].integer == 1,
                          .two_sided  = (int)p->set[BIDIRECTIONAL].integer,
                          .token      = {F, F_AHEAD},
                          .gates      = pe_gates_log,
                          .gates_back = pe_gates_log_back,
                          .rate       = rate,
                          .rate_back  = rate_back};
}

const pe_encoding pe_fox = {
    .info.name  = "fox",
    .info.place = POSENC_PLACE_SCORE,
    .info.title = "gates that forget",
    .info.formula = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}} + ∑_{l=j+1}^i ln f_l , f_l = frac{1}{1 + e^{−x_l}}",
    .info.symbols     = "f_l: the gate of token l, what it lets through of all before it\n"
                        "l: a token between, the query among them\n"
                        "x_l: the token input f of token l",
    .info.paper       = "arXiv:2503.02130",
    .info.models      = "research",
    .info.beyond      = "Gates go on at any distance: what was forgotten within the trained length stays so.",
    .info.pictures    = "bias,mass",
    .info.by_distance = 1,
    .info.sees        = "the gates of the tokens between, which follow their content",
    .info.causal_only = 1,
    .info.why_causal  = "ahead of a query its gates would let more through than there is",
    /* The logarithm of a gate for each token, or a rate times each position. */
    .operations      = "H*Lk*(5-4*form)",
    .init            = init,
    .has             = has,
    .has_token       = has_token,
    .sees_future     = sees_future,
    .attention.terms = terms,
    PE_TOKENS(tokens),
    PE_TABLES(settings, params, examples),
};
