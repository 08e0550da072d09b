/* SPDX-License-Identifier: MIT */
/*
 * test_bias_backward: posenc_bias_backward against differences of posenc_bias, encoding by encoding
 *
 * The oracle is a central difference of sum(dbias * bias) in each of a few numbers of every parameter. Step
 * 1e-6 of numbers near 1 in double: rounding is 1e-16/1e-6 and curvature 1e-12, so 1e-6 of the largest
 * gradient holds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <posenc/scores.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workspace.h"

enum { H = 2, L = 6, D = 8, PARAMS = 16, NUMBERS = 1 << 15 };

typedef struct subject {
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_workspace forward, backward;
    int              count;
    posenc_tensor    params[PARAMS], dparams[PARAMS];
    double           numbers[PARAMS][NUMBERS], gradients[PARAMS][NUMBERS];
    posenc_attend_in in;
    double           bias[H * L * L], dbias[H * L * L];
} subject;

/* Where the default does not fit six tokens. */
static const char *spec_of(const char *name)
{
    static const char *const fitting[][2] = {{"swin", "swin[window=2x3]"},
                                             {"swin_v2", "swin_v2[window=2x3]"},
                                             {"tupe", "tupe[cls=no]"}, /* that row learns nothing */
                                             {"fox", "fox[form=constant:bidirectional=yes]"},
                                             {"absolute_distance", "absolute_distance[grid=6x1]"}};
    for (size_t i = 0; i < sizeof fitting / sizeof *fitting; i++)
        if (!strcmp(fitting[i][0], name))
            return fitting[i][1];
    return name;
}

static posenc_tensor square(double *numbers)
{
    return posenc_tensor_contiguous(numbers, POSENC_DTYPE_F64, 3, (int64_t[]){H, L, L});
}

static int64_t elements(const posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    return n;
}

static void make_params(subject *s, const posenc_dims *dims)
{
    s->count = posenc_param_count(s->e);
    assert_true(s->count <= PARAMS);
    for (int i = 0; i < s->count; i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        assert_int_equal(posenc_param_shape(s->e, dims, i, &ndim, shape, NULL), POSENC_OK);
        s->params[i]  = posenc_tensor_contiguous(s->numbers[i], POSENC_DTYPE_F64, ndim, shape);
        s->dparams[i] = posenc_tensor_contiguous(s->gradients[i], POSENC_DTYPE_F64, ndim, shape);
        assert_true(elements(&s->params[i]) <= NUMBERS);
    }
    assert_int_equal(posenc_param_init(s->e, dims, s->params, 1, NULL), POSENC_OK);
    for (int i = 0; i < s->count; i++)
        for (int64_t x = 0; x < elements(&s->params[i]); x++)
            s->numbers[i][x] += 0.05 + 0.1 * posenc_random_uniform(2, "move", (uint64_t)(i * NUMBERS + x));
}

static subject *prepare(const char *name)
{
    const posenc_dims dims    = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};
    posenc_options    options = posenc_options_default();
    subject          *s       = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(posenc_encoding_create(&s->e, spec_of(name), NULL, NULL), POSENC_OK);
    options.mask = posenc_encoding_find(name)->causal_only ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE;
    assert_int_equal(posenc_plan_create(&s->plan, s->e, &dims, &options, NULL), POSENC_OK);
    make_params(s, &dims);
    s->forward  = workspace_for(s->plan, POSENC_RUN_SCORES);
    s->backward = workspace_for(s->plan, POSENC_RUN_BIAS_BACKWARD);
    s->in = (posenc_attend_in){.size = sizeof s->in, .q = {.dtype = POSENC_DTYPE_F64}, .params = s->params};
    for (int x = 0; x < H * L * L; x++)
        s->dbias[x] = posenc_random_normal(3, "dbias", (uint64_t)x);
    return s;
}

static void drop(subject *s)
{
    posenc_workspace_free(&s->forward);
    posenc_workspace_free(&s->backward);
    posenc_plan_free(s->plan);
    posenc_encoding_free(s->e);
    free(s);
}

/* sum(dbias * bias) */
static double value(subject *s)
{
    posenc_tensor bias = square(s->bias);
    double        sum  = 0;
    assert_int_equal(posenc_bias(s->plan, &s->in, &bias, &s->forward, NULL), POSENC_OK);
    for (int x = 0; x < H * L * L; x++)
        sum += s->bias[x] * s->dbias[x];
    return sum;
}

static double difference(subject *s, int param, int64_t x)
{
    const double at = s->numbers[param][x], step = 1e-6;
    s->numbers[param][x] = at + step;
    const double above   = value(s);
    s->numbers[param][x] = at - step;
    const double below   = value(s);
    s->numbers[param][x] = at;
    return (above - below) / (2 * step);
}

static void run_back(subject *s)
{
    const posenc_tensor dbias = square(s->dbias);
    posenc_error        err;
    if (posenc_bias_backward(s->plan, &s->in, &dbias, s->dparams, &s->backward, &err))
        fail_msg("%s", err.message);
}

static void gradients_are_differences_of_the_bias(void **state)
{
    (void)state;
    for (int n = 0; n < posenc_encoding_count(); n++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(n);
        if (info->place != POSENC_PLACE_SCORE)
            continue;
        subject *s    = prepare(info->name);
        double   most = 1;
        if (posenc_token_count(s->e)) { /* what is added follows from tokens */
            drop(s);
            continue;
        }
        run_back(s);
        for (int i = 0; i < s->count; i++)
            for (int64_t x = 0; x < elements(&s->params[i]); x++)
                most = fmax(most, fabs(s->gradients[i][x]));
        for (int i = 0; i < s->count; i++) {
            const int64_t size = elements(&s->params[i]);
            for (int64_t x = 0; x < size; x += size / 11 + 1) {
                const double want = difference(s, i, x);
                if (fabs(s->gradients[i][x] - want) > 1e-6 * most)
                    fail_msg("%s: d%s[%d] is %.9g; differences give %.9g", info->name,
                             posenc_param_name(s->e, i), (int)x, s->gradients[i][x], want);
            }
        }
        drop(s);
    }
}

static void gradients_add_to_what_is_there_and_those_without_data_are_not_wanted(void **state)
{
    subject *s = prepare("transformer_xl");
    double   once;
    (void)state;
    run_back(s);
    once               = s->gradients[2][5];
    s->dparams[1].data = NULL;
    run_back(s);
    assert_true(once != 0 && fabs(s->gradients[2][5] - 2 * once) <= 1e-12 * fabs(once));
    drop(s);
}

static void what_it_cannot_take_is_refused(void **state)
{
    subject      *s     = prepare("t5");
    posenc_tensor dbias = square(s->dbias);
    posenc_error  err;
    (void)state;
    assert_int_equal(posenc_bias_backward(s->plan, &s->in, &dbias, NULL, &s->backward, &err),
                     POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_bias_backward(s->plan, &s->in, NULL, s->dparams, &s->backward, &err),
                     POSENC_ERROR_ARGUMENT);
    dbias.shape[0] = H + 1;
    assert_int_equal(posenc_bias_backward(s->plan, &s->in, &dbias, s->dparams, &s->backward, &err),
                     POSENC_ERROR_SHAPE);
    dbias       = square(s->dbias);
    dbias.dtype = POSENC_DTYPE_I64;
    assert_int_equal(posenc_bias_backward(s->plan, &s->in, &dbias, s->dparams, &s->backward, &err),
                     POSENC_ERROR_DTYPE);
    dbias             = square(s->dbias);
    s->backward.bytes = 64;
    assert_int_equal(posenc_bias_backward(s->plan, &s->in, &dbias, s->dparams, &s->backward, &err),
                     POSENC_ERROR_WORKSPACE);
    for (int x = 0; x < NUMBERS; x++)
        assert_true(s->gradients[0][x] == 0);
    drop(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_differences_of_the_bias),
        cmocka_unit_test(gradients_add_to_what_is_there_and_those_without_data_are_not_wanted),
        cmocka_unit_test(what_it_cannot_take_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
