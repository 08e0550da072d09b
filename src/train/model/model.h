/* SPDX-License-Identifier: MIT */
/*
 * model.h: the small Transformer of `compare`, forward and backward
 *
 * A Transformer over bytes or tokens: token embedding (+ rows of the encoding, if it acts at the input;
 * spec.h has the other ways in which rows may enter), then layers of
 *
 *     x += Wo attend(norm(x) Wqkv)          attend: posenc_attend, whatever the encoding; what it wants of
 *                                           each token besides q, k and v (fox's f) is norm(x) W_f + b_f
 *     x += Wdown gelu(norm(x) Wup + bup) + bdown
 *
 * then a norm and an untied output. docs/experiments.md says which numbers it starts from, and why.
 *
 * It predicts the next byte under a causal mask or, bidirectional, bytes that are hidden from it, without a
 * mask. A model of symbols (the tasks, task.h) predicts whatever its batches ask for, at the positions where
 * they ask.
 *
 * All parameters lie in one array `theta`, all gradients in another, `grad`, with the same offsets;
 * the table `weights` says which stretch is what. So the optimiser, the tests and the copy of the
 * results walk one table. model.c builds tables, plans and memory and knows no arithmetic; model.inc
 * is the arithmetic, compiled once for float (what is trained) and once for double (what finite
 * differences can judge).
 *
 * A model is one thread's own: every call writes into its buffers. After creation nothing is
 * allocated.
 */
#ifndef PE_TRAIN_MODEL_H
#define PE_TRAIN_MODEL_H

#include <posenc/registry.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"
#include "train/model/spec.h"

/* A text is bytes, or ids of tokens, of which there are at most PE_MOST_SYMBOLS. */
enum { PE_BYTES = 256, PE_MOST_SYMBOLS = 1 << 16, PE_MLP_WIDTH = 4, PE_BLOCK_ROWS = 128 };
enum { PE_MOST_TOKENS = 8 }; /* token inputs of one layer */

/* ORDER layer_recipes (model.c): the tensors of one layer, then those of the whole model. */
typedef enum pe_layer_weight {
    PE_NORM1_GAIN,
    PE_NORM1_BIAS,
    PE_QKV, /* [d, 3 d]: columns of q, of k, of v, each head after head */
    PE_ATTENTION_OUT,
    PE_NORM2_GAIN,
    PE_NORM2_BIAS,
    PE_UP,
    PE_UP_BIAS,
    PE_DOWN,
    PE_DOWN_BIAS,
    PE_LAYER_WEIGHTS
} pe_layer_weight;

typedef enum pe_model_weight {
    PE_EMBEDDING,
    PE_FINAL_GAIN,
    PE_FINAL_BIAS,
    PE_OUTPUT,
    PE_MODEL_WEIGHTS
} pe_model_weight;

/* A stretch of theta. Offsets are multiples of 16 elements. */
typedef struct pe_weight {
    char    name[96];
    int64_t offset, count;
    int64_t rows;     /* of the matrices that lie side by side in it */
    int     matrices; /* how many that Muon steps; 0: AdamW does */
    double  rate;
    int     decays; /* takes weight decay: matrices only */
    int     trains; /* 0: a fixed parameter of the encoding */
} pe_weight;

/* A term of the gradient that a test may leave out, to see that finite differences notice. */
typedef enum pe_gradient_term {
    PE_DROP_NONE,
    PE_DROP_SOFTMAX,
    PE_DROP_NORM_MEAN,
    PE_DROP_NORM_VARIANCE,
    PE_DROP_NORM_GAIN,
    PE_DROP_NORM_BIAS,
    PE_DROP_GELU_CURVE,
    PE_DROP_MLP_SKIP,
    PE_DROP_ATTENTION_SKIP,
    PE_DROP_UP_BIAS,
    PE_DROP_DOWN_BIAS,
    PE_DROP_QUERY,
    PE_DROP_KEY,
    PE_DROP_VALUE,
    PE_DROP_ENCODING,
    PE_DROP_ROWS,
    PE_DROP_EMBEDDING,
    PE_DROP_PROJECTION,        /* of token inputs: their own weights and biases */
    PE_DROP_PROJECTION_STREAM, /* what of them comes to the stream */
    PE_DROP_HEAD_NORM,         /* norms_heads: what a head's length takes back */
    PE_DROP_TOKEN_HALF,        /* combine=concat: of W's rows for e */
    PE_DROP_ROWS_HALF,         /* of W's rows for p */
    PE_DROP_MIXING,            /* of e: dx W^T becomes dx */
    PE_DROP_BLOCK_ROWS,        /* inject=blocks: of the rows, what comes from blocks after the first */
    PE_DROP_TERMS
} pe_gradient_term;

typedef struct pe_model_config {
    const char  *spec;    /* or one per layer (posenc_layer_read) */
    int64_t      L;       /* training length: windows of pe_model_gradient */
    int64_t      longest; /* the longest window of pe_model_losses; 0 = L */
    int64_t      d_model, layers, heads;
    int64_t      batch; /* windows of one pe_model_gradient */
    uint64_t     seed;
    posenc_dtype dtype;         /* F32, or F64 for tests */
    int          bidirectional; /* 1: no mask, and hidden bytes are predicted; 0: causal, the next byte */
    pe_entry     entry;         /* how rows of an input encoding enter; all 0: added before the first block */
    int64_t      vocabulary;    /* of a model of text: ids are below it; 0: bytes */
    int          is_rough; /* 1: weights begin with any numbers, made quickly: it is only tried or timed */
    int norms_heads;       /* 1: q and k of each head are divided by their root mean square, without a gain */
    /* A model of symbols: so many of them, and so many classes, both at most PE_BYTES. 0: a model of
       text. */
    int64_t symbols, classes;
    int64_t scattered; /* not 0: batches may bring positions of their own, below so many */
    int64_t grid;      /* of symbols: they are cells of grids, row by row, of at most so many columns; 0: they
                          stand in line */
} pe_model_config;

/* What the forward pass leaves for the backward pass, in one layer. Element type: the model's. n =
   tokens. */
typedef struct pe_layer_memory {
    void *unit1, *scale1; /* [n,d] normalised rows, [n] 1 / standard deviation */
    void *head_scale;     /* norms_heads: [n,2H] 1 / root mean square, of q's heads and of k's */
    void *qkv, *o, *lse;  /* [n,3d], [n,d], [B,H,L] */
    void *tokens;         /* token inputs, one after the other, each [B,H,L,channels] */
    void *unit2, *scale2;
    void *hidden; /* [n,4d] before bias and gelu */
} pe_layer_memory;

/* Layers alike: their encoding and their mask. */
typedef struct pe_layer_kind {
    posenc_layer     read; /* what the model's SPEC says of them */
    posenc_encoding *encoding;
    posenc_plan     *short_plan, *long_plan; /* lengths up to L; up to longest */
    int              param_count, token_count;
    int64_t          columns; /* of the projections of all its token inputs together */
} pe_layer_kind;

/* One layer: which kind; the first of its tensors in params, and of its projections in weights: W, b of each
   token input. */
typedef struct pe_layer_place {
    const pe_layer_kind *kind;
    int                  params, projections;
} pe_layer_place;

typedef struct pe_model pe_model;

/* What a model reads and predicts; bytes may be tokens throughout.
   Next byte: windows[b] has length + 1 bytes; byte p + 1 is predicted from bytes 0 .. p; hidden is NULL.
   Bidirectional: windows[b] has length bytes; byte p is hidden where hidden[b * length + p] is not 0: there
   the model reads the mask symbol, and predicts the byte from all that stand around it.
   Symbols: windows[b] has length symbols, targets[b * length + p] is the class to be predicted at p, or
   negative; hidden is NULL. On a grid symbol p stands in row p / columns, column p % columns. */
typedef struct pe_batch {
    const uint16_t *const *windows;
    const unsigned char   *hidden;
    int64_t                B, length;
    const int16_t         *targets;
    int64_t                columns;
    const int64_t *positions; /* [B, length] ascending; NULL: in order. Of models that are scattered */
} pe_batch;

typedef struct pe_model_math {
    posenc_status (*losses)(pe_model *m, double *losses, const pe_batch *batch, posenc_error *err);
    posenc_status (*gradient)(pe_model *m, double *loss, const pe_batch *batch, posenc_error *err);
    posenc_status (*cosine)(pe_model *m, double *cosine, const double *weight, posenc_error *err);
} pe_model_math;

extern const pe_model_math pe_model_math_f32, pe_model_math_f64;

struct pe_model {
    pe_model_config      config;
    const pe_model_math *math;
    const pe_kernels    *kernels; /* of the float model */
    pe_layer_kind       *kinds;   /* [kind_count] */
    pe_layer_place      *stack;   /* [layers] */
    int                  kind_count;
    posenc_encoding     *encoding; /* that of the first layer, and its plans: their part at the */
    posenc_plan         *short_plan, *long_plan; /* input, if there is one, is the whole model's */
    int64_t              long_batch;             /* windows of `longest` that fit the buffers */

    pe_weight *weights; /* [weight_count]: layers, model, then the encoding's */
    int        weight_count;
    int64_t    size; /* elements of theta, grad */
    void      *theta, *grad;

    int param_count;              /* of the encodings of all layers */
    int encoding_weight;          /* index in `weights` of the first that is there for the encoding's sake */
    posenc_tensor *params;        /* [param_count] into theta, layer after layer */
    posenc_tensor *layer_dparams; /* [param_count] into grad; no data where not wanted */
    posenc_tensor *rows_dparams;  /* those of the first layer */
    int            has_rows;      /* the encoding acts at the input */
    int64_t        row_width;     /* numbers per row there; 0: has_rows is 0 */
    int            by_word;       /* rows take the place of the embedding, which is not trained then */
    int64_t symbols;     /* rows of the embedding: bytes or tokens; last the mask symbol, if there is one */
    int64_t classes;     /* columns of the output */
    int     coordinates; /* of a position at the input: 2 for encodings of grids */
    int     has_mixer;   /* combine=concat: weights[encoding_weight] is W [d + row_width, d] */

    void            *memory;                                          /* the one block of all that follows */
    posenc_workspace workspace;                                       /* for posenc_... */
    posenc_tensor    tokens[PE_MOST_TOKENS], dtokens[PE_MOST_TOKENS]; /* of the layer at work */
    pe_layer_memory *layers;
    void            *x, *dx, *spare;      /* [n,d] */
    void            *dqkv;                /* [n,3d] */
    void            *dtoken;              /* as pe_layer_memory.tokens */
    void            *y;                   /* of a block of tokens, of which the token input is made */
    void            *rows, *unit, *scale; /* [block,d] twice, [block] */
    void            *wide, *active;       /* [block,max(4d,classes,columns)], [block,4d] */
    void            *transposed;          /* matrices of a layer, transposed */
    double          *losses;              /* [n] */
    int64_t       *asked, asked_count; /* [n] rows of the batch that something is predicted from, ascending */
    int            picked;             /* they are not all */
    int64_t       *places;             /* by_word: [n,2] symbol and position of every token */
    int64_t       *cells;              /* grid: [longest,2] row and column of every token */
    int64_t       *numbers;            /* grid: [longest] number of its cell in the largest grid */
    unsigned char *right;              /* symbols: [n] 1 where the target was the likeliest class */
    /* Rows that are not simply added at the input, without the batch, which shares them. */
    void *table,
        *dtable; /* [longest, or n where scattered, row_width] rows of the encoding, and their cotangents */
    void *mixed_rows; /* [the same, d] what is added to the token's vector, p W; backward: dx summed over the
                         batch */

    pe_gradient_term drop_gradient; /* tests only */
    const pe_batch  *batch;         /* the one at work: windows that stand alike share their rows */
    int64_t first; /* the position of a window's first symbol, 0 unless somebody moves it; not on grids */
};

posenc_status pe_model_create(pe_model **model, const pe_model_config *config, posenc_error *err);
void          pe_model_free(pe_model *model); /* NULL is fine */

/* Columns of its output: classes of symbols, ids of tokens, or bytes. */
int64_t pe_model_classes(const pe_model_config *config);
/* The most windows, and bytes of them, that one call takes. */
int64_t pe_model_rows(const pe_model *m);
int64_t pe_model_tokens(const pe_model *m);

/* losses [B, length]: nats of each predicted byte, NaN where none is predicted. B and length as planned:
   batch windows up to L, or long_batch windows up to `longest`. A model of symbols leaves in m->right which
   it had right. */
posenc_status pe_model_losses(pe_model *m, double *losses, const pe_batch *batch, posenc_error *err);

/* *loss = mean over what is predicted; grad receives (overwrites) its gradient. At least one prediction must
   be asked for. batch->length is at most L. */
posenc_status pe_model_gradient(pe_model *m, double *loss, const pe_batch *batch, posenc_error *err);

/* *cosine = mean of |cos| between what of a token's vector and what of a position's row enter the first
   block's sum: e and p, or with combine=concat the two halves of [e; p] W; over the positions below L and the
   bytes as `weight` [classes] (of sum 1) weighs them. NaN without an encoding at the input, and for a model
   of symbols. Uses the buffers of a batch. */
posenc_status pe_model_cosine(pe_model *m, double *cosine, const double *weight, posenc_error *err);

/* About how many multiplications so many tokens cost, for what is to be weighed against each other: at most,
   for rows that are not asked do not pass through all of the last layer. */
double pe_model_cost(int64_t d_model, int64_t layers, int64_t classes, int64_t tokens);

/* Elements that training changes: of the whole model; of the encoding only, with W if it has one. */
int64_t pe_model_parameters(const pe_model *m);
int64_t pe_model_encoding_parameters(const pe_model *m);

/* ---------------------------------------------------------------- its tensors (model_table.c) */

posenc_status pe_model_no_memory(posenc_error *err);

/* What plans are made for: so many windows of that length; and the sizes of the model's two plans. */
posenc_dims pe_model_dims(const pe_model_config *config, int64_t B, int64_t length);
posenc_dims pe_model_short_dims(const pe_model *m);
posenc_dims pe_model_long_dims(const pe_model *m);

/* In this order. How rows enter, if there are any; after the plans. */
posenc_status pe_model_entry_prepare(pe_model *m, posenc_error *err);
/* The table `weights`, and the encoding's tensors without data. */
posenc_status pe_model_table_create(pe_model *m, posenc_error *err);
/* Of layer l: input i of each token, its numbers for each, and where W and b stand in `weights`. */
int64_t          pe_model_token_columns(const pe_model *m, int64_t l, int i);
const pe_weight *pe_model_projection(const pe_model *m, int64_t l, int i);
/* What a layer knows of its encoding: parameters of layer l. */
posenc_tensor *pe_model_params(const pe_model *m, int64_t l);
/* Points the encoding's tensors into theta and grad, once there is memory. */
void pe_model_connect(pe_model *m);
/* The numbers before the first step. */
posenc_status pe_model_start(pe_model *m, posenc_error *err);

#endif
