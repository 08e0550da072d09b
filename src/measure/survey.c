/* SPDX-License-Identifier: MIT */
/*
 * survey.c: all properties of one encoding
 *
 * Two subjects, because the properties need different sizes: a table's vectors and a score's decay want many
 * positions, what is quadratic in them wants few. The order of the findings is that of the report.
 */
#include "measure/subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an encoding by itself would like to be set to; NULL: nothing, or it has been said already. */
static const char *wish_of(const posenc_encoding *e)
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

posenc_status pe_measure_encoding(posenc_encoding **e, const char *spec, const char *settings,
                                  posenc_error *err)
{
    const posenc_status status = posenc_encoding_create(e, spec, settings, err);
    const char         *wish   = status ? NULL : wish_of(*e);
    if (!wish)
        return status;
    const size_t room = strlen(wish) + (settings ? strlen(settings) : 0) + 2;
    char        *all  = malloc(room);
    posenc_encoding_free(*e);
    if (!all)
        return pe_measure_no_memory(err, "settings");
    snprintf(all, room, "%s %s", wish, settings ? settings : "");
    const posenc_status again = posenc_encoding_create(e, spec, all, err);
    free(all);
    return again;
}

posenc_status pe_measure_all(const posenc_encoding *e, const pe_survey *survey, pe_findings *to,
                             posenc_error *err)
{
    static const struct {
        pe_property *measure;
        int          is_quadratic;
    } properties[] = {{pe_measure_uniqueness, 0}, {pe_measure_relativity, 0},   {pe_measure_scores, 1},
                      {pe_measure_terms, 1},      {pe_measure_equivariance, 1}, {pe_measure_decay, 0},
                      {pe_measure_cost, 0}};
    pe_subject_sizes sizes[2]    = {survey->sizes, survey->sizes};
    pe_subject      *subjects[2] = {NULL};
    posenc_status    status      = POSENC_OK;
    sizes[1].length              = survey->tokens;
    to->count = to->drawn = 0;
    for (int k = 0; !status && k < 2; k++)
        status = pe_subject_create(&subjects[k], e, &sizes[k], err);
    if (!status)
        subjects[0]->is_timed = survey->time;
    for (size_t i = 0; !status && i < sizeof properties / sizeof *properties; i++) {
        pe_subject *s = subjects[properties[i].is_quadratic];
        status        = properties[i].measure(s, to, err);
        pe_subject_give_back(s);
        if (!status)
            status = pe_subject_born(s, survey->sizes.seed, err);
    }
    if (!status) {
        to->drawn       = subjects[0]->drawn | subjects[1]->drawn;
        to->causal_only = subjects[0]->causal_only;
    }
    pe_subject_free(subjects[0]);
    pe_subject_free(subjects[1]);
    return status;
}
