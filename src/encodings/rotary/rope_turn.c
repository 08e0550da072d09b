/* SPDX-License-Identifier: MIT */
/* The rotation that rope's settings ask for, its gradient, and first values of its parameters. Contract:
   rope.h. */
#include "rope.h"

#include "base/half.h"
#include "engine/ggml.h"

/* ---- settings as the machines want them ---- */

static double real_of(const pe_problem *p, int setting)
{
    return p->set[setting].given ? p->set[setting].real : NAN;
}

pe_axes pe_rope_axes(const pe_problem *p)
{
    const pe_value *sections = &p->set[SECTIONS];
    pe_axes         x        = {.rule  = (pe_axis_rule)p->set[AXIS_RULE].integer,
                                .M     = p->set[DIM].integer / 2,
                                .N     = (int)p->set[AXES].integer,
                                .given = sections->count};
    for (int n = 0; n < sections->count; n++)
        x.sections[n] = sections->items[n];
    return x;
}

int64_t pe_rope_heads(const pe_problem *p)
{
    return p->set[PER_HEAD].integer ? p->H : 1;
}

const double *pe_rope_parameter(const pe_rotary_run *run, int index)
{
    return run->par ? run->par[index] : NULL;
}

pe_frequencies pe_rope_frequencies(const pe_problem *p, const pe_rotary_run *run)
{
    return (pe_frequencies){
        .schedule              = (pe_schedule)p->set[SCHEDULE].integer,
        .rule                  = (pe_magnitude_rule)p->set[MAGNITUDE_RULE].integer,
        .single                = p->set[ANGLES].integer == PE_FLOAT32,
        .base                  = real_of(p, BASE),
        .log_base              = pe_wide_log(pe_wide_of(p->set[BASE].real)),
        .factor                = real_of(p, FACTOR),
        .alpha                 = real_of(p, ALPHA),
        .mixed_b               = real_of(p, MIXED_B),
        .original_length       = real_of(p, ORIGINAL_LENGTH),
        .max_length            = real_of(p, MAX_LENGTH),
        .length                = p->set[LENGTH].given ? p->set[LENGTH].real : run->length,
        .beta_fast             = real_of(p, BETA_FAST),
        .beta_slow             = real_of(p, BETA_SLOW),
        .truncate              = p->set[TRUNCATE].integer == 1,
        .extrapolation_factor  = real_of(p, EXTRAPOLATION_FACTOR),
        .low_freq_factor       = real_of(p, LOW_FREQ_FACTOR),
        .high_freq_factor      = real_of(p, HIGH_FREQ_FACTOR),
        .partial_rotary_factor = real_of(p, PARTIAL_ROTARY_FACTOR),
        .min_period            = real_of(p, MIN_PERIOD),
        .max_period            = real_of(p, MAX_PERIOD),
        .max_freq              = real_of(p, MAX_FREQ),
        .linear_bands          = p->set[LINEAR_BANDS].integer == 1,
        .attention_factor      = real_of(p, ATTENTION_FACTOR),
        .attention_factor_long = real_of(p, ATTENTION_FACTOR_LONG),
        .attn_factor           = real_of(p, ATTN_FACTOR),
        .mscale                = real_of(p, MSCALE),
        .mscale_all_dim        = real_of(p, MSCALE_ALL_DIM),
        .inv_freq              = pe_rope_parameter(run, INV_FREQ),
        .short_factor          = pe_rope_parameter(run, SHORT_FACTOR),
        .long_factor           = pe_rope_parameter(run, LONG_FACTOR),
    };
}

/* ---- the rotation ---- */

/* A block for each coordinate, where pairs stay within it. */
static void set_blocks(const pe_axes *x, pe_turn *t)
{
    if (x->rule != PE_HALVES || x->N == 1)
        return;
    t->blocks = x->N;
    for (int n = 0; n < x->N; n++)
        t->start[n + 1] = t->start[n] + pe_axis_block(x, n);
}

static void set_pairs(const pe_problem *p, pe_turn *t)
{
    const pe_axes   x      = pe_rope_axes(p);
    const pe_layout layout = p->set[LAYOUT].integer == 0 ? PE_INTERLEAVED : PE_HALF;
    pe_turn_one_block(t, x.M, p->set[OFFSET_DIM].integer, layout);
    if (p->set[LAYOUT_OUT].integer)
        t->layout_out = p->set[LAYOUT_OUT].integer == 1 ? PE_INTERLEAVED : PE_HALF;
    t->sense     = p->set[DIRECTION].integer ? -1 : 1;
    t->is_matrix = x.rule == PE_MATRIX;
    set_blocks(&x, t);
    pe_axes_deal(&x, t->axis, t->index);
}

static double frequency_of(const pe_problem *p, const pe_frequencies *f, const pe_rotary_run *run,
                           const pe_axes *x, const pe_turn *t, int64_t m)
{
    const double *factors = pe_rope_parameter(run, FREQ_FACTORS), *peer = pe_rope_parameter(run, INV_FREQ32);
    if (pe_rope_has(p->set, INV_FREQ32))
        return peer ? peer[m] : NAN;
    return pe_frequency_at(f, m, t->index[m], pe_axis_width(x, t->axis[m]), factors ? factors[m] : 1);
}

static void set_frequencies(const pe_problem *p, const pe_rotary_run *run, pe_turn *t)
{
    const pe_frequencies f      = pe_rope_frequencies(p, run);
    const pe_axes        x      = pe_rope_axes(p);
    const double        *matrix = pe_rope_parameter(run, FREQ_MATRIX),
                 *factors       = pe_rope_parameter(run, FREQ_FACTORS);
    const int64_t type          = p->set[FREQUENCY_TYPE].integer;
    const int     columns       = t->is_matrix ? x.N : 1;
    t->magnitude                = pe_magnitude_of(&f);
    for (int64_t i = 0; i < t->heads * t->M * columns; i++) {
        const int64_t m = i / columns % t->M;
        const double  w = !t->is_matrix ? frequency_of(p, &f, run, &x, t, m)
                          : matrix      ? matrix[i] / (factors ? factors[m] : 1)
                                        : NAN;
        t->w[i] = type == PE_AS_F64 ? w : type == PE_AS_F32 ? (double)(float)w : pe_rounded_to_bf16(w);
    }
}

static void set_ggml(const pe_problem *p, const pe_rotary_run *run, pe_turn *t)
{
    const double *factors  = pe_rope_parameter(run, FREQ_FACTORS),
                 *step     = pe_rope_parameter(run, THETA_SCALE32);
    const pe_frequencies f = pe_rope_frequencies(p, run);
    const pe_axes        x = pe_rope_axes(p);
    t->step                = step ? step[0] : pe_ggml_step(&f, pe_axis_width(&x, 0));
    t->slower              = pe_ggml_slower(&f);
    for (int64_t m = 0; m < t->M; m++) {
        const int64_t d = pe_axis_width(&x, t->axis[m]);
        t->divisor[m]   = factors ? factors[m] : pe_ggml_divisor(&f, m, t->index[m], d);
        t->share[m]     = pe_ggml_share(&f, t->index[m], d);
    }
}

void pe_rope_turn(const pe_problem *p, const pe_rotary_run *run, pe_turn *t)
{
    set_pairs(p, t);
    set_frequencies(p, run, t);
    t->angles = (pe_angles)p->set[ANGLES].integer;
    if (t->angles == PE_GGML)
        set_ggml(p, run, t);
    t->table_type         = (pe_number)p->set[TABLE_TYPE].integer;
    t->temperature        = (pe_temperature)p->set[TEMPERATURE_RULE].integer;
    t->temperature_scale  = p->set[TEMPERATURE_SCALE].real;
    t->temperature_length = p->set[TEMPERATURE_LENGTH].real;
}

/* Every parameter is a frequency, or divides one. */
void pe_rope_turn_back(const pe_problem *p, const pe_rotary_run *run, const pe_turn *t, const double dw[],
                       double *const dpar[])
{
    const pe_frequencies f       = pe_rope_frequencies(p, run);
    const double        *factors = pe_rope_parameter(run, FREQ_FACTORS);
    const int            lengthy = pe_schedule_is_long(&f) ? LONG_FACTOR : SHORT_FACTOR; /* the list in use */
    for (int64_t at = 0; at < t->heads * t->M * t->axes; at++) {
        const int64_t m     = at / t->axes % t->M;
        const double  slope = dw[at], divided = slope / (factors ? factors[m] : 1);
        const double  w = t->w[t->is_matrix ? at : m];
        pe_add(dpar, FREQ_MATRIX, at, divided);
        pe_add(dpar, INV_FREQ, m, divided);
        if (dpar[FREQ_FACTORS])
            dpar[FREQ_FACTORS][m] -= slope * w / factors[m];
        if (dpar[lengthy])
            dpar[lengthy][m] -= slope * w / run->par[lengthy][m];
    }
}

/* ---- parameters: which there are, initial values ---- */

int pe_rope_has(const pe_value *set, int index)
{
    const int is_matrix = set[AXIS_RULE].integer == PE_MATRIX;
    switch (index) {
    case INV_FREQ: return set[SCHEDULE].integer == PE_EXPLICIT && !is_matrix;
    case FREQ_FACTORS: return set[HAS_FREQ_FACTORS].integer == 1;
    case SHORT_FACTOR:
    case LONG_FACTOR: return set[SCHEDULE].integer == PE_LONGROPE;
    case FREQ_MATRIX: return is_matrix;
    case INV_FREQ32: return set[HAS_INV_FREQ32].integer == 1;
    default: return set[HAS_THETA_SCALE32].integer == 1;
    }
}

/* timm's mixed frequencies: both axes turned by one random angle for each head, the second half of the pairs
   at right angles to the first. With other numbers of coordinates pairs take turns. */
static double matrix_at(const pe_problem *p, const pe_random *rng, int64_t i)
{
    const int64_t M = p->set[DIM].integer / 2, N = p->set[AXES].integer, m = i / N % M, n = i % N,
                  half = (M + 1) / 2;
    const double dim = (double)p->set[DIM].integer, base = p->set[BASE].real;
    if (N != 2)
        return m % N == n ? pow(base, -2.0 * (double)N * (double)(m / N) / dim) : 0;
    const double quarter = 1.57079632679489662, own = pe_uniform_at(rng->key, (uint64_t)(i / (N * M))),
                 angle = 4 * quarter * own + (m < half ? 0 : quarter);
    return pow(base, -4.0 * (double)(m % half) / dim) * (n == 0 ? cos(angle) : sin(angle));
}

double pe_rope_init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    const pe_rotary_run none = {NULL, 0};
    const int64_t       dim  = p->set[DIM].integer;
    const pe_axes       x    = pe_rope_axes(p);
    pe_frequencies      f = pe_rope_frequencies(p, &none), plain = f;
    plain.schedule = PE_DEFAULT;
    plain.single   = 0;
    switch (index) {
    case INV_FREQ: return pe_frequency_at(&plain, i, i, dim, 1);
    case FREQ_MATRIX: return matrix_at(p, rng, i);
    case THETA_SCALE32: return pe_ggml_step(&f, pe_axis_width(&x, 0));
    case INV_FREQ32: /* what angles=float32 has by itself as long as the sequence is short */
        return f.schedule == PE_EXPLICIT ? (double)(float)pe_frequency_at(&plain, i, i, dim, 1)
                                         : pe_frequency_at(&f, i, i, dim, 1);
    default: return 1;
    }
}
