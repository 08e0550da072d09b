/* SPDX-License-Identifier: MIT */
/*
 * trial_attention.c: cases of encodings that act on queries, keys and scores
 *
 * A rotation, or attention forward and backward: every out_* and g_* array that the file has is measured.
 * What is prepared in double for both executors (frequencies, angles) is measured as float64 in both. What is
 * complex comes as one array of real parts, then imaginary ones along the last axis, or in two arrays.
 *
 * Some cases also have what lies between the inputs and the outputs. The library has no call that hands out a
 * counted position or the vector of a distance, and needs none: scores of well-chosen queries, keys or
 * parameters tell, in double, from the case's own parameters.
 */
#include "verify/trial.h"

#include <math.h>
#include <posenc/positions.h>
#include <posenc/rotary.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- arrays in two parts ------- */

/* NAMEr and NAMEi. */
static void name_parts(pe_trial *t, const char *parts[2], const char *name)
{
    parts[0] = pe_calc_text(&t->p, "%sr", name);
    parts[1] = pe_calc_text(&t->p, "%si", name);
}

/* An array of the file in the executor's numbers; or its parts as one. */
static posenc_tensor whole(pe_trial *t, const char *name)
{
    const char *parts[2];
    if (pe_trial_has(t, name))
        return pe_trial_numbers(t, name);
    name_parts(t, parts, name);
    const posenc_tensor both = pe_trial_join(t, parts);
    if (!both.data)
        pe_calc_refuse(&t->p,
                       "it has no array %s, nor %s and %s of one shape, which a case of this form needs",
                       name, parts[0], parts[1]);
    return both;
}

static int has_whole(pe_trial *t, const char *name)
{
    const char *parts[2];
    name_parts(t, parts, name);
    return pe_trial_has(t, name) || pe_trial_has(t, parts[0]);
}

/* Measures an array, or both of its parts. */
static void compare_whole(pe_trial *t, pe_case_kind kind, const char *name, const posenc_tensor *got)
{
    const char *parts[2];
    pe_trial_compare(t, kind, name, got, 0);
    name_parts(t, parts, name);
    pe_trial_compare_parts(t, kind, parts, got, 0);
}

/* ---------------------------------------------------------------- place rotary -------------- */

/* q and k after only the rotation, measured against the arrays q_name and k_name; and what was rotated. */
static posenc_rotate_io compare_rotated(pe_trial *t, posenc_positions q_pos, posenc_positions k_pos,
                                        const char *q_name, const char *k_name, double angle)
{
    posenc_rotate_io io = {.size      = sizeof io,
                           .q         = pe_trial_numbers(t, "in_q"),
                           .k         = pe_trial_numbers(t, "in_k"),
                           .q_pos     = q_pos,
                           .k_pos     = k_pos,
                           .direction = 1,
                           .params    = t->p.params};
    io.to_q             = pe_calc_make_like(&t->p, t->with->dtype, &io.q);
    io.to_k             = pe_calc_make_like(&t->p, t->with->dtype, &io.k);
    if (!pe_calc_failed(&t->p))
        posenc_rotate(t->p.plan, &io, &t->p.work, &t->p.err);
    pe_trial_compare(t, PE_CASE_OUTPUT, q_name, &io.to_q, angle);
    pe_trial_compare(t, PE_CASE_OUTPUT, k_name, &io.to_k, angle);
    return io;
}

/* The parameter of that name as the encoding has it, or NULL. */
static const posenc_tensor *exact_param(const pe_trial *t, const char *name)
{
    for (int i = 0; i < t->p.count; i++)
        if (!strcmp(posenc_param_name(t->p.e, i), name))
            return &t->exact[i];
    return NULL;
}

/* How far an angle may be off: four times what the last bit of a frequency does, as the manifest
   says; where it is silent, the last bit of the largest angle. Frequencies that are given are the very
   same. */
static double angle_slack(const pe_trial *t, const posenc_tensor *angles)
{
    static const char *const given[] = {"inv_freq", "freq_matrix", "inv_freq32", "theta_scale32"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (exact_param(t, given[i]))
            return 0;
    return t->c->angle_ulp > 0 ? 4 * t->c->angle_ulp : ldexp(pe_trial_largest(angles), -52);
}

/* The frequency of each pair; those of a matrix are its parameter. Returns the number of pairs. */
static int64_t compare_frequencies(pe_trial *t, const posenc_tensor *pos)
{
    pe_calc             *p = &t->p;
    int64_t              M = 0;
    double               magnitude;
    const posenc_tensor *matrix = exact_param(t, "freq_matrix");
    if (posenc_rotary_frequencies(p->plan, NULL, &M, &magnitude, &p->err))
        return 0;
    posenc_tensor       w     = pe_calc_make(p, POSENC_DTYPE_F64, 1, &M);
    const posenc_tensor m     = posenc_tensor_contiguous(&magnitude, POSENC_DTYPE_F64, 0, NULL);
    posenc_rotary_pair *pairs = pe_calc_block(p, (size_t)M * sizeof *pairs);
    double last = -1; /* the present length is one more than the largest coordinate of the batch */
    for (int64_t i = 0; i < pe_tensor_elements(pos); i++)
        last = fmax(last, pe_calc_element(pos, i));
    if (!pe_calc_failed(p))
        posenc_rotary_pairs(p->plan, p->params, last + 1, pairs, &p->work, &p->err);
    for (int64_t i = 0; !pe_calc_failed(p) && i < M; i++)
        pe_calc_put(&w, i, pairs[i].w);
    pe_trial_compare(t, PE_CASE_PREPARED, "out_inv_freq", matrix ? matrix : &w, 0);
    pe_trial_compare(t, PE_CASE_PREPARED, "out_magnitude", &m, 0);
    return M;
}

/* Angles as products, to the bit where they are rounded to float32, and the factor on queries. */
static posenc_tensor compare_angles(pe_trial *t, const posenc_tensor *pos, int64_t M)
{
    pe_calc *p = &t->p;
    if (pos->ndim != 3)
        pe_calc_refuse(p, "in_pos has %d axes; it must be [B or 1,L,N]", (int)pos->ndim);
    if (pe_calc_failed(p))
        return (posenc_tensor){0};
    const posenc_positions positions = pe_trial_positions(t, "in_pos");
    const int64_t          shape[3]  = {pos->shape[0], pos->shape[1], M * posenc_rotary_heads(p->plan)};
    posenc_tensor          angles    = pe_calc_make(p, POSENC_DTYPE_F64, 3, shape),
                  factors            = pe_calc_make(p, POSENC_DTYPE_F64, 2, shape);
    if (!pe_calc_failed(p))
        posenc_rotary_angles(
            p->plan,
            &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = positions, .params = p->params},
            &angles, &factors, &p->work, &p->err);
    pe_trial_compare(t, PE_CASE_PREPARED, "out_angle", &angles, 0);
    pe_trial_compare(t, PE_CASE_INDEX, "out_angle32", &angles, 0);
    pe_trial_compare(t, PE_CASE_PREPARED, "out_temperature", &factors, 0);
    return angles;
}

static void run_rotation_back(pe_trial *t, const posenc_rotate_io *io, double angle)
{
    static const char *const back[] = {"gin_dq", "gin_dk", NULL};
    if (!pe_trial_need(t, back))
        return;
    posenc_rotate_grad grad = {.size    = sizeof grad,
                               .dto_q   = pe_trial_numbers(t, "gin_dq"),
                               .dto_k   = pe_trial_numbers(t, "gin_dk"),
                               .dq      = pe_calc_make_like(&t->p, t->with->dtype, &io->q),
                               .dk      = pe_calc_make_like(&t->p, t->with->dtype, &io->k),
                               .dparams = t->dparams};
    if (!pe_calc_failed(&t->p))
        posenc_rotate_backward(t->p.plan, io, &grad, &t->p.work, &t->p.err);
    pe_trial_compare(t, PE_CASE_GRADIENT, "g_q", &grad.dq, angle);
    pe_trial_compare(t, PE_CASE_GRADIENT, "g_k", &grad.dk, angle);
    pe_trial_compare_param_gradients(t, angle);
}

void pe_trial_attention_rotation(pe_trial *t)
{
    static const char *const needed[] = {"in_q", "in_k", "in_pos", NULL};
    if (!pe_trial_need(t, needed))
        return;
    const posenc_tensor *q = pe_trial_find(t, "in_q"), *k = pe_trial_find(t, "in_k"),
                        *pos = pe_trial_find(t, "in_pos");
    if (q->ndim != 4 || k->ndim != 4) {
        pe_calc_refuse(&t->p, "in_q has %d axes and in_k %d; both must be [B,H,L,D]", q->ndim, k->ndim);
        return;
    }
    const posenc_dims dims = pe_calc_attention_dims(q, k, q);
    if (!pe_trial_prepare(t, &dims, POSENC_MASK_NONE, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD))
        return;
    const posenc_tensor angles = compare_angles(t, pos, compare_frequencies(t, pos));
    if (pe_calc_failed(&t->p))
        return;
    const double           angle     = angle_slack(t, &angles);
    const posenc_positions positions = pe_trial_positions(t, "in_pos");
    const posenc_rotate_io io        = compare_rotated(t, positions, positions, "out_q", "out_k", angle);
    if (!pe_calc_failed(&t->p) && (pe_trial_has(t, "g_q") || pe_trial_has(t, "g_k")))
        run_rotation_back(t, &io, angle);
}

/* ---------------------------------------------------------------- scores in double ---------- */

/* A plan of the reference executor for the trial's encoding, with the case's mask. NULL after a failure. */
static posenc_plan *exact_plan(pe_trial *t, const posenc_dims *dims, int is_explicit)
{
    posenc_plan   *plan    = NULL;
    posenc_options options = posenc_options_default();
    options.executor       = POSENC_EXECUTOR_REFERENCE;
    options.threads        = 1;
    options.mask = (t->c->causal ? POSENC_MASK_CAUSAL : 0) | (is_explicit ? POSENC_MASK_EXPLICIT : 0);
    if (!pe_calc_failed(&t->p))
        posenc_plan_create(&plan, t->p.e, dims, &options, &t->p.err);
    return plan;
}

static void exact_scores(pe_trial *t, const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *S)
{
    const posenc_workspace work = pe_calc_workspace(&t->p, plan, POSENC_RUN_SCORES);
    if (work.memory)
        posenc_scores(plan, in, S, &work, &t->p.err);
}

static posenc_tensor make_exact(pe_trial *t, int32_t ndim, const int64_t *shape)
{
    return pe_calc_make(&t->p, POSENC_DTYPE_F64, ndim, shape);
}

/* ---------------------------------------------------------------- vectors by distance ------- */

/* S [D+1,H,Lq,Lk] for k = 0, where batch item d has unit vectors e_d for queries and item D has 0.
 */
static posenc_tensor unit_scores(pe_trial *t)
{
    const int64_t H = t->p.dims.H, D = t->p.dims.D, Lq = t->p.dims.Lq, Lk = t->p.dims.Lk;
    posenc_dims   dims = t->p.dims;
    dims.B             = D + 1;
    posenc_tensor q    = make_exact(t, 4, (const int64_t[4]){D + 1, H, Lq, D});
    posenc_tensor k    = make_exact(t, 4, (const int64_t[4]){D + 1, dims.G, Lk, D});
    posenc_tensor S    = make_exact(t, 4, (const int64_t[4]){D + 1, H, Lq, Lk});
    for (int64_t row = 0; !pe_calc_failed(&t->p) && row < D * H * Lq; row++)
        ((double *)q.data)[row * D + row / (H * Lq)] = 1;

    const posenc_attend_in in   = {.size   = sizeof in,
                                   .q      = q,
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
   - (Lk-1) upwards. With k = 0 a score is scale * (q . r_t + what depends only on t), so the score
   of the unit vector e_d minus that of 0 is scale * r_t[d]. In double, from parameters in the
   executor's numbers. */
static void compare_distance_vectors(pe_trial *t)
{
    static const char name[] = "out_r_rows_dist_lo_to_hi";
    const int64_t     H = t->p.dims.H, D = t->p.dims.D, Lq = t->p.dims.Lq, Lk = t->p.dims.Lk, n = Lq + Lk - 1;
    if (!pe_trial_has(t, name) || !(fabs(t->c->scale) > 0))
        return;
    const posenc_tensor S = unit_scores(t);
    posenc_tensor       r = make_exact(t, 3, (const int64_t[3]){H, n, D});
    if (pe_calc_failed(&t->p))
        return;
    for (int64_t x = 0; x < H * Lq * Lk * D; x++) {
        const int64_t d = x % D, at = x / D, j = at % Lk, i = at / Lk % Lq, h = at / (Lk * Lq);
        const double  difference =
            pe_calc_element(&S, d * H * Lq * Lk + at) - pe_calc_element(&S, D * H * Lq * Lk + at);
        ((double *)r.data)[(h * n + i - j + Lk - 1) * D + d] = difference / t->c->scale;
    }
    pe_trial_compare(t, PE_CASE_OUTPUT, name, &r, 0);
}

/* ---------------------------------------------------------------- what is added ------------- */

/* out_pos_bias [H,Lq,Lk]: all that the encoding adds to scale * q.k. */
static void compare_bias(pe_trial *t, const posenc_attend_in *in)
{
    posenc_attend_in exact    = *in;
    const int64_t    shape[3] = {t->p.dims.H, t->p.dims.Lq, t->p.dims.Lk};
    if (!pe_trial_has(t, "out_pos_bias"))
        return;
    exact.params       = t->exact;
    posenc_tensor bias = make_exact(t, 3, shape);
    if (!pe_calc_failed(&t->p))
        posenc_bias(t->p.plan, &exact, &bias, &t->p.work, &t->p.err);
    pe_trial_compare(t, PE_CASE_PREPARED, "out_pos_bias", &bias, 0);
}

/* ---------------------------------------------------------------- counted positions --------- */

/* May the query of element x of [B,H,Lq,Lk] see its key? `allowed` [B or 1, H or 1, Lq, Lk] may have no
   data. */
static int is_allowed(const pe_trial *t, const posenc_tensor *allowed, int64_t x)
{
    const int64_t Lk = t->p.dims.Lk, Lq = t->p.dims.Lq, j = x % Lk, i = x / Lk % Lq;
    const int64_t h = allowed->shape[1] > 1 ? x / (Lk * Lq) % t->p.dims.H : 0;
    const int64_t b = allowed->shape[0] > 1 ? x / (Lk * Lq * t->p.dims.H) : 0;
    if (allowed->data && pe_calc_element(allowed, ((b * allowed->shape[1] + h) * Lq + i) * Lk + j) == 0)
        return 0;
    return !t->c->causal || (double)j <= (double)i + (double)t->c->q_offset;
}

/* out_positions [B,H,Lq,Lk] of an encoding that counts and interpolates rows of its one parameter E [npos,D]:
   a score of such an E grows by (q_i)_d times the position, so with each channel in turn by |q_i|^2 p
   altogether - times the scale, where that covers the contribution (E of ones in one channel tells). Keys
   that are not allowed have 0. */
static void compare_positions(pe_trial *t, const posenc_attend_in *in)
{
    posenc_attend_in exact    = *in;
    const int64_t    shape[4] = {t->p.dims.B, t->p.dims.H, t->p.dims.Lq, t->p.dims.Lk};
    if (!pe_trial_has(t, "out_positions") || t->p.count != 1 || t->p.params[0].ndim != 2)
        return;
    posenc_tensor E = pe_calc_make_like(&t->p, POSENC_DTYPE_F64, &t->p.params[0]),
                  q = pe_calc_convert(&t->p, POSENC_DTYPE_F64, &in->q);
    exact.q         = q;
    exact.k         = pe_calc_convert(&t->p, POSENC_DTYPE_F64, &in->k);
    exact.v         = pe_calc_convert(&t->p, POSENC_DTYPE_F64, &in->v);
    exact.params    = &E;
    posenc_tensor S = make_exact(t, 4, shape), plain = make_exact(t, 4, shape), p = make_exact(t, 4, shape),
                  ones = make_exact(t, 4, shape);
    posenc_plan *plan  = exact_plan(t, &t->p.dims, in->allowed.data != NULL);
    exact_scores(t, plan, &exact, &plain);
    for (int64_t run = 0; !pe_calc_failed(&t->p) && run < 2 * t->p.dims.D; run++) {
        const int64_t d = run / 2, is_ones = run % 2;
        for (int64_t x = 0; x < pe_tensor_elements(&E); x++) /* E = 0, except channel d of row m: m, or 1 */
            ((double *)E.data)[x] = x % t->p.dims.D != d ? 0 : is_ones ? 1 : (double)(x / t->p.dims.D);
        exact_scores(t, plan, &exact, &S);
        double *sums = is_ones ? ones.data : p.data;
        for (int64_t x = 0; !pe_calc_failed(&t->p) && x < pe_tensor_elements(&S); x++)
            sums[x] += pe_calc_element(&q, x / shape[3] * t->p.dims.D + d) *
                       (pe_calc_element(&S, x) - pe_calc_element(&plain, x));
    }
    posenc_plan_free(plan);
    for (int64_t x = 0; !pe_calc_failed(&t->p) && x < pe_tensor_elements(&p); x++)
        ((double *)p.data)[x] =
            !is_allowed(t, &in->allowed, x) ? 0 : pe_calc_element(&p, x) / pe_calc_element(&ones, x);
    pe_trial_compare(t, PE_CASE_OUTPUT, "out_positions", &p, 0);
}

/* ---------------------------------------------------------------- windows ------------------- */

/* "2:3" or "2x3" of a setting; 0 if it is not given. */
static int window_setting(const pe_trial *t, const char *name, int64_t window[2])
{
    const char *text = pe_trial_setting(t->c, name);
    char       *end;
    if (!text)
        return 0;
    window[0] = strtoll(text, &end, 10);
    window[1] = *end ? strtoll(end + 1, NULL, 10) : 0;
    return 1;
}

/* Sides and tokens of a window are few enough to make all of its pairs. */
static int check_window(pe_trial *t, const int64_t window[2])
{
    enum { MOST_TOKENS = 2048 };
    for (int a = 0; a < 2; a++)
        if (window[a] < 1 || window[a] > MOST_TOKENS || window[0] * window[1] > MOST_TOKENS)
            pe_calc_refuse(&t->p, "a window of %lldx%lld tokens; cases have windows of 1 to %d tokens",
                           (long long)window[0], (long long)window[1], MOST_TOKENS);
    return !pe_calc_failed(&t->p);
}

/* [n,n] of a window of n tokens. */
static posenc_tensor window_index(pe_trial *t, const int64_t window[2])
{
    const int64_t n     = window[0] * window[1];
    posenc_tensor index = pe_calc_make(&t->p, POSENC_DTYPE_I64, 2, (const int64_t[2]){n, n});
    if (index.data)
        posenc_window_index(window[0], window[1], index.data, &t->p.err);
    return index;
}

static posenc_tensor window_coordinates(pe_trial *t, const int64_t window[2], const int64_t pretrained[2],
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
static void compare_bias_table(pe_trial *t, const posenc_tensor *index, int64_t offsets)
{
    const int64_t n = index->shape[0], H = t->p.dims.H;
    posenc_dims   dims = t->p.dims;
    dims.B = 1, dims.Lq = dims.Lk = n;
    posenc_tensor bias          = make_exact(t, 3, (const int64_t[3]){H, n, n}),
                  table         = make_exact(t, 2, (const int64_t[2]){offsets, H});
    const posenc_attend_in in   = {.size   = sizeof in,
                                   .q      = make_exact(t, 4, (const int64_t[4]){1, H, n, dims.D}),
                                   .k      = make_exact(t, 4, (const int64_t[4]){1, dims.G, n, dims.D}),
                                   .params = t->exact};
    posenc_plan           *plan = exact_plan(t, &dims, 0);
    const posenc_workspace work = pe_calc_workspace(&t->p, plan, POSENC_RUN_SCORES);
    if (work.memory)
        posenc_bias(plan, &in, &bias, &work, &t->p.err);
    posenc_plan_free(plan);
    for (int64_t x = 0; !pe_calc_failed(&t->p) && x < H * n * n; x++)
        ((double *)table.data)[(int64_t)pe_calc_element(index, x % (n * n)) * H + x / (n * n)] =
            pe_calc_element(&bias, x);
    pe_trial_compare(t, PE_CASE_PREPARED, "out_bias_table", &table, 0);
}

/* What a window determines: in_index and in_coords repeat it, out_bias_table lists what is added. */
static void compare_window(pe_trial *t)
{
    int64_t window[2], pretrained[2] = {0, 0};
    if (pe_calc_failed(&t->p) || !window_setting(t, "window", window) || !check_window(t, window))
        return;
    window_setting(t, "pretrained_window", pretrained);
    const posenc_tensor index  = window_index(t, window),
                        coords = window_coordinates(t, window, pretrained, 2);
    pe_trial_compare(t, PE_CASE_INDEX, "in_index", &index, 0);
    pe_trial_compare(t, PE_CASE_PREPARED, "in_coords", &coords, 0);
    if (!pe_calc_failed(&t->p) && pe_trial_has(t, "out_bias_table"))
        compare_bias_table(t, &index, coords.shape[0]);
}

void pe_trial_attention_windows(pe_trial *t)
{
    static const int64_t none[2] = {0, 0};
    for (int i = 0; i < t->p.file.count && !pe_calc_failed(&t->p); i++) {
        const char *name   = t->p.file.items[i].name;
        const int   coords = !strncmp(name, "out_coords_", 11);
        long long   rows, columns;
        if (sscanf(name, coords ? "out_coords_%lldx%lld" : "out_index_%lldx%lld", &rows, &columns) != 2)
            continue;
        const int64_t window[2] = {rows, columns};
        if (!check_window(t, window))
            return;
        const posenc_tensor got = coords ? window_coordinates(t, window, none, 3) : window_index(t, window);
        pe_trial_compare(t, coords ? PE_CASE_PREPARED : PE_CASE_INDEX, name, &got, 0);
    }
}

/* ---------------------------------------------------------------- attention ----------------- */

/* Token inputs in the executor's numbers, and where the file has a gradient of one, room for it. */
static void take_tokens(pe_trial *t)
{
    const int n = pe_calc_failed(&t->p) ? 0 : posenc_token_count(t->p.e);
    t->tokens   = pe_calc_block(&t->p, ((size_t)n + 1) * sizeof *t->tokens);
    t->dtokens  = pe_calc_block(&t->p, ((size_t)n + 1) * sizeof *t->dtokens);
    for (int i = 0; i < n && !pe_calc_failed(&t->p); i++) {
        const char *name = posenc_token_name(t->p.e, i);
        t->tokens[i]     = pe_trial_numbers(t, pe_calc_text(&t->p, "in_%s", name));
        if (pe_trial_has(t, pe_calc_text(&t->p, "g_%s", name)))
            t->dtokens[i] = pe_calc_make_like(&t->p, t->with->dtype, &t->tokens[i]);
    }
}

static void run_attention_back(pe_trial *t, const posenc_attend_in *in, const posenc_attend_out *out)
{
    posenc_attend_grad g = {.size    = sizeof g,
                            .o       = out->o,
                            .lse     = out->lse,
                            .dout    = whole(t, "gin_do"),
                            .dparams = t->dparams,
                            .dtokens = t->dtokens};
    const struct {
        const char          *name;
        posenc_tensor       *to;
        const posenc_tensor *like;
    } wanted[]  = {{"g_q", &g.dq, &in->q}, {"g_k", &g.dk, &in->k}, {"g_v", &g.dv, &in->v}};
    const int n = sizeof wanted / sizeof *wanted;
    for (int i = 0; i < n; i++)
        if (has_whole(t, wanted[i].name))
            *wanted[i].to = pe_calc_make_like(&t->p, t->with->dtype, wanted[i].like);
    if (!pe_calc_failed(&t->p))
        posenc_attend_backward(t->p.plan, in, &g, &t->p.work, &t->p.err);
    for (int i = 0; i < n; i++)
        if (wanted[i].to->data)
            compare_whole(t, PE_CASE_GRADIENT, wanted[i].name, wanted[i].to);
    pe_trial_compare_param_gradients(t, 0);
    for (int i = 0; !pe_calc_failed(&t->p) && i < posenc_token_count(t->p.e); i++)
        if (t->dtokens[i].data)
            pe_trial_compare_heads(t, pe_calc_text(&t->p, "g_%s", posenc_token_name(t->p.e, i)),
                                   &t->dtokens[i]);
}

/* Where they are given, the positions of the file; else the range. */
static posenc_positions positions_of(pe_trial *t, const char *name, double first)
{
    return pe_trial_has(t, name) ? pe_trial_positions(t, name) : posenc_positions_range(first, 1);
}

static posenc_attend_in attention_inputs(pe_trial *t)
{
    posenc_attend_in in = {.size  = sizeof in,
                           .q     = whole(t, "in_q"),
                           .k     = whole(t, "in_k"),
                           .v     = whole(t, "in_v"),
                           .q_pos = positions_of(t, "in_q_pos", (double)t->c->q_offset),
                           .k_pos = positions_of(t, "in_k_pos", 0)};
    in.allowed          = pe_calc_convert(&t->p, POSENC_DTYPE_U8, pe_trial_find(t, "in_allow"));
    in.key_allowed      = pe_calc_convert(&t->p, POSENC_DTYPE_U8, pe_trial_find(t, "in_key_allowed"));
    /* one list of segments: queries and keys are the same tokens */
    const int one = pe_trial_has(t, "in_segment_ids");
    in.q_segments =
        pe_calc_convert(&t->p, POSENC_DTYPE_I64, pe_trial_find(t, one ? "in_segment_ids" : "in_q_segments"));
    in.k_segments =
        one ? in.q_segments : pe_calc_convert(&t->p, POSENC_DTYPE_I64, pe_trial_find(t, "in_k_segments"));
    if (in.q.ndim != 4 || in.k.ndim != 4 || in.v.ndim != 4)
        pe_calc_refuse(&t->p, "in_q, in_k, in_v have %d, %d, %d axes; they must be [B,H,L,D]", in.q.ndim,
                       in.k.ndim, in.v.ndim);
    return in;
}

/* Segments mask, except where the encoding's own terms see them: a parameter says what it is of. */
static int segments_mask(const pe_trial *t)
{
    for (int i = 0; i < posenc_param_count(t->p.e); i++)
        if (strstr(posenc_param_name(t->p.e, i), "seg_embed"))
            return 0;
    return pe_trial_has(t, "in_segment_ids") || pe_trial_has(t, "in_q_segments");
}

static int mask_of(const pe_trial *t)
{
    return (t->c->causal ? POSENC_MASK_CAUSAL : 0) |
           (pe_trial_has(t, "in_allow") ? POSENC_MASK_EXPLICIT : 0) |
           (pe_trial_has(t, "in_key_allowed") ? POSENC_MASK_KEY_PADDING : 0) |
           (segments_mask(t) ? POSENC_MASK_SEGMENTS : 0);
}

void pe_trial_attention(pe_trial *t)
{
    pe_calc          *p    = &t->p;
    const int         mask = pe_calc_failed(p) ? 0 : mask_of(t);
    posenc_attend_in  in   = attention_inputs(t);
    const posenc_dims dims = pe_calc_attention_dims(&in.q, &in.k, &in.v);
    if (pe_calc_failed(p) ||
        !pe_trial_prepare(t, &dims, mask, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES))
        return;
    in.params = p->params;
    take_tokens(t);
    in.tokens = t->tokens;

    posenc_attend_out out = {.size = sizeof out};
    out.o   = pe_calc_make(p, t->with->dtype, 4, (const int64_t[4]){dims.B, dims.H, dims.Lq, dims.Dv});
    out.lse = pe_calc_make(p, t->with->dtype, 3, (const int64_t[3]){dims.B, dims.H, dims.Lq});
    posenc_tensor S =
        pe_calc_make(p, t->with->dtype, 4, (const int64_t[4]){dims.B, dims.H, dims.Lq, dims.Lk});
    if (pe_calc_failed(p) || posenc_scores(p->plan, &in, &S, &p->work, &p->err) ||
        posenc_attend(p->plan, &in, &out, &p->work, &p->err))
        return;
    pe_trial_compare(t, PE_CASE_OUTPUT, "out_score", &S, 0);
    pe_trial_compare(t, PE_CASE_OUTPUT, "out_lse", &out.lse, 0);
    compare_whole(t, PE_CASE_OUTPUT, "out_o", &out.o);
    if (!pe_calc_failed(p)) {
        if (pe_trial_has(t, "out_q_rot") && posenc_encoding_part(p->e, POSENC_PLACE_ROTARY))
            compare_rotated(t, in.q_pos, in.k_pos, "out_q_rot", "out_k_rot", 0);
        compare_distance_vectors(t);
        compare_bias(t, &in);
        compare_positions(t, &in);
        compare_window(t);
    }
    if (!pe_calc_failed(p) && has_whole(t, "gin_do"))
        run_attention_back(t, &in, &out);
}
