/* SPDX-License-Identifier: MIT */
/*
 * survey.c: all properties of one encoding
 *
 * Two subjects, because the properties need different sizes: a table's vectors and a score's decay need many
 * positions, what is quadratic in them few. The order of the findings is that of the report.
 */
#include "measure/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The setting that suits a single encoding at this length; NULL: none, or the SPEC sets it already. */
static const char *suited_setting(const posenc_encoding *e)
{
    const posenc_encoding_info *only = NULL;
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && only)
            return NULL;
        only = part ? part : only;
    }
    if (!only || !only->at_length)
        return NULL;
    const size_t name = strcspn(only->at_length, "=") + 1;
    for (const char *at = posenc_encoding_spec(e); (at = strpbrk(at, "[:")); at++)
        if (!strncmp(at + 1, only->at_length, name))
            return NULL;
    return only->at_length;
}

posenc_status pe_survey_encoding(posenc_encoding **e, const char *spec, const char *settings,
                                 posenc_error *err)
{
    const posenc_status status = posenc_encoding_create(e, spec, settings, err);
    const char         *suited = status ? NULL : suited_setting(*e);
    if (!suited)
        return status;
    const size_t size = strlen(suited) + (settings ? strlen(settings) : 0) + 2;
    char        *all  = malloc(size);
    posenc_encoding_free(*e);
    if (!all)
        return pe_subject_no_memory(err, "settings");
    snprintf(all, size, "%s %s", suited, settings ? settings : "");
    const posenc_status again = posenc_encoding_create(e, spec, all, err);
    free(all);
    return again;
}

posenc_status pe_survey_run(const posenc_encoding *e, const pe_survey *survey, pe_findings *to,
                            posenc_error *err)
{
    static const struct {
        pe_property *measure;
        int          is_quadratic;
    } properties[] = {{pe_uniqueness_measure, 0},  {pe_relativity_measure, 0},   {pe_scores_measure, 1},
                      {pe_score_terms_measure, 1}, {pe_equivariance_measure, 1}, {pe_decay_measure, 0},
                      {pe_grid_measure, 0},        {pe_cost_measure, 0}};
    pe_subject_sizes sizes[2]    = {survey->sizes, survey->sizes};
    pe_subject      *subjects[2] = {NULL};
    posenc_status    status      = POSENC_OK;
    sizes[1].length              = survey->tokens;
    to->count = to->randomised = 0;
    for (int k = 0; !status && k < 2; k++)
        status = pe_subject_create(&subjects[k], e, &sizes[k], err);
    if (!status) {
        subjects[0]->is_timed  = survey->time;
        subjects[0]->grid_rows = survey->rows;
    }
    for (size_t i = 0; !status && i < sizeof properties / sizeof *properties; i++) {
        pe_subject *s = subjects[properties[i].is_quadratic];
        status        = properties[i].measure(s, to, err);
        pe_subject_give_back(s);
        if (!status)
            status = pe_subject_initialise(s, survey->sizes.seed, err);
    }
    if (!status) {
        to->randomised  = subjects[0]->randomised | subjects[1]->randomised;
        to->causal_only = subjects[0]->causal_only;
    }
    pe_subject_free(subjects[0]);
    pe_subject_free(subjects[1]);
    return status;
}
