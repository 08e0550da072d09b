/* SPDX-License-Identifier: MIT */
/*
 * gguf_model.c: what a GGUF file says about positions
 *
 * Keys      {architecture}.rope.* and {architecture}.attention.*; numbers are float32 and taken as they are
 *           stored.
 * Layout    Only by the architecture (gguf_types.def). Llama's kin are interleaved here and half in their
 *           config.json: the converter permuted the rows of q and k.
 * Baked in  by the converter: llama3's schedule and Gemma 4's proportions are divisors in rope_freqs.weight,
 *           Hunyuan's alpha is in the base, LongRoPE's magnitude is attn_factor, its lists are two tensors.
 *           Lost: truncate, mscale, attention_factor, dynamic.
 * Magnitude with all of llama.cpp's corrections: g(f, 1), or g(f, 1) / g(f, mu) where yarn_log_multiplier is
 *           mu, times attn_factor; deepseek2: mu is divided by float32 0.1, the magnitude is 1 and the
 *           scores take g(f, mu) squared.
 * Sinks     are known by their tensors, blk.N.attn_sinks.weight.
 * Source    llama.cpp, llama-model.cpp and llama-context.cpp; gguf-py, constants.py
 */
#include <math.h>
#include <string.h>

#include "files/gguf/gguf.h"

typedef struct architecture {
    const char *names; /* blank-separated */
    const char *encoding, *layout, *axis_rule, *sections_layout;
    int         tail;
    int         symmetric;
    const char *layers;
    int64_t     every;
    int         first, last, full_divisors, unknown_scale, sinks;
    double      softcap;
    const char *temperature;
} architecture;

#define ARCHITECTURE(architectures, ...) {.names = architectures, __VA_ARGS__},
static const architecture architectures[] = {
#include "files/gguf/gguf_types.def"
};

typedef struct gguf_reader {
    pe_gguf             file;
    posenc_model       *m;
    int64_t             most_positions; /* 0: as context_length says */
    const char         *prefix;         /* the architecture, as the file has it */
    const char         *name;           /* the one that is read: llama where it is not known */
    const architecture *row;
} gguf_reader;

/* ---------------------------------------------------------------- asking -------------------- */

static const pe_gguf_value *find(const gguf_reader *g, const char *key)
{
    char name[512];
    snprintf(name, sizeof name, "%.300s.%s", g->prefix, key);
    return pe_gguf_find(&g->file, name);
}

/* A finite number; a list gives its first one that is not 0 (head counts by layer). */
static double number(gguf_reader *g, const char *key, double fallback)
{
    const pe_gguf_value *v = find(g, key);
    if (!v)
        return fallback;
    double x = v->number;
    for (int64_t i = 0; v->kind == PE_GGUF_LIST && i < v->count && x == 0; i++)
        x = v->list[i];
    if ((v->kind != PE_GGUF_NUMBER && v->kind != PE_GGUF_LIST) || !isfinite(x))
        pe_build_refuse(g->m, "%.60s.%s is not a finite number", g->prefix, key);
    return x;
}

static int64_t whole(gguf_reader *g, const char *key, int64_t high, int64_t fallback)
{
    const double x = number(g, key, (double)fallback);
    if (x < 0 || x > (double)high || x != floor(x))
        pe_build_refuse(g->m, "%.60s.%s is %g; it must be a whole number up to %lld", g->prefix, key, x,
                        (long long)high);
    return g->m->status ? fallback : (int64_t)x;
}

static const char *word(gguf_reader *g, const char *key)
{
    const pe_gguf_value *v = find(g, key);
    if (v && v->kind != PE_GGUF_TEXT)
        pe_build_refuse(g->m, "%.60s.%s is not a string", g->prefix, key);
    return v ? v->text : NULL;
}

/* ---------------------------------------------------------------- sizes --------------------- */

static const int64_t longest = INT64_C(1) << 53;

static posenc_dims sizes(gguf_reader *g)
{
    posenc_dims   dims  = {.H       = whole(g, "attention.head_count", PE_MODEL_WIDEST, 0),
                           .G       = whole(g, "attention.head_count_kv", PE_MODEL_WIDEST, 0),
                           .d_model = whole(g, "embedding_length", INT64_C(1) << 31, 0)};
    const int64_t width = dims.H && dims.d_model % dims.H == 0 ? dims.d_model / dims.H : 0;
    dims.D = whole(g, "attention.key_length", PE_MODEL_WIDEST, width <= PE_MODEL_WIDEST ? width : 0);
    return dims;
}

static int64_t context(gguf_reader *g)
{
    return whole(g, "context_length", longest, 0);
}

/* MLA stores the width of its latent vector as key_length, and that of a head separately. */
static int64_t head_width(gguf_reader *g, const posenc_dims *dims, const char **rule)
{
    const int64_t mla   = g->row->tail ? whole(g, "attention.key_length_mla", PE_MODEL_WIDEST, 0) : 0;
    const int64_t given = mla ? mla : whole(g, "attention.key_length", PE_MODEL_WIDEST, 0);
    *rule               = mla     ? "attention.key_length_mla"
                          : given ? "attention.key_length"
                                  : "embedding_length / head_count";
    if (given)
        return given;
    if (!dims->H || !dims->d_model || dims->d_model % dims->H || dims->d_model / dims->H > PE_MODEL_WIDEST)
        pe_build_refuse(
            g->m,
            "embedding_length %lld is not a multiple of %lld heads, and attention.key_length is missing",
            (long long)dims->d_model, (long long)dims->H);
    return g->m->status ? 2 : dims->d_model / dims->H;
}

/* ---------------------------------------------------------------- frequencies --------------- */

static void find_base(gguf_reader *g, pe_file_rotation *r, int is_local)
{
    const char *key = is_local ? "rope.freq_base_swa" : "rope.freq_base";
    r->base         = number(g, key, 10000);
    r->base_rule    = find(g, key) ? pe_build_text(g->m, "%s of the file", key) : "the default of llama.cpp";
    if (!(r->base > 1))
        pe_build_refuse(g->m, "%.60s.%s is %g; a base must be above 1", g->prefix, key, r->base);
    if (!find(g, "rope.freq_base"))
        pe_build_warn(g->m, "base-default", "the file gives no rope.freq_base; llama.cpp takes 10000");
}

static void find_widths(gguf_reader *g, pe_file_rotation *r, int is_local)
{
    const char *key =
        is_local && find(g, "rope.dimension_count_swa") ? "rope.dimension_count_swa" : "rope.dimension_count";
    const char *wide = is_local && find(g, "attention.key_length_swa") ? "attention.key_length_swa" : NULL;
    r->dims          = sizes(g);
    r->head_dim      = head_width(g, &r->dims, &r->head_rule);
    if (wide)
        r->head_dim = whole(g, wide, PE_MODEL_WIDEST, 0), r->head_rule = wide;
    r->dim      = whole(g, key, PE_MODEL_WIDEST, r->head_dim);
    r->dim_rule = find(g, key) ? key : "the whole head";
    r->offset   = g->row->tail ? r->head_dim - r->dim : 0;
    pe_rotation_check(g->m, r);
}

static double factor_of(gguf_reader *g)
{
    const double f = number(g, "rope.scaling.factor", number(g, "rope.scale_linear", 0));
    if (f < 0)
        pe_build_refuse(g->m, "rope.scaling.factor is %g; it must be above 0, or 0 for none", f);
    return f == 0 ? 1 : f;
}

static void find_original_length(gguf_reader *g, pe_file_rotation *r)
{
    r->original_length = whole(g, "rope.scaling.original_context_length", longest, 0);
    r->length_rule     = "rope.scaling.original_context_length";
    if (r->original_length)
        return;
    r->original_length = context(g);
    r->length_rule     = "context_length";
    pe_build_warn(g->m, "original-length-missing",
                  "rope.scaling.original_context_length is missing; context_length is used instead");
    if (!r->original_length)
        pe_build_refuse(g->m, "context_length is missing; the schedule needs it");
}

static void warn_of_yarn(gguf_reader *g, const pe_file_rotation *r)
{
    const double stretch = (double)context(g) / (double)r->original_length;
    if (context(g) && stretch != 1 && stretch != r->factor)
        pe_build_warn(g->m, "factor-vs-max_position",
                      "rope.scaling.factor is %g, but context_length / original length is %g", r->factor,
                      stretch);
    if (r->beta_fast < r->beta_slow)
        pe_build_warn(g->m, "beta-order", "yarn_beta_fast %g is below yarn_beta_slow %g", r->beta_fast,
                      r->beta_slow);
    if (pe_text_is(g->name, "gpt-oss"))
        pe_build_warn(g->m, "truncate-lost", "gpt-oss was trained without truncation, which GGUF cannot say");
}

/* What llama.cpp multiplies cosine and sine with, all its corrections netted. */
static void find_yarn_magnitude(gguf_reader *g, pe_file_rotation *r, double attn_factor)
{
    const int    is_deepseek2 = pe_text_is(g->name, "deepseek2");
    const double stored       = number(g, "rope.scaling.yarn_log_multiplier", 0);
    const double mu           = is_deepseek2 ? stored / (double)0.1f : stored;
    const double g1 = pe_rotation_yarn(r->factor, 1), gmu = pe_rotation_yarn(r->factor, mu);
    r->magnitude      = attn_factor * (mu == 0 ? g1 : is_deepseek2 ? 1 : g1 / gmu);
    r->magnitude_rule = mu == 0 ? "0.1 ln factor + 1, times attn_factor"
                                : "by yarn_log_multiplier, with llama.cpp's corrections";
    if (is_deepseek2 && mu != 0)
        r->score_scale *= gmu * gmu,
            r->score_rule = "1 / sqrt(head width), times g(factor, yarn_log_multiplier) squared";
}

static void read_yarn(gguf_reader *g, pe_file_rotation *r, double attn_factor)
{
    r->schedule      = "yarn";
    r->schedule_rule = "rope.scaling.type";
    r->factor        = factor_of(g);
    r->factor_rule   = "rope.scaling.factor";
    r->fast_rule     = find(g, "rope.scaling.yarn_beta_fast") ? "rope.scaling.yarn_beta_fast" : "the default";
    r->slow_rule     = find(g, "rope.scaling.yarn_beta_slow") ? "rope.scaling.yarn_beta_slow" : "the default";
    r->truncate_rule = "llama.cpp always does";
    r->beta_fast     = number(g, "rope.scaling.yarn_beta_fast", 32);
    r->beta_slow     = number(g, "rope.scaling.yarn_beta_slow", 1);
    r->extrapolation = number(g, "rope.scaling.yarn_ext_factor", 1);
    r->extrapolation = r->extrapolation < 0 ? 1 : r->extrapolation; /* -1: decide by the type */
    r->extrapolation_rule = "rope.scaling.yarn_ext_factor";
    find_original_length(g, r);
    warn_of_yarn(g, r);
    find_yarn_magnitude(g, r, attn_factor);
}

static void read_longrope(gguf_reader *g, pe_file_rotation *r, double attn_factor)
{
    r->schedule      = "longrope";
    r->schedule_rule = "tensors rope_factors_long and rope_factors_short";
    r->short_factor  = pe_gguf_floats(&g->file, "rope_factors_short.weight", r->dim / 2);
    r->long_factor   = pe_gguf_floats(&g->file, "rope_factors_long.weight", r->dim / 2);
    if (!r->short_factor || !r->long_factor)
        pe_build_refuse(
            g->m, "longrope needs both tensors, rope_factors_short.weight and rope_factors_long.weight");
    find_original_length(g, r);
    r->max_length     = context(g);
    r->magnitude      = attn_factor;
    r->magnitude_rule = "rope.scaling.attn_factor";
}

static void read_linear(gguf_reader *g, pe_file_rotation *r, double attn_factor, int is_scaled)
{
    const double factor = is_scaled ? factor_of(g) : 1;
    r->schedule_rule    = word(g, "rope.scaling.type") ? "rope.scaling.type" : "no scaling is named";
    r->magnitude        = attn_factor;
    r->magnitude_rule   = attn_factor == 1 ? NULL : "rope.scaling.attn_factor";
    if (factor == 1)
        return;
    r->schedule    = "linear";
    r->factor      = factor;
    r->factor_rule = find(g, "rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
}

static void read_schedule(gguf_reader *g, pe_file_rotation *r)
{
    const char  *type        = word(g, "rope.scaling.type");
    const double attn_factor = number(g, "rope.scaling.attn_factor", 1);
    const int    has_lists   = pe_gguf_tensor_of(&g->file, "rope_factors_long.weight") ||
                          pe_gguf_tensor_of(&g->file, "rope_factors_short.weight");
    if (type && !pe_text_is(type, "none") && !pe_text_is(type, "linear") && !pe_text_is(type, "yarn") &&
        !pe_text_is(type, "longrope"))
        pe_build_refuse(g->m, "rope.scaling.type is %.60s; known are none, linear, yarn, longrope", type);
    if (!(attn_factor > 0))
        pe_build_refuse(g->m, "rope.scaling.attn_factor is %g; it must be above 0", attn_factor);
    if (pe_text_is(type, "longrope") || (has_lists && !pe_text_is(type, "yarn")))
        read_longrope(g, r, attn_factor);
    else if (pe_text_is(type, "yarn"))
        read_yarn(g, r, attn_factor);
    else
        read_linear(g, r, attn_factor, !pe_text_is(type, "none"));
    if (!isnan(r->factor) && r->factor < 1)
        pe_build_warn(g->m, "factor-below-one", "rope.scaling.factor is %g: it would shorten the context",
                      r->factor);
}

/* ---------------------------------------------------------------- axes, temperature --------- */

/* Four numbers, of which the last may be 0: then it is no axis. */
static void read_sections(gguf_reader *g, pe_file_rotation *r)
{
    const pe_gguf_value *v   = find(g, "rope.dimension_sections");
    int64_t              sum = 0;
    if (!g->row->axis_rule || (!v && g->row->sections_layout))
        return;
    if (!v || v->kind != PE_GGUF_LIST || v->count < 3 || v->count > PE_ROTATION_AXES) {
        pe_build_refuse(g->m, "%.60s.rope.dimension_sections is missing, or not a list of 3 or 4 numbers",
                        g->prefix);
        return;
    }
    r->axes          = v->count == 4 && v->list[3] != 0 ? 4 : 3;
    r->axis_rule     = g->row->axis_rule;
    r->sections_rule = "rope.dimension_sections";
    for (int a = 0; a < r->axes; a++) {
        if (!(v->list[a] >= 0 && v->list[a] <= PE_MODEL_WIDEST && v->list[a] == floor(v->list[a])))
            pe_build_refuse(g->m, "rope.dimension_sections holds %g; it must hold numbers of pairs",
                            v->list[a]);
        r->sections[a] = g->m->status ? 0 : (int64_t)v->list[a];
        sum += r->sections[a];
    }
    if (sum != r->dim / 2 && pe_text_is(r->axis_rule, "sections"))
        pe_build_refuse(g->m,
                        "rope.dimension_sections sums to %lld; it must sum to the %lld pairs that rotate",
                        (long long)sum, (long long)r->dim / 2);
    if (sum != r->dim / 2)
        pe_build_warn(g->m, "sections-sum", "rope.dimension_sections sums to %lld of %lld pairs",
                      (long long)sum, (long long)r->dim / 2);
}

static void read_temperature(gguf_reader *g, pe_file_rotation *r)
{
    const double scale = number(g, "attention.temperature_scale", 0);
    if (scale == 0 || pe_text_is(g->row->temperature, "llama4"))
        return;
    r->temperature        = "ministral";
    r->temperature_scale  = scale;
    r->temperature_length = whole(g, "attention.temperature_length", longest,
                                  whole(g, "rope.scaling.original_context_length", longest, context(g)));
    if (!r->temperature_length)
        pe_build_refuse(g->m, "attention.temperature_length is missing");
}

/* ---------------------------------------------------------------- layers -------------------- */

static int is_full(const gguf_reader *g, const pe_gguf_value *pattern, int64_t i, int64_t n)
{
    const int64_t every = pattern && pattern->kind == PE_GGUF_NUMBER && pattern->number >= 1
                              ? (int64_t)fmin(pattern->number, PE_MODEL_DEEPEST + 1)
                              : g->row->every;
    if (pattern && pattern->kind == PE_GGUF_LIST && i < pattern->count)
        return pattern->list[i] == 0; /* 1: slides */
    if (g->row->last && i == n - 1)
        return 1;
    return !every || (g->row->first ? i % every == 0 : (i + 1) % every == 0);
}

/* Which layers slide, and over how many keys; of those that look both ways the number counts both sides. */
static void add_windows(gguf_reader *g, int64_t n)
{
    const pe_gguf_value *pattern = find(g, "attention.sliding_window_pattern");
    const int64_t        given   = whole(g, "attention.sliding_window", INT64_C(1) << 53, 0),
                  size           = g->row->symmetric ? given / 2 + 1 : given;
    if (!given || !n || g->m->status || g->row->temperature || !(g->row->every || pattern))
        return; /* Llama 4's layers see chunks, not windows */
    int64_t *windows = pe_build_alloc(g->m, (size_t)n * sizeof *windows);
    for (int64_t i = 0; windows && i < n; i++)
        windows[i] = is_full(g, pattern, i, n) ? 0 : size;
    pe_build_windows(g->m, windows, "attention.sliding_window");
}

/* Of the layers that slide and of those that see every key: have any of them sinks? */
static void add_sinks(gguf_reader *g, int64_t n)
{
    const pe_gguf_value *pattern = find(g, "attention.sliding_window_pattern");
    int                  full = g->row->sinks, sliding = g->row->sinks;
    for (int64_t i = 0; i < n && !g->m->status; i++) {
        char name[64];
        snprintf(name, sizeof name, "blk.%lld.attn_sinks.weight", (long long)i);
        if (pe_gguf_tensor_of(&g->file, name))
            *(is_full(g, pattern, i, n) ? &full : &sliding) = 1;
    }
    if (full || sliding)
        pe_build_sinks(g->m, !full);
}

static void add_softcap(gguf_reader *g)
{
    const double cap = g->row->softcap > 0 ? number(g, "attn_logit_softcapping", g->row->softcap) : 0;
    if (cap < 0)
        pe_build_refuse(g->m, "%.60s.attn_logit_softcapping is %g; it must be above 0", g->prefix, cap);
    pe_build_softcap(g->m, cap);
}

static const char *kinds_of(gguf_reader *g, int64_t n)
{
    const pe_gguf_value *pattern = find(g, "attention.sliding_window_pattern");
    char                *kinds   = pe_build_alloc(g->m, (size_t)n + 1);
    const int            no_window =
        pe_text_is(g->row->layers, "rope-on-sliding-if-window") && !find(g, "attention.sliding_window");
    for (int64_t i = 0; kinds && i < n; i++)
        if (pe_text_is(g->row->encoding, "nope"))
            kinds[i] = PE_NOPE;
        else if (!g->row->layers || no_window ||
                 (is_full(g, pattern, i, n) && pe_text_is(g->row->layers, "local-base")))
            kinds[i] = PE_FULL;
        else if (pe_text_is(g->row->layers, "local-base"))
            kinds[i] = PE_LOCAL;
        else
            kinds[i] = is_full(g, pattern, i, n) ? PE_NOPE : PE_FULL;
    return kinds;
}

static void add_rotation(gguf_reader *g, const char *kinds, int64_t n, char kind)
{
    pe_file_rotation r    = pe_rotation_none();
    const int        axes = g->row->sections_layout && find(g, "rope.dimension_sections"),
              is_local    = kind == PE_LOCAL;
    r.layout              = axes ? g->row->sections_layout : g->row->layout;
    r.layout_rule         = pe_build_text(g->m, "by the architecture %s", g->name);
    find_base(g, &r, is_local);
    find_widths(g, &r, is_local);
    r.score_scale = g->row->unknown_scale ? (double)NAN : 1 / sqrt((double)r.head_dim);
    r.score_rule  = g->row->unknown_scale ? "the loader's own, by size" : "1 / sqrt(head width)";
    r.magnitude   = 1;
    if (!is_local)
        read_schedule(g, &r);
    if (!is_local || !g->row->full_divisors)
        r.divisors = pe_gguf_floats(&g->file, "rope_freqs.weight", r.dim / 2);
    read_sections(g, &r);
    read_temperature(g, &r);
    pe_rotation_group(g->m, &r, kinds, n, kind);
}

static void add_nope(gguf_reader *g, const char *kinds, int64_t n)
{
    pe_file_rotation r = pe_rotation_none();
    r.dims             = sizes(g);
    if (!r.dims.H) /* no heads, no attention */
        return;
    r.head_dim    = head_width(g, &r.dims, &r.head_rule);
    r.score_scale = g->row->unknown_scale ? (double)NAN : 1 / sqrt((double)r.head_dim);
    if (pe_text_is(g->row->temperature, "llama4")) {
        r.temperature        = "llama4";
        r.temperature_scale  = number(g, "attention.temperature_scale", 0.1);
        r.temperature_length = whole(g, "attention.temperature_length", longest, 8192);
    }
    pe_rotation_nope(g->m, &r, kinds, n);
}

static void rope_or_nope(gguf_reader *g)
{
    const int64_t n     = whole(g, "block_count", PE_MODEL_DEEPEST, 0);
    const char   *kinds = kinds_of(g, n);
    if (!n)
        pe_build_refuse(g->m, "%.60s.block_count is missing", g->prefix);
    if (kinds && strchr(kinds, PE_FULL))
        add_rotation(g, kinds, n, PE_FULL);
    if (kinds && strchr(kinds, PE_LOCAL))
        add_rotation(g, kinds, n, PE_LOCAL);
    if (kinds && strchr(kinds, PE_NOPE))
        add_nope(g, kinds, n);
}

/* ---------------------------------------------------------------- the others ---------------- */

static void alibi(gguf_reader *g)
{
    const char       *rule;
    const posenc_dims dims  = sizes(g);
    const int64_t     width = head_width(g, &dims, &rule);
    const double      most  = number(g, "attention.max_alibi_bias", 8);
    if (!(dims.H > 0 && most > 0))
        pe_build_refuse(g->m, "%.60s.attention.head_count is missing, or max_alibi_bias is not above 0",
                        g->prefix);
    pe_build_alibi(g->m, dims, width, most, 1, 1 / sqrt((double)width));
}

static void learned(gguf_reader *g)
{
    const pe_gguf_tensor *table = pe_gguf_tensor_of(&g->file, "position_embd.weight");
    const int             given = table && table->ndim == 2;
    const int64_t         rows  = given ? table->shape[1] : context(g),
                  dim           = given ? table->shape[0] : sizes(g).d_model;
    const char *rule            = table ? "position_embd.weight" : "context_length, embedding_length";
    g->most_positions           = rows;
    if (!rows || !dim)
        pe_build_refuse(g->m,
                        "position_embd.weight is empty, or context_length or embedding_length is missing");
    pe_build_learned(g->m, sizes(g),
                     &(pe_learned_table){.rows = rows, .dim = dim, .rows_rule = rule, .dim_rule = rule});
}

/* ---------------------------------------------------------------- which --------------------- */

static int has_rope_keys(const gguf_reader *g)
{
    const size_t n = strlen(g->prefix);
    for (int64_t i = 0; i < g->file.value_count; i++)
        if (!strncmp(g->file.values[i].name, g->prefix, n) &&
            !strncmp(g->file.values[i].name + n, ".rope.", 6))
            return 1;
    return 0;
}

/* An architecture without a row is taken for a rotation where the file has keys of one. */
static const architecture *find_row(gguf_reader *g)
{
    static const architecture guess = {.layout = "half"}, none = {.encoding = "unknown"};
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++)
        if (pe_text_is_among(architectures[i].names, g->prefix))
            return &architectures[i];
    const int rotates = has_rope_keys(g);
    g->name           = "llama";
    pe_build_warn(g->m, "unknown-model-type", "%.60s is not in the table of architectures: %s", g->prefix,
                  rotates ? "the layout half is a guess" : "its encoding is not known");
    return rotates ? &guess : &none;
}

static void read_model(gguf_reader *g)
{
    static const struct {
        const char *words;
        void (*read)(gguf_reader *g);
    } readers[]               = {{"rope nope", rope_or_nope}, {"alibi", alibi}, {"learned", learned}};
    const pe_gguf_value *type = pe_gguf_find(&g->file, "general.architecture");
    posenc_model_info   *info = &g->m->info;
    if (!type || type->kind != PE_GGUF_TEXT) {
        pe_build_refuse(g->m, type ? "general.architecture is not a string, or has more than 4096 bytes"
                                   : "general.architecture is missing");
        return;
    }
    g->prefix = g->name = info->type = type->text;
    g->row                           = find_row(g);
    const char *encoding             = g->row->encoding ? g->row->encoding : "rope";
    if (pe_text_is(encoding, "unknown"))
        info->encoding = encoding;
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (pe_text_is_among(readers[i].words, encoding))
            readers[i].read(g);
    info->layers        = whole(g, "block_count", PE_MODEL_DEEPEST, 0);
    info->max_positions = context(g);
    add_windows(g, info->layers);
    add_sinks(g, info->layers);
    add_softcap(g);
    if (g->most_positions && g->most_positions < info->max_positions)
        info->max_positions = g->most_positions;
}

posenc_status pe_gguf_model(posenc_model **model, const pe_source *source, posenc_error *err)
{
    gguf_reader g = {.m = pe_build_begin("gguf", source->path, err)};
    if (!g.m)
        return POSENC_ERROR_MEMORY;
    g.file = (pe_gguf){.model = g.m, .source = source};
    pe_gguf_read(&g.file);
    if (!g.m->status)
        read_model(&g);
    return pe_build_finish(model, g.m);
}
