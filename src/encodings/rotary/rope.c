/* SPDX-License-Identifier: MIT */
/*
 * RoPE: rotary position embedding, with everything that models have made of it
 *
 * Place    rotary: q and k are turned by their positions before their product
 * Formula  pair m of channels, (x, y) at position P: (x cos a - y sin a, y cos a + x sin a) * magnitude,
 *          a = P * w_m
 *          w_m = base^(-2m/dim), m = 0 .. dim/2 - 1, or what `schedule` makes of it (engine/schedule.h)
 *          so q_i . k_j depends on content and on P(i) - P(j) alone
 *          with several axes pair m follows one coordinate of P, by `axis_rule` (engine/axes.h);
 *          of a matrix F all of
 *          them: a = sum_n P_n F[m,n]
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
 * Numbers  Angles are those of the exact product of position and frequency. Models were trained with less:
 *          angles=float32 makes frequencies and products round as the common Python code does, angles=ggml as
 *          llama.cpp does; where the last bit of their power functions matters, inv_freq32 and theta_scale32
 *          bring the peer's own numbers.
 * Lengths  dynamic and longrope follow `length`; without it the largest position of the run and one, as the
 *          peers do: then keys in a cache may carry other frequencies than the queries. posenc_rotary_reroute
 *          turns them anew.
 */
#include "rope.h"

/* Words stand in the order of the enums of schedule.h, axes.h and turn.h. */
const posenc_setting_info pe_rope_settings[] = {
    {"layout", "word", "interleaved", "interleaved|half", "pairs (2m, 2m+1), or (m, m + dim/2)"},
    {"layout_out", "word", "same", "same|interleaved|half",
     "order of the result; DeepSeek reads neighbours and writes halves"},
    {"dim", "integer", "D", "2..", "rotated channels, even; the rest of the head passes unchanged"},
    {"offset_dim", "integer", "0", "0..", "first rotated channel; D - dim turns the tail, as MLA does"},
    {"base", "real", "10000", "1<..", "theta: the slowest pair turns by about 1/base per token"},
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
     "yarn: pairs that turn more often within original_length are left alone"},
    {"beta_slow", "real", "1", "0<..", "yarn: pairs that turn less often are slowed by factor"},
    {"truncate", "flag", "yes", "yes|no", "yarn: the ramp's ends are whole pairs; gpt-oss has no"},
    {"extrapolation_factor", "real", "1", "0..",
     "yarn: how far pairs are left alone at all: w' = w e (1 - ramp) + w/factor (1 - e (1 - ramp))"},
    {"low_freq_factor", "real", "", "0<..",
     "llama3: pairs with fewer turns within original_length are slowed by factor"},
    {"high_freq_factor", "real", "", "0<..",
     "llama3: pairs with more turns are left alone; not above low_freq_factor: a step there, no ramp"},
    {"partial_rotary_factor", "real", "", "0<..1", "proportional: share of the pairs that turn"},
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
    {"direction", "word", "forward", "forward|inverse", "inverse turns by -a with the same magnitude"},
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
static_assert(PE_ROWS(pe_rope_settings) == HAS_THETA_SCALE32 + 1, "ORDER settings");
static_assert(PE_ROWS(pe_rope_settings) <= PE_MAX_SETTINGS, "more settings than an encoding can have");

static const posenc_param_info params[] = {
    {"inv_freq", "dim/2", "base^(-2m/dim)", "schedule=explicit: the frequencies, radians per step", 0},
    {"freq_factors", "dim/2", "ones", "freq_factors=yes: each frequency is divided by its own", 0},
    {"short_factor", "dim/2", "ones", "longrope: each frequency is divided by its own up to original_length",
     0},
    {"long_factor", "dim/2", "ones", "longrope: and beyond it", 0},
    {"freq_matrix", "H if per_head,dim/2,axes", "timm's turned axes",
     "axis_rule=matrix: F, radians per step of each coordinate", 1},
    {"inv_freq32", "dim/2", "as the Python code rounds it", "inv_freq32=yes: float32 frequencies of a peer",
     0},
    {"theta_scale32", "", "base^(-2/dim) in float32", "theta_scale32=yes: ggml's step from pair to pair", 0},
    {0},
};
static_assert(PE_ROWS(params) == THETA_SCALE32 + 1, "ORDER params");

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
     "Gemma 4: the last pair that turns"},
    {"D=512 base=1e6 schedule=proportional partial_rotary_factor=0.25", 64, 0, 0, 0,
     "and the first that does not"},
    {"D=64 base=100 schedule=period axes=2 axis_rule=axial", 1, 0, 0, 4.71172427801674,
     "DINOv3: 2 pi / 1.3335"},
    {0},
};

static int coordinates(const pe_problem *p)
{
    return (int)p->set[AXES].integer;
}

static int by_run(const pe_value *set)
{
    for (int index = 0; index < PE_ROWS(params); index++)
        if (pe_rope_has(set, index))
            return 1;
    return pe_schedule_follows_length((pe_schedule)set[SCHEDULE].integer) && !set[LENGTH].given;
}

static const char *no_gradient(const pe_value *set)
{
    return set[ANGLES].integer == PE_EXACT ? NULL
                                           : "angles that are rounded to float32 are steps; use angles=exact";
}

const pe_encoding pe_rope = {
    .info.name        = "rope",
    .info.place       = POSENC_ROTARY,
    .info.title       = "rotary position embedding",
    .info.formula     = "w_m = base^{−2 m / D}\n"
                        "x_m′ = x_m cos(P w_m) − y_m sin(P w_m)\n"
                        "y_m′ = y_m cos(P w_m) + x_m sin(P w_m)",
    .info.paper       = "arXiv:2104.09864",
    .info.models      = "GPT-J, GPT-NeoX, Llama, Mistral, Qwen, Gemma, most since 2022",
    .info.pictures    = "similarity,decay,mass,pair,wavelengths",
    .info.by_distance = 1,
    .check            = pe_rope_check,
    .init             = pe_rope_init,
    .has              = pe_rope_has,
    .no_gradient      = no_gradient,
    .axes             = coordinates,
    .heads            = pe_rope_heads,
    .turn             = pe_rope_turn,
    .by_run           = by_run,
    .turn_back        = pe_rope_turn_back,
    PE_TABLES(pe_rope_settings, params, examples),
};
