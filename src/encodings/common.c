/* SPDX-License-Identifier: MIT */
/*
 * common.c: the settings that every encoding has, nope too
 *
 * Place    score: the factor of the products, a factor tau for each query, a cap, one more term below
 *          the line
 * Formula  tau_i (scale q_i . k_j) or tau_i S_ij; then c tanh(S_ij / c); then
 *          P_ij = exp(S_ij) / (exp(s_h) + sum_j exp(S_ij))
 * Learns   temper_s, temper_b of temperature=ssmax; sink of sink=head (sink=token: the model makes it)
 * Source   temperature: Llama 4 (2025), Ministral 3 (2025), Inkling (2026), Su 2021 (logn), Nakanishi
 *          2025, arXiv:2501.19399 (ssmax); sink: gpt-oss (2025), arXiv:2508.10925; softcap: Gemma 2,
 *          arXiv:2408.00118
 *
 * Written as a room, it is a part of every encoding, of no place and without a name: its settings stand among
 * those of any part, and its parameters carry no prefix. P(i) is the first coordinate, not below 0:
 *
 *   llama4     1 + a ln(1 + floor((P+1)/n))       a = temper_scale, n = temper_length
 *   ministral  1 + a ln(1 + floor(P/n))
 *   inkling    1 + a ln max((P+1)/n, 1)           on the whole score
 *   logn       max(1, ln(P+1)/ln n)               n the length of training
 *   ssmax      temper_s_h ln n_i + temper_b_h     n_i the keys that i may see, or P+1; at least 1
 */
#include "encodings/encoding.h"

enum {
    SCALE,
    TEMPERATURE,
    TEMPER_ON,
    TEMPER_SCALE,
    TEMPER_LENGTH,
    TEMPER_COUNT,
    TEMPER_BIAS,
    SINK,
    SOFTCAP
}; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"scale", "real", "", "",
     "factor of the products in a score; absent: the encoding's own, mostly 1/sqrt(D)"},
    {"temperature", "word", "none", "none|llama4|ministral|inkling|logn|ssmax",
     "a factor that grows with the position of the query, or (ssmax) with the keys that it sees"},
    {"temper_on", "word", "", "query|score",
     "what it multiplies: the query's products, or all of the score; absent: query, of inkling score"},
    {"temper_scale", "real", "0.1", "", "of llama4, ministral, inkling: how fast it grows"},
    {"temper_length", "real", "", "1<..",
     "where it begins; absent: 8192 of llama4, 16384 of ministral; inkling and logn need it"},
    {"temper_count", "word", "allowed", "allowed|position",
     "of ssmax: counts the keys that the masks allow, or the position and one"},
    {"temper_bias", "flag", "no", "yes|no", "of ssmax: a learned number is added (parameter temper_b)"},
    {"sink", "word", "none", "none|head|token",
     "one more term in the denominator: the exponential of a learned number of each head, or of a token "
     "input"},
    {"softcap", "real", "", "1e-30..1e30", "c: scores become c tanh(S/c) before the masks (Gemma 2: 50)"},
    {0},
};
static_assert(PE_ROWS(settings) == SOFTCAP + 1, "ORDER settings");

enum { NONE, LLAMA4, MINISTRAL, INKLING, LOGN, SSMAX }; /* ORDER temperature */

enum { TEMPER_S, TEMPER_B, SINK_H }; /* ORDER params */
static const posenc_param_info params[] = {
    {"temper_s", "H", "0.43", "temperature=ssmax: how fast the factor grows with the logarithm of the keys",
     1},
    {"temper_b", "H", "zeros", "temperature=ssmax, temper_bias: what is added to that factor", 1},
    {"sink", "H", "zeros", "sink=head: a score without key and value, in the denominator alone", 1},
    {0},
};
static_assert(PE_ROWS(params) == SINK_H + 1, "ORDER params");

static const posenc_token_info tokens[] = {
    {"sink", "1", "sink=token: a score without key and value for each query, in the denominator alone", 0, 0,
     0, POSENC_TOKEN_PLAIN},
    {0},
};

static int has_token(const pe_value *set, int index)
{
    return set[SINK].integer == 2;
}

static int has(const pe_value *set, int index)
{
    const int rule = (int)set[TEMPERATURE].integer;
    return index == SINK_H ? set[SINK].integer == 1
                           : rule == SSMAX && (index == TEMPER_S || set[TEMPER_BIAS].integer == 1);
}

/* ---- what goes together ---- */

/* Does a rule use this setting? */
static int uses(int rule, int setting)
{
    static const unsigned char by_rule[] = {
        [TEMPER_ON]     = 1 << LLAMA4 | 1 << MINISTRAL | 1 << INKLING | 1 << LOGN | 1 << SSMAX,
        [TEMPER_SCALE]  = 1 << LLAMA4 | 1 << MINISTRAL | 1 << INKLING,
        [TEMPER_LENGTH] = 1 << LLAMA4 | 1 << MINISTRAL | 1 << INKLING | 1 << LOGN,
        [TEMPER_COUNT]  = 1 << SSMAX,
        [TEMPER_BIAS]   = 1 << SSMAX,
    };
    return by_rule[setting] >> rule & 1;
}

posenc_status pe_common_check(const pe_setting_text text[], posenc_error *err)
{
    const posenc_setting_info *row  = &settings[TEMPERATURE];
    const char                *word = *text[TEMPERATURE].text ? text[TEMPERATURE].text : row->default_value;
    const int                  rule = pe_settings_word_index(row->range, word, strlen(word));
    for (int i = TEMPER_ON; i <= TEMPER_BIAS; i++)
        if (*text[i].text && !uses(rule, i))
            return pe_fail(
                err, POSENC_ERROR_SETTING,
                "encoding: %s is given, but temperature=%s does not use it; leave it out, or choose "
                "another temperature",
                settings[i].name, word);
    if ((rule == INKLING || rule == LOGN) && !*text[TEMPER_LENGTH].text)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "encoding: temperature=%s needs temper_length, the number of positions%s", word,
                       rule == LOGN ? " of training" : " where it begins to grow");
    return POSENC_OK;
}

/* ---- tau ---- */

static double length_of(const pe_value *set)
{
    return set[TEMPER_LENGTH].given             ? set[TEMPER_LENGTH].real
           : set[TEMPERATURE].integer == LLAMA4 ? 8192
                                                : 16384;
}

/* ln n_i */
static double log_of_keys(const pe_problem *p, const pe_tempering *of)
{
    return p->set[TEMPER_COUNT].integer == 0 ? log((double)of->keys) : log(floor(of->position) + 1);
}

static double fill(const pe_problem *p, const double *const par[], const pe_tempering *of)
{
    const double a = p->set[TEMPER_SCALE].real, n = length_of(p->set), P = of->position;
    switch ((int)p->set[TEMPERATURE].integer) {
    case LLAMA4: return 1 + a * log1p(floor((P + 1) / n));
    case MINISTRAL: return 1 + a * log1p(floor(P / n));
    case INKLING: return 1 + a * log(fmax((P + 1) / n, 1));
    case LOGN: return fmax(1, log1p(P) / log(n));
    default:
        return par[TEMPER_S][of->h] * log_of_keys(p, of) +
               (p->set[TEMPER_BIAS].integer ? par[TEMPER_B][of->h] : 0);
    }
}

/* Its adjoint, of ssmax: ds_h = sum of dtau ln n_i, db_h = sum of dtau */
static void fold(const pe_problem *p, const double *const par[], const pe_tempering *of, double dtau,
                 double *const dpar[])
{
    pe_add(dpar, TEMPER_S, of->h, dtau * log_of_keys(p, of));
    if (p->set[TEMPER_BIAS].integer)
        pe_add(dpar, TEMPER_B, of->h, dtau);
}

static pe_temper temper_of(const pe_value *set)
{
    const int rule = (int)set[TEMPERATURE].integer, learned = rule == SSMAX;
    if (rule == NONE)
        return (pe_temper){.on = PE_TEMPER_NONE};
    const int on_score = set[TEMPER_ON].given ? set[TEMPER_ON].integer == 1 : rule == INKLING;
    return (pe_temper){.on           = on_score ? PE_TEMPER_SCORE : PE_TEMPER_QUERY,
                       .fill_by_head = learned,
                       .counts       = learned && set[TEMPER_COUNT].integer == 0,
                       .fill         = fill,
                       .fold         = learned ? fold : NULL};
}

static void terms(const pe_problem *p, pe_terms *s)
{
    if (p->set[SCALE].given)
        s->scale = p->set[SCALE].real;
    s->temper     = temper_of(p->set);
    s->sink       = p->set[SINK].integer == 1 ? SINK_H : PE_NONE;
    s->sink_token = p->set[SINK].integer == 2 ? 0 : PE_NONE;
    s->softcap    = p->set[SOFTCAP].given ? p->set[SOFTCAP].real : 0;
}

const pe_encoding pe_common = {
    .info.name  = "encoding",
    .info.place = POSENC_PLACE_SCORE,
    .has        = has,
    .has_token  = has_token,
    PE_TOKENS(tokens),
    .attention.terms = terms,
    PE_TABLES(settings, params, NULL),
};
