/* SPDX-License-Identifier: MIT */
/* One function per schedule. Contract: schedule.h. */
#include "engine/schedule.h"

#include <math.h>

static const double PI = 3.14159265358979323846;

static double rounded(const pe_frequencies *f, double x)
{
    return pe_rounded(f->single, x);
}

/* 1 / (times * base^(2j/d)). */
static double slowed(const pe_frequencies *f, double base, double times, int64_t j, int64_t d)
{
    if (!f->single)
        return pow(base, -2.0 * (double)j / (double)d) / times;
    const double power = rounded(f, pow(rounded(f, base), rounded(f, 2.0 * (double)j / (double)d)));
    return rounded(f, 1 / rounded(f, rounded(f, times) * power));
}

static double plain(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)m;
    return slowed(f, f->base, 1, j, d);
}

static double linear(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    return rounded(f, plain(f, m, j, d) / rounded(f, f->factor));
}

/* The base that slows the last of d/2 pairs by `alpha` and leaves the first alone. */
static double ntk(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)m;
    return slowed(f, f->base * pow(f->alpha, (double)d / (double)(d - 2)), 1, j, d);
}

/* Su Jianlin's two forms: base times factor and everything slower by factor^(2/d), or a power of the pair's number. */
static double ntk_mixed(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)m;
    const double half = (double)d / 2, w = slowed(f, f->base * f->factor, 1, j, d);
    if (isnan(f->mixed_b))
        return rounded(f, w / rounded(f, pow(f->factor, 2.0 / (double)d)));
    const double a = rounded(f, log(f->factor) / pow(half, f->mixed_b));
    const double x = rounded(f, a * rounded(f, pow((double)(j + 1), f->mixed_b)));
    return rounded(f, slowed(f, f->base, 1, j, d) / rounded(f, exp(x)));
}

/* Beyond the longest trained length the base grows with the present one. The Python code has the base in double too. */
static double dynamic(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)m;
    const double longest = fmax(f->length, f->max_length);
    const double stretch = f->factor * longest / f->max_length - (f->factor - 1);
    return slowed(f, f->base * pow(stretch, (double)d / (double)(d - 2)), 1, j, d);
}

/* The number of the pair that turns `turns` times within the trained length; not a whole number. */
static double pair_of_turns(const pe_frequencies *f, double turns, int64_t d)
{
    return (double)d * log(f->original_length / (turns * 2 * PI)) / (2 * log(f->base));
}

/* 0 for pairs that are left alone, 1 for those that are slowed, between them a straight line. */
static double yarn_ramp(const pe_frequencies *f, int64_t j, int64_t d)
{
    double low = pair_of_turns(f, f->beta_fast, d), high = pair_of_turns(f, f->beta_slow, d);
    if (f->truncate) {
        low  = floor(low);
        high = ceil(high);
    }
    low  = fmax(low, 0);
    high = fmin(high, (double)(d - 1)); /* d, not pairs: every program has it so */
    if (low == high)
        high += 0.001;
    const double over = rounded(f, (double)j - rounded(f, low));
    return fmin(fmax(rounded(f, over / rounded(f, high - low)), 0), 1);
}

static double yarn(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double alone = rounded(f, f->extrapolation_factor * rounded(f, 1 - yarn_ramp(f, j, d)));
    const double whole = plain(f, m, j, d), slow = slowed(f, f->base, f->factor, j, d);
    return rounded(f, rounded(f, slow * rounded(f, 1 - alone)) + rounded(f, whole * alone));
}

static double longrope(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double *factors = f->length > f->original_length ? f->long_factor : f->short_factor;
    return slowed(f, f->base, factors ? factors[m] : 1, j, d);
}

/* The common Python code, step by step: wavelengths are compared, the middle is blended. */
static double llama3_single(const pe_frequencies *f, double w)
{
    const double low = f->low_freq_factor, high = f->high_freq_factor;
    const double wave = rounded(f, rounded(f, 1 / w) * rounded(f, 2 * PI)), slow = rounded(f, w / f->factor);
    if (wave > rounded(f, f->original_length / low))
        return slow;
    if (wave < rounded(f, f->original_length / high) || low == high)
        return w;
    const double turns = rounded(f, rounded(f, 1 / wave) * f->original_length);
    const double s     = rounded(f, rounded(f, turns - low) / rounded(f, high - low));
    const double less  = rounded(f, rounded(f, rounded(f, 1 - s) * w) / f->factor);
    return rounded(f, less + rounded(f, s * w));
}

static double llama3(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double w = plain(f, m, j, d), low = f->low_freq_factor, high = f->high_freq_factor;
    if (f->single)
        return llama3_single(f, w);
    const double turns = f->original_length * w / (2 * PI);
    const double s = low == high ? turns >= low : fmin(fmax((turns - low) / (high - low), 0), 1); /* a step */
    return w * ((1 - s) / f->factor + s);
}

/* Exponents over the whole head; only the first pairs turn. */
static double proportional(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double turning = floor(f->partial_rotary_factor * (double)d / 2),
                 factor  = isnan(f->factor) ? 1 : f->factor;
    return (double)j < turning ? rounded(f, plain(f, m, j, d) / factor) : 0;
}

static double given(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)j, (void)d;
    return f->inv_freq ? rounded(f, f->inv_freq[m]) : NAN;
}

/* Where in 0 .. 1 number j of d/2 stands. */
static double share_of(int64_t j, int64_t d)
{
    return d > 2 ? (double)j / ((double)d / 2 - 1) : 0;
}

/* DINOv3: a period each, in units of coordinates between -1 and 1. */
static double period(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)m;
    const double by_base = pow(f->base, 2.0 * (double)j / (double)d);
    const double by_ends = f->min_period * pow(f->max_period / f->min_period, share_of(j, d));
    return rounded(f, 2 * PI / (isnan(f->min_period) ? by_base : by_ends));
}

/* timm and lucidrains: from half a wave over the picture to max_freq/4 of them, evenly or by powers of 2. */
static double pixel(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    (void)m;
    const double share = share_of(j, d);
    const double half_waves =
        f->linear_bands ? 1 + (f->max_freq / 2 - 1) * share : exp2((log2(f->max_freq) - 1) * share);
    return rounded(f, rounded(f, PI) * rounded(f, half_waves));
}

double pe_frequency_at(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    static double (*const rules[PE_SCHEDULES])(const pe_frequencies *, int64_t, int64_t, int64_t) = {
        [PE_DEFAULT] = plain,       [PE_LINEAR] = linear,   [PE_NTK] = ntk,
        [PE_NTK_MIXED] = ntk_mixed, [PE_DYNAMIC] = dynamic, [PE_YARN] = yarn,
        [PE_LONGROPE] = longrope,   [PE_LLAMA3] = llama3,   [PE_PROPORTIONAL] = proportional,
        [PE_EXPLICIT] = given,      [PE_PERIOD] = period,   [PE_PIXEL] = pixel,
    };
    return rules[f->schedule](f, m, j, d);
}

int pe_schedule_follows_length(pe_schedule schedule)
{
    return schedule == PE_DYNAMIC || schedule == PE_LONGROPE;
}

/* ---- magnitude ---- */

/* "mscale": how much longer contexts sharpen the softmax. */
static double grown(double factor, double by)
{
    return factor <= 1 ? 1 : 0.1 * by * log(factor) + 1;
}

static double or_else(double x, double standard)
{
    return isnan(x) ? standard : x;
}

static int is_set(double x) /* what Python calls true */
{
    return !isnan(x) && x != 0;
}

static double hf_yarn(const pe_frequencies *f)
{
    if (!isnan(f->attention_factor))
        return f->attention_factor;
    if (is_set(f->mscale) && is_set(f->mscale_all_dim))
        return grown(f->factor, f->mscale) / grown(f->factor, f->mscale_all_dim);
    return grown(f->factor, 1);
}

static double hf_longrope(const pe_frequencies *f)
{
    const double factor = or_else(f->factor, f->max_length / f->original_length);
    if (!isnan(f->attention_factor))
        return f->attention_factor;
    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(f->original_length));
}

static double hf(const pe_frequencies *f)
{
    return f->schedule == PE_YARN ? hf_yarn(f) : f->schedule == PE_LONGROPE ? hf_longrope(f) : 1;
}

static double vllm(const pe_frequencies *f)
{
    return f->schedule == PE_YARN ? grown(f->factor, 1) * or_else(f->attn_factor, 1) : 1;
}

static double deepseek(const pe_frequencies *f)
{
    if (f->schedule != PE_YARN)
        return 1;
    const double above = grown(f->factor, or_else(f->mscale, 1)),
                 below = grown(f->factor, or_else(f->mscale_all_dim, 0));
    return above / below * or_else(f->attn_factor, 1);
}

static double ggml(const pe_frequencies *f)
{
    const double factor = or_else(f->attn_factor, 1);
    return f->schedule == PE_YARN && f->extrapolation_factor != 0 ? factor * (1 + 0.1 * log(f->factor))
                                                                  : factor;
}

static double one(const pe_frequencies *f)
{
    (void)f;
    return 1;
}

double pe_magnitude_of(const pe_frequencies *f)
{
    static double (*const rules[])(const pe_frequencies *) = {
        [PE_HF] = hf,          [PE_VLLM] = vllm,        [PE_DEEPSEEK] = deepseek,
        [PE_GGML_RULE] = ggml, [PE_NO_MAGNITUDE] = one,
    };
    return rules[f->rule](f);
}
