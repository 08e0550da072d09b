/* SPDX-License-Identifier: MIT */
/*
 * wall.c: gates of channels, and their gradient
 *
 * Formula  the product of a pair is the sum over channels n of q_in k_jn e^(min(0, G_m(i),n - G_jn)),
 *          G_j = ls(g_0) + ... + ls(g_j), m(i) the key that is the query
 * Adjoint  dG_m(i),n += q_in dq_in, dG_jn -= k_jn dk_jn, dk that of one query head; d ls(g_l) is the sum of
 *          dG_x over x >= l of the segment: of pairs in two segments there are none
 *
 * The sums are those of turn.c, in double. dq is read as it was stored, which is exact to its own rounding.
 */
#include <string.h>

#include "base/tensor.h"
#include "engine/score/attention.h"

void pe_wall_clear(const pe_attention *a)
{
    if (a->turn.dkey)
        memset(a->turn.dkey, 0, (size_t)(a->sizes.H * a->sizes.Lk * a->D) * sizeof(double));
}

typedef struct fold_job {
    const pe_attention *a;
    int64_t             b;
} fold_job;

/* dG of token l, of all heads that read the row, is added to sum. */
static void gather(const fold_job *j, int64_t row, int64_t l, double sum[], double q[], double dq[])
{
    const pe_attention *a = j->a;
    const pe_turned    *t = &a->turn;
    const int64_t       D = a->D, share = a->sizes.H / t->dtoken->shape[1], b = j->b;
    for (int64_t h = row * share; h < (row + 1) * share; h++) {
        const double *dkey = t->dkey + (h * t->keys + l) * D;
        for (int64_t d = 0; d < D; d++)
            sum[d] += dkey[d];
        for (int64_t i = t->first[b * t->keys + l]; i >= 0; i = t->next[b * t->queries + i]) {
            pe_tensor_load_double(q, pe_tensor_row(&a->q, b, h, i), a->q.dtype, 1, D);
            pe_tensor_load_double(dq, pe_tensor_row(&a->dq, b, h, i), a->dq.dtype, 1, D);
            for (int64_t d = 0; d < D; d++)
                sum[d] += q[d] * dq[d];
        }
    }
}

static void fold_row(void *context, int64_t row, int thread)
{
    const fold_job     *j   = context;
    const pe_attention *a   = j->a;
    const pe_turned    *t   = &a->turn;
    const int64_t       D   = a->D;
    double             *sum = t->back + thread * 4 * D, *x = sum + D, *dx = x + D, *q = dx + D;
    for (int64_t l = t->keys - 1; l >= 0; l--) {
        if (!pe_turn_adds(a, j->b, l))
            memset(sum, 0, (size_t)D * sizeof *sum);
        gather(j, row, l, sum, q, dx);
        pe_tensor_load_double(x, pe_tensor_row(t->token, j->b, row, l), t->token->dtype, 1, D);
        const int hidden = pe_keys_is_padding(&t->key_allowed, j->b, l);
        for (int64_t d = 0; d < D; d++)
            dx[d] = hidden ? 0 : sum[d];
        a->terms->wall.gates_back(a->parts[PE_SCORE].p, x, D, dx);
        pe_tensor_store_double(pe_tensor_row(t->dtoken, j->b, row, l), t->dtoken->dtype, 1, dx, D);
    }
}

void pe_wall_fold(const pe_attention *a, int64_t b)
{
    fold_job j = {a, b};
    if (!a->turn.dkey)
        return;
    pe_turn_list(a, b);
    pe_parallel_for(a->turn.dtoken->shape[1], &a->team, fold_row, &j);
}
