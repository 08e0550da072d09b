/* SPDX-License-Identifier: MIT */
/* The rules of docs/reference-cases.md as numbers: contract in tolerance.h. */
#include "tolerance.h"

#include <math.h>

#include "problem.h"

/* Of float64 and of float32 results; by_row says what a float32 factor is relative to. */
static const struct {
    double factor[2];
    int    by_row;
} rules[CLI_KINDS] = {
    [CLI_OUTPUT] = {{1e-12, 2e-6}, 1}, [CLI_GRADIENT] = {{1e-11, 2e-5}, 1},
    [CLI_SOLVED] = {{1e-10, 2e-6}, 1}, [CLI_PREPARED] = {{1e-12, 1e-12}, 0},
    [CLI_INDEX] = {{0, 0}, 0},
};

static const double LEAST_SCALE = 1e-3; /* of a row, relative to its array */

/* What a float64 gradient may be off by. An array whose references are all below is 0 - a number added to
   every score of a row has no gradient, for example - and what the reference holds is its own rounding: no
   scale for a float32 result, which is a sum of numbers as large as the other gradients. */
static const double ZERO = 1e-11;

static double largest(const posenc_tensor *t, int64_t from, int64_t n)
{
    double most = 0;
    for (int64_t i = from; i < from + n; i++) {
        const double x = fabs(cli_element(t, i));
        if (isfinite(x) && x > most)
            most = x;
    }
    return most;
}

double cli_largest(const posenc_tensor *t)
{
    return largest(t, 0, cli_element_count(t));
}

static double fraction(double got, double want, double allowed)
{
    if (got == want)
        return 0;
    const double error = fabs(got - want);
    return isfinite(error) && allowed > 0 ? error / allowed : (double)INFINITY;
}

cli_measure cli_measure_array(const posenc_tensor *got, const posenc_tensor *want, const cli_allowance *a)
{
    const int64_t n      = cli_element_count(want);
    const int64_t width  = want->ndim ? want->shape[want->ndim - 1] : 1;
    const double  factor = rules[a->kind].factor[a->is_single], array = cli_largest(want);
    const double  least  = a->kind == CLI_GRADIENT && array <= ZERO ? a->others : LEAST_SCALE * array;
    const int     by_row = a->is_single && rules[a->kind].by_row;
    cli_measure   m      = {0, 0, 0, 0};
    for (int64_t row = 0; row * width < n; row++) {
        const double most  = largest(want, row * width, width);
        const double scale = fmax(most, least);
        const double angle = (a->angles ? a->angles[row] : a->angle) * fmax(1, most);
        for (int64_t i = row * width; i < (row + 1) * width; i++) {
            const double x = cli_element(got, i), ref = cli_element(want, i);
            const double allowed = factor * (by_row ? scale : fmax(1, fabs(ref))) + angle;
            const double f       = fraction(x, ref, allowed);
            if (f > m.worst || i == 0)
                m = (cli_measure){f, i, x, ref};
        }
    }
    return m;
}
