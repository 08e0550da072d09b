/* SPDX-License-Identifier: MIT */
/*
 * RoPE: rotary position embedding, with everything that models have made of it
 *
 * Place    rotary: q and k are rotated by their positions before their product
 * Formula  pair m of channels, (x, y) at position P: (x cos a - y sin a, y cos a + x sin a) * magnitude,
 *          a = P * w_m
 *          w_m = base^(-2m/dim), m = 0 .. dim/2 - 1, or what `schedule` makes of it (rotation/schedule.h)
 *          so q_i . k_j depends only on content and on P(i) - P(j)
 *          with several axes pair m follows one coordinate of P, by `axis_rule` (rotation/axes.h);
 *          of a matrix F all of them: a = sum_n P_n F[m,n]
 * Learns   nothing; freq_matrix [M,N] where axis_rule=matrix, [H,M,N] with per_head (a timm model has one for
 *          each layer)
 * Source   Su et al. 2021, arXiv:2104.09864, eq. 34; half-split pairing: EleutherAI/gpt-neox; schedules: Chen
 *          et al. 2023, arXiv:2306.15595 (linear), Peng et al. 2023, arXiv:2309.00071 (ntk, dynamic, yarn),
 *          Ding et al. 2024, arXiv:2402.13753 (longrope), Meta (llama3), Google (proportional); names as in
 *          huggingface/transformers
 *
 * Which two channels make a pair is written in no model file, and a wrong guess runs without an error:
 * `interleaved` pairs neighbours (the paper, GPT-J, Llama as stored by Meta and in GGUF), `half` pairs m with
 * m + dim/2 (GPT-NeoX, Llama as stored by Hugging Face). Channels outside the block pass unchanged, without
 * the magnitude. A temperature is no rotation: it multiplies whole queries, passing channels too.
 *
 * Maps     ReRoPE (bojone/rerope), Self-Extend (arXiv:2401.01325) and DCA (arXiv:2402.17463) turn
 *          a pair of tokens by another distance than that between them: engine/rotation/map.h. q_phase:
 *          RoPE++, arXiv:2512.07525; resonance: arXiv:2403.00071.
 * Content  In place of P w_m the angle of token l is z_l w_m (RePo, arXiv:2512.14391), phi_lm itself (CARoPE,
 *          arXiv:2507.23083) or w_m times the sum of phi_um over the tokens u <= l (Selective RoPE,
 *          arXiv:2511.17388, whose base is 5e5 and layout half), z and phi made by the model. A query turns
 *          by the angle of the token that it is: the last key of its segment not beyond its position.
 * Numbers  Angles are those of the exact product of position and frequency. Models were trained with rougher
 *          ones: angles=float32 rounds frequencies and products as the common Python code does, angles=ggml
 *          as llama.cpp does; where the last bit of their power functions matters, inv_freq32 and
 *          theta_scale32 bring the peer's own numbers.
 * Lengths  dynamic and longrope follow `length`; without it the largest position of the run and one, as the
 *          peers do: then keys in a cache may carry other frequencies than the queries.
 *          posenc_rotary_rerotate rotates them again.
 */
#include "encodings/encoding.h"

#include "base/half.h"
#include "base/shared/pi.h"
#include "engine/rotation/axes.h"
#include "engine/rotation/ggml.h"
#include "engine/rotation/schedule.h"

enum {
    LAYOUT,
    LAYOUT_OUT,
    DIM,
    OFFSET_DIM,
    BASE,
    SCHEDULE,
    FACTOR,
    ALPHA,
    MIXED_B,
    ORIGINAL_LENGTH,
    MAX_LENGTH,
    LENGTH,
    BETA_FAST,
    BETA_SLOW,
    TRUNCATE,
    EXTRAPOLATION_FACTOR,
    LOW_FREQ_FACTOR,
    HIGH_FREQ_FACTOR,
    PARTIAL_ROTARY_FACTOR,
    MIN_PERIOD,
    MAX_PERIOD,
    MAX_FREQ,
    LINEAR_BANDS,
    MAGNITUDE_RULE,
    ATTENTION_FACTOR,
    ATTENTION_FACTOR_LONG,
    ATTN_FACTOR,
    MSCALE,
    MSCALE_ALL_DIM,
    AXES,
    AXIS_RULE,
    SECTIONS,
    DIRECTION,
    ANGLES,
    FREQUENCY_TYPE,
    TABLE_TYPE,
    TEMPERATURE_RULE,
    TEMPERATURE_SCALE,
    TEMPERATURE_LENGTH,
    RESONANCE,
    CUT_LENGTH,
    Q_PHASE,
    PHASE_HEADS,
    MAP,
    MAP_WINDOW,
    MAP_FACTOR,
    MAP_OFFSET,
    MAP_CHUNK,
    MAP_LOCAL,
    CONTENT,
    PER_HEAD,
    HAS_FREQ_FACTORS,
    HAS_INV_FREQ32,
    HAS_THETA_SCALE32
}; /* ORDER settings */

/* Words stand in the order of the enums of schedule.h, axes.h and rotation.h. */
static const posenc_setting_info settings[] = {
    {"layout", "word", "interleaved", "interleaved|half", "pairs (2m, 2m+1), or (m, m + dim/2)"},
    {"layout_out", "word", "same", "same|interleaved|half",
     "order of the result; DeepSeek reads neighbours and writes halves"},
    {"dim", "integer", "D", "2..", "rotated channels, even; the rest of the head passes unchanged"},
    {"offset_dim", "integer", "0", "0..", "first rotated channel; D - dim rotates the tail, as MLA does"},
    {"base", "real", "10000", "1<..", "theta: the slowest pair rotates by about 1/base per token"},
    {"schedule", "word", "default",
     "default|linear|ntk|ntk_mixed|dynamic|yarn|longrope|llama3|proportional|explicit|period|pixel",
     "how frequencies follow from base; explicit: parameter inv_freq; period, pixel: for coordinates from -1 "
     "to 1"},
    {"factor", "real", "", "0<..",
     "f: how much longer than trained (linear, ntk_mixed, dynamic, yarn, longrope, llama3, proportional)"},
    {"alpha", "real", "", "0<..", "ntk: base becomes base * alpha^(dim/(dim-2))"},
    {"mixed_b", "real", "", "", "ntk_mixed: exponent of Su's mixed form; absent: the plain form"},
    {"original_length", "real", "", "1<..", "context of the first training (yarn, longrope, llama3)"},
    {"max_length", "real", "", "1<..",
     "longest trained context (dynamic; longrope: gives the factor where that is absent)"},
    {"length", "real", "", "0..",
     "present length (dynamic, longrope); absent: the largest position of the run + 1"},
    {"beta_fast", "real", "32", "0<..",
     "yarn: pairs that rotate more often within original_length stay as they are"},
    {"beta_slow", "real", "1", "0<..", "yarn: pairs that rotate less often are slowed by factor"},
    {"truncate", "flag", "yes", "yes|no", "yarn: the ramp's ends are whole pairs; gpt-oss has no"},
    {"extrapolation_factor", "real", "1", "0..",
     "yarn: how far pairs stay as they are at all: w' = w e (1 - ramp) + w/factor (1 - e (1 - ramp))"},
    {"low_freq_factor", "real", "", "0<..",
     "llama3: pairs with fewer rotations within original_length are slowed by factor"},
    {"high_freq_factor", "real", "", "0<..",
     "llama3: pairs with more rotations stay as they are; not above low_freq_factor: a step there, no ramp"},
    {"partial_rotary_factor", "real", "", "0<..1", "proportional: share of the pairs that rotate"},
    {"min_period", "real", "", "0<..", "period: of the fastest pair, with max_period instead of base"},
    {"max_period", "real", "", "0<..", "period: of the slowest pair"},
    {"max_freq", "real", "", "2..",
     "pixel: twice the half-waves of the fastest pair between -1 and 1; timm 224, lucidrains 10"},
    {"linear_bands", "flag", "yes", "yes|no", "pixel: frequencies in equal steps, or by powers of 2"},
    {"magnitude_rule", "word", "hf", "hf|vllm|deepseek|ggml|none",
     "whose rule for the factor on cosine and sine"},
    {"attention_factor", "real", "", "0<..", "the magnitude itself (hf: yarn, longrope)"},
    {"attention_factor_long", "real", "", "0<..",
     "longrope: the magnitude beyond original_length where it is another there, PhiMoE's long_mscale (hf)"},
    {"attn_factor", "real", "", "0<..", "multiplies the magnitude (vllm, deepseek, ggml)"},
    {"mscale", "real", "", "0..", "of the magnitude of yarn (hf, deepseek)"},
    {"mscale_all_dim", "real", "", "0..", "what mscale is divided by (hf, deepseek)"},
    {"axes", "integer", "1", "1..8", "coordinates of a position"},
    {"axis_rule", "word", "sections",
     "sections|interleaved_sections|interleaved_sections_ggml|alternate_sections|balanced|axial|halves|axial_"
     "alternate|"
     "alternate|matrix",
     "which coordinate each pair follows, and with which frequency; matrix: parameter freq_matrix"},
    {"sections", "list", "", "0..", "pairs for each coordinate, for the rules that need it: 24:20:20"},
    {"direction", "word", "forward", "forward|inverse", "inverse rotates by -a with the same magnitude"},
    {"angles", "word", "exact", "exact|float32|ggml",
     "exact products, or rounded as the common Python code, or as ggml"},
    {"frequency_type", "word", "f64", "f64|f32|bf16", "the finished frequencies are rounded to it, once"},
    {"table_type", "word", "f64", "f64|f32|bf16|f16",
     "cosine and sine, times the magnitude, are rounded to it, once: peers round to float32 before, which "
     "differs where that hits a tie"},
    {"temperature_rule", "word", "none", "none|llama4|ministral",
     "1 + temperature_scale * ln(1 + floor(x/temperature_length)) on q; x = P + 1 (llama4) or P, P the first "
     "coordinate"},
    {"temperature_scale", "real", "0.1", "", "see temperature_rule"},
    {"temperature_length", "real", "8192", "0<..", "see temperature_rule"},
    {"resonance", "flag", "no", "yes|no",
     "wavelengths, in tokens, become whole numbers: every pair comes back to where it was (Resonance RoPE)"},
    {"cut_length", "real", "", "0<..", "pairs whose wavelength is longer than this do not rotate (HoPE)"},
    {"q_phase", "real", "0", "", "radians by which every pair of a query is turned further (RoPE++: -pi/2)"},
    {"phase_heads", "word", "all", "all|odd|second_half", "q_phase: which query heads have it"},
    {"map", "word", "none", "none|rerope|leaky_rerope|self_extend|dca",
     "attention turns pairs of tokens by another distance, so that far ones stay within the trained length"},
    {"map_window", "real", "", "0<..",
     "map: w, up to which distances stay; absent: 512, of self_extend (a whole number) 1024"},
    {"map_factor", "real", "", "1..",
     "map: how much shorter farther ones get; absent: leaky_rerope 16, self_extend (whole: its group) 8"},
    {"map_offset", "word", "", "floor|exact",
     "map=self_extend: groups start at w - w//G (absent, and as decoding does), or at w - w/G"},
    {"map_chunk", "integer", "", "1..", "map=dca: distances stay below it"},
    {"map_local", "integer", "", "1..", "map=dca: tokens of the chunk before that keep their distance"},
    {"content", "word", "none", "none|position|angle|step",
     "angles follow a token input: a position z for all pairs, angles phi, or phi as steps that are summed "
     "over the tokens and multiplied by the frequencies"},
    {"per_head", "flag", "no", "yes|no",
     "axis_rule=matrix: frequencies of its own for each head, as timm's mixed ones; key heads as many"},
    {"freq_factors", "flag", "no", "yes|no",
     "divide the finished frequencies by the parameter of that name (GGUF rope_freqs)"},
    {"inv_freq32", "flag", "no", "yes|no",
     "angles=float32: take the peer's own frequencies, the parameter of that name"},
    {"theta_scale32", "flag", "no", "yes|no",
     "angles=ggml: take the peer's own step, the parameter of that name"},
    {0},
};
static_assert(PE_ROWS(settings) == HAS_THETA_SCALE32 + 1, "ORDER settings");
static_assert(PE_ROWS(settings) <= PE_MAX_SETTINGS, "more settings than an encoding can have");

enum {
    INV_FREQ,
    FREQ_FACTORS,
    SHORT_FACTOR,
    LONG_FACTOR,
    FREQ_MATRIX,
    INV_FREQ32,
    THETA_SCALE32
}; /* ORDER params */

static const posenc_param_info params[] = {
    {"inv_freq", "dim/2", "base^(-2m/dim)", "schedule=explicit: the frequencies, radians per step", 0},
    {"freq_factors", "dim/2", "ones", "freq_factors=yes: each frequency is divided by its own", 0},
    {"short_factor", "dim/2", "ones", "longrope: each frequency is divided by its own up to original_length",
     0},
    {"long_factor", "dim/2", "ones", "longrope: and beyond it", 0},
    {"freq_matrix", "H if per_head,dim/2,axes", "timm's rotated axes",
     "axis_rule=matrix: F, radians per step of each coordinate", 1},
    {"inv_freq32", "dim/2", "as the Python code rounds it", "inv_freq32=yes: float32 frequencies of a peer",
     0},
    {"theta_scale32", "", "base^(-2/dim) in float32", "theta_scale32=yes: ggml's step from pair to pair", 0},
    {0},
};
static_assert(PE_ROWS(params) == THETA_SCALE32 + 1, "ORDER params");

enum { Z, PHI }; /* ORDER tokens */
static const posenc_token_info tokens[] = {
    {"z", "1", "content=position: where a token stands, a real number", 1, 0, 1, POSENC_TOKEN_PLAIN},
    {"phi", "dim/2", "content=angle, content=step: of each pair, radians, or steps of its position", 1, 0, 1,
     POSENC_TOKEN_PLAIN},
    {0},
};
static_assert(PE_ROWS(tokens) == PHI + 1, "ORDER tokens");

static const posenc_example examples[] = {
    {"D=128", 0, 0, 0, 1.0, "w_0 = 1 whatever the base"},
    {"D=128", 1, 0, 0, 0.865964323360065, "10000^(-2/128)"},
    {"D=128", 63, 0, 0, 1.15478198468946e-4, "slowest pair: wavelength 54410 tokens"},
    {"D=128 base=5e5", 1, 0, 0, 0.814617233856545, "Llama 3's base"},
    {"D=64 dim=32", 15, 0, 0, 1.7782794100389228e-4, "partial: 10000^(-30/32)"},
    {"D=128 schedule=ntk alpha=8", 1, 0, 0, 0.837848001918802, "base 82684.6"},
    {"D=128 schedule=ntk_mixed factor=4", 0, 0, 0, 0.978572062087700,
     "even the first pair is slowed, by 4^(2/128)"},
    {"D=64 schedule=yarn factor=40 original_length=4096", 16, 0, 0, 0.0055,
     "DeepSeek-V3: pair 16 of the ramp 10 to 23"},
    {"D=64 schedule=yarn factor=40 original_length=4096", 31, 0, 0, 3.33380358040831e-6,
     "DeepSeek-V3: its slowest pair"},
    {"D=128 base=1e6 schedule=yarn factor=4 original_length=32768", 31, 0, 0, 8.02959727545230e-4,
     "Qwen2.5 and Qwen3"},
    {"D=64 base=1.5e5 schedule=yarn factor=32 original_length=4096 truncate=no", 13, 0, 0,
     3.86035931719207e-3, "gpt-oss"},
    {"D=128 base=5e5 schedule=llama3 factor=8 low_freq_factor=1 high_freq_factor=4 original_length=8192", 29,
     0, 0, 2.16657076350336e-3, "Llama 3.1: the first of six pairs between"},
    {"D=512 base=1e6 schedule=proportional partial_rotary_factor=0.25", 63, 0, 0, 0.0333762469429204,
     "Gemma 4: the last pair that rotates"},
    {"D=512 base=1e6 schedule=proportional partial_rotary_factor=0.25", 64, 0, 0, 0,
     "and the first that does not"},
    {"D=64 base=100 schedule=period axes=2 axis_rule=axial", 1, 0, 0, 4.71172427801674,
     "DINOv3: 2 pi / 1.3335"},
    {0},
};

/* ---- settings as the engine wants them ---- */

static int coordinates(const pe_value *set)
{
    return (int)set[AXES].integer;
}

static double real_of(const pe_problem *p, int setting)
{
    return p->set[setting].given ? p->set[setting].real : NAN;
}

static pe_axes axes_of(const pe_problem *p)
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

static const double *parameter(const pe_rotary_run *run, int index)
{
    return run->par ? run->par[index] : NULL;
}

static pe_frequencies frequencies(const pe_problem *p, const pe_rotary_run *run)
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
        .inv_freq              = parameter(run, INV_FREQ),
        .short_factor          = parameter(run, SHORT_FACTOR),
        .long_factor           = parameter(run, LONG_FACTOR),
    };
}

static int has(const pe_value *set, int index)
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

static int has_token(const pe_value *set, int index)
{
    const int64_t content = set[CONTENT].integer;
    return content != PE_CONTENT_NONE && (content == PE_CONTENT_POSITION) == (index == Z);
}

/* ---- what fits together ---- */

/* Settings without which a schedule has no meaning. */
static const struct {
    pe_schedule schedule;
    int         setting;
} needs[] = {
    {PE_LINEAR, FACTOR},           {PE_NTK, ALPHA},
    {PE_NTK_MIXED, FACTOR},        {PE_DYNAMIC, FACTOR},
    {PE_DYNAMIC, MAX_LENGTH},      {PE_YARN, FACTOR},
    {PE_YARN, ORIGINAL_LENGTH},    {PE_LONGROPE, ORIGINAL_LENGTH},
    {PE_LLAMA3, FACTOR},           {PE_LLAMA3, LOW_FREQ_FACTOR},
    {PE_LLAMA3, HIGH_FREQ_FACTOR}, {PE_LLAMA3, ORIGINAL_LENGTH},
    {PE_PIXEL, MAX_FREQ},          {PE_PROPORTIONAL, PARTIAL_ROTARY_FACTOR},
};

static posenc_status check_schedule(const pe_problem *p, posenc_error *err)
{
    const pe_value   *set      = p->set;
    const pe_schedule schedule = (pe_schedule)set[SCHEDULE].integer;
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (needs[i].schedule == schedule && !set[needs[i].setting].given)
            return pe_fail(err, POSENC_ERROR_SETTING,
                           "rope: this schedule needs %s; give %s=..., a number in %s",
                           settings[needs[i].setting].name, settings[needs[i].setting].name,
                           settings[needs[i].setting].range);
    if (schedule == PE_LONGROPE && !set[FACTOR].given && !set[MAX_LENGTH].given)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: schedule=longrope needs factor or max_length; give one of them");
    if (schedule == PE_PERIOD && set[MIN_PERIOD].given != set[MAX_PERIOD].given)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: schedule=period takes min_period and max_period together, or base");
    return POSENC_OK;
}

/* A list of one pair has no exponent dim/(dim-2). */
static posenc_status check_lists(const pe_problem *p, const pe_axes *x, posenc_error *err)
{
    const int64_t schedule = p->set[SCHEDULE].integer;
    for (int n = 0; (schedule == PE_NTK || schedule == PE_DYNAMIC) && n < x->N; n++)
        if (pe_axes_width(x, n) == 2)
            return pe_fail(
                err, POSENC_ERROR_SETTING,
                "rope: schedules ntk and dynamic need at least 2 pairs in each list; dim=%lld gives 1",
                (long long)p->set[DIM].integer);
    return POSENC_OK;
}

static posenc_status check_heads(const pe_problem *p, posenc_error *err)
{
    if (!p->set[PER_HEAD].integer)
        return POSENC_OK;
    if (p->set[AXIS_RULE].integer != PE_MATRIX)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: per_head=yes needs axis_rule=matrix; add it, with axes=1 where positions have "
                       "one coordinate");
    if (p->G != p->H)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: per_head=yes needs as many key heads as heads, %lld, not %lld: a key is "
                       "multiplied with queries of one head only",
                       (long long)p->H, (long long)p->G);
    return POSENC_OK;
}

/* What ggml can be told: engine/rotation/ggml.h. */
static posenc_status check_ggml(const pe_problem *p, const pe_axes *x, posenc_error *err)
{
    const pe_rotary_run  none  = {NULL, 0};
    const pe_frequencies f     = frequencies(p, &none);
    const char          *lacks = pe_ggml_lacks(&f);
    if (p->set[ANGLES].integer != PE_GGML)
        return POSENC_OK;
    if (x->rule == PE_MATRIX)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: angles=ggml has no axis_rule=matrix; choose exact or float32");
    if (lacks)
        return pe_fail(err, POSENC_ERROR_SETTING, "rope: angles=ggml %s", lacks);
    if (pe_ggml_divides(f.schedule) && p->set[HAS_FREQ_FACTORS].integer)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: angles=ggml has one list of divisors, which this schedule fills; leave out "
                       "freq_factors=yes, or choose schedule=default");
    for (int n = 0; (f.schedule == PE_YARN || pe_ggml_divides(f.schedule)) && n < x->N; n++)
        if (pe_axes_width(x, n) != 2 * x->M)
            return pe_fail(
                err, POSENC_ERROR_SETTING,
                "rope: angles=ggml has this schedule only for one list over all pairs; choose an axis_rule "
                "of sections, or angles=exact or float32");
    return POSENC_OK;
}

static posenc_status check_numbers(const pe_problem *p, posenc_error *err)
{
    const pe_value *set    = p->set;
    const int64_t   angles = set[ANGLES].integer, schedule = set[SCHEDULE].integer;
    if (set[HAS_INV_FREQ32].integer && (angles != PE_FLOAT32 || set[AXIS_RULE].integer == PE_MATRIX))
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: inv_freq32=yes needs angles=float32 and an axis_rule other than matrix");
    if (set[HAS_THETA_SCALE32].integer && angles != PE_GGML)
        return pe_fail(err, POSENC_ERROR_SETTING, "rope: theta_scale32=yes needs angles=ggml");
    if (set[AXIS_RULE].integer == PE_MATRIX && schedule != PE_DEFAULT && schedule != PE_EXPLICIT)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: axis_rule=matrix has its own frequencies; leave out schedule, or choose "
                       "schedule=explicit");
    return POSENC_OK;
}

/* Wavelengths in tokens belong to frequencies that a schedule makes. */
static posenc_status check_wavelengths(const pe_problem *p, posenc_error *err)
{
    const char *name = p->set[RESONANCE].integer ? "resonance=yes" : "cut_length";
    if (!p->set[RESONANCE].integer && !p->set[CUT_LENGTH].given)
        return POSENC_OK;
    if (p->set[AXIS_RULE].integer == PE_MATRIX || p->set[ANGLES].integer == PE_GGML)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: %s changes the frequencies of a schedule; %s has its own", name,
                       p->set[ANGLES].integer == PE_GGML ? "angles=ggml" : "axis_rule=matrix");
    return POSENC_OK;
}

static posenc_status check_phase(const pe_problem *p, posenc_error *err)
{
    if (p->set[PHASE_HEADS].integer != PE_PHASE_SECOND_HALF || p->H % 2 == 0)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING,
                   "rope: phase_heads=second_half needs an even number of heads, not %lld", (long long)p->H);
}

/* Which settings a map uses. */
static int map_uses(pe_map_kind map, int setting)
{
    switch (setting) {
    case MAP_WINDOW: return map == PE_REROPE || map == PE_LEAKY_REROPE || map == PE_SELF_EXTEND;
    case MAP_FACTOR: return map == PE_LEAKY_REROPE || map == PE_SELF_EXTEND;
    case MAP_OFFSET: return map == PE_SELF_EXTEND;
    default: return map == PE_DCA;
    }
}

static pe_map map_of(const pe_problem *p)
{
    const pe_value   *set     = p->set;
    const pe_map_kind kind    = (pe_map_kind)set[MAP].integer;
    const int         extends = kind == PE_SELF_EXTEND;
    const double      w       = set[MAP_WINDOW].given ? set[MAP_WINDOW].real
                                : extends             ? 1024
                                                      : 512,
                 f            = set[MAP_FACTOR].given ? set[MAP_FACTOR].real
                                : extends             ? 8
                                                      : 16;
    return (pe_map){.kind   = kind,
                    .window = w,
                    .factor = f,
                    .offset = w - (set[MAP_OFFSET].integer == 1 ? w / f : floor(w / f)),
                    .chunk  = (double)set[MAP_CHUNK].integer,
                    .local  = (double)set[MAP_LOCAL].integer};
}

static posenc_status check_map(const pe_problem *p, posenc_error *err)
{
    const pe_value *set = p->set;
    const pe_map    map = map_of(p);
    for (int i = MAP_WINDOW; i <= MAP_LOCAL; i++)
        if (set[i].given && !map_uses(map.kind, i))
            return pe_fail(
                err, POSENC_ERROR_SETTING,
                "rope: %s is given, but this map does not use it; leave it out, or choose another map",
                settings[i].name);
    if (map.kind == PE_MAP_NONE)
        return POSENC_OK;
    if (set[AXES].integer != 1)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: map= is for positions of one coordinate; leave out axes=%lld",
                       (long long)set[AXES].integer);
    if (set[TEMPERATURE_RULE].integer)
        return pe_fail(
            err, POSENC_ERROR_SETTING,
            "rope: temperature_rule does not go with map=; take temperature=, which every encoding has");
    if (map.kind == PE_SELF_EXTEND && (map.window != floor(map.window) || map.factor != floor(map.factor)))
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: map=self_extend needs whole numbers; map_window is %g, map_factor %g",
                       map.window, map.factor);
    if (map.kind == PE_DCA && !(map.local > 0 && map.local < map.chunk))
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: map=dca needs map_chunk and map_local, above 0 and below map_chunk");
    return POSENC_OK;
}

static posenc_status check_content(const pe_problem *p, posenc_error *err)
{
    const pe_value *set   = p->set;
    const char     *other = set[AXES].integer != 1                ? "axes"
                            : set[AXIS_RULE].integer == PE_MATRIX ? "axis_rule=matrix"
                            : set[MAP].integer                    ? "map"
                            : set[ANGLES].integer == PE_GGML      ? "angles=ggml"
                            : set[TEMPERATURE_RULE].integer       ? "temperature_rule"
                            : set[AXIS_RULE].integer == PE_HALVES ? "axis_rule=halves"
                                                                  : NULL;
    if (set[CONTENT].integer == PE_CONTENT_NONE || !other)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SETTING,
                   "rope: content= makes angles of a token input, one for each pair; leave out %s%s", other,
                   set[TEMPERATURE_RULE].integer ? ", and take temperature=, which every encoding has" : "");
}

static posenc_status check(const pe_problem *p, posenc_error *err)
{
    const int64_t dim = p->set[DIM].integer, offset = p->set[OFFSET_DIM].integer;
    const pe_axes x = axes_of(p);
    if (pe_rotation_check_dim("rope", dim, p->D, err))
        return POSENC_ERROR_SETTING;
    if (offset > p->D - dim)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "rope: offset_dim=%lld and dim=%lld end beyond the head width %lld", (long long)offset,
                       (long long)dim, (long long)p->D);
    posenc_status status;
    if ((status = pe_axes_check(&x, "rope", err)) || (status = check_schedule(p, err)) ||
        (status = check_lists(p, &x, err)) || (status = check_heads(p, err)) ||
        (status = check_ggml(p, &x, err)) || (status = check_wavelengths(p, err)) ||
        (status = check_phase(p, err)) || (status = check_map(p, err)) || (status = check_content(p, err)))
        return status;
    return check_numbers(p, err);
}

/* ---- the rotation ---- */

static void set_pairs(const pe_problem *p, pe_rotary *t)
{
    const pe_axes   x      = axes_of(p);
    const pe_layout layout = p->set[LAYOUT].integer == 0 ? PE_INTERLEAVED : PE_HALF;
    pe_rotation_one_block(t, x.M, p->set[OFFSET_DIM].integer, layout);
    if (p->set[LAYOUT_OUT].integer)
        t->layout_out = p->set[LAYOUT_OUT].integer == 1 ? PE_INTERLEAVED : PE_HALF;
    t->sense     = p->set[DIRECTION].integer ? -1 : 1;
    t->is_matrix = x.rule == PE_MATRIX;
    if (x.rule == PE_HALVES && x.N > 1) { /* a block for each coordinate: pairs stay within it */
        t->blocks = x.N;
        for (int n = 0; n < x.N; n++)
            t->start[n + 1] = t->start[n] + pe_axes_block(&x, n);
    }
    pe_axes_deal(&x, t->axis, t->index);
    t->content = (pe_content)p->set[CONTENT].integer;
    for (int64_t m = 0; t->content > PE_CONTENT_POSITION && m < t->M; m++)
        t->axis[m] = (int32_t)m; /* each pair has a number of its own */
}

static double frequency_of(const pe_problem *p, const pe_frequencies *f, const pe_rotary_run *run,
                           const pe_axes *x, const pe_rotary *t, int64_t m)
{
    const double *factors = parameter(run, FREQ_FACTORS), *peer = parameter(run, INV_FREQ32);
    if (has(p->set, INV_FREQ32))
        return peer ? peer[m] : NAN;
    return pe_schedule_frequency(f, m, t->index[m], pe_axes_width(x, t->content ? 0 : t->axis[m]),
                                 factors ? factors[m] : 1);
}

/* What is done to finished frequencies: whole wavelengths, ties to even; those that are too long are none. */
static double finished(const pe_problem *p, double w)
{
    if (p->set[RESONANCE].integer && w > 0)
        w = PE_TWO_PI / fmax(1, nearbyint(PE_TWO_PI / w));
    return p->set[CUT_LENGTH].given && PE_TWO_PI / w > p->set[CUT_LENGTH].real ? 0 : w;
}

static void set_frequencies(const pe_problem *p, const pe_rotary_run *run, pe_rotary *t)
{
    const pe_frequencies f      = frequencies(p, run);
    const pe_axes        x      = axes_of(p);
    const double        *matrix = parameter(run, FREQ_MATRIX), *factors = parameter(run, FREQ_FACTORS);
    const int64_t        type    = p->set[FREQUENCY_TYPE].integer;
    const int            columns = t->is_matrix ? x.N : 1;
    t->magnitude                 = pe_schedule_magnitude(&f);
    for (int64_t i = 0; i < t->heads * t->M * columns; i++) {
        const int64_t m = i / columns % t->M;
        const double  w = t->content == PE_CONTENT_ANGLE ? 1
                          : !t->is_matrix                ? finished(p, frequency_of(p, &f, run, &x, t, m))
                          : matrix                       ? matrix[i] / (factors ? factors[m] : 1)
                                                         : NAN;
        t->w[i] = type == PE_AS_F64 ? w : type == PE_AS_F32 ? (double)(float)w : pe_half_round_to_bf16(w);
    }
}

static void set_ggml(const pe_problem *p, const pe_rotary_run *run, pe_rotary *t)
{
    const double        *factors = parameter(run, FREQ_FACTORS), *step = parameter(run, THETA_SCALE32);
    const pe_frequencies f = frequencies(p, run);
    const pe_axes        x = axes_of(p);
    t->step                = step ? step[0] : pe_ggml_step(&f, pe_axes_width(&x, 0));
    t->slower              = pe_ggml_slower(&f);
    for (int64_t m = 0; m < t->M; m++) {
        const int64_t d = pe_axes_width(&x, t->axis[m]);
        t->divisor[m]   = factors ? factors[m] : pe_ggml_divisor(&f, m, t->index[m], d);
        t->share[m]     = pe_ggml_share(&f, t->index[m], d);
    }
}

static int depends_on_length(const pe_value *set)
{
    return pe_schedule_follows_length((pe_schedule)set[SCHEDULE].integer) && !set[LENGTH].given;
}

static int depends_on_run(const pe_value *set)
{
    for (int index = 0; index < PE_ROWS(params); index++)
        if (has(set, index))
            return 1;
    return depends_on_length(set);
}

static void fill(const pe_problem *p, const pe_rotary_run *run, pe_rotary *t)
{
    set_pairs(p, t);
    set_frequencies(p, run, t);
    t->depends_on_run    = depends_on_run(p->set);
    t->depends_on_length = depends_on_length(p->set);
    t->angles            = (pe_angles)p->set[ANGLES].integer;
    if (t->angles == PE_GGML)
        set_ggml(p, run, t);
    t->table_type         = (pe_number)p->set[TABLE_TYPE].integer;
    t->temperature        = (pe_temperature)p->set[TEMPERATURE_RULE].integer;
    t->temperature_scale  = p->set[TEMPERATURE_SCALE].real;
    t->temperature_length = p->set[TEMPERATURE_LENGTH].real;
    t->phase              = p->set[Q_PHASE].real;
    t->phase_heads        = (pe_phase_heads)p->set[PHASE_HEADS].integer;
    t->second_half        = p->H / 2;
    t->map                = map_of(p);
}

static int sees_future(const pe_value *set)
{
    return set[MAP].integer != PE_SELF_EXTEND && set[MAP].integer != PE_DCA;
}

static const char *no_gradient(const pe_value *set)
{
    if (set[MAP].integer)
        return "each class of pairs has distances of its own; leave out map=";
    if (set[CONTENT].integer)
        return "angles follow a token input, which has one; leave out content=";
    if (set[RESONANCE].integer)
        return "wavelengths that are rounded are steps; leave out resonance=yes";
    return set[ANGLES].integer == PE_EXACT ? NULL
                                           : "angles that are rounded to float32 are steps; use angles=exact";
}

/* Every parameter is a frequency, or divides one. */
static void fold(const pe_problem *p, const pe_rotary_run *run, const pe_rotary *t, const double dw[],
                 double *const dpar[])
{
    const pe_frequencies f       = frequencies(p, run);
    const double        *factors = parameter(run, FREQ_FACTORS);
    const int            lengthy = pe_schedule_is_long(&f) ? LONG_FACTOR : SHORT_FACTOR; /* the list in use */
    for (int64_t at = 0; at < t->heads * t->M * t->axes; at++) {
        const int64_t m     = at / t->axes % t->M;
        const double  slope = dw[at], divided = slope / (factors ? factors[m] : 1);
        const double  w = t->w[t->is_matrix ? at : m];
        if (w == 0 && p->set[CUT_LENGTH].given)
            continue; /* cut, wherever it is moved a little */
        pe_add(dpar, FREQ_MATRIX, at, divided);
        pe_add(dpar, INV_FREQ, m, divided);
        if (dpar[FREQ_FACTORS])
            dpar[FREQ_FACTORS][m] -= slope * w / factors[m];
        if (dpar[lengthy])
            dpar[lengthy][m] -= slope * w / run->par[lengthy][m];
    }
}

/* ---- initial values ---- */

/* timm's mixed frequencies: both axes rotated by one random angle for each head, the second half of the pairs
   at right angles to the first. With other numbers of coordinates pair m follows coordinate m mod N. */
static double matrix_at(const pe_problem *p, const pe_random *rng, int64_t i)
{
    const int64_t M = p->set[DIM].integer / 2, N = p->set[AXES].integer, m = i / N % M, n = i % N,
                  half = (M + 1) / 2;
    const double dim = (double)p->set[DIM].integer, base = p->set[BASE].real;
    if (N != 2)
        return m % N == n ? pow(base, -2.0 * (double)N * (double)(m / N) / dim) : 0;
    const double quarter = 1.57079632679489662, own = pe_random_uniform_at(rng->key, (uint64_t)(i / (N * M))),
                 angle = 4 * quarter * own + (m < half ? 0 : quarter);
    return pow(base, -4.0 * (double)(m % half) / dim) * (n == 0 ? cos(angle) : sin(angle));
}

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    const pe_rotary_run none = {NULL, 0};
    const int64_t       dim  = p->set[DIM].integer;
    const pe_axes       x    = axes_of(p);
    pe_frequencies      f = frequencies(p, &none), plain = f;
    plain.schedule = PE_DEFAULT;
    plain.single   = 0;
    switch (index) {
    case INV_FREQ: return pe_schedule_frequency(&plain, i, i, dim, 1);
    case FREQ_MATRIX: return matrix_at(p, rng, i);
    case THETA_SCALE32: return pe_ggml_step(&f, pe_axes_width(&x, 0));
    case INV_FREQ32: /* what angles=float32 has by itself as long as the sequence is short */
        return f.schedule == PE_EXPLICIT ? (double)(float)pe_schedule_frequency(&plain, i, i, dim, 1)
                                         : pe_schedule_frequency(&f, i, i, dim, 1);
    default: return 1;
    }
}

const pe_encoding pe_rope = {
    .info.name    = "rope",
    .info.place   = POSENC_PLACE_ROTARY,
    .info.title   = "rotary position embedding",
    .info.formula = "w_m = base^{−2 m / D}\n"
                    "x_m′ = x_m cos(P w_m) − y_m sin(P w_m)\n"
                    "y_m′ = y_m cos(P w_m) + x_m sin(P w_m)",
    .info.symbols = "w_m: the frequency of pair m, radians per position\n"
                    "x_m: the first channel of pair m of a query or a key; x_m′ after the rotation\n"
                    "y_m: the second channel of pair m; y_m′ after the rotation\n"
                    "D: the width of the rotated part of a head, setting dim",
    .info.paper   = "arXiv:2104.09864",
    .info.models  = "GPT-J, GPT-NeoX, Llama, Mistral, Qwen, Gemma, most since 2022",
    .info.beyond = "Works a little beyond its length, then breaks, unless frequencies are changed and tuned.",
    .info.pictures    = "similarity,decay,mass,pair,words,wavelengths",
    .info.by_distance = 1,
    .check            = check,
    .init             = init,
    .has              = has,
    .has_token        = has_token,
    .no_gradient      = no_gradient,
    .coordinates      = coordinates,
    .sees_future      = sees_future,
    .info.why_causal  = "self_extend and dca say nothing of keys ahead",
    .rotary.fill      = fill,
    .rotary.fold      = fold,
    .rotary.heads     = "1+per_head*(H-1)",
    PE_TOKENS(tokens),
    PE_TABLES(settings, params, examples),
};
