/* SPDX-License-Identifier: MIT */
/* linear.h: least squares by the singular values, for tables whose columns may be nearly dependent. */
#ifndef PE_MEASURE_LINEAR_H
#define PE_MEASURE_LINEAR_H

#include <posenc/posenc.h>
#include <stdint.h>

/* X [n,c] with the least |A X - B|, among those the shortest: A [m,n], B [m,c], row-major, m >= n. Singular
   values below cut * the largest count as 0. MEMORY alone. */
posenc_status pe_least_squares(double *X, const double *A, const double *B, int64_t m, int64_t n, int64_t c,
                               double cut, posenc_error *err);

/* "measure: there is no memory for WHAT" */
posenc_status pe_measure_no_memory(posenc_error *err, const char *what);

#endif
