/* SPDX-License-Identifier: MIT */
/*
 * mathml.h: formulas that are written in a line, as MathML
 */
#ifndef PE_TRAIN_MATHML_H
#define PE_TRAIN_MATHML_H

#include <stdio.h>

/* The formula (mathml.c says how it is written) as <math> elements, one per line of it. Returns 0 and has
   written something of no use where it is not well formed. */
int pe_mathml_write(FILE *to, const char *formula);

#endif
