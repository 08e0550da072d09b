/* SPDX-License-Identifier: MIT */
/* What the parts of an explanation share: contract in explain.h. */
#include "cli/commands/explain/explain.h"

#include <math.h>
#include <string.h>

double *cli_explain_numbers(pe_calc *p, int64_t n)
{
    return pe_calc_block(p, (size_t)n * sizeof(double));
}

double *cli_explain_draw(cli_explanation *x, const char *name, int64_t n, double sigma)
{
    double *values = cli_explain_numbers(&x->subject.p, n);
    for (int64_t i = 0; values && i < n; i++)
        values[i] = sigma * posenc_random_normal((uint64_t)x->seed, name, (uint64_t)i);
    return values;
}

double *cli_explain_vector(cli_explanation *x, int64_t D)
{
    pe_calc *p      = &x->subject.p;
    double  *vector = pe_calc_block(p, (size_t)D * sizeof *vector);
    if (x->vector.count && x->vector.count != D)
        pe_calc_refuse(p, "--vector has %d numbers; it must have %lld here", x->vector.count, (long long)D);
    for (int64_t c = 0; c < D && vector; c++)
        vector[c] = c < x->vector.count ? x->vector.real[c] : (double)(c + 1);
    return vector;
}

void cli_explain_plan(cli_explanation *x, const posenc_dims *dims, posenc_run runs)
{
    cli_subject_params(&x->subject, dims, x->seed);
    posenc_plan_free(x->subject.p.plan); /* of another part */
    x->subject.p.plan = NULL;
    pe_calc_plan(&x->subject.p, runs);
}

double cli_explain_coordinate(const cli_numbers *where, int c)
{
    return where->real[where->count > 1 ? c : 0];
}

const char *cli_explain_place(cli_explanation *x, int coordinates)
{
    pe_calc    *p    = &x->subject.p;
    const char *text = "";
    for (int c = 0; c < coordinates; c++)
        text = pe_calc_text(p, "%s%s%g", text, c ? ", " : "", cli_explain_coordinate(&x->position, c));
    return coordinates > 1 ? pe_calc_text(p, "(%s)", text) : text;
}

posenc_positions cli_explain_at(cli_explanation *x, const cli_numbers *where, int coordinates, double moved,
                                int64_t n)
{
    const int64_t shape[] = {n, coordinates};
    posenc_tensor list    = pe_calc_make(&x->subject.p, POSENC_DTYPE_F64, 2, shape);
    if (where->count > 1 && where->count != coordinates)
        pe_calc_refuse(&x->subject.p, "a position has %d coordinate%s here, not %d", coordinates,
                       coordinates == 1 ? "" : "s", where->count);
    for (int64_t i = 0; i < n * coordinates && !pe_calc_failed(&x->subject.p); i++)
        pe_calc_put(&list, i, cli_explain_coordinate(where, (int)(i % coordinates)) + moved);
    if (coordinates == 1)
        list = posenc_tensor_contiguous(list.data, POSENC_DTYPE_F64, 1, shape);
    return posenc_positions_array(list);
}

double cli_explain_difference(const double *a, const double *b, int64_t n)
{
    double most = 0, largest = 1;
    for (int64_t i = 0; i < n; i++) {
        most    = fmax(most, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(a[i]));
    }
    return most / largest;
}

double cli_explain_dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

int cli_explain_needs_mask(const posenc_encoding *e)
{
    int needs = 0;
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        needs |= part && part->causal_only;
    }
    return needs;
}

double cli_explain_orthogonality(const double *A, int64_t D)
{
    double most = 0, column[CLI_EXPLAIN_WIDEST];
    for (int64_t a = 0; a < D; a++) { /* column a of A^T A; A is nearly empty */
        memset(column, 0, sizeof column);
        for (int64_t c = 0; c < D; c++)
            for (int64_t b = 0; b < D && A[c * D + a] != 0; b++)
                column[b] += A[c * D + a] * A[c * D + b];
        for (int64_t b = 0; b < D; b++)
            most = fmax(most, fabs(column[b] - (a == b)));
    }
    return most;
}

int cli_explain_is_shown(int64_t i, int64_t count)
{
    enum { MOST = 16 };
    return count <= MOST || (i & (i - 1)) == 0 || i == count - 1;
}
