/* SPDX-License-Identifier: MIT */
/*
 * forms: how a case of an encoding is run
 *
 * Rows of a table, turned q and k, attention: each form reads the in_* and par_* arrays it knows,
 * asks the library for forward and backward, and measures every out_* and g_* array that the file
 * has. What is prepared in double for both executors (frequencies, angles) is measured as float64
 * in both.
 */
#include "forms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halves.h"
#include "inside.h"

/* ---------------------------------------------------------------- place input --------------- */

/* The arrays that say where rows stand, and how many axes each has if it does so for every item of a batch:
   `axes` for one coordinate, where several count one more. */
static const struct {
    const char *name;
    int         axes, has_coordinates;
} places[] = {{"in_tokens", 2, 0},
              {"in_mask_true_is_padding", 3, 0},
              {"in_ids", 2, 1},
              {"in_pos", 2, 1},
              {"in_t", 2, 1}};

/* Which of them the case has; -1: none. */
static int find_place(const cli_trial *t)
{
    for (int i = 0; i < (int)(sizeof places / sizeof *places); i++)
        if (cli_trial_has(t, places[i].name))
            return i;
    return -1;
}

/* Items of the batch. All other axes but the last are a sequence, or a grid whose tokens are one. */
static int64_t batch_of(cli_trial *t, const posenc_tensor *x)
{
    const int place = find_place(t);
    if (x)
        return x->ndim == 3 ? x->shape[0] : 1;
    if (place < 0)
        return 1;
    const posenc_tensor *at   = cli_trial_find(t, places[place].name);
    const int            more = places[place].has_coordinates && posenc_coordinates(t->e) > 1;
    return at->ndim == places[place].axes + more ? at->shape[0] : 1;
}

/* [B,L,d] of in_x or out_y. */
static void rows_shape(cli_trial *t, int64_t shape[3], const posenc_tensor *x, const posenc_tensor *y)
{
    const posenc_tensor *like = x ? x : y;
    shape[0]                  = batch_of(t, x);
    shape[2]                  = like->ndim ? like->shape[like->ndim - 1] : 1;
    shape[1]                  = shape[0] * shape[2] > 0 ? cli_element_count(like) / (shape[0] * shape[2]) : 0;
}

/* A row may be several vectors, as many as there are states: then they are one axis of the case's arrays. */
static void join_states(const cli_trial *t, int64_t shape[3])
{
    const int64_t width = posenc_row_width(t->plan), all = shape[1] * shape[2];
    if (width > 0 && all % width == 0) {
        shape[1] = all / width;
        shape[2] = width;
    }
}

static posenc_tensor as_rows(posenc_tensor t, const int64_t shape[3])
{
    return t.data ? posenc_tensor_contiguous(t.data, t.dtype, 3, shape) : t;
}

/* fairseq's rule numbers the tokens; the numbers are compared as well. */
static posenc_positions token_positions(cli_trial *t)
{
    posenc_error         err;
    const posenc_tensor *tokens = cli_trial_find(t, "in_tokens");
    posenc_tensor        pos    = cli_trial_make_like(t, POSENC_I64, tokens);
    if (!t->status &&
        posenc_positions_fairseq(tokens, (int64_t)cli_real_setting(t->c, "padding_idx", 1), &pos, &err))
        cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_INDEX, "out_pos", &pos, 0);
    return posenc_positions_array(pos);
}

/* DETR's rule counts the pixels that are no padding. */
static posenc_positions mask_positions(cli_trial *t)
{
    posenc_error         err;
    const posenc_tensor *mask = cli_trial_find(t, "in_mask_true_is_padding");
    if (mask->ndim != 3) {
        cli_trial_fail(t, "in_mask_true_is_padding has %d axes; it must be [B,h,w]", (int)mask->ndim);
        return posenc_positions_range(0, 1);
    }
    const int64_t shape[3] = {mask->shape[0], mask->shape[1] * mask->shape[2], 2};
    posenc_tensor valid    = cli_trial_make(t, POSENC_U8, 3, mask->shape),
                  pos      = cli_trial_make(t, POSENC_F64, 3, shape);
    for (int64_t i = 0; valid.data && i < cli_element_count(mask); i++)
        ((unsigned char *)valid.data)[i] = cli_element(mask, i) == 0;
    if (!t->status && posenc_positions_detr(&valid, cli_setting_is(t->c, "normalize", "yes"),
                                            cli_real_setting(t->c, "eps", 1e-6), &pos, &err))
        cli_trial_refused(t, &err);
    return posenc_positions_array(pos);
}

static posenc_positions row_positions(cli_trial *t)
{
    const int place = find_place(t);
    if (place < 0)
        return posenc_positions_range(0, 1);
    if (!strcmp(places[place].name, "in_tokens"))
        return token_positions(t);
    if (!strcmp(places[place].name, "in_mask_true_is_padding"))
        return mask_positions(t);
    return cli_trial_positions(t, places[place].name);
}

/* How far the angle of each row may be off. A frequency of a table that learns nothing is at most 1, times
   the setting `scale` where it has one, so no angle is larger than its position, in the largest
   coordinate. */
static const double *row_angles(cli_trial *t, const posenc_positions *pos, int64_t B, int64_t L)
{
    posenc_tensor angles = cli_trial_make(t, POSENC_F64, 2, (const int64_t[2]){B, L});
    if (!angles.data || posenc_param_count(t->e) > 0)
        return NULL;
    const int64_t N     = pos->array.data ? posenc_coordinates(t->e) : 1;
    const int64_t given = pos->array.data ? cli_element_count(&pos->array) / N : 0;
    const double  scale = isnan(t->c->scale) ? 1 : fabs(t->c->scale);
    for (int64_t i = 0; i < B * L; i++) {
        double most = given ? 0 : pos->start + (double)(i % L);
        for (int64_t c = 0; given && c < N; c++)
            most = fmax(most, fabs(cli_element(&pos->array, i % given * N + c)));
        ((double *)angles.data)[i] = ldexp(scale * most, -52);
    }
    return angles.data;
}

static posenc_status run_rows_back(cli_trial *t, const posenc_rows_in *in, const int64_t shape[3], void *work)
{
    posenc_error     err;
    posenc_rows_grad grad = {.dy = as_rows(cli_trial_numbers(t, "gin_dy"), shape), .dparams = t->dparams};
    if (cli_trial_has(t, "g_x"))
        grad.dx = cli_trial_make(t, t->with->dtype, 3, shape);
    if (!t->status && posenc_rows_backward(t->plan, in, &grad, work, &err))
        return cli_trial_refused(t, &err);
    if (grad.dx.data)
        cli_trial_compare(t, CLI_GRADIENT, "g_x", &grad.dx, 0);
    cli_trial_compare_param_gradients(t, 0);
    return t->status;
}

/* out_u [n,d]: rows that a table of n rows has below the one it shows. A position of two equal digits k has
   u_k alone. */
static void compare_digits(cli_trial *t, void *work)
{
    posenc_error         err;
    const posenc_tensor *want = cli_trial_has(t, "out_u") ? cli_trial_find(t, "out_u") : NULL;
    if (!want || want->ndim != 2 || t->status)
        return;
    const posenc_rows_in in = {.pos    = posenc_positions_range(0, (double)want->shape[0] + 1),
                               .params = t->params};
    posenc_tensor        u =
        cli_trial_make(t, t->with->dtype, 3, (const int64_t[3]){1, want->shape[0], want->shape[1]});
    if (!t->status && posenc_rows(t->plan, &in, &u, work, &err))
        cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_OUTPUT, "out_u", &u, 0);
}

posenc_status cli_run_rows(cli_trial *t)
{
    static const char *const needed[] = {"out_y", NULL};
    posenc_error             err;
    int64_t                  shape[3];
    if (cli_trial_has(t, "out_re"))
        return cli_run_words(t);
    if (cli_trial_need(t, needed))
        return t->status;
    const posenc_tensor *want = cli_trial_find(t, "out_y"), *x = cli_trial_find(t, "in_x");
    rows_shape(t, shape, x, want);
    const posenc_dims dims = {.B = shape[0], .Lq = shape[1], .Lk = shape[1], .d_model = shape[2]};
    if (cli_trial_plan(t, &dims, POSENC_MASK_NONE) || cli_trial_params(t))
        return t->status;
    join_states(t, shape);

    posenc_rows_in in   = {.pos = row_positions(t), .params = t->params};
    posenc_tensor  y    = cli_trial_make(t, t->with->dtype, 3, shape);
    void          *work = cli_trial_workspace(t, t->plan, POSENC_FORWARD | POSENC_BACKWARD);
    if (x)
        in.x = as_rows(cli_trial_numbers(t, "in_x"), shape);
    const double *angles = row_angles(t, &in.pos, shape[0], shape[1]);
    if (t->status)
        return t->status;
    if (posenc_rows(t->plan, &in, &y, work, &err))
        return cli_trial_refused(t, &err);
    if (cli_element_count(want) == cli_element_count(&y)) /* a grid [h,w,d] is rows too */
        y = posenc_tensor_contiguous(y.data, y.dtype, want->ndim, want->shape);
    if (cli_setting_is(t->c, "solver", "exact"))
        cli_trial_compare(t, CLI_SOLVED, "out_y", &y, 0);
    else
        cli_trial_compare_rows(t, "out_y", &y, angles);
    compare_digits(t, work);
    return cli_trial_has(t, "gin_dy") ? run_rows_back(t, &in, shape, work) : t->status;
}

/* ---------------------------------------------------------------- place rotary -------------- */

/* q and k, their positions, and where the turned ones go. */
static posenc_rotate_io rotation(cli_trial *t, const char *q, const char *k, posenc_positions q_pos,
                                 posenc_positions k_pos)
{
    posenc_rotate_io io = {
        .q = cli_trial_numbers(t, q), .k = cli_trial_numbers(t, k), .q_pos = q_pos, .k_pos = k_pos};
    io.to_q      = cli_trial_make_like(t, t->with->dtype, &io.q);
    io.to_k      = cli_trial_make_like(t, t->with->dtype, &io.k);
    io.direction = 1;
    return io;
}

/* max |x|. */
static double largest(const posenc_tensor *x)
{
    double most = 0;
    for (int64_t i = 0; x && i < cli_element_count(x); i++)
        most = fmax(most, fabs(cli_element(x, i)));
    return most;
}

/* The present length: one more than the largest coordinate of the whole batch. */
static double present_length(const posenc_tensor *pos)
{
    double most = -1;
    for (int64_t i = 0; i < cli_element_count(pos); i++)
        most = fmax(most, cli_element(pos, i));
    return most + 1;
}

/* The parameter of that name as the encoding has it, or NULL. */
static const posenc_tensor *exact_param(const cli_trial *t, const char *name)
{
    for (int i = 0; i < posenc_param_count(t->e); i++)
        if (!strcmp(posenc_param_name(t->e, i), name))
            return &t->exact[i];
    return NULL;
}

/* How far an angle may be off: four times what the last bit of a frequency does, as the manifest
   says; where it is silent, the last bit of the largest angle. Frequencies that are given are the very
   same. */
static double angle_slack(const cli_trial *t, const posenc_tensor *angles)
{
    static const char *const given[] = {"inv_freq", "freq_matrix", "inv_freq32", "theta_scale32"};
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (exact_param(t, given[i]))
            return 0;
    return t->c->angle_ulp > 0 ? 4 * t->c->angle_ulp : ldexp(largest(angles), -52);
}

/* The frequency of each pair; those of a matrix are its parameter. */
static posenc_status compare_frequencies(cli_trial *t, const posenc_tensor *pos, void *work)
{
    posenc_error         err;
    int64_t              M = 0;
    double               magnitude;
    const posenc_tensor *matrix = exact_param(t, "freq_matrix");
    if (posenc_rotary_frequencies(t->plan, NULL, &M, &magnitude, &err))
        return cli_trial_refused(t, &err);
    const int64_t bytes = M * (int64_t)sizeof(posenc_rotary_pair);
    posenc_tensor w = cli_trial_make(t, POSENC_F64, 1, &M), room = cli_trial_make(t, POSENC_U8, 1, &bytes),
                  m           = posenc_tensor_contiguous(&magnitude, POSENC_F64, 0, NULL);
    posenc_rotary_pair *pairs = room.data;
    if (!t->status && posenc_rotary_pairs(t->plan, t->params, present_length(pos), pairs, work, &err))
        return cli_trial_refused(t, &err);
    for (int64_t i = 0; !t->status && i < M; i++)
        ((double *)w.data)[i] = pairs[i].w;
    cli_trial_compare(t, CLI_PREPARED, "out_inv_freq", matrix ? matrix : &w, 0);
    cli_trial_compare(t, CLI_PREPARED, "out_magnitude", &m, 0);
    return t->status;
}

/* Angles as products, to the bit where they are rounded to float32, and the factor on queries. */
static posenc_tensor compare_angles(cli_trial *t, const posenc_tensor *pos, void *work)
{
    posenc_error           err;
    int64_t                M         = 0;
    const posenc_positions positions = cli_trial_positions(t, "in_pos");
    if (pos->ndim != 3) {
        cli_trial_fail(t, "in_pos has %d axes; it must be [B or 1,L,N]", (int)pos->ndim);
        return (posenc_tensor){0};
    }
    if (posenc_rotary_frequencies(t->plan, NULL, &M, NULL, &err))
        cli_trial_refused(t, &err);
    M *= posenc_rotary_heads(t->plan);
    posenc_tensor angles =
                      cli_trial_make(t, POSENC_F64, 3, (const int64_t[3]){pos->shape[0], pos->shape[1], M}),
                  factors = cli_trial_make(t, POSENC_F64, 2, pos->shape);
    if (!t->status && posenc_rotary_angles(t->plan, t->params, &positions, &angles, &factors, work, &err))
        cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_PREPARED, "out_angle", &angles, 0);
    cli_trial_compare(t, CLI_INDEX, "out_angle32", &angles, 0);
    cli_trial_compare(t, CLI_PREPARED, "out_temperature", &factors, 0);
    return angles;
}

static posenc_status run_rotation_back(cli_trial *t, const posenc_rotate_io *io, double angle, void *work)
{
    static const char *const back[] = {"gin_dq", "gin_dk", NULL};
    posenc_error             err;
    if (cli_trial_need(t, back))
        return t->status;
    posenc_rotate_grad grad = {.dto_q   = cli_trial_numbers(t, "gin_dq"),
                               .dto_k   = cli_trial_numbers(t, "gin_dk"),
                               .dq      = cli_trial_make_like(t, t->with->dtype, &io->q),
                               .dk      = cli_trial_make_like(t, t->with->dtype, &io->k),
                               .dparams = t->dparams};
    if (!t->status && posenc_rotate_backward(t->plan, io, &grad, work, &err))
        return cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_GRADIENT, "g_q", &grad.dq, angle);
    cli_trial_compare(t, CLI_GRADIENT, "g_k", &grad.dk, angle);
    cli_trial_compare_param_gradients(t, angle);
    return t->status;
}

posenc_status cli_run_rotation(cli_trial *t)
{
    static const char *const needed[] = {"in_q", "in_k", "in_pos", NULL};
    posenc_error             err;
    if (cli_trial_need(t, needed))
        return t->status;
    const posenc_tensor *q = cli_trial_find(t, "in_q"), *k = cli_trial_find(t, "in_k"),
                        *pos = cli_trial_find(t, "in_pos");
    if (q->ndim != 4 || k->ndim != 4)
        return cli_trial_fail(t, "in_q has %d axes and in_k %d; both must be [B,H,L,D]", q->ndim, k->ndim);
    const posenc_dims dims = {.B  = q->shape[0],
                              .H  = q->shape[1],
                              .G  = k->shape[1],
                              .Lq = q->shape[2],
                              .Lk = k->shape[2],
                              .D  = q->shape[3],
                              .Dv = q->shape[3]};
    if (cli_trial_plan(t, &dims, POSENC_MASK_NONE) || cli_trial_params(t))
        return t->status;
    void *work = cli_trial_workspace(t, t->plan, POSENC_FORWARD | POSENC_BACKWARD);
    if (t->status || compare_frequencies(t, pos, work))
        return t->status;

    const posenc_tensor    angles    = compare_angles(t, pos, work);
    const double           angle     = t->status ? 0 : angle_slack(t, &angles);
    const posenc_positions positions = cli_trial_positions(t, "in_pos");
    posenc_rotate_io       io        = rotation(t, "in_q", "in_k", positions, positions);
    io.params                        = t->params;
    if (!t->status && posenc_rotate(t->plan, &io, work, &err))
        return cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_OUTPUT, "out_q", &io.to_q, angle);
    cli_trial_compare(t, CLI_OUTPUT, "out_k", &io.to_k, angle);
    if (t->status || (!cli_trial_has(t, "g_q") && !cli_trial_has(t, "g_k")))
        return t->status;
    return run_rotation_back(t, &io, angle, work);
}

/* ---------------------------------------------------------------- attention ----------------- */

/* q and k after the rotary part alone. */
static posenc_status compare_turned(cli_trial *t, const posenc_attend_in *in, void *work)
{
    posenc_error err;
    if (!cli_trial_has(t, "out_q_rot") || !posenc_encoding_part(t->e, POSENC_ROTARY))
        return t->status;
    posenc_rotate_io io = rotation(t, "in_q", "in_k", in->q_pos, in->k_pos);
    io.params           = in->params;
    if (!t->status && posenc_rotate(t->plan, &io, work, &err))
        return cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_OUTPUT, "out_q_rot", &io.to_q, 0);
    cli_trial_compare(t, CLI_OUTPUT, "out_k_rot", &io.to_k, 0);
    return t->status;
}

/* An array of the file in the executor's numbers; or its real and imaginary parts, NAMEr and NAMEi, as
   one. */
static posenc_tensor whole(cli_trial *t, const char *name)
{
    char    parts[2][CLI_MAX_NAME];
    int64_t shape[POSENC_MAX_DIMS];
    if (cli_trial_has(t, name))
        return cli_trial_numbers(t, name);
    snprintf(parts[0], sizeof parts[0], "%sr", name);
    snprintf(parts[1], sizeof parts[1], "%si", name);
    const posenc_tensor re = cli_trial_numbers(t, parts[0]), im = cli_trial_numbers(t, parts[1]);
    if (!t->status && (!re.data || !im.data || !cli_are_halves(&re, &im)))
        cli_trial_fail(t, "it has no array %s, nor %s and %s of one shape, which a case of this form needs",
                       name, parts[0], parts[1]);
    if (t->status)
        return (posenc_tensor){0};
    cli_whole_shape(shape, &re);
    posenc_tensor both = cli_trial_make(t, re.dtype, re.ndim, shape);
    if (both.data)
        cli_join_halves(&both, &re, &im);
    return both;
}

static int has_whole(const cli_trial *t, const char *name)
{
    char part[CLI_MAX_NAME];
    snprintf(part, sizeof part, "%sr", name);
    return cli_trial_has(t, name) || cli_trial_has(t, part);
}

/* Measures an array, or both of its parts. */
static void compare_whole(cli_trial *t, cli_kind kind, const char *name, const posenc_tensor *got)
{
    char                 parts[2][CLI_MAX_NAME];
    const posenc_tensor *like;
    snprintf(parts[0], sizeof parts[0], "%sr", name);
    snprintf(parts[1], sizeof parts[1], "%si", name);
    cli_trial_compare(t, kind, name, got, 0);
    if (t->status || !(like = cli_trial_find(t, parts[0])))
        return;
    posenc_tensor re = cli_trial_make_like(t, got->dtype, like),
                  im = cli_trial_make_like(t, got->dtype, like);
    if (t->status)
        return;
    if (2 * cli_element_count(like) != cli_element_count(got)) {
        cli_trial_fail(t, "%s is not half as large as what the encoding gives", parts[0]);
        return;
    }
    cli_split_halves(got, &re, &im);
    cli_trial_compare(t, kind, parts[0], &re, 0);
    cli_trial_compare(t, kind, parts[1], &im, 0);
}

static posenc_status run_attention_back(cli_trial *t, const posenc_attend_in *in,
                                        const posenc_attend_out *out, void *work)
{
    posenc_error       err;
    posenc_attend_grad g = {.o = out->o, .lse = out->lse, .dout = whole(t, "gin_do"), .dparams = t->dparams};
    const struct {
        const char          *name;
        posenc_tensor       *to;
        const posenc_tensor *like;
    } wanted[]  = {{"g_q", &g.dq, &in->q}, {"g_k", &g.dk, &in->k}, {"g_v", &g.dv, &in->v}};
    const int n = sizeof wanted / sizeof *wanted;
    for (int i = 0; i < n; i++)
        if (has_whole(t, wanted[i].name))
            *wanted[i].to = cli_trial_make_like(t, t->with->dtype, wanted[i].like);
    if (!t->status && posenc_attend_backward(t->plan, in, &g, work, &err))
        return cli_trial_refused(t, &err);
    for (int i = 0; i < n; i++)
        if (wanted[i].to->data)
            compare_whole(t, CLI_GRADIENT, wanted[i].name, wanted[i].to);
    cli_trial_compare_param_gradients(t, 0);
    return t->status;
}

/* The sizes of an attention case, or a sentence. */
static posenc_status attention_dims(cli_trial *t, posenc_dims *dims, const posenc_attend_in *in)
{
    if (t->status)
        return t->status;
    if (in->q.ndim != 4 || in->k.ndim != 4 || in->v.ndim != 4)
        return cli_trial_fail(t, "in_q, in_k, in_v have %d, %d, %d axes; they must be [B,H,L,D]", in->q.ndim,
                              in->k.ndim, in->v.ndim);
    *dims = (posenc_dims){.B  = in->q.shape[0],
                          .H  = in->q.shape[1],
                          .G  = in->k.shape[1],
                          .Lq = in->q.shape[2],
                          .Lk = in->k.shape[2],
                          .D  = in->q.shape[3],
                          .Dv = in->v.shape[3]};
    return POSENC_OK;
}

static posenc_attend_in attention_inputs(cli_trial *t)
{
    posenc_attend_in in = {.q     = whole(t, "in_q"),
                           .k     = whole(t, "in_k"),
                           .v     = whole(t, "in_v"),
                           .q_pos = posenc_positions_range((double)t->c->q_offset, 1),
                           .k_pos = posenc_positions_range(0, 1)};
    in.allowed          = cli_trial_convert(t, POSENC_U8, cli_trial_find(t, "in_allow"));
    /* one list of segments: queries and keys are the same tokens */
    in.q_segments = cli_trial_convert(t, POSENC_I64, cli_trial_find(t, "in_segment_ids"));
    in.k_segments = cli_trial_convert(t, POSENC_I64, cli_trial_find(t, "in_segment_ids"));
    return in;
}

posenc_status cli_run_attention(cli_trial *t)
{
    posenc_error err;
    posenc_dims  dims;
    const int    mask =
        (t->c->causal ? POSENC_MASK_CAUSAL : 0) | (cli_trial_has(t, "in_allow") ? POSENC_MASK_EXPLICIT : 0);
    posenc_attend_in in = attention_inputs(t);
    if (attention_dims(t, &dims, &in) || cli_trial_plan(t, &dims, mask) || cli_trial_params(t))
        return t->status;
    in.params = t->params;

    const posenc_attend_out out = {
        .o   = cli_trial_make(t, t->with->dtype, 4, (const int64_t[4]){dims.B, dims.H, dims.Lq, dims.Dv}),
        .lse = cli_trial_make(t, t->with->dtype, 3, (const int64_t[3]){dims.B, dims.H, dims.Lq})};
    posenc_tensor S =
        cli_trial_make(t, t->with->dtype, 4, (const int64_t[4]){dims.B, dims.H, dims.Lq, dims.Lk});
    void *work =
        t->status ? NULL : cli_trial_workspace(t, t->plan, POSENC_FORWARD | POSENC_BACKWARD | POSENC_SCORES);
    if (t->status)
        return t->status;
    if (posenc_scores(t->plan, &in, &S, work, &err) || posenc_attend(t->plan, &in, &out, work, &err))
        return cli_trial_refused(t, &err);
    cli_trial_compare(t, CLI_OUTPUT, "out_score", &S, 0);
    cli_trial_compare(t, CLI_OUTPUT, "out_lse", &out.lse, 0);
    compare_whole(t, CLI_OUTPUT, "out_o", &out.o);
    if (compare_turned(t, &in, work) || cli_compare_inside(t, &in))
        return t->status;
    return has_whole(t, "gin_do") ? run_attention_back(t, &in, &out, work) : t->status;
}
