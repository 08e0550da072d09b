/* SPDX-License-Identifier: MIT */
/* level.c: the encodings with less training and in a narrower model. Contract: level.h. */
#include "train/jobs/level.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

#define QUARTER 0.25

/* ORDER PE_LEVEL_QUARTER ... */
static const struct {
    const char *name;
    double      share; /* of the steps */
    int         width; /* the model's is divided by it */
    int         is_brief;
} levels[PE_LEVELS] = {{"a quarter of the steps", QUARTER, 1, 1},
                       {"half of the width", 1, 2, 0},
                       {"half of the steps", 0.5, 1, 0},
                       {"the comparison", 1, 1, 1}};

const char *pe_level_name(int level)
{
    return levels[level].name;
}

int pe_level_exists(const pe_levels *l, int level)
{
    return l && l->extent != PE_EXTENT_NONE && (levels[level].is_brief || l->extent == PE_EXTENT_FULL);
}

/* ---------------------------------------------------------------- runs ---------------------- */

/* The same model as in the comparison. */
static posenc_status copy_outcome(pe_outcome *o, const pe_outcome *whole, posenc_error *err)
{
    o->config = whole->config;
    o->runs   = calloc(1, sizeof *o->runs);
    return o->runs ? POSENC_OK
                   : pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", whole->label);
}

/* A head is as wide as before where they can be halved too. Where the encoding refuses such a model it has no
   run. */
static posenc_status narrow_outcome(pe_outcome *o, const pe_compare *c, const pe_outcome *whole, int divisor,
                                    posenc_error *err)
{
    pe_preset    sizes = c->config.preset;
    posenc_error why   = {0};
    sizes.heads /= sizes.heads % divisor ? 1 : divisor;
    sizes.d_model = sizes.d_model / divisor / sizes.heads * sizes.heads;
    snprintf(o->label, sizeof o->label, "%s", whole->label);
    const posenc_status status =
        sizes.d_model ? pe_outcome_resize(o, c, &sizes, &why) : POSENC_ERROR_UNSUPPORTED;
    if (status == POSENC_ERROR_MEMORY && err)
        *err = why;
    if (status) {
        pe_outcome_free(o, 1);
        *o = (pe_outcome){0};
    }
    return status == POSENC_ERROR_MEMORY ? status : POSENC_OK;
}

static posenc_status run_create(pe_level_run *run, const pe_compare *c, int level, int i, posenc_error *err)
{
    const pe_outcome *whole    = &c->outcomes[i];
    const double      share    = levels[level].share;
    pe_outcome       *o        = &run->outcome;
    run->encoding              = i;
    const posenc_status status = levels[level].width > 1
                                     ? narrow_outcome(o, c, whole, levels[level].width, err)
                                     : copy_outcome(o, whole, err);
    snprintf(o->label, sizeof o->label, "%.*s, %s", PE_LONGEST_SPEC - 32, whole->label, levels[level].name);
    if (share < 1)
        o->config.steps = pe_trial_steps(whole->config.steps, share);
    o->config.measures = 0;
    return status;
}

static posenc_status level_create(pe_levels *l, const pe_compare *c, int level, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    l->runs[level]       = calloc((size_t)l->encodings, sizeof *l->runs[level]);
    if (!l->runs[level])
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", levels[level].name);
    for (int i = 0; i < l->encodings && !status; i++)
        status = run_create(&l->runs[level][i], c, level, i, err);
    return status;
}

posenc_status pe_level_list_create(pe_compare *c, posenc_error *err)
{
    const char   *word = c->config.preset.stability;
    pe_levels    *l = c->levels = calloc(1, sizeof *l);
    posenc_status status        = POSENC_OK;
    if (!l)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for the levels");
    l->encodings = c->count;
    if (word)
        status = pe_preset_read_stability(&l->extent, word, err);
    if (c->count < 2) /* one encoding has no order */
        l->extent = PE_EXTENT_NONE;
    l->uses_trials = pe_trial_runs(c->trials) > 0 && c->trials->share == QUARTER;
    for (int level = 0; level < PE_LEVEL_WHOLE && !status; level++)
        if (pe_level_exists(l, level) && !(level == PE_LEVEL_QUARTER && l->uses_trials))
            status = level_create(l, c, level, err);
    return status;
}

void pe_level_list_free(pe_levels *l)
{
    if (!l)
        return;
    for (int level = 0; level < PE_LEVELS; level++) {
        for (int i = 0; l->runs[level] && i < l->encodings; i++)
            pe_outcome_free(&l->runs[level][i].outcome, 1);
        free(l->runs[level]);
    }
    free(l);
}

/* ---------------------------------------------------------------- by number ----------------- */

/* Number i of those that have a run, counted level by level; NULL behind the last, *count of them. */
static pe_level_run *walk(const pe_levels *l, int64_t i, int64_t *count)
{
    *count = 0;
    for (int level = 0; l && level < PE_LEVELS; level++)
        for (int k = 0; l->runs[level] && k < l->encodings; k++)
            if (l->runs[level][k].outcome.runs && (*count)++ == i)
                return &l->runs[level][k];
    return NULL;
}

int64_t pe_level_runs(const pe_levels *l)
{
    int64_t count;
    walk(l, -1, &count);
    return count;
}

pe_level_run *pe_level_run_at(const pe_levels *l, int64_t i)
{
    int64_t count;
    return walk(l, i, &count);
}

pe_outcome *pe_level_outcome(const pe_compare *c, int level, int i)
{
    const pe_levels *l = c->levels;
    if (!pe_level_exists(l, level))
        return NULL;
    if (level == PE_LEVEL_WHOLE)
        return &c->outcomes[i];
    if (level == PE_LEVEL_QUARTER && l->uses_trials)
        return c->trials->chosen[i] < 0 ? NULL : pe_trial_at(c->trials, i, c->trials->chosen[i]);
    return l->runs[level][i].outcome.runs ? &l->runs[level][i].outcome : NULL;
}
