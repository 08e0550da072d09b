/* SPDX-License-Identifier: MIT */
/*
 * rotation.h: the pass that rotates pairs of channels by position
 *
 * A room states which channels are pairs, which coordinate and frequency each pair follows, and a magnitude;
 * everything else - exact angles, tables, rows in float and double, forward and back, from one rotation to
 * another - is here, and knows no schedule and no model. Coordinate p rotates a pair of frequency w by the
 * angle p * w: the product is exact (base/angle.h), cosine and sine are rounded once to the type of the
 * table.
 *
 * Pairs come in blocks: as a rule one, half-split or interleaved, so that both are plain vector loops; where
 * an encoder of pictures pairs within the part of each coordinate, one block for each of them. A result in
 * another layout is rotated in the layout of the input and then permuted in place along the cycles of the
 * permutation.
 */
#ifndef PE_ENGINE_ROTATION_H
#define PE_ENGINE_ROTATION_H

#include "base/angle.h"
#include "base/positions.h"
#include "base/arena.h"
#include "base/parallel.h"
#include "engine/rotation/axes.h"
#include "engine/rotation/ladder.h"
#include "engine/rotation/map.h"
#include "kernels/kernels.h"

typedef enum pe_layout {
    PE_INTERLEAVED, /* pair m = channels (2m, 2m+1) of the block: the paper, GPT-J */
    PE_HALF         /* pair m = channels (m, m+M): GPT-NeoX */
} pe_layout;

typedef enum pe_angles {
    PE_EXACT,
    PE_FLOAT32, /* position, frequency and product are rounded to float32, as in the common Python code */
    PE_GGML /* no frequencies: the angle is multiplied by base^(-2/dim) from pair to pair, in float32: ggml.h
             */
} pe_angles;

typedef enum pe_number { PE_AS_F64, PE_AS_F32, PE_AS_BF16, PE_AS_F16 } pe_number;

typedef enum pe_temperature { PE_NO_TEMPERATURE, PE_LLAMA4, PE_MINISTRAL } pe_temperature;

typedef enum pe_phase_heads { PE_PHASE_ALL, PE_PHASE_ODD, PE_PHASE_SECOND_HALF } pe_phase_heads;

/* What angles are made of in place of positions: of a token input one number for all pairs, the angle of each
   pair, or a step of each pair from token to token. Then each pair follows the number of its own, and whoever
   rotates says which (`at`): a pe_rotary knows only positions. */
typedef enum pe_content {
    PE_CONTENT_NONE,
    PE_CONTENT_POSITION,
    PE_CONTENT_ANGLE,
    PE_CONTENT_STEP
} pe_content;

/* Doubles of a walk from token to token (score/turn.c), for each number that a token has. */
enum { PE_TURN_WALK = 3 };

typedef struct pe_rotary {
    int64_t   M; /* pairs; the rotated block is channels first .. first + 2M - 1 */
    int64_t   first;
    pe_layout layout, layout_out;     /* of what is rotated, and of the result */
    int       blocks;                 /* block i holds pairs start[i] .. start[i+1]-1 and their channels */
    int64_t   start[PE_MAX_AXES + 1]; /* pe_rotation_one_block: a single one */
    double    magnitude;              /* factor on cosine and sine */
    double    sense;                  /* +1; -1: the rotation itself is the inverse one */
    pe_number table_type;             /* cosine and sine are rounded to it */

    /* Frequencies. */
    int           axes, is_matrix; /* coordinates; angles are sums over all of them */
    int64_t       heads;           /* 1: all are alike; else each head has a matrix of its own */
    int32_t      *axis, *index;    /* [M] which coordinate, and which number of its list: axes.h */
    double       *w;               /* [M], of a matrix [heads, M, axes]: radians per step */
    pe_frequency *k;               /* the same in quarter turns, filled by pe_rotation_finish */
    pe_frequency *step_k;          /* [M] of a step of a map's form, filled by pe_rotation_ladder; NULL: k */
    pe_angles     angles;
    double *divisor, *share; /* PE_GGML: [M] each angle is divided by, and its part that is not slowed */
    double  step, slower;    /* PE_GGML: from pair to pair, and for all; float32 numbers */

    /* A factor on whole rows of queries by coordinate 0; keys have none. */
    pe_temperature temperature;
    double         temperature_scale, temperature_length;

    /* RoPE++: queries of some heads are turned further, each pair by the same angle; tables do not know it.
     */
    double         phase; /* 0: none are */
    pe_phase_heads phase_heads;
    int64_t        second_half;              /* its first head */
    double         phase_cosine, phase_sine; /* of the head at hand: pe_rotation_of_head */

    pe_content content;

    pe_map map;           /* of distances, which attention looks at; */
    int    form, of_keys; /* which form this rotation is of, of queries or of keys */

    /* xPos: a query at p is also multiplied by exp(growth * (p - center)), a key by exp(-growth * (p -
       center)). Scores do not depend on center; it keeps both factors within the range of float. NULL: no
       growth */
    double *growth;              /* [M] */
    double  center, growth_sign; /* +1 queries, -1 keys */
    int     grows;               /* is there growth? */
    int     depends_on_run;      /* on its parameters, or its length: each run fills in its own rotation */
    int     depends_on_length;

    int64_t unusable; /* filled by pe_rotation_finish: the first pair with a frequency that is no number, or
                       too fast for exact angles; -1: none */
    int32_t *moves, *from; /* filled by pe_rotation_finish where the layouts differ: cycles, each after
                                                 its length, ended by 0; and room to find them */
} pe_rotary;

/* Takes the arrays for up to D/2 pairs; everything else is zero, and one block. */
void pe_rotation_lay_out(pe_rotary *rotary, pe_arena *arena, int64_t D, int axes, int64_t heads);
/* May `dim` of D channels be rotated? `who` opens the sentence. */
posenc_status pe_rotation_check_dim(const char *who, int64_t dim, int64_t D, posenc_error *err);
/* M pairs in one block that starts at channel `first`, all following coordinate 0 in their order. */
void pe_rotation_one_block(pe_rotary *rotary, int64_t M, int64_t first, pe_layout layout);
/* What follows from all that: call it last. */
void pe_rotation_finish(pe_rotary *rotary);

/* The same rotation for keys. */
pe_rotary pe_rotation_for_keys(const pe_rotary *rotary);

/* The rotation of head h of the run: `rotary` itself where all heads are alike, else its part of it, put into
 *own. Everything below but channels, places and temperatures takes the rotation of one head. */
const pe_rotary *pe_rotation_of_head(pe_rotary *own, const pe_rotary *rotary, int64_t h);

/* First and second channel of pair m in a layout. */
void pe_rotation_channels(const pe_rotary *rotary, pe_layout layout, int64_t m, int64_t channels[2]);

/* growth[D]: by what the logarithm of a channel's share of q.k changes per token of distance; zeros where
   nothing is rotated. */
void pe_rotation_channel_growth(const pe_rotary *grown, int64_t D, double growth[]);

/* Coordinates of element s of item b. */
void pe_rotation_place(const pe_rotary *rotary, const posenc_positions *pos, int64_t b, int64_t s,
                       double at[PE_MAX_AXES]);

/* angle[M] of a place in radians, not reduced, without sense: the product rounded to double. */
void pe_rotation_angles(const pe_rotary *rotary, const double at[], double angle[]);
/* The factor on a whole row. */
double pe_rotation_temperature(const pe_rotary *rotary, const double at[]);

/* Floats in a row of a table: cosines and sines of each block, times the magnitude, and the temperature if
   there is one. */
int64_t pe_rotation_width(const pe_rotary *rotary);
/* Table rows for elements s0 .. s0+n-1 of batch item b, `stride` floats apart, the sooner where there are
   many at whole positions: with a ladder (NULL: without) for rotations and positions that it can climb to.
   `stream`: see pe_wave_rows. The kernels may read PE_LANES floats beyond the last row. */
void pe_rotation_fill(float *table, int64_t stride, const pe_rotary *rotary, const posenc_positions *pos,
                      int64_t b, int64_t s0, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                      const pe_kernels *kernels);
/* One such row, without the temperature, of a place. */
void pe_rotation_fill_at(float *table, const pe_rotary *rotary, const double at[], const pe_kernels *kernels);
/* May a ladder serve these positions? */
int  pe_rotation_climbs(const pe_rotary *rotary, const posenc_positions *pos);
void pe_rotation_ladder(pe_ladder *ladder, const pe_rotary *rotary, const pe_kernels *kernels);
/* Fewer rows that stand one after another are made each for itself. */
enum { PE_LEAST_RUN = 8 };
/* A ladder for queries and keys of any run at whole positions; NULL where they cannot climb one, or without
   memory. */
pe_ladder *pe_rotation_ladder_create(const pe_rotary *rotary, const pe_kernels *kernels,
                                     const posenc_allocator *from);

/* One row of `width` doubles in place; sign +1, or -1: back, the transpose of forward. */
void pe_rotation_row(double *x, int64_t width, const pe_rotary *rotary, const double at[], double sign);

/* R rows of floats in place, with table rows of the same elements. */
void pe_rotation_rows(float *x, int64_t stride, int64_t width, const pe_rotary *rotary, const float *table,
                      int64_t R, float sign, const pe_kernels *kernels);

/* Heads of n tokens rotated from where they lie to where they shall be, in their own type of storage. */
typedef struct pe_rotated {
    const posenc_tensor *from, *to; /* [B,H,L,D] of one of the types pe_rotation_stores, `to` of the same */
    double               sign;
    int64_t              far; /* this and the others as in pe_rotate_args */
    int                  stream, far_table;
} pe_rotated;

/* Can the kernels rotate rows of these types where they lie? Else they go through floats: pe_rotation_rows.
 */
int pe_rotation_stores(const pe_rotary *rotary, posenc_dtype from, posenc_dtype to);
/* What `far` and `stream` shall be, of rows that have so many bytes. */
void pe_rotation_aim(pe_rotated *x, const pe_rotary *rotary, int64_t bytes);
/* Tokens s0 .. s0+n-1 of item b, by table rows `stride` apart. */
void pe_rotation_heads(const pe_rotated *x, const pe_rotary *rotary, int64_t b, int64_t s0, int64_t n,
                       const float *table, int64_t stride, const pe_kernels *kernels);

/* A row that `from` rotated at one place, as `to` would have rotated it at another: the angle between is
   exact, the magnitude is their ratio. y [width] is written, channels outside the block as they are in x. */
void pe_rotation_rerotate(double *y, const double *x, int64_t width, const pe_rotary *from,
                          const double from_at[], const pe_rotary *to, const double to_at[]);

/* dw[M, axes] (of a matrix; else dw[M, the pair's coordinate]) += the gradient of the frequencies, from a row
   x that was rotated with `sign`, and the cotangent dx of x. */
void pe_rotation_slopes(double *dw, const pe_rotary *rotary, const double at[], double sign, const double *x,
                        const double *dx);

/* dangle[M] += the cotangents of the angles themselves, from the same. */
void pe_rotation_turns(double *dangle, const pe_rotary *rotary, double sign, const double *x,
                       const double *dx);

/* ---- rotation_table.c: cosines and sines of all rows of queries, or of keys, for all threads ---- */

/* One for each item with positions of its own, and in it for each head with frequencies of its own. */
typedef struct pe_rotation_table {
    const pe_rotary        *by; /* NULL: no rotation */
    const posenc_positions *pos;
    int64_t                 L, batches, heads;
    float                  *rows; /* [batches, heads, L, width] */
    pe_ladder               ladder;
    pe_rung                *rungs; /* [threads]; where rows are too few for the ladder neither is used */
    double                 *walks; /* [threads, walk] of content, which fills the rows itself */
    int64_t                 walk;
} pe_rotation_table;

/* Memory for the rows that *t describes. */
void pe_rotation_table_lay_out(pe_rotation_table *t, int threads, pe_arena *arena);
void pe_rotation_table_fill(pe_rotation_table *t, const pe_team *team, const pe_kernels *kernels);

#endif
