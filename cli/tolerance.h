/* SPDX-License-Identifier: MIT */
/*
 * tolerance.h: how far an array may differ from its reference
 *
 *   float64 outputs     1e-12 * max(1, |ref|)
 *   float64 gradients   1e-11 * max(1, |ref|)
 *   float64 solutions   1e-10 * max(1, |ref|), of an equation followed to an error of 1e-14 a step
 *   float32 outputs     2e-6 of the row's scale: row = last axis, scale = max |ref| over it, at least
 *   float32 gradients   2e-5   1e-3 of the array's; a 1-D array is one row
 *                       (where it is 0 everywhere: of the largest gradient of the case)
 *   whole numbers       nothing
 *   angles              2^-52 * |a| more where the cosine of a computed angle a enters
 *
 * An error is measured as a fraction of what is allowed, so that all of these are one number: above
 * 1 it fails. A NaN on either side fails; infinities must be equal.
 */
#ifndef CLI_TOLERANCE_H
#define CLI_TOLERANCE_H

#include <posenc/posenc.h>

/* SOLVED is an output that approaches the solution of an equation, as its reference does. PREPARED is one
   that the library computes in double whichever executor runs. */
typedef enum cli_kind { CLI_OUTPUT, CLI_GRADIENT, CLI_SOLVED, CLI_PREPARED, CLI_INDEX, CLI_KINDS } cli_kind;

/* `angles`, one per row, or `angle` for all rows: how far an angle may be off, in radians. What it
   turns is as large as the row, so the allowance grows by angle * max(1, max |ref| of the row). */
typedef struct cli_allowance {
    cli_kind      kind;
    int           is_single; /* computed in float32 */
    double        angle;
    const double *angles;
    double        others; /* max |ref| of all gradients of the case: see ZERO in tolerance.c */
} cli_allowance;

typedef struct cli_measure {
    double  worst; /* error / allowed */
    int64_t at;    /* its element, counted in C order */
    double  got, want;
} cli_measure;

/* Both contiguous, with equal numbers of elements; rows are those of want. */
cli_measure cli_measure_array(const posenc_tensor *got, const posenc_tensor *want,
                              const cli_allowance *allowance);

/* max |x|, infinities and NaN aside: they decide nothing about the others. */
double cli_largest(const posenc_tensor *t);

#endif
