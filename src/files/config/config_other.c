/* SPDX-License-Identifier: MIT */
/*
 * config_other.c: the encodings of a config.json that are no rotation
 *
 * Learned tables and their offsets, grids of patches, Swin's windows, sinusoids, T5's buckets, DeBERTa's and
 * XLNet's terms, ALiBi's slopes. A function each, chosen by the word `encoding` of model_types.def.
 *
 * Offsets   RoBERTa and its kin keep pad_token_id + 1 rows of the table free, so 514 rows serve 512 tokens;
 *           OPT and BART add two rows. Both begin with row 2.
 * Falcon    adds ALiBi's bias before it scales the scores, so that the bias is scaled as well.
 * Source    transformers 5.16, the classes of the types
 */
#include "files/config/config.h"

#include <math.h>
#include <string.h>

enum { MOST_ROWS = 1 << 30, IMAGE = 224, FARTHEST = 128 }; /* the last two where no file says */

/* The head width of these types is hidden / heads, T5's d_kv aside, which none of the numbers below needs. */
static double usual_scale(pe_config *c)
{
    return 1 / sqrt((double)pe_config_derived_width(c));
}

/* ---------------------------------------------------------------- learned tables ------------ */

static void add_table(pe_config *c, int64_t rows, int64_t offset, const char *rule, const char *stack)
{
    const int64_t          hidden = pe_config_size(c, PE_HIDDEN), own = c->type.table_dim;
    const char            *key   = c->type.table_dim_key ? c->type.table_dim_key : "embedding_size";
    const pe_learned_table table = {.rows      = rows,
                                    .offset    = offset,
                                    .dim       = own ? pe_config_width(c, key, 1, own) : hidden,
                                    .rows_rule = rule,
                                    .dim_rule  = own ? key : NULL,
                                    .stack     = stack};
    pe_build_learned(c->m, pe_config_dims(c), &table);
}

/* Padding and whatever comes before it have rows of their own inside the table. */
static void learned_inside(pe_config *c, int64_t context)
{
    const int64_t offset = 1 + pe_config_whole(c, c->file, "pad_token_id", 0, MOST_ROWS, 1);
    if (offset >= context)
        pe_build_refuse(
            c->m, "max_position_embeddings is %lld; pad_token_id + 1 = %lld rows leave none for positions",
            (long long)context, (long long)offset);
    add_table(c, context, offset, "max_position_embeddings, pad_token_id + 1 of them before the first token",
              NULL);
    c->m->info.max_positions = context - offset;
}

/* Rows of a table: a key's number, or the product of two ("a*b"); the context of most. */
static int64_t row_count(pe_config *c)
{
    const char *key = c->type.rows_key, *second = key ? strchr(key, '*') : NULL;
    if (!key)
        return pe_config_size(c, PE_CONTEXT);
    const char *first = second ? pe_build_text(c->m, "%.*s", (int)(second - key), key) : key;
    if (!pe_config_get(c->file, first))
        return c->type.context;
    return pe_config_whole(c, c->file, first, 1, PE_MODEL_WIDEST, 1) *
           (second ? pe_config_whole(c, c->file, second + 1, 1, PE_MODEL_WIDEST, 1) : 1);
}

static void learned(pe_config *c)
{
    const int64_t context = row_count(c);
    if (context > MOST_ROWS)
        pe_build_refuse(c->m, "max_position_embeddings is %lld; a table of at most %d rows is accepted",
                        (long long)context, MOST_ROWS);
    if (!context)
        pe_build_refuse(c->m, "max_position_embeddings is missing; a learned table needs it");
    if (c->type.offset_inside) {
        learned_inside(c, context);
        return;
    }
    const char *rule = c->type.offset ? "max_position_embeddings + 2" : "max_position_embeddings";
    add_table(c, context + c->type.offset, c->type.offset, rule, c->type.two_stacks ? "encoder" : NULL);
    if (c->type.two_stacks)
        add_table(c, context + c->type.offset, c->type.offset, rule, "decoder");
}

/* A number, or two of them for height and width. */
static void two_sizes(pe_config *c, const char *key, int64_t fallback, int64_t size[2])
{
    const json_t *value = pe_config_get(c->file, key);
    if (!json_is_array(value)) {
        size[0] = size[1] = pe_config_whole(c, c->file, key, 1, PE_MODEL_WIDEST, fallback);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        const json_t *item = json_array_get(value, i);
        size[i]            = json_integer_value(item);
        if (json_array_size(value) != 2 || !json_is_integer(item) || size[i] < 1 || size[i] > PE_MODEL_WIDEST)
            pe_build_refuse(c->m, "%s is %s; it must be a number or two, [height, width]", key,
                            pe_config_shown(c, value));
    }
}

static void patches(pe_config *c)
{
    int64_t image[2], patch[2];
    double *grid = pe_build_alloc(c->m, 2 * sizeof *grid);
    two_sizes(c, c->type.image_key ? c->type.image_key : "image_size", c->type.image ? c->type.image : IMAGE,
              image);
    two_sizes(c, "patch_size", c->type.patch, patch);
    if (image[0] < patch[0] || image[1] < patch[1])
        pe_build_refuse(c->m, "image_size %lldx%lld is smaller than a patch of %lldx%lld",
                        (long long)image[0], (long long)image[1], (long long)patch[0], (long long)patch[1]);
    if (c->m->status)
        return;
    for (int a = 0; a < 2; a++)
        grid[a] = (double)(image[a] / patch[a]);
    const int64_t rows = c->type.prefix_rows + (int64_t)grid[0] * (int64_t)grid[1];
    add_table(c, rows, 0, "prefix + one for each patch of image_size / patch_size", NULL);
    pe_build_integer(c->m, "prefix_rows", c->type.prefix_rows, "by the model type");
    pe_build_list(c->m, "grid", POSENC_FACT_INTEGERS, grid, 2, "image_size / patch_size");
    c->m->info.max_positions = rows;
}

/* ---------------------------------------------------------------- Swin ---------------------- */

/* Number i of a list of the file; `fallback` where it has no list. */
static int64_t listed(pe_config *c, const char *key, int64_t i, int64_t low, int64_t fallback)
{
    const json_t *list = pe_config_list(c, c->file, key), *value = json_array_get(list, (size_t)i);
    if (!list)
        return fallback;
    if (!json_is_integer(value) || json_integer_value(value) < low ||
        json_integer_value(value) > PE_MODEL_WIDEST)
        pe_build_refuse(c->m, "%s is %s; it must hold a whole number from %lld for each stage", key,
                        pe_config_shown(c, list), (long long)low);
    return json_integer_value(value);
}

/* One stage: its blocks have the same width, heads and window. Version 2 makes a window as small as its grid.
 */
static void add_stage(pe_config *c, const int64_t grid[2], int64_t stage, int64_t width, int64_t heads)
{
    const int     is_v2  = pe_text_is(c->encoding, "swin_v2");
    const int64_t given  = pe_config_width(c, "window_size", 1, c->type.window);
    const int64_t before = is_v2 ? listed(c, "pretrained_window_sizes", stage, 0, 0) : 0;
    double       *window = pe_build_alloc(c->m, 2 * sizeof *window);
    if (!c->m->status && (heads < 1 || width % heads))
        pe_build_refuse(c->m, "stage %lld is %lld wide, which is not a multiple of its %lld heads",
                        (long long)stage, (long long)width, (long long)heads);
    if (c->m->status)
        return;
    for (int a = 0; a < 2; a++)
        window[a] = (double)(is_v2 && grid[a] >> stage < given ? grid[a] >> stage : given);
    const posenc_dims   dims = {.H = heads, .d_model = width};
    posenc_model_group *g    = pe_build_group(c->m, c->encoding, dims, width / heads);
    g->spec                  = pe_build_text(c->m, "%s[window=%.0f:%.0f", c->encoding, window[0], window[1]);
    if (before)
        g->spec = pe_build_text(c->m, "%s,pretrained_window=%lld:%lld", g->spec, (long long)before,
                                (long long)before);
    g->spec = pe_build_text(c->m, "%s]", g->spec);
    pe_build_integer(c->m, "heads", heads, "num_heads");
    pe_build_integer(c->m, "head_dim", width / heads, "embed_dim 2^stage / heads");
    pe_build_list(c->m, "window", POSENC_FACT_INTEGERS, window, 2,
                  window[0] < (double)given ? "the whole grid of the stage" : "window_size");
    if (before)
        pe_build_integer(c->m, "pretrained_window", before, "pretrained_window_sizes");
    pe_build_real(c->m, "score_scale", is_v2 ? (double)NAN : 1 / sqrt((double)(width / heads)),
                  is_v2 ? "exp(logit_scale), of the cosine" : "1 / sqrt(head_dim)");
}

static void swin(pe_config *c)
{
    static const int64_t usual_depths[] = {2, 2, 6, 2}, usual_heads[] = {3, 6, 12, 24};
    const json_t        *depths = pe_config_list(c, c->file, "depths");
    const int64_t        stages = depths ? (int64_t)json_array_size(depths) : 4,
                  width         = pe_config_size(c, PE_HIDDEN);
    int64_t image[2], patch[2], ends[PE_MODEL_GROUPS], total = 0;
    two_sizes(c, "image_size", c->type.image ? c->type.image : IMAGE, image);
    two_sizes(c, "patch_size", c->type.patch, patch);
    if (stages < 1 || stages > PE_MODEL_GROUPS)
        pe_build_refuse(c->m, "depths has %lld stages; 1 to %d are read", (long long)stages, PE_MODEL_GROUPS);
    for (int64_t s = 0; !c->m->status && s < stages; s++)
        ends[s] = total += listed(c, "depths", s, 1, usual_depths[s]);
    c->m->info.layers = total;
    char *kinds       = pe_build_alloc(c->m, (size_t)total + 1);
    for (int64_t s = 0; !c->m->status && s < stages; s++) {
        const int64_t grid[2] = {image[0] / patch[0], image[1] / patch[1]};
        for (int64_t i = s ? ends[s - 1] : 0; i < ends[s]; i++)
            kinds[i] = (char)('a' + s);
        add_stage(c, grid, s, width << s, listed(c, "num_heads", s, 1, s < 4 ? usual_heads[s] : 0));
        if (!c->m->status)
            pe_build_layers(c->m, kinds, total, (char)('a' + s));
    }
}

/* ---------------------------------------------------------------- SAM, BEiT ----------------- */

/* A group of the layers of a kind, whose scores follow from two tokens' places on this grid. */
static void add_grid(pe_config *c, const char *encoding, const char *spec, const int64_t size[2],
                     const char *rule)
{
    const int64_t width = pe_config_derived_width(c);
    double       *grid  = pe_build_alloc(c->m, 2 * sizeof *grid);
    if (c->m->status)
        return;
    posenc_model_group *g = pe_build_group(c->m, encoding, pe_config_dims(c), width);
    g->spec               = pe_build_text(c->m, spec, (long long)size[0], (long long)size[1]);
    grid[0]               = (double)size[0];
    grid[1]               = (double)size[1];
    pe_build_integer(c->m, "heads", g->dims.H, NULL);
    pe_build_integer(c->m, "head_dim", width, "hidden_size / heads");
    pe_build_list(c->m, "grid", POSENC_FACT_INTEGERS, grid, 2, rule);
    pe_build_real(c->m, "score_scale", usual_scale(c), "1 / sqrt(head_dim)");
}

static void find_grid(pe_config *c, int64_t grid[2])
{
    int64_t image[2], patch[2];
    two_sizes(c, "image_size", c->type.image ? c->type.image : IMAGE, image);
    two_sizes(c, "patch_size", c->type.patch, patch);
    for (int a = 0; a < 2; a++)
        grid[a] = c->m->status ? 1 : image[a] / patch[a];
}

static int is_global(const json_t *list, int64_t i)
{
    size_t  k;
    json_t *value;
    json_array_foreach(list, k, value) if (json_integer_value(value) == i) return 1;
    return !list && i % 3 == 2; /* 2, 5, 8, 11 */
}

/* SAM's encoder: some layers see the whole grid, the others windows of it. */
static void sam(pe_config *c)
{
    const json_t *list  = pe_config_list(c, c->file, "global_attn_indexes");
    const int64_t depth = pe_config_size(c, PE_DEPTH), given = c->type.window;
    const int64_t window = pe_config_whole(c, c->file, "window_size", 0, PE_MODEL_WIDEST, given);
    int64_t       grid[2], windows[] = {window, window}, global = 0;
    char         *kinds = pe_build_alloc(c->m, (size_t)depth + 1);
    find_grid(c, grid);
    for (int64_t i = 0; !c->m->status && i < depth; i++) {
        kinds[i] = !window || is_global(list, i) ? 'g' : 'w';
        global += kinds[i] == 'g';
    }
    if (pe_config_flag(c, c->file, "use_abs_pos", 1))
        patches(c);
    if (!pe_config_flag(c, c->file, "use_rel_pos", 1)) {
        pe_config_nope(c);
        return;
    }
    if (global)
        add_grid(c, "decomposed", "decomposed[grid=%lld:%lld]", grid, "image_size / patch_size");
    if (global && !c->m->status)
        pe_build_layers(c->m, kinds, depth, 'g');
    if (global < depth)
        add_grid(c, "decomposed", "decomposed[grid=%lld:%lld]", windows, "window_size");
    if (global < depth && !c->m->status)
        pe_build_layers(c->m, kinds, depth, 'w');
}

static void beit(pe_config *c)
{
    const int each = pe_config_flag(c, c->file, "use_relative_position_bias", 0),
              all  = pe_config_flag(c, c->file, "use_shared_relative_position_bias", 0),
              rows = pe_config_flag(c, c->file, "use_absolute_position_embeddings", 0);
    int64_t grid[2];
    find_grid(c, grid);
    if (rows)
        patches(c);
    if (each && all)
        pe_build_refuse(c->m,
                        "use_relative_position_bias and use_shared_relative_position_bias are both true; "
                        "their sum is no SPEC");
    if (each || all)
        add_grid(c, "swin", "swin[window=%lld:%lld,class_token=yes]", grid, "image_size / patch_size");
    if (!each && !all && !rows)
        pe_config_nope(c);
}

/* ---------------------------------------------------------------- sinusoids ----------------- */

static void add_sinusoid(pe_config *c, const char *preset, int64_t offset, int64_t rows, const char *stack)
{
    const int64_t dim = pe_config_size(c, PE_HIDDEN);
    pe_build_input(c->m, "sinusoidal", pe_config_dims(c), stack)->spec =
        pe_build_text(c->m, "sinusoidal[preset=%s,dim=%lld]", preset, (long long)dim);
    pe_build_word(c->m, "preset", preset, "by the model type");
    if (rows)
        pe_build_integer(c->m, "rows", rows, "max_source_positions");
    pe_build_integer(c->m, "offset", offset, "position of the first token");
    pe_build_integer(c->m, "dim", dim, NULL);
    pe_build_real(c->m, "base", 10000, NULL);
    if (stack)
        pe_build_word(c->m, "stack", stack, NULL);
}

static void sinusoidal(pe_config *c)
{
    const int64_t pad    = pe_config_whole(c, c->file, "pad_token_id", 0, MOST_ROWS, 1);
    const int64_t offset = c->type.offset_inside ? pad + 1 : c->type.offset;
    const int64_t rows =
        pe_config_whole(c, c->file, c->type.rows_key, 1, MOST_ROWS, c->type.rows_key ? c->type.context : 0);
    add_sinusoid(c, c->type.preset, offset, rows, NULL);
    if (rows)
        c->m->info.max_positions = rows;
}

/* MAE's fixed table: sinusoids of the grid, and a row of zeros for the class token. */
static void mae(pe_config *c)
{
    const int64_t dim = pe_config_size(c, PE_HIDDEN);
    int64_t       grid[2];
    find_grid(c, grid);
    pe_build_input(c->m, "sinusoidal2d", pe_config_dims(c), NULL)->spec =
        pe_build_text(c->m, "sinusoidal2d[preset=mae,height=%lld,width=%lld,dim=%lld,prefix_rows=%lld]",
                      (long long)grid[0], (long long)grid[1], (long long)dim, (long long)c->type.prefix_rows);
    pe_build_word(c->m, "preset", "mae", "by the model type");
    pe_build_integer(c->m, "rows", c->type.prefix_rows + grid[0] * grid[1], "prefix + one for each patch");
    pe_build_integer(c->m, "prefix_rows", c->type.prefix_rows, "zeros");
    pe_build_integer(c->m, "dim", dim, NULL);
}

/* A Conformer's attention is Transformer-XL's, with sines and cosines in turn. */
static void conformer(pe_config *c)
{
    const int64_t width = pe_config_derived_width(c), dim = pe_config_size(c, PE_HIDDEN);
    if (c->m->status)
        return;
    posenc_model_group *g = pe_build_group(c->m, "transformer_xl", pe_config_dims(c), width);
    g->spec               = pe_build_text(c->m, "transformer_xl[d_model=%lld]", (long long)dim);
    pe_build_integer(c->m, "heads", g->dims.H, NULL);
    pe_build_integer(c->m, "head_dim", width, "hidden_size / heads");
    pe_build_word(c->m, "Wr", "rows 0, 2, 4, ... of relative_k_proj's input, then rows 1, 3, 5, ...",
                  "the model has sines and cosines in turn");
    pe_build_real(c->m, "score_scale", usual_scale(c), "1 / sqrt(head_dim)");
}

static void whisper(pe_config *c)
{
    const int64_t source = pe_config_whole(c, c->file, "max_source_positions", 1, MOST_ROWS, 1500);
    const int64_t target = pe_config_whole(c, c->file, "max_target_positions", 1, MOST_ROWS, 448);
    add_sinusoid(c, "t2t", 0, source, "encoder");
    add_table(c, target, 0, "max_target_positions", "decoder");
    c->m->info.max_positions = target;
}

/* ---------------------------------------------------------------- T5 ------------------------ */

typedef struct buckets {
    int64_t     count, distance;
    int         bidirectional;
    double      score_scale;
    const char *stack;
} buckets;

static void add_buckets(pe_config *c, const buckets *b)
{
    const posenc_dims   dims = pe_config_dims(c);
    posenc_model_group *g    = pe_build_group(c->m, "t5", dims, dims.D);
    char                scale[PE_TEXT_REAL];
    g->stack = b->stack;
    g->spec  = pe_build_text(c->m, "t5[num_buckets=%lld,max_distance=%lld,bidirectional=%s,scale=%s]",
                             (long long)b->count, (long long)b->distance, b->bidirectional ? "yes" : "no",
                             pe_text_real(scale, b->score_scale));
    if (b->stack)
        pe_build_word(c->m, "stack", b->stack, NULL);
    pe_build_integer(c->m, "heads", dims.H, NULL);
    pe_build_integer(c->m, "num_buckets", b->count, "relative_attention_num_buckets");
    pe_build_integer(c->m, "max_distance", b->distance, "relative_attention_max_distance");
    pe_build_flag(c->m, "bidirectional", b->bidirectional, b->stack);
    pe_build_flag(c->m, "shared", !c->type.own_tables, "by the model type");
    pe_build_real(c->m, "score_scale", b->score_scale, "by the model type");
}

static int64_t bucket_count(pe_config *c)
{
    return pe_config_whole(c, c->file, "relative_attention_num_buckets", 2, PE_MODEL_WIDEST, 32);
}

static void add_stack(pe_config *c, const char *stack, int bidirectional)
{
    buckets b  = {.count = bucket_count(c), .score_scale = 1, .stack = stack, .bidirectional = bidirectional};
    b.distance = pe_config_whole(c, c->file, "relative_attention_max_distance", 1, MOST_ROWS, FARTHEST);
    add_buckets(c, &b);
}

static void t5(pe_config *c)
{
    add_stack(c, "encoder", 1);
    add_stack(c, "decoder", 0);
}

static void t5_decoder(pe_config *c)
{
    add_stack(c, NULL, 0);
}

static void t5_second_stack(pe_config *c)
{
    add_stack(c, "decoder", 0);
}

/* MPNet has both, and its distance is fixed in the code. */
static void mpnet(pe_config *c)
{
    const buckets b = {
        .count = bucket_count(c), .distance = FARTHEST, .bidirectional = 1, .score_scale = usual_scale(c)};
    learned(c);
    add_buckets(c, &b);
}

/* ---------------------------------------------------------------- DeBERTa, XLNet ------------ */

/* pos_att_type is a list, or words joined by '|'. */
static const char *terms_of(pe_config *c, int *count)
{
    const json_t *value = pe_config_get(c->file, "pos_att_type"), *item;
    char         *words = pe_build_text(c->m, "%s", json_is_string(value) ? json_string_value(value) : "");
    size_t        i;
    if (value && !json_is_string(value) && !json_is_array(value))
        pe_build_refuse(c->m, "pos_att_type is %s; it must be a list, or words joined by |",
                        pe_config_shown(c, value));
    json_array_foreach(value, i, item)
    {
        if (!json_is_string(item))
            pe_build_refuse(c->m, "pos_att_type has %s; it must hold c2p and p2c", pe_config_shown(c, item));
        words = pe_build_text(c->m, "%s%s%s", words, i ? "|" : "",
                              json_is_string(item) ? json_string_value(item) : "");
    }
    *count = *words != '\0';
    for (char *at = words; *at; at++)
        if (*at == '|')
            *at = ' ', *count += 1;
    for (const char *at = *words ? words : NULL; at;) {
        const int n = (int)strcspn(at, " ");
        if (!n)
            pe_build_refuse(c->m, "pos_att_type has an empty word; leave it out");
        else if (!pe_text_is_among("c2p p2c p2p", pe_build_text(c->m, "%.*s", n, at)))
            pe_build_refuse(c->m, "pos_att_type has %.*s; known are c2p, p2c, p2p", n < 20 ? n : 20, at);
        at = at[n] ? at + n + 1 : NULL;
    }
    return words;
}

static void add_deberta(pe_config *c)
{
    static const int64_t low = -(INT64_C(1) << 31), high = MOST_ROWS;
    int                  count;
    const char          *terms    = terms_of(c, &count);
    int64_t              distance = pe_config_whole(c, c->file, "max_relative_positions", low, high, -1);
    const int64_t        groups =
        c->type.log_buckets ? pe_config_whole(c, c->file, "position_buckets", low, high, -1) : -1;
    const int64_t width = pe_config_derived_width(c);
    distance            = distance < 1 ? pe_config_size(c, PE_CONTEXT) : distance;
    if (c->m->status)
        return;
    posenc_model_group *g = pe_build_group(c->m, "deberta", pe_config_dims(c), width);
    g->spec               = pe_build_text(c->m, "deberta[max_relative_positions=%lld", (long long)distance);
    if (groups > 0)
        g->spec = pe_build_text(c->m, "%s,position_buckets=%lld", g->spec, (long long)groups);
    const char *norm = c->type.log_buckets ? pe_config_word(c, c->file, "norm_rel_ebd") : NULL;
    char        eps[PE_TEXT_REAL];
    if (norm && strstr(norm, "layer_norm"))
        g->spec = pe_build_text(c->m, "%s,norm_rel_ebd=yes,eps=%s", g->spec,
                                pe_text_real(eps, pe_config_real(c, c->file, "layer_norm_eps", 1e-7)));
    char *spec = pe_build_text(c->m, "%s,projected=no,biases=%s,terms=%s]", g->spec,
                               c->type.log_buckets ? "both" : "query", terms);
    for (char *at = spec; *at; at++)
        *at = (char)(*at == ' ' ? ':' : *at);
    g->spec = spec;
    pe_build_integer(c->m, "heads", g->dims.H, NULL);
    pe_build_integer(c->m, "head_dim", width, "hidden_size / heads");
    pe_build_fact(c->m, "terms", POSENC_FACT_WORDS, "pos_att_type")->text = terms;
    pe_build_integer(c->m, "max_relative_positions", distance, "the file; below 1: max_position_embeddings");
    if (groups > 0)
        pe_build_integer(c->m, "position_buckets", groups, NULL);
    else
        pe_build_fact(c->m, "position_buckets", POSENC_FACT_NONE, "each distance has its own row");
    pe_build_real(c->m, "score_scale", 1 / sqrt((double)width * (1 + count)),
                  "1 / sqrt(head_dim (1 + terms))");
}

static void deberta(pe_config *c)
{
    const int has_input = pe_config_flag(c, c->file, "position_biased_input", 1);
    const int has_terms = pe_config_flag(c, c->file, "relative_attention", 0);
    if (has_input)
        learned(c);
    if (has_terms)
        add_deberta(c);
    if (!has_input && !has_terms)
        pe_config_nope(c);
    c->m->info.max_positions = pe_config_size(c, PE_CONTEXT);
}

static void xlnet(pe_config *c)
{
    const char   *type  = pe_config_word(c, c->file, "attn_type");
    const int64_t width = pe_config_derived_width(c);
    const int64_t clamp = pe_config_whole(c, c->file, "clamp_len", -MOST_ROWS, MOST_ROWS, -1);
    if (type && !pe_text_is(type, "bi") && !pe_text_is(type, "uni"))
        pe_build_refuse(c->m, "attn_type is %.20s; it must be bi or uni", type);
    if (c->m->status)
        return;
    posenc_model_group *g = pe_build_group(c->m, "xlnet", pe_config_dims(c), width);
    g->spec = clamp > 0 ? pe_build_text(c->m, "xlnet[clamp_len=%lld]", (long long)clamp) : "xlnet";
    pe_build_integer(c->m, "heads", g->dims.H, NULL);
    pe_build_integer(c->m, "head_dim", width, "hidden_size / heads");
    if (clamp > 0)
        pe_build_integer(c->m, "clamp_len", clamp, NULL);
    else
        pe_build_fact(c->m, "clamp_len", POSENC_FACT_NONE, "no distance is too far");
    pe_build_flag(c->m, "bidirectional", !pe_text_is(type, "uni"), "attn_type");
    pe_build_real(c->m, "score_scale", usual_scale(c), "1 / sqrt(head_dim)");
}

/* ---------------------------------------------------------------- ALiBi --------------------- */

static void alibi(pe_config *c)
{
    const double  scale  = usual_scale(c);
    const json_t *nested = pe_config_nested(c);
    const double  most   = pe_config_real(c, nested, "alibi_bias_max", 8);
    const double  own    = pe_config_flag(c, c->file, c->type.by_width_key, 0) ? scale * scale : scale;
    const double  scores = pe_config_real(c, nested, "softmax_scale", own);
    if (!(most > 0))
        pe_build_refuse(c->m, "alibi_bias_max is %g; it must be above 0", most);
    if (most != 8)
        pe_build_warn(c->m, "programs-disagree",
                      "alibi_bias_max is %g; transformers does not read it and takes 8", most);
    if (!pe_config_flag(c, nested, "alibi", 1))
        pe_build_warn(c->m, "programs-disagree",
                      "alibi of %s is false; transformers does not read it and adds ALiBi's biases",
                      c->type.nested);
    pe_build_alibi(c->m, pe_config_dims(c), pe_config_derived_width(c), most, c->type.scaled_bias ? scale : 1,
                   scores);
}

/* ---------------------------------------------------------------- BERT by distance ---------- */

static void huang(pe_config *c)
{
    const char   *type  = pe_config_word(c, c->file, "position_embedding_type");
    const int64_t width = pe_config_derived_width(c), rows = pe_config_size(c, PE_CONTEXT);
    if (!rows)
        pe_build_refuse(c->m, "max_position_embeddings is missing; vectors by distance need it");
    if (c->m->status)
        return;
    posenc_model_group *g = pe_build_group(c->m, "huang_m4", pe_config_dims(c), width);
    g->spec               = pe_build_text(c->m, "huang_m4[max_positions=%lld,key_term=%s]", (long long)rows,
                            pe_text_is(type, "relative_key") ? "no" : "yes");
    pe_build_integer(c->m, "heads", g->dims.H, NULL);
    pe_build_integer(c->m, "head_dim", width, "hidden_size / heads");
    pe_build_integer(c->m, "max_positions", rows, "max_position_embeddings");
    pe_build_flag(c->m, "key_term", !pe_text_is(type, "relative_key"), "position_embedding_type");
    pe_build_real(c->m, "score_scale", usual_scale(c), "1 / sqrt(head_dim)");
}

/* ---------------------------------------------------------------- Inkling ------------------- */

/* Where neither list nor class says otherwise, local_layer_ids lists the layers that slide. */
static void take_local_layers(pe_config *c, char *kinds, int64_t depth)
{
    const json_t *list = pe_config_list(c, c->file, "local_layer_ids"), *value;
    size_t        k;
    if (!list || pe_config_get(c->file, "layer_types"))
        return;
    memset(kinds, PE_FULL, (size_t)depth);
    json_array_foreach((json_t *)list, k, value)
    {
        const json_int_t i = json_integer_value(value);
        if (!json_is_integer(value) || i < 0 || i >= depth) {
            pe_build_refuse(c->m, "local_layer_ids has %s; it must hold numbers of layers",
                            pe_config_shown(c, value));
            return;
        }
        kinds[i] = PE_LOCAL;
    }
}

static void add_inkling(pe_config *c, const char *kinds, int64_t depth, int slides)
{
    const char *const  keys[2][4] = {{"num_attention_heads", "num_key_value_heads", "head_dim", "rel_extent"},
                                     {"swa_num_attention_heads", "swa_num_key_value_heads", "swa_head_dim",
                                      "sliding_window_size"}};
    const char *const *key        = keys[slides];
    posenc_dims        dims       = pe_config_dims(c);
    const int64_t extent = pe_config_whole(c, c->file, key[3], 1, MOST_ROWS, slides ? c->type.window : 1024),
                  width  = pe_config_width(c, "d_rel", 1, 16),
                  floor  = pe_config_whole(c, c->file, "log_scaling_n_floor", 0, INT64_C(1) << 53,
                                           c->type.original_length);
    const double alpha   = pe_config_real(c, c->file, "log_scaling_alpha", 0.1);
    const int    by_root = c->type.sinks == 3;
    char         text[2][PE_TEXT_REAL];
    dims.H = pe_config_width(c, key[0], 1, dims.H);
    dims.G = pe_config_width(c, key[1], 1, dims.G ? dims.G : dims.H);
    dims.D = pe_config_width(c, key[2], 1, c->type.head_dim);
    if (c->m->status)
        return;
    const double        scale = by_root ? 1 / sqrt((double)dims.D) : 1 / (double)dims.D;
    posenc_model_group *g     = pe_build_group(c->m, "inkling", dims, dims.D);
    const char         *tau   = "";
    if (!slides && floor > 0)
        tau = pe_build_text(c->m, ",temperature=inkling,temper_scale=%s,temper_length=%lld",
                            pe_text_real(text[0], alpha), (long long)floor);
    g->spec =
        pe_build_text(c->m, "inkling[extent=%lld,width=%lld%s%s]", (long long)extent, (long long)width, tau,
                      by_root ? pe_build_text(c->m, ",scale=%s,sink=token", pe_text_real(text[1], scale))
                              : "");
    pe_build_layers(c->m, kinds, depth, slides ? PE_LOCAL : PE_FULL);
    pe_build_integer(c->m, "heads", dims.H, key[0]);
    pe_build_integer(c->m, "head_dim", dims.D, key[2]);
    pe_build_integer(c->m, "extent", extent, key[3]);
    pe_build_integer(c->m, "width", width, "d_rel");
    pe_build_real(c->m, "score_scale", scale, by_root ? "1 / sqrt(head_dim)" : "1 / head_dim");
    if (by_root)
        pe_build_word(c->m, "sink", "token", "by the model type");
    if (!*tau) {
        pe_build_fact(c->m, "temperature", POSENC_FACT_NONE, NULL);
        return;
    }
    pe_build_word(c->m, "temperature.rule", "inkling", "by the model type");
    pe_build_real(c->m, "temperature.scale", alpha, NULL);
    pe_build_integer(c->m, "temperature.length", floor, NULL);
}

static void inkling(pe_config *c)
{
    int64_t depth;
    char   *kinds = pe_config_kinds(c, &depth);
    if (kinds)
        take_local_layers(c, kinds, depth);
    for (int slides = 0; kinds && !c->m->status && slides < 2; slides++)
        if (strchr(kinds, slides ? PE_LOCAL : PE_FULL))
            add_inkling(c, kinds, depth, slides);
}

/* ---------------------------------------------------------------- which --------------------- */

void pe_config_encoding(pe_config *c, const char *word)
{
    static const struct {
        const char *word;
        void (*read)(pe_config *c);
    } readers[] = {
        {"rope", pe_config_rope},
        {"nope", pe_config_nope},
        {"learned", learned},
        {"patches", patches},
        {"sinusoidal", sinusoidal},
        {"whisper", whisper},
        {"t5", t5},
        {"mpnet", mpnet},
        {"t5_decoder", t5_decoder},
        {"t5_second_stack", t5_second_stack},
        {"layoutlmv2", pe_config_layoutlm},
        {"layoutlmv3", pe_config_layoutlm},
        {"udop", pe_config_udop},
        {"mae", mae},
        {"conformer", conformer},
        {"sam", sam},
        {"beit", beit},
        {"deberta", deberta},
        {"xlnet", xlnet},
        {"alibi", alibi},
        {"swin", swin},
        {"swin_v2", swin},
        {"huang_m4", huang},
        {"inkling", inkling},
    };
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        if (pe_text_is(readers[i].word, word))
            readers[i].read(c);
}
