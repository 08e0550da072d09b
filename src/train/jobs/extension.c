/* SPDX-License-Identifier: MIT */
/*
 * extension.c: what of a comparison is extended
 *
 * One family is one outcome, made like any other, whose runs carry a follow-up (extension_run.c): its ways.
 */
#include "train/jobs/extension.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

enum { LEAST_L = 16, TUNE_WARMUP_PART = 10 };
#define TUNE_RATE 0.25 /* of the peak of training */

/* Why nothing can be extended here, or NULL. */
static const char *reason_against(const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    if (c->config.bidirectional)
        return "the models see both sides, and lengths are read one by one";
    if (p->L < LEAST_L)
        return "L must be at least 16";
    if (pe_text_windows(&c->text, PE_FURTHEST * p->L) < 1 ||
        c->text.train_size - c->text.spared <= PE_FURTHEST * p->L)
        return "the text is too short for windows of 16 L";
    return NULL;
}

static void add_way(pe_extension *x, int way)
{
    int f = 0;
    while (f < x->count && strcmp(x->plans[f].family, pe_ways[way].family) != 0)
        f++;
    x->count                = f == x->count ? f + 1 : x->count;
    pe_extension_plan *p    = &x->plans[f];
    p->family               = pe_ways[way].family;
    p->ways[p->way_count++] = way;
}

static void plan_family(pe_extension *x, int family, const pe_compare *c, pe_preset_extent extend)
{
    const pe_preset   *preset = &c->config.preset;
    pe_extension_plan *p      = &x->plans[family];
    p->extend                 = extend;
    p->windows                = x->windows;
    p->batch                  = preset->batch;
    p->steps                  = c->config.tune_steps ? c->config.tune_steps : preset->tune_steps;
    p->warmup                 = p->steps / TUNE_WARMUP_PART;
    pe_extension_set_rate(x, family, preset->learning_rate);
}

void pe_extension_set_rate(pe_extension *x, int family, double rate)
{
    x->outcomes[family].config.learning_rate = rate;
    x->plans[family].learning_rate           = TUNE_RATE * rate;
    x->followups[family]                     = pe_extension_followup(&x->plans[family]);
}

/* The family's encoding with the settings of its room for a small model, as the comparison's own. */
static posenc_status make_outcome(pe_extension *x, int family, const pe_compare *c, posenc_error *err)
{
    static const pe_entry entry = {0};
    char                  spec[PE_LONGEST_SPEC];
    pe_outcome           *o    = &x->outcomes[family];
    const posenc_dims     dims = pe_outcome_dims(&c->config.preset);
    posenc_status         status =
        pe_spec_complete(spec, sizeof spec, x->plans[family].family, &dims, POSENC_MASK_CAUSAL, err);
    snprintf(o->label, sizeof o->label, "%s, extended", x->plans[family].family);
    if (!status)
        status = posenc_encoding_create(&o->e, spec, NULL, err);
    if (status)
        return status;
    o->config          = pe_outcome_run_config(c, o->e, &entry);
    o->config.measures = 0;
    o->config.followup = &x->followups[family];
    o->runs            = calloc((size_t)x->seeds, sizeof *o->runs);
    return o->runs ? POSENC_OK
                   : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", o->label);
}

static posenc_status make_families(pe_extension *x, const pe_compare *c, pe_preset_extent extend,
                                   posenc_error *err)
{
    const int64_t fit    = pe_text_windows(&c->text, PE_FURTHEST * x->L),
                  part   = extend == PE_EXTENT_FULL ? 2 : 4,
                  wanted = (c->config.preset.windows + part - 1) / part;
    posenc_status status = POSENC_OK;
    x->windows           = fit < wanted ? fit : wanted;
    for (int i = 0; i < PE_WAYS; i++)
        add_way(x, i);
    for (int f = 0; f < x->count && !status; f++) {
        plan_family(x, f, c, extend);
        status = make_outcome(x, f, c, err);
    }
    return status;
}

posenc_status pe_extension_create(pe_extension **extension, const pe_compare *c, posenc_error *err)
{
    pe_preset_extent extend = PE_EXTENT_NONE;
    const char   *asked = c->config.extension, *preset = c->config.preset.extension, *why = reason_against(c);
    pe_extension *x = calloc(1, sizeof *x);
    *extension      = x;
    if (!x)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory to extend models");
    x->seeds = c->config.preset.seeds;
    x->L     = c->config.preset.L;
    x->unit  = c->unit;
    posenc_status status =
        asked || preset ? pe_preset_read_extent(&extend, asked ? asked : preset, err) : POSENC_OK;
    if (status || extend == PE_EXTENT_NONE)
        return status;
    if (why && asked) /* in so many words */
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "--extension %s cannot be done here: %s; leave it out",
                       asked, why);
    if (why)
        snprintf(x->reason, sizeof x->reason, "%s", why);
    return why ? POSENC_OK : make_families(x, c, extend, err);
}

void pe_extension_free(pe_extension *x)
{
    if (!x)
        return;
    for (int f = 0; f < x->count; f++)
        pe_outcome_free(&x->outcomes[f], x->seeds);
    free(x->means);
    free(x);
}

int64_t pe_extension_runs(const pe_extension *x)
{
    return x ? x->count * x->seeds : 0;
}
