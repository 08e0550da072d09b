/* SPDX-License-Identifier: MIT */
/*
 * claims_properties.c: properties of encodings as they are born, for sentences and checks about them.
 *
 * Each SPEC is surveyed once, with the sizes of `posenc properties`, so that this command prints the same
 * numbers.
 */
#include "train/claims.h"

#include "measure/measure.h"
#include "train/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct property {
    const char *spec, *detail;
    pe_measure  measure;
} properties[] = {
#define CLAIM(...)
#define EVIDENCE(...)
#define PROPERTY(spec, detail, measure, at_least, limit, words) {spec, detail, measure},
#include "train/claims.def"
#undef CLAIM
#undef EVIDENCE
#undef PROPERTY
};

enum { PROPERTIES = sizeof properties / sizeof *properties };

static const pe_survey survey = {.sizes  = {.length = 512, .width = 64, .heads = 4, .draws = 20, .seed = 1},
                                 .tokens = 64};

int pe_property_count(void)
{
    return PROPERTIES;
}

static double find(const pe_findings *f, const struct property *p)
{
    for (int i = 0; i < f->count; i++)
        if (f->rows[i].measure == p->measure && !strncmp(f->rows[i].detail, p->detail, strlen(p->detail)))
            return f->rows[i].value;
    return NAN;
}

/* All rows about the SPEC of row `first`. */
static posenc_status measure_spec(double *values, int first, posenc_error *err)
{
    const char      *spec   = properties[first].spec;
    pe_findings     *f      = calloc(1, sizeof *f);
    posenc_encoding *e      = NULL;
    posenc_status    status = f ? pe_measure_encoding(&e, spec, NULL, err)
                                : pe_train_fail(err, POSENC_MEMORY, "compare: no memory for properties");
    if (!status)
        status = pe_measure_all(e, &survey, f, err);
    for (int i = first; i < PROPERTIES && !status; i++)
        if (!strcmp(properties[i].spec, spec))
            values[i] = find(f, &properties[i]);
    posenc_encoding_free(e);
    free(f);
    return status;
}

static int is_first_of_spec(int at)
{
    int i = 0;
    while (strcmp(properties[i].spec, properties[at].spec) != 0)
        i++;
    return i == at;
}

posenc_status pe_properties_measure(double *values, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    for (int i = 0; i < PROPERTIES && !status; i++)
        if (is_first_of_spec(i))
            status = measure_spec(values, i, err);
    return status;
}

posenc_status pe_properties_permuted(double *both_ways, double *causal, const char *spec, posenc_error *err)
{
    pe_subject_sizes few   = survey.sizes;
    pe_findings      found = {.count = 0};
    posenc_encoding *e     = NULL;
    pe_subject      *s     = NULL;
    few.length             = survey.tokens;
    posenc_status status   = pe_measure_encoding(&e, spec, NULL, err);
    if (!status)
        status = pe_subject_create(&s, e, &few, err);
    if (!status)
        status = pe_measure_equivariance(s, &found, err);
    for (int i = 0; i < found.count; i++)
        *(found.rows[i].measure == PE_CAUSAL ? causal : both_ways) = found.rows[i].value;
    pe_subject_free(s);
    posenc_encoding_free(e);
    return status;
}
