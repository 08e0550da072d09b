/* SPDX-License-Identifier: MIT */
/*
 * objects.h: what the public opaque types hold
 *
 * An encoding is its parts, at most one per place, with the text of their settings; numbers follow when sizes
 * are known. A plan is an encoding resolved for sizes: settings as numbers, terms of the score and pairs of
 * the rotation. A run opens the workspace that it is given before it writes anything.
 */
#ifndef PE_API_OBJECTS_H
#define PE_API_OBJECTS_H

#include <posenc/rotary.h>

#include "api/given.h"
#include "base/arena.h"
#include "base/overlap.h"
#include "base/parallel.h"
#include "encodings/encoding.h"
#include "engine/tiled/ready.h"

/* Parameters of all parts together: a hook may get any of them. */
enum { PE_MAX_PARAMS = PE_HOOK_PARAMS, PE_MAX_NAME = 64, PE_MAX_SPEC = 2048, PE_MOST_THREADS = 4096 };

/* After the places: the settings of every encoding, a part without a place. */
enum { PE_PLACE_COMMON = POSENC_PLACE_COUNT, PE_PLACES };

typedef struct pe_chosen {
    const pe_encoding *room; /* NULL: no part at this place */
    pe_setting_text    text[PE_MAX_SETTINGS];
} pe_chosen;

/* Parameter number `local` of the room at `place`. */
typedef struct pe_param_place {
    int place; /* posenc_place, or PE_PLACE_COMMON */
    int local;
} pe_param_place;

struct posenc_encoding {
    pe_chosen        parts[PE_PLACES];
    int              part_count, param_count, token_count;
    pe_param_place   tokens[PE_MAX_TOKENS]; /* those that the settings call for, as params */
    pe_param_place   params[PE_MAX_PARAMS]; /* those that the settings call for */
    char             names[PE_MAX_PARAMS][PE_MAX_NAME];
    char             spec[PE_MAX_SPEC];
    posenc_allocator allocator; /* that it is in */
};

/* A part with numbers. */
typedef struct pe_resolved {
    const pe_encoding *room;
    pe_problem         problem;
    pe_value           set[PE_MAX_SETTINGS];
} pe_resolved;

typedef struct pe_shape {
    int32_t ndim;
    int64_t sizes[POSENC_MAX_DIMS];
} pe_shape;

struct posenc_plan {
    posenc_encoding        own;  /* the caller may free his */
    const posenc_encoding *e;    /* that copy */
    posenc_dims            dims; /* with defaults filled in */
    posenc_options         options;
    posenc_allocator       allocator; /* that options name */
    int                    threads;
    const pe_kernels      *kernels;
    pe_resolved            parts[PE_PLACES];
    pe_terms               terms;
    pe_rotary              rotary, rotary_keys;             /* M = 0: none */
    void                  *rotary_memory;                   /* of both */
    pe_ladder             *rotary_ladder, *waves;           /* of both, and of the input part; NULL: none */
    double                 waves_blank;                     /* position of a zero row, NAN: none */
    int64_t                sizes[PE_PLACES][PE_MAX_PARAMS]; /* numbers in each parameter, 0 if absent */
    pe_shape               shapes[PE_MAX_PARAMS];           /* of the parameters of e */
    int64_t                max_distances;
    int64_t                row_width, row_tokens, row_ids; /* of the input part: encoding.h */
    int64_t                token_channels[PE_MAX_TOKENS];
    size_t  turn_bytes[2][2]; /* of a rotation forward and backward: on no thread, and for each */
    size_t  few_bytes[2];  /* of any attention of few queries, of any scores or bias of few: pe_attend_know */
    int64_t whole_keys[2]; /* pe_attention */
};

/* Sizes with their defaults: G = H, Dv = D, d_model = H*D, L = Lk (or Lq). */
posenc_dims pe_encoding_full_dims(const posenc_dims *dims);

/* The flags and words of a part; numbers may need sizes and stay 0. */
void pe_encoding_words(const pe_chosen *part, pe_value set[PE_MAX_SETTINGS]);

/* Settings of one part for these sizes, checked by the room. */
posenc_status pe_encoding_resolve(pe_resolved *r, const pe_chosen *part, const posenc_dims *full,
                                  posenc_error *err);

/* An expression of a room over its settings and the sizes. */
double pe_encoding_number(const pe_resolved *r, const posenc_dims *full, const char *text);
/* The same for a number of rows or tokens, at most 2^53. */
int64_t pe_encoding_whole(const pe_resolved *r, const posenc_dims *full, const char *text);

/* Is t what parameter `index` must be for these sizes? `who` opens the sentence. */
posenc_status pe_encoding_check_param(const posenc_encoding *e, const posenc_dims *dims, int index,
                                      const posenc_tensor *t, const char *who, posenc_error *err);

/* What a run needs of the caller's parameters, by place and the room's own number: doubles and where
   gradients add; or, where a member by distance reads the parameter itself, the caller's tensors. */
typedef struct pe_numbers {
    const double        *par[PE_PLACES][PE_MAX_PARAMS];
    double              *dpar[PE_PLACES][PE_MAX_PARAMS];
    const posenc_tensor *tensor[PE_PLACES][PE_MAX_PARAMS];
    posenc_tensor       *dtensor[PE_PLACES][PE_MAX_PARAMS];
    pe_problem           problem[PE_PLACES]; /* the plan's, with `tensor` */
    const posenc_bound  *bound;              /* where they come from, if they were made ready */
} pe_numbers;

/* The parameters of a run: the caller's tensors, or made ready. */
typedef struct pe_param_source {
    const posenc_tensor *params; /* NULL, and no bound: of any run, while counting */
    const posenc_bound  *bound;  /* NULL: none */
    const pe_numbers    *loaded; /* of all parts, by another item of the batch; NULL: none */
} pe_param_source;

/* What the numbers are for: without gradients there are no sums of them. */
typedef enum pe_numbers_use { PE_NUMBERS_BOTH, PE_NUMBERS_FORWARD, PE_NUMBERS_FEW } pe_numbers_use;

/* Of some places (bits 1 << place), the others' parameters are not looked at: checks what is given, and
   dparams, which must be apart from it (`who`: "attend"). */
posenc_status pe_numbers_check(const posenc_plan *plan, int places, pe_param_source given,
                               const posenc_tensor *dparams, const char *who, posenc_error *err);
/* Are the gradients, which pe_numbers_check has found right, apart from these tensors? */
posenc_status pe_numbers_check_apart(const posenc_plan *plan, int places, const posenc_tensor *dparams,
                                     const pe_named *others, int count, const char *who, posenc_error *err);
/* Whose parameters, and their gradients; NULL while counting, or not wanted. */
typedef struct pe_numbers_of {
    int             places;
    pe_param_source given;
    posenc_tensor  *dparams;
    pe_numbers_use  use;
} pe_numbers_of;
/* Converts parameters, unless they are bound, and zeroes gradient sums; counts on an arena without memory. *n
   must stay where it is as long as its parts are used. */
void pe_numbers_load(pe_numbers *n, const posenc_plan *plan, const pe_numbers_of *of, pe_arena *arena);
/* Does a member read this parameter as it lies, and add its gradient there? Then it is neither converted nor
   summed. */
typedef enum pe_stay { PE_CONVERTED = 0, PE_STAYS_BY_DISTANCE, PE_STAYS_BY_PAIR } pe_stay;
pe_stay pe_numbers_stay(const posenc_plan *plan, pe_param_place at);
/* Adds the sums to the caller's tensors. */
void pe_numbers_add(const pe_numbers *n, const posenc_plan *plan, posenc_tensor *dparams);

/* The rotation of one run: the plan's own, or made anew in the run's memory where it depends on parameters or
   length. */
typedef struct pe_run_rotation {
    const pe_rotary *queries, *keys; /* NULL: no rotary part */
    pe_rotary        made[2];
} pe_run_rotation;

/* What of a plan its bounds depend on. */
typedef struct pe_likeness {
    char              spec[PE_MAX_SPEC];
    posenc_dims       dims;
    posenc_options    options;
    posenc_allocator  allocator;
    const pe_kernels *kernels;
    int64_t           max_distances;
} pe_likeness;

struct posenc_bound {
    pe_likeness     plan;
    int             places; /* whose parameters it has: bits 1 << place */
    pe_numbers      numbers;
    posenc_tensor   tensors[PE_MAX_PARAMS]; /* of parameters that stay as they are */
    pe_ready        ready;                  /* of attention */
    pe_run_rotation rotation;               /* where parameters alone decide it; else queries is NULL */
    double         *rows; /* of the input part, where they follow from each other; NULL: they do not */
};

void pe_likeness_note(pe_likeness *to, const posenc_plan *plan);
/* May runs of the plan that read parameters of these places take the bound? `who` opens the sentence. */
posenc_status pe_likeness_check(const posenc_bound *bound, const posenc_plan *plan, int places,
                                const char *who, posenc_error *err);

/* The part at a place as the engine wants it; NULLs where there is none. */
pe_part pe_numbers_part(const posenc_plan *plan, int place, const pe_numbers *n, int gradients);

void pe_rotary_make(pe_run_rotation *t, const posenc_plan *plan, const pe_numbers *n, double length,
                    pe_arena *arena);
/* Are the frequencies that parameters gave usable? `who` opens the sentence. */
posenc_status pe_rotary_check(const pe_run_rotation *t, const posenc_plan *plan, const char *who,
                              posenc_error *err);

/* The caller's struct as this version has it, or NULL (pe_given_read). */
const posenc_rotary_in *pe_rotary_read_in(posenc_rotary_in *copy, const posenc_rotary_in *in, const char *who,
                                          posenc_error *err);
/* The caller's positions as the rotary part reads them, for pe_positions_check with its coordinates. */
posenc_positions pe_rotary_read_positions(const posenc_plan *plan, const posenc_positions *given);
/* The larger of `length` and the largest coordinate and one. */
double pe_rotary_length(double length, const posenc_positions *pos, int64_t L);

/* Refuses a plan without a rotary part. `who` opens the sentence, here and below. */
posenc_status pe_rotary_require(const posenc_plan *plan, const char *who, posenc_error *err);
/* And one that rotates no token by itself, as a map of distances does not. */
posenc_status pe_rotary_require_of_one(const posenc_plan *plan, const char *who, posenc_error *err);
/* And one whose angles a token input makes. */
posenc_status pe_rotary_require_positions(const posenc_plan *plan, const char *who, posenc_error *err);
/* Can the token input have a gradient? */
posenc_status pe_rotary_turns_check(const posenc_plan *plan, const posenc_tensor *dq, const posenc_tensor *dk,
                                    const char *who, posenc_error *err);

/* A tensor of rows and, if `to` is not NULL, where they go; their names. */
posenc_status pe_rotary_check_rows(const posenc_plan *plan, const posenc_tensor *from,
                                   const posenc_tensor *to, int64_t heads, const char *const names[2],
                                   posenc_error *err);

/* How large a run is: its sizes, and the type of q. */
typedef struct pe_run_size {
    int64_t      B, Lq, Lk;
    int          threads;
    posenc_dtype dtype;
    int          any_type; /* whatever the type is */
} pe_run_size;

/* Bytes that a run on so many threads wants of its workspace, after those that another plan has taken. `who`
   opens the sentence. */
typedef struct pe_wanted {
    const char *who;
    int         threads; /* pe_run_threads */
    size_t      bytes, taken;
} pe_wanted;

/* What it then has. */
typedef struct pe_opened {
    pe_arena arena;
    pe_team  team;
} pe_opened;

/* The threads of a run: those of the workspace, if it says any, else the plan's. */
int pe_run_threads(const posenc_plan *plan, const posenc_workspace *work);
/* Refuses a workspace that is missing, not aligned or too small. */
posenc_status pe_run_open(pe_opened *run, const posenc_plan *plan, const posenc_workspace *work,
                          const pe_wanted *wanted, posenc_error *err);
/* The last word of a run: done, or cancelled. */
posenc_status pe_run_done(const pe_team *team, const char *who, posenc_error *err);

/* What a run of only the rotation asks for, and what it then has. */
typedef struct pe_rotary_request {
    const posenc_plan *plan;
    const char        *who;
    pe_param_source    given;
    posenc_tensor     *dparams; /* NULL: no gradients */
    double             length;  /* of the run: pe_rotary_length */
    int                is_backward;
    size_t             taken; /* of the workspace, by another plan */
} pe_rotary_request;

typedef struct pe_rotary_opened {
    pe_numbers      numbers;
    pe_run_rotation rotation;
    pe_opened       work; /* the workspace after both */
} pe_rotary_opened;

/* Checks parameters and workspace, and makes the rotation in it. */
posenc_status pe_rotary_open(pe_rotary_opened *run, const pe_rotary_request *request,
                             const posenc_workspace *work, posenc_error *err);
/* Only the workspace. */
posenc_status pe_rotary_open_workspace(pe_opened *run, const pe_rotary_request *request,
                                       const posenc_workspace *work, posenc_error *err);

/* Two rows of doubles for each thread: [threads, 2, D]. */
double *pe_rotary_lay_out_rows(const posenc_plan *plan, int threads, pe_arena *arena);

/* One side of a run: x as it came and the cotangent of that. */
typedef struct pe_rotated_side {
    const posenc_tensor    *x, *dx;
    const posenc_positions *pos;
    const pe_rotary        *rotation;
} pe_rotated_side;

/* Both sides, which were rotated with `sign`. */
typedef struct pe_rotated_run {
    pe_rotated_side sides[2];
    double          length, sign;
    pe_team         team;
} pe_rotated_run;

/* Gradients of the rotary part's parameters into n->dpar; counts on an arena without memory. */
void pe_rotary_slopes(const posenc_plan *plan, const pe_numbers *n, const pe_rotated_run *run,
                      pe_arena *arena);
/* Are there rotary parameters, of which a gradient is wanted (dparams NULL: in whatever way)? */
int pe_rotary_has_params(const posenc_plan *plan, const posenc_tensor *dparams);
/* May they be asked for? dq and dk must be there. */
posenc_status pe_rotary_slopes_check(const posenc_plan *plan, const posenc_tensor *dparams,
                                     const posenc_tensor *dq, const posenc_tensor *dk, const char *who,
                                     posenc_error *err);

/* Numbers per position of a score part, and of a rotary part or, without one, of that:
   posenc_rotary_coordinates. */
static inline int pe_plan_score_coordinates(const posenc_plan *plan)
{
    const pe_resolved *score = &plan->parts[POSENC_PLACE_SCORE];
    return score->room && score->room->coordinates ? score->room->coordinates(score->set) : 1;
}

static inline int pe_plan_coordinates(const posenc_plan *plan)
{
    return plan->parts[POSENC_PLACE_ROTARY].room ? plan->rotary.axes : pe_plan_score_coordinates(plan);
}

/* ---- tokens.c: inputs per token ---- */

/* How many does the part at a place have? */
static inline int pe_tokens_of(const posenc_plan *plan, int place)
{
    int n = 0;
    for (int i = 0; i < plan->e->token_count; i++)
        n += plan->e->tokens[i].place == place;
    return n;
}

/* Which there are. */
posenc_status pe_tokens_name(posenc_encoding *e, posenc_error *err);
/* Is t [sizes[0], H or G or 1, sizes[1], sizes[2]], with -1 for any size, of the kinds that q may be of? */
posenc_status pe_tokens_check(const pe_problem *p, const posenc_token_info *info, const posenc_tensor *t,
                              const char *what, const int64_t sizes[3], posenc_error *err);
/* What a run is given of them; those of other places are not read. `who` opens the sentence. */
typedef struct pe_tokens_given {
    const posenc_tensor *tokens, *sums;
    posenc_tensor       *dtokens;
    int64_t              keys;
    int                  places; /* bits */
    const char          *who;
} pe_tokens_given;

/* Those of a run, and where their gradients go; *a has the sizes. */
posenc_status pe_tokens_take(pe_attention *a, const posenc_plan *plan, const pe_tokens_given *given,
                             posenc_error *err);
posenc_status pe_tokens_take_gradients(pe_attention *a, const posenc_plan *plan, const pe_tokens_given *given,
                                       posenc_error *err);
/* Do positions rise, where they say which token a query is? */
posenc_status pe_tokens_check_order(const pe_attention *a, const posenc_plan *plan, const char *who,
                                    posenc_error *err);

/* ---- items.c: batches whose keys have lengths or lie in pages ---- */

/* Is each item a run of its own? */
int pe_items_apart(const posenc_attend_in *in);
/* Keys of an item at most, and of item b. */
int64_t pe_items_keys(const posenc_attend_in *in);
int64_t pe_items_length(const posenc_attend_in *in, int64_t b);
/* Shape and type of k_pages; then, where k is known to have its shape, lengths and the pages they need. */
posenc_status pe_items_check_pages(const posenc_attend_in *in, posenc_error *err);
posenc_status pe_items_check_lengths(const posenc_attend_in *in, posenc_error *err);
/* Item b of a tensor whose first axis is the batch, or 1; of all that a run is given; tokens [2,
   PE_MAX_TOKENS] are lent to it. */
posenc_tensor    pe_items_view(const posenc_tensor *t, int64_t b);
posenc_attend_in pe_items_in(const posenc_plan *plan, const posenc_attend_in *in, int64_t b,
                             posenc_tensor tokens[]);
/* Zeros to the rows from `from` on of [B, heads, L, width]. */
void pe_items_clear(const posenc_tensor *t, int64_t from);

/* Bytes that runs need, counted by the engine itself. */
size_t pe_rows_bytes(const posenc_plan *plan, int threads, int backward);
size_t pe_rotate_bytes(const posenc_plan *plan, int threads, int backward);
/* The same, at least, from what the plan has counted: a rotation may take less time than a count. */
size_t pe_rotary_bytes(const posenc_plan *plan, int threads, int backward);
/* The parts of a pe_attention that the plan knows. */
pe_attention pe_attend_of(const posenc_plan *plan);
/* What is counted once with a plan, so that small runs need not count. */
void pe_attend_know(posenc_plan *plan);
/* run: POSENC_RUN_ATTEND, _ATTEND_BACKWARD or _SCORES */
size_t pe_attend_bytes(const posenc_plan *plan, const pe_run_size *of, posenc_run run);

#endif
