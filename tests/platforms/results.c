/* SPDX-License-Identifier: MIT */
/*
 * results: what every encoding computes, as text, to be compared between machines, compilers and builds
 *
 * A line for each encoding, storage type and result: a name, then all its numbers with every digit. Inputs
 * are drawn by counting, so they are the same everywhere. F64 runs on the reference executor, F32 on the
 * tiled one.
 */
#include <posenc/registry.h>
#include <stdio.h>
#include <string.h>

enum { B = 1, H = 2, L = 24, D = 16, N = B * H * L * D, MOST = 1 << 16 };

typedef struct numbers {
    double wide[MOST];
    float  narrow[MOST];
} numbers;

static posenc_dtype type;

static posenc_tensor over(numbers *x, int ndim, const int64_t *shape)
{
    void *data = type == POSENC_DTYPE_F64 ? (void *)x->wide : (void *)x->narrow;
    return posenc_tensor_contiguous(data, type, ndim, shape);
}

static posenc_tensor drawn(numbers *x, const char *name, int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int a = 0; a < ndim; a++)
        n *= shape[a];
    for (int64_t i = 0; i < n && i < MOST; i++) {
        x->narrow[i] = (float)(posenc_random_uniform(27, name, (uint64_t)i) - 0.5);
        x->wide[i]   = (double)x->narrow[i];
    }
    return over(x, ndim, shape);
}

static void print(const char *encoding, const char *what, const numbers *x, int64_t n)
{
    printf("%s-%s-%s", encoding, type == POSENC_DTYPE_F64 ? "f64" : "f32", what);
    for (int64_t i = 0; i < n; i++)
        printf(" %.17g", type == POSENC_DTYPE_F64 ? x->wide[i] : (double)x->narrow[i]);
    putchar('\n');
}

static numbers q, k, v, o, lse, dout, dq, dk, dv, x, y, params[32], dparams[32], tokens[8];

static void attend(const posenc_encoding *e, const posenc_dims *dims, const posenc_plan *plan,
                   const char *name)
{
    const int64_t      heads[] = {B, H, L, D}, rows[] = {B, H, L};
    posenc_tensor      p[32], dp[32], t[8];
    posenc_workspace   work;
    posenc_error       err;
    posenc_attend_in   in       = {.size   = sizeof in,
                                   .q      = drawn(&q, "q", 4, heads),
                                   .k      = drawn(&k, "k", 4, heads),
                                   .v      = drawn(&v, "v", 4, heads),
                                   .params = p};
    posenc_attend_out  out      = {.size = sizeof out, .o = over(&o, 4, heads), .lse = over(&lse, 3, rows)};
    posenc_attend_grad grad     = {.size    = sizeof grad,
                                   .o       = out.o,
                                   .lse     = out.lse,
                                   .dout    = drawn(&dout, "dout", 4, heads),
                                   .dq      = over(&dq, 4, heads),
                                   .dk      = over(&dk, 4, heads),
                                   .dv      = over(&dv, 4, heads),
                                   .dparams = dp};
    int64_t            size[32] = {0};
    for (int i = 0; i < posenc_param_count(e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(e, dims, i, &ndim, shape, &err))
            return;
        size[i] = 1;
        for (int a = 0; a < ndim; a++)
            size[i] *= shape[a];
        if (size[i] > MOST)
            return;
        p[i]  = over(&params[i], ndim, shape);
        dp[i] = over(&dparams[i], ndim, shape);
        memset(&dparams[i], 0, sizeof dparams[i]);
    }
    for (int i = 0; i < posenc_token_count(e); i++) {
        int64_t shape[4];
        if (posenc_token_shape(e, dims, i, shape, &err))
            return;
        t[i]      = drawn(&tokens[i], posenc_token_name(e, i), 4, shape);
        in.tokens = t;
    }
    if (posenc_param_init(e, dims, p, 27, &err) ||
        posenc_workspace_create(&work, plan, POSENC_RUN_ATTEND | POSENC_RUN_ATTEND_BACKWARD, NULL, &err))
        return;
    if (!posenc_attend(plan, &in, &out, &work, &err)) {
        print(name, "o", &o, N);
        print(name, "lse", &lse, (int64_t)B * H * L);
        if (!posenc_attend_backward(plan, &in, &grad, &work, &err)) {
            print(name, "dq", &dq, N);
            print(name, "dk", &dk, N);
            print(name, "dv", &dv, N);
            for (int i = 0; i < posenc_param_count(e); i++)
                print(name, posenc_param_name(e, i), &dparams[i], size[i]);
        }
    }
    posenc_workspace_free(&work);
}

static void rows(const posenc_encoding *e, const posenc_dims *dims, const posenc_plan *plan, const char *name)
{
    const int64_t    shape[] = {B, L, posenc_rows_width(plan)};
    posenc_workspace work;
    posenc_error     err;
    posenc_tensor    p[32], to = over(&y, 3, shape);
    posenc_rows_in   in = {.size = sizeof in, .x = drawn(&x, "x", 3, shape), .params = p};
    for (int i = 0; i < posenc_param_count(e); i++) {
        int32_t ndim;
        int64_t sizes[POSENC_MAX_DIMS];
        int64_t n = 1;
        if (posenc_param_shape(e, dims, i, &ndim, sizes, &err))
            return;
        for (int a = 0; a < ndim; a++)
            n *= sizes[a];
        if (n > MOST)
            return;
        p[i] = over(&params[i], ndim, sizes);
    }
    if (posenc_param_init(e, dims, p, 27, &err) ||
        posenc_workspace_create(&work, plan, POSENC_RUN_ROWS, NULL, &err))
        return;
    if (!posenc_rows(plan, &in, &to, &work, &err))
        print(name, "y", &y, shape[0] * shape[1] * shape[2]);
    posenc_workspace_free(&work);
}

int main(void)
{
    const posenc_dims dims    = {.B = B, .H = H, .Lq = L, .Lk = L, .D = D};
    posenc_options    options = posenc_options_default();
    options.mask              = POSENC_MASK_CAUSAL;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        char                        settings[512];
        posenc_error                err;
        posenc_encoding            *e;
        if (posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, settings, sizeof settings, &err) ||
            posenc_encoding_create(&e, info->name, settings, &err)) {
            printf("%s-refused\n", info->name);
            continue;
        }
        for (int wide = 0; wide < 2; wide++) {
            posenc_plan *plan;
            type             = wide ? POSENC_DTYPE_F64 : POSENC_DTYPE_F32;
            options.executor = wide ? POSENC_EXECUTOR_REFERENCE : POSENC_EXECUTOR_TILED;
            if (posenc_plan_create(&plan, e, &dims, &options, &err)) {
                printf("%s-refused\n", info->name);
                continue;
            }
            if (info->place == POSENC_PLACE_INPUT)
                rows(e, &dims, plan, info->name);
            else
                attend(e, &dims, plan, info->name);
            posenc_plan_free(plan);
        }
        posenc_encoding_free(e);
    }
    return 0;
}
