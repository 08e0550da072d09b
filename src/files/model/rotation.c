/* SPDX-License-Identifier: MIT */
/* rotation.c: a rotation becomes a SPEC, facts and frequencies: contract in build.h. */
#include "files/model/build.h"

#include <math.h>
#include <posenc/rotary.h>
#include <stdio.h>
#include <stdlib.h>

pe_file_rotation pe_rotation_none(void)
{
    return (pe_file_rotation){.layout           = "half",
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
                              .mixed_b          = (double)NAN,
                              .score_scale      = (double)NAN,
                              .axes             = 1};
}

void pe_rotation_check(posenc_model *m, const pe_file_rotation *r)
{
    if (r->dim < 2 || r->dim % 2 || r->dim > r->head_dim)
        pe_build_refuse(
            m, "%lld channels of a head of %lld would rotate; the number must be even, from 2 to the width",
            (long long)r->dim, (long long)r->head_dim);
}

double pe_rotation_yarn(double s, double mu)
{
    return s <= 1 ? 1 : 0.1 * mu * log(s) + 1;
}

/* ---------------------------------------------------------------- the SPEC ------------------ */

static void put_real(FILE *to, const char *name, double x)
{
    char text[PE_TEXT_REAL];
    if (isnan(x))
        return;
    fprintf(to, ",%s=%s", name, pe_text_real(text, x));
}

static void put_whole(FILE *to, const char *name, int64_t n)
{
    if (n)
        fprintf(to, ",%s=%lld", name, (long long)n);
}

/* A magnitude that no rule gives is handed over as a factor, by the rule that takes it as it is. */
static void put_magnitude(FILE *to, const pe_file_rotation *r)
{
    const int by_factor = pe_text_is(r->schedule, "yarn") || pe_text_is(r->schedule, "longrope");
    if (!isnan(r->magnitude) && by_factor)
        put_real(to, "attention_factor", r->magnitude),
            put_real(to, "attention_factor_long", r->magnitude_long);
    else if (!isnan(r->magnitude) && r->magnitude != 1) {
        fputs(",magnitude_rule=ggml", to);
        put_real(to, "attn_factor", r->magnitude);
    } else if (isnan(r->magnitude) && by_factor) {
        put_real(to, "attention_factor", r->attention_factor);
        if (pe_text_is(r->schedule, "yarn"))
            put_real(to, "mscale", r->mscale), put_real(to, "mscale_all_dim", r->mscale_all_dim);
    }
}

/* The numbers that the facts have: a schedule's settings are called like them. */
static void put_schedule(FILE *to, const pe_file_rotation *r, const posenc_model_group *g)
{
    static const char *const names[] = {
        "factor",    "alpha",    "original_length",      "max_length",      "beta_fast",
        "beta_slow", "truncate", "extrapolation_factor", "low_freq_factor", "high_freq_factor"};
    if (pe_text_is(r->schedule, "default")) {
        fputs(r->periods ? ",schedule=period" : "", to);
        return;
    }
    fprintf(to, ",schedule=%s", r->schedule);
    put_real(to, "mixed_b", r->mixed_b);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const posenc_fact *f = posenc_model_fact(g, names[i]);
        if (f && f->kind == POSENC_FACT_REAL)
            put_real(to, names[i], f->real);
        else if (f && f->kind == POSENC_FACT_INTEGER)
            put_whole(to, names[i], f->integer);
        else if (f && !f->integer)
            fprintf(to, ",%s=no", names[i]);
    }
    if (pe_text_is(r->schedule, "longrope") &&
        isnan(r->factor)) /* its magnitude then follows from the two lengths */
        put_whole(to, "max_length", r->max_length ? r->max_length : r->original_length);
    if (pe_text_is(r->schedule, "proportional"))
        put_real(to, "partial_rotary_factor", r->partial);
}

static void put_temperature(FILE *to, const pe_file_rotation *r)
{
    if (!r->temperature)
        return;
    fprintf(to, ",temperature_rule=%s", r->temperature);
    put_real(to, "temperature_scale", r->temperature_scale);
    put_whole(to, "temperature_length", r->temperature_length);
}

static int has_usual_scale(const pe_file_rotation *r)
{
    return isnan(r->score_scale) || fabs(r->score_scale * sqrt((double)r->head_dim) - 1) < 1e-14;
}

static void put_spec(FILE *to, const pe_file_rotation *r, const posenc_model_group *g)
{
    fprintf(to, "rope[layout=%s,dim=%lld", r->layout, (long long)r->dim);
    fputs(r->writes_half && pe_text_is(r->layout, "interleaved") ? ",layout_out=half" : "", to);
    put_whole(to, "offset_dim", r->offset);
    put_real(to, "base", r->base);
    put_schedule(to, r, g);
    put_magnitude(to, r);
    if (r->axes > 1)
        fprintf(to, ",axes=%d,axis_rule=%s", r->axes, r->axis_rule);
    for (int a = 0; r->axes > 1 && !pe_text_is(r->axis_rule, "alternate") && a < r->axes; a++)
        fprintf(to, "%s%lld", a ? ":" : ",sections=", (long long)r->sections[a]);
    fputs(r->inverse ? ",direction=inverse" : "", to);
    fputs(r->divisors ? ",freq_factors=yes" : "", to);
    put_temperature(to, r);
    put_real(to, "scale", has_usual_scale(r) ? (double)NAN : r->score_scale);
    fputc(']', to);
}

static const char *spec_text(posenc_model *m, const pe_file_rotation *r, const posenc_model_group *g,
                             void (*put)(FILE *, const pe_file_rotation *, const posenc_model_group *))
{
    char  *text = NULL;
    size_t size;
    FILE  *to = open_memstream(&text, &size);
    if (to)
        put(to, r, g), fclose(to);
    const char *copy = text ? pe_build_text(m, "%s", text) : "";
    if (!text)
        pe_build_refuse_memory(m);
    free(text);
    return copy;
}

/* ---------------------------------------------------------------- frequencies --------------- */

enum { MOST_PARAMS = 16 };

typedef struct numbers {
    double *w, *w_long; /* [dim/2]; w_long NULL except for two lists */
    double  magnitude;
} numbers;

/* A question to the library: the rotation of a SPEC, and what it takes to ask. */
typedef struct question {
    posenc_encoding    *e;
    posenc_plan        *plan;
    posenc_tensor       params[MOST_PARAMS];
    posenc_rotary_pair *pairs;
    posenc_workspace    work;
    posenc_error        why;
} question;

static posenc_status open_question(question *q, const pe_file_rotation *r, const posenc_model_group *g)
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
            if (pe_text_is(posenc_param_name(q->e, i), g->params[k].name))
                q->params[i] = g->params[k].tensor;
    q->pairs = calloc((size_t)r->dim / 2, sizeof *q->pairs);
    return q->pairs ? posenc_workspace_create(&q->work, q->plan, POSENC_RUN_ROTATE, NULL, &q->why)
                    : POSENC_ERROR_MEMORY;
}

/* The frequencies of a sequence that long. */
static posenc_status ask(question *q, double *w, const pe_file_rotation *r, double length)
{
    const posenc_status status = posenc_rotary_pairs(q->plan, q->params, length, q->pairs, &q->work, &q->why);
    for (int64_t m = 0; !status && m < r->dim / 2; m++)
        w[m] = q->pairs[m].w;
    return status;
}

/* Of a short sequence, and where there are two lists of a long one as well. */
static numbers frequencies(posenc_model *m, const pe_file_rotation *r, const posenc_model_group *g)
{
    question      q      = {.why = {.message = "not enough memory for its frequencies"}};
    int64_t       pairs  = r->dim / 2;
    const size_t  size   = (size_t)pairs * sizeof(double);
    numbers       n      = {pe_build_alloc(m, size), r->long_factor ? pe_build_alloc(m, size) : NULL, 1};
    posenc_status status = m->status ? m->status : open_question(&q, r, g);
    if (!status)
        status = ask(&q, n.w, r, 1);
    if (!status && n.w_long)
        status = ask(&q, n.w_long, r, 1 + (double)r->original_length);
    if (!status)
        status = posenc_rotary_frequencies(q.plan, NULL, &pairs, &n.magnitude, &q.why);
    free(q.pairs);
    posenc_workspace_free(&q.work);
    posenc_plan_free(q.plan);
    posenc_encoding_free(q.e);
    if (status && !m->status)
        m->status = pe_file_fail(m->err, status == POSENC_ERROR_MEMORY ? status : POSENC_ERROR_FORMAT,
                                 (pe_origin){m->path, NULL}, "%s", q.why.message);
    return n;
}

/* ---------------------------------------------------------------- facts --------------------- */

static void add_schedule(posenc_model *m, const pe_file_rotation *r)
{
    const struct {
        const char      *name, *schedules, *rule;
        posenc_fact_kind kind;
        double           value;
    } facts[] = {
        {"factor", "linear ntk_mixed dynamic proportional yarn longrope llama3", r->factor_rule,
         POSENC_FACT_REAL, r->factor},
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
    pe_build_word(m, "schedule", r->schedule, r->schedule_rule);
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (pe_text_is_among(facts[i].schedules, r->schedule) && !isnan(facts[i].value)) {
            posenc_fact *f = pe_build_fact(m, facts[i].name, facts[i].kind, facts[i].rule);
            if (f->kind == POSENC_FACT_REAL)
                f->real = facts[i].value;
            else
                f->integer = (int64_t)facts[i].value;
        }
    if (r->inverse)
        pe_build_word(m, "direction", "inverse", "by the model type");
    if (r->divisors)
        pe_build_flag(m, "freq_factors", 1, "tensor rope_freqs.weight");
}

static void add_axes(posenc_model *m, const pe_file_rotation *r)
{
    double *sections = pe_build_alloc(m, PE_ROTATION_AXES * sizeof *sections);
    pe_build_integer(m, "axes", r->axes,
                     r->axes == 2   ? "height, width"
                     : r->axis_rule ? "time, height, width"
                                    : NULL);
    pe_build_word(m, "axis_rule", r->axis_rule, r->axis_rule ? "by the model type" : NULL);
    for (int a = 0; sections && a < r->axes; a++)
        sections[a] = (double)r->sections[a];
    if (r->axes > 1)
        pe_build_list(m, "sections", POSENC_FACT_INTEGERS, sections, r->axes, r->sections_rule);
    else
        pe_build_fact(m, "sections", POSENC_FACT_NONE, NULL);
}

static void add_temperature(posenc_model *m, const pe_file_rotation *r)
{
    if (!r->temperature) {
        pe_build_fact(m, "temperature", POSENC_FACT_NONE, NULL);
        return;
    }
    pe_build_word(m, "temperature.rule", r->temperature, "by the model type");
    pe_build_real(m, "temperature.scale", r->temperature_scale, NULL);
    pe_build_integer(m, "temperature.length", r->temperature_length, NULL);
}

/* Those that follow from the frequencies, and those after them. */
static void add_rest(posenc_model *m, const pe_file_rotation *r, const numbers *n)
{
    pe_build_list(m, "inv_freq", POSENC_FACT_REALS, n->w, r->dim / 2,
                  pe_text_is(r->schedule, "default") ? "base^(-2i/dim)"
                                                     : "base^(-2i/dim), then the schedule");
    if (n->w_long)
        pe_build_list(m, "inv_freq_long", POSENC_FACT_REALS, n->w_long, r->dim / 2, NULL);
    pe_build_real(m, "magnitude", isnan(r->magnitude) ? n->magnitude : r->magnitude, r->magnitude_rule);
    if (!isnan(r->magnitude_long))
        pe_build_real(m, "magnitude_long", r->magnitude_long, "long_mscale, beyond original_length");
    pe_build_real(m, "score_scale", r->score_scale, r->score_rule);
    add_axes(m, r);
    add_temperature(m, r);
}

posenc_model_group *pe_rotation_group(posenc_model *m, const pe_file_rotation *r, const char *kinds,
                                      int64_t depth, char kind)
{
    const int64_t pairs = r->dim / 2;
    if (m->status)
        return NULL;
    posenc_model_group *g = pe_build_group(m, "rope", r->dims, r->head_dim);
    if (r->short_factor)
        pe_build_param(m, "short_factor", r->short_factor, pairs);
    if (r->long_factor)
        pe_build_param(m, "long_factor", r->long_factor, pairs);
    if (r->divisors)
        pe_build_param(m, "freq_factors", r->divisors, pairs);
    pe_build_layers(m, kinds, depth, kind);
    pe_build_word(m, "layout", r->layout, r->layout_rule);
    pe_build_integer(m, "dim", r->dim, r->dim_rule);
    pe_build_integer(m, "offset_dim", r->offset, r->offset ? "the last channels of a head" : NULL);
    pe_build_integer(m, "head_dim", r->head_dim, r->head_rule);
    pe_build_real(m, "base", r->base, r->base_rule);
    add_schedule(m, r);
    g->spec         = spec_text(m, r, g, put_spec);
    const numbers n = frequencies(m, r, g);
    add_rest(m, r, &n);
    return m->status ? NULL : g;
}

/* Without positions there is one thing that follows them all the same: a temperature. */
static void put_nope_spec(FILE *to, const pe_file_rotation *r, const posenc_model_group *g)
{
    char scale[PE_TEXT_REAL];
    (void)g;
    fputs("nope", to);
    if (r->temperature) {
        fprintf(to, "[temperature=%s", r->temperature);
        put_real(to, "temper_scale", r->temperature_scale);
        put_whole(to, "temper_length", r->temperature_length);
        put_real(to, "scale", has_usual_scale(r) ? (double)NAN : r->score_scale);
        fputc(']', to);
    } else if (!has_usual_scale(r))
        fprintf(to, "[scale=%s]", pe_text_real(scale, r->score_scale));
}

void pe_rotation_nope(posenc_model *m, const pe_file_rotation *r, const char *kinds, int64_t depth)
{
    if (m->status)
        return;
    posenc_model_group *g = pe_build_group(m, "nope", r->dims, r->head_dim);
    g->spec               = spec_text(m, r, g, put_nope_spec);
    pe_build_integer(m, "head_dim", r->head_dim, r->head_rule);
    pe_build_real(m, "score_scale", r->score_scale, r->score_rule);
    add_temperature(m, r);
    pe_build_layers(m, kinds, depth, PE_NOPE);
}
