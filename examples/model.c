/* SPDX-License-Identifier: MIT */
/*
 * model.c: from a model's file to a cache of rotated keys
 *
 *     cc model.c $(pkg-config --cflags --libs posenc_files posenc) -lm -o model && ./model config.json
 *
 * config.json, a .gguf, or a .safetensors beside its config.json says how the model's layers rotate. Engines
 * rotate a key once, when its token comes, and keep it so: then attention must not rotate again, and its plan
 * has `nope` in place of the rotary part. At the end the same is computed from the keys as they were, by a
 * plan that rotates inside. (A schedule that changes with the length of the sequence, as longrope does beyond
 * the trained one, changes keys that are in the cache already: posenc_rotary_rerotate moves them.)
 */
#include <math.h>
#include <posenc/files.h>
#include <stdio.h>
#include <stdlib.h>

enum { L = 48, LAYER = 0, MOST_PARAMS = 4 };

static int stop(const posenc_error *err)
{
    return fprintf(stderr, "model: %s\n", err->message), 1;
}

/* L rows of each head: numbers between -1 and 1 in place of what a model computes. */
static posenc_tensor noise(int64_t heads, int64_t D)
{
    static uint32_t state    = 1;
    const int64_t   shape[4] = {1, heads, L, D};
    float          *x        = malloc((size_t)(heads * L * D) * sizeof *x);
    for (int64_t n = 0; x && n < heads * L * D; n++)
        x[n] = (float)(int32_t)(state = state * 1664525u + 1013904223u) * 0x1p-31f;
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, shape);
}

/* n tokens from `from` on: a view. */
static posenc_tensor tokens(posenc_tensor t, int64_t from, int64_t n)
{
    t.data     = (float *)t.data + from * t.stride[2];
    t.shape[2] = n;
    return t;
}

/* What the file holds of the rotation's parameters: factors of frequencies. */
static int take_params(posenc_tensor params[MOST_PARAMS], const posenc_encoding *e,
                       const posenc_model_group *group)
{
    int found = 0;
    for (int i = 0; i < posenc_param_count(e) && i < MOST_PARAMS; i++)
        for (int p = 0; p < group->param_count; p++)
            if (!strcmp(posenc_param_name(e, i), group->params[p].name))
                params[i] = group->params[p].tensor, found++;
    return found == posenc_param_count(e);
}

int main(int argc, char **argv)
{
    posenc_model    *model;
    posenc_encoding *rope, *none;
    posenc_plan     *whole, *cached;
    posenc_workspace work, decode;
    posenc_tensor    params[MOST_PARAMS];
    posenc_options   options = posenc_options_default();
    posenc_error     err;
    if (argc != 2)
        return fprintf(stderr, "usage: model config.json\n"), 2;
    if (posenc_model_read(&model, argv[1], &err))
        return stop(&err);
    const posenc_model_group *group = posenc_model_group_at(model, posenc_model_group_of(model, LAYER));
    if (!group || strcmp(group->encoding, "rope") != 0 || !group->dims.H || !group->dims.D)
        return fprintf(stderr, "model: layer %d has no rotation, or the file does not say its heads\n",
                       LAYER),
               1;
    posenc_dims dims = group->dims;
    dims.B = 1, dims.Lq = dims.Lk = L, options.mask = POSENC_MASK_CAUSAL;

    /* The scale of the scores is the model's own and holds without the rotation too. */
    char               nope[64];
    const posenc_fact *scale = posenc_model_fact(group, "score_scale");
    snprintf(nope, sizeof nope, "nope[scale=%.17g]", scale ? scale->real : 1 / sqrt((double)dims.D));
    if (posenc_encoding_create(&rope, group->spec, NULL, &err) ||
        posenc_encoding_create(&none, nope, NULL, &err) ||
        posenc_plan_create(&whole, rope, &dims, &options, &err) ||
        posenc_plan_create(&cached, none, &dims, &options, &err) ||
        posenc_workspace_create(&work, whole, POSENC_RUN_FORWARD, NULL, &err) ||
        posenc_workspace_create(&decode, cached, POSENC_RUN_DECODE, NULL, &err))
        return stop(&err);
    const posenc_tensor q = noise(dims.H, dims.D), k = noise(dims.G, dims.D), v = noise(dims.G, dims.D),
                        turned = noise(dims.H, dims.D), cache = noise(dims.G, dims.D),
                        o = noise(dims.H, dims.D), want = noise(dims.H, dims.D);
    if (!take_params(params, rope, group) || !q.data || !k.data || !v.data || !turned.data || !cache.data ||
        !o.data || !want.data)
        return fprintf(stderr, "model: the file lacks a parameter of %s, or memory is short\n", group->spec),
               1;

    for (int64_t t = 0; t < L; t++) { /* token t: its key goes into the cache, its query sees what is there */
        const posenc_positions  here = posenc_positions_range((double)t, 1);
        const posenc_rotate_io  turn = {.size      = sizeof turn,
                                        .q         = tokens(q, t, 1),
                                        .k         = tokens(k, t, 1),
                                        .q_pos     = here,
                                        .k_pos     = here,
                                        .to_q      = tokens(turned, t, 1),
                                        .to_k      = tokens(cache, t, 1),
                                        .direction = 1,
                                        .params    = params};
        const posenc_attend_in  in   = {.size  = sizeof in,
                                        .q     = turn.to_q,
                                        .k     = tokens(cache, 0, t + 1),
                                        .v     = tokens(v, 0, t + 1),
                                        .q_pos = here};
        const posenc_attend_out out  = {.size = sizeof out, .o = tokens(o, t, 1)};
        if (posenc_rotate(whole, &turn, &work, &err) || posenc_attend(cached, &in, &out, &decode, &err))
            return stop(&err);
    }
    const posenc_attend_in  in  = {.size = sizeof in, .q = q, .k = k, .v = v, .params = params};
    const posenc_attend_out out = {.size = sizeof out, .o = want};
    if (posenc_attend(whole, &in, &out, &work, &err))
        return stop(&err);
    double off = 0;
    for (int64_t n = 0; n < dims.H * L * dims.D; n++)
        off = fmax(off, fabs((double)((float *)o.data)[n] - (double)((float *)want.data)[n]));
    printf("%s\n%d tokens, one by one from the cache and all at once, differ by %s\n", group->spec, L,
           off < 2e-6 ? "less than 2e-6" : "too much");
    const posenc_tensor *const all[] = {&q, &k, &v, &turned, &cache, &o, &want};
    for (int i = 0; i < 7; i++)
        free(all[i]->data);
    posenc_workspace_free(&work), posenc_workspace_free(&decode);
    posenc_plan_free(whole), posenc_plan_free(cached);
    posenc_encoding_free(rope), posenc_encoding_free(none);
    posenc_model_free(model);
    return off < 2e-6 ? 0 : 1;
}
