/* SPDX-License-Identifier: MIT */
/*
 * tiled_backward.c: the tiled executor, backward
 *
 * Scores are computed again tile by tile and made into weights by the saved log-sum-exp, so nothing of Lq x
 * Lk elements exists. One item of the batch at a time: its queries and cotangents are prepared once (linear
 * memory); then each task (key head, chunk) owns every so many key tiles: it loads their keys and values, and
 * dK and dV of a tile are complete in one task; dQ and the gradients by distance are added up per chunk and
 * summed afterwards in the order of chunks. The number of chunks follows from the shape only, so the bits do
 * not depend on threads.
 *
 * With W = exp(S - lse) and delta_i = dO_i . O_i (= sum_j W_ij dW_ij):
 *   dW = dO V^T     dS = W * (dW - delta)     dV += W^T dO     dK += dS^T Qu     dQ += dS K     db[t] += dS
 *   by distance, with a tile X shifted onto diagonals as X~: dQ += dS~ A     dA += dS~^T Qw     dr += W~^T dO
 *   with a gate c: dO^T(v + r) = dWc for the gated weight, dc[t] += W dWc, dW = c dWc, and dV, dr see c W
 *   by key, with the columns of dS shifted instead: dK += dS^ B     dB += dS^^T K
 *   where lse has a cotangent: dS += W * dlse
 * Qu and Qw carry the scale, so only dQ, du and dw are multiplied by it at the end.
 *
 * Source   Dao et al. 2022, arXiv:2205.14135, algorithm 4
 */
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "base/tensor.h"
#include "engine/tiled/backward.h"

/* ---- what was summed goes to parameters, after the whole batch ---- */

/* The sum over chunks of number d of row x of a member of one head. */
static double sum_of_chunks(const pe_backward *w, pe_kind kind, int64_t h, int64_t x, int64_t d)
{
    const pe_distance_table *t   = &w->T.by[kind];
    double                   sum = 0;
    for (int64_t c = 0; c < w->chunks; c++) {
        const int64_t at = (h * w->chunks + c) * t->count + x - t->first;
        sum += pe_is_scalar(kind) ? w->dby1[kind][at] : (double)w->dby[kind][at * t->row + d];
    }
    return sum;
}

/*
 * A softmax does not see a number added to a whole row of scores, so the cotangents of a row sum to zero, and
 * so do those of all distances together. In float a residue of some 1e-7 remains. A parameter that weighs all
 * distances nearly alike (a slow sinusoid times Wr) has a gradient smaller than that residue and would be
 * nothing but noise; so the residue is taken out, from each distance in proportion to its size, which moves
 * no sum by more than its own rounding. Not where a table's own sum is not zero: pairs with a special
 * token have no bias, shared rows are multiplied by keys as well, and lse, which may have a cotangent, does
 * see that number.
 */
static void find_residue(const pe_backward *w, pe_kind kind, int64_t h)
{
    const double  sink  = kind == PE_BIAS ? pe_sink_row_sum(w->T.a, h) : 0; /* then they sum to that */
    const int64_t width = w->T.by[kind].width, end = pe_table_end(&w->T, kind);
    memset(w->total, 0, (size_t)width * sizeof(double));
    memset(w->mass, 0, (size_t)width * sizeof(double));
    for (int64_t r = pe_table_begin(&w->T, kind); r < end; r++)
        for (int64_t d = 0; d < width; d++) {
            const double x = sum_of_chunks(w, kind, h, r, d);
            w->total[d] += x;
            w->mass[d] += fabs(x);
        }
    for (int64_t d = 0; d < width; d++)
        w->total[d] -= sink;
}

/* The band's sums go back to the room, PE_CHUNK distances at a time and rising; the mirror of fill_chunk. */
static void fold_band(const pe_backward *w, pe_kind kind, int64_t h)
{
    const pe_tiles      *T    = &w->T;
    const pe_by_distance m    = pe_member(T->a->terms, kind);
    const pe_part       *part = &T->a->parts[m.owner];
    const int            down = T->band.slope < 0,
              is_score        = !w->dlse && !w->stick && T->a->softcap == 0 &&
                         !(kind == PE_A && (T->a->has_sink || T->a->terms->profile != PE_NONE)) &&
                         ((kind == PE_BIAS && !T->a->terms->hook.is_special) || (kind == PE_A && !m.row));
    const int64_t most = T->band.slope == 1 || T->band.slope == -1 ? PE_CHUNK : 1, width = T->by[kind].width,
                  end = pe_table_end(T, kind);
    double *chunk     = T->scratch[0].chunk;
    if (is_score)
        find_residue(w, kind, h);
    for (int64_t r0 = pe_table_begin(T, kind); r0 < end; r0 += most) {
        const int64_t n = pe_smaller(most, end - r0);
        for (int64_t r = 0; r < n; r++)
            for (int64_t d = 0; d < width; d++) {
                double x = 0; /* rows that heads share fold the sums of all of them, with the last */
                for (int64_t i = m.row ? 0 : h; i <= h; i++)
                    x += sum_of_chunks(w, kind, i, r0 + r, d);
                chunk[(down ? n - 1 - r : r) * width + d] =
                    is_score && w->mass[d] > 0 ? x - w->total[d] * (fabs(x) / w->mass[d]) : x;
            }
        pe_members_fold(part, &m, width, h, pe_band_distance(&T->band, down ? r0 + n - 1 : r0), n, chunk);
    }
}

static void fold_vector(const pe_backward *w, int64_t h, const double *sums, double *to)
{
    const int64_t D = w->T.a->sizes.D;
    for (int64_t c = 0; c < w->chunks; c++)
        for (int64_t d = 0; d < D; d++)
            to[d] += w->T.a->terms->scale * sums[(h * w->chunks + c) * D + d];
}

/* One head after the other: heads may share parameters, and the order is part of the result. */
static void fold_parameters(const pe_backward *w)
{
    const pe_attention *a    = w->T.a;
    const pe_terms     *m    = a->terms;
    const pe_part      *part = &a->parts[PE_SCORE];
    const int64_t       D    = a->sizes.D;
    for (int64_t h = 0; h < a->sizes.H; h++) {
        for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++)
            if (w->wants[kind] && (!pe_member(m, kind).row || h == a->sizes.H - 1) &&
                !(kind == PE_B && pe_vectors_are_shared(m)))
                fold_band(w, kind, h);
        if (w->wants_u)
            fold_vector(w, h, w->du, pe_head_vector_gradient(a, m->u, h));
        if (w->wants_w)
            fold_vector(w, h, w->dw, pe_head_vector_gradient(a, m->w, h));
        if (w->wants_us)
            fold_vector(w, h, w->dus, pe_head_vector_gradient(a, m->us, h));
        for (int64_t i = 0; w->wants_G && i < 2 * w->chunks * D; i++) /* [chunks,2,D] */
            pe_segment_gradient(a, h, (int)(i / D % 2))[i % D] += w->dG[2 * h * w->chunks * D + i];
    }
    for (int64_t task = 0; w->wants_hook && task < a->sizes.G * w->chunks; task++)
        for (int i = 0; i < part->count; i++) {
            const double *sums = w->hook_pointers[task * PE_HOOK_PARAMS + i];
            for (int64_t x = 0; sums && x < part->sizes[i]; x++)
                part->dpar[i][x] += sums[x];
        }
}

/* ---- layout ---- */

enum { MANY_HEADS = 4 }; /* two chunks keep two cores busy on one head; from so many key heads on heads do */

static int hook_learns(const pe_terms *m, int param)
{
    return !m->hook.learns || m->hook.learns >> param & 1;
}

/* For a plan every gradient that this encoding could have is wanted. */
static void find_wanted(pe_backward *w)
{
    const pe_attention *a    = w->T.a;
    const pe_part      *part = &a->parts[PE_SCORE];
    const pe_terms     *m    = a->terms;
    const int           all = a->for_any_run, any = all || pe_members_part_wanted(part);
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        const pe_by_distance x = pe_member(m, kind);
        w->wants[kind]         = pe_has(m, kind) && (all || pe_members_wanted(&a->parts[x.owner], &x));
    }
    w->wants_u    = m->u != PE_NONE && (all || (any && part->dpar[m->u]));
    w->wants_w    = m->w != PE_NONE && (all || (any && part->dpar[m->w]));
    w->wants_us   = m->us != PE_NONE && (all || (any && part->dpar[m->us]));
    w->wants_G    = m->G != PE_NONE && (all || (any && part->dpar[m->G]));
    w->wants_hook = m->hook.visit_back && (any || m->hook.content);
    w->hook_count = 0;
    for (int i = 0; w->wants_hook && i < part->count; i++)
        w->hook_count += hook_learns(m, i) ? part->sizes[i] : 0;
}

static int wants_profile(const pe_attention *a)
{
    return a->terms->profile != PE_NONE && (a->for_any_run || pe_profile_gradient(a));
}

static void lay_out_item(pe_backward *w, pe_arena *arena)
{
    const pe_tiles   *T    = &w->T;
    const pe_problem *p    = &T->a->sizes;
    const int64_t     rows = p->H * p->Lq;
    w->Qu                  = pe_arena_floats(arena, pe_query_forms(T) * rows * T->Dp);
    w->Qw                  = pe_has(T->a->terms, PE_A) ? pe_arena_floats(arena, rows * T->Ap) : NULL;
    w->dout                = pe_arena_floats(arena, rows * T->Dvp);
    w->delta               = pe_arena_floats(arena, rows);
    w->lse                 = pe_arena_floats(arena, rows);
    w->dlse                = T->a->dlse.data || T->a->for_any_run ? pe_arena_floats(arena, rows) : NULL;
    w->key                 = pe_arena_floats(arena, pe_padded(p->Lk) + PE_LANES);
    w->dQ                  = pe_arena_floats(arena, pe_query_forms(T) * w->chunks * rows * T->Dp);
    w->dprofile            = wants_profile(T->a) ? pe_arena_floats(arena, w->chunks * rows * T->Ap) : NULL;
    w->dK                  = pe_arena_floats(arena, T->a->terms->prepare.fold ? p->G * p->Lk * T->Dp : 0);
    w->state               = pe_arena_doubles(arena, T->a->terms->hook.state ? rows * PE_HOOK_STATE : 0);
    for (pe_side side = PE_QUERIES; side <= PE_KEYS; side++)
        w->dby_position[side] = pe_arena_zeros(arena, pe_by_position_size(T->a, side));
    const int by_score = T->finishes && !T->folds && pe_temper_is_wanted(T->a);
    w->dtau            = by_score ? pe_arena_doubles(arena, w->chunks * rows) : NULL;
    const int open     = pe_drift_is_wanted(T->a) && pe_drift_is_open(T->a);
    for (int side = 0; side <= (open && T->a->terms->drift.two_sided); side++)
        w->drift_rows[side] = open ? pe_arena_doubles(arena, w->chunks * rows) : NULL;
    w->moments = pe_arena_doubles(arena, 2 * rows); /* a plan for long rows serves short ones too */
}

static void lay_out_sums(pe_backward *w, pe_arena *arena)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    const int64_t     n = p->H * w->chunks, tasks = p->G * w->chunks;
    for (pe_kind kind = PE_BIAS; kind < PE_KINDS; kind++) {
        if (w->wants[kind] && kind == PE_B && pe_vectors_are_shared(T->a->terms)) {
            w->dby[PE_B] = w->dby[PE_A];
            continue;
        }
        const int64_t size = w->wants[kind] ? n * T->by[kind].count * T->by[kind].row : 0;
        w->dby1[kind]      = pe_arena_zeros(arena, pe_is_scalar(kind) ? size : 0);
        w->dby[kind]       = pe_arena_floats(arena, pe_is_scalar(kind) ? 0 : size);
    }
    w->du        = pe_arena_zeros(arena, n * p->D);
    w->dw        = pe_arena_zeros(arena, n * p->D);
    w->dus       = pe_arena_zeros(arena, n * p->D);
    w->dG        = pe_arena_zeros(arena, w->wants_G ? n * 2 * p->D : 0);
    w->hook      = pe_arena_zeros(arena, tasks * w->hook_count);
    w->total     = pe_arena_doubles(arena, pe_larger(p->D, T->Ap));
    w->mass      = pe_arena_doubles(arena, pe_larger(p->D, T->Ap));
    w->hook_sums = w->wants_hook ? pe_hook_cache_sums(T->a, arena) : NULL;
    w->hook_pointers =
        pe_arena_take(arena, (size_t)(w->wants_hook ? tasks * PE_HOOK_PARAMS : 0) * sizeof(double *));
}

/* What is not 0 from the beginning (pe_arena_zeros). */
static void start_sums(pe_backward *w)
{
    const pe_tiles   *T    = &w->T;
    const pe_problem *p    = &T->a->sizes;
    const pe_part    *part = &T->a->parts[PE_SCORE];
    double           *at   = w->hook;
    for (pe_kind kind = PE_A; kind < PE_KINDS; kind++)
        if (w->wants[kind] && !(kind == PE_B && pe_vectors_are_shared(T->a->terms)))
            memset(w->dby[kind], 0,
                   (size_t)(p->H * w->chunks * T->by[kind].count * T->by[kind].row) * sizeof(float));
    for (int64_t task = 0; w->wants_hook && task < p->G * w->chunks; task++)
        for (int i = 0; i < part->count; i++) {
            const int learns                            = hook_learns(T->a->terms, i);
            w->hook_pointers[task * PE_HOOK_PARAMS + i] = learns && part->dpar && part->dpar[i] ? at : NULL;
            at += learns ? part->sizes[i] : 0;
        }
}

/* ---- the item's rows ---- */

static void prepare_queries(void *context, int64_t index, int thread)
{
    pe_backward        *w  = context;
    const pe_tiles     *T  = &w->T;
    const pe_attention *a  = T->a;
    const int64_t       Lq = a->sizes.Lq, Dv = a->sizes.Dv, h = index / T->query_tiles,
                  i0 = index % T->query_tiles * T->Br, R = pe_smaller(T->Br, Lq - i0), at = h * Lq + i0;
    float *o = T->scratch[thread].rows, *Qu = w->Qu + at * T->Dp, *Q2 = pe_second_form(w, Qu);
    pe_tile_rows_load(T, T->scratch + thread, Qu, Q2, PE_QUERIES, w->b, h, i0, R);
    pe_tile_rows_scale(T, Qu, w->Qw ? w->Qw + at * T->Ap : NULL, w->b, h, i0, R);
    if (Q2)
        pe_tile_rows_scale(T, Q2, NULL, w->b, h, i0, R);
    for (int n = 1; n < T->forms[PE_QUERIES]; n++) {
        float *form = Qu + n * a->sizes.H * Lq * T->Dp;
        pe_tile_rows_load_form(T, form, PE_QUERIES, n, w->b, h, i0, R);
        pe_tile_rows_scale(T, form, NULL, w->b, h, i0, R);
    }
    pe_tile_rows_load_plain(w->dout + at * T->Dvp, T->Dvp, &a->dout, w->b, h, i0, R, Dv);
    if (T->a->sizes.Lk <= PE_SHORT) {
        pe_tile_rows_prefetch(&a->q, w->b + 1, h, i0, R, a->D);
        pe_tile_rows_prefetch(&a->dout, w->b + 1, h, i0, R, Dv);
    }
    if (!w->is_short) { /* short rows have their moments */
        pe_tile_rows_load_plain(o, T->Dvp, &a->o, w->b, h, i0, R, Dv);
        a->kernels->dot_rows(w->delta + at, w->dout + at * T->Dvp, T->Dvp, o, T->Dvp, R, Dv);
    }
    pe_tensor_load_float(w->lse + at, pe_tensor_element(&a->lse, w->b, h, i0), a->lse.dtype, a->lse.stride[2],
                         R);
    for (int64_t r = 0; r < R; r++)
        w->lse[at + r] = (float)((double)w->lse[at + r] - pe_center(T, h));
    if (w->dlse)
        pe_tensor_load_float(w->dlse + at, pe_tensor_element(&a->dlse, w->b, h, i0), a->dlse.dtype,
                             a->dlse.stride[2], R);
    for (int64_t c = 0; c < pe_query_forms(T) * w->chunks; c++)
        memset(w->dQ + (c * a->sizes.H * Lq + at) * T->Dp, 0, (size_t)(R * T->Dp) * sizeof(float));
    for (int64_t c = 0; w->dprofile && c < w->chunks; c++)
        memset(w->dprofile + (c * a->sizes.H * Lq + at) * T->Ap, 0, (size_t)(R * T->Ap) * sizeof(float));
}

/* Keys and values of tile J of key head g: each task has its own, for no other visits them. */
static void load_keys(const pe_backward *w, pe_scratch *z, int64_t g, int64_t J)
{
    const pe_tiles   *T  = &w->T;
    const pe_problem *p  = &T->a->sizes;
    const int64_t     j0 = J * T->Bc, C = pe_smaller(T->Bc, p->Lk - j0);
    pe_tile_rows_load(T, z, z->back.K, NULL, PE_KEYS, w->b, g, j0, C);
    T->a->kernels->transpose(z->back.Kt, T->Bcp, z->back.K, T->Dp, C, p->D);
    if (T->forms[PE_KEYS] > 1) {
        float *form = z->back.K + T->Bc * T->Dp;
        pe_tile_rows_load_form(T, form, PE_KEYS, 1, w->b, g, j0, C);
        T->a->kernels->transpose(z->back.Kt + p->D * T->Bcp, T->Bcp, form, T->Dp, C, p->D);
    }
    if (T->a->grown) {
        pe_tile_rows_grow_keys(T, z->growth.K, z->back.K, w->b, j0, C);
        T->a->kernels->transpose(z->growth.own_Kt, T->Bcp, z->growth.K, T->Dp, C, p->D);
        z->growth.Kt = z->growth.own_Kt;
    }
    pe_tile_rows_load_keys(T->a, z->rows, T->Dvp, &T->a->v, w->b, g, j0, C, p->Dv);
    T->a->kernels->transpose(z->back.Vt, T->Bcp, z->rows, T->Dvp, C, p->Dv);
}

/* State at 0 for R queries, of which the first is the at-th of the item; it stays when their tiles are done.
 */
static void start_state(const pe_backward *w, pe_scratch *z, int64_t at, int64_t R)
{
    z->hook.state = w->T.a->terms->hook.state ? w->state + at * PE_HOOK_STATE : z->hook.own_state;
    memset(z->hook.state, 0, (size_t)(R * PE_HOOK_STATE) * sizeof(double));
}

/* From right to left, before the sums. */
static void look_ahead(void *context, int64_t index, int thread)
{
    const pe_backward *w = context;
    const pe_tiles    *T = &w->T;
    const int64_t      h = index / T->query_tiles, I = index % T->query_tiles, i0 = I * T->Br,
                  R = pe_smaller(T->Br, T->a->sizes.Lq - i0);
    pe_scratch *z   = T->scratch + thread;
    start_state(w, z, h * T->a->sizes.Lq + i0, R);
    pe_look_begin(w, z, h, i0, R);
    for (int64_t J = T->key_tiles - 1; J >= 0; J--) {
        pe_pair_backward_begin(w, z, h, 0, I, J);
        load_keys(w, z, z->back.g, J);
        pe_look(w, z);
    }
    pe_look_end(w, z, h, i0, R);
}

/* Under a causal mask a key tile has one query tile less than the one before: 0 1 1 0 0 1 1 0 gives both
   chunks as many. */
static int64_t chunk_of(const pe_backward *w, int64_t J)
{
    const int64_t round = J / w->chunks, at = J % w->chunks;
    return round % 2 ? w->chunks - 1 - at : at;
}

/* All key tiles of one (key head, chunk). */
static void chunk_back(void *context, int64_t index, int thread)
{
    const pe_backward *w = context;
    const pe_tiles    *T = &w->T;
    const pe_problem  *p = &T->a->sizes;
    const int64_t      g = index / w->chunks, chunk = index % w->chunks, group = p->H / p->G;
    pe_scratch        *z = T->scratch + thread;
    for (int64_t J = 0; J < T->key_tiles && !pe_parallel_is_cancelled(&T->a->team); J++) {
        if (chunk_of(w, J) != chunk)
            continue;
        const int64_t j0 = J * T->Bc, C = pe_smaller(T->Bc, p->Lk - j0);
        load_keys(w, z, g, J);
        if (p->Lk <= PE_SHORT) {
            pe_tile_rows_prefetch(&T->a->k, w->b + 1, g, j0, C, T->a->D);
            pe_tile_rows_prefetch(&T->a->v, w->b + 1, g, j0, C, p->Dv);
        }
        memset(z->back.dK, 0, (size_t)(T->forms[PE_KEYS] * T->Bc * T->Dp) * sizeof(float));
        if (T->a->grown)
            memset(z->growth.dK, 0, (size_t)(C * T->Dp) * sizeof(float));
        memset(z->back.dV, 0, (size_t)(C * T->Dvp) * sizeof(float));
        for (int64_t h = g * group; h < (g + 1) * group; h++)
            for (int64_t I = 0; I < T->query_tiles; I++) {
                pe_pair_backward_begin(w, z, h, chunk, I, J);
                pe_pair_backward_run(w, z);
            }
        if (T->a->grown) {
            pe_tile_rows_grow_keys(T, z->growth.dK, z->growth.dK, w->b, j0, C);
            pe_add_floats(z->back.dK, 1, z->growth.dK, C * T->Dp);
        }
        if (T->forms[PE_KEYS] > 1)
            pe_tile_rows_store_forms(T, z->back.dK, T->Bc * T->Dp, PE_KEYS, w->b, g, j0, C);
        else
            pe_tile_rows_store(T, z->back.dK, PE_KEYS, &T->a->dk, w->b, g, j0, C);
        if (T->a->terms->prepare.fold)
            memcpy(w->dK + (g * p->Lk + j0) * T->Dp, z->back.dK, (size_t)(C * T->Dp) * sizeof(float));
        if (T->a->dv.data)
            pe_tile_rows_store_plain(&T->a->dv, w->b, g, j0, C, z->back.dV, T->Dvp, p->Dv);
    }
}

/* dtau of scores that are tempered: of all chunks, in their order. */
static void sum_dtau(const pe_backward *w)
{
    const pe_problem *p = &w->T.a->sizes;
    for (int64_t x = 0; x < w->chunks * p->H * p->Lq; x++)
        w->T.a->temper.gradient[w->b * p->H * p->Lq + x % (p->H * p->Lq)] += w->dtau[x];
}

/* Cotangents of running sums, of the item: before its tiles, and after them. */
static void start_drift(const pe_backward *w)
{
    const pe_problem *p = &w->T.a->sizes;
    pe_drift_clear(w->T.a);
    for (int side = 0; side < PE_SIDES; side++)
        if (w->drift_rows[side])
            memset(w->drift_rows[side], 0, (size_t)(w->chunks * p->H * p->Lq) * sizeof(double));
}

static void finish_drift(const pe_backward *w)
{
    const pe_attention *a    = w->T.a;
    const int64_t       rows = a->sizes.H * a->sizes.Lq;
    if (!w->drift_rows[PE_BEHIND])
        pe_drift_close(a, w->b);
    for (int side = 0; side < PE_SIDES; side++)
        for (int64_t x = 0; w->drift_rows[side] && x < w->chunks * rows; x++)
            a->drift.dquery[side][x % rows] += w->drift_rows[side][x];
    pe_drift_fold(a, w->b);
}

/* dtau of a query tile whose rows are tempered: the rows as they were, times the cotangents of what they
   became, of all forms and chunks. */
static void temper_back(void *context, int64_t index, int thread)
{
    const pe_backward *w = context;
    const pe_tiles    *T = &w->T;
    const pe_problem  *p = &T->a->sizes;
    const int64_t      h = index / T->query_tiles, i0 = index % T->query_tiles * T->Br,
                  R = pe_smaller(T->Br, p->Lq - i0), forms = pe_query_forms(T);
    float *Q = T->scratch[thread].Qu;
    pe_tile_rows_load(T, T->scratch + thread, Q, pe_forms(T->a->terms) > 1 ? Q + T->Br * T->Dp : NULL,
                      PE_QUERIES, w->b, h, i0, R);
    for (int n = 1; n < T->forms[PE_QUERIES]; n++)
        pe_tile_rows_load_form(T, Q + n * T->Br * T->Dp, PE_QUERIES, n, w->b, h, i0, R);
    for (int64_t part = 0; part < forms * w->chunks; part++)
        for (int64_t r = 0; r < R; r++) {
            const float *q  = Q + (part / w->chunks * T->Br + r) * T->Dp,
                        *dq = w->dQ + ((part * p->H + h) * p->Lq + i0 + r) * T->Dp;
            double sum      = 0;
            for (int64_t d = 0; d < p->D; d++)
                sum += (double)q[d] * (double)dq[d];
            T->a->temper.gradient[(w->b * p->H + h) * p->Lq + i0 + r] += T->a->terms->scale * sum;
        }
}

/* One form of a query tile: sums of the chunks, scaled and rotated back. */
static void finish_queries(void *context, int64_t index, int thread)
{
    const pe_backward *w     = context;
    const pe_tiles    *T     = &w->T;
    const pe_problem  *p     = &T->a->sizes;
    const double       scale = T->a->terms->scale;
    const int64_t      form = index / (p->H * T->query_tiles), task = index % (p->H * T->query_tiles),
                  h = task / T->query_tiles, i0 = task % T->query_tiles * T->Br,
                  R = pe_smaller(T->Br, p->Lq - i0), n = R * T->Dp;
    float *sum = w->dQ + ((form * w->chunks * p->H + h) * p->Lq + i0) * T->Dp;
    for (int64_t c = 1; c < w->chunks; c++) {
        const float *part = sum + c * p->H * p->Lq * T->Dp;
        for (int64_t x = 0; x < n; x++)
            sum[x] += part[x];
    }
    for (int64_t r = 0; r < R; r++) {
        const float own = (float)(T->folds ? scale * pe_temper_at(T->a, w->b, h, i0 + r) : scale);
        for (int64_t d = 0; d < T->Dp; d++)
            sum[r * T->Dp + d] *= own;
    }
    if (T->forms[PE_QUERIES] == 1)
        pe_tile_rows_store(T, sum, PE_QUERIES, &T->a->dq, w->b, h, i0, R);
}

/* All forms of a query tile, when each is finished. */
static void join_queries(void *context, int64_t index, int thread)
{
    const pe_backward *w = context;
    const pe_tiles    *T = &w->T;
    const pe_problem  *p = &T->a->sizes;
    const int64_t      h = index / T->query_tiles, i0 = index % T->query_tiles * T->Br;
    (void)thread;
    pe_tile_rows_store_forms(T, w->dQ + (h * p->Lq + i0) * T->Dp, w->chunks * p->H * p->Lq * T->Dp,
                             PE_QUERIES, w->b, h, i0, pe_smaller(T->Br, p->Lq - i0));
}

/* Cotangents of one row of the profile, of all heads that share it and all chunks in their order. */
static void store_profile(void *context, int64_t index, int thread)
{
    enum { SOME = 64 };
    const pe_backward   *w     = context;
    const pe_attention  *a     = w->T.a;
    const posenc_tensor *to    = pe_profile_gradient(a);
    const int64_t        share = a->sizes.H / to->shape[1], i = index % a->sizes.Lq,
                  h0 = index / a->sizes.Lq * share, width = a->terms->profile_width;
    char *row = pe_token_row(a, to, w->b, h0, i);
    (void)thread;
    for (int64_t d = 0; d < width; d += SOME) {
        const int64_t n         = pe_smaller(SOME, width - d);
        double        sum[SOME] = {0};
        for (int64_t h = h0; h < h0 + share; h++) {
            const double tau = pe_scores_are_folded(&w->T) ? pe_temper_at(a, w->b, h, i) : 1;
            for (int64_t c = 0; c < w->chunks; c++) {
                const float *from = w->dprofile + ((c * a->sizes.H + h) * a->sizes.Lq + i) * w->T.Ap + d;
                for (int64_t k = 0; k < n; k++)
                    sum[k] += tau * (double)from[k];
            }
        }
        pe_tensor_store_double(row + pe_tensor_bytes(to->dtype, d), to->dtype, 1, sum, n);
    }
}

/* Cotangents of some prepared rows: those that follow from the position wait for the whole batch. */
static void fold_rows(const pe_backward *w, const float *rows, int64_t form_step, pe_side side, int64_t h,
                      int64_t s0, int64_t n)
{
    const pe_tiles      *T  = &w->T;
    const posenc_tensor *to = side == PE_KEYS ? &T->a->dk : &T->a->dq;
    if (!T->by_position[side]) {
        pe_tile_rows_fold(T, T->scratch, rows, form_step, side, w->b, h, s0, n);
        return;
    }
    pe_by_position_sum(T, w->dby_position[side], rows, side, h, s0, n);
    if (to->data)
        pe_tile_rows_store_plain(to, w->b, h, s0, n, rows, T->Dp, T->a->D);
}

/* Cotangents of prepared rows go through the room one tile after the other: parameters add in this order. */
static void fold_prepared(const pe_backward *w)
{
    const pe_tiles   *T = &w->T;
    const pe_problem *p = &T->a->sizes;
    for (int64_t h = 0; h < p->H; h++)
        for (int64_t i0 = 0; i0 < p->Lq; i0 += T->Br)
            fold_rows(w, w->dQ + (h * p->Lq + i0) * T->Dp, w->chunks * p->H * p->Lq * T->Dp, PE_QUERIES, h,
                      i0, pe_smaller(T->Br, p->Lq - i0));
    for (int64_t g = 0; g < p->G; g++)
        for (int64_t j0 = 0; j0 < p->Lk; j0 += T->Bc)
            fold_rows(w, w->dK + (g * p->Lk + j0) * T->Dp, 0, PE_KEYS, g, j0, pe_smaller(T->Bc, p->Lk - j0));
}

pe_backward pe_tiled_backward_lay_out(const pe_attention *a, pe_arena *arena)
{
    const pe_problem *p = &a->sizes;
    pe_backward       w = {.T = pe_tiles_lay_out(a, arena, 1)};
    const int         travels =
        a->terms->hook.state > 0 || pe_chains(a) || pe_sticks(a); /* its key tiles have an order */
    w.chunks   = p->G >= MANY_HEADS || travels ? 1 : pe_smaller(2, w.T.key_tiles);
    w.is_short = p->Lk <= PE_SHORT || pe_products64_serve(&w.T);
    find_wanted(&w);
    lay_out_item(&w, arena);
    lay_out_sums(&w, arena);
    w.chain = pe_chain_back_lay_out(&w.T, arena);
    pe_stick_back_lay_out(&w, arena);
    return w;
}

void pe_tiled_backward_run(pe_backward *w)
{
    const pe_tiles     *T = &w->T;
    const pe_attention *a = T->a;
    const pe_problem   *p = &a->sizes;
    /* heads that share a matrix add to the same numbers, one after the other */
    pe_team team = a->team;
    if (pe_pairs_wanted(a) && a->terms->pairs.shared)
        team.threads = 1;
    start_sums(w);
    for (w->b = 0; w->b < p->B; w->b++) {
        w->key_mask = pe_tile_rows_key_mask(T, w->key, w->b);
        pe_parallel_for(p->H * T->query_tiles, &a->team, prepare_queries, w);
        if (w->stick)
            pe_stick_find_own(w);
        if (pe_looks_ahead(w) && !w->chain)
            pe_parallel_for(p->H * T->query_tiles, &a->team, look_ahead, w);
        if (w->dtau)
            memset(w->dtau, 0, (size_t)(w->chunks * p->H * p->Lq) * sizeof *w->dtau);
        if (a->drift.dkey[PE_BEHIND])
            start_drift(w);
        pe_wall_clear(a);
        if (w->chain)
            pe_chain_back_run(w);
        else
            pe_parallel_for(p->G * w->chunks, &team, chunk_back, w);
        if (a->drift.dkey[PE_BEHIND])
            finish_drift(w);
        if (w->dtau)
            sum_dtau(w);
        if (T->folds && a->temper.gradient)
            pe_parallel_for(p->H * T->query_tiles, &a->team, temper_back, w);
        pe_parallel_for(pe_query_forms(T) * p->H * T->query_tiles, &a->team, finish_queries, w);
        if (T->forms[PE_QUERIES] > 1)
            pe_parallel_for(p->H * T->query_tiles, &a->team, join_queries, w);
        if (w->dprofile)
            pe_parallel_for(pe_profile_gradient(a)->shape[1] * p->Lq, &a->team, store_profile, w);
        pe_wall_fold(a, w->b);
        if (a->terms->prepare.fold)
            fold_prepared(w);
    }
    if (w->wants_hook && T->hook_cache)
        pe_hook_cache_fold(w);
    for (pe_side side = PE_QUERIES; side <= PE_KEYS && T->by_position[side]; side++)
        pe_by_position_fold(T, w->dby_position[side], side);
    fold_parameters(w);
}
