/* SPDX-License-Identifier: MIT */
/* Schedules in float32, as ggml and its converter have them. Contract: ggml.h. */
#include "base/shared/pi.h"
#include "engine/rotation/ggml.h"

#include <math.h>

static double single(double x)
{
    return (double)(float)x;
}

const char *pe_ggml_lacks(const pe_frequencies *f)
{
    static const char own[] = "makes frequencies of its own out of base; choose angles=exact or float32, or "
                              "give freq_factors=yes with schedule=default";
    static const char *const lacks[PE_SCHEDULES] = {
        [PE_NTK_MIXED] = "has no ntk_mixed; choose ntk, or angles=exact or float32",
        [PE_DYNAMIC] =
            "has no dynamic, llama.cpp drops it; choose default or ntk, or angles=exact or float32",
        [PE_EXPLICIT] = own,
        [PE_PERIOD]   = own,
        [PE_PIXEL]    = own,
    };
    if (f->schedule == PE_YARN && !f->truncate)
        return "always has yarn's ramp end at whole pairs; leave out truncate=no, or choose angles=exact or "
               "float32";
    return lacks[f->schedule];
}

double pe_ggml_step(const pe_frequencies *f, int64_t d)
{
    const double base =
        f->schedule == PE_NTK ? f->base * pow(f->alpha, (double)d / (double)(d - 2)) : f->base;
    return single(pow(single(base), single(-2 / (double)d)));
}

double pe_ggml_slower(const pe_frequencies *f)
{
    const int has = f->schedule == PE_LINEAR || f->schedule == PE_YARN ||
                    (f->schedule == PE_PROPORTIONAL && !isnan(f->factor));
    return has ? single(1 / f->factor) : 1; /* rounded once: a factor of a file is float32 already */
}

/* As the converter finds it: wavelengths are compared, the middle is blended, all in float32. */
static double llama3(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    pe_frequencies plain = *f;
    plain.schedule       = PE_DEFAULT;
    plain.single         = 1;
    const double low = f->low_freq_factor, high = f->high_freq_factor,
                 wave = single(single(1 / pe_schedule_frequency(&plain, m, j, d, 1)) * single(2 * PE_PI));
    if (wave < single(f->original_length / high))
        return 1;
    if (wave > single(f->original_length / low) || low == high)
        return single(f->factor);
    const double turns = single(single(1 / wave) * single(f->original_length)),
                 whole = single(single(turns - low) / single(high - low)),
                 slow  = single(single(1 - whole) / single(f->factor));
    return single(1 / single(slow + whole));
}

double pe_ggml_divisor(const pe_frequencies *f, int64_t m, int64_t j, int64_t d)
{
    const double *list = pe_schedule_is_long(f) ? f->long_factor : f->short_factor;
    switch (f->schedule) {
    case PE_LONGROPE: return list ? single(list[m]) : 1;
    case PE_LLAMA3: return llama3(f, m, j, d);
    case PE_PROPORTIONAL: return pe_schedule_frequency(f, m, j, d, 1) != 0 ? 1 : single(1e30);
    default: return 1;
    }
}

int pe_ggml_divides(pe_schedule schedule)
{
    return schedule == PE_LONGROPE || schedule == PE_LLAMA3 || schedule == PE_PROPORTIONAL;
}

/* The pair that turns `turns` times within the trained length; not a whole number. */
static double pair_of_turns(const pe_frequencies *f, double turns, int64_t d)
{
    const double within = single(f->original_length / single(single(turns * 2) * single(PE_PI)));
    return single(single((double)d * single(log(within))) / single(2 * single(log(single(f->base)))));
}

double pe_ggml_share(const pe_frequencies *f, int64_t j, int64_t d)
{
    if (f->schedule != PE_YARN || f->extrapolation_factor == 0)
        return 0;
    const double low  = fmax(floor(pair_of_turns(f, single(f->beta_fast), d)), 0),
                 high = fmin(ceil(pair_of_turns(f, single(f->beta_slow), d)), (double)(d - 1)),
                 over = single(single((double)j - low) / fmax(single(0.001), single(high - low)));
    return single((1 - fmin(1, fmax(0, over))) * single(f->extrapolation_factor));
}
