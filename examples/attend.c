/* SPDX-License-Identifier: MIT */
/*
 * attend.c: positions in your own buffers: RoPE by itself, then attention with ALiBi
 *
 *     cc attend.c $(pkg-config --cflags --libs posenc) -lm -o attend && ./attend
 *
 * Both lines that it prints can be checked by hand. A rotation keeps lengths, so they change only by
 * rounding. And where all keys are zero only ALiBi tells them apart: head 0 of 8 has slope 1/2, its weights
 * fall by exp(-1/2) per token, so on average it looks sum t e^(-t/2) / sum e^(-t/2) = 1 / (sqrt(e) - 1)
 * tokens back.
 */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { H = 8, L = 64, D = 32, N = H * L * D };
static float q[N], k[N], v[N], o[N], rotated[N], slopes[H];

int main(void)
{
    const int64_t     shape[] = {1, H, L, D}, heads[] = {H};
    const posenc_dims dims = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};
    posenc_tensor     Q = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, shape), K = Q, V = Q, O = Q, T = Q;
    posenc_tensor     S       = posenc_tensor_contiguous(slopes, POSENC_DTYPE_F32, 1, heads);
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_workspace  work;
    posenc_error      err;
    K.data = k, V.data = v, O.data = o, T.data = rotated, options.mask = POSENC_MASK_CAUSAL;
    for (int i = 0; i < N; i++)
        q[i] = sinf((float)i), v[i] = (float)(i / D % L); /* a value is its position, in every channel */

    /* Prepare: checks and allocates. */
    if (posenc_encoding_create(&e, "rope[base=5e5]+alibi", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, &options, &err) || posenc_param_init(e, &dims, &S, 0, &err) ||
        posenc_workspace_create(&work, plan, POSENC_RUN_FORWARD, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;

    /* Run: allocates nothing. posenc_attend rotates q and k itself; posenc_rotate is for a kernel of your
       own. */
    const posenc_rotate_io  rows = {.size = sizeof rows, .q = Q, .to_q = T, .direction = 1};
    const posenc_attend_in  in   = {.size = sizeof in, .q = Q, .k = K, .v = V, .params = &S};
    const posenc_attend_out out  = {.size = sizeof out, .o = O};
    if (posenc_rotate(plan, &rows, &work, &err) || posenc_attend(plan, &in, &out, &work, &err))
        return fprintf(stderr, "%s\n", err.message), 1;

    double before = 0, after = 0;
    for (int i = 0; i < N; i++)
        before += (double)q[i] * q[i], after += (double)rotated[i] * rotated[i];
    const double factor = sqrt(after / before), back = L - 1 - o[(L - 1) * D], want = 1 / (sqrt(exp(1)) - 1);
    printf("RoPE changed the length of q by a factor of %.6f\n", factor);
    printf("ALiBi's head 0 looks %.4f tokens back; 1 / (sqrt(e) - 1) = %.4f\n", back, want);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return fabs(factor - 1) < 1e-6 && fabs(back - want) < 1e-4 ? 0 : 1;
}
