/* SPDX-License-Identifier: MIT */
/*
 * layers.c: a SPEC per layer, with windows and token inputs, all at once and token after token
 *
 *     cc layers.c $(pkg-config --cflags --libs posenc) -lm -o layers && ./layers 'fox[window=8]:3/nope'
 *
 * Three layers that see 8 keys and forget what the tokens tell them to (fox, whose gates f a model projects
 * from its hidden states), then one that sees everything. A window is the mask's, so posenc_layer_read takes
 * it out of the SPEC. Decoding needs the token inputs of all keys so far; a cache keeps their running sums
 * instead (posenc_token_sums). What one layer gives is the next one's q, k and v, as if the layers had no
 * weights.
 */
#include <math.h>
#include <posenc/posenc.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>

enum { H = 2, L = 40, D = 16, LAYERS = 4, MOST = 8 };

static void require(int is_met, const char *sentence)
{
    if (!is_met)
        fprintf(stderr, "layers: %s\n", sentence), exit(1);
}

/* Numbers between -1 and 1 in place of what a model computes. */
static posenc_tensor noise(int32_t ndim, const int64_t *shape)
{
    static uint32_t state = 1;
    int64_t         count = 1;
    for (int32_t a = 0; a < ndim; a++)
        count *= shape[a];
    float *x = malloc((size_t)count * sizeof *x);
    require(x != NULL, "out of memory");
    for (int64_t n = 0; n < count; n++)
        x[n] = (float)(int32_t)(state = state * 1664525u + 1013904223u) * 0x1p-31f;
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, ndim, shape);
}

static posenc_tensor rows(posenc_tensor t, int64_t from, int64_t n) /* a view of tokens */
{
    t.data = (float *)t.data + from * t.stride[2], t.shape[2] = n;
    return t;
}

/* x becomes what the layer gives; the largest difference that decoding makes. */
static double run(posenc_tensor *x, const posenc_layer *layer)
{
    const posenc_dims dims    = {.B = 1, .H = H, .Lq = L, .Lk = L, .D = D};
    posenc_options    options = posenc_options_default();
    posenc_tensor     o = noise(4, x->shape), one = noise(4, x->shape), params[MOST], made[MOST], seen[MOST];
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_workspace  work;
    posenc_error      err;
    int64_t           shape[POSENC_MAX_DIMS];
    int32_t           ndim;
    double            off = 0;
    options.mask          = POSENC_MASK_CAUSAL | (layer->window ? POSENC_MASK_WINDOW : 0);
    options.window        = layer->window;
    require(!posenc_encoding_create(&e, layer->spec, NULL, &err) &&
                !posenc_plan_create(&plan, e, &dims, &options, &err) &&
                !posenc_workspace_create(&work, plan, POSENC_RUN_ATTEND | POSENC_RUN_DECODE, NULL, &err),
            err.message);
    const int count = posenc_param_count(e), inputs = posenc_token_count(e);
    require(count <= MOST && inputs <= MOST, "more parameters or token inputs than this page has room for");
    for (int i = 0; i < count; i++) {
        require(!posenc_param_shape(e, &dims, i, &ndim, shape, &err), err.message);
        params[i] = noise(ndim, shape);
    }
    require(!posenc_param_init(e, &dims, params, 0, &err), err.message);
    for (int i = 0; i < inputs; i++) { /* one for all heads */
        require(!posenc_token_shape(e, &dims, i, shape, &err), err.message);
        shape[1] = 1, made[i] = noise(4, shape);
    }
    posenc_attend_in  in  = {.size = sizeof in, .q = *x, .k = *x, .v = *x, .params = params, .tokens = made};
    posenc_attend_out out = {.size = sizeof out, .o = o};
    require(!posenc_attend(plan, &in, &out, &work, &err), err.message);
    for (int n = 0; n < L; n++) { /* the keys so far are the cache */
        in.q = rows(*x, n, 1), in.k = in.v = rows(*x, 0, n + 1), in.tokens = seen, out.o = rows(one, n, 1);
        in.q_pos = posenc_positions_range(n, 1);
        for (int i = 0; i < inputs; i++)
            seen[i] = posenc_token_describe(e, i)->of_keys ? rows(made[i], 0, n + 1) : rows(made[i], n, 1);
        require(!posenc_attend(plan, &in, &out, &work, &err), err.message);
    }
    for (int n = 0; n < H * L * D; n++)
        off = fmax(off, fabs((double)((float *)o.data)[n] - (double)((float *)one.data)[n]));
    for (int i = 0; i < count + inputs; i++)
        free(i < count ? params[i].data : made[i - count].data);
    posenc_workspace_free(&work), posenc_plan_free(plan), posenc_encoding_free(e);
    free(one.data), free(x->data);
    *x = o;
    return off;
}

int main(int argc, char **argv)
{
    const int64_t shape[] = {1, H, L, D};
    posenc_tensor x       = noise(4, shape);
    posenc_layer  layer;
    posenc_error  err;
    double        most = 0;
    for (int l = 0; l < LAYERS; l++) {
        require(!posenc_layer_read(&layer, argc > 1 ? argv[1] : "fox[window=8]:3/nope", l, &err),
                err.message);
        const double off = run(&x, &layer);
        most             = fmax(most, off);
        printf("layer %d: %s, %s%.0lld: decoding differs by %.1g\n", l, layer.spec,
               layer.window ? "window " : "no window", (long long)layer.window, off);
    }
    free(x.data);
    return most < 1e-5 ? 0 : 1;
}
