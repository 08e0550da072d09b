/* SPDX-License-Identifier: MIT */
/*
 * inside: measuring what lies between the inputs and the outputs of a case
 *
 * The idea  The library has no call that hands out a counted position or the vector of a distance, and needs
 *           none: scores of well-chosen queries, keys or parameters tell. All of it runs in double, from the
 *           case's own parameters.
 */
#include "trial.h"

#include <math.h>
#include <posenc/positions.h>
#include <stdlib.h>
#include <string.h>

/* A plan of the reference executor for the trial's encoding, with the case's mask. NULL after a failure. */
static posenc_plan *exact_plan(cli_trial *t, const posenc_dims *dims, int is_explicit)
{
    posenc_plan   *plan    = NULL;
    posenc_options options = posenc_options_default();
    options.executor       = POSENC_EXECUTOR_REFERENCE;
    options.threads        = 1;
    options.mask = (t->c->causal ? POSENC_MASK_CAUSAL : 0) | (is_explicit ? POSENC_MASK_EXPLICIT : 0);
    if (!cli_stopped(&t->p))
        posenc_plan_create(&plan, t->p.e, dims, &options, &t->p.err);
    return plan;
}

static void exact_scores(cli_trial *t, const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *S)
{
    void *work = cli_workspace(&t->p, plan, POSENC_RUN_SCORES);
    if (work)
        posenc_scores(plan, in, S, work, &t->p.err);
}

static posenc_tensor make_exact(cli_trial *t, int32_t ndim, const int64_t *shape)
{
    return cli_make(&t->p, POSENC_DTYPE_F64, ndim, shape);
}

/* ---------------------------------------------------------------- vectors by distance ------- */

/* S [D+1,H,Lq,Lk] for k = 0, where batch item d has unit vectors e_d for queries and item D has 0.
 */
static posenc_tensor unit_scores(cli_trial *t)
{
    const int64_t H = t->p.dims.H, D = t->p.dims.D, Lq = t->p.dims.Lq, Lk = t->p.dims.Lk;
    posenc_dims   dims = t->p.dims;
    dims.B             = D + 1;
    posenc_tensor q    = make_exact(t, 4, (const int64_t[4]){D + 1, H, Lq, D});
    posenc_tensor k    = make_exact(t, 4, (const int64_t[4]){D + 1, dims.G, Lk, D});
    posenc_tensor S    = make_exact(t, 4, (const int64_t[4]){D + 1, H, Lq, Lk});
    for (int64_t row = 0; !cli_stopped(&t->p) && row < D * H * Lq; row++)
        ((double *)q.data)[row * D + row / (H * Lq)] = 1;

    const posenc_attend_in in   = {.q      = q,
                                   .k      = k,
                                   .q_pos  = posenc_positions_range((double)t->c->q_offset, 1),
                                   .k_pos  = posenc_positions_range(0, 1),
                                   .params = t->exact};
    posenc_plan           *plan = exact_plan(t, &dims, 0);
    exact_scores(t, plan, &in, &S);
    posenc_plan_free(plan);
    return S;
}

/* out_r_rows_dist_lo_to_hi [H,n,D]: the vector that queries meet at each distance t, from q_offset
   - (Lk-1) upwards. With k = 0 a score is scale * (q . r_t + what depends on t alone), so the score
   of the unit vector e_d less that of 0 is scale * r_t[d]. In double, from parameters in the
   executor's numbers. */
static void compare_distance_vectors(cli_trial *t)
{
    static const char name[] = "out_r_rows_dist_lo_to_hi";
    const int64_t     H = t->p.dims.H, D = t->p.dims.D, Lq = t->p.dims.Lq, Lk = t->p.dims.Lk, n = Lq + Lk - 1;
    if (!cli_trial_has(t, name) || !(fabs(t->c->scale) > 0))
        return;
    const posenc_tensor S = unit_scores(t);
    posenc_tensor       r = make_exact(t, 3, (const int64_t[3]){H, n, D});
    if (cli_stopped(&t->p))
        return;
    for (int64_t x = 0; x < H * Lq * Lk * D; x++) {
        const int64_t d = x % D, at = x / D, j = at % Lk, i = at / Lk % Lq, h = at / (Lk * Lq);
        const double  turned = cli_element(&S, d * H * Lq * Lk + at) - cli_element(&S, D * H * Lq * Lk + at);
        ((double *)r.data)[(h * n + i - j + Lk - 1) * D + d] = turned / t->c->scale;
    }
    cli_trial_compare(t, CLI_OUTPUT, name, &r, 0);
}

/* ---------------------------------------------------------------- what is added ------------- */

/* out_pos_bias [H,Lq,Lk]: all that the encoding adds to scale * q.k. */
static void compare_bias(cli_trial *t, const posenc_attend_in *in)
{
    posenc_attend_in exact    = *in;
    const int64_t    shape[3] = {t->p.dims.H, t->p.dims.Lq, t->p.dims.Lk};
    if (!cli_trial_has(t, "out_pos_bias"))
        return;
    exact.params       = t->exact;
    posenc_tensor bias = make_exact(t, 3, shape);
    if (!cli_stopped(&t->p))
        posenc_bias(t->p.plan, &exact, &bias, t->p.work, &t->p.err);
    cli_trial_compare(t, CLI_PREPARED, "out_pos_bias", &bias, 0);
}

/* ---------------------------------------------------------------- counted positions --------- */

/* sums += weight * |q_i|^2 * position, from the scores that each channel makes. */
static void add_growth(const posenc_tensor *q, const posenc_tensor *S, const posenc_tensor *plain, int64_t d,
                       double *sums)
{
    const int64_t D = q->shape[3], Lk = S->shape[3];
    for (int64_t x = 0; x < cli_element_count(S); x++)
        sums[x] += cli_element(q, x / Lk * D + d) * (cli_element(S, x) - cli_element(plain, x));
}

/* May the query of element x of [B,H,Lq,Lk] see its key? `allowed` [B or 1, H or 1, Lq, Lk] may have no
   data. */
static int is_allowed(const cli_trial *t, const posenc_tensor *allowed, int64_t x)
{
    const int64_t Lk = t->p.dims.Lk, Lq = t->p.dims.Lq, j = x % Lk, i = x / Lk % Lq;
    const int64_t h = allowed->shape[1] > 1 ? x / (Lk * Lq) % t->p.dims.H : 0;
    const int64_t b = allowed->shape[0] > 1 ? x / (Lk * Lq * t->p.dims.H) : 0;
    if (allowed->data && cli_element(allowed, ((b * allowed->shape[1] + h) * Lq + i) * Lk + j) == 0)
        return 0;
    return !t->c->causal || j <= i + t->c->q_offset;
}

/* out_positions [B,H,Lq,Lk] of an encoding that counts and interpolates rows of its one parameter E [npos,D]:
   a score of such an E grows by (q_i)_d times the position, so with each channel in turn by |q_i|^2 p
   altogether - times the scale, where that covers the contribution (E of ones in one channel tells). Keys
   that are not allowed have 0. */
static void compare_positions(cli_trial *t, const posenc_attend_in *in)
{
    posenc_attend_in exact    = *in;
    const int64_t    shape[4] = {t->p.dims.B, t->p.dims.H, t->p.dims.Lq, t->p.dims.Lk};
    if (!cli_trial_has(t, "out_positions") || t->p.count != 1 || t->p.params[0].ndim != 2)
        return;
    posenc_tensor E = cli_make_like(&t->p, POSENC_DTYPE_F64, &t->p.params[0]),
                  q = cli_convert(&t->p, POSENC_DTYPE_F64, &in->q);
    exact.q         = q;
    exact.k         = cli_convert(&t->p, POSENC_DTYPE_F64, &in->k);
    exact.v         = cli_convert(&t->p, POSENC_DTYPE_F64, &in->v);
    exact.params    = &E;
    posenc_tensor S = make_exact(t, 4, shape), plain = make_exact(t, 4, shape), p = make_exact(t, 4, shape),
                  ones = make_exact(t, 4, shape);
    posenc_plan *plan  = exact_plan(t, &t->p.dims, in->allowed.data != NULL);
    exact_scores(t, plan, &exact, &plain);
    for (int64_t run = 0; !cli_stopped(&t->p) && run < 2 * t->p.dims.D; run++) {
        const int64_t d = run / 2, is_ones = run % 2;
        for (int64_t x = 0; x < cli_element_count(&E); x++) /* E = 0, but channel d of row m is m, or 1 */
            ((double *)E.data)[x] = x % t->p.dims.D != d ? 0 : is_ones ? 1 : (double)(x / t->p.dims.D);
        exact_scores(t, plan, &exact, &S);
        if (!cli_stopped(&t->p))
            add_growth(&q, &S, &plain, d, is_ones ? ones.data : p.data);
    }
    posenc_plan_free(plan);
    for (int64_t x = 0; !cli_stopped(&t->p) && x < cli_element_count(&p); x++)
        ((double *)p.data)[x] =
            !is_allowed(t, &in->allowed, x) ? 0 : cli_element(&p, x) / cli_element(&ones, x);
    cli_trial_compare(t, CLI_OUTPUT, "out_positions", &p, 0);
}

/* ---------------------------------------------------------------- windows ------------------- */

/* "2:3" or "2x3" of a setting; 0 if it is not given. */
static int window_setting(const cli_trial *t, const char *name, int64_t window[2])
{
    const char *text = cli_case_setting(t->c, name);
    char       *end;
    if (!text)
        return 0;
    window[0] = strtoll(text, &end, 10);
    window[1] = *end ? strtoll(end + 1, NULL, 10) : 0;
    return 1;
}

/* [n,n] of a window of n tokens. */
static posenc_tensor window_index(cli_trial *t, const int64_t window[2])
{
    const int64_t n     = window[0] * window[1];
    posenc_tensor index = cli_make(&t->p, POSENC_DTYPE_I64, 2, (const int64_t[2]){n, n});
    if (index.data)
        posenc_window_index(window[0], window[1], index.data, &t->p.err);
    return index;
}

static posenc_tensor window_coordinates(cli_trial *t, const int64_t window[2], const int64_t pretrained[2],
                                        int32_t ndim)
{
    const int64_t rows = 2 * window[0] - 1, columns = 2 * window[1] - 1;
    posenc_tensor coords = ndim == 3 ? make_exact(t, 3, (const int64_t[3]){rows, columns, 2})
                                     : make_exact(t, 2, (const int64_t[2]){rows * columns, 2});
    if (coords.data)
        posenc_window_coordinates(window[0], window[1], pretrained[0], pretrained[1], coords.data, &t->p.err);
    return coords;
}

/* out_bias_table [offsets,H]: what is added for each offset, from a full window. */
static void compare_bias_table(cli_trial *t, const posenc_tensor *index, int64_t offsets)
{
    const int64_t n = index->shape[0], H = t->p.dims.H;
    posenc_dims   dims = t->p.dims;
    dims.B = 1, dims.Lq = dims.Lk = n;
    posenc_tensor bias          = make_exact(t, 3, (const int64_t[3]){H, n, n}),
                  table         = make_exact(t, 2, (const int64_t[2]){offsets, H});
    const posenc_attend_in in   = {.q      = make_exact(t, 4, (const int64_t[4]){1, H, n, dims.D}),
                                   .k      = make_exact(t, 4, (const int64_t[4]){1, dims.G, n, dims.D}),
                                   .params = t->exact};
    posenc_plan           *plan = exact_plan(t, &dims, 0);
    void                  *work = cli_workspace(&t->p, plan, POSENC_RUN_SCORES);
    if (work)
        posenc_bias(plan, &in, &bias, work, &t->p.err);
    posenc_plan_free(plan);
    for (int64_t x = 0; !cli_stopped(&t->p) && x < H * n * n; x++)
        ((double *)table.data)[(int64_t)cli_element(index, x % (n * n)) * H + x / (n * n)] =
            cli_element(&bias, x);
    cli_trial_compare(t, CLI_PREPARED, "out_bias_table", &table, 0);
}

/* What a window determines: in_index and in_coords repeat it, out_bias_table lists what is added. */
static void compare_window(cli_trial *t)
{
    int64_t window[2], pretrained[2] = {0, 0};
    if (cli_stopped(&t->p) || !window_setting(t, "window", window))
        return;
    window_setting(t, "pretrained_window", pretrained);
    const posenc_tensor index  = window_index(t, window),
                        coords = window_coordinates(t, window, pretrained, 2);
    cli_trial_compare(t, CLI_INDEX, "in_index", &index, 0);
    cli_trial_compare(t, CLI_PREPARED, "in_coords", &coords, 0);
    if (!cli_stopped(&t->p) && cli_trial_has(t, "out_bias_table"))
        compare_bias_table(t, &index, coords.shape[0]);
}

void cli_compare_windows(cli_trial *t)
{
    static const int64_t none[2] = {0, 0};
    for (int i = 0; i < t->p.file.count && !cli_stopped(&t->p); i++) {
        const char *name   = t->p.file.items[i].name;
        const int   coords = !strncmp(name, "out_coords_", 11);
        long long   rows, columns;
        if (sscanf(name, coords ? "out_coords_%lldx%lld" : "out_index_%lldx%lld", &rows, &columns) != 2)
            continue;
        const int64_t       window[2] = {rows, columns};
        const posenc_tensor got = coords ? window_coordinates(t, window, none, 3) : window_index(t, window);
        cli_trial_compare(t, coords ? CLI_PREPARED : CLI_INDEX, name, &got, 0);
    }
}

void cli_compare_inside(cli_trial *t, const posenc_attend_in *in)
{
    if (cli_stopped(&t->p))
        return;
    compare_distance_vectors(t);
    compare_bias(t, in);
    compare_positions(t, in);
    compare_window(t);
}
