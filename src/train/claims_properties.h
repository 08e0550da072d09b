/* SPDX-License-Identifier: MIT */
/*
 * claims_properties.h: the rows PROPERTY of claims.def, by their order there
 *
 * A file of its own because the words of measure.h and those of the models (model.h, outcome.h) would
 * collide.
 */
#ifndef PE_TRAIN_CLAIMS_PROPERTIES_H
#define PE_TRAIN_CLAIMS_PROPERTIES_H

#include <posenc/posenc.h>

int pe_property_count(void);
/* values [pe_property_count]; NaN for a row whose encoding has no such finding. */
posenc_status pe_properties_measure(double *values, posenc_error *err);

/* max |f(Px) - P f(x)| of an encoding by itself, without a mask and under a causal one; the first is left as
   it was where the encoding has no meaning without a mask. Some milliseconds. */
posenc_status pe_properties_permuted(double *both_ways, double *causal, const char *spec, posenc_error *err);

#endif
