/* SPDX-License-Identifier: MIT */
/*
 * config_pages.c: models of pages, whose tokens have a place in the text and a box
 *
 * Their scores get the sum of T5's buckets, a table for each coordinate (encoding t5_nd). The rows that boxes
 * have at the input, tables of edges and sizes put side by side or added, are no SPEC: they are named.
 *
 * LayoutLM  v2 adds the sum to the finished score, v3 divides it by sqrt(D); v3 knows no sum without the
 *           text's
 * UDOP      lists its coordinates in relative_bias_args; its decoder has T5's table, of the text alone
 * Source    transformers 5.24, modeling_layoutlmv2.py, modeling_layoutlmv3.py, modeling_udop.py
 */
#include "files/config/config.h"

#include <math.h>
#include <string.h>

enum { COORDINATES = 4, MOST_STEPS = 1 << 20 };

typedef struct page_buckets {
    int         count;
    double      buckets[COORDINATES], far[COORDINATES], factor[COORDINATES];
    const char *places; /* what the coordinates are */
    double      bias_scale, score_scale;
    const char *rule; /* of score_scale */
} page_buckets;

/* "32:64:64" */
static const char *joined(pe_config *c, const double list[], int n)
{
    char *text = pe_build_text(c->m, "%.0f", list[0]);
    for (int i = 1; i < n; i++)
        text = pe_build_text(c->m, "%s:%.0f", text, list[i]);
    return text;
}

static void put_list(pe_config *c, const char *name, const double list[], int n, const char *rule)
{
    double *kept = pe_build_alloc(c->m, (size_t)n * sizeof *kept);
    if (!c->m->status)
        pe_build_list(c->m, name, POSENC_FACT_INTEGERS, memcpy(kept, list, (size_t)n * sizeof *kept), n,
                      rule);
}

static posenc_model_group *add_buckets(pe_config *c, const page_buckets *b, int64_t width)
{
    char                real[2][PE_TEXT_REAL];
    posenc_model_group *g = pe_build_group(c->m, "t5_nd", pe_config_dims(c), width);
    g->spec = pe_build_text(c->m, "t5_nd[num_buckets=%s,max_distance=%s,factor=%s,bias_scale=%s,scale=%s]",
                            joined(c, b->buckets, b->count), joined(c, b->far, b->count),
                            joined(c, b->factor, b->count), pe_text_real(real[0], b->bias_scale),
                            pe_text_real(real[1], b->score_scale));
    pe_build_integer(c->m, "heads", g->dims.H, NULL);
    pe_build_integer(c->m, "head_dim", width, NULL);
    pe_build_word(c->m, "coordinates", b->places, "of a position, in this order");
    put_list(c, "num_buckets", b->buckets, b->count, "one for each coordinate");
    put_list(c, "max_distance", b->far, b->count, "one for each coordinate");
    put_list(c, "factor", b->factor, b->count, "steps in a unit");
    pe_build_real(c->m, "bias_scale", b->bias_scale, b->bias_scale == 1 ? NULL : "1 / sqrt(head_dim)");
    pe_build_real(c->m, "score_scale", b->score_scale, b->rule);
    return g;
}

void pe_config_layoutlm(pe_config *c)
{
    const int is_v3      = pe_text_is(c->encoding, "layoutlmv3");
    const int text       = pe_config_flag(c, c->file, "has_relative_attention_bias", 1),
              page       = pe_config_flag(c, c->file, "has_spatial_attention_bias", 1);
    const int64_t width  = pe_config_derived_width(c);
    const int64_t bins[] = {pe_config_whole(c, c->file, "rel_pos_bins", 4, MOST_STEPS, 32),
                            pe_config_whole(c, c->file, "rel_2d_pos_bins", 4, MOST_STEPS, 64)},
                  far[]  = {pe_config_whole(c, c->file, "max_rel_pos", 2, MOST_STEPS, 128),
                            pe_config_whole(c, c->file, "max_rel_2d_pos", 2, MOST_STEPS, 256)};
    pe_config_encoding(c, "learned");
    if (c->m->status)
        return;
    pe_build_word(c->m, "other_terms",
                  "rows of each box (x_, y_, h_ and w_position_embeddings, side by side)", "added as well");
    if (!text && page && !is_v3)
        pe_build_refuse(c->m,
                        "has_spatial_attention_bias is true and has_relative_attention_bias false; tables "
                        "for x and y without one for the text are not read");
    if (!text || c->m->status) {
        pe_config_nope(c);
        return;
    }
    page_buckets b = {.count  = page ? 3 : 1,
                      .places = page ? "token; left edge, lower edge of its box in thousandths of the page"
                                     : "token",
                      .score_scale = 1 / sqrt((double)width),
                      .rule        = "1 / sqrt(head_dim)"};
    for (int a = 0; a < b.count; a++) {
        b.buckets[a] = (double)bins[a > 0];
        b.far[a]     = (double)far[a > 0];
        b.factor[a]  = 1;
    }
    b.bias_scale = is_v3 ? b.score_scale : 1;
    add_buckets(c, &b, width);
}

/* ---------------------------------------------------------------- UDOP ---------------------- */

/* What the classes of relative_bias_args take for granted. */
static const struct {
    const char *type, *place;
    int64_t     far, factor;
} kinds[] = {{"1d", "token", 128, 1},
             {"horizontal", "middle of its box in x, a share of the page", 100, 100},
             {"vertical", "middle of its box in y, a share of the page", 100, 100}};

enum { KINDS = sizeof kinds / sizeof *kinds };

static void add_kind(pe_config *c, const json_t *item, int kind, page_buckets *b)
{
    const int a   = b->count++;
    b->buckets[a] = (double)pe_config_whole(c, item, "relative_attention_num_buckets", 4, MOST_STEPS, 32);
    b->far[a]     = (double)pe_config_whole(c, item, "max_distance", 2, MOST_STEPS, kinds[kind].far);
    b->factor[a]  = (double)pe_config_whole(c, item, "scaling_factor", 1, MOST_STEPS, kinds[kind].factor);
    b->places     = a ? pe_build_text(c->m, "%s; %s", b->places, kinds[kind].place) : kinds[kind].place;
    if (pe_config_flag(c, item, "prefix_bucket", 0))
        pe_build_refuse(c->m, "relative_bias_args has prefix_bucket; buckets of a prefix are not read");
}

static void read_kinds(pe_config *c, page_buckets *b)
{
    const json_t *list = pe_config_list(c, c->file, "relative_bias_args"), *item;
    size_t        i;
    for (int kind = 0; !list && kind < KINDS; kind++)
        add_kind(c, NULL, kind, b);
    json_array_foreach(list, i, item)
    {
        const char *type = pe_config_word(c, item, "type");
        int         kind = 0;
        while (kind < KINDS && !(type && pe_text_is(kinds[kind].type, type)))
            kind++;
        if (kind == KINDS || b->count == COORDINATES)
            pe_build_refuse(c->m,
                            "relative_bias_args has %s; up to %d of 1d, horizontal and vertical are read",
                            pe_config_shown(c, item), COORDINATES);
        if (c->m->status)
            return;
        add_kind(c, item, kind, b);
    }
}

void pe_config_udop(pe_config *c)
{
    page_buckets b = {.bias_scale = 1, .score_scale = 1, .rule = "by the model type"};
    read_kinds(c, &b);
    if (c->m->status)
        return;
    if (b.count) {
        posenc_model_group *g = add_buckets(c, &b, pe_config_dims(c).D);
        g->stack              = "encoder";
        pe_build_word(c->m, "stack", "encoder", NULL);
        pe_build_word(c->m, "input", "rows of each box (cell_2d_embedding), too", "by the model type");
    }
    pe_config_encoding(c, "t5_second_stack");
}
