/* SPDX-License-Identifier: MIT */
/*
 * decoder.h: what the files of decode.c share
 *
 * decoder_layout.c cuts the keys and lays everything out, decoder_rows.c brings keys and values to the
 * kernels, decoder_terms.c adds to the scores what is not a product; decode.c calls them and joins the parts.
 */
#ifndef PE_ENGINE_DECODER_H
#define PE_ENGINE_DECODER_H

#include "engine/roads.h"

enum {
    PE_DECODE_PIECE = 128, /* keys of a piece that masks meet, and of a block at least */
    PE_DECODE_FEW   = 16   /* rows in scratch */
};

/* Of one thread. */
typedef struct pe_decode_bench {
    float    *S, *extra; /* [rows, block], [PE_DECODE_PIECE] */
    uint16_t *P;         /* [rows, block] weights in bf16 */
    float    *key;       /* [PE_DECODE_PIECE] 0 or -infinity */
    float    *factor;    /* [rows] */
    float    *few;       /* [PE_DECODE_FEW, max(Dp,Dvp)] */
    float    *table;     /* [PE_DECODE_PIECE, width of a turn] */
    pe_rung   rung;
} pe_decode_bench;

typedef struct pe_decoder {
    const pe_attention    *a;
    pe_tiles               T; /* tables by distance and the width of rows; nothing of it is a tile */
    int64_t                group, rows;             /* query heads of a key head; their queries */
    int64_t                from, to, chunk, chunks; /* keys that any query may see; of a chunk; chunks */
    int64_t                block, together;         /* keys of a block; key heads that share its cosines */
    int64_t                piece;                   /* keys that masks and biases meet at once */
    double                 near;                    /* the smallest distance among them */
    float                 *Q;                       /* [B, H, Lq, Dp] turned and scaled */
    uint16_t              *Q16;     /* the same as they came, where they meet keys as pairs of bf16 */
    const pe_bf16_kernels *keys;    /* of those pairs; NULL: they do not */
    const pe_bf16_kernels *values;  /* of weights in bf16 with values; NULL: weights are floats */
    float                 *m, *l;   /* [B, chunks, H, Lq] */
    float                 *rounded; /* as l, of the weights that meet the values */
    float                 *O;       /* [B, chunks, H, Lq, Dvp] */
    pe_decode_bench       *benches; /* [threads] */
    pe_ladder              ladder;  /* for turning keys */
    int                    climbs;  /* is it there? */
} pe_decoder;

/* C keys from j0 on of item b. */
typedef struct pe_keys {
    int64_t     b, j0, C;
    const void *next; /* the keys that are read after them; NULL: none */
} pe_keys;

/* On an arena without memory it only counts. */
pe_decoder pe_decoder_lay_out(const pe_attention *a, pe_arena *arena);
/* Cosines and sines of steps, for keys that are turned. */
void pe_decoder_make_ladder(pe_decoder *x);
/* Q, and Q16 where it is wanted. */
void pe_decoder_load_queries(const pe_decoder *x);

/* Does something go by positions one by one? */
static inline int pe_decoder_has_extra(const pe_decoder *x)
{
    return !x->T.skewed || (x->a->mask & (POSENC_MASK_EXPLICIT | POSENC_MASK_SEGMENTS));
}

/* Products of the queries Q with the keys of head g become z->S; weights times its values are added to O. */
void pe_decode_keys(const pe_decoder *x, pe_decode_bench *z, const float *Q, const pe_keys *n, int64_t g);
void pe_decode_values(const pe_decoder *x, pe_decode_bench *z, float *O, const pe_keys *n, int64_t g);

/* Products of the rows of one key head, whose first query head is h0, become scores: biases and masks. Behind
   the softmax weights meet the gate. */
void pe_decode_finish(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t h0);
void pe_decode_gate(const pe_decoder *x, pe_decode_bench *z, const pe_keys *n, int64_t h0);

#endif
