/* SPDX-License-Identifier: MIT */
/*
 * survey.c: all properties of one encoding
 *
 * Two subjects, because the properties need different sizes: a table's vectors and a score's decay want many
 * positions, what is quadratic in them wants few. The order of the findings is that of the report.
 */
#include "measure/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measure/linear.h"
#include "measure/subject.h"

typedef posenc_status property(pe_subject *s, pe_findings *to, posenc_error *err);

static posenc_status run(const posenc_encoding *e, const pe_subject_sizes *sizes, property *const list[],
                         pe_findings *to, posenc_error *err)
{
    pe_subject   *s;
    posenc_status status = pe_subject_create(&s, e, sizes, err);
    for (int i = 0; !status && list[i]; i++)
        status = list[i](s, to, err);
    if (!status)
        to->drawn |= s->drawn;
    pe_subject_free(s);
    return status;
}

/* What an encoding by itself would like to be set to; NULL: nothing, or it has been said already. */
static const char *wish_of(const posenc_encoding *e)
{
    const posenc_encoding_info *only = NULL;
    for (int place = 0; place < POSENC_PLACES; place++) {
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

static posenc_status with_time(pe_subject *s, pe_findings *to, posenc_error *err)
{
    return pe_measure_cost(s, 1, to, err);
}

static posenc_status without_time(pe_subject *s, pe_findings *to, posenc_error *err)
{
    return pe_measure_cost(s, 0, to, err);
}

posenc_status pe_measure_all(const posenc_encoding *e, const pe_survey *survey, pe_findings *to,
                             posenc_error *err)
{
    property *const first[]  = {pe_measure_uniqueness, pe_measure_relativity, NULL};
    property *const second[] = {pe_measure_scores, pe_measure_terms, pe_measure_equivariance, NULL};
    property *const third[]  = {pe_measure_decay, NULL};
    property *const last[]   = {survey->time ? with_time : without_time, NULL};

    pe_subject_sizes few = survey->sizes;
    few.length           = survey->tokens;
    to->count = to->drawn = 0;
    posenc_status status  = run(e, &survey->sizes, first, to, err);
    if (!status)
        status = run(e, &few, second, to, err);
    if (!status)
        status = run(e, &survey->sizes, third, to, err);
    return status ? status : run(e, &survey->sizes, last, to, err);
}
