/* SPDX-License-Identifier: MIT */
/*
 * forms: how a case of an encoding is run
 *
 * Rows of a table, turned q and k, attention: each form reads the in_* and par_* arrays it knows, asks the
 * library for forward and backward, and measures every out_* and g_* array that the file has. What is
 * prepared in double for both executors (frequencies, angles) is measured as float64 in both. What is complex
 * comes as one array of real parts, then imaginary ones along the last axis, or in two arrays.
 */
#include "trial.h"

#include <math.h>
#include <posenc/positions.h>
#include <posenc/rotary.h>
#include <stdlib.h>
#include <string.h>

static double real_setting(const posenc_case *c, const char *name, double standard)
{
    const char *text = cli_case_setting(c, name);
    return text ? strtod(text, NULL) : standard;
}

static int setting_is(const posenc_case *c, const char *name, const char *word)
{
    const char  *text = cli_case_setting(c, name);
    const size_t n    = strlen(word);
    return text && !strncmp(text, word, n) && (!text[n] || text[n] == ' ');
}

/* ---------------------------------------------------------------- arrays in two parts ------- */

/* NAMEr and NAMEi. */
static void name_parts(cli_trial *t, const char *parts[2], const char *name)
{
    parts[0] = cli_text(&t->p, "%sr", name);
    parts[1] = cli_text(&t->p, "%si", name);
}

static posenc_tensor join_named(cli_trial *t, const char *const parts[2])
{
    const posenc_tensor halves[2] = {cli_trial_numbers(t, parts[0]), cli_trial_numbers(t, parts[1])};
    return cli_join(&t->p, halves);
}

/* An array of the file in the executor's numbers; or its parts as one. */
static posenc_tensor whole(cli_trial *t, const char *name)
{
    const char *parts[2];
    if (cli_trial_has(t, name))
        return cli_trial_numbers(t, name);
    name_parts(t, parts, name);
    const posenc_tensor both = join_named(t, parts);
    if (!both.data)
        cli_refuse(&t->p, "it has no array %s, nor %s and %s of one shape, which a case of this form needs",
                   name, parts[0], parts[1]);
    return both;
}

static int has_whole(cli_trial *t, const char *name)
{
    const char *parts[2];
    name_parts(t, parts, name);
    return cli_trial_has(t, name) || cli_trial_has(t, parts[0]);
}

static void compare_parts(cli_trial *t, cli_kind kind, const char *const parts[2], const posenc_tensor *got,
                          double angle)
{
    const posenc_tensor *like = cli_stopped(&t->p) ? NULL : cli_trial_find(t, parts[0]);
    if (!like)
        return;
    if (2 * cli_element_count(like) != cli_element_count(got))
        cli_refuse(&t->p, "%s is not half as large as what the encoding gives", parts[0]);
    const posenc_tensor halves[2] = {cli_make_like(&t->p, got->dtype, like),
                                     cli_make_like(&t->p, got->dtype, like)};
    if (!cli_stopped(&t->p))
        cli_split(got, halves);
    for (int i = 0; i < 2; i++)
        cli_trial_compare(t, kind, parts[i], &halves[i], angle);
}

/* Measures an array, or both of its parts. */
static void compare_whole(cli_trial *t, cli_kind kind, const char *name, const posenc_tensor *got)
{
    const char *parts[2];
    cli_trial_compare(t, kind, name, got, 0);
    name_parts(t, parts, name);
    compare_parts(t, kind, parts, got, 0);
}

/* ---------------------------------------------------------------- place input --------------- */

/* An array that says where rows stand, and how many axes it has if it does so for every item of a batch:
   `axes` for one coordinate, where several count one more. */
typedef struct position_array {
    const char *name;
    int         axes, has_coordinates;
    posenc_positions (*positions)(cli_trial *t, const char *name);
} position_array;

/* fairseq's rule numbers the tokens; the numbers are compared as well. */
static posenc_positions token_positions(cli_trial *t, const char *name)
{
    const posenc_tensor *tokens = cli_trial_find(t, name);
    posenc_tensor        pos    = cli_make_like(&t->p, POSENC_DTYPE_I64, tokens);
    if (!cli_stopped(&t->p))
        posenc_positions_fairseq(tokens, (int64_t)real_setting(t->c, "padding_idx", 1), &pos, &t->p.err);
    cli_trial_compare(t, CLI_INDEX, "out_pos", &pos, 0);
    return posenc_positions_array(pos);
}

/* DETR's rule counts the pixels that are no padding. */
static posenc_positions mask_positions(cli_trial *t, const char *name)
{
    const posenc_tensor *mask = cli_trial_find(t, name);
    if (mask->ndim != 3) {
        cli_refuse(&t->p, "in_mask_true_is_padding has %d axes; it must be [B,h,w]", (int)mask->ndim);
        return posenc_positions_range(0, 1);
    }
    const int64_t shape[3] = {mask->shape[0], mask->shape[1] * mask->shape[2], 2};
    posenc_tensor valid    = cli_make(&t->p, POSENC_DTYPE_U8, 3, mask->shape),
                  pos      = cli_make(&t->p, POSENC_DTYPE_F64, 3, shape);
    for (int64_t i = 0; valid.data && i < cli_element_count(mask); i++)
        ((unsigned char *)valid.data)[i] = cli_element(mask, i) == 0;
    if (!cli_stopped(&t->p))
        posenc_positions_detr(&valid, setting_is(t->c, "normalize", "yes"), real_setting(t->c, "eps", 1e-6),
                              &pos, &t->p.err);
    return posenc_positions_array(pos);
}

static const position_array position_arrays[] = {{"in_tokens", 2, 0, token_positions},
                                                 {"in_mask_true_is_padding", 3, 0, mask_positions},
                                                 {"in_ids", 2, 1, cli_trial_positions},
                                                 {"in_pos", 2, 1, cli_trial_positions},
                                                 {"in_t", 2, 1, cli_trial_positions}};

/* Which of them the case has, or NULL. */
static const position_array *find_place(const cli_trial *t)
{
    for (size_t i = 0; i < sizeof position_arrays / sizeof *position_arrays; i++)
        if (cli_trial_has(t, position_arrays[i].name))
            return &position_arrays[i];
    return NULL;
}

/* Items of the batch. All other axes but the last are a sequence, or a grid whose tokens are one. */
static int64_t batch_of(cli_trial *t, const posenc_tensor *x)
{
    const position_array *where = find_place(t);
    if (x)
        return x->ndim == 3 ? x->shape[0] : 1;
    if (!where)
        return 1;
    const posenc_tensor *at   = cli_trial_find(t, where->name);
    const int            more = where->has_coordinates && posenc_rows_coordinates(t->p.e) > 1;
    return at->ndim == where->axes + more ? at->shape[0] : 1;
}

static posenc_tensor as_rows(posenc_tensor t, const int64_t shape[3])
{
    return t.data ? posenc_tensor_contiguous(t.data, t.dtype, 3, shape) : t;
}

/* How far the angle of each row may be off. A frequency of a table that learns nothing is at most 1, times
   the setting `scale` where it has one, so no angle is larger than its position, in the largest
   coordinate. */
static const double *row_angles(cli_trial *t, const posenc_positions *pos, int64_t B, int64_t L)
{
    posenc_tensor angles = cli_make(&t->p, POSENC_DTYPE_F64, 2, (const int64_t[2]){B, L});
    if (!angles.data || posenc_param_count(t->p.e) > 0)
        return NULL;
    const int64_t N     = pos->array.data ? posenc_rows_coordinates(t->p.e) : 1;
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

/* Backward through rows, whose cotangent is `dy`. */
static void run_rows_back(cli_trial *t, const posenc_rows_in *in, posenc_tensor dy, double angle)
{
    posenc_rows_grad grad = {.dy = dy, .dparams = t->dparams};
    if (cli_trial_has(t, "g_x"))
        grad.dx = cli_make_like(&t->p, dy.dtype, &dy);
    if (!cli_stopped(&t->p))
        posenc_rows_backward(t->p.plan, in, &grad, t->p.work, &t->p.err);
    if (grad.dx.data)
        cli_trial_compare(t, CLI_GRADIENT, "g_x", &grad.dx, 0);
    cli_trial_compare_param_gradients(t, angle);
}

/* out_u [n,d]: rows that a table of n rows has below the one it shows. A position of two equal digits k has
   u_k alone. */
static void compare_digits(cli_trial *t)
{
    const posenc_tensor *want = cli_trial_has(t, "out_u") ? cli_trial_find(t, "out_u") : NULL;
    if (!want || want->ndim != 2 || cli_stopped(&t->p))
        return;
    const posenc_rows_in in = {.pos    = posenc_positions_range(0, (double)want->shape[0] + 1),
                               .params = t->p.params};
    posenc_tensor        u =
        cli_make(&t->p, t->with->dtype, 3, (const int64_t[3]){1, want->shape[0], want->shape[1]});
    if (!cli_stopped(&t->p))
        posenc_rows(t->p.plan, &in, &u, t->p.work, &t->p.err);
    cli_trial_compare(t, CLI_OUTPUT, "out_u", &u, 0);
}

static void run_vectors(cli_trial *t)
{
    static const char *const needed[] = {"out_y", NULL};
    if (!cli_trial_need(t, needed))
        return;
    const posenc_tensor *want = cli_trial_find(t, "out_y"), *x = cli_trial_find(t, "in_x");
    const posenc_tensor *like = x ? x : want;
    int64_t shape[3] = {batch_of(t, x), 0, like->ndim ? like->shape[like->ndim - 1] : 1}; /* [B,L,d] */
    if (shape[0] * shape[2] > 0)
        shape[1] = cli_element_count(like) / (shape[0] * shape[2]);
    const posenc_dims dims = {.B = shape[0], .Lq = shape[1], .Lk = shape[1], .d_model = shape[2]};
    if (!cli_trial_prepare(t, &dims, POSENC_MASK_NONE, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD))
        return;
    const int64_t width = posenc_rows_width(t->p.plan), all = shape[1] * shape[2];
    if (width > 0 && all % width == 0) { /* a row may be several vectors, one axis of the case's arrays */
        shape[1] = all / width;
        shape[2] = width;
    }

    const position_array *where = find_place(t);
    posenc_rows_in in = {.pos    = where ? where->positions(t, where->name) : posenc_positions_range(0, 1),
                         .params = t->p.params};
    posenc_tensor  y  = cli_make(&t->p, t->with->dtype, 3, shape);
    if (x)
        in.x = as_rows(cli_trial_numbers(t, "in_x"), shape);
    const double *angles = row_angles(t, &in.pos, shape[0], shape[1]);
    if (cli_stopped(&t->p) || posenc_rows(t->p.plan, &in, &y, t->p.work, &t->p.err))
        return;
    if (cli_element_count(want) == cli_element_count(&y)) /* a grid [h,w,d] is rows too */
        y = posenc_tensor_contiguous(y.data, y.dtype, want->ndim, want->shape);
    if (setting_is(t->c, "solver", "exact"))
        cli_trial_compare(t, CLI_SOLVED, "out_y", &y, 0);
    else
        cli_trial_compare_rows(t, "out_y", &y, angles);
    compare_digits(t);
    if (cli_trial_has(t, "gin_dy"))
        run_rows_back(t, &in, as_rows(cli_trial_numbers(t, "gin_dy"), shape), 0);
}

/* ---------------------------------------------------------------- words --------------------- */

/* (id, 0), (id, 1), ... for tokens [B,L]: the word in column s stands at position s. */
static posenc_positions word_positions(cli_trial *t, const posenc_tensor *tokens)
{
    const int64_t L     = tokens->shape[1];
    posenc_tensor pos   = cli_make(&t->p, POSENC_DTYPE_I64, 3, (const int64_t[3]){tokens->shape[0], L, 2});
    int64_t      *place = pos.data;
    for (int64_t i = 0; place && i < cli_element_count(tokens); i++) {
        place[2 * i]     = (int64_t)cli_element(tokens, i);
        place[2 * i + 1] = i % L;
    }
    return posenc_positions_array(pos);
}

/* max |x|, at least 1. */
static double at_least_one(const posenc_tensor *x)
{
    return x ? fmax(1, cli_largest(x)) : 1;
}

/* How far the number at the end of an angle may be off: a frequency that is given moves its angle by 2^-24 of
   itself when it is rounded to float32, and a word's amplitude is as large as its two numbers together. */
static double word_slack(cli_trial *t, int64_t L)
{
    const double furthest = (double)L + fabs(real_setting(t->c, "position_start", 0));
    const double most =
        at_least_one(cli_trial_find(t, "par_omega")) * at_least_one(cli_trial_find(t, "par_r"));
    return t->with->dtype == POSENC_DTYPE_F32 ? ldexp(furthest * most, -24) : 0;
}

/* Rows of complex numbers that depend on words: in_tokens [B,L] are their ids, out_re and out_im [B,L,d] one
   row [re | im]. */
static void run_words(cli_trial *t)
{
    static const char *const needed[] = {"in_tokens", "out_re", "out_im", NULL}, *const back[] = {"gin_dre",
                                                                                                  "gin_dim",
                                                                                                  NULL};
    if (!cli_trial_need(t, needed))
        return;
    const posenc_tensor *tokens = cli_trial_find(t, "in_tokens"), *want = cli_trial_find(t, "out_re");
    if (tokens->ndim != 2 || want->ndim != 3) {
        cli_refuse(&t->p, "in_tokens has %d axes and out_re %d; they must be [B,L] and [B,L,d]",
                   (int)tokens->ndim, (int)want->ndim);
        return;
    }
    const int64_t     shape[3] = {tokens->shape[0], tokens->shape[1], 2 * want->shape[2]};
    const posenc_dims dims     = {.B = shape[0], .Lq = shape[1], .Lk = shape[1], .d_model = shape[2]};
    if (!cli_trial_prepare(t, &dims, POSENC_MASK_NONE, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD))
        return;
    const posenc_rows_in in    = {.pos = word_positions(t, tokens), .params = t->p.params};
    posenc_tensor        y     = cli_make(&t->p, t->with->dtype, 3, shape);
    const double         angle = word_slack(t, shape[1]);
    if (cli_stopped(&t->p) || posenc_rows(t->p.plan, &in, &y, t->p.work, &t->p.err))
        return;
    compare_parts(t, CLI_OUTPUT, needed + 1, &y, angle);
    if (cli_trial_has(t, "gin_dre") && cli_trial_need(t, back))
        run_rows_back(t, &in, join_named(t, back), angle);
}

void cli_run_rows(cli_trial *t)
{
    if (cli_trial_has(t, "out_re"))
        run_words(t);
    else
        run_vectors(t);
}

/* ---------------------------------------------------------------- place rotary -------------- */

/* q and k, turned, and what is turned. */
static posenc_rotate_io turn(cli_trial *t, posenc_positions q_pos, posenc_positions k_pos)
{
    posenc_rotate_io io = {.q         = cli_trial_numbers(t, "in_q"),
                           .k         = cli_trial_numbers(t, "in_k"),
                           .q_pos     = q_pos,
                           .k_pos     = k_pos,
                           .direction = 1,
                           .params    = t->p.params};
    io.to_q             = cli_make_like(&t->p, t->with->dtype, &io.q);
    io.to_k             = cli_make_like(&t->p, t->with->dtype, &io.k);
    if (!cli_stopped(&t->p))
        posenc_rotate(t->p.plan, &io, t->p.work, &t->p.err);
    return io;
}

/* The parameter of that name as the encoding has it, or NULL. */
static const posenc_tensor *exact_param(const cli_trial *t, const char *name)
{
    for (int i = 0; i < t->p.count; i++)
        if (!strcmp(posenc_param_name(t->p.e, i), name))
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
    return t->c->angle_ulp > 0 ? 4 * t->c->angle_ulp : ldexp(cli_largest(angles), -52);
}

/* The frequency of each pair; those of a matrix are its parameter. Returns the number of pairs. */
static int64_t compare_frequencies(cli_trial *t, const posenc_tensor *pos)
{
    cli_problem         *p = &t->p;
    int64_t              M = 0;
    double               magnitude;
    const posenc_tensor *matrix = exact_param(t, "freq_matrix");
    if (posenc_rotary_frequencies(p->plan, NULL, &M, &magnitude, &p->err))
        return 0;
    posenc_tensor       w     = cli_make(p, POSENC_DTYPE_F64, 1, &M);
    const posenc_tensor m     = posenc_tensor_contiguous(&magnitude, POSENC_DTYPE_F64, 0, NULL);
    posenc_rotary_pair *pairs = cli_block(p, (size_t)M * sizeof *pairs);
    double last = -1; /* the present length is one more than the largest coordinate of the batch */
    for (int64_t i = 0; i < cli_element_count(pos); i++)
        last = fmax(last, cli_element(pos, i));
    if (!cli_stopped(p))
        posenc_rotary_pairs(p->plan, p->params, last + 1, pairs, p->work, &p->err);
    for (int64_t i = 0; !cli_stopped(p) && i < M; i++)
        cli_put_element(&w, i, pairs[i].w);
    cli_trial_compare(t, CLI_PREPARED, "out_inv_freq", matrix ? matrix : &w, 0);
    cli_trial_compare(t, CLI_PREPARED, "out_magnitude", &m, 0);
    return M;
}

/* Angles as products, to the bit where they are rounded to float32, and the factor on queries. */
static posenc_tensor compare_angles(cli_trial *t, const posenc_tensor *pos, int64_t M)
{
    cli_problem *p = &t->p;
    if (pos->ndim != 3)
        cli_refuse(p, "in_pos has %d axes; it must be [B or 1,L,N]", (int)pos->ndim);
    if (cli_stopped(p))
        return (posenc_tensor){0};
    const posenc_positions positions = cli_trial_positions(t, "in_pos");
    const int64_t          shape[3]  = {pos->shape[0], pos->shape[1], M * posenc_rotary_heads(p->plan)};
    posenc_tensor          angles    = cli_make(p, POSENC_DTYPE_F64, 3, shape),
                  factors            = cli_make(p, POSENC_DTYPE_F64, 2, shape);
    if (!cli_stopped(p))
        posenc_rotary_angles(p->plan, &(posenc_rotary_in){.pos = positions, .params = p->params}, &angles,
                             &factors, p->work, &p->err);
    cli_trial_compare(t, CLI_PREPARED, "out_angle", &angles, 0);
    cli_trial_compare(t, CLI_INDEX, "out_angle32", &angles, 0);
    cli_trial_compare(t, CLI_PREPARED, "out_temperature", &factors, 0);
    return angles;
}

static void run_rotation_back(cli_trial *t, const posenc_rotate_io *io, double angle)
{
    static const char *const back[] = {"gin_dq", "gin_dk", NULL};
    if (!cli_trial_need(t, back))
        return;
    posenc_rotate_grad grad = {.dto_q   = cli_trial_numbers(t, "gin_dq"),
                               .dto_k   = cli_trial_numbers(t, "gin_dk"),
                               .dq      = cli_make_like(&t->p, t->with->dtype, &io->q),
                               .dk      = cli_make_like(&t->p, t->with->dtype, &io->k),
                               .dparams = t->dparams};
    if (!cli_stopped(&t->p))
        posenc_rotate_backward(t->p.plan, io, &grad, t->p.work, &t->p.err);
    cli_trial_compare(t, CLI_GRADIENT, "g_q", &grad.dq, angle);
    cli_trial_compare(t, CLI_GRADIENT, "g_k", &grad.dk, angle);
    cli_trial_compare_param_gradients(t, angle);
}

void cli_run_rotation(cli_trial *t)
{
    static const char *const needed[] = {"in_q", "in_k", "in_pos", NULL};
    if (!cli_trial_need(t, needed))
        return;
    const posenc_tensor *q = cli_trial_find(t, "in_q"), *k = cli_trial_find(t, "in_k"),
                        *pos = cli_trial_find(t, "in_pos");
    if (q->ndim != 4 || k->ndim != 4) {
        cli_refuse(&t->p, "in_q has %d axes and in_k %d; both must be [B,H,L,D]", q->ndim, k->ndim);
        return;
    }
    const posenc_dims dims = cli_attention_dims(q, k, q);
    if (!cli_trial_prepare(t, &dims, POSENC_MASK_NONE, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD))
        return;
    const posenc_tensor angles = compare_angles(t, pos, compare_frequencies(t, pos));
    if (cli_stopped(&t->p))
        return;
    const double           angle     = angle_slack(t, &angles);
    const posenc_positions positions = cli_trial_positions(t, "in_pos");
    const posenc_rotate_io io        = turn(t, positions, positions);
    cli_trial_compare(t, CLI_OUTPUT, "out_q", &io.to_q, angle);
    cli_trial_compare(t, CLI_OUTPUT, "out_k", &io.to_k, angle);
    if (!cli_stopped(&t->p) && (cli_trial_has(t, "g_q") || cli_trial_has(t, "g_k")))
        run_rotation_back(t, &io, angle);
}

/* ---------------------------------------------------------------- attention ----------------- */

/* q and k after the rotary part alone. */
static void compare_turned(cli_trial *t, const posenc_attend_in *in)
{
    if (cli_stopped(&t->p) || !cli_trial_has(t, "out_q_rot") ||
        !posenc_encoding_part(t->p.e, POSENC_PLACE_ROTARY))
        return;
    const posenc_rotate_io io = turn(t, in->q_pos, in->k_pos);
    cli_trial_compare(t, CLI_OUTPUT, "out_q_rot", &io.to_q, 0);
    cli_trial_compare(t, CLI_OUTPUT, "out_k_rot", &io.to_k, 0);
}

static void run_attention_back(cli_trial *t, const posenc_attend_in *in, const posenc_attend_out *out)
{
    posenc_attend_grad g = {.o = out->o, .lse = out->lse, .dout = whole(t, "gin_do"), .dparams = t->dparams};
    const struct {
        const char          *name;
        posenc_tensor       *to;
        const posenc_tensor *like;
    } wanted[]  = {{"g_q", &g.dq, &in->q}, {"g_k", &g.dk, &in->k}, {"g_v", &g.dv, &in->v}};
    const int n = sizeof wanted / sizeof *wanted;
    for (int i = 0; i < n; i++)
        if (has_whole(t, wanted[i].name))
            *wanted[i].to = cli_make_like(&t->p, t->with->dtype, wanted[i].like);
    if (!cli_stopped(&t->p))
        posenc_attend_backward(t->p.plan, in, &g, t->p.work, &t->p.err);
    for (int i = 0; i < n; i++)
        if (wanted[i].to->data)
            compare_whole(t, CLI_GRADIENT, wanted[i].name, wanted[i].to);
    cli_trial_compare_param_gradients(t, 0);
}

static posenc_attend_in attention_inputs(cli_trial *t)
{
    posenc_attend_in in = {.q     = whole(t, "in_q"),
                           .k     = whole(t, "in_k"),
                           .v     = whole(t, "in_v"),
                           .q_pos = posenc_positions_range((double)t->c->q_offset, 1),
                           .k_pos = posenc_positions_range(0, 1)};
    in.allowed          = cli_convert(&t->p, POSENC_DTYPE_U8, cli_trial_find(t, "in_allow"));
    /* one list of segments: queries and keys are the same tokens */
    in.q_segments = cli_convert(&t->p, POSENC_DTYPE_I64, cli_trial_find(t, "in_segment_ids"));
    in.k_segments = in.q_segments;
    if (in.q.ndim != 4 || in.k.ndim != 4 || in.v.ndim != 4)
        cli_refuse(&t->p, "in_q, in_k, in_v have %d, %d, %d axes; they must be [B,H,L,D]", in.q.ndim,
                   in.k.ndim, in.v.ndim);
    return in;
}

void cli_run_attention(cli_trial *t)
{
    cli_problem *p = &t->p;
    const int    mask =
        (t->c->causal ? POSENC_MASK_CAUSAL : 0) | (cli_trial_has(t, "in_allow") ? POSENC_MASK_EXPLICIT : 0);
    posenc_attend_in  in   = attention_inputs(t);
    const posenc_dims dims = cli_attention_dims(&in.q, &in.k, &in.v);
    if (cli_stopped(p) ||
        !cli_trial_prepare(t, &dims, mask, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_SCORES))
        return;
    in.params = p->params;

    posenc_attend_out out = {0};
    out.o           = cli_make(p, t->with->dtype, 4, (const int64_t[4]){dims.B, dims.H, dims.Lq, dims.Dv});
    out.lse         = cli_make(p, t->with->dtype, 3, (const int64_t[3]){dims.B, dims.H, dims.Lq});
    posenc_tensor S = cli_make(p, t->with->dtype, 4, (const int64_t[4]){dims.B, dims.H, dims.Lq, dims.Lk});
    if (cli_stopped(p) || posenc_scores(p->plan, &in, &S, p->work, &p->err) ||
        posenc_attend(p->plan, &in, &out, p->work, &p->err))
        return;
    cli_trial_compare(t, CLI_OUTPUT, "out_score", &S, 0);
    cli_trial_compare(t, CLI_OUTPUT, "out_lse", &out.lse, 0);
    compare_whole(t, CLI_OUTPUT, "out_o", &out.o);
    compare_turned(t, &in);
    cli_compare_inside(t, &in);
    if (!cli_stopped(p) && has_whole(t, "gin_do"))
        run_attention_back(t, &in, &out);
}
