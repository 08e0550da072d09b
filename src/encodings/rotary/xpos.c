/* SPDX-License-Identifier: MIT */
/*
 * xPos: rotary positions whose scores decay
 *
 * Place    rotary: q and k are rotated, and scaled by opposite powers of their positions
 * Formula  q at P: rotate(q, P) * zeta_m^((P - center)/scale_base),
 *          k at P: rotate(k, P) * zeta_m^(-(P - center)/scale_base)
 *          zeta_m = (2m/dim + gamma)/(1 + gamma), w_m = base^(-2m/dim), m = 0 .. dim/2 - 1
 *          so pair m of q_i . k_j is multiplied by zeta_m^(t/scale_base), which decays with t
 * Learns   nothing
 * Source   Sun et al. 2022, arXiv:2212.10554; microsoft/torchscale, component/xpos_relative_position.py
 *
 * For keys in the future the factor grows without bound instead, so xPos is refused without a causal mask.
 *
 * Attention multiplies the pair by zeta^(t/scale_base) itself, whatever the positions and whatever `center`.
 * posenc_rotate has to give queries and keys a factor each: they depend on `center`, which torchscale puts in
 * the middle of the present sequence, so its keys change when the sequence grows; here it is a fixed number.
 * Some 36 000 tokens from it a factor leaves the range of float (with the defaults): there rotate to F64, or
 * put center into the middle.
 */
#include "encodings/encoding.h"

enum { LAYOUT, DIM, BASE, SCALE_BASE, GAMMA, CENTER }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"layout", "word", "interleaved", "interleaved|half", "pairs (2m, 2m+1), or (m, m + dim/2)"},
    {"dim", "integer", "D", "2..", "rotated channels, even; the rest of the head passes unchanged"},
    {"base", "real", "10000", "1<..", "theta of the rotation"},
    {"scale_base", "real", "512", "0<..", "tokens after which a pair has decayed to zeta"},
    {"gamma", "real", "0.4", "0<..", "how much of the fastest pair remains: zeta_0 = gamma/(1 + gamma)"},
    {"center", "real", "0", "",
     "posenc_rotate: where both factors are 1; beyond some 36000 tokens float overflows"},
    {0},
};
static_assert(PE_ROWS(settings) == CENTER + 1, "ORDER settings");

static const posenc_example examples[] = {
    {"D=128", 1, 0, 0, 0.865964323360065, "the rotation is RoPE's: 10000^(-2/128)"},
    {"D=128", 63, 0, 0, 1.15478198468946e-4, "slowest pair"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    return pe_rotation_check_dim("xpos", p->set[DIM].integer, p->D, err);
}

static void fill(const pe_problem *p, const pe_rotary_run *run, pe_rotary *t)
{
    const int64_t dim   = p->set[DIM].integer;
    const double  gamma = p->set[GAMMA].real;
    pe_rotation_one_block(t, dim / 2, 0, p->set[LAYOUT].integer == 0 ? PE_INTERLEAVED : PE_HALF);
    t->grows  = 1;
    t->center = p->set[CENTER].real;
    for (int64_t m = 0; m < t->M; m++) {
        const double zeta = (2 * (double)m / (double)dim + gamma) / (1 + gamma);
        t->w[m]           = pow(p->set[BASE].real, -2.0 * (double)m / (double)dim);
        t->growth[m]      = log(zeta) / p->set[SCALE_BASE].real;
    }
}

const pe_encoding pe_xpos = {
    .info.name        = "xpos",
    .info.place       = POSENC_PLACE_ROTARY,
    .info.title       = "rotary positions with decay",
    .info.formula     = "w_m = base^{−2 m / D} , ζ_m = frac{2 m / D + γ}{1 + γ}\n"
                        "q_m′ = R(P w_m) q_m ζ_m^{P / scale} , k_m′ = R(P w_m) k_m ζ_m^{−P / scale}",
    .info.symbols     = "w_m: the frequency of pair m, radians per position\n"
                        "ζ_m: what is left of pair m after scale positions\n"
                        "γ: setting gamma: ζ_0 = γ / (1 + γ)\n"
                        "q_m: pair m of a query as a complex number x + i y; q_m′ after it\n"
                        "k_m: pair m of a key as a complex number x + i y; k_m′ after it\n"
                        "R: the rotation by an angle\n"
                        "scale: setting scale_base: the positions after which a pair has decayed to ζ_m",
    .info.paper       = "arXiv:2212.10554",
    .info.models      = "RetNet, LeX",
    .info.beyond      = "Reaches further than rope by its decay; its paper also reads long texts in blocks.",
    .info.pictures    = "similarity,decay,mass,pair,words,wavelengths",
    .info.by_distance = 1,
    .info.causal_only = 1,
    .info.why_causal  = "its factors grow with the distance of keys in the future",
    .examples         = examples,
    .check            = check,
    .rotary.fill      = fill,
    PE_SETTINGS(settings),
};
