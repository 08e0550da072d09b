/* SPDX-License-Identifier: MIT */
/*
 * test_rope_ggml: angles=ggml, schedule by schedule, to the bit
 *
 * The walk that ggml makes from pair to pair is written here as float arithmetic, one operation after the
 * other, beside what a converter writes into the file for it: the base that static NTK stretches, divisors
 * for llama3, LongRoPE and proportional, a factor and a ramp for YaRN. Angles must be the very same floats.
 * Against the schedule's own exact angles they may only drift: each of M steps rounds three times, so 3 M
 * 2^-24 of an angle, and what a divisor's rounding adds, 2^-22.
 */
#include "rope_case.h"

#include <stdio.h>
#include <string.h>

enum { M = 64, D = 2 * M };

/* What one rope call of ggml is given. */
typedef struct ggml_call {
    float base, freq_scale, ext_factor, beta_fast, beta_slow;
    int   original;
    float factors[M];
} ggml_call;

static float turns_at(const ggml_call *c, float turns)
{
    return D * logf((float)c->original / (turns * 2 * 3.14159265f)) / (2 * logf(c->base));
}

static void walk(const ggml_call *c, float position, float angle[M])
{
    const float step = powf(c->base, -2.0f / D), low = fmaxf(0, floorf(turns_at(c, c->beta_fast))),
                high = fminf(D - 1, ceilf(turns_at(c, c->beta_slow)));
    float theta      = position;
    for (int m = 0; m < M; m++) {
        const float whole = theta / c->factors[m], slow = c->freq_scale * whole;
        angle[m] = slow;
        if (c->ext_factor != 0) {
            const float y   = ((float)m - low) / fmaxf(0.001f, high - low);
            const float mix = (1 - fminf(1, fmaxf(0, y))) * c->ext_factor;
            angle[m]        = slow * (1 - mix) + whole * mix;
        }
        theta *= step;
    }
}

static ggml_call plain_call(float base)
{
    ggml_call c = {.base = base, .freq_scale = 1};
    for (int m = 0; m < M; m++)
        c.factors[m] = 1;
    return c;
}

/* ---- what converters write ---- */

static ggml_call call_of_default(void)
{
    return plain_call(1e4f);
}

static ggml_call call_of_linear(void)
{
    ggml_call c  = plain_call(1e4f);
    c.freq_scale = 1 / 3.0f;
    return c;
}

static ggml_call call_of_ntk(void)
{
    return plain_call((float)(1e4 * pow(1000, D / (D - 2.0))));
}

static ggml_call call_of_yarn(void)
{
    ggml_call c  = plain_call(1e6f);
    c.freq_scale = 1 / 4.0f;
    c.ext_factor = 1;
    c.beta_fast  = 32;
    c.beta_slow  = 1;
    c.original   = 32768;
    return c;
}

static ggml_call call_of_yarn_in_part(void)
{
    ggml_call c  = call_of_yarn();
    c.ext_factor = 0.75f;
    c.freq_scale = 1 / 7.0f;
    c.beta_fast  = 24;
    return c;
}

static ggml_call call_of_yarn_without_ramp(void)
{
    ggml_call c  = call_of_yarn();
    c.ext_factor = 0;
    return c;
}

/* The list rope_freqs of Llama 3.1. */
static ggml_call call_of_llama3(void)
{
    ggml_call c = plain_call(5e5f);
    for (int m = 0; m < M; m++) {
        const float w     = 1 / (float)pow((double)c.base, (double)((2.0f * (float)m) / D)),
                    wave  = 1 / w * (float)(2 * 3.14159265358979323846);
        const float share = (1 / wave * 8192.0f - 1.0f) / 3.0f;
        c.factors[m]      = wave < 2048 ? 1 : wave > 8192 ? 8 : 1 / ((1 - share) / 8.0f + share);
    }
    return c;
}

static ggml_call call_of_proportional(void)
{
    ggml_call c = plain_call(1e6f);
    for (int m = M / 4; m < M; m++)
        c.factors[m] = 1e30f;
    return c;
}

static ggml_call call_of_longrope(void)
{
    ggml_call c = plain_call(1e4f);
    for (int m = 0; m < M; m++)
        c.factors[m] = 1.0f + 0.37f * (float)m;
    return c;
}

static ggml_call call_of_yarn_with_factors(void)
{
    ggml_call c = call_of_yarn();
    for (int m = 0; m < M; m++)
        c.factors[m] = 1.0f + 0.37f * (float)m;
    return c;
}

static const struct {
    const char *spec; /* without angles=... */
    ggml_call (*call)(void);
} all[] = {
    {"layout=half", call_of_default},
    {"schedule=linear:factor=3", call_of_linear},
    {"schedule=ntk:alpha=1000", call_of_ntk},
    {"base=1e6:schedule=yarn:factor=4:original_length=32768", call_of_yarn},
    {"base=1e6:schedule=yarn:factor=7:original_length=32768:extrapolation_factor=0.75:beta_fast=24",
     call_of_yarn_in_part},
    {"base=1e6:schedule=yarn:factor=4:original_length=32768:extrapolation_factor=0",
     call_of_yarn_without_ramp},
    {"base=5e5:schedule=llama3:factor=8:low_freq_factor=1:high_freq_factor=4:original_length=8192",
     call_of_llama3},
    {"base=1e6:schedule=proportional:partial_rotary_factor=0.25", call_of_proportional},
    {"schedule=longrope:factor=4:original_length=4096:length=9000", call_of_longrope},
    {"base=1e6:schedule=yarn:factor=4:original_length=32768:freq_factors=yes", call_of_yarn_with_factors},
};

/* Angles of `spec`; its lists of factors, if it has any, are those of the call. */
static void angles_of(const char *spec, const ggml_call *c, double position, double angle[M])
{
    turning                t = make(spec, D);
    posenc_error           err;
    double                 list[M];
    posenc_tensor          params[2];
    const posenc_positions pos = posenc_positions_range(position, 1);
    const posenc_tensor a = posenc_tensor_contiguous(angle, POSENC_DTYPE_F64, 3, (const int64_t[]){1, 1, M});
    for (int m = 0; m < M; m++)
        list[m] = (double)c->factors[m];
    for (int i = 0; i < posenc_param_count(t.e); i++)
        params[i] = posenc_tensor_contiguous(list, POSENC_DTYPE_F64, 1, (const int64_t[]){M});
    if (posenc_rotary_angles(
            t.plan, &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = pos, .params = params}, &a,
            NULL, &t.work, &err))
        fail_msg("%s: %s", spec, err.message);
    drop(&t);
}

static void angles_are_those_of_ggml_s_walk(void **state)
{
    static const double positions[] = {0, 1, 4095, 131071, 1048575, -77};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        for (size_t p = 0; p < sizeof positions / sizeof *positions; p++) {
            char            spec[256];
            float           want[M];
            double          got[M], exact[M];
            const ggml_call c = all[i].call();
            snprintf(spec, sizeof spec, "rope[angles=ggml:%s]", all[i].spec);
            angles_of(spec, &c, positions[p], got);
            walk(&c, (float)positions[p], want);
            snprintf(spec, sizeof spec, "rope[%s]", all[i].spec);
            angles_of(spec, &c, positions[p], exact);
            for (int m = 0; m < M; m++) {
                if (got[m] != (double)want[m])
                    fail_msg("%s at %g, pair %d: %.9g, not %.9g", all[i].spec, positions[p], m, got[m],
                             (double)want[m]);
                if (!(fabs(got[m] - exact[m]) <= (3 * M + 4) * 0x1p-24 * fabs(exact[m]) + 1e-20))
                    fail_msg("%s at %g, pair %d: %.9g, but the schedule has %.17g", all[i].spec, positions[p],
                             m, got[m], exact[m]);
            }
        }
}

/* ---- what ggml has not ---- */

static void what_ggml_cannot_be_told_is_refused_with_the_mend(void **state)
{
    static const struct {
        const char *spec, *words;
    } refused[] = {
        {"schedule=ntk_mixed:factor=2", "has no ntk_mixed; choose ntk"},
        {"schedule=dynamic:factor=2:max_length=64", "has no dynamic, llama.cpp drops it; choose"},
        {"schedule=explicit", "choose angles=exact or float32, or give freq_factors=yes"},
        {"schedule=period", "choose angles=exact or float32"},
        {"schedule=pixel:max_freq=10", "choose angles=exact or float32"},
        {"schedule=yarn:factor=2:original_length=64:truncate=no", "leave out truncate=no"},
        {"schedule=longrope:factor=2:original_length=64:freq_factors=yes", "leave out freq_factors=yes"},
        {"schedule=yarn:factor=2:original_length=64:axes=2:axis_rule=axial",
         "choose an axis_rule of sections"},
        {"axes=2:axis_rule=matrix", "choose exact or float32"},
    };
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = 4, .Lk = 4, .D = D};
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char             spec[256];
        posenc_encoding *e    = NULL;
        posenc_plan     *plan = NULL;
        posenc_error     err  = {POSENC_OK, ""};
        snprintf(spec, sizeof spec, "rope[angles=ggml:%s]", refused[i].spec);
        if (posenc_encoding_create(&e, spec, NULL, &err))
            fail_msg("%s", err.message);
        assert_int_equal(posenc_plan_create(&plan, e, &dims, NULL, &err), POSENC_ERROR_SETTING);
        if (!strstr(err.message, "angles=ggml") || !strstr(err.message, refused[i].words))
            fail_msg("%s: \"%s\" lacks \"%s\"", spec, err.message, refused[i].words);
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(angles_are_those_of_ggml_s_walk),
        cmocka_unit_test(what_ggml_cannot_be_told_is_refused_with_the_mend),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
