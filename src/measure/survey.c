/* SPDX-License-Identifier: MIT */
/*
 * survey.c: all properties of one encoding
 *
 * Two subjects, because the properties need different sizes: a table's vectors and a score's decay want many positions,
 * what is quadratic in them wants few. The order of the findings is that of the report.
 */
#include "measure/measure.h"

#include <stddef.h>

typedef posenc_status property(pe_subject *s, pe_findings *to, posenc_error *err);

static posenc_status run(const posenc_encoding *e, const pe_subject_sizes *sizes, property *const list[],
                         pe_findings *to, posenc_error *err)
{
    pe_subject   *s;
    posenc_status status = pe_subject_create(&s, e, sizes, err);
    for (int i = 0; !status && list[i]; i++)
        status = list[i](s, to, err);
    pe_subject_free(s);
    return status;
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
    to->count            = 0;
    posenc_status status = run(e, &survey->sizes, first, to, err);
    if (!status)
        status = run(e, &few, second, to, err);
    if (!status)
        status = run(e, &survey->sizes, third, to, err);
    return status ? status : run(e, &survey->sizes, last, to, err);
}
