/* SPDX-License-Identifier: MIT */
/*
 * rows.c: contract in rows.h
 *
 * The idea  A tensor's name says what it is (projections.def), the model or the caller how many heads there
 *           are, and the shape must agree: a wrong count of key heads, the classic of grouped queries, is
 *           refused here instead of spoiling the weights.
 * Scales    One per row changes places with it. One per tensor stays, and so does one per block of rows where
 *           no two rows of different blocks change places: fp8 in blocks of 128 and heads that begin at
 *           multiples of 64. Any other part of a quantised projection is refused.
 * Layers    Those that do not rotate are left alone, and so are towers of images and sound, attention across
 *           towers and indexers, which have rotations of their own.
 */
#include "convert/rows.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/compiler.h"
#include "files/arrays/text.h"

/* ---------------------------------------------------------------- slots --------------------- */

const char *pe_rows_order_name(pe_rows_order order)
{
    static const char *const names[] = {"heads", "blocks", "groups", "quarters", "gated", "tail"};
    return names[order];
}

int pe_rows_rotates(const pe_rows_change *c, int64_t slot)
{
    const int64_t H = c->heads.H, G = c->heads.G, quarter = H / 4;
    switch (c->order) {
    case PE_ROWS_BLOCKS: return slot < H + G;
    case PE_ROWS_GROUPS: return slot % (H / G + 2) < H / G + 1;
    case PE_ROWS_QUARTERS: return slot % (3 * quarter) / quarter != 1;
    case PE_ROWS_GATED: return slot % 2 == 0;
    default: return 1;
    }
}

int64_t pe_rows_rotating(const pe_rows_change *c)
{
    int64_t n = 0;
    for (int64_t slot = 0; slot < c->rows / c->slot; slot++)
        n += pe_rows_rotates(c, slot);
    return n;
}

/* ---------------------------------------------------------------- names --------------------- */

typedef enum name_part { Q, K, FUSED, SHARED_K, Q_NORM, K_NORM } name_part;

static const char *const part_names[] = {"q", "k", "qkv", "k", "q norm", "k norm"};

typedef struct name_row {
    const char   *types, *names;
    name_part     part;
    pe_rows_order order;
} name_row;

#define PROJECTION(types, names, part, order) {types, names, part, PE_ROWS_##order},
static const name_row projections[] = {
#include "convert/projections.def"
};

enum { PROJECTIONS = sizeof projections / sizeof *projections };

/* Parts of a model that rotate otherwise, or not at all. */
static const char elsewhere[] =
    "vision_tower vision_model vision_encoder vision visual image_encoder audio_tower audio_encoder "
    "audio_model speech_encoder indexer cross_attn crossattention encoder_attn linear_attn";

static int is_elsewhere(const char *name)
{
    char word[80];
    for (size_t n; *name; name += n + (name[n] == '.')) {
        n = strcspn(name, ".");
        snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : sizeof word - 1), name);
        if (pe_text_is_among(elsewhere, word))
            return 1;
    }
    return 0;
}

/* What stands behind one of these names in a tensor's name: "weight". NULL: none of them is there. */
static const char *behind(const char *name, const char *names)
{
    for (size_t n; *names; names += n + (names[n] == ' ')) {
        n = strcspn(names, " ");
        for (const char *at = name; (at = strstr(at, ".")); at++)
            if (!strncmp(at + 1, names, n) && at[n + 1] == '.')
                return at + n + 2;
        if (!strncmp(name, names, n) && name[n] == '.')
            return name + n + 1;
    }
    return NULL;
}

/* The row of this name; *suffix: what stands behind it. The type's own row is the better one. */
static const name_row *find_projection(const char *name, const char *type, const char **suffix)
{
    const name_row *common = NULL;
    for (int i = 0; i < PROJECTIONS; i++) {
        const name_row *row  = &projections[i];
        const char     *rest = behind(name, row->names);
        if (!rest || (row->types && !pe_text_is_among(row->types, type)))
            continue;
        *suffix = rest;
        if (row->types)
            return row;
        common = common ? common : row;
    }
    return common;
}

/* A fused tensor's name that only the rows of certain types have. */
static int is_of_some_type(const char *name)
{
    for (int i = 0; i < PROJECTIONS; i++)
        if (projections[i].types && projections[i].part == FUSED && behind(name, projections[i].names))
            return 1;
    return 0;
}

/* The number of the layer: the first part of a name that is one. -1: none. */
static int64_t layer_of(const char *name)
{
    for (const char *at = name; at; at = strchr(at, '.')) {
        char *end;
        at += *at == '.';
        if (isdigit((unsigned char)*at)) {
            const long long n = strtoll(at, &end, 10);
            if (*end == '.')
                return n;
        }
    }
    return -1;
}

/* ---------------------------------------------------------------- heads --------------------- */

static int64_t fact(const posenc_model_group *g, const char *name)
{
    const posenc_fact *f = posenc_model_fact(g, name);
    return f && f->kind == POSENC_FACT_INTEGER ? f->integer : 0;
}

static const posenc_model_group *first_rotation(const posenc_model *m)
{
    const posenc_model_group *g;
    for (int i = 0; (g = posenc_model_group_at(m, i)); i++)
        if (pe_text_is(g->encoding, "rope"))
            return g;
    return NULL;
}

int pe_rows_heads(pe_heads *heads, const pe_rows_source *s, int64_t layer)
{
    *heads = s->sizes;
    if (!s->model)
        return 1;
    const int64_t             depth = posenc_model_describe(s->model)->layers;
    const posenc_model_group *g =
        layer < 0 || (depth && layer >= depth)
            ? first_rotation(s->model)
            : posenc_model_group_at(s->model, posenc_model_group_of(s->model, layer));
    if (!g || !pe_text_is(g->encoding, "rope"))
        return 0;
    const posenc_fact *layout = posenc_model_fact(g, "layout");
    *heads                    = (pe_heads){.H      = g->dims.H,
                                           .G      = g->dims.G ? g->dims.G : g->dims.H,
                                           .D      = fact(g, "head_dim"),
                                           .dim    = fact(g, "dim"),
                                           .offset = fact(g, "offset_dim"),
                                           .layout = layout ? layout->text : NULL};
    return 1;
}

int pe_rows_is_latent(const pe_checkpoint *c)
{
    const char *suffix;
    for (int i = 0; i < c->count; i++) {
        const name_row *row = find_projection(c->tensors[i].name, NULL, &suffix);
        if (row && row->part == SHARED_K && !is_elsewhere(c->tensors[i].name))
            return 1;
    }
    return 0;
}

/* ---------------------------------------------------------------- one tensor ---------------- */

typedef struct row_search {
    const pe_checkpoint        *c;
    const pe_checkpoint_tensor *t;
    const name_row             *row;
    const char                 *suffix;
    pe_rows_change             *change;
    posenc_error               *err;
} row_search;

static posenc_status fail(const row_search *s, posenc_status status, const char *format, ...) PE_PRINTF(3, 4);

static posenc_status fail(const row_search *s, posenc_status status, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const posenc_status told =
        pe_file_fail_list(s->err, status, (pe_origin){s->c->path, s->t->name}, format, values);
    va_end(values);
    return told;
}

static int64_t elements(const pe_checkpoint_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim && a < POSENC_MAX_DIMS; a++)
        n *= t->shape[a];
    return n;
}

static int begins_with(const char *text, const char *words)
{
    for (size_t n; *words; words += n + (words[n] == ' ')) {
        n = strcspn(words, " ");
        if (!strncmp(text, words, n))
            return 1;
    }
    return 0;
}

/* Rows that all heads together have. */
static int64_t rows_of(const pe_rows_change *c, name_part part)
{
    const pe_heads *h = &c->heads;
    switch (part) {
    case FUSED: return (h->H + 2 * h->G) * h->D;
    case K:
    case K_NORM: return h->G * h->D;
    default: return h->H * h->D * (c->order == PE_ROWS_GATED ? 2 : 1);
    }
}

/* Falcon's files name key heads that its class then leaves unused: what the rows hold counts. */
static void count_key_heads(const row_search *s)
{
    pe_heads     *h     = &s->change->heads;
    const int64_t slots = h->D && s->t->ndim ? s->t->shape[0] / h->D : 0, G = (slots - h->H) / 2;
    if (s->row->part == FUSED && s->row->types && G > 0 && h->H % G == 0)
        h->G = G;
}

/* Do rows that change places lie in one block of a scale with `blocks` of them? */
static int is_within_blocks(const pe_rows_change *c, int64_t blocks)
{
    int64_t block = 1;
    while ((c->rows + block - 1) / block > blocks)
        block *= 2;
    if ((c->rows + block - 1) / block != blocks)
        return 0;
    for (int64_t slot = 0; slot < c->rows / c->slot; slot++) {
        const int64_t first = slot * c->slot + c->heads.offset;
        if (pe_rows_rotates(c, slot) && first / block != (first + c->heads.dim - 1) / block)
            return 0;
    }
    return 1;
}

/* A norm has the weights of one head, or of all. */
static posenc_status fit_norm(const row_search *s, int *found)
{
    pe_rows_change *c = s->change;
    const int64_t   n = elements(s->t), D = c->heads.D, all = rows_of(c, s->row->part);
    if (n != D && n != all)
        return fail(s, POSENC_ERROR_FORMAT,
                    "it has %lld numbers; a norm of heads of %lld channels has %lld, or %lld for all heads",
                    (long long)n, (long long)D, (long long)D, (long long)all);
    c->rows = n;
    *found  = 1;
    return POSENC_OK;
}

/* The latent and the key below it; blocks of q in front do not matter. */
static posenc_status fit_tail(const row_search *s)
{
    pe_rows_change *c = s->change;
    if (s->t->ndim < 1 || s->t->shape[0] < c->heads.dim)
        return fail(s, POSENC_ERROR_FORMAT, "it has fewer rows than the %lld rotary channels of the key",
                    (long long)c->heads.dim);
    c->rows = c->slot = s->t->shape[0];
    c->heads.offset   = c->rows - c->heads.dim;
    return POSENC_OK;
}

static posenc_status refuse_rows(const row_search *s)
{
    const pe_heads *h = &s->change->heads;
    return fail(s, POSENC_ERROR_FORMAT,
                "it has %lld rows; %lld query and %lld key heads of %lld channels make %lld: the number of "
                "heads or the config is that of another model",
                (long long)(s->t->ndim ? s->t->shape[0] : 1), (long long)h->H, (long long)h->G,
                (long long)h->D, (long long)s->change->rows);
}

static posenc_status refuse_blocks(const row_search *s)
{
    return fail(s, POSENC_ERROR_FORMAT,
                "it quantises blocks of rows that would change places; convert the checkpoint to bf16 first, "
                "or permute it before it is quantised");
}

/* The rows of a weight, a bias, LoRA's B, a scale. */
static posenc_status fit_rows(const row_search *s, int *found)
{
    static const char untouched[] = "lora_A lora_embedding lora_alpha input_scale output_scale weight_shape "
                                    "input_global_scale weight_format";
    static const char packed[]    = "qweight qzeros g_idx weight.absmax weight.quant weight.nested";
    pe_rows_change   *c           = s->change;
    const int         is_weight   = !strcmp(s->suffix, "weight") || !strcmp(s->suffix, "base_layer.weight");
    posenc_status     status      = POSENC_OK;
    count_key_heads(s);
    if (begins_with(s->suffix, untouched))
        return POSENC_OK;
    if (begins_with(s->suffix, packed))
        return refuse_blocks(s);
    c->rows = rows_of(c, s->row->part);
    if (s->row->part == SHARED_K) {
        if (!is_weight && strcmp(s->suffix, "bias") != 0 && elements(s->t) == 1)
            return POSENC_OK;
        if (strstr(s->suffix, "scale")) /* how many rows there are, its weight alone says */
            for (int i = 0; i < s->c->count; i++) {
                const pe_checkpoint_tensor *w    = &s->c->tensors[i];
                const size_t                stem = (size_t)(s->suffix - s->t->name);
                if (strncmp(w->name, s->t->name, stem) != 0 || strcmp(w->name + stem, "weight") != 0)
                    continue;
                c->rows = c->slot = w->ndim ? w->shape[0] : 0;
                c->heads.offset   = c->rows - c->heads.dim;
            }
        else if ((status = fit_tail(s)))
            return status;
    }
    if (s->t->ndim && s->t->shape[0] == c->rows) {
        *found = 1;
        return POSENC_OK;
    }
    if (is_weight || !strcmp(s->suffix, "bias") || begins_with(s->suffix, "lora_B"))
        return is_weight && s->t->ndim == 2 && s->t->shape[1] == 1 && s->t->bits == 8 ? refuse_blocks(s)
                                                                                      : refuse_rows(s);
    if (elements(s->t) == 1 || (s->t->ndim == 2 && is_within_blocks(c, s->t->shape[0])))
        return POSENC_OK;
    return refuse_blocks(s);
}

/* Rows begin at whole bytes. */
static posenc_status measure(const row_search *s)
{
    pe_rows_change *c = s->change;
    c->row_bytes      = c->rows ? s->t->bytes / c->rows : 0;
    if (c->row_bytes * c->rows != s->t->bytes)
        return fail(s, POSENC_ERROR_FORMAT, "its type %.20s does not begin each row at a byte of its own",
                    s->t->type);
    return POSENC_OK;
}

posenc_status pe_rows_find(pe_rows_change *change, int *found, const pe_checkpoint *c, int tensor,
                           const pe_rows_source *source, posenc_error *err)
{
    const char *type = source->model ? posenc_model_describe(source->model)->type : NULL;
    row_search  s    = {c, &c->tensors[tensor], NULL, NULL, change, err};
    *found           = 0;
    if (is_elsewhere(s.t->name))
        return POSENC_OK;
    s.row = find_projection(s.t->name, type, &s.suffix);
    if (!s.row && is_of_some_type(s.t->name))
        return fail(&s, POSENC_ERROR_UNSUPPORTED,
                    "queries, keys and values are in one tensor, and the order of its rows follows from the "
                    "type of the model: give --config with its config.json");
    if (!s.row)
        return POSENC_OK;
    *change = (pe_rows_change){.tensor = tensor, .part = part_names[s.row->part], .order = s.row->order};
    if (!pe_rows_heads(&change->heads, source, layer_of(s.t->name)))
        return POSENC_OK;
    if (pe_text_is(type, "deepseek_v4"))
        return fail(&s, POSENC_ERROR_UNSUPPORTED,
                    "the keys of deepseek_v4 are its values too: their channels cannot change places alone");
    change->slot               = change->heads.D;
    const int           norm   = s.row->part == Q_NORM || s.row->part == K_NORM;
    const posenc_status status = norm ? fit_norm(&s, found) : fit_rows(&s, found);
    return status || !*found ? status : measure(&s);
}
