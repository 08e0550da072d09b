/* SPDX-License-Identifier: MIT */
/*
 * posenc.h: positional encodings of Transformers, exact and differentiable
 *
 * What most programs need. Four headers for more include this one: posenc/rotary.h (the parts of a rotation:
 * tables, frequencies, angles, cached keys), posenc/scores.h (the gradient of a bias by itself),
 * posenc/positions.h (positions by the rules of published models) and posenc/registry.h (which there are).
 * A second library, posenc/files.h, reads files of models.
 *
 * An encoding acts at one of four places of a layer:
 *
 *   tokens -> embedding --(1)--> projections --(2)--> scores --(3)--> softmax --(4)--> output
 *             input               rotary              score           weight
 *
 * Two verbs. *Prepare* (posenc_encoding_create, posenc_plan_create, posenc_plan_bind) checks, plans and may
 * allocate or fail. *Run* (posenc_rows, posenc_rotate, posenc_attend ...) allocates nothing, works in the
 * caller's workspace and gives the same bits for any number of threads.
 *
 *     posenc_encoding_create(&e, "alibi", NULL, &err);        each returns a status; `err` says what is wrong
 *     posenc_plan_create(&plan, e, &dims, &options, &err);
 *     posenc_workspace_create(&work, plan, POSENC_RUN_ATTEND, NULL, &err);
 *     posenc_attend(plan, &in, &out, &work, &err);            examples/attend.c is the whole program
 *
 * Glossary, binding for every comment and message:
 *   B batch   H query heads   G key heads (G divides H)   Lq, Lk lengths   D head width   Dv value width
 *   M pairs of a rotation   R rows of a table   b h i j indices: i counts queries, j keys
 *   P(i), P(j) positions   t = P(i) - P(j) distance in tokens, positive = the key lies in the past
 *
 * What attention computes. Query head h reads key head g = floor(h / (H/G)): H/G neighbours share one.
 *
 *     S[b,h,i,j] = scale * q[b,h,i].k[b,g,j] + X[b,h,i,j]           q and k rotated by the rotary part
 *     o[b,h,i]   = sum over allowed j of softmax(S)[b,h,i,j] * v[b,g,j]     changed by the weight part
 *
 * X is what the score part adds: a bias, or products of q and k with vectors by distance. scale is 1/sqrt(D)
 * where neither the encoding nor the setting `scale` says otherwise. Further settings of every encoding
 * temper S by the query, cap it, and give the softmax a sink. `posenc list NAME` prints each formula and all
 * settings.
 *
 * Rules stated once
 *   - The meaning of the axes of a tensor is fixed, their order in memory is free (strides).
 *   - Storage types mix: each of q, k, v, o, x, y and of their gradients is F32, F64, F16 or BF16, lse is
 *     F32 or F64. The executor decides what they are converted to (posenc_executor).
 *   - Inputs may overlap each other. Outputs overlap nothing, unless a comment here allows two tensors to be
 *     the same one (data, type and strides). Refused (ARGUMENT) is what overlaps another output, an input
 *     with numbers for each token, or, of gradients of parameters, the parameters. Whether outputs lie over
 *     masks, positions or, forward, parameters, nobody looks.
 *   - Gradients of parameters ADD to what the caller's tensor holds; gradients of q, k, v and x
 *     OVERWRITE. A gradient tensor whose data is NULL is not wanted and not computed.
 *   - A query without an allowed key gives o = 0, lse = -infinity (or its sink), and zero gradients.
 *   - Sizes of a run may be 0: what is left to do is done, without a workspace.
 *   - Keys and values that key padding or a length hides are not read, nor are positions of keys beyond a
 *     length. Those that only another mask hides are multiplied by zero, not skipped: they must be finite.
 *   - A struct of options or arguments begins with its size: posenc_attend_in in = {.size = sizeof in, ...}.
 *     What is not set is 0. So programs and libraries of different versions go together: what a shorter
 *     struct lacks is taken as 0, and a longer one is refused (ARGUMENT) unless 0 is all that it says more.
 *   - Parameters are tensors of the caller, F32 or F64, contiguous, numbered as posenc_param_name numbers
 *     them. A run reads those of the parts it computes (posenc_rows: input; posenc_rotate: rotary;
 *     posenc_attend: all but input); others may be empty. Who runs many times with the same parameters gives
 *     a bound of them instead (posenc_plan_bind).
 *   - A call that fails has written nothing to its outputs; `err` (may be NULL) says why. Every run may
 *     return ARGUMENT, SHAPE, DTYPE (what it is given), RANGE (more than planned), WORKSPACE, UNSUPPORTED,
 *     and CANCELLED, which alone leaves outputs and gradients half written.
 *   - Whoever calls *_create frees, in any order: a plan keeps what it needs of its encoding. Objects do not
 *     change and may be shared between threads; two runs at once need two workspaces.
 *   - The library keeps nothing between calls but its threads, which are shared by all runs of the process.
 */
#ifndef POSENC_POSENC_H
#define POSENC_POSENC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 2
#define POSENC_VERSION_PATCH 0
/* To compare: of these headers; posenc_version_number is that of the library. */
#define POSENC_VERSION_NUMBER \
    (10000 * POSENC_VERSION_MAJOR + 100 * POSENC_VERSION_MINOR + POSENC_VERSION_PATCH)

#if defined(_WIN32) && defined(POSENC_IS_BUILT)
#define POSENC_API __declspec(dllexport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define POSENC_API __attribute__((visibility("default")))
#else
#define POSENC_API
#endif

/* For this header alone: no compiler of C++ warns of these. Products wrap: no memory holds what overflows. */
#ifdef __cplusplus
#define POSENC_CAST(type, x) static_cast<type>(x)
#else
#define POSENC_CAST(type, x) ((type)(x))
#endif
#define POSENC_PRODUCT(a, b) POSENC_CAST(int64_t, POSENC_CAST(uint64_t, a) * POSENC_CAST(uint64_t, b))

/* ---------------------------------------------------------------- status and error ---------- */

typedef enum posenc_status {
    POSENC_OK = 0,
    POSENC_ERROR_ARGUMENT,    /* a pointer, name or number that no call could accept */
    POSENC_ERROR_SHAPE,       /* a tensor's shape or stride does not fit */
    POSENC_ERROR_DTYPE,       /* a storage type that this call does not take */
    POSENC_ERROR_SETTING,     /* unknown or impossible setting of an encoding */
    POSENC_ERROR_RANGE,       /* a position or length beyond what was planned */
    POSENC_ERROR_WORKSPACE,   /* workspace missing, too small for this run, or not aligned to 64 bytes */
    POSENC_ERROR_MEMORY,      /* prepare could not allocate */
    POSENC_ERROR_UNSUPPORTED, /* understood, but has no meaning for this encoding */
    POSENC_ERROR_FILE,        /* a file cannot be opened, read or written (posenc/files.h) */
    POSENC_ERROR_FORMAT,      /* a file's content is not what it should be (posenc/files.h) */
    POSENC_ERROR_CANCELLED    /* options.cancel was set while the run was under way */
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
    POSENC_DTYPE_I64,     /* positions and ids */
    POSENC_DTYPE_U8,      /* masks: 0 = no, else yes */
    POSENC_DTYPE_I32,     /* positions, segments, lengths and pages too */
    POSENC_DTYPE_F8_E4M3, /* k and v of a cache: OCP's 8-bit floats, times k_scale, v_scale */
    POSENC_DTYPE_Q8_0 /* k and v of a cache: ggml's blocks of 34 bytes, an f16 scale and 32 signed bytes */
} posenc_dtype;

enum { POSENC_MAX_DIMS = 6 };

/* A view that owns nothing. Strides in elements; stride 0 broadcasts an input. data == NULL means
   "no tensor here", but for a tensor of no elements, which needs none. data is aligned as its elements are.
   In q, k, v, o and their gradients the last axis has stride 1. */
typedef struct posenc_tensor {
    void        *data;
    posenc_dtype dtype;
    int32_t      ndim;
    int64_t      shape[POSENC_MAX_DIMS];
    int64_t      stride[POSENC_MAX_DIMS];
} posenc_tensor;

/* Bytes of one element; 0 of Q8_0, whose 32 elements are 34 bytes: its strides, in elements as all are, are
   multiples of 32 but for the last axis. */
static inline size_t posenc_dtype_size(posenc_dtype dtype)
{
    static const unsigned char sizes[] = {4, 8, 2, 2, 8, 1, 4, 1, 0}; /* in the order of posenc_dtype */
    return POSENC_CAST(size_t, dtype) < sizeof sizes ? sizes[dtype] : 0;
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
            step = POSENC_PRODUCT(step, shape[a]);
    }
    return t;
}

/* [B,H,L,D] seen in an array stored as [B,L,H,D], the order of most engines. */
static inline posenc_tensor posenc_tensor_from_blhd(void *data, posenc_dtype dtype, int64_t B, int64_t L,
                                                    int64_t H, int64_t D)
{
    const int64_t shape[4] = {B, H, L, D};
    posenc_tensor t        = posenc_tensor_contiguous(data, dtype, 4, shape);
    t.stride[0]            = POSENC_PRODUCT(POSENC_PRODUCT(L, H), D);
    t.stride[1]            = D;
    t.stride[2]            = POSENC_PRODUCT(H, D);
    t.stride[3]            = 1;
    return t;
}

/* ---------------------------------------------------------------- positions and masks ------- */

/* Positions are data of a run. Either a range (array.data == NULL): element s stands at start + s*step;
   a zeroed struct means 0, 1, 2, ..., another start with step 0 is one position alone. Or an array of I64,
   I32 or F64: [L] or [B or 1, L]; with N coordinates per position [L, N] or [B or 1, L, N]
   (posenc_rows_coordinates, posenc_rotary_coordinates). Real positions (F64) are for input and rotary
   encodings; encodings by distance need whole numbers. */
typedef struct posenc_positions {
    double        start;
    double        step;
    posenc_tensor array;
} posenc_positions;

static inline posenc_positions posenc_positions_range(double start, double step)
{
    posenc_positions p;
    memset(&p, 0, sizeof p);
    p.start = start;
    p.step  = step;
    return p;
}

static inline posenc_positions posenc_positions_array(posenc_tensor array)
{
    const posenc_positions p = {0, 1, array};
    return p;
}

/* The plan fixes which kinds of mask apply (they combine by "and"); the run brings the arrays. */
enum {
    POSENC_MASK_NONE        = 0,
    POSENC_MASK_CAUSAL      = 1, /* key allowed iff t >= 0 */
    POSENC_MASK_WINDOW      = 2, /* key allowed iff |t| < options.window */
    POSENC_MASK_KEY_PADDING = 4, /* key allowed iff key_allowed[b,j]; others are not read */
    POSENC_MASK_EXPLICIT    = 8, /* key allowed iff allowed[b,h,i,j]: the only mask of Lq x Lk elements */
    POSENC_MASK_SEGMENTS    = 16 /* key allowed iff q_segments[b,i] == k_segments[b,j]: packed sequences */
};

/* ---------------------------------------------------------------- encodings (prepare) ------- */

/* All sizes of a problem. Zero means "not used here", G = 0 means G = H, Dv = 0 means Dv = D. Lq and Lk are
   the largest lengths that runs will bring (where there are k_lengths, the longest of these). d_model: width
   of the input encodings and of what projects it; 0 means H*D. L: the length that a model is trained at
   (posenc_small_model); 0 means Lk. */
typedef struct posenc_dims {
    int64_t B, H, G, Lq, Lk, D, Dv, d_model, L;
} posenc_dims;

/* Where *_create gets memory: `allocate` returns `bytes` aligned to `alignment` (a power of two, at most 64),
   or NULL if there are none; `release` takes back what it returned. Both NULL: malloc and free. It is copied;
   what `context` points to must outlive the object. Two threads that create at once call it at once. */
typedef struct posenc_allocator {
    size_t size; /* sizeof(posenc_allocator) */
    void *(*allocate)(void *context, size_t alignment, size_t bytes);
    void (*release)(void *context, void *memory);
    void *context;
} posenc_allocator;

typedef struct posenc_encoding posenc_encoding;

/* Creates what SPEC describes: one encoding, or several joined by '+', at most one per place, each with its
   settings in brackets: "t5[num_buckets=16:max_distance=64]+rope[base=5e5]" (':' or ',' or ' ' separates).
   `settings` (may be NULL) are further "name=value" pairs, separated by spaces or commas, that override; in a
   combination write "rope.base=5e5". The result is immutable and shared by any number of plans.
   What settings mean together is checked with the sizes, by posenc_plan_create: "rope[schedule=yarn]" lacks a
   factor there. A setting that the others leave without a use (rope[factor=8] without a schedule) is ignored.
   Errors: SETTING for an unknown encoding, setting or value (the nearest name is suggested); UNSUPPORTED for
   a combination without a meaning; ARGUMENT (NULL); MEMORY. */
POSENC_API posenc_status posenc_encoding_create(posenc_encoding **e, const char *spec, const char *settings,
                                                posenc_error *err);
/* The same in memory of the caller's own; allocator NULL: malloc and free. */
POSENC_API posenc_status posenc_encoding_create_in(posenc_encoding **e, const char *spec,
                                                   const char *settings, const posenc_allocator *allocator,
                                                   posenc_error *err);
POSENC_API void          posenc_encoding_free(posenc_encoding *e); /* NULL is fine */

/* The canonical SPEC: names with every setting that differs from its default. Lives as long as e. */
POSENC_API const char *posenc_encoding_spec(const posenc_encoding *e);

/* Parameters of e, counted over all parts. The name is plain where e has one part and "encoding.name" where
   it has several; it lives as long as e; NULL outside 0 .. count-1. registry.h says what each means. */
POSENC_API int         posenc_param_count(const posenc_encoding *e);
POSENC_API const char *posenc_param_name(const posenc_encoding *e, int index);
/* shape receives ndim sizes. Errors: ARGUMENT (index), SETTING and SHAPE (settings that do not fit dims). */
POSENC_API posenc_status posenc_param_shape(const posenc_encoding *e, const posenc_dims *dims, int index,
                                            int32_t *ndim, int64_t shape[POSENC_MAX_DIMS], posenc_error *err);
/* Fills params[0 .. count-1] (contiguous F32 or F64 of the right shape) as the encoding's source initialises
   them. Numbers depend on seed and on the parameter's name alone, so that another parameter changes none of
   them. Errors: as posenc_param_shape, DTYPE. */
POSENC_API posenc_status posenc_param_init(const posenc_encoding *e, const posenc_dims *dims,
                                           posenc_tensor *params, uint64_t seed, posenc_error *err);

/* Inputs per token that the model makes beside q, k and v, and e needs (posenc_attend_in.tokens): how many,
   over all parts. registry.h has their names and shapes. */
POSENC_API int posenc_token_count(const posenc_encoding *e);

/* ---------------------------------------------------------------- plans (prepare) ----------- */

typedef enum posenc_executor {
    POSENC_EXECUTOR_AUTO = 0,  /* reference where q is F64, tiled otherwise */
    POSENC_EXECUTOR_REFERENCE, /* float64, direct, reads like the paper; linear memory too */
    POSENC_EXECUTOR_TILED      /* float32 arithmetic, linear memory */
} posenc_executor;

/* What the tiled executor multiplies. By storage: where q, k and v are all BF16 and the processor has dot
   products of bf16 pairs, attention forward rounds its weights to bf16 (by 2^-8 of themselves at most; q and
   k once more if they are rotated, except for a few queries) and is up to twice as fast: docs/decisions/0010.
   Sums, softmax, biases and lse are float either way. */
typedef enum posenc_products {
    POSENC_PRODUCTS_BY_STORAGE = 0,
    POSENC_PRODUCTS_F32 /* float, whatever is stored */
} posenc_products;

/* Tasks 0 .. n-1 of a run, each once, in any order and on any threads; returns when all are done. `slot` is a
   number below the number of threads that no other task has at that moment: it names a task's scratch memory.
   A run calls this any number of times, also never, where the work is too little for two threads; and not
   from within a task. */
typedef void posenc_task(void *argument, int64_t index, int slot);
typedef void posenc_parallel_for(void *context, int64_t n, posenc_task *task, void *argument);

typedef struct posenc_options {
    size_t          size; /* set by posenc_options_default */
    posenc_executor executor;
    int             mask;           /* POSENC_MASK_... joined by | */
    int64_t         window;         /* POSENC_MASK_WINDOW: keys with |t| < window */
    int             threads;        /* 0 = one per processor, 1 = the calling thread only */
    int64_t         tile_q, tile_k; /* 0 = the library's choice; at most 64 are used with xpos */
    int64_t max_distances; /* how many distances the positions of one run may span; 0 = Lq + Lk, enough
                                       for steps of 1. Matters for larger steps and arrays with gaps only */
    posenc_products products;
    const char *isa; /* instruction set, one of posenc_isa_at; NULL = what POSENC_ISA names, else the best */
    posenc_parallel_for *parallel_for; /* threads of the caller, `threads` of them; NULL = the library's */
    void                *parallel_context; /* its first argument */
    const volatile int
        *cancel; /* another thread sets it (atomically) to end a run early; NULL = nobody does */
    const posenc_allocator *allocator; /* of the plan and of posenc_workspace_create; NULL: malloc and free */
} posenc_options;

static inline posenc_options posenc_options_default(void)
{
    posenc_options o;
    memset(&o, 0, sizeof o); /* the default of every option is 0 */
    o.size = sizeof o;
    return o;
}

typedef struct posenc_plan posenc_plan;

/* Checks encoding, sizes and options. Runs with any lengths up to dims->Lq, dims->Lk and any batch up to
   dims->B need no other plan; options may be NULL.
   Errors: SHAPE (sizes; runs of more than 2^47 bytes, of 2^29 on 32 bits), SETTING (a setting that does not
   fit the sizes; rows of more than 2^20 numbers), UNSUPPORTED (mask or combination without a meaning),
   ARGUMENT (an option; an instruction set that this processor does not have), MEMORY. */
POSENC_API posenc_status posenc_plan_create(posenc_plan **plan, const posenc_encoding *e,
                                            const posenc_dims *dims, const posenc_options *options,
                                            posenc_error *err);
POSENC_API void          posenc_plan_free(posenc_plan *plan); /* NULL is fine */

/* Kinds of runs, joined by |. */
typedef enum posenc_run {
    POSENC_RUN_ROWS            = 1 << 8,  /* posenc_rows */
    POSENC_RUN_ROWS_BACKWARD   = 1 << 9,  /* posenc_rows_backward */
    POSENC_RUN_ROTATE          = 1 << 10, /* posenc_rotate and the runs of rotary.h */
    POSENC_RUN_ROTATE_BACKWARD = 1 << 11, /* posenc_rotate_backward */
    POSENC_RUN_ATTEND          = 1 << 12, /* posenc_attend */
    POSENC_RUN_DECODE          = 1 << 13, /* posenc_attend of at most POSENC_DECODE_QUERIES queries */
    POSENC_RUN_ATTEND_BACKWARD = 1 << 14, /* posenc_attend_backward */
    POSENC_RUN_SCORES          = 1 << 15, /* posenc_scores, posenc_bias */
    POSENC_RUN_BIAS_BACKWARD   = 1 << 16, /* posenc_bias_backward (posenc/scores.h) */
    POSENC_RUN_FORWARD         = POSENC_RUN_ROWS | POSENC_RUN_ROTATE | POSENC_RUN_ATTEND,
    POSENC_RUN_BACKWARD = POSENC_RUN_ROWS_BACKWARD | POSENC_RUN_ROTATE_BACKWARD | POSENC_RUN_ATTEND_BACKWARD
} posenc_run;

enum { POSENC_DECODE_QUERIES = 8 };

/* The most that runs in a workspace will bring; 0 is what the plan says. */
typedef struct posenc_sizes {
    size_t  size; /* set by posenc_sizes_default */
    int64_t B, Lq, Lk;
    int     threads; /* of one run */
    posenc_dtype
        dtype; /* of q: an executor that is chosen by it (POSENC_EXECUTOR_AUTO) needs its own memory */
} posenc_sizes;

static inline posenc_sizes posenc_sizes_default(void)
{
    posenc_sizes s;
    memset(&s, 0, sizeof s);
    s.size = sizeof s;
    return s;
}

/* What a run works in, the caller's: `bytes` of memory, aligned to 64. */
typedef struct posenc_workspace {
    size_t size; /* of this struct: posenc_workspace_over and posenc_workspace_create set it */
    void  *memory;
    size_t bytes;
    int    threads; /* that the run uses; 0 is what the plan says */
} posenc_workspace;

static inline posenc_workspace posenc_workspace_over(void *memory, size_t bytes)
{
    const posenc_workspace w = {sizeof w, memory, bytes, 0};
    return w;
}

/* Bytes that the largest of these runs takes, a multiple of 64; sizes NULL: those of the plan, q of any type.
   With more than 8 queries attention may keep a head's keys and values for each thread, in the order of its
   kernels: 4 Lk (D + Dv) bytes. Fewer threads take less; POSENC_RUN_DECODE has none of it.
   A run in fewer bytes than its own sizes take is refused (WORKSPACE). 0 where there is no such run: plan is
   NULL, runs is none of POSENC_RUN_..., a size is negative or larger than the plan's. */
POSENC_API size_t posenc_plan_workspace(const posenc_plan *plan, posenc_run runs, const posenc_sizes *sizes);

/* Allocates that workspace, with the plan's allocator. Errors: ARGUMENT (a pointer, runs), RANGE (a size
   beyond the plan's), MEMORY; *work is empty then, and empty it may be freed too. */
POSENC_API posenc_status posenc_workspace_create(posenc_workspace *work, const posenc_plan *plan,
                                                 posenc_run runs, const posenc_sizes *sizes,
                                                 posenc_error *err);
/* Only what posenc_workspace_create made; the plan may be gone. NULL and a zeroed struct are fine. */
POSENC_API void posenc_workspace_free(posenc_workspace *work);

/* Arithmetic operations of one forward run of Lq queries over Lk keys and one batch item, beyond those of an
   embedding and an attention without positions: counted from the formulas, one each for + - * / and max and
   for a function such as sin or exp; what depends on a position or a distance once for each, no mask. A
   program may need fewer. */
POSENC_API double posenc_plan_operations(const posenc_plan *plan);

/* ---------------------------------------------------------------- parameters, once ---------- */

/* A plan's parameters made ready: what they alone decide (numbers in double, tables by distance, projected
   distances and positions, what an encoding makes of its parameters) is made here once, and not by each run:
   what a run then costs follows from its own sizes. One for each layer; it does not change, any number of
   threads may run with it, and whoever made it frees it, before its plan or after. */
typedef struct posenc_bound posenc_bound;

/* Makes *bound of params (posenc_param_count of them, as in posenc_attend_in), on the plan's threads and in
   memory of its allocator. The parameters are copied and may change or go afterwards, except numbers by pair
   (dense_bias), which are read where they are. Those of a place (input, rotary, score, weight) may all be
   empty: then runs that need them refuse the bound. A run that is given a bound reads it in place of params,
   and writes the same bits (a few queries of transformer_xl and xlnet: the same within the rounding of
   floats, for without a bound they make no vectors by distance); its plan is this one, or one of the same
   SPEC, dims and options (else ARGUMENT). Backward runs take of it the numbers, not the tables. Tables hold
   what the mask allows of the distances below the larger of Lq and Lk, or below options.max_distances where
   that is given; a run that goes farther, or whose positions step by more than one, makes its own. Memory: 8
   bytes for each number of the parameters and of what is made of them; for each head and distance 12 bytes
   for a bias, 4 for a gate, 4*D for vectors; 4*D for each head and position (tupe). Where an encoding clips
   distances no more than those have rows. The reference executor has no tables. Errors: ARGUMENT (NULL),
   SHAPE and DTYPE (params), MEMORY; *bound is NULL then. */
POSENC_API posenc_status posenc_plan_bind(posenc_bound **bound, const posenc_plan *plan,
                                          const posenc_tensor *params, posenc_error *err);
POSENC_API void          posenc_bound_free(posenc_bound *bound); /* NULL is fine */

/* ---------------------------------------------------------------- runs: place input --------- */

/* y[b,s,:] = x[b,s,:] + table(P(b,s)). x may have no data: then y is the table's rows only. x, y [B,L,d], the
   same tensor or not. Ids (learned tables) are positions: an I64 array [B or 1, L]. */
typedef struct posenc_rows_in {
    size_t               size; /* sizeof(posenc_rows_in) */
    posenc_tensor        x;
    posenc_positions     pos;
    const posenc_tensor *params;
    const posenc_bound  *bound; /* NULL, or in place of params */
} posenc_rows_in;

POSENC_API posenc_status posenc_rows(const posenc_plan *plan, const posenc_rows_in *in, posenc_tensor *y,
                                     const posenc_workspace *work, posenc_error *err);

/* dy [B,L,d] is the cotangent of y; dx, the same tensor or not, overwrites, dparams add. Also UNSUPPORTED:
   dparams of settings that have no gradient (floater[solver=exact]). */
typedef struct posenc_rows_grad {
    size_t         size; /* sizeof(posenc_rows_grad) */
    posenc_tensor  dy;
    posenc_tensor  dx;
    posenc_tensor *dparams; /* may be NULL */
} posenc_rows_grad;

POSENC_API posenc_status posenc_rows_backward(const posenc_plan *plan, const posenc_rows_in *in,
                                              const posenc_rows_grad *grad, const posenc_workspace *work,
                                              posenc_error *err);

/* Numbers per row of the plan's input part, the d of x and y: d_model as a rule, states*dim for floater,
   2*dim for complex_order. 0 without an input part. */
POSENC_API int64_t posenc_rows_width(const posenc_plan *plan);

/* Coordinates per position of e's input part: 1, as many as its grid has axes, or 2 where a row depends on a
   word as well (complex_order: id of the word, position); 1 without an input part. */
POSENC_API int posenc_rows_coordinates(const posenc_encoding *e);

/* *tokens = how many tokens a range of positions numbers in the grid of e's input part, its places and the
   rows before it; 0 where the encoding has no grid. UNSUPPORTED if e has no part at place input. */
POSENC_API posenc_status posenc_rows_tokens(const posenc_encoding *e, const posenc_dims *dims,
                                            int64_t *tokens, posenc_error *err);

/* ---------------------------------------------------------------- runs: place rotary -------- */

/* Rotates q [B,H,Lq,D] and k [B,G,Lk,D] by their positions; either may have no data. to_q, to_k have the same
   shapes and may be the same tensors (in place). direction +1 rotates forward; -1 rotates back, which is also
   the gradient: the transpose of a rotation is its inverse (times the same magnitude). params: as
   posenc_attend_in; only the rotary part's are read, NULL if it has none. POSENC_EXECUTOR_REFERENCE rotates
   rows of any type in double and rounds each result once; AUTO and TILED rotate F64 rows in double too, all
   others in float. A schedule that follows the length of the run takes 1 + the largest coordinate of q_pos
   and k_pos, of those that have data. q_table, k_table (may have no data): rows of posenc_rotary_table for
   the same positions, [1 or B, L, width] F32, made once and used by every layer, in float whatever the
   executor; then neither positions nor params are read. Not for F64, which is rotated in double.
   tokens: where angles follow a token input (rope[content=...]), [B, G or 1, Lk, n]; a query turns by the
   angle of the token that it is, the last key not beyond its position. Batch and lengths are then at most
   those of the plan, and all tokens are of one segment.
   Source: Su et al. 2021, arXiv:2104.09864; each rotary encoding names its own. */
typedef struct posenc_rotate_io {
    size_t               size; /* sizeof(posenc_rotate_io) */
    posenc_tensor        q, k;
    posenc_positions     q_pos, k_pos;
    posenc_tensor        to_q, to_k;
    int                  direction;
    const posenc_tensor *params;
    posenc_tensor        q_table, k_table;
    const posenc_bound  *bound;         /* NULL, or in place of params */
    const posenc_tensor *tokens, *sums; /* as in posenc_attend_in; NULL: there are none */
} posenc_rotate_io;

POSENC_API posenc_status posenc_rotate(const posenc_plan *plan, const posenc_rotate_io *io,
                                       const posenc_workspace *work, posenc_error *err);

/* The gradient of posenc_rotate with the same io, whose q and k are those from before the rotation (its to_q
   and to_k are not read; positions and params are, with tables too). dto_q, dto_k are the cotangents of to_q,
   to_k; dq, dk overwrite, and may be the same tensors unless gradients of parameters are wanted; dparams (may
   be NULL) add, summed from dq and dk as they are stored. Also UNSUPPORTED: dparams of rounded angles, which
   have no derivative. */
typedef struct posenc_rotate_grad {
    size_t         size; /* sizeof(posenc_rotate_grad) */
    posenc_tensor  dto_q, dto_k;
    posenc_tensor  dq, dk;
    posenc_tensor *dparams;
    posenc_tensor *dtokens; /* as in posenc_attend_grad, summed from dq and dk */
} posenc_rotate_grad;

POSENC_API posenc_status posenc_rotate_backward(const posenc_plan *plan, const posenc_rotate_io *io,
                                                const posenc_rotate_grad *grad, const posenc_workspace *work,
                                                posenc_error *err);

/* ---------------------------------------------------------------- runs: attention ----------- */

/* q [B,H,Lq,D]  k [B,G,Lk,D]  v [B,G,Lk,Dv]. A zeroed q_pos puts query 0 at position 0, also before a long
   cache: a token that is decoded is given its own position. The rotary part of the encoding, if any, is
   applied inside, to all of k: a cache that holds rotated keys (posenc_rotate) is attended by a plan without
   that part. Where positions are arrays of several coordinates (posenc_rotary_coordinates) they have no order
   of their own: masks by distance then count tokens, the last query being as late as the last key, and
   encodings by distance are refused. key_allowed [B or 1, Lk] U8; allowed [B or 1, H or 1, Lq, Lk] U8;
   q_segments [B or 1, Lq] and k_segments [B or 1, Lk] I64, I32 or U8: for POSENC_MASK_SEGMENTS, and for
   encodings that see segments (without data: all in one segment). A NaN or an infinite score makes the rows
   that see it NaN, and may do so where a mask hides it; keys and values that key_allowed hides are not read.

   Caches as engines keep them. All of these may be without data.
   k_lengths [B] I64 or I32: item b has the keys 0 .. k_lengths[b]-1 of the Lk, each item attends as if it
   were a call of its own (short ones share the threads; a schedule that follows the length follows the
   item's; tables of parameters that are not bound are made for each), and dk, dv of the others are 0.
   Positions are given as ever: of the queries as an array [B, Lq], where items differ. Items with different
   numbers of queries are packed into one, with POSENC_MASK_SEGMENTS. k_pages [B, P] I64 or
   I32: k is [N, G, n, D] and v [N, G, n, Dv], N pages of n keys each in any order, and key j of item b is row
   j % n of page k_pages[b, j / n]; Lk is P*n. Pages that a length leaves unused may have any number. The
   backward takes no pages. k and v may be F8_E4M3 or, with D and Dv divisible by 32, Q8_0: they become floats
   on their way. k_scale, v_scale [G] F32 multiply rows of F8_E4M3 (without data: 1). The backward takes
   neither type. */
typedef struct posenc_attend_in {
    size_t               size; /* sizeof(posenc_attend_in) */
    posenc_tensor        q, k, v;
    posenc_positions     q_pos, k_pos;
    posenc_tensor        key_allowed, allowed;
    posenc_tensor        q_segments, k_segments;
    const posenc_tensor *params; /* posenc_param_count of them; NULL if there are none */
    posenc_tensor        k_lengths, k_pages;
    posenc_tensor        k_scale, v_scale;
    const posenc_bound  *bound; /* NULL, or in place of params: posenc_plan_bind */
    const posenc_tensor
        *tokens; /* posenc_token_count of them, contiguous, any type of q; NULL: there are none */
    const posenc_tensor *sums; /* NULL, or by token input: running sums in its place (posenc_token_sums) */
} posenc_attend_in;

/* o [B,H,Lq,Dv], the output; lse [B,H,Lq] (may have no data), natural log of the sum of exp(S) over allowed
   keys, and of the sink where there is one (posenc_common_settings): who joins parts of the keys gives the
   sink to one of them. */
typedef struct posenc_attend_out {
    size_t        size; /* sizeof(posenc_attend_out) */
    posenc_tensor o, lse;
} posenc_attend_out;

POSENC_API posenc_status posenc_attend(const posenc_plan *plan, const posenc_attend_in *in,
                                       const posenc_attend_out *out, const posenc_workspace *work,
                                       posenc_error *err);

/* The gradient needs o and lse as the forward run wrote them. dout is the cotangent of o; dlse [B,H,Lq], that
   of lse, may have no data: parts of the keys that were attended one by one and joined by their lse are
   trained through it. Rows without an allowed key take none. */
typedef struct posenc_attend_grad {
    size_t         size; /* sizeof(posenc_attend_grad) */
    posenc_tensor  o, lse, dout, dlse;
    posenc_tensor  dq, dk, dv;
    posenc_tensor *dparams; /* may be NULL; one with no data is not wanted */
    posenc_tensor *dtokens; /* the same, in the shapes of in.tokens, contiguous; they OVERWRITE */
} posenc_attend_grad;

POSENC_API posenc_status posenc_attend_backward(const posenc_plan *plan, const posenc_attend_in *in,
                                                const posenc_attend_grad *grad, const posenc_workspace *work,
                                                posenc_error *err);

/* The scores S [B,H,Lq,Lk] themselves, before any mask. Quadratic on purpose: for tests, pictures, kernels of
   your own. v may have no data. The mask matters to encodings that count allowed keys, and to no other. */
POSENC_API posenc_status posenc_scores(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *S,
                                       const posenc_workspace *work, posenc_error *err);

/* What the encoding adds to the scores whatever the content: bias [H,Lq,Lk], with q and k ignored. Positions
   of batch item 0. */
POSENC_API posenc_status posenc_bias(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *bias,
                                     const posenc_workspace *work, posenc_error *err);

/* ---------------------------------------------------------------- version, processor -------- */

POSENC_API const char *posenc_version(void);        /* "0.2.0" */
POSENC_API int         posenc_version_number(void); /* 200 of 0.2.0: POSENC_VERSION_NUMBER of its headers */
/* The instruction set in use: the best of posenc_isa_at (registry.h), or the one that POSENC_ISA in the
   environment names, for tests. Where it names none of them (spelt wrongly, or not for this processor) this
   is the best, and no plan is made: posenc_plan_create says so. An empty POSENC_ISA is none. */
POSENC_API const char *posenc_isa(void);

#ifdef __cplusplus
}

inline posenc_run operator|(posenc_run a, posenc_run b)
{
    return POSENC_CAST(posenc_run, POSENC_CAST(int, a) | POSENC_CAST(int, b));
}
#endif

#undef POSENC_CAST
#undef POSENC_PRODUCT
#endif
