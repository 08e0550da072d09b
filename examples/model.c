/* SPDX-License-Identifier: MIT */
/*
 * model.c: from a model's file to a cache of rotated keys
 *
 *     cc model.c $(pkg-config --cflags --libs posenc_files posenc) -lm -o model && ./model config.json
 *
 * config.json, a .gguf, or a .safetensors beside its config.json says how the model's layers rotate. Engines
 * rotate a key once, when its token comes, and keep it so: then attention must not rotate again, and its plan
 * has `nope` in place of the rotary part. Before that the same is computed at once by a plan that rotates
 * inside. (Where a schedule changes with the length, posenc_rotary_rerotate moves keys that are cached.)
 */
#include <math.h>
#include <posenc/files.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { L = 48, LAYER = 0, MOST_PARAMS = 4 };

static void require(int is_met, const char *sentence)
{
    if (!is_met)
        fprintf(stderr, "model: %s\n", sentence), exit(1);
}

/* L rows of each head: numbers between -1 and 1 in place of what a model computes. */
static posenc_tensor noise(int64_t heads, int64_t D)
{
    static uint32_t state = 1;
    float          *x     = malloc((size_t)(heads * L * D) * sizeof *x);
    require(x != NULL, "out of memory");
    for (int64_t n = 0; n < heads * L * D; n++)
        x[n] = (float)(int32_t)(state = state * 1664525u + 1013904223u) * 0x1p-31f;
    return posenc_tensor_contiguous(x, POSENC_DTYPE_F32, 4, (const int64_t[]){1, heads, L, D});
}

static posenc_tensor tokens(posenc_tensor t, int64_t from, int64_t n) /* a view */
{
    t.data = (float *)t.data + from * t.stride[2], t.shape[2] = n;
    return t;
}

/* What holds without the rotation too (scale, softcap, temperature, sink): "nope[softcap=50]". */
static void without_rotation(char out[256], const char *spec)
{
    const posenc_setting_info *common;
    const int                  count = posenc_common_settings(&common);
    int                        used  = snprintf(out, 256, "nope[");
    for (const char *at = spec + strcspn(spec, "["); *at && *at != ']'; at += strcspn(at, ",]")) {
        const size_t length = strcspn(++at, ",]"), name = strcspn(at, "=");
        for (int i = 0; i < count && used < 256; i++)
            if (strlen(common[i].name) == name && !strncmp(common[i].name, at, name))
                used += snprintf(out + used, 256 - (size_t)used, "%.*s,", (int)length, at);
    }
    require(used < 256, "its SPEC is too long for this example");
    out[used - 1] = used > 5 ? ']' : 0;
}

static void read_params(posenc_tensor params[MOST_PARAMS], const posenc_encoding *e,
                        const posenc_arrays *held)
{
    for (int i = 0; i < posenc_param_count(e) && i < MOST_PARAMS; i++)
        params[i] = *posenc_arrays_find(held, posenc_param_name(e, i));
}

int main(int argc, char **argv)
{
    posenc_model    *model;
    posenc_encoding *rope, *none;
    posenc_plan     *whole, *cached;
    posenc_workspace work, decode;
    posenc_arrays    held = {0}; /* parameters: factors of frequencies, where the file has some */
    posenc_tensor    params[MOST_PARAMS], rest[MOST_PARAMS];
    posenc_options   options = posenc_options_default();
    posenc_error     err;
    require(argc == 2, "give it a model's file: model config.json");
    require(!posenc_model_read(&model, argv[1], &err), err.message);
    const int                 layers = posenc_model_group_of(model, LAYER);
    const posenc_model_group *group  = posenc_model_group_at(model, layers);
    require(group && !strcmp(group->encoding, "rope") && group->dims.H && group->dims.D,
            "its first layer does not rotate, or the file does not say its heads");
    require(!posenc_encoding_create(&rope, group->spec, NULL, &err), err.message);
    require(!posenc_model_params(&held, model, layers, LAYER, NULL, &err), err.message);

    posenc_dims dims = group->dims;
    char        nope[256];
    without_rotation(nope, group->spec);
    dims.B = 1, dims.Lq = dims.Lk = L, dims.G = dims.G ? dims.G : dims.H;
    options.window = posenc_model_window(model, LAYER);
    options.mask   = POSENC_MASK_CAUSAL | (options.window ? POSENC_MASK_WINDOW : 0);
    require(!posenc_encoding_create(&none, nope, NULL, &err) &&
                !posenc_plan_create(&whole, rope, &dims, &options, &err) &&
                !posenc_plan_create(&cached, none, &dims, &options, &err) &&
                !posenc_workspace_create(&work, whole, POSENC_RUN_FORWARD, NULL, &err) &&
                !posenc_workspace_create(&decode, cached, POSENC_RUN_DECODE, NULL, &err),
            err.message);
    read_params(params, rope, &held), read_params(rest, none, &held);

    const posenc_tensor q = noise(dims.H, dims.D), k = noise(dims.G, dims.D), v = noise(dims.G, dims.D),
                        o = noise(dims.H, dims.D), want = noise(dims.H, dims.D);
    const posenc_attend_in  all     = {.size = sizeof all, .q = q, .k = k, .v = v, .params = params};
    const posenc_attend_out at_once = {.size = sizeof at_once, .o = want};
    require(!posenc_attend(whole, &all, &at_once, &work, &err), err.message);
    for (int64_t t = 0; t < L; t++) { /* a token: its key is rotated for good */
        posenc_rotate_io turn = {.size = sizeof turn, .direction = 1, .params = params};
        posenc_attend_in in   = {
              .size = sizeof in, .k = tokens(k, 0, t + 1), .v = tokens(v, 0, t + 1), .params = rest};
        posenc_attend_out out = {.size = sizeof out, .o = tokens(o, t, 1)};
        in.q = turn.to_q = turn.q = tokens(q, t, 1), turn.to_k = turn.k = tokens(k, t, 1);
        in.q_pos = turn.q_pos = turn.k_pos = posenc_positions_range((double)t, 1);
        require(!posenc_rotate(whole, &turn, &work, &err), err.message);
        require(!posenc_attend(cached, &in, &out, &decode, &err), err.message);
    }
    double off = 0;
    for (int64_t n = 0; n < dims.H * L * dims.D; n++)
        off = fmax(off, fabs((double)((float *)o.data)[n] - (double)((float *)want.data)[n]));
    printf("%s\n%d tokens, one by one from the cache and all at once, differ by %s\n", group->spec, L,
           off < 1e-5 ? "less than 1e-5" : "too much");
    free(q.data), free(k.data), free(v.data), free(o.data), free(want.data);
    posenc_workspace_free(&work), posenc_workspace_free(&decode), posenc_arrays_free(&held);
    posenc_plan_free(whole), posenc_plan_free(cached), posenc_encoding_free(rope), posenc_encoding_free(none);
    posenc_model_free(model);
    return off < 1e-5 ? 0 : 1;
}
