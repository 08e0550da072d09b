/* SPDX-License-Identifier: MIT */
/*
 * linear.c: least squares by one-sided Jacobi rotations
 *
 * Columns of A are turned in pairs until all are orthogonal: A V = U S. One-sided Jacobi finds small singular
 * values with high relative accuracy, which is what a table of sinusoids needs: its slow channels are nearly
 * collinear, and the normal equations would lose them (their condition is the square). Then X = V S^-1 U^T B.
 *
 * Source: Golub, Van Loan, Matrix Computations, section 8.6.3; Demmel, Veselic 1992.
 */
#include "measure/subject.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_SWEEPS = 60 };

posenc_status pe_measure_no_memory(posenc_error *err, const char *what)
{
    if (err) {
        err->status = POSENC_ERROR_MEMORY;
        snprintf(err->message, sizeof err->message, "measure: there is no memory for %s", what);
    }
    return POSENC_ERROR_MEMORY;
}

/* In eight sums, which a compiler may keep in vectors without changing the order of any of them. */
static double dot(const double *a, const double *b, int64_t n)
{
    double  sums[8] = {0};
    int64_t i       = 0;
    for (; i + 8 <= n; i += 8)
        for (int lane = 0; lane < 8; lane++)
            sums[lane] += a[i + lane] * b[i + lane];
    for (; i < n; i++)
        sums[i % 8] += a[i] * b[i];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static void turn(double *a, double *b, int64_t n, double c, double s)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i], y = b[i];
        a[i] = c * x - s * y;
        b[i] = s * x + c * y;
    }
}

/* Makes columns p and q of U orthogonal; returns whether they were not. */
static int make_orthogonal(double *U, double *V, int64_t m, int64_t n, int64_t p, int64_t q)
{
    double      *a = U + p * m, *b = U + q * m;
    const double alpha = dot(a, a, m), beta = dot(b, b, m), gamma = dot(a, b, m);
    if (gamma == 0 || fabs(gamma) <= 1e-16 * sqrt(alpha * beta))
        return 0;
    const double zeta = (beta - alpha) / (2 * gamma);
    const double t    = (zeta < 0 ? -1.0 : 1.0) / (fabs(zeta) + hypot(1, zeta));
    const double c = 1 / hypot(1, t), s = c * t;
    turn(a, b, m, c, s);
    turn(V + p * n, V + q * n, n, c, s);
    return 1;
}

/* U [n][m] holds the columns of A, and at the end those of U S; V [n][n] the columns of V. */
static void decompose(double *U, double *V, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++)
        V[i] = i % (n + 1) == 0;
    int turned = 1;
    for (int sweep = 0; turned && sweep < MOST_SWEEPS; sweep++) {
        turned = 0;
        for (int64_t p = 0; p < n; p++)
            for (int64_t q = p + 1; q < n; q++)
                turned |= make_orthogonal(U, V, m, n, p, q);
    }
}

/* X += v (u . b) / s^2 for one singular value, u of length s. */
static void add_component(double *X, const double *u, const double *v, double square, const double *B,
                          int64_t m, int64_t n, int64_t c)
{
    for (int64_t j = 0; j < c; j++) {
        double sum = 0;
        for (int64_t i = 0; i < m; i++)
            sum += u[i] * B[i * c + j];
        for (int64_t i = 0; i < n; i++)
            X[i * c + j] += v[i] * (sum / square);
    }
}

static void solve(double *X, const double *U, const double *V, const double *B, int64_t m, int64_t n,
                  int64_t c, double cut)
{
    double largest = 0;
    for (int64_t k = 0; k < n; k++)
        largest = fmax(largest, dot(U + k * m, U + k * m, m));
    for (int64_t i = 0; i < n * c; i++)
        X[i] = 0;
    for (int64_t k = 0; k < n; k++) {
        const double square = dot(U + k * m, U + k * m, m);
        if (square > 0 && sqrt(square) >= cut * sqrt(largest))
            add_component(X, U + k * m, V + k * n, square, B, m, n, c);
    }
}

posenc_status pe_least_squares(double *X, const double *A, const double *B, int64_t m, int64_t n, int64_t c,
                               double cut, posenc_error *err)
{
    double *U = malloc((size_t)(n * m) * sizeof *U), *V = malloc((size_t)(n * n) * sizeof *V);
    if (U && V) {
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++)
                U[j * m + i] = A[i * n + j];
        decompose(U, V, m, n);
        solve(X, U, V, B, m, n, c, cut);
    }
    const int missing = !U || !V;
    free(U);
    free(V);
    return missing ? pe_measure_no_memory(err, "a least squares fit") : POSENC_OK;
}
