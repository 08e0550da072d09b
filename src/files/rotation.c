/* SPDX-License-Identifier: MIT */
/* rotation.c: a rotation becomes a SPEC, facts and frequencies: contract in model.h. */
#include "files/model.h"

#include <math.h>
#include <posenc/rotary.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pe_rotation pe_rotation_none(void)
{
    return (pe_rotation){.layout           = "half",
                         .schedule         = "default",
                         .factor           = (double)NAN,
                         .beta_fast        = 32,
                         .beta_slow        = 1,
                         .extrapolation    = 1,
                         .truncate         = 1,
                         .partial          = 1,
                         .attention_factor = (double)NAN,
                         .mscale           = (double)NAN,
                         .mscale_all_dim   = (double)NAN,
                         .magnitude        = (double)NAN,
                         .magnitude_long   = (double)NAN,
                         .score_scale      = (double)NAN,
                         .axes             = 1};
}

void pe_check_widths(posenc_model *m, const pe_rotation *r)
{
    if (r->dim < 2 || r->dim % 2 || r->dim > r->head_dim)
        pe_refuse(
            m, "%lld channels of a head of %lld would rotate; it must be an even number from 2 to the width",
            (long long)r->dim, (long long)r->head_dim);
}

double pe_yarn_scale(double s, double mu)
{
    return s <= 1 ? 1 : 0.1 * mu * log(s) + 1;
}

/* ---------------------------------------------------------------- the SPEC ------------------ */

static void put_real(FILE *to, const char *name, double x)
{
    char text[PE_REAL_TEXT];
    if (isnan(x))
        return;
    pe_real_text(text, x);
    fprintf(to, ",%s=%s", name, text);
}

static void put_whole(FILE *to, const char *name, int64_t n)
{
    if (n)
        fprintf(to, ",%s=%lld", name, (long long)n);
}

/* A magnitude that no rule gives is handed over as a factor, by the rule that takes it as it is. */
static void put_magnitude(FILE *to, const pe_rotation *r)
{
    const int by_factor = pe_is(r->schedule, "yarn") || pe_is(r->schedule, "longrope");
    if (!isnan(r->magnitude) && by_factor)
        put_real(to, "attention_factor", r->magnitude),
            put_real(to, "attention_factor_long", r->magnitude_long);
    else if (!isnan(r->magnitude) && r->magnitude != 1) {
        fputs(",magnitude_rule=ggml", to);
        put_real(to, "attn_factor", r->magnitude);
    } else if (isnan(r->magnitude) && by_factor) {
        put_real(to, "attention_factor", r->attention_factor);
        if (pe_is(r->schedule, "yarn"))
            put_real(to, "mscale", r->mscale), put_real(to, "mscale_all_dim", r->mscale_all_dim);
    }
}

/* The numbers that the facts have: a schedule's settings are called like them. */
static void put_schedule(FILE *to, const pe_rotation *r, const posenc_model_group *g)
{
    static const char *const names[] = {
        "factor",    "alpha",    "original_length",      "max_length",      "beta_fast",
        "beta_slow", "truncate", "extrapolation_factor", "low_freq_factor", "high_freq_factor"};
    if (pe_is(r->schedule, "default"))
        return;
    fprintf(to, ",schedule=%s", r->schedule);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const posenc_fact *f = posenc_model_fact(g, names[i]);
        if (f && f->kind == POSENC_FACT_REAL)
            put_real(to, names[i], f->real);
        else if (f && f->kind == POSENC_FACT_INTEGER)
            put_whole(to, names[i], f->integer);
        else if (f && !f->integer)
            fprintf(to, ",%s=no", names[i]);
    }
    if (pe_is(r->schedule, "longrope") &&
        isnan(r->factor)) /* its magnitude then follows from the two lengths */
        put_whole(to, "max_length", r->max_length ? r->max_length : r->original_length);
    if (pe_is(r->schedule, "proportional"))
        put_real(to, "partial_rotary_factor", r->partial);
}

static void put_temperature(FILE *to, const pe_rotation *r)
{
    if (!r->temperature)
        return;
    fprintf(to, ",temperature_rule=%s", r->temperature);
    put_real(to, "temperature_scale", r->temperature_scale);
    put_whole(to, "temperature_length", r->temperature_length);
}

static int has_usual_scale(const pe_rotation *r)
{
    return isnan(r->score_scale) || fabs(r->score_scale * sqrt((double)r->head_dim) - 1) < 1e-14;
}

static void put_spec(FILE *to, const pe_rotation *r, const posenc_model_group *g)
{
    fprintf(to, "rope[layout=%s,dim=%lld", r->layout, (long long)r->dim);
    put_whole(to, "offset_dim", r->offset);
    put_real(to, "base", r->base);
    put_schedule(to, r, g);
    put_magnitude(to, r);
    if (r->axes > 1)
        fprintf(to, ",axes=%d,axis_rule=%s", r->axes, r->axis_rule);
    for (int a = 0; r->axes > 1 && a < r->axes; a++)
        fprintf(to, "%s%lld", a ? ":" : ",sections=", (long long)r->sections[a]);
    fputs(r->inverse ? ",direction=inverse" : "", to);
    fputs(r->divisors ? ",freq_factors=yes" : "", to);
    put_temperature(to, r);
    put_real(to, "scale", has_usual_scale(r) ? (double)NAN : r->score_scale);
    fputc(']', to);
}

static const char *spec_text(posenc_model *m, const pe_rotation *r, const posenc_model_group *g,
                             void (*put)(FILE *, const pe_rotation *, const posenc_model_group *))
{
    char  *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    if (to)
        put(to, r, g), fclose(to);
    const char *kept = text ? pe_print(m, "%s", text) : "";
    if (!text)
        pe_refuse_memory(m);
    free(text);
    return kept;
}

/* ---------------------------------------------------------------- frequencies --------------- */

enum { MOST_PARAMS = 16 };

typedef struct numbers {
    double *w, *w_long; /* [dim/2]; w_long NULL but for two lists */
    double  magnitude;
} numbers;

/* A question to the library: the rotation of a SPEC, and what it takes to ask. */
typedef struct question {
    posenc_encoding    *e;
    posenc_plan        *plan;
    posenc_tensor       params[MOST_PARAMS];
    posenc_rotary_pair *pairs;
    void               *work;
    posenc_error        why;
} question;

static posenc_status open_question(question *q, const pe_rotation *r, const posenc_model_group *g)
{
    const posenc_options options = posenc_options_default();
    const posenc_dims    dims    = {.B = 1, .H = 1, .Lq = 1, .Lk = 1, .D = r->head_dim};
    posenc_status        status  = posenc_encoding_create(&q->e, g->spec, NULL, &q->why);
    if (!status)
        status = posenc_plan_create(&q->plan, q->e, &dims, &options, &q->why);
    if (status)
        return status;
    for (int i = 0; i < posenc_param_count(q->e) && i < MOST_PARAMS; i++)
        for (int k = 0; k < g->param_count; k++)
            if (pe_is(posenc_param_name(q->e, i), g->params[k].name))
                q->params[i] = g->params[k].tensor;
    q->pairs = calloc((size_t)r->dim / 2, sizeof *q->pairs);
    q->work  = aligned_alloc(64, posenc_plan_workspace(q->plan, POSENC_RUN_FORWARD) + 64);
    return q->pairs && q->work ? POSENC_OK : POSENC_ERROR_MEMORY;
}

/* The frequencies of a sequence that long. */
static posenc_status ask(question *q, double *w, const pe_rotation *r, double length)
{
    const posenc_status status = posenc_rotary_pairs(q->plan, q->params, length, q->pairs, q->work, &q->why);
    for (int64_t m = 0; !status && m < r->dim / 2; m++)
        w[m] = q->pairs[m].w;
    return status;
}

/* Of a short sequence, and where there are two lists of a long one as well. */
static numbers frequencies(posenc_model *m, const pe_rotation *r, const posenc_model_group *g)
{
    question      q      = {.why = {.message = "no memory for its frequencies"}};
    int64_t       pairs  = r->dim / 2;
    const size_t  size   = (size_t)pairs * sizeof(double);
    numbers       n      = {pe_keep(m, size), r->long_factor ? pe_keep(m, size) : NULL, 1};
    posenc_status status = m->status ? m->status : open_question(&q, r, g);
    if (!status)
        status = ask(&q, n.w, r, 1);
    if (!status && n.w_long)
        status = ask(&q, n.w_long, r, 1 + (double)r->original_length);
    if (!status)
        status = posenc_rotary_frequencies(q.plan, NULL, &pairs, &n.magnitude, &q.why);
    free(q.pairs);
    free(q.work);
    posenc_plan_free(q.plan);
    posenc_encoding_free(q.e);
    if (status && !m->status)
        m->status = pe_file_fail(m->err, status == POSENC_ERROR_MEMORY ? status : POSENC_ERROR_FORMAT,
                                 (pe_origin){m->path, NULL}, "%s", q.why.message);
    return n;
}

/* ---------------------------------------------------------------- facts --------------------- */

static void add_schedule(posenc_model *m, const pe_rotation *r)
{
    const struct {
        const char      *name, *schedules, *rule;
        posenc_fact_kind kind;
        double           value;
    } facts[] = {
        {"factor", "linear dynamic proportional yarn longrope llama3", r->factor_rule, POSENC_FACT_REAL,
         r->factor},
        {"alpha", "ntk", r->source, POSENC_FACT_REAL, r->alpha},
        {"max_length", "dynamic", "max_position_embeddings", POSENC_FACT_INTEGER, (double)r->max_length},
        {"low_freq_factor", "llama3", r->source, POSENC_FACT_REAL, r->low_freq_factor},
        {"high_freq_factor", "llama3", r->source, POSENC_FACT_REAL, r->high_freq_factor},
        {"original_length", "yarn longrope llama3", r->length_rule, POSENC_FACT_INTEGER,
         (double)r->original_length},
        {"beta_fast", "yarn", r->fast_rule, POSENC_FACT_REAL, r->beta_fast},
        {"beta_slow", "yarn", r->slow_rule, POSENC_FACT_REAL, r->beta_slow},
        {"truncate", "yarn", r->truncate_rule, POSENC_FACT_FLAG, r->truncate},
        {"extrapolation_factor", r->extrapolation == 1 ? NULL : "yarn", r->extrapolation_rule,
         POSENC_FACT_REAL, r->extrapolation},
    };
    pe_fact_word(m, "schedule", r->schedule, r->schedule_rule);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (pe_is_among(facts[i].schedules, r->schedule) && !isnan(facts[i].value)) {
            posenc_fact *f = pe_fact(m, facts[i].name, facts[i].kind, facts[i].rule);
            if (f->kind == POSENC_FACT_REAL)
                f->real = facts[i].value;
            else
                f->integer = (int64_t)facts[i].value;
        }
    if (r->inverse)
        pe_fact_word(m, "direction", "inverse", "by the model type");
    if (r->divisors)
        pe_fact_flag(m, "freq_factors", 1, "tensor rope_freqs.weight");
}

static void add_axes(posenc_model *m, const pe_rotation *r)
{
    double *sections = pe_keep(m, PE_ROTATION_AXES * sizeof *sections);
    pe_fact_integer(m, "axes", r->axes, r->axis_rule ? "time, height, width" : NULL);
    pe_fact_word(m, "axis_rule", r->axis_rule, r->axis_rule ? "by the model type" : NULL);
    for (int a = 0; sections && a < r->axes; a++)
        sections[a] = (double)r->sections[a];
    if (r->axes > 1)
        pe_fact_list(m, "sections", POSENC_FACT_INTEGERS, sections, r->axes, r->sections_rule);
    else
        pe_fact(m, "sections", POSENC_FACT_NONE, NULL);
}

static void add_temperature(posenc_model *m, const pe_rotation *r)
{
    if (!r->temperature) {
        pe_fact(m, "temperature", POSENC_FACT_NONE, NULL);
        return;
    }
    pe_fact_word(m, "temperature.rule", r->temperature, "by the model type");
    pe_fact_real(m, "temperature.scale", r->temperature_scale, NULL);
    pe_fact_integer(m, "temperature.length", r->temperature_length, NULL);
}

/* Those that follow from the frequencies, and what stands behind them. */
static void add_rest(posenc_model *m, const pe_rotation *r, const numbers *n)
{
    pe_fact_list(m, "inv_freq", POSENC_FACT_REALS, n->w, r->dim / 2,
                 pe_is(r->schedule, "default") ? "base^(-2i/dim)" : "base^(-2i/dim), then the schedule");
    if (n->w_long)
        pe_fact_list(m, "inv_freq_long", POSENC_FACT_REALS, n->w_long, r->dim / 2, NULL);
    pe_fact_real(m, "magnitude", isnan(r->magnitude) ? n->magnitude : r->magnitude, r->magnitude_rule);
    if (!isnan(r->magnitude_long))
        pe_fact_real(m, "magnitude_long", r->magnitude_long, "long_mscale, beyond original_length");
    pe_fact_real(m, "score_scale", r->score_scale, r->score_rule);
    add_axes(m, r);
    add_temperature(m, r);
}

static posenc_model_group *add_group(posenc_model *m, const char *encoding, posenc_dims dims, int64_t width)
{
    posenc_model_group *g = pe_group_add(m, encoding);
    g->dims               = dims;
    g->dims.D             = width;
    return g;
}

posenc_model_group *pe_rotation_group(posenc_model *m, const pe_rotation *r, const char *kinds, int64_t depth,
                                      char kind)
{
    const int64_t pairs = r->dim / 2;
    if (m->status)
        return NULL;
    posenc_model_group *g = add_group(m, "rope", r->dims, r->head_dim);
    if (r->short_factor)
        pe_param(m, "short_factor", r->short_factor, pairs);
    if (r->long_factor)
        pe_param(m, "long_factor", r->long_factor, pairs);
    if (r->divisors)
        pe_param(m, "freq_factors", r->divisors, pairs);
    pe_layers(m, kinds, depth, kind);
    pe_fact_word(m, "layout", r->layout, r->layout_rule);
    pe_fact_integer(m, "dim", r->dim, r->dim_rule);
    pe_fact_integer(m, "offset_dim", r->offset, r->offset ? "the last channels of a head" : NULL);
    pe_fact_integer(m, "head_dim", r->head_dim, r->head_rule);
    pe_fact_real(m, "base", r->base, r->base_rule);
    add_schedule(m, r);
    g->spec         = spec_text(m, r, g, put_spec);
    const numbers n = frequencies(m, r, g);
    add_rest(m, r, &n);
    return m->status ? NULL : g;
}

/* Without positions there is one thing that follows them all the same: a temperature. Then a rotation by no
   angle at all carries it. */
static void put_nope_spec(FILE *to, const pe_rotation *r, const posenc_model_group *g)
{
    if (r->temperature) {
        fputs("rope[dim=2,schedule=explicit", to);
        put_temperature(to, r);
        put_real(to, "scale", has_usual_scale(r) ? (double)NAN : r->score_scale);
        fputc(']', to);
        return;
    }
    char scale[PE_REAL_TEXT];
    fputs("nope", to);
    if (!has_usual_scale(r))
        pe_real_text(scale, r->score_scale), fprintf(to, "[scale=%s]", scale);
}

void pe_nope_group(posenc_model *m, const pe_rotation *r, const char *kinds, int64_t depth)
{
    static const double still = 0;
    if (m->status)
        return;
    posenc_model_group *g = add_group(m, "nope", r->dims, r->head_dim);
    g->spec               = spec_text(m, r, g, put_nope_spec);
    if (r->temperature)
        pe_param(m, "inv_freq", &still, 1);
    pe_fact_integer(m, "head_dim", r->head_dim, r->head_rule);
    pe_fact_real(m, "score_scale", r->score_scale, r->score_rule);
    add_temperature(m, r);
    pe_layers(m, kinds, depth, PE_NOPE);
}

/* ---------------------------------------------------------------- ALiBi --------------------- */

/* The slopes as the library's alibi is born with them. */
static posenc_status ask_slopes(double *slopes, const posenc_dims *dims, posenc_error *err)
{
    posenc_encoding *e      = NULL;
    posenc_status    status = posenc_encoding_create(&e, "alibi", NULL, err);
    posenc_tensor    tensor = posenc_tensor_contiguous(slopes, POSENC_DTYPE_F64, 1, &dims->H);
    if (!status)
        status = posenc_param_init(e, dims, &tensor, 1, err);
    posenc_encoding_free(e);
    return status;
}

void pe_alibi_group(posenc_model *m, posenc_dims dims, int64_t width, double most, double bias_scale)
{
    const size_t size   = (size_t)dims.H * sizeof(double);
    double      *slopes = m->status ? NULL : pe_keep(m, size), *applied = slopes ? pe_keep(m, size) : NULL;
    posenc_error why;
    dims.D = width;
    if (!applied)
        return;
    if (ask_slopes(slopes, &dims, &why)) {
        pe_refuse(m, "%s", why.message);
        return;
    }
    for (int64_t h = 0; h < dims.H; h++) {
        slopes[h]  = most == 8 ? slopes[h] : pow(slopes[h], most / 8);
        applied[h] = slopes[h] * bias_scale;
    }
    add_group(m, "alibi", dims, width);
    pe_param(m, "slopes", applied, dims.H);
    pe_fact_integer(m, "heads", dims.H, NULL);
    pe_fact_integer(m, "head_dim", width, "hidden_size / heads");
    pe_fact_list(m, "slopes", POSENC_FACT_REALS, slopes, dims.H, NULL);
    pe_fact_real(m, "bias_scale", bias_scale,
                 bias_scale == 1 ? NULL : "the bias is added before the scores are scaled");
    pe_fact_real(m, "score_scale", 1 / sqrt((double)width), "1 / sqrt(head_dim)");
}

/* ---------------------------------------------------------------- at the input -------------- */

posenc_model_group *pe_input_group(posenc_model *m, const char *encoding, posenc_dims dims, const char *stack)
{
    posenc_model_group *g = add_group(m, encoding, dims, dims.D);
    g->is_input           = 1;
    g->is_all             = 0;
    g->stack              = stack;
    return g;
}

posenc_model_group *pe_learned_group(posenc_model *m, posenc_dims dims, const pe_learned *t)
{
    if (m->status)
        return NULL;
    posenc_model_group *g = pe_input_group(m, "learned", dims, t->stack);
    g->spec = pe_print(m, "learned[rows=%lld,dim=%lld,offset=%lld]", (long long)t->rows, (long long)t->dim,
                       (long long)t->offset);
    pe_fact_integer(m, "rows", t->rows, t->rows_rule);
    pe_fact_integer(m, "offset", t->offset, "row of the first token");
    pe_fact_integer(m, "dim", t->dim, t->dim_rule);
    if (t->stack)
        pe_fact_word(m, "stack", t->stack, NULL);
    return g;
}
