/* SPDX-License-Identifier: MIT */
/*
 * posenc: positional encodings of Transformers, exact and differentiable
 *
 * An encoding acts at one of four places of a layer, and this header follows them:
 *
 *   tokens -> embedding --(1)--> projections --(2)--> scores --(3)--> softmax --(4)--> output
 *             input               rotary              score           weight
 *
 * Two verbs. *Prepare* (posenc_encoding_create, posenc_plan_create) checks, plans and may
 * allocate or fail. *Run* (posenc_rows, posenc_rotate, posenc_attend ...) allocates nothing, works
 * in the caller's workspace and gives the same bits for any number of threads.
 *
 *     posenc_error     err;
 *     posenc_encoding *e;
 *     posenc_plan     *plan;
 *     posenc_dims      dims = {.B = 1, .H = 8, .G = 8, .Lq = 128, .Lk = 128, .D = 64, .Dv = 64};
 *     posenc_options   opt  = posenc_options_default();
 *     opt.mask = POSENC_MASK_CAUSAL;
 *     if (posenc_encoding_create(&e, "alibi", NULL, &err) || posenc_plan_create(&plan, e, &dims, &opt, &err))
 *         return fputs(err.message, stderr), 1;
 *     posenc_attend_in in = {.q = q, .k = k, .v = v, .params = params};
 *     posenc_attend_out out = {.o = o};
 *     void *work = aligned_alloc(64, posenc_plan_workspace(plan, POSENC_RUN_FORWARD));
 *     posenc_attend(plan, &in, &out, work, &err);
 *
 * Glossary, binding for every comment and message:
 *   B batch   H query heads   G key heads (G divides H)   Lq, Lk lengths   D head width   Dv value width
 *   M pairs of a rotation   R rows of a table   b h i j indices: i counts queries, j keys
 *   P(i), P(j) positions   t = P(i) - P(j) distance in tokens, positive = the key lies in the past
 *
 * Rules stated once
 *   - The meaning of the axes of a tensor is fixed, their order in memory is free (strides).
 *   - Gradients of parameters ADD to what the caller's tensor holds; gradients of q, k, v and x
 *     OVERWRITE. A gradient tensor whose data is NULL is not wanted and not computed.
 *   - A query without an allowed key gives o = 0, lse = -infinity, and zero gradients.
 *   - Keys and values that a mask hides are multiplied by zero, not skipped: they must be finite.
 *   - A call that fails has written nothing to its outputs; `err` (may be NULL) says why.
 *   - Parameters are tensors of the caller, F32 or F64, contiguous, numbered as posenc_param_describe numbers
 *     them. A run looks at those of the parts it computes (posenc_rows: input; posenc_rotate: rotary;
 *     posenc_attend: all but input); others may be empty.
 *   - Every object may be shared between threads; two runs at once need two workspaces.
 */
#ifndef POSENC_POSENC_H
#define POSENC_POSENC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0

#if defined(__GNUC__)
#define POSENC_API __attribute__((visibility("default")))
#else
#define POSENC_API
#endif

/* ---------------------------------------------------------------- status and error ---------- */

typedef enum posenc_status {
    POSENC_OK = 0,
    POSENC_ERROR_ARGUMENT,    /* a pointer, name or number that no call could accept */
    POSENC_ERROR_SHAPE,       /* a tensor's shape or stride does not fit */
    POSENC_ERROR_DTYPE,       /* a storage type that this call does not take */
    POSENC_ERROR_SETTING,     /* unknown or impossible setting of an encoding */
    POSENC_ERROR_RANGE,       /* a position or length beyond what was planned */
    POSENC_ERROR_WORKSPACE,   /* workspace missing or not aligned to 64 bytes */
    POSENC_ERROR_MEMORY,      /* prepare could not allocate */
    POSENC_ERROR_UNSUPPORTED, /* understood, but has no meaning for this encoding */
    POSENC_ERROR_FILE,        /* a file cannot be opened, read or written (posenc/files.h) */
    POSENC_ERROR_FORMAT       /* a file's content is not what it should be (posenc/files.h) */
} posenc_status;

/* The caller's own; filled by the call that failed: the sentence names the argument, what it is
   and what it must be. Never allocated, never global. */
typedef struct posenc_error {
    posenc_status status;
    char          message[244];
} posenc_error;

/* "shape", "setting", ...: a constant string, never NULL. */
POSENC_API const char *posenc_status_string(posenc_status status);

/* ---------------------------------------------------------------- tensors ------------------- */

typedef enum posenc_dtype {
    POSENC_DTYPE_F32 = 0,
    POSENC_DTYPE_F64,
    POSENC_DTYPE_F16,
    POSENC_DTYPE_BF16,
    POSENC_DTYPE_I64, /* positions and ids */
    POSENC_DTYPE_U8   /* masks: 0 = no, else yes */
} posenc_dtype;

enum { POSENC_MAX_DIMS = 6 };

/* A view that owns nothing. Strides in elements; stride 0 broadcasts an input. data == NULL means
   "no tensor here". In q, k, v, o and their gradients the last axis has stride 1. */
typedef struct posenc_tensor {
    void        *data;
    posenc_dtype dtype;
    int32_t      ndim;
    int64_t      shape[POSENC_MAX_DIMS];
    int64_t      stride[POSENC_MAX_DIMS];
} posenc_tensor;

/* Bytes of one element. */
static inline size_t posenc_dtype_size(posenc_dtype dtype)
{
    switch (dtype) {
    case POSENC_DTYPE_F64:
    case POSENC_DTYPE_I64: return 8;
    case POSENC_DTYPE_F32: return 4;
    case POSENC_DTYPE_F16:
    case POSENC_DTYPE_BF16: return 2;
    case POSENC_DTYPE_U8: return 1;
    }
    return 0;
}

/* A contiguous (row-major) tensor over `data`; shape has ndim entries, 0 <= ndim <= 6. */
static inline posenc_tensor posenc_tensor_contiguous(void *data, posenc_dtype dtype, int32_t ndim,
                                                     const int64_t *shape)
{
    posenc_tensor t;
    int64_t       step = 1;
    t.data             = data;
    t.dtype            = dtype;
    t.ndim             = ndim;
    for (int32_t a = POSENC_MAX_DIMS - 1; a >= 0; a--) {
        t.shape[a]  = a < ndim ? shape[a] : 1;
        t.stride[a] = step;
        if (a < ndim)
            step *= shape[a];
    }
    return t;
}

/* [B,H,L,D] seen in an array stored as [B,L,H,D], the order of most engines. */
static inline posenc_tensor posenc_tensor_from_blhd(void *data, posenc_dtype dtype, int64_t B, int64_t L,
                                                    int64_t H, int64_t D)
{
    const int64_t shape[4] = {B, H, L, D};
    posenc_tensor t        = posenc_tensor_contiguous(data, dtype, 4, shape);
    t.stride[0]            = L * H * D;
    t.stride[1]            = D;
    t.stride[2]            = H * D;
    t.stride[3]            = 1;
    return t;
}

/* ---------------------------------------------------------------- positions and masks ------- */

/* Positions are data of a run. Either a range (array.data == NULL): element s stands at start + s*step;
   step 0 is read as 1, so a zeroed struct means 0, 1, 2, ... Or an array of I64 or F64: [L] or [B or 1, L];
   with N coordinates per position [L, N] or [B or 1, L, N] (posenc_rows_coordinates,
   posenc_rotary_coordinates). Real positions (F64) are for input and rotary encodings; encodings by distance
   need whole numbers. */
typedef struct posenc_positions {
    double        start;
    double        step;
    posenc_tensor array;
} posenc_positions;

static inline posenc_positions posenc_positions_range(double start, double step)
{
    posenc_positions p;
    p.start = start;
    p.step  = step;
    p.array = posenc_tensor_contiguous(NULL, POSENC_DTYPE_F64, 0, NULL);
    return p;
}

static inline posenc_positions posenc_positions_array(posenc_tensor array)
{
    posenc_positions p;
    p.start = 0;
    p.step  = 1;
    p.array = array;
    return p;
}

/* fairseq's and RoBERTa's rule: pos = cumsum(token != padding_idx) * (token != padding_idx) + padding_idx.
   tokens, pos [B,L] I64. Source: fairseq/utils.py, make_positions. */
POSENC_API posenc_status posenc_positions_fairseq(const posenc_tensor *tokens, int64_t padding_idx,
                                                  posenc_tensor *pos, posenc_error *err);

/* Hugging Face's rule for padded batches: pos = cumsum(mask) - 1 where mask is not 0, else 1. mask [B,L] U8
   or I64, pos [B,L] I64. Source: transformers, prepare_inputs_for_generation. */
POSENC_API posenc_status posenc_positions_from_mask(const posenc_tensor *mask, posenc_tensor *pos,
                                                    posenc_error *err);

/* DETR's rule for images in a padded batch: a pixel stands at how many valid ones there are up to it, itself
   counted, in its column and in its row. valid [B,h,w] U8 or I64, not 0 where the image is (DETR's own mask
   is true on padding); pos [B,h*w,2] F64 contiguous, (y, x) of pixels row by row. normalize: y becomes y / (y
   of the column's last row + eps) * 2 pi, x likewise; a line of padding alone gets 0. eps > 0, DETR has 1e-6.
   For sinusoidal2d with preset=detr, whose own normalize and eps are for grids without a mask. Source: detr,
   models/position_encoding.py, PositionEmbeddingSine. */
POSENC_API posenc_status posenc_positions_detr(const posenc_tensor *valid, int normalize, double eps,
                                               posenc_tensor *pos, posenc_error *err);

/* What the sequence of a vision-language model is made of (M-RoPE): each token stands at (time, row, column).
   s is the position that comes next.
     TEXT   `tokens` words, or steps of audio: s, s+1, ... in all three coordinates.
     IMAGE  rows x columns tokens, row by row, at (s, s + row, s + column); then s + max(rows, columns) is
            next.
     VIDEO  as many frames of such, one after another, at (s + time of the frame, s + row, s + column).
     LINES  an image of Hunyuan-VL (XD-RoPE), whose rows end with a token of their own: rows x (columns + 1)
            tokens.
   rows and columns count patches; a square of merge x merge patches is one token, and tokens are what is
   numbered. The time of frame f is f where rate is 0 (Qwen2-VL), else floor(f * (seconds * rate))
   (Qwen2.5-VL): `seconds` between frames (second_per_grid_t), `rate` positions per second
   (tokens_per_second). Models that write a time stamp before each frame (Qwen3-VL, GLM-4.5V) have a TEXT and
   an IMAGE per frame, and no VIDEO.
     A VIDEO with `sound` (Qwen2.5-Omni, use_audio_in_video) is heard while it is seen: `sound` steps of
     audio, one position
   each in all coordinates, lie among the frames in turns of `chunk` positions (rate * seconds_per_chunk),
   what is seen first. Its two opening marks, both at s, and its two closing ones belong to it; both of these
   stand behind the turn that comes last, be it of frames or of sound, whatever `rules` say. Like
   transformers, a turn ends at the first token that is a chunk later, and the next one has a token at least,
   so of frames more than a chunk apart each turn has one token. */
typedef enum posenc_segment_kind {
    POSENC_SEGMENT_TEXT = 0,
    POSENC_SEGMENT_IMAGE,
    POSENC_SEGMENT_VIDEO,
    POSENC_SEGMENT_LINES
} posenc_segment_kind;

typedef struct posenc_segment {
    posenc_segment_kind kind;
    int                 restart;               /* another sequence of a packed row begins: s is 0 again */
    int64_t             tokens;                /* TEXT */
    int64_t             frames, rows, columns; /* IMAGE does not read frames */
    int64_t             merge;                 /* 0 is 1; must divide rows and columns */
    double              seconds, rate;         /* VIDEO; at least 0 */
    int64_t             sound, chunk;          /* VIDEO; both 0, or both at least 1 */
} posenc_segment;

/* Where programs differ, joined by |. Without the first, s after a video is behind its largest coordinate,
   time included (the paper, vLLM, transformers 4); with it s + max(rows, columns), so that what follows a
   long video stands among its frames (transformers 5). With the second, seconds are cut to whole ones, so
   that frames half a second apart share one time (transformers 5.16, mended since). A model wants the rules
   that it was trained with. */
enum { POSENC_SEGMENTS_IGNORE_TIME = 1, POSENC_SEGMENTS_WHOLE_SECONDS = 2 };

/* *tokens = how many tokens the segments are. RANGE, ARGUMENT: as posenc_positions_segments. */
POSENC_API posenc_status posenc_segments_tokens(const posenc_segment *segments, int64_t count,
                                                int64_t *tokens, posenc_error *err);

/* pos [tokens,3] I64, any strides (an item of a batch is a view): time, row and column of each token, for
   rope[axes=3]. Or pos [tokens,4], for rope[axes=4], of TEXT and LINES alone: number of the token, column,
   row, number of the image in its sequence; a word has its own number in all four, a model with three axes
   reads the last three. *delta (may be NULL) = the largest position and one, less the tokens, of the last
   sequence: a decoded token n stands at n + delta in all coordinates (rope_delta).
   Errors: ARGUMENT (NULL, no segments, a size below 1, sizes that merge does not divide, a time that is no
   number from 0, sound without chunk, kinds that do not fit the width of pos), RANGE (more than 2^40 tokens,
   times beyond 2^53), SHAPE and DTYPE (pos).
   Source: Wang et al. 2024, arXiv:2409.12191, section 2.1; transformers and vLLM, get_rope_index of Qwen2-VL,
   Qwen2.5-VL, Qwen2.5-Omni and HunYuanVL. */
POSENC_API posenc_status posenc_positions_segments(const posenc_segment *segments, int64_t count, int rules,
                                                   posenc_tensor *pos, int64_t *delta, posenc_error *err);

/* The plan fixes which kinds of mask apply (they combine by "and"); the run carries the arrays. */
enum {
    POSENC_MASK_NONE        = 0,
    POSENC_MASK_CAUSAL      = 1, /* key allowed iff t >= 0 */
    POSENC_MASK_WINDOW      = 2, /* key allowed iff |t| < options.window */
    POSENC_MASK_KEY_PADDING = 4, /* key allowed iff key_allowed[b,j] */
    POSENC_MASK_EXPLICIT    = 8, /* key allowed iff allowed[b,h,i,j]: the only mask of Lq x Lk elements */
    POSENC_MASK_SEGMENTS    = 16 /* key allowed iff q_segments[b,i] == k_segments[b,j]: packed sequences */
};

/* ---------------------------------------------------------------- encodings ----------------- */

typedef enum posenc_place {
    POSENC_PLACE_INPUT = 0, /* vectors added to the embeddings: posenc_rows */
    POSENC_PLACE_ROTARY,    /* q and k are turned by their positions: posenc_rotate, posenc_attend */
    POSENC_PLACE_SCORE,     /* terms added to the scores: posenc_attend */
    POSENC_PLACE_WEIGHT     /* what multiplies the values is changed: posenc_attend */
} posenc_place;

enum { POSENC_PLACE_COUNT = 4 };

/* One setting of an encoding. `standard` is the default as text; "" means absent (the encoding then
   decides by the rule in `meaning`). `range` says what is accepted: "half|interleaved", "2..", "yes|no". */
typedef struct posenc_setting_info {
    const char *name, *type, *standard, *range, *meaning;
} posenc_setting_info;

/* One parameter: `shape` in glossary letters and setting names, e.g. "num_buckets,H" ("H if per_head": an
   axis that a flag calls for; "window1" is the first number of the list `window`; "" is a single number).
   `trainable` 0 means that it has a fixed value which a caller may still replace (ALiBi's slopes). */
typedef struct posenc_param_info {
    const char *name, *shape, *init, *meaning;
    int         trainable;
} posenc_param_info;

/* What an encoding is, as constant text; arrays end at the counts given. */
typedef struct posenc_encoding_info {
    const char                *name, *title, *paper, *models, *pictures;
    posenc_place               place;
    const posenc_setting_info *settings;
    int                        setting_count;
    const posenc_param_info   *params;
    int                        param_count;
    int         by_distance; /* the scores see only t: shifting all positions changes nothing */
    int         causal_only; /* has no meaning without a causal mask */
    const char *why_causal;  /* the reason, where causal_only is set; else NULL */
    const char *row_limit;   /* the setting that says how many positions have a row each; NULL: none has */
    const char *at_length; /* settings that suit Lk positions where the standard ones do not; NULL: they do */
    const char *scale;     /* score: the standard of the setting scale; NULL: 1/sqrt(D) */
    const char *sees;      /* what scores see, where positions do not matter; NULL: distances or positions */
    int by_word; /* input: a row belongs to a word too and takes the place of its vector; positions are (id,
                    P) */
    /* What it computes with standard settings, in the glossary's letters: lines in UTF-8 with frac{a}{b},
       sqrt{a}, x_{h,i}^2. */
    const char *formula;
} posenc_encoding_info;

/* The registry: the only list of encodings there is. */
POSENC_API int                         posenc_encoding_count(void);
POSENC_API const posenc_encoding_info *posenc_encoding_info_at(int index);     /* NULL outside */
POSENC_API const posenc_encoding_info *posenc_encoding_find(const char *name); /* NULL if unknown */
POSENC_API const char *posenc_encoding_nearest(const char *name);              /* spelling help; never NULL */
POSENC_API const char *posenc_place_name(posenc_place place);                  /* "input" ... */

/* Settings that every encoding accepts (scale), beside its own. Returns their count. */
POSENC_API int posenc_common_settings(const posenc_setting_info **settings);

typedef struct posenc_encoding posenc_encoding;

/* All sizes of a problem. Zero means "not used here", G = 0 means G = H, Dv = 0 means Dv = D. Lq and Lk are
   the largest lengths that runs will bring. d_model: width of the input encodings and of what projects it;
   0 means H*D. L: the length that a model is trained at (posenc_small_model); 0 means Lk. */
typedef struct posenc_dims {
    int64_t B, H, G, Lq, Lk, D, Dv, d_model, L;
} posenc_dims;

/* Creates what SPEC describes: one encoding, or several joined by '+', at most one per place, each with its
   settings in brackets: "t5[num_buckets=16:max_distance=64]+rope[base=5e5]" (':' or ',' or ' ' separates).
   `settings` (may be NULL) are further "name=value" pairs, separated by spaces or commas, that override; in a
   combination write "rope.base=5e5". The result is immutable and shared by any number of plans.
   Errors: SETTING for an unknown encoding, setting or value (the nearest name is suggested); UNSUPPORTED for
   a combination without a meaning; MEMORY. */
POSENC_API posenc_status posenc_encoding_create(posenc_encoding **e, const char *spec, const char *settings,
                                                posenc_error *err);
POSENC_API void          posenc_encoding_free(posenc_encoding *e); /* NULL is fine */

/* The canonical SPEC: names with every setting that differs from its standard. Lives as long as e. */
POSENC_API const char *posenc_encoding_spec(const posenc_encoding *e);
/* The part of e at a place, or NULL. */
POSENC_API const posenc_encoding_info *posenc_encoding_part(const posenc_encoding *e, posenc_place place);

/* Coordinates per position of e's input part: 1, as many as its grid has axes, or 2 where a row depends on a
   word as well (complex_order: id of the word, position); 1 without an input part. */
POSENC_API int posenc_rows_coordinates(const posenc_encoding *e);

/* *tokens = how many tokens a range of positions numbers in the grid of e's input part, its places and the
   rows before it; 0 where the encoding has no grid. UNSUPPORTED if e has no part at place input. */
POSENC_API posenc_status posenc_rows_tokens(const posenc_encoding *e, const posenc_dims *dims,
                                            int64_t *tokens, posenc_error *err);

/* The settings with which an encoding is tried in a small model that is trained at dims->L (`compare`), as
   text for posenc_encoding_create; each room states its own. buf receives at most n bytes. */
POSENC_API posenc_status posenc_small_model(const char *name, const posenc_dims *dims, char *buf, size_t n,
                                            posenc_error *err);
/* The same for a model that attends under `mask`: without POSENC_MASK_CAUSAL keys in the future count as
   well, and a room may want other settings (t5: classes for both directions). posenc_small_model is for
   causal models. */
POSENC_API posenc_status posenc_small_model_for(const char *name, const posenc_dims *dims, int mask,
                                                char *buf, size_t n, posenc_error *err);

/* Parameters of e for these sizes, counted over all parts. The name is plain where e has one part and
   "encoding.name" where it has several. shape receives ndim sizes. */
POSENC_API int           posenc_param_count(const posenc_encoding *e);
POSENC_API posenc_status posenc_param_shape(const posenc_encoding *e, const posenc_dims *dims, int index,
                                            int32_t *ndim, int64_t shape[POSENC_MAX_DIMS], posenc_error *err);
POSENC_API const posenc_param_info *posenc_param_describe(const posenc_encoding *e, int index);
POSENC_API const char              *posenc_param_name(const posenc_encoding *e, int index);
/* Whether training changes it, with e's settings (alibi[learned=yes] trains its slopes). */
POSENC_API int posenc_param_trainable(const posenc_encoding *e, int index);

/* Fills params[0 .. count-1] (contiguous F32 or F64 of the right shape) as the encoding's source initialises
   them. Numbers depend on seed and on the parameter's name alone, so that another parameter changes none of
   them. */
POSENC_API posenc_status posenc_param_init(const posenc_encoding *e, const posenc_dims *dims,
                                           posenc_tensor *params, uint64_t seed, posenc_error *err);

/* ---------------------------------------------------------------- plans (prepare) ----------- */

typedef enum posenc_executor {
    POSENC_EXECUTOR_AUTO = 0,  /* reference for F64 tensors, tiled otherwise */
    POSENC_EXECUTOR_REFERENCE, /* float64, direct, reads like the paper; quadratic in memory only inside
                                  `scores` */
    POSENC_EXECUTOR_TILED      /* float32 arithmetic, linear memory */
} posenc_executor;

/* What the tiled executor multiplies. By storage: where q, k and v are all BF16 and the processor has dot
   products of bf16 pairs, attention forward rounds its weights to bf16 (by 2^-8 of themselves at most; q and
   k once more if they are turned, but for a few queries) and is up to twice as fast: docs/decisions/0010.
   Sums, softmax, biases and lse are float either way. */
typedef enum posenc_products {
    POSENC_PRODUCTS_BY_STORAGE = 0,
    POSENC_PRODUCTS_F32 /* float, whatever is stored */
} posenc_products;

typedef struct posenc_options {
    size_t          size; /* set by posenc_options_default; lets later versions add fields */
    posenc_executor executor;
    int             mask;           /* POSENC_MASK_... joined by | */
    int64_t         window;         /* POSENC_MASK_WINDOW: keys with |t| < window */
    int             threads;        /* 0 = as OpenMP says, 1 = the calling thread alone */
    int64_t         tile_q, tile_k; /* 0 = the library's choice; at most 64 are taken with xpos */
    int64_t max_distances; /* how many distances the positions of one run may span; 0 = Lq + Lk, enough
                                       for steps of 1. Matters for larger steps and arrays with gaps only */
    posenc_products products;
    const char *isa; /* instruction set, one of posenc_isa_at; NULL = what POSENC_ISA names, else the best */
} posenc_options;

static inline posenc_options posenc_options_default(void)
{
    posenc_options o;
    o.size          = sizeof o;
    o.executor      = POSENC_EXECUTOR_AUTO;
    o.mask          = POSENC_MASK_NONE;
    o.window        = 0;
    o.threads       = 0;
    o.tile_q        = 0;
    o.tile_k        = 0;
    o.max_distances = 0;
    o.products      = POSENC_PRODUCTS_BY_STORAGE;
    o.isa           = NULL;
    return o;
}

typedef struct posenc_plan posenc_plan;

/* Checks encoding, sizes and options and lays out the workspace; e must outlive the plan. Runs with any
   lengths up to dims->Lq, dims->Lk and any batch up to dims->B need no other plan. POSENC_EXECUTOR_AUTO
   decides by the tensors of the run. Errors: SHAPE (sizes), SETTING (a setting that does not fit the sizes),
   UNSUPPORTED (mask or combination without a meaning), ARGUMENT (options.isa or POSENC_ISA names an
   instruction set that this processor has not), MEMORY. */
POSENC_API posenc_status posenc_plan_create(posenc_plan **plan, const posenc_encoding *e,
                                            const posenc_dims *dims, const posenc_options *options,
                                            posenc_error *err);
POSENC_API void          posenc_plan_free(posenc_plan *plan); /* NULL is fine */

enum { POSENC_RUN_FORWARD = 1, POSENC_RUN_BACKWARD = 2, POSENC_RUN_SCORES = 4 };

/* Bytes of workspace for the runs named: FORWARD (rows, rotate, attend), BACKWARD (their backwards), SCORES
   (posenc_scores, posenc_bias), joined by |. A multiple of 64; the pointer must be aligned to 64. */
POSENC_API size_t posenc_plan_workspace(const posenc_plan *plan, int runs);

/* Arithmetic operations of one forward run of Lq queries over Lk keys and one batch item, beyond those of an
   embedding and an attention without positions: counted from the formulas, one each for + - * / and max and
   for a function such as sin or exp; what depends on a position or a distance once for each, no mask. A
   machine may need fewer. */
POSENC_API double posenc_plan_operations(const posenc_plan *plan);

/* ---------------------------------------------------------------- runs: place input --------- */

/* y[b,s,:] = x[b,s,:] + table(P(b,s)). x may have no data: then y is the table's rows alone.
   x, y [B,L,d] F32 or F64. Ids (learned tables) are positions: an I64 array [B or 1, L]. */
typedef struct posenc_rows_in {
    posenc_tensor        x;
    posenc_positions     pos;
    const posenc_tensor *params;
} posenc_rows_in;

/* Numbers per row of the plan's input part, the d of x and y: d_model as a rule, states*dim for floater,
   2*dim for complex_order. 0 without an input part. */
POSENC_API int64_t posenc_rows_width(const posenc_plan *plan);

POSENC_API posenc_status posenc_rows(const posenc_plan *plan, const posenc_rows_in *in, posenc_tensor *y,
                                     void *workspace, posenc_error *err);

/* dy [B,L,d] is the cotangent of y; dx overwrites, dparams add. UNSUPPORTED: dparams of settings that have no
   gradient (floater[solver=exact]). */
typedef struct posenc_rows_grad {
    posenc_tensor  dy;
    posenc_tensor  dx;
    posenc_tensor *dparams; /* may be NULL */
} posenc_rows_grad;

POSENC_API posenc_status posenc_rows_backward(const posenc_plan *plan, const posenc_rows_in *in,
                                              const posenc_rows_grad *grad, void *workspace,
                                              posenc_error *err);

/* ---------------------------------------------------------------- runs: place rotary -------- */

/* Coordinates of a position that the plan's rotary part reads: q_pos and k_pos of rotation and attention are
   arrays [L,N] or [B or 1, L, N] then. A range gives all N coordinates the same number, as text has it among
   pictures. 1 without a rotary part. */
POSENC_API int posenc_rotary_coordinates(const posenc_plan *plan);

/* Heads whose frequencies are their own: H where each has a matrix (rope[per_head=yes]), else 1. */
POSENC_API int64_t posenc_rotary_heads(const posenc_plan *plan);

/* Turns q [B,H,Lq,D] and k [B,G,Lk,D] by their positions; either may have no data. to_q, to_k have the same
   shapes and may be the very same tensors (in place). direction +1 turns forward; -1 turns back, which is
   also the gradient: the transpose of a rotation is its inverse (times the same magnitude). params: as
   posenc_attend_in; the rotary part's alone are looked at, NULL if it has none. POSENC_EXECUTOR_REFERENCE
   turns rows of any type in double and rounds each result once; AUTO and TILED turn F64 rows in double too,
   all others in float. A schedule that follows the length of the run takes the largest coordinate of q_pos
   and k_pos and one, of those that have data. q_table, k_table (may have no data): rows of
   posenc_rotary_table for the same positions, [1 or B, L, width] F32, made once and used by every layer, in
   float whatever the executor; then neither positions nor params are looked at. Not for F64, which is turned
   in double. */
typedef struct posenc_rotate_io {
    posenc_tensor        q, k;
    posenc_positions     q_pos, k_pos;
    posenc_tensor        to_q, to_k;
    int                  direction;
    const posenc_tensor *params;
    posenc_tensor        q_table, k_table;
} posenc_rotate_io;

POSENC_API posenc_status posenc_rotate(const posenc_plan *plan, const posenc_rotate_io *io, void *workspace,
                                       posenc_error *err);

/* Cosines and sines that posenc_rotate turns by, for whoever turns several tensors at the same positions:
   table [B,L,width] F32, last stride 1, width = posenc_rotary_width. A row holds M cosines, then M sines,
   magnitude included (of an encoder of pictures that pairs within the part of each coordinate, such for each
   part), and for POSENC_SIDE_QUERIES the temperature if there is one. Rows of queries and of keys differ
   where the width does, and for xpos. params: as posenc_rotate. Every number is within 0.501 ulp of the exact
   one. Workspace: FORWARD. */
typedef enum posenc_side { POSENC_SIDE_QUERIES = 0, POSENC_SIDE_KEYS } posenc_side;

POSENC_API int64_t       posenc_rotary_width(const posenc_plan *plan, posenc_side side);
POSENC_API posenc_status posenc_rotary_table(const posenc_plan *plan, posenc_side side,
                                             const posenc_tensor *params, const posenc_positions *pos,
                                             posenc_tensor *table, void *workspace, posenc_error *err);

/* The gradient of posenc_rotate with the same io, whose q and k are those from before the rotation (its to_q
   and to_k are not looked at; positions and params are, beside tables too). dto_q, dto_k are the cotangents
   of to_q, to_k; dq, dk overwrite, and may be the very same tensors unless gradients of parameters are
   wanted; dparams (may be NULL) add, summed from dq and dk as they are stored. UNSUPPORTED: dparams of
   rounded angles, which have no derivative. */
typedef struct posenc_rotate_grad {
    posenc_tensor  dto_q, dto_k;
    posenc_tensor  dq, dk;
    posenc_tensor *dparams;
} posenc_rotate_grad;

POSENC_API posenc_status posenc_rotate_backward(const posenc_plan *plan, const posenc_rotate_io *io,
                                                const posenc_rotate_grad *grad, void *workspace,
                                                posenc_error *err);

/* Writes the M frequencies (radians per position) of the rotary part to w[0..M-1], M to *pairs; w may be NULL
   to ask for M; *magnitude (may be NULL) receives the factor on cosine and sine, NaN where it changes with
   the position (xpos). A schedule that follows the length gives those of a short sequence. UNSUPPORTED: w of
   frequencies that are parameters; ask posenc_rotary_pairs. */
POSENC_API posenc_status posenc_rotary_frequencies(const posenc_plan *plan, double *w, int64_t *pairs,
                                                   double *magnitude, posenc_error *err);

/* What a rotation does to one pair of channels of a head. */
typedef struct posenc_rotary_pair {
    int64_t from[2], to[2]; /* its channels in the input and in the result */
    int     coordinate;     /* which one it follows; -1: a sum over all, with frequencies of a matrix */
    double  w;              /* radians per step of it; NaN for a matrix */
} posenc_rotary_pair;

/* The M pairs of a run with these parameters whose sequence is `length` long (as posenc_rotate finds it).
   Workspace: FORWARD. */
POSENC_API posenc_status posenc_rotary_pairs(const posenc_plan *plan, const posenc_tensor *params,
                                             double length, posenc_rotary_pair *pairs, void *workspace,
                                             posenc_error *err);

/* The angles of queries at `pos`: angle [B or 1, L, M] F64, or [B or 1, L, H*M] head by head where
   posenc_rotary_heads says so, radians, not reduced, as products rounded to double (of rounded angles the
   float32 numbers themselves); temperature [B or 1, L] F64, the factor on their rows. Either may have no
   data. The batch is that of the arrays. Do not take cosines of large angles: the rotation itself does not
   round the product. */
POSENC_API posenc_status posenc_rotary_angles(const posenc_plan *plan, const posenc_tensor *params,
                                              const posenc_positions *pos, const posenc_tensor *angle,
                                              const posenc_tensor *temperature, void *workspace,
                                              posenc_error *err);

/* Keys that one plan turned at from_pos, turned on to where another plan would have put them at to_pos: a
   cache whose frequencies follow the length (dynamic, longrope), or whose positions move (a context shift:
   the same plan twice). Each pair is turned by the difference of its exact angles and multiplied by the ratio
   of the magnitudes, in double, and stored once. k, to_k [B,G,L,D], the same tensor or not; both plans pair
   the same channels (layout_out may differ). Schedules without `length` take the largest position of their
   own positions and one. Workspace: the FORWARD bytes of both plans together.
   Errors: SHAPE (plans that do not fit), and as posenc_rotate. */
typedef struct posenc_rerotate_io {
    posenc_tensor        k, to_k;
    posenc_positions     from_pos, to_pos;
    const posenc_tensor *from_params, *to_params;
} posenc_rerotate_io;

POSENC_API posenc_status posenc_rotary_rerotate(const posenc_plan *from, const posenc_plan *to,
                                                const posenc_rerotate_io *io, void *workspace,
                                                posenc_error *err);

/* ---------------------------------------------------------------- runs: attention ----------- */

/* q [B,H,Lq,D]  k [B,G,Lk,D]  v [B,G,Lk,Dv]. The rotary part of the encoding, if any, is applied inside, to
   all of k: a cache that holds turned keys (posenc_rotate) is attended by a plan without that part. Where
   positions are arrays of several coordinates (posenc_rotary_coordinates) they have no order of their own:
   masks by distance then count tokens, the last query being as late as the last key, and encodings by
   distance are refused. key_allowed [B or 1, Lk] U8; allowed [B or 1, H or 1, Lq, Lk] U8; q_segments [B or 1,
   Lq] and k_segments [B or 1, Lk] I64: for POSENC_MASK_SEGMENTS, and for encodings that see segments (without
   data: all in one segment). A NaN or an infinite score makes the rows that see it NaN. Keys and values that
   a mask leaves out must be numbers all the same, zeros for instance: the tiled executor multiplies them by
   0. */
typedef struct posenc_attend_in {
    posenc_tensor        q, k, v;
    posenc_positions     q_pos, k_pos;
    posenc_tensor        key_allowed, allowed;
    posenc_tensor        q_segments, k_segments;
    const posenc_tensor *params; /* posenc_param_count of them; NULL if there are none */
} posenc_attend_in;

/* o [B,H,Lq,Dv], the output; lse [B,H,Lq] (may have no data), natural log of the sum of exp(score) over
   allowed keys: F32, or F64 from the reference executor. */
typedef struct posenc_attend_out {
    posenc_tensor o, lse;
} posenc_attend_out;

POSENC_API posenc_status posenc_attend(const posenc_plan *plan, const posenc_attend_in *in,
                                       const posenc_attend_out *out, void *workspace, posenc_error *err);

/* The gradient needs what the forward run left: o and lse (both). dout is the cotangent of o. */
typedef struct posenc_attend_grad {
    posenc_tensor  o, lse, dout;
    posenc_tensor  dq, dk, dv;
    posenc_tensor *dparams; /* may be NULL; one with no data is not wanted */
} posenc_attend_grad;

POSENC_API posenc_status posenc_attend_backward(const posenc_plan *plan, const posenc_attend_in *in,
                                                const posenc_attend_grad *grad, void *workspace,
                                                posenc_error *err);

/* The scores themselves, before any mask: S [B,H,Lq,Lk]. Quadratic on purpose: for tests, pictures, foreign
   kernels. v may have no data. The mask matters to encodings that count allowed keys, and to no other. */
POSENC_API posenc_status posenc_scores(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *S,
                                       void *workspace, posenc_error *err);

/* What the encoding adds to the scores whatever the content: bias [H,Lq,Lk], with q and k ignored. Positions
   of batch item 0. */
POSENC_API posenc_status posenc_bias(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *bias,
                                     void *workspace, posenc_error *err);

/* ---------------------------------------------------------------- maps, examples, version --- */

/* out[i] = map(rel[i]) for the index maps "t5" and "deberta" with their settings as text, exact integers.
   t5: rel = P(j) - P(i); "num_buckets=32 max_distance=128 bidirectional=yes".
   deberta: rel = P(i) - P(j); "position_buckets=256 max_relative_positions=512 clip_first=no"; signed, before
   adding k. */
POSENC_API posenc_status posenc_index_map(const char *map, const char *settings, const int64_t *rel,
                                          int64_t n, int64_t *out, posenc_error *err);

/* A window of rows x columns tokens, row by row (Swin). index [n,n], n = rows*columns: which of the (2 rows -
   1)(2 columns - 1) offsets lies between query i and key j. coordinates [2 rows - 1, 2 columns - 1, 2]: what
   swin_v2's network sees of each offset, y first; pretrained sizes of 0 mean the window itself. Memory of the
   caller.
   Errors: ARGUMENT (NULL), RANGE (sizes below 1 or above 4096; a pretrained size of 1 where the window has
   more).
   Source: microsoft/Swin-Transformer, relative_position_index and relative_coords_table. */
POSENC_API posenc_status posenc_window_index(int64_t rows, int64_t columns, int64_t *index,
                                             posenc_error *err);
POSENC_API posenc_status posenc_window_coordinates(int64_t rows, int64_t columns, int64_t pretrained_rows,
                                                   int64_t pretrained_columns, double *coordinates,
                                                   posenc_error *err);

/* Worked numbers from the paper, stated by each room: the value at (a,b,c) under `settings`.
   input: row a, channel b. rotary: frequency of pair a. score: bias of head a, query at b, key at c.
   Parameters that training changes hold 0, 1, 2, ... in memory order, the others what posenc_param_init
   gives. */
typedef struct posenc_example {
    const char *settings; /* settings and sizes, e.g. "H=8 form=distance" */
    int64_t     a, b, c;
    double      value;
    const char *source;
} posenc_example;

POSENC_API int posenc_examples(const char *name, const posenc_example **examples);

/* Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): number `index` of the stream named by
   seed and name; the same everywhere, in any order. Uniform in [0,1), and standard normal. */
POSENC_API double posenc_random_uniform(uint64_t seed, const char *name, uint64_t index);
POSENC_API double posenc_random_normal(uint64_t seed, const char *name, uint64_t index);

POSENC_API const char *posenc_version(void); /* "0.1.0" */
/* The instruction set in use: the best of posenc_isa_at, or the one that POSENC_ISA in the environment names,
   for tests. Where it names none of them (spelt wrongly, or not for this processor) this is the best, and no
   plan is made: posenc_plan_create says so. An empty POSENC_ISA is none. */
POSENC_API const char *posenc_isa(void);
/* Number `index` of the instruction sets that this processor runs, best last: "plain", "avx2", "avx512",
   "avx512bf16", or "plain", "neon"; NULL beyond. */
POSENC_API const char *posenc_isa_at(int index);

#ifdef __cplusplus
}
#endif
#endif
