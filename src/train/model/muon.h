/* SPDX-License-Identifier: MIT */
/*
 * muon.h: the nearest orthogonal matrix, for the steps of matrices
 *
 * Muon replaces the step of a matrix by the orthogonal matrix nearest to it: all its singular values become
 * one, so that directions which gradients seldom point to are learned as fast as the others. An odd
 * polynomial of the singular values, applied a few times, brings each near one: X <- a X + (b A + c A^2) X,
 * A = X X^T.
 *
 * Source: Jordan et al. 2024, "Muon: an optimizer for hidden layers in neural networks"
 * (kellerjordan.github.io /posts/muon), whose a, b, c are used; Bernstein and Newhouse 2024,
 * arXiv:2409.20325, on the iteration.
 */
#ifndef PE_TRAIN_MUON_H
#define PE_TRAIN_MUON_H

#include "kernels/kernels.h"

#include <stdint.h>

/* Floats that the next function needs for a matrix of so many numbers, the shorter side of which is `narrow`.
 */
int64_t pe_muon_scratch(int64_t count, int64_t narrow);

/* x [rows, columns], rows >= columns, becomes nearly orthogonal: its singular values, whatever they were
   together, lie between 0.7 and 1.2 afterwards, except those that were below about 0.003 of their Euclidean
   norm. Zeros stay zeros. x and scratch may be read PE_LANES - 1 numbers beyond their ends. */
void pe_muon_orthogonalise(const pe_kernels *kernels, float *x, int64_t rows, int64_t columns,
                           float *scratch);

#endif
