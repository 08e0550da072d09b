/* SPDX-License-Identifier: MIT */
/*
 * stick.c: weights that break a stick, from the nearest key to the left
 *
 * Formula  A_ij = sigma(z_ij) times the product over allowed l, j < l, of sigma(-z_il), z the finished score:
 *          each key takes its share of what those to its right have left. What is left in the end is the
 *          exponential of the sum of ls(-z), and may go to the value of the query's own key
 * Adjoint  g_ij = A_ij (dO_i.v_j - drem_i), drem the cotangent of what is left; then
 *          dz_ij = g_ij sigma(-z_ij) - sigma(z_ij) sum over j' < j of g_ij', and of lse_i, which is the
 *          logarithm of what is left, -dlse_i sigma(z_ij)
 * Source   Tan et al. 2024, arXiv:2410.17980; shawntan/stickbreaking-attention
 *
 * All in double: a sum of logarithms over thousands of keys is held back from the exponential only by its own
 * rounding. A key that is not allowed (-infinity) takes nothing and leaves all.
 */
#include <math.h>

#include "base/tensor.h"
#include "engine/score/attention.h"
#include "engine/score/gates.h"

void pe_stick_weights(const pe_kernels *kernels, const double z[], int64_t n, double *left, double A[],
                      double share[])
{
    for (int64_t c = 0; c < n; c++)
        share[c] = -z[c];
    pe_gates_ls(kernels, share, n, A);
    for (int64_t c = n - 1; c >= 0; c--) {
        const double breaks = A[c];
        A[c]                = z[c] == -INFINITY ? -INFINITY : z[c] + breaks + *left; /* ls(z) = z + ls(-z) */
        *left += breaks;
    }
    kernels->sigmoids(A, A, n);
    kernels->sigmoids(share, z, n);
    for (int64_t c = 0; c < n; c++)
        A[c] /= 1 - A[c];
}

void pe_stick_back(const double share[], int64_t n, double dlse, double *prefix, double g[])
{
    for (int64_t c = 0; c < n; c++) {
        const double own = g[c];
        g[c]             = own * (1 - share[c]) - share[c] * (*prefix + dlse);
        *prefix += own;
    }
}

int64_t pe_stick_own(const pe_attention *a, pe_own *own, int64_t b, int64_t i)
{
    if (!a->has_rest)
        return -1;
    pe_own_find(own, a, b, i);
    const int64_t n = pe_own_count(own, a, b, i, 1), j = own->first + n - 1;
    return n && !pe_keys_is_hidden(a, b, j) ? j : -1;
}
