/* SPDX-License-Identifier: MIT */
/*
 * trial_rows.c: cases of encodings at the input: rows of a table
 *
 * The in_* and par_* arrays say which positions the rows have and what they are made of; the library is asked
 * for forward and backward, and every out_* and g_* array that the file has is measured.
 */
#include "verify/trial.h"

#include <math.h>
#include <posenc/positions.h>
#include <stdlib.h>
#include <string.h>

static double real_setting(const posenc_case *c, const char *name, double fallback)
{
    const char *text = pe_trial_setting(c, name);
    return text ? strtod(text, NULL) : fallback;
}

static int setting_is(const posenc_case *c, const char *name, const char *word)
{
    const char  *text = pe_trial_setting(c, name);
    const size_t n    = strlen(word);
    return text && !strncmp(text, word, n) && (!text[n] || text[n] == ' ');
}

/* ---------------------------------------------------------------- place input --------------- */

/* An array that says where rows stand, and how many axes it has if it does so for every item of a batch:
   `axes` for one coordinate, where several count one more. */
typedef struct position_array {
    const char *name;
    int         axes, has_coordinates;
    posenc_positions (*positions)(pe_trial *t, const char *name);
} position_array;

/* fairseq's rule numbers the tokens; the numbers are compared as well. */
static posenc_positions token_positions(pe_trial *t, const char *name)
{
    const posenc_tensor *tokens = pe_trial_find(t, name);
    posenc_tensor        pos    = pe_calc_make_like(&t->p, POSENC_DTYPE_I64, tokens);
    if (!pe_calc_failed(&t->p))
        posenc_positions_fairseq(tokens, pe_calc_whole(real_setting(t->c, "padding_idx", 1)), &pos,
                                 &t->p.err);
    pe_trial_compare(t, PE_CASE_INDEX, "out_pos", &pos, 0);
    return posenc_positions_array(pos);
}

/* DETR's rule counts the pixels that are no padding. */
static posenc_positions mask_positions(pe_trial *t, const char *name)
{
    const posenc_tensor *mask = pe_trial_find(t, name);
    if (mask->ndim != 3) {
        pe_calc_refuse(&t->p, "in_mask_true_is_padding has %d axes; it must be [B,h,w]", (int)mask->ndim);
        return posenc_positions_range(0, 1);
    }
    const int64_t shape[3] = {mask->shape[0], mask->shape[1] * mask->shape[2], 2};
    posenc_tensor valid    = pe_calc_make(&t->p, POSENC_DTYPE_U8, 3, mask->shape),
                  pos      = pe_calc_make(&t->p, POSENC_DTYPE_F64, 3, shape);
    for (int64_t i = 0; valid.data && i < pe_tensor_elements(mask); i++)
        ((unsigned char *)valid.data)[i] = pe_calc_element(mask, i) == 0;
    if (!pe_calc_failed(&t->p))
        posenc_positions_detr(&valid, setting_is(t->c, "normalize", "yes"), real_setting(t->c, "eps", 1e-6),
                              &pos, &t->p.err);
    return posenc_positions_array(pos);
}

static const position_array position_arrays[] = {{"in_tokens", 2, 0, token_positions},
                                                 {"in_mask_true_is_padding", 3, 0, mask_positions},
                                                 {"in_ids", 2, 1, pe_trial_positions},
                                                 {"in_pos", 2, 1, pe_trial_positions},
                                                 {"in_t", 2, 1, pe_trial_positions}};

/* Which of them the case has, or NULL. */
static const position_array *find_place(const pe_trial *t)
{
    for (size_t i = 0; i < sizeof position_arrays / sizeof *position_arrays; i++)
        if (pe_trial_has(t, position_arrays[i].name))
            return &position_arrays[i];
    return NULL;
}

/* Items of the batch. All other axes but the last are a sequence, or a grid whose tokens are one. */
static int64_t batch_of(pe_trial *t, const posenc_tensor *x)
{
    const position_array *where = find_place(t);
    if (x)
        return x->ndim == 3 ? x->shape[0] : 1;
    if (!where)
        return 1;
    const posenc_tensor *at   = pe_trial_find(t, where->name);
    const int            more = where->has_coordinates && posenc_rows_coordinates(t->p.e) > 1;
    return at->ndim == where->axes + more ? at->shape[0] : 1;
}

/* An array of the case as [B,L,d]. */
static posenc_tensor rows_of(pe_trial *t, const char *name, const int64_t shape[3])
{
    const posenc_tensor x    = pe_trial_numbers(t, name),
                        rows = posenc_tensor_contiguous(x.data, x.dtype, 3, shape);
    if (x.data && pe_tensor_elements(&x) != pe_tensor_elements(&rows))
        pe_calc_refuse(&t->p, "%s has %lld numbers; with out_y it must have %lld", name,
                       (long long)pe_tensor_elements(&x), (long long)pe_tensor_elements(&rows));
    return x.data ? rows : x;
}

/* How far the angle of each row may be off. A frequency of a table that learns nothing is at most 1, times
   the setting `scale` where it has one, so no angle is larger than its position, in the largest
   coordinate. */
static const double *row_angles(pe_trial *t, const posenc_positions *pos, int64_t B, int64_t L)
{
    posenc_tensor angles = pe_calc_make(&t->p, POSENC_DTYPE_F64, 2, (const int64_t[2]){B, L});
    if (!angles.data || posenc_param_count(t->p.e) > 0)
        return NULL;
    const int64_t N     = pos->array.data ? posenc_rows_coordinates(t->p.e) : 1;
    const int64_t given = pos->array.data ? pe_tensor_elements(&pos->array) / N : 0;
    const double  scale = isnan(t->c->scale) ? 1 : fabs(t->c->scale);
    for (int64_t i = 0; i < B * L; i++) {
        double most = given ? 0 : pos->start + (double)(i % L);
        for (int64_t c = 0; given && c < N; c++)
            most = fmax(most, fabs(pe_calc_element(&pos->array, i % given * N + c)));
        ((double *)angles.data)[i] = ldexp(scale * most, -52);
    }
    return angles.data;
}

/* Backward through rows, whose cotangent is `dy`. */
static void run_rows_back(pe_trial *t, const posenc_rows_in *in, posenc_tensor dy, double angle)
{
    posenc_rows_grad grad = {.size = sizeof grad, .dy = dy, .dparams = t->dparams};
    if (pe_trial_has(t, "g_x"))
        grad.dx = pe_calc_make_like(&t->p, dy.dtype, &dy);
    if (!pe_calc_failed(&t->p))
        posenc_rows_backward(t->p.plan, in, &grad, &t->p.work, &t->p.err);
    if (grad.dx.data)
        pe_trial_compare(t, PE_CASE_GRADIENT, "g_x", &grad.dx, 0);
    pe_trial_compare_param_gradients(t, angle);
}

/* out_u [n,d]: rows that a table of n rows has below the one it shows. A position of two equal digits k has
   only u_k. */
static void compare_digits(pe_trial *t)
{
    const posenc_tensor *want = pe_trial_has(t, "out_u") ? pe_trial_find(t, "out_u") : NULL;
    if (!want || want->ndim != 2 || pe_calc_failed(&t->p))
        return;
    const posenc_rows_in in = {.size   = sizeof in,
                               .pos    = posenc_positions_range(0, (double)want->shape[0] + 1),
                               .params = t->p.params};
    posenc_tensor        u =
        pe_calc_make(&t->p, t->with->dtype, 3, (const int64_t[3]){1, want->shape[0], want->shape[1]});
    if (!pe_calc_failed(&t->p))
        posenc_rows(t->p.plan, &in, &u, &t->p.work, &t->p.err);
    pe_trial_compare(t, PE_CASE_OUTPUT, "out_u", &u, 0);
}

static void run_vectors(pe_trial *t)
{
    static const char *const needed[] = {"out_y", NULL};
    if (!pe_trial_need(t, needed))
        return;
    const posenc_tensor *want = pe_trial_find(t, "out_y"), *x = pe_trial_find(t, "in_x");
    const posenc_tensor *like = x ? x : want;
    int64_t shape[3] = {batch_of(t, x), 0, like->ndim ? like->shape[like->ndim - 1] : 1}; /* [B,L,d] */
    if (shape[0] * shape[2] > 0)
        shape[1] = pe_tensor_elements(like) / (shape[0] * shape[2]);
    const double dim =
        real_setting(t->c, "dim", 0); /* a plan for a huge one would keep us busy for nothing */
    if (dim > (double)pe_tensor_elements(want))
        pe_calc_refuse(&t->p, "its settings have dim = %.9g, but out_y has only %lld numbers", dim,
                       (long long)pe_tensor_elements(want));
    const posenc_dims dims = {.B = shape[0], .Lq = shape[1], .Lk = shape[1], .d_model = shape[2]};
    if (!pe_trial_prepare(t, &dims, POSENC_MASK_NONE, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD))
        return;
    const int64_t width = posenc_rows_width(t->p.plan), all = shape[1] * shape[2];
    if (width > 0 && all % width == 0) { /* a row may be several vectors, one axis of the case's arrays */
        shape[1] = all / width;
        shape[2] = width;
    }

    const position_array *where = find_place(t);
    posenc_rows_in        in    = {.size = sizeof in, .params = t->p.params};
    posenc_tensor         y     = pe_calc_make(&t->p, t->with->dtype, 3, shape);
    in.pos                      = where ? where->positions(t, where->name) : posenc_positions_range(0, 1);
    if (x)
        in.x = rows_of(t, "in_x", shape);
    const double *angles = row_angles(t, &in.pos, shape[0], shape[1]);
    if (pe_calc_failed(&t->p) || posenc_rows(t->p.plan, &in, &y, &t->p.work, &t->p.err))
        return;
    const int same_rows = want->ndim && want->shape[want->ndim - 1] == shape[2];
    if (pe_tensor_elements(want) == pe_tensor_elements(&y) && (same_rows || !angles)) /* a grid [h,w,d] too */
        y = posenc_tensor_contiguous(y.data, y.dtype, want->ndim, want->shape);
    if (setting_is(t->c, "solver", "exact"))
        pe_trial_compare(t, PE_CASE_SOLVED, "out_y", &y, 0);
    else
        pe_trial_compare_rows(t, "out_y", &y, angles);
    compare_digits(t);
    if (pe_trial_has(t, "gin_dy"))
        run_rows_back(t, &in, rows_of(t, "gin_dy", shape), 0);
}

/* ---------------------------------------------------------------- words --------------------- */

/* (id, 0), (id, 1), ... for tokens [B,L]: the word in column s has position s. */
static posenc_positions word_positions(pe_trial *t, const posenc_tensor *tokens)
{
    const int64_t L   = tokens->shape[1];
    posenc_tensor pos = pe_calc_make(&t->p, POSENC_DTYPE_I64, 3, (const int64_t[3]){tokens->shape[0], L, 2});
    int64_t      *place = pos.data;
    for (int64_t i = 0; place && i < pe_tensor_elements(tokens); i++) {
        place[2 * i]     = pe_calc_whole(pe_calc_element(tokens, i));
        place[2 * i + 1] = i % L;
    }
    return posenc_positions_array(pos);
}

/* max |x|, at least 1. */
static double at_least_one(const posenc_tensor *x)
{
    return x ? fmax(1, pe_trial_largest(x)) : 1;
}

/* How far the number at the end of an angle may be off: a frequency that is given moves its angle by 2^-24 of
   itself when it is rounded to float32, and a word's amplitude is as large as its two numbers together. */
static double word_slack(pe_trial *t, int64_t L)
{
    const double furthest = (double)L + fabs(real_setting(t->c, "position_start", 0));
    const double most = at_least_one(pe_trial_find(t, "par_omega")) * at_least_one(pe_trial_find(t, "par_r"));
    return t->with->dtype == POSENC_DTYPE_F32 ? ldexp(furthest * most, -24) : 0;
}

/* Rows of complex numbers that depend on words: in_tokens [B,L] are their ids, out_re and out_im [B,L,d] one
   row [re | im]. */
static void run_words(pe_trial *t)
{
    static const char *const needed[] = {"in_tokens", "out_re", "out_im", NULL}, *const back[] = {"gin_dre",
                                                                                                  "gin_dim",
                                                                                                  NULL};
    if (!pe_trial_need(t, needed))
        return;
    const posenc_tensor *tokens = pe_trial_find(t, "in_tokens"), *want = pe_trial_find(t, "out_re");
    if (tokens->ndim != 2 || want->ndim != 3) {
        pe_calc_refuse(&t->p, "in_tokens has %d axes and out_re %d; they must be [B,L] and [B,L,d]",
                       (int)tokens->ndim, (int)want->ndim);
        return;
    }
    const int64_t     shape[3] = {tokens->shape[0], tokens->shape[1], 2 * want->shape[2]};
    const posenc_dims dims     = {.B = shape[0], .Lq = shape[1], .Lk = shape[1], .d_model = shape[2]};
    if (!pe_trial_prepare(t, &dims, POSENC_MASK_NONE, POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD))
        return;
    const posenc_rows_in in    = {.size = sizeof in, .pos = word_positions(t, tokens), .params = t->p.params};
    posenc_tensor        y     = pe_calc_make(&t->p, t->with->dtype, 3, shape);
    const double         angle = word_slack(t, shape[1]);
    if (pe_calc_failed(&t->p) || posenc_rows(t->p.plan, &in, &y, &t->p.work, &t->p.err))
        return;
    pe_trial_compare_parts(t, PE_CASE_OUTPUT, needed + 1, &y, angle);
    if (pe_trial_has(t, "gin_dre") && pe_trial_need(t, back))
        run_rows_back(t, &in, pe_trial_join(t, back), angle);
}

void pe_trial_rows(pe_trial *t)
{
    if (pe_trial_has(t, "out_re"))
        run_words(t);
    else
        run_vectors(t);
}
