/* SPDX-License-Identifier: MIT */
/* One function per schedule. Contract: schedule.h. */
#include "engine/rotation/schedule.h"

#include <math.h>

static const pe_wide PI     = {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53},
                     TWO_PI = {0x1.921fb54442d18p+2, 0x1.1a62633145c07p-52};

/* ---- numbers: wide ones, or each result rounded to float32 ---- */

static pe_wide rounded(const pe_frequencies *f, pe_wide x)
{
    return f->single ? pe_wide_of((double)(float)x.hi) : x;
}

static pe_wide sum(const pe_frequencies *f, pe_wide a, pe_wide b)
{
    return rounded(f, pe_wide_sum(a, b));
}

static pe_wide difference(const pe_frequencies *f, pe_wide a, pe_wide b)
{
    return rounded(f, pe_wide_difference(a, b));
}

static pe_wide product(const pe_frequencies *f, pe_wide a, pe_wide b)
{
    return rounded(f, pe_wide_product(a, b));
}

static pe_wide ratio(const pe_frequencies *f, pe_wide a, pe_wide b)
{
    return rounded(f, pe_wide_ratio(a, b));
}

static pe_wide power(const pe_frequencies *f, pe_wide x, pe_wide y)
{
    return rounded(f, pe_wide_power(x, y));
}

static pe_wide number(const pe_frequencies *f, double x)
{
    return rounded(f, pe_wide_of(x));
}

static pe_wide clipped(pe_wide x)
{
    const pe_wide zero = {0, 0}, one = {1, 0};
    return pe_wide_is_below(x, zero) ? zero : pe_wide_is_below(one, x) ? one : x;
}

/* ---- schedules ---- */

/* x/d as a wide number. */
static pe_wide part(double x, int64_t d)
{
    return pe_wide_ratio(pe_wide_of(x), pe_wide_of((double)d));
}

/* base^(-2j/d) / times of the base with this logarithm; in float32 1 / (times * base^(2j/d)). */
static pe_wide slowed(const pe_frequencies *f, pe_wide log_base, double times, int64_t j, int64_t d)
{
    const pe_wide exponent = rounded(f, part(2 * (double)j, d)), one = pe_wide_of(1);
    if (!f->single)
        return pe_wide_ratio(one, pe_wide_product(pe_wide_exp(pe_wide_product(exponent, log_base)),
                                                  pe_wide_of(times)));
    const pe_wide base = rounded(f, pe_wide_exp(log_base));
    return ratio(f, one, product(f, number(f, times), power(f, base, exponent)));
}

static pe_wide plain(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    return slowed(f, f->log_base, 1, j, d);
}

static pe_wide linear(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    return ratio(f, plain(f, m, j, d), number(f, f->factor));
}

/* The logarithm of base * by^(d/(d-2)), the base that slows the last of d/2 pairs by `by` and leaves the
   first unchanged. */
static pe_wide log_of_grown(const pe_frequencies *f, pe_wide by, int64_t d)
{
    return pe_wide_sum(f->log_base, pe_wide_product(pe_wide_log(by), part((double)d, d - 2)));
}

static pe_wide ntk(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    return slowed(f, log_of_grown(f, pe_wide_of(f->alpha), d), 1, j, d);
}

/* Su Jianlin's two forms: base times factor and everything slower by factor^(2/d), or a power of the pair's
   number. */
static pe_wide ntk_mixed(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const pe_wide factor = pe_wide_of(f->factor), log_factor = pe_wide_log(factor),
                  b = pe_wide_of(f->mixed_b);
    if (isnan(f->mixed_b))
        return ratio(f, slowed(f, pe_wide_sum(f->log_base, log_factor), 1, j, d),
                     power(f, factor, part(2, d)));
    const pe_wide a = ratio(f, log_factor, pe_wide_power(part((double)d, 2), b));
    const pe_wide x = product(f, a, power(f, pe_wide_of((double)(j + 1)), b));
    return ratio(f, plain(f, m, j, d), rounded(f, pe_wide_exp(x)));
}

/* Beyond the longest trained length the base grows with the present one. The Python code has the base in
   double too. */
static pe_wide dynamic(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const pe_wide factor = pe_wide_of(f->factor), most = pe_wide_of(f->max_length),
                  longest = pe_wide_ratio(pe_wide_of(fmax(f->length, f->max_length)), most);
    const pe_wide stretch =
        pe_wide_difference(pe_wide_product(factor, longest), pe_wide_difference(factor, pe_wide_of(1)));
    return slowed(f, log_of_grown(f, stretch, d), 1, j, d);
}

/* The number of the pair that turns `turns` times within the trained length; not a whole number. */
static pe_wide pair_of_turns(const pe_frequencies *f, double turns, int64_t d)
{
    const pe_wide around = pe_wide_product(pe_wide_of(turns), TWO_PI),
                  within = pe_wide_ratio(pe_wide_of(f->original_length), around);
    return pe_wide_ratio(pe_wide_product(part((double)d, 2), pe_wide_log(within)), f->log_base);
}

static pe_wide to_whole(pe_wide x, int up)
{
    const double whole = up ? ceil(x.hi) : floor(x.hi);
    if (whole != x.hi)
        return pe_wide_of(whole);
    return pe_wide_of(whole + (up ? x.lo > 0 : -(x.lo < 0)));
}

/* 0 for pairs that keep their frequency, 1 for those that are slowed, between them a straight line. */
static pe_wide yarn_ramp(const pe_frequencies *f, int64_t j, int64_t d)
{
    const pe_wide zero = {0, 0}, most = {(double)(d - 1), 0}; /* d, not pairs: every program has it so */
    pe_wide       low = pair_of_turns(f, f->beta_fast, d), high = pair_of_turns(f, f->beta_slow, d);
    if (f->truncate) {
        low  = to_whole(low, 0);
        high = to_whole(high, 1);
    }
    low  = pe_wide_is_below(low, zero) ? zero : low;
    high = pe_wide_is_below(most, high) ? most : high;
    if (low.hi == high.hi && low.lo == high.lo)
        high = pe_wide_sum(high, pe_wide_of(0.001));
    const pe_wide over = difference(f, pe_wide_of((double)j), rounded(f, low));
    return clipped(ratio(f, over, difference(f, high, low)));
}

static pe_wide yarn(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const pe_wide one = pe_wide_of(1), by = pe_wide_of(f->extrapolation_factor),
                  unslowed = product(f, by, difference(f, one, yarn_ramp(f, j, d))),
                  whole    = plain(f, m, j, d),
                  slow     = f->single ? slowed(f, f->log_base, f->factor, j, d)
                                       : pe_wide_ratio(whole, pe_wide_of(f->factor));
    return sum(f, product(f, slow, difference(f, one, unslowed)), product(f, whole, unslowed));
}

static pe_wide longrope(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double *factors = pe_schedule_is_long(f) ? f->long_factor : f->short_factor;
    return slowed(f, f->log_base, factors ? factors[m] : 1, j, d);
}

/* The common Python code, step by step: wavelengths are compared, the middle is blended. Where
   high_freq_factor is not above low_freq_factor there is no middle: it becomes a step at low_freq_factor. */
static pe_wide llama3_single(const pe_frequencies *f, pe_wide w)
{
    const pe_wide one = pe_wide_of(1), low = pe_wide_of(f->low_freq_factor),
                  high = pe_wide_of(f->high_freq_factor), length = pe_wide_of(f->original_length),
                  wave = product(f, ratio(f, one, w), rounded(f, TWO_PI)),
                  slow = ratio(f, w, pe_wide_of(f->factor));
    if (wave.hi > ratio(f, length, low).hi)
        return slow;
    if (wave.hi < ratio(f, length, high).hi || low.hi >= high.hi)
        return w;
    const pe_wide turns   = product(f, ratio(f, one, wave), length),
                  s       = ratio(f, difference(f, turns, low), difference(f, high, low)),
                  part_of = ratio(f, product(f, difference(f, one, s), w), pe_wide_of(f->factor));
    return sum(f, part_of, product(f, s, w));
}

static pe_wide llama3(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const pe_wide w = plain(f, m, j, d), one = pe_wide_of(1), low = pe_wide_of(f->low_freq_factor),
                  high = pe_wide_of(f->high_freq_factor);
    if (f->single)
        return llama3_single(f, w);
    const pe_wide turns = pe_wide_ratio(pe_wide_product(pe_wide_of(f->original_length), w), TWO_PI);
    const pe_wide step  = pe_wide_of(!pe_wide_is_below(turns, low));
    const pe_wide s =
        pe_wide_is_below(low, high)
            ? clipped(pe_wide_ratio(pe_wide_difference(turns, low), pe_wide_difference(high, low)))
            : step;
    const pe_wide slow = pe_wide_ratio(pe_wide_difference(one, s), pe_wide_of(f->factor));
    return pe_wide_product(w, pe_wide_sum(slow, s));
}

/* Exponents over the whole head; only the first pairs are rotated. */
static pe_wide proportional(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double rotated = floor(f->partial_rotary_factor * (double)d / 2),
                 factor  = isnan(f->factor) ? 1 : f->factor;
    return (double)j < rotated ? ratio(f, plain(f, m, j, d), pe_wide_of(factor)) : pe_wide_of(0);
}

static pe_wide given(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    return f->inv_freq ? number(f, f->inv_freq[m]) : pe_wide_of((double)NAN);
}

/* Where in 0 .. 1 number j of d/2 stands. */
static pe_wide share_of(int64_t j, int64_t d)
{
    return d > 2 ? part(2 * (double)j, d - 2) : pe_wide_of(0);
}

/* DINOv3: a period each, in units of coordinates between -1 and 1. */
static pe_wide period(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const pe_wide first = pe_wide_of(f->min_period);
    if (isnan(f->min_period))
        return ratio(f, TWO_PI, pe_wide_exp(pe_wide_product(f->log_base, part(2 * (double)j, d))));
    const pe_wide between = pe_wide_ratio(pe_wide_of(f->max_period), first);
    return ratio(f, TWO_PI, pe_wide_product(first, pe_wide_power(between, share_of(j, d))));
}

/* timm and lucidrains: from half a wave over the picture to max_freq/4 of them, evenly or by powers of 2. */
static pe_wide pixel(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const pe_wide share = share_of(j, d), most = pe_wide_of(f->max_freq / 2), one = pe_wide_of(1);
    const pe_wide half_waves = f->linear_bands
                                   ? pe_wide_sum(one, pe_wide_product(pe_wide_difference(most, one), share))
                                   : pe_wide_power(most, share);
    return product(f, rounded(f, PI), rounded(f, half_waves));
}

double pe_schedule_frequency(const pe_frequencies *f, int64_t m, int64_t j, int64_t d, double divisor)
{
    static pe_wide (*const rules[PE_SCHEDULES])(const pe_frequencies *, int64_t, int64_t, int64_t) = {
        [PE_DEFAULT] = plain,       [PE_LINEAR] = linear,   [PE_NTK] = ntk,
        [PE_NTK_MIXED] = ntk_mixed, [PE_DYNAMIC] = dynamic, [PE_YARN] = yarn,
        [PE_LONGROPE] = longrope,   [PE_LLAMA3] = llama3,   [PE_PROPORTIONAL] = proportional,
        [PE_EXPLICIT] = given,      [PE_PERIOD] = period,   [PE_PIXEL] = pixel,
    };
    return ratio(f, rules[f->schedule](f, m, j, d), pe_wide_of(divisor)).hi;
}

int pe_schedule_is_long(const pe_frequencies *f)
{
    return f->length > f->original_length;
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

static double or_else(double x, double otherwise)
{
    return isnan(x) ? otherwise : x;
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
    if (pe_schedule_is_long(f) && !isnan(f->attention_factor_long))
        return f->attention_factor_long;
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
    return 1;
}

double pe_schedule_magnitude(const pe_frequencies *f)
{
    static double (*const rules[])(const pe_frequencies *) = {
        [PE_HF] = hf,          [PE_VLLM] = vllm,        [PE_DEEPSEEK] = deepseek,
        [PE_GGML_RULE] = ggml, [PE_NO_MAGNITUDE] = one,
    };
    return rules[f->rule](f);
}
