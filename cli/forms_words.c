/* SPDX-License-Identifier: MIT */
/*
 * forms_words: the form of a case whose rows are complex numbers that depend on words
 *
 * in_tokens [B,L] are ids of words, and the word in column s stands at position s: to the library that is one
 * position of two coordinates. Its rows [re | im] are two arrays in a case, out_re and out_im [B,L,d], and so
 * are their cotangents.
 */
#include "forms.h"

#include <math.h>
#include <string.h>

/* (id, 0), (id, 1), ... for tokens [B,L]. */
static posenc_positions word_positions(cli_trial *t, const posenc_tensor *tokens)
{
    const int64_t L     = tokens->shape[1];
    posenc_tensor pos   = cli_trial_make(t, POSENC_I64, 3, (const int64_t[3]){tokens->shape[0], L, 2});
    int64_t      *place = pos.data;
    for (int64_t i = 0; place && i < cli_element_count(tokens); i++) {
        place[2 * i]     = (int64_t)cli_element(tokens, i);
        place[2 * i + 1] = i % L;
    }
    return posenc_positions_array(pos);
}

/* Rows [re | im] and the two arrays they are in a case: copies one way or the other. */
static void split_rows(posenc_tensor *rows, posenc_tensor *half, int64_t from, int to_rows)
{
    const int64_t wide = rows->shape[2], d = wide / 2;
    const size_t  size = posenc_dtype_size(rows->dtype);
    for (int64_t s = 0; half->data && s < rows->shape[0] * rows->shape[1]; s++) {
        char *a = (char *)rows->data + (size_t)(s * wide + from) * size,
             *b = (char *)half->data + (size_t)(s * d) * size;
        memcpy(to_rows ? a : b, to_rows ? b : a, (size_t)d * size);
    }
}

/* max |x|, at least 1. */
static double largest(const posenc_tensor *x)
{
    double most = 1;
    for (int64_t i = 0; x && i < cli_element_count(x); i++)
        most = fmax(most, fabs(cli_element(x, i)));
    return most;
}

/* How far the number at the end of an angle may be off: a frequency that is given moves its angle by 2^-24 of
   itself when it is rounded to float32, and a word's amplitude is as large as its two numbers together. */
static double angle_slack(cli_trial *t, int64_t L)
{
    const double furthest = (double)L + fabs(cli_real_setting(t->c, "position_start", 0));
    const double most     = largest(cli_trial_find(t, "par_omega")) * largest(cli_trial_find(t, "par_r"));
    return t->with->dtype == POSENC_F32 ? ldexp(furthest * most, -24) : 0;
}

static posenc_status run_words_back(cli_trial *t, const posenc_rows_in *in, const int64_t shape[3],
                                    double angle, void *work)
{
    posenc_error     err;
    posenc_tensor    re = cli_trial_numbers(t, "gin_dre"), im = cli_trial_numbers(t, "gin_dim");
    posenc_rows_grad grad = {.dy = cli_trial_make(t, t->with->dtype, 3, shape), .dparams = t->dparams};
    if (t->status)
        return t->status;
    split_rows(&grad.dy, &re, 0, 1);
    split_rows(&grad.dy, &im, shape[2] / 2, 1);
    if (posenc_rows_backward(t->plan, in, &grad, work, &err))
        return cli_trial_refused(t, &err);
    cli_trial_compare_param_gradients(t, angle);
    return t->status;
}

posenc_status cli_run_words(cli_trial *t)
{
    static const char *const needed[] = {"in_tokens", "out_re", "out_im", NULL}, *const back[] = {"gin_dre",
                                                                                                  "gin_dim",
                                                                                                  NULL};
    posenc_error err;
    if (cli_trial_need(t, needed))
        return t->status;
    const posenc_tensor *tokens = cli_trial_find(t, "in_tokens"), *want = cli_trial_find(t, "out_re");
    if (tokens->ndim != 2 || want->ndim != 3)
        return cli_trial_fail(t, "in_tokens has %d axes and out_re %d; they must be [B,L] and [B,L,d]",
                              (int)tokens->ndim, (int)want->ndim);
    const int64_t     shape[3] = {tokens->shape[0], tokens->shape[1], 2 * want->shape[2]};
    const posenc_dims dims     = {.B = shape[0], .Lq = shape[1], .Lk = shape[1], .d_model = shape[2]};
    if (cli_trial_plan(t, &dims, POSENC_MASK_NONE) || cli_trial_params(t))
        return t->status;
    const posenc_rows_in in = {.pos = word_positions(t, tokens), .params = t->params};
    posenc_tensor        y  = cli_trial_make(t, t->with->dtype, 3, shape);
    posenc_tensor        re = cli_trial_make_like(t, t->with->dtype, want),
                  im        = cli_trial_make_like(t, t->with->dtype, want);
    void        *work       = cli_trial_workspace(t, t->plan, POSENC_FORWARD | POSENC_BACKWARD);
    const double angle      = angle_slack(t, shape[1]);
    if (t->status)
        return t->status;
    if (posenc_rows(t->plan, &in, &y, work, &err))
        return cli_trial_refused(t, &err);
    split_rows(&y, &re, 0, 0);
    split_rows(&y, &im, shape[2] / 2, 0);
    cli_trial_compare(t, CLI_OUTPUT, "out_re", &re, angle);
    cli_trial_compare(t, CLI_OUTPUT, "out_im", &im, angle);
    if (!cli_trial_has(t, "gin_dre") || cli_trial_need(t, back))
        return t->status;
    return run_words_back(t, &in, shape, angle, work);
}
