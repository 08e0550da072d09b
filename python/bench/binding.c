/* SPDX-License-Identifier: MIT */
/* binding.c: nanoseconds of one posenc_rotate in C, for binding.py, which loads this into the same process */
#include <posenc/posenc.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double rotation_ns(float *q, int64_t H, int64_t L, int64_t D, int n);

/* q [1,H,L,D], rotated in place n times; less than 0 after a failure. */
double rotation_ns(float *q, int64_t H, int64_t L, int64_t D, int n)
{
    const int64_t       shape[] = {1, H, L, D};
    const posenc_dims   dims    = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};
    posenc_options      options = posenc_options_default();
    posenc_encoding    *e       = NULL;
    posenc_plan        *plan    = NULL;
    posenc_workspace    work    = posenc_workspace_over(NULL, 0);
    const posenc_tensor x       = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, shape);
    posenc_rotate_io    io      = {.size = sizeof io, .q = x, .to_q = x, .direction = 1};
    double              result  = -1;
    io.q_pos                    = posenc_positions_range(1, 1);
    options.threads             = 1;
    if (posenc_encoding_create(&e, "rope", NULL, NULL) == POSENC_OK &&
        posenc_plan_create(&plan, e, &dims, &options, NULL) == POSENC_OK &&
        posenc_workspace_create(&work, plan, POSENC_RUN_ROTATE, NULL, NULL) == POSENC_OK) {
        const double start = now();
        int          fine  = 1;
        for (int i = 0; i < n; i++)
            fine &= posenc_rotate(plan, &io, &work, NULL) == POSENC_OK;
        result = fine ? (now() - start) / n : -1;
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return result;
}
