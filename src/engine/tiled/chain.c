/* SPDX-License-Identifier: MIT */
/*
 * chain.c: queries that are transformed from key to key, a tile of keys at once
 *
 * Of the keys of a tile, W, beta, K, N = strictly lower(beta W W^T), "lower" meaning below the diagonal:
 *   U = (I + N)^-1 beta W,  M = (I + N)^-1 strictly lower(beta W K^T),  K^ = K - M^T W
 * Queries X come from the right; of B = X W^T each keeps the keys of its own chain (lower B), the others are
 * ahead of it (upper B):
 *   products = X K^^T + (upper B) M        what goes on to the left: X - (lower B) U
 * Left of the keys that are queries of the tile themselves there is no upper part. The solve is in double,
 * its results are rounded once.
 *
 * Backward, dX' the cotangent of what went on, dP that of the products:
 *   dB = upper(dP M^T) - lower(dX' U^T),  dX = dP K^ + dX' + dB W,  dK^ += dP^T X,  dW += dB^T X,
 *   dM += (upper B)^T dP,  dU -= (lower B)^T dX'
 * and of the tile, when all queries have been there:
 *   dM -= W dK^^T,  dW -= M dK^,  dK += dK^,  [dZ|dY] = (I + N)^-T [dU|dM],  dN = -(dY M^T + dZ U^T)
 *   beta w_l.k_j at dY (j < l), beta w_l at dZ, beta w_l.w_m at dN (m < l)
 *
 * Source   Yang et al. 2025, arXiv:2505.16381 (the tiles); the form with one upper part is the same algebra:
 *          X K^T - (lower B) M = X K^^T + (B - lower B) M
 */
#include <string.h>

#include "engine/tiled/tiles.h"

static int64_t wide(const pe_tiles *T)
{
    return pe_padded64(T->a->sizes.D);
}

static int64_t long64(const pe_tiles *T)
{
    return pe_padded64(T->Bc);
}

void pe_tile_chain_lay_out(const pe_tiles *T, pe_chain_scratch *x, pe_arena *arena)
{
    const int64_t D = wide(T), C = long64(T);
    if (!pe_chains(T->a))
        return;
    x->lower  = pe_arena_floats(arena, T->Br * T->Bcp);
    x->upper  = pe_arena_floats(arena, T->Br * T->Bcp);
    x->own_W  = pe_arena_floats(arena, T->Bc * T->Dp);
    x->own    = pe_arena_take(arena, pe_arena_bytes(T->Br, sizeof(int64_t)));
    x->beta   = pe_arena_doubles(arena, T->Bc);
    x->W      = pe_arena_doubles(arena, T->Bc * D);
    x->K      = pe_arena_doubles(arena, T->Bc * D);
    x->across = pe_arena_doubles(arena, pe_larger(T->a->sizes.D, T->Bc) * C);
    x->N      = pe_arena_doubles(arena, T->Bc * C);
    x->UM     = pe_arena_doubles(arena, T->Bc * (D + C));
}

/* ---- the solve ---- */

/* across [width, C] = rows [n, width] transposed, 0 beyond them. */
static void turn(const pe_tiles *T, const pe_chain_scratch *x, const double *rows, int64_t stride,
                 int64_t width, int64_t n)
{
    const int64_t C = long64(T);
    for (int64_t d = 0; d < width; d++)
        for (int64_t c = 0; c < C; c++)
            x->across[d * C + c] = c < n ? rows[c * stride + d] : 0;
}

/* to[l,j] = -beta_l w_l . row j for j < l, else 0. */
static void lower_products(const pe_tiles *T, const pe_chain_scratch *x, double *to, int64_t stride,
                           const double *rows, int64_t n)
{
    const int64_t D = wide(T), C = long64(T);
    turn(T, x, rows, D, T->a->sizes.D, n);
    T->a->kernels->product64(to, stride, x->W, D, 1, x->across, C, n, C, T->a->sizes.D, 0);
    for (int64_t l = 0; l < n; l++)
        for (int64_t j = 0; j < C; j++)
            to[l * stride + j] = j < l ? -x->beta[l] * to[l * stride + j] : 0;
}

static void solve(const pe_tiles *T, const pe_chain_scratch *x, int64_t b, int64_t g, int64_t j0, int64_t n)
{
    const pe_attention *a = T->a;
    const int64_t       D = wide(T), C = long64(T), UM = D + C, width = a->sizes.D;
    memset(x->W, 0, (size_t)(n * D) * sizeof(double));
    memset(x->K, 0, (size_t)(n * D) * sizeof(double));
    pe_chain_load(a, b, g, j0, n, x->W, D, x->beta);
    for (int64_t j = 0; j < n; j++)
        pe_keys_load_double(a, x->K + j * D, &a->k, b, g, j0 + j, width);
    lower_products(T, x, x->UM + D, UM, x->K, n);
    lower_products(T, x, x->N, C, x->W, n);
    for (int64_t l = 0; l < n; l++) {
        for (int64_t d = 0; d < D; d++)
            x->UM[l * UM + d] = -x->beta[l] * x->W[l * D + d];
        a->kernels->product64(x->UM + l * UM, UM, x->N + l * C, C, 1, x->UM, UM, 1, UM, l, 1);
    }
}

/* K^ = K - M^T W into x->K. */
static void reach_across(const pe_tiles *T, const pe_chain_scratch *x, int64_t n)
{
    const int64_t D = wide(T), UM = D + long64(T);
    T->a->kernels->product64(x->K, D, x->UM + D, 1, UM, x->W, D, n, D, n, 1);
}

static void round_rows(float *to, int64_t to_stride, const double *from, int64_t stride, int64_t n,
                       int64_t width, double sign)
{
    for (int64_t r = 0; r < n; r++)
        for (int64_t d = 0; d < to_stride; d++)
            to[r * to_stride + d] = d < width ? (float)(sign * from[r * stride + d]) : 0;
}

void pe_tile_chain_make(const pe_tiles *T, const pe_chain_scratch *x, const pe_chain_rows *to, int64_t b,
                        int64_t g, int64_t j0, int64_t n)
{
    const int64_t D = wide(T), UM = D + long64(T), width = T->a->sizes.D;
    solve(T, x, b, g, j0, n);
    reach_across(T, x, n);
    round_rows(to->K, T->Dp, x->K, D, n, width, 1);
    round_rows(to->W, T->Dp, x->W, D, n, width, 1);
    round_rows(to->U, T->Dp, x->UM, UM, n, width, 1);
    round_rows(to->M, T->Bcp, x->UM + D, UM, n, n, -1);
}

/* ---- queries at a tile ---- */

void pe_tile_chain_meet(const pe_tiles *T, pe_scratch *z, const float *X)
{
    pe_chain_scratch *x    = &z->chain;
    const int64_t     D    = T->a->sizes.D;
    int64_t           most = 0, least = z->C;
    for (int64_t r = 0; r < z->R; r++) {
        const int64_t n = pe_chain_own(T->a, z->b, z->i0 + r) - z->j0 + 1;
        x->own[r]       = n < 0 ? 0 : pe_smaller(n, z->C);
        most            = pe_larger(most, x->own[r]);
        least           = pe_smaller(least, x->own[r]);
    }
    x->steps   = most > 0;
    x->reaches = least < z->C && (most > 0 || T->a->unmasked);
    if (x->steps || x->reaches)
        T->a->kernels->product(x->lower, T->Bcp, X, T->Dp, 1, x->Wt, T->Bcp, z->R, z->C, D, 0);
    for (int64_t r = 0; x->reaches && r < z->R; r++) {
        float *lower = x->lower + r * T->Bcp, *upper = x->upper + r * T->Bcp;
        memset(upper, 0, (size_t)x->own[r] * sizeof *upper);
        memcpy(upper + x->own[r], lower + x->own[r], (size_t)(z->C - x->own[r]) * sizeof *upper);
        memset(lower + x->own[r], 0, (size_t)(z->C - x->own[r]) * sizeof *lower);
    }
}

void pe_tile_chain_reach(const pe_tiles *T, const pe_scratch *z, float *s)
{
    for (int64_t r = 0; z->chain.reaches && r < z->R;) {
        const pe_visible y = pe_visible_keys(z, r);
        T->a->kernels->product(s + r * T->Bcp + y.first, T->Bcp, z->chain.upper + r * T->Bcp, T->Bcp, 1,
                               z->chain.M + y.first, T->Bcp, y.rows, y.count, z->C, 1);
        r += y.rows;
    }
}

void pe_tile_chain_step(const pe_tiles *T, const pe_scratch *z, float *X)
{
    if (z->chain.steps)
        T->a->kernels->product(X, T->Dp, z->chain.lower, T->Bcp, 1, z->chain.U, T->Dp, z->R, T->a->sizes.D,
                               z->C, 1);
}

/* What the part to the right left of queries, which were scaled; and what is left for the next. */
void pe_tile_chain_resume(const pe_tiles *T, float *X, int64_t h, int64_t i0, int64_t R)
{
    for (int64_t r = 0; r < R; r++) {
        const double *state = pe_chain_state(T->a, h, i0 + r);
        for (int64_t d = 0; state && state[0] != 0 && d < T->a->sizes.D; d++)
            X[r * T->Dp + d] = (float)state[1 + d];
    }
}

void pe_tile_chain_leave(const pe_tiles *T, const float *X, int64_t h, int64_t i0, int64_t R)
{
    for (int64_t r = 0; r < R; r++) {
        double *state = pe_chain_state(T->a, h, i0 + r);
        for (int64_t d = 0; state && d < T->a->sizes.D; d++)
            state[1 + d] = (double)X[r * T->Dp + d];
        if (state)
            state[0] = 1;
    }
}

/* ---- the adjoint of the solve ---- */

/* to [n, C] (+)= A B^T over `width` columns. */
static void outer(const pe_tiles *T, const pe_chain_scratch *x, double *to, int64_t stride, const double *A,
                  int64_t a_stride, const double *B, int64_t b_stride, int64_t width, int64_t n, int add)
{
    turn(T, x, B, b_stride, width, n);
    T->a->kernels->product64(to, stride, A, a_stride, 1, x->across, long64(T), n, long64(T), width, add);
}

/* What is not below the diagonal becomes 0. */
static void keep_lower(double *to, int64_t stride, int64_t n, int64_t C)
{
    for (int64_t l = 0; l < n; l++)
        for (int64_t j = l; j < C; j++)
            to[l * stride + j] = 0;
}

/* The solve and its result are there with the minus sign: [U|M]' = [-beta W | -lower] + N' [U|M]'; so are
   their cotangents f->dUM, which become those of the right side. */
void pe_tile_chain_fold(const pe_tiles *T, const pe_chain_scratch *x, const pe_chain_fold *f, int64_t b,
                        int64_t g, int64_t j0, int64_t n)
{
    const pe_kernels *k = T->a->kernels;
    const int64_t     D = wide(T), C = long64(T), UM = D + C, width = T->a->sizes.D;
    double *const dM = f->dUM + D, *const M = x->UM + D;
    solve(T, x, b, g, j0, n);
    /* K^ = K + M'^T W */
    outer(T, x, dM, UM, x->W, D, f->dK, D, width, n, 1);
    keep_lower(dM, UM, n, C);
    k->product64(f->dW, D, M, UM, 1, f->dK, D, n, D, n, 1);
    for (int64_t l = n - 2; l >= 0; l--)
        k->product64(f->dUM + l * UM, UM, x->N + (l + 1) * C + l, 1, C, f->dUM + (l + 1) * UM, UM, 1, UM,
                     n - 1 - l, 1);
    keep_lower(dM, UM, n, C);
    /* N', from here on its cotangent */
    outer(T, x, x->N, C, f->dUM, UM, x->UM, UM, width, n, 0);
    outer(T, x, x->N, C, dM, UM, M, UM, n, n, 1);
    keep_lower(x->N, C, n, C);
    /* all three are -beta_l w_l times something, the sum of which goes where that of U is */
    k->product64(f->dUM, UM, dM, UM, 1, x->K, D, n, D, n, 1);
    k->product64(f->dUM, UM, x->N, C, 1, x->W, D, n, D, n, 1);
    for (int64_t l = 0; l < n; l++) {
        double sum = 0;
        for (int64_t d = 0; d < D; d++) {
            const double w = x->W[l * D + d], t = f->dUM[l * UM + d];
            sum += w * t;
            f->dW[l * D + d] -= x->beta[l] * t;
            x->UM[l * UM + d] = -x->beta[l] * w;
        }
        f->dbeta[l] = -sum;
    }
    k->product64(f->dK, D, dM, 1, UM, x->UM, UM, n, D, n, 1);
    k->product64(f->dW, D, x->N, 1, C, x->UM, UM, n, D, n, 1);
}
