/* SPDX-License-Identifier: MIT */
/*
 * Complex-order attention: the score is the modulus of a complex product
 *
 * Place    score: queries and keys are complex numbers, D/2 of them
 * Formula  S[h,i,j] = scale * | q_i . k_j | (conjugate=no) or scale * | q_i . conj(k_j) | (yes)
 *          scale = 1/sqrt(D/2)
 *          channels 0 .. D/2-1 are real parts, D/2 .. D-1 imaginary parts; values likewise,
 *          one weight for both
 *          no:  Re = qr.kr - qi.ki, Im = qr.ki + qi.kr      yes: Re = qr.kr + qi.ki, Im = qi.kr - qr.ki
 * Learns   nothing
 * Source   Wang et al. 2020, arXiv:1912.12333; iclr-complex-order/complex-order, TEXT
 *          CLASSIFICATION/Transformer, attention_complex.py
 *
 * It is the attention that the complex-order embedding is read with: a position is a phase. The authors' code
 * multiplies without conjugation, so phases add and a score depends on the sum of the positions, not on their
 * difference; with conjugation phases subtract. Even then the modulus is a function of the distance only if
 * all dimensions rotate at one frequency, or nothing mixes them between the embedding and the score.
 *
 * Each query goes in as two, q' for the real part of the product and q'' for the imaginary one, and the
 * engine takes the modulus of the two products. Where both are 0 no direction is known: the gradient is 0
 * (the authors' framework gives NaN there).
 */
#include "encodings/encoding.h"

enum { CONJUGATE }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"conjugate", "flag", "no", "yes|no", "conjugate the keys; no: as the authors' code"},
    {0},
};
static_assert(PE_ROWS(settings) == CONJUGATE + 1, "ORDER settings");

static const posenc_example examples[] = {
    {"D=4", 0, 3, 1, 0, "without content there is no product"},
    {0},
};

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    if (p->D % 2 == 0)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_SHAPE,
        "complex_order_attention: the head width D is %lld; it must be even: real parts, then as many "
        "imaginary parts",
        (long long)p->D);
}

/* +1 with conjugation: q' = [qr; sign qi], q'' = [qi; -sign qr]. */
static double sign(const pe_problem *p)
{
    return p->set[CONJUGATE].integer ? 1 : -1;
}

static void two_forms(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                      const double pos[], int64_t n, const double x[], double y[])
{
    const int64_t D = p->D, half = D / 2;
    if (side == PE_KEYS) {
        memcpy(y, x, (size_t)(n * D) * sizeof *y);
        return;
    }
    for (int64_t s = 0; s < n; s++)
        for (int64_t m = 0; m < half; m++) {
            const double re = x[s * D + m], im = x[s * D + half + m];
            double      *first = y + 2 * s * D, *second = first + D;
            first[m]         = re;
            first[half + m]  = sign(p) * im;
            second[m]        = im;
            second[half + m] = -sign(p) * re;
        }
}

static void two_forms_back(const pe_problem *p, const double *const par[], pe_side side, int64_t h,
                           const double pos[], int64_t n, const double x[], const double dy[], double dx[],
                           double *const dpar[])
{
    const int64_t D = p->D, half = D / 2;
    if (side == PE_KEYS) {
        memcpy(dx, dy, (size_t)(n * D) * sizeof *dx);
        return;
    }
    for (int64_t s = 0; s < n; s++)
        for (int64_t m = 0; m < half; m++) {
            const double *first = dy + 2 * s * D, *second = first + D;
            dx[s * D + m]        = first[m] - sign(p) * second[half + m];
            dx[s * D + half + m] = sign(p) * first[half + m] + second[m];
        }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale   = 1.0 / sqrt((double)p->D / 2);
    s->prepare = (pe_preparation){.fill = two_forms, .fold = two_forms_back, .width = p->D, .forms = 2};
}

const pe_encoding pe_complex_order_attention = {
    .info.name        = "complex_order_attention",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "the modulus of a complex product",
    .info.formula     = "S_{h,i,j} = frac{| q_i · k_j |}{sqrt{D / 2}} , q_i , k_j ∈ ℂ^{D / 2}",
    .info.symbols     = "q_i: the query of token i, D / 2 complex numbers\n"
                        "k_j: the key of token j, D / 2 complex numbers\n"
                        "ℂ: the complex numbers",
    .info.paper       = "arXiv:1912.12333",
    .info.models      = "Complex-order Transformer",
    .info.beyond      = "It has no rows of its own: it goes as far as the phases in q and k do.",
    .info.pictures    = "",
    .info.by_distance = 1,
    .info.scale       = "1/sqrt(D/2)",
    .info.sees        = "only the content, whose own phases have the positions",
    .examples         = examples,
    .check            = check,
    .attention.terms  = terms,
    PE_SETTINGS(settings),
};
