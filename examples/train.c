/* SPDX-License-Identifier: MIT */
/*
 * train.c: training through attention: forward, loss, backward, a step downhill, three hundred times
 *
 *     cc train.c $(pkg-config --cflags --libs posenc) -lm -o train && ./train
 *
 * Queries and keys are zero, so only the encoding can tell keys apart: T5's table, one number for each head
 * and bucket of distances, which starts at zero. The target of head h is twice the token h + 1 places back.
 * To reach it, the table has to single out one distance for each head, and a gain between tokens and values,
 * which is not the library's but stands for the layers before, has to become 2. Both are trained through one
 * backward call: the gradient of the table comes out of it, and that of the gain continues from dv.
 */
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>

enum { H = 4, L = 64, D = 16, N = H * L * D, BUCKETS = 32, STEPS = 300 };
static float q[N], x[N], v[N], o[N], lse[H * L], dout[N], dv[N], table[BUCKETS * H], dtable[BUCKETS * H];

/* Mean of the squared errors of o; dout becomes its gradient. The first tokens have nothing to look back at.
 */
static double loss(void)
{
    double sum = 0;
    for (int h = 0; h < H; h++)
        for (int n = (h * L + h + 1) * D; n < (h + 1) * L * D; n++) {
            const float error = o[n] - 2 * x[n - (h + 1) * D];
            sum += (double)error * (double)error / N;
            dout[n] = 2 * error / N;
        }
    return sum;
}

int main(void)
{
    const int64_t     shape[] = {1, H, L, D}, rows[] = {1, H, L}, buckets[] = {BUCKETS, H};
    const posenc_dims dims    = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_workspace  work;
    posenc_error      err;
    options.mask = POSENC_MASK_CAUSAL;
    for (int n = 0; n < N; n++)
        x[n] = sinf(1.7f * (float)n * (float)n);

    /* A workspace for both directions. */
    if (posenc_encoding_create(&e, "t5[bidirectional=no]", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, &options, &err) ||
        posenc_workspace_create(&work, plan, POSENC_RUN_ATTEND | POSENC_RUN_ATTEND_BACKWARD, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;

    /* The backward reads o and lse, so the forward writes both. What has no data is not wanted: dq and dk. */
    posenc_tensor Q = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, shape), O = Q, V = Q, dO = Q, dV = Q;
    posenc_tensor lses    = posenc_tensor_contiguous(lse, POSENC_DTYPE_F32, 3, rows);
    posenc_tensor params  = posenc_tensor_contiguous(table, POSENC_DTYPE_F32, 2, buckets);
    posenc_tensor dparams = posenc_tensor_contiguous(dtable, POSENC_DTYPE_F32, 2, buckets);
    O.data = o, V.data = v, dO.data = dout, dV.data = dv;
    const posenc_attend_in   in   = {.size = sizeof in, .q = Q, .k = Q, .v = V, .params = &params};
    const posenc_attend_out  out  = {.size = sizeof out, .o = O, .lse = lses};
    const posenc_attend_grad grad = {
        .size = sizeof grad, .o = O, .lse = lses, .dout = dO, .dv = dV, .dparams = &dparams};
    double first = 0, last = 0, gain = 1;
    for (int step = 0; step < STEPS; step++) {
        for (int n = 0; n < N; n++)
            v[n] = (float)gain * x[n];
        if (posenc_attend(plan, &in, &out, &work, &err))
            return fprintf(stderr, "%s\n", err.message), 1;
        last  = loss();
        first = step ? first : last;
        memset(dtable, 0, sizeof dtable); /* gradients of parameters add, those of q, k and v overwrite */
        if (posenc_attend_backward(plan, &in, &grad, &work, &err))
            return fprintf(stderr, "%s\n", err.message), 1;
        for (int n = 0; n < BUCKETS * H; n++)
            table[n] -= 40 * dtable[n];
        for (int n = 0; n < N; n++)
            gain -= 0.3 * (double)(dv[n] * x[n]);
    }
    printf("The loss fell from %.3f to %.6f, the gain became %.3f\n", first, last, gain);
    int right = last < 0.01 * first && fabs(gain - 2) < 0.05;
    for (int h = 0; h < H; h++) {
        int best = 0; /* up to distance 15 each bucket is one distance */
        for (int t = 1; t < 16; t++)
            best = table[t * H + h] > table[best * H + h] ? t : best;
        printf("Head %d looks %d back\n", h, best);
        right &= best == h + 1;
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return right ? 0 : 1;
}
