/* SPDX-License-Identifier: MIT */
/*
 * test_executors [NAME [DRAWS]]: the tiled executor against the reference, for every encoding of the registry
 *
 * Encodings come from the registry with the settings of a small model, and some combinations beside them;
 * with NAME only that encoding, and the combinations that begin with it or have its scores; shapes, masks,
 * positions and tile sizes from the tables below. Every output and every gradient must agree within DESIGN's
 * float32 tolerance, and must have the same bits for any number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

static const posenc_dims shapes[] = {
    {.B = 2, .H = 4, .G = 2, .Lq = 7, .Lk = 7, .D = 8, .Dv = 8, .d_model = 12, .L = 8},
    {.B = 1, .H = 2, .G = 1, .Lq = 5, .Lk = 9, .D = 6, .Dv = 10, .d_model = 12, .L = 8},
    {.B = 2, .H = 3, .G = 3, .Lq = 70, .Lk = 70, .D = 16, .Dv = 16, .d_model = 48, .L = 64},
    {.B = 1, .H = 2, .G = 2, .Lq = 1, .Lk = 33, .D = 20, .Dv = 12, .d_model = 40, .L = 16},
    {.B = 1, .H = 1, .G = 1, .Lq = 130, .Lk = 197, .D = 32, .Dv = 48, .d_model = 32, .L = 64},
    {.B = 1, .H = 4, .G = 4, .Lq = 67, .Lk = 3, .D = 2, .Dv = 5, .d_model = 8, .L = 16},
};

/* Of parts that are joined: small ones, of which two decode. */
static const posenc_dims joined[] = {
    {.B = 2, .H = 4, .G = 2, .Lq = 7, .Lk = 7, .D = 8, .Dv = 8, .d_model = 12, .L = 8},
    {.B = 1, .H = 2, .G = 1, .Lq = 5, .Lk = 9, .D = 6, .Dv = 10, .d_model = 12, .L = 8},
    {.B = 1, .H = 2, .G = 2, .Lq = 1, .Lk = 33, .D = 20, .Dv = 12, .d_model = 40, .L = 16},
    {.B = 2, .H = 4, .G = 2, .Lq = 3, .Lk = 70, .D = 16, .Dv = 8, .d_model = 64, .L = 64},
    {.B = 1, .H = 2, .G = 2, .Lq = 40, .Lk = 50, .D = 4, .Dv = 4, .d_model = 8, .L = 32},
    {.B = 1, .H = 4, .G = 4, .Lq = 20, .Lk = 3, .D = 2, .Dv = 5, .d_model = 8, .L = 16},
};

static const int masks[] = {
    POSENC_MASK_NONE,
    POSENC_MASK_CAUSAL,
    POSENC_MASK_WINDOW,
    POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW,
    POSENC_MASK_KEY_PADDING | POSENC_MASK_CAUSAL,
    POSENC_MASK_EXPLICIT,
    POSENC_MASK_SEGMENTS,
    POSENC_MASK_EXPLICIT | POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING,
};

static const int64_t tiles[][2] = {{0, 0}, {1, 1}, {3, 5}, {24, 40}, {256, 256}};

enum {
    SHAPES = sizeof shapes / sizeof *shapes,
    MASKS  = sizeof masks / sizeof *masks,
    TILES  = sizeof tiles / sizeof *tiles
};

static const char *only;        /* the encoding asked for, or NULL: all */
static int64_t     draws = 100; /* of parts that are joined */

/* Does SPEC begin with the encoding that is asked for? */
static int is_asked(const char *spec)
{
    const size_t n = only ? strlen(only) : 0;
    return n == 0 || (!strncmp(spec, only, n) && (spec[n] == '\0' || strchr("[+", spec[n])));
}

/* Gates and angles are of tokens, and positions say which token a query is. */
static int wants_rising(const char *spec)
{
    return (strstr(spec, "fox") && !strstr(spec, "form=constant")) || !strncmp(spec, "path", 4) ||
           !strncmp(spec, "wall", 4) || strstr(spec, "remainder=self") || strstr(spec, "content=");
}

/* "name[small settings]" of registry entry i, or of the combinations after it; 0 when there are no more. An
   encoding at the input does not act in attention. */
static int spec_at(int i, const posenc_dims *dims, char *spec, size_t n)
{
    static const char *const combinations[] = {
        "rope+alibi",
        "rope[layout=half:dim=2]+t5[num_buckets=6:max_distance=9]",
        "alibi[form=key_shifted]",
        "t5[num_buckets=9:max_distance=20]",
        "transformer_xl[clamp_len=3:scale=0.5]",
        "rope[layout=half]+transformer_xl",
        "shaw[max_relative=3]+urpe[rows=1025:index_offset=512]",
        "deberta[max_relative_positions=9:position_buckets=4:p2c_index=paper]",
        "deberta[span=5:projected=no:sigma=0.2:biases=both:norm_rel_ebd=yes]",
        "shaw[min_distance=-3:max_distance=2:beyond=zero]",
        "tupe[relative=yes:rows=600:sigma=0.2]",
        "nope[temperature=llama4:temper_length=3:temper_scale=0.7:sink=head]",
        "nope[temperature=inkling:temper_length=2:temper_scale=0.5:softcap=2]",
        "nope[temperature=logn:temper_length=4:temper_on=score:softcap=5:sink=token]",
        "nope[temperature=ssmax:temper_bias=yes:sink=token]",
        "alibi[temperature=ssmax:temper_on=score:temper_bias=yes:softcap=3:sink=head]",
        "alibi[learned=yes:sink=head]",
        "fox[form=constant]",
        "rope[temperature=ssmax:temper_count=position:sink=token]+t5[num_buckets=6:max_distance=9]",
        "transformer_xl[temperature=ministral:temper_length=3:temper_scale=0.7:sink=head]",
        "xlnet[temperature=inkling:temper_length=3:sink=token:softcap=4]",
        "cope[npos=4:temperature=ssmax:sink=head:softcap=6]",
        "complex_order_attention[scale=-1]",
        "complex_order_attention[temperature=llama4:temper_scale=-3:temper_length=2:temper_on=score]",
        "shaw[max_relative=3:temperature=ssmax:temper_on=score:sink=token]+urpe[rows=1025:index_offset=512]",
        "rope+tupe[rows=600:sigma=0.2]",
        "alibi+urpe[rows=1025:index_offset=512]",
        "inkling[extent=9:width=20:per_head=yes:temperature=inkling:temper_length=3:sink=token]",
        "rope+inkling[extent=40:width=3:softcap=5]",
        "rope[q_phase=-0.7:phase_heads=odd:layout=half]",
        "rope[map=rerope:map_window=9:layout=half:temperature=ssmax:sink=head]",
        "rope[map=leaky_rerope:map_window=5:map_factor=3:q_phase=1]+alibi",
        "rope[map=leaky_rerope:map_window=2]+fox[gate_of=key]",
        "path[gate=plain:temperature=ssmax:sink=token]",
        "path[gate=scaled:temperature=inkling:temper_length=3:softcap=4]",
        "path[temperature=ssmax:temper_on=score:sink=head]",
        "wall[gate=yes:temperature=ssmax:sink=token]",
        "rope+alibi[learned=yes:temperature=ssmax]+stick_breaking[attend_current=yes]",
        "shaw[max_relative=3:softcap=4]+stick_breaking[remainder=self]",
        "cope[npos=4]+stick_breaking",
        "cope[npos=4:softcap=6]+stick_breaking[remainder=self]",
        "wall[temperature=inkling:temper_length=3:softcap=4]+urpe[rows=1025:index_offset=512]",
        "rope[content=position:layout=half:dim=2:temperature=ssmax]+alibi",
        "rope[content=angle:q_phase=0.4:phase_heads=odd]+fox",
        "rope[content=step:schedule=yarn:factor=4:original_length=16:sink=token]+transformer_xl"};
    const int count = posenc_encoding_count(), more = sizeof combinations / sizeof *combinations;
    if (i >= count + more)
        return 0;
    if (i >= count)
        return snprintf(spec, n, "%s", combinations[i - count]) > 0;
    char                        small[256];
    const posenc_encoding_info *info = posenc_encoding_info_at(i);
    assert_int_equal(posenc_small_model(info->name, dims, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                     POSENC_OK);
    return snprintf(spec, n, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "") > 0;
}

#define MEMBER(name) offsetof(attention_result, name)

static const array *member(const attention_result *r, size_t offset)
{
    return (const array *)((const char *)r + offset);
}

static void bias_of(const attention_case *c, const array *bias)
{
    posenc_options   options = c->options;
    posenc_plan     *plan;
    posenc_error     err;
    posenc_tensor    params[CASE_PARAMS], to = array_tensor(bias, 1);
    posenc_attend_in in = case_in(c, 1, params);
    if (in.q_pos.array.data && in.q_pos.array.ndim > 1) /* a bias is one item's */
        in.q_pos.array.shape[0] = in.k_pos.array.shape[0] = 1;
    options.executor = POSENC_EXECUTOR_REFERENCE;
    if (posenc_plan_create(&plan, c->e, &c->dims, &options, &err))
        case_stop("plan", c, &err);
    posenc_workspace work = workspace_for(plan, POSENC_RUN_SCORES);
    if (posenc_bias(plan, &in, &to, &work, &err) &&
        !(err.status == POSENC_ERROR_UNSUPPORTED && c->token_count)) /* of tokens, not of parameters */
        case_stop("bias", c, &err);
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
}

/* How much a score moves with a number of a parameter: its gradient weighs each dS, and the rounding in it,
   by that. At least by a position; more where a power of the distance is learned. Large tables have a small
   share each. */
static double steepness(const attention_case *c, int param)
{
    enum { FEW = 8 };
    const double step = 1e-3;
    const array *x    = &c->params[param];
    double       most = (double)(c->dims.Lq + c->dims.Lk);
    array        bias[2];
    for (int i = 0; i < 2; i++)
        bias[i] = array_make(3, (int64_t[]){c->dims.H, c->dims.Lq, c->dims.Lk});
    for (int64_t n = 0; x->count <= FEW && n < x->count; n++) {
        const double start = x->wide[n];
        bias_of(c, &bias[0]);
        x->wide[n] = start + step;
        bias_of(c, &bias[1]);
        x->wide[n] = start;
        most       = fmax(most, largest(&bias[0], &bias[1]) / step);
    }
    array_free(&bias[0]), array_free(&bias[1]);
    return most;
}

static void compare(const attention_case *c, const attention_result *want,
                    const attention_result near[DISTURBED], const char *how)
{
    attention_result got = case_run(c, 0);
    struct {
        const char *name, *axes;
        size_t      offset;
        double      tolerance;
    } all[5 + CASE_PARAMS + CASE_TOKENS] = {{"o", "item,head,query,channel", MEMBER(o), 2e-6},
                                            {"lse", "item,head,query", MEMBER(lse), 2e-6},
                                            {"dq", "item,head,query,channel", MEMBER(dq), 2e-5},
                                            {"dk", "item,head,key,channel", MEMBER(dk), 2e-5},
                                            {"dv", "item,head,key,channel", MEMBER(dv), 2e-5}};
    for (int i = 0; i < c->param_count; i++) {
        all[5 + i].name      = posenc_param_name(c->e, i);
        all[5 + i].axes      = posenc_param_describe(c->e, i)->shape;
        all[5 + i].offset    = MEMBER(dparams) + (size_t)i * sizeof(array);
        all[5 + i].tolerance = 2e-5;
    }
    const int params = 5 + c->param_count;
    for (int i = 0; i < c->token_count; i++) {
        all[params + i].name      = posenc_token_name(c->e, i);
        all[params + i].axes      = "item,head,token,channel";
        all[params + i].offset    = MEMBER(dtokens) + (size_t)i * sizeof(array);
        all[params + i].tolerance = 2e-5;
    }
    for (int i = 0; i < params + c->token_count; i++) {
        const array *disturbed[DISTURBED];
        for (int n = 0; n < DISTURBED; n++)
            disturbed[n] = member(&near[n], all[i].offset);
        const double weight = i < 2 ? 0 : i < 5 || i >= params ? 1 : steepness(c, i - 5);
        const double rest   = weight * 0x1p-20 * largest(&c->dout, NULL) * largest(&c->v, NULL);
        const array *made = member(&got, all[i].offset), *right = member(want, all[i].offset);
        int64_t      at = 0;
        const double e  = array_error_at(made, right, disturbed, all[i].tolerance, rest, &at);
        if (!(e <= 1))
            fail_msg(
                "%s, %s: %s%s at %s: the tiled executor says %.9g, the reference %.9g: %.3g times what is "
                "allowed",
                posenc_encoding_spec(c->e), how, i < 5 ? "" : "gradient of ", all[i].name,
                array_place(right, at, all[i].axes), (double)made->narrow[at], right->wide[at], e);
    }
    result_free(&got);
}

/* Not every encoding meets every mask on every shape, so that the suite also ends soon under sanitizers: a
   third of the masks each on small shapes, a sixth on large ones, and another share for the next encoding. */
static int is_skipped(const posenc_dims *d, int m, int encoding)
{
    return (m + encoding) % (d->Lq * d->Lk > 2000 ? 6 : 3) != 0;
}

/* The mask, and the causal one where a part has no meaning without it. */
static int fitting(const posenc_encoding *e, int mask)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && part->causal_only)
            mask |= POSENC_MASK_CAUSAL;
    }
    return strstr(posenc_encoding_spec(e), "map=self_extend") ? mask | POSENC_MASK_CAUSAL : mask;
}

/* No task needs what one before it wrote, nor writes over what one behind it did. */
static void run_backwards(void *context, int64_t n, posenc_task *task, void *argument)
{
    (void)context;
    for (int64_t i = n - 1; i >= 0; i--)
        task(argument, i, (int)(i % 2));
}

/* All tiles for one case. */
static void compare_tiles(attention_case *c, int s, const char *positions)
{
    char             how[160];
    attention_result want = case_run(c, 1);
    attention_result near[DISTURBED];
    for (int n = 0; n < DISTURBED; n++) {
        case_disturb(c, (uint64_t)n);
        near[n] = case_run(c, 1);
        case_restore(c);
    }
    for (int t = 0; t < TILES; t++) {
        c->options.tile_q = tiles[t][0];
        c->options.tile_k = tiles[t][1];
        /* teams cost more than these problems where cores are few */
        c->options.threads      = t == 3 ? 3 : t == 4 ? 2 : 1;
        c->options.parallel_for = t == 4 ? run_backwards : NULL;
        snprintf(how, sizeof how, "shape %d, mask %s, tile %lldx%lld, %s", s, mask_text(c->options.mask),
                 (long long)tiles[t][0], (long long)tiles[t][1], positions);
        compare(c, &want, near, how);
    }
    c->options.parallel_for = NULL;
    result_free(&want);
    for (int n = 0; n < DISTURBED; n++)
        result_free(&near[n]);
}

/* One tile size, drawn too. */
static void compare_drawn(attention_case *c, uint64_t seed)
{
    char             how[160];
    attention_result want = case_run(c, 1), near[DISTURBED];
    const int64_t   *tile = tiles[seed % TILES];
    for (int n = 0; n < DISTURBED; n++) {
        case_disturb(c, (uint64_t)n);
        near[n] = case_run(c, 1);
        case_restore(c);
    }
    c->options.tile_q = tile[0];
    c->options.tile_k = tile[1];
    snprintf(how, sizeof how, "draw %llu, mask %s, tile %lldx%lld", (unsigned long long)seed,
             mask_text(c->options.mask), (long long)tile[0], (long long)tile[1]);
    compare(c, &want, near, how);
    result_free(&want);
    for (int n = 0; n < DISTURBED; n++)
        result_free(&near[n]);
}

/* Where the encoding sees positions themselves, so far up that none of this test's is negative. */
static double lift(const posenc_encoding *e)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && !part->by_distance)
            return 122;
    }
    return strstr(posenc_encoding_spec(e), "map=self_extend") ? 122 : 0;
}

static void tiled_agrees_with_reference_on_ranges(void **state)
{
    char spec[512];
    (void)state;
    for (int i = 0;; i++)
        for (int s = 0; s < SHAPES; s++) {
            if (!spec_at(i, &shapes[s], spec, sizeof spec))
                return;
            if (!is_asked(spec))
                continue;
            for (int m = 0; m < MASKS; m++) {
                if (is_skipped(&shapes[s], m, i + s))
                    continue;
                attention_case c = case_make(spec, shapes[s], (uint64_t)(100 * i + 10 * s + m));
                c.options.mask   = fitting(c.e, masks[m]);
                c.options.window = c.options.mask & POSENC_MASK_WINDOW ? 6 : 0;
                if (m % 2) /* another offset than Lk - Lq */
                    c.q_pos = posenc_positions_range(4, 1);
                if (c.q_pos.start < 0 && lift(c.e) > 0)
                    c.q_pos = posenc_positions_range(0, 1);
                compare_tiles(&c, s, "ranges");
                case_free(&c);
            }
        }
}

/* More keys than a tile has that is wide because numbers of pairs come from memory, whole and cut; decay so
   steep that what one tile adds is nothing in the next. */
static void tiled_agrees_with_reference_on_long_rows(void **state)
{
    static const struct {
        const char *spec;
        posenc_dims dims;
        int         mask;
    } rows[] = {
        {"dense_bias", {.B = 1, .H = 2, .G = 1, .Lq = 100, .Lk = 432, .D = 16, .Dv = 16}, POSENC_MASK_NONE},
        {"dense_bias+urpe",
         {.B = 1, .H = 1, .G = 1, .Lq = 49, .Lk = 400, .D = 16, .Dv = 20},
         POSENC_MASK_CAUSAL},
        {"xpos[scale_base=2]",
         {.B = 1, .H = 1, .G = 1, .Lq = 200, .Lk = 200, .D = 16, .Dv = 16},
         POSENC_MASK_CAUSAL},
        {"xpos[scale_base=4]+dense_bias",
         {.B = 1, .H = 1, .G = 1, .Lq = 450, .Lk = 450, .D = 16, .Dv = 16},
         POSENC_MASK_CAUSAL},
        /* one item's last head, then the next one's first, which one thread meets one after the other: their
           queries lie in one tile, and the keys next to them in the tile left of it */
        {"fox", {.B = 3, .H = 2, .G = 2, .Lq = 20, .Lk = 276, .D = 8, .Dv = 8}, POSENC_MASK_CAUSAL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (!is_asked(rows[i].spec))
            continue;
        attention_case c = case_make(rows[i].spec, rows[i].dims, 7000 + i);
        c.options.mask   = rows[i].mask;
        compare_tiles(&c, (int)i, "long rows");
        case_free(&c);
    }
}

/* Gates of 1 and of e^-40 among them: sums of thousands, of which no factor may be above 1. */
static void tiled_agrees_with_reference_where_gates_close(void **state)
{
    static const char *const specs[] = {"wall", "wall[gate=yes]", "fox", "path[gate=plain]"};
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        for (int s = 2; s < 5 && is_asked(specs[i]); s += 2) {
            attention_case c = case_make(specs[i], shapes[s], 8000 + i);
            for (int t = 0; t < c.token_count; t++)
                if (posenc_token_describe(c.e, t)->made == POSENC_TOKEN_PLAIN)
                    array_fill(&c.tokens[t], 8000 + i, "gates", 40);
            c.options.mask = POSENC_MASK_CAUSAL;
            compare_tiles(&c, s, "gates that close");
            case_free(&c);
        }
}

static int64_t drawn(uint64_t seed, const char *name, int64_t low, int64_t high)
{
    return low + (int64_t)(posenc_random_uniform(seed, name, 0) * (double)(high - low + 1));
}

/* A window of another size than the network was trained with, or of that: cosines times up to 100, biases
   that saturate, items that share them, unit rows that are rotated, and by a decay. Some hundred draws, of
   which no tile may lose a gradient. */
static void tiled_agrees_with_reference_on_drawn_windows(void **state)
{
    enum { DRAWS = 300 };
    static const char *const sigmas[]    = {"0.02", "0.5", "1", "3"};
    static const char *const rotations[] = {"rope+", "xpos[scale_base=40]+", "", "", ""};
    static const char *const scales[]    = {":scale=0.3", "", "", ""};
    (void)state;
    for (uint64_t seed = 0; seed < DRAWS && is_asked("swin_v2"); seed++) {
        char          spec[160];
        const int64_t rows = drawn(seed, "rows", 1, 8), columns = drawn(seed, "columns", 1, 8),
                      G = drawn(seed, "G", 1, 2), L = rows * columns, D = drawn(seed, "D", 2, 24);
        const posenc_dims dims = {.B  = drawn(seed, "B", 1, 2),
                                  .H  = G * drawn(seed, "H", 1, 2),
                                  .G  = G,
                                  .Lq = drawn(seed, "Lq", 1, L),
                                  .Lk = L,
                                  .D  = D,
                                  .Dv = drawn(seed, "Dv", 1, 16)};
        snprintf(spec, sizeof spec, "%sswin_v2[window=%dx%d:pretrained_window=%s:mlp_width=%d:sigma=%s%s]",
                 D % 2 ? "" : rotations[drawn(seed, "rotation", 0, 4)], (int)rows, (int)columns,
                 drawn(seed, "old", 0, 2) ? "4x4" : "0x0", (int)drawn(seed, "width", 1, 64),
                 sigmas[drawn(seed, "sigma", 0, 3)], scales[drawn(seed, "scale", 0, 3)]);
        attention_case c = case_make(spec, dims, seed);
        for (int64_t h = 0; h < dims.H; h++) /* logit_scale, the last one */
            array_set(&c.params[c.param_count - 1], h,
                      5 * posenc_random_uniform(seed, "logit_scale", (uint64_t)h));
        c.options.mask   = fitting(c.e, masks[drawn(seed, "mask", 0, MASKS - 1)]);
        c.options.window = c.options.mask & POSENC_MASK_WINDOW ? 6 : 0;
        c.q_pos          = posenc_positions_range((double)drawn(seed, "q_pos", 0, L - dims.Lq), 1);
        compare_drawn(&c, seed);
        case_free(&c);
    }
}

/* [B,L], or those of item 0 for all. */
static posenc_positions places(int64_t *x, int64_t B, int64_t L, int shared)
{
    const int64_t shape[] = {B, L};
    return posenc_positions_array(
        posenc_tensor_contiguous(x, POSENC_DTYPE_I64, shared ? 1 : 2, shape + shared));
}

/* Positions that start again (packed), repeat (left padding), fall, or skip, in each item in its own way, or
   in all alike. */
static void tiled_agrees_with_reference_on_arrays(void **state)
{
    char spec[512];
    (void)state;
    for (int i = 0;; i++)
        for (int s = 0; s < 3; s++) {
            const posenc_dims *d = &shapes[s];
            if (!spec_at(i, d, spec, sizeof spec))
                return;
            if (!is_asked(spec) || wants_rising(spec))
                continue;
            int64_t *q = malloc((size_t)(d->B * d->Lq) * sizeof *q),
                    *k = malloc((size_t)(d->B * d->Lk) * sizeof *k);
            for (int64_t b = 0; b < d->B; b++) {
                for (int64_t x = 0; x < d->Lq; x++)
                    q[b * d->Lq + x] = b == 0 ? x % (d->Lq / 2 + 1) : x < 2 ? 0 : x - 2;
                for (int64_t x = 0; x < d->Lk; x++)
                    k[b * d->Lk + x] = b == 0 ? x % (d->Lk / 2 + 1) : x < 2 ? 0 : x - 2;
            }
            for (int m = 0; m < MASKS; m++) {
                if (is_skipped(d, m, i + s))
                    continue;
                attention_case c = case_make(spec, *d, (uint64_t)(7000 + 100 * i + 10 * s + m));
                c.q_pos          = places(q, d->B, d->Lq, (i + m) % 2);
                c.k_pos          = places(k, d->B, d->Lk, (i + m) % 2);
                c.options.mask   = fitting(c.e, masks[m]);
                c.options.window = c.options.mask & POSENC_MASK_WINDOW ? 3 : 0;
                compare_tiles(&c, s, "packed arrays");
                case_free(&c);
            }
            free(q);
            free(k);
        }
}

/* Steps other than 1, up and down, and a shared array that is a range in disguise. */
static void tiled_agrees_with_reference_on_steps(void **state)
{
    char         spec[512];
    const double steps[] = {2, -1, -3};
    (void)state;
    for (int i = 0;; i++)
        for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
            const posenc_dims d = {
                .B = 2, .H = 2, .G = 1, .Lq = 37, .Lk = 41, .D = 8, .Dv = 8, .d_model = 16, .L = 64};
            if (!spec_at(i, &d, spec, sizeof spec))
                return;
            if (!is_asked(spec) || (steps[s] < 0 && wants_rising(spec)))
                continue;
            attention_case c        = case_make(spec, d, (uint64_t)(9000 + i));
            const double   up       = lift(c.e);
            c.q_pos                 = posenc_positions_range(5 + up, steps[s]);
            c.k_pos                 = posenc_positions_range(-2 + up, steps[s]);
            c.options.mask          = fitting(c.e, s == 1 ? POSENC_MASK_CAUSAL : POSENC_MASK_WINDOW);
            c.options.window        = c.options.mask & POSENC_MASK_WINDOW ? 20 : 0;
            c.options.max_distances = 400;
            compare_tiles(&c, (int)s, "steps");
            int64_t k[41];
            for (int x = 0; x < 41; x++)
                k[x] = (int64_t)(-2 + up + steps[s] * x);
            c.k_pos =
                posenc_positions_array(posenc_tensor_contiguous(k, POSENC_DTYPE_I64, 1, (int64_t[]){41}));
            compare_tiles(&c, (int)s, "steps in an array");
            case_free(&c);
        }
}

/* What is refused only when it runs: positions of several numbers and parts that read one; gradients of a
   rotation's token input where scores turn rows themselves. */
static int is_refused(const char *spec)
{
    const int prepares = strstr(spec, "swin_v2") || strstr(spec, "tupe") || strstr(spec, "complex_order");
    return (strstr(spec, "t5_nd") && (strchr("rx", *spec) || strstr(spec, "urpe"))) ||
           (prepares && strstr(spec, "content="));
}

/* Positions of item b: one after the other, packed (they start again in the middle), left-padded, or two
   apart from where the mask of distances still sees them. */
static void fill_places(int64_t *x, int64_t n, int64_t from, int64_t kind)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = from + (kind == 0 ? i : kind == 1 ? i % (n / 2 + 1) : kind == 2 ? (i < 2 ? 0 : i - 2) : 2 * i);
}

/* An encoding of scores between a rotation and a weight, with settings of all scores; 0 if these do not go
   together. */
static int draw_joined(const posenc_encoding_info *info, const posenc_dims *d, uint64_t seed, char *spec,
                       size_t n)
{
    static const char *const rotations[] = {"",
                                            "rope+",
                                            "rope[layout=half:dim=2]+",
                                            "rope[map=rerope:map_window=9:layout=half]+",
                                            "rope[map=leaky_rerope:map_window=5:map_factor=3]+",
                                            "rope[map=self_extend:map_factor=3:map_window=4]+",
                                            "rope[q_phase=-0.7:phase_heads=odd:layout=half]+",
                                            "rope[content=position:layout=half]+",
                                            "rope[content=angle]+",
                                            "rope[content=step]+",
                                            "rope[schedule=yarn:factor=4:original_length=16]+",
                                            "xpos[scale_base=40]+"};
    static const char *const more[]      = {"",
                                            ":temperature=ssmax:sink=head",
                                            ":temperature=inkling:temper_length=3:sink=token",
                                            ":temperature=logn:temper_length=4:temper_on=score",
                                            ":softcap=3",
                                            ":scale=-0.7",
                                            ":temperature=ssmax:temper_count=position:temper_bias=yes"};
    static const char *const weights[]   = {"",
                                            "",
                                            "+urpe[rows=1025:index_offset=512]",
                                            "+stick_breaking",
                                            "+stick_breaking[attend_current=yes]",
                                            "+stick_breaking[remainder=self]"};
    char                     small[256];
    assert_int_equal(posenc_small_model(info->name, d, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                     POSENC_OK);
    const char *settings = more[drawn(seed, "more", 0, sizeof more / sizeof *more - 1)];
    settings += !*small && *settings;
    snprintf(spec, n, "%s%s%s%s%s%s%s", rotations[drawn(seed, "rotation", 0, 11)], info->name,
             *small || *settings ? "[" : "", small, settings, *small || *settings ? "]" : "",
             weights[drawn(seed, "weight", 0, 5)]);
    return !is_refused(spec) && case_exists(spec, d);
}

/* A mask, and positions in q [B,Lq] and k [B,Lk] or ranges. */
static void draw_places(attention_case *c, uint64_t seed, int64_t *q, int64_t *k)
{
    const posenc_dims *d     = &c->dims;
    const int64_t      kinds = d->Lq + d->Lk > 60 ? 3 : 4; /* tables end before twice as many */
    const int64_t      kind = drawn(seed, "places", -2, kinds - 1), from = drawn(seed, "from", 0, 4);
    const int          shared = (int)drawn(seed, "shared", 0, 1);
    c->options.mask           = fitting(c->e, masks[drawn(seed, "mask", 0, MASKS - 1)]);
    c->options.window         = c->options.mask & POSENC_MASK_WINDOW ? 6 : 0;
    c->options.max_distances  = 800;
    for (int64_t b = 0; b < d->B; b++) {
        fill_places(q + b * d->Lq, d->Lq, from, (kind + b) % kinds);
        fill_places(k + b * d->Lk, d->Lk, 0, (kind + b) % kinds);
    }
    if (kind >= 0 && !wants_rising(posenc_encoding_spec(c->e))) {
        c->q_pos = places(q, d->B, d->Lq, shared);
        c->k_pos = places(k, d->B, d->Lk, shared);
    } else if (kind == -1 || (c->q_pos.start < 0 && lift(c->e) > 0))
        c->q_pos = posenc_positions_range((double)from, 1);
}

/* Each part of a combination must still be what it is alone. */
static void tiled_agrees_with_reference_on_joined_parts(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place != POSENC_PLACE_SCORE || !is_asked(info->name))
            continue;
        for (int64_t n = 0; n < draws; n++) {
            const uint64_t    seed = (uint64_t)(1000000 * (i + 1) + n);
            const posenc_dims d    = joined[drawn(seed, "shape", 0, sizeof joined / sizeof *joined - 1)];
            char              spec[512];
            int64_t           q[200], k[200];
            if (!draw_joined(info, &d, seed, spec, sizeof spec))
                continue;
            attention_case c = case_make(spec, d, seed);
            draw_places(&c, seed, q, k);
            compare_drawn(&c, seed);
            case_free(&c);
        }
    }
}

/* So far apart that a mask by distance hides every pair: nothing is seen, and nothing beside a table is
   written (heap: AddressSanitizer). */
static void far_positions_see_nothing(void **state)
{
    const double from[][2] = {{20, 1e9}, {1e9, 20}};
    char         spec[512];
    (void)state;
    for (int i = 0;; i++)
        for (int f = 0; f < 2; f++) {
            const posenc_dims *d = &shapes[2 + 2 * f];
            if (!spec_at(i, d, spec, sizeof spec))
                return;
            if (!is_asked(spec) || wants_rising(spec))
                continue;
            attention_case c = case_make(spec, *d, (uint64_t)(9500 + i));
            c.q_pos          = posenc_positions_range(from[f][0], 1);
            c.k_pos          = posenc_positions_range(from[f][1], 1);
            c.options.mask   = f ? fitting(c.e, POSENC_MASK_WINDOW) : POSENC_MASK_CAUSAL;
            c.options.window = f ? 10 : 0;
            if (lift(c.e) == 0 && !strstr(spec, "rows=")) /* tables that end before */
                compare_tiles(&c, 2 + 2 * f, "far positions");
            case_free(&c);
        }
}

/* Multiplications enough for more threads than one (LITTLE in engine/attend.c), of many heads and of one;
   each head has its own tokens. */
static void bits_are_the_same_for_any_number_of_threads(void **state)
{
    static const int         counts[] = {2, 3, 5, 8};
    static const posenc_dims teams[]  = {
         {.B = 2, .H = 3, .G = 3, .Lq = 90, .Lk = 90, .D = 16, .Dv = 16, .d_model = 48, .L = 96},
         {.B = 1, .H = 1, .G = 1, .Lq = 130, .Lk = 197, .D = 32, .Dv = 48, .d_model = 64, .L = 64}};
    char spec[512];
    (void)state;
    for (int i = 0;; i++)
        for (int s = 0; s < 2; s++) {
            if (!spec_at(i, &teams[s], spec, sizeof spec))
                return;
            if (!is_asked(spec))
                continue;
            attention_case c     = case_make(spec, teams[s], (uint64_t)(501 + 3 * i));
            c.options.mask       = POSENC_MASK_CAUSAL;
            c.options.threads    = 1;
            attention_result one = case_run(&c, 0);
            for (size_t t = 0; t < sizeof counts / sizeof *counts; t++) {
                c.options.threads     = counts[t];
                attention_result many = case_run(&c, 0);
                assert_memory_equal(one.o.narrow, many.o.narrow, (size_t)one.o.count * sizeof(float));
                assert_memory_equal(one.lse.narrow, many.lse.narrow, (size_t)one.lse.count * sizeof(float));
                assert_memory_equal(one.dq.narrow, many.dq.narrow, (size_t)one.dq.count * sizeof(float));
                assert_memory_equal(one.dk.narrow, many.dk.narrow, (size_t)one.dk.count * sizeof(float));
                assert_memory_equal(one.dv.narrow, many.dv.narrow, (size_t)one.dv.count * sizeof(float));
                for (int p = 0; p < c.param_count; p++)
                    assert_memory_equal(one.dparams[p].narrow, many.dparams[p].narrow,
                                        (size_t)one.dparams[p].count * sizeof(float));
                for (int p = 0; p < c.token_count; p++)
                    assert_memory_equal(one.dtokens[p].narrow, many.dtokens[p].narrow,
                                        (size_t)one.dtokens[p].count * sizeof(float));
                result_free(&many);
            }
            result_free(&one);
            case_free(&c);
        }
}

int main(int argc, char **argv)
{
    only                            = argc > 1 ? argv[1] : NULL;
    draws                           = argc > 2 ? strtoll(argv[2], NULL, 10) : draws;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiled_agrees_with_reference_on_ranges),
        cmocka_unit_test(tiled_agrees_with_reference_on_long_rows),
        cmocka_unit_test(tiled_agrees_with_reference_where_gates_close),
        cmocka_unit_test(tiled_agrees_with_reference_on_drawn_windows),
        cmocka_unit_test(tiled_agrees_with_reference_on_arrays),
        cmocka_unit_test(tiled_agrees_with_reference_on_steps),
        cmocka_unit_test(tiled_agrees_with_reference_on_joined_parts),
        cmocka_unit_test(far_positions_see_nothing),
        cmocka_unit_test(bits_are_the_same_for_any_number_of_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
