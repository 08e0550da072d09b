/* SPDX-License-Identifier: MIT */
/*
 * products.h: the matrix products of the float model, on the library's kernels
 *
 * Matrices lie row after row without gaps. B of a product may be read up to PE_LANES - 1 numbers beyond its
 * end. A sum is taken in the order of the inner index by fused multiply-adds, so a row of C does not depend
 * on the other rows.
 */
#ifndef PE_TRAIN_PRODUCTS_H
#define PE_TRAIN_PRODUCTS_H

#include <stdint.h>

#include "kernels/kernels.h"

/* c[n,columns] = a[n,k] w[k,columns], or += */
void pe_products_multiply(const pe_kernels *kernels, float *c, const float *a, const float *w, int64_t n,
                          int64_t k, int64_t columns, int add);

/* dw[k,columns] += a[n,k]^T dc[n,columns]: what c = a w gives w */
void pe_products_fold(const pe_kernels *kernels, float *dw, const float *a, const float *dc, int64_t n,
                      int64_t k, int64_t columns);

/* Euclidean norm of n numbers, summed in double in a fixed order. */
double pe_products_norm(const float *x, int64_t n);

#endif
