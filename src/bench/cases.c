/* SPDX-License-Identifier: MIT */
/*
 * cases.c: the table of all rows
 *
 * The list depends on nothing but this program: computers that can do less have the same rows, some of which
 * say why they hold no figure. The order is that of the goals' numbers, and within a goal that of the
 * tables below.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/shared/compiler.h"
#include "bench/crew.h"
#include "bench/limits.h"
#include "bench/metric.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

enum { CHANNELS = 128, MOST_CASES = 1000 };
/* columns of the tables */
#define F32  POSENC_DTYPE_F32
#define F16  POSENC_DTYPE_F16
#define BF16 POSENC_DTYPE_BF16

typedef struct case_list {
    pe_bench_case *rows; /* [MOST_CASES] */
    int            count;
} case_list;

/* "limits" before "G1" before "G2" before "G10"; words without a number last. */
static int rank(const char *goal)
{
    return !strcmp(goal, "limits") ? 0 : goal[0] == 'G' ? atoi(goal + 1) : 1000;
}

/* Adds a copy of `c`, under the name that `format` makes, after the last row of its goal. */
PE_PRINTF(4, 5)
static void add_case(case_list *to, const char *goal, pe_bench_case c, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    snprintf(c.goal, sizeof c.goal, "%s", goal);
    vsnprintf(c.name, sizeof c.name, format, values);
    va_end(values);
    assert(to->count < MOST_CASES);
    int at = to->count++;
    for (; at > 0 && rank(goal) < rank(to->rows[at - 1].goal); at--)
        to->rows[at] = to->rows[at - 1];
    to->rows[at] = c;
}

static const char *dtype_word(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_BF16 ? "bf16" : dtype == POSENC_DTYPE_F16 ? "f16" : "f32";
}

/* ---------------------------------------------------------------- what is measured ----------- */

/* What measures a row, in what, and how a goal is meant; `of` ends the names of attention's rows. */
typedef struct case_kind {
    pe_bench_fn   *measure;
    const char    *unit;
    pe_bench_sense sense;
    const char    *of;
} case_kind;

// clang-format off
static const case_kind
    PEAK      = {pe_metric_share,      "GFLOP/s", PE_AT_LEAST, "of the multiply-add peak"},
    PASS      = {pe_metric_share,      "GB/s",    PE_AT_LEAST, NULL},
    READ      = {pe_metric_share,      "GB/s",    PE_AT_LEAST, NULL},
    PLAIN     = {pe_metric_over,       "ms",      PE_AT_MOST,  "time over plain, at most"},
    CALL      = {pe_metric_over,       "us",      PE_AT_MOST,  NULL},
    WIDE      = {pe_metric_over,       "ms",      PE_AT_LEAST, "speed over f32"},
    THREADS   = {pe_metric_over,       "ms",      PE_AT_LEAST, "two threads over one"},
    SECONDS   = {pe_metric_seconds,    "s",       PE_STATED,   NULL},
    OVERHEAD  = {pe_metric_overhead,   "ns",      PE_AT_MOST,  NULL},
    FLIGHT    = {pe_metric_in_flight,  "GB/s",    PE_AT_LEAST, NULL},
    GROWTH    = {pe_memory_growth,     "MiB",     PE_AT_MOST,  NULL},
    MEGABYTES = {pe_memory_megabytes,  "MiB",     PE_AT_MOST,  NULL},
    CLOCK     = {pe_metric_clock,      "GHz",     PE_STATED,   NULL},
    UNITS     = {pe_metric_units,      "GFLOP/s", PE_NEAR_ONE, NULL},
    BANDWIDTH = {pe_metric_bandwidth,  "GB/s",    PE_STATED,   NULL},
    STEP      = {pe_training_step,     "GFLOP/s", PE_AT_LEAST, NULL},
    PAIR      = {pe_training_pair,     "steps/s", PE_AT_LEAST, NULL};
// clang-format on

/* A case of that kind. wanted 0: stated. */
static pe_bench_case of_kind(const case_kind *kind, double wanted, pe_bench_shape shape)
{
    return (pe_bench_case){.unit       = kind->unit,
                           .wanted     = wanted,
                           .sense      = wanted > 0 ? kind->sense : PE_STATED,
                           .processors = kind == &THREADS || kind == &PAIR ? 2 : 0,
                           .measure    = kind->measure,
                           .shape      = shape};
}

/* ---------------------------------------------------------------- goal limits ---------------- */

/* plain has no multiply-add that is fused, so no goal. */
static const struct {
    const char *isa;
    double      wanted;
} arithmetic[] = {{"plain", 0}, {"avx2", 0.97}, {"avx512", 0.97}, {"neon", 0.97}};

static const struct {
    const char *name;
    int64_t     bytes;
} sizes[] = {{"16 KiB", 16 << 10}, {"256 KiB", 256 << 10}, {"4 MiB", 4 << 20}, {"256 MiB", 256 << 20}};

static void add_limits(case_list *to)
{
    add_case(to, "limits", of_kind(&CLOCK, 0, (pe_bench_shape){0}), "clock, by dependent additions");
    for (size_t i = 0; i < COUNT(arithmetic); i++) {
        pe_bench_case c = of_kind(&UNITS, arithmetic[i].wanted, (pe_bench_shape){.dtype = POSENC_DTYPE_F32});
        c.isa           = arithmetic[i].isa;
        add_case(to, "limits", c, "multiply-adds f32 %s, of 2 x width x clock x units", c.isa);
    }
    add_case(to, "limits", of_kind(&UNITS, 0.97, (pe_bench_shape){.dtype = POSENC_DTYPE_BF16}),
             "dot products bf16, of 4 x width x clock x units");
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < PE_PASS_KINDS; kind++)
            add_case(to, "limits",
                     of_kind(&BANDWIDTH, 0, (pe_bench_shape){.kind = kind, .Lk = sizes[s].bytes}), "%s, %s",
                     pe_limits_pass_name((pe_pass_kind)kind), sizes[s].name);
}

/* ---------------------------------------------------------------- rotation and tables -------- */

static const char in_place[] = ", of in-place read-modify-write",
                  in_l2[]    = ", in L2, of in-place read-modify-write";

// clang-format off
static const struct {
    const char      *goal, *what, *of;
    const case_kind *kind;
    double           wanted;
    pe_bench_verb    verb;
    posenc_dtype     dtype;
    int              pass; /* pe_pass_kind */
    int64_t          L, H; /* 0: both large sizes */
} rotations[] = {
    {"G1", "rope in place", in_place, &PASS, 0.95, PE_ROTATE, F32, PE_PASS_IN_PLACE, 0, 0},
    {"G1", "rope in place", ", of memcpy", &PASS, 1.45, PE_ROTATE, F32, PE_PASS_MEMCPY, 0, 0},
    {"G2", "rope in place", in_place, &PASS, 0.90, PE_ROTATE, BF16, PE_PASS_IN_PLACE, 0, 0},
    {"G2", "rope in place", in_place, &PASS, 0.90, PE_ROTATE, F16, PE_PASS_IN_PLACE, 0, 0},
    {"G4", "rope out of place", ", of memcpy", &PASS, 1.2, PE_ROTATE_AWAY, F32, PE_PASS_MEMCPY, 0, 0},
    {"G6", "cos and sin in flight", ", of the table's speed", &FLIGHT, 0.95, PE_ROTATE, F32, 0, 0, 0},
    {"G3", "rope in place by a table", in_l2, &PASS, 0.85, PE_ROTATE_BY_TABLE, F32,
     PE_PASS_IN_PLACE, 8, 32},
    {"G3", "rope in place from positions", in_l2, &PASS, 0, PE_ROTATE, F32, PE_PASS_IN_PLACE, 8, 32},
    {"G3", "overhead of a call of rope by a table", ", in ns beyond the work", &OVERHEAD, 50,
     PE_ROTATE_BY_TABLE, F32, 0, 8, 1},
    {"G3", "overhead of a call of rope from positions", ", in ns beyond the work", &OVERHEAD, 0, PE_ROTATE,
     F32, 0, 8, 1},
    {"G6", "cos and sin in flight", ", in L2, of the table's speed", &FLIGHT, 0, PE_ROTATE, F32, 0, 8,
     32},
};
// clang-format on

/* Of row i of the table. */
static void add_rotation(case_list *to, size_t i, int is_half, int64_t L, int64_t H)
{
    const pe_bench_shape shape = {.spec  = is_half ? "rope[layout=half]" : "rope",
                                  .verb  = rotations[i].verb,
                                  .H     = H,
                                  .Lq    = L,
                                  .Lk    = L,
                                  .D     = CHANNELS,
                                  .dtype = rotations[i].dtype,
                                  .kind  = rotations[i].pass};
    add_case(to, rotations[i].goal, of_kind(rotations[i].kind, rotations[i].wanted, shape),
             "%s %s %s, %d x %d x %d%s", rotations[i].what, dtype_word(shape.dtype),
             is_half ? "half" : "interleaved", (int)L, (int)H, CHANNELS, rotations[i].of);
}

static void add_rotations(case_list *to)
{
    static const int64_t large[2][2] = {{4096, 32}, {32768, 8}}; /* L, H */
    for (int is_half = 1; is_half >= 0; is_half--) {
        for (int s = 0; s < 2; s++)
            for (size_t i = 0; i < COUNT(rotations); i++)
                if (!rotations[i].L)
                    add_rotation(to, i, is_half, large[s][0], large[s][1]);
    }
    for (int is_half = 1; is_half >= 0; is_half--)
        for (size_t i = 0; i < COUNT(rotations); i++)
            if (rotations[i].L)
                add_rotation(to, i, is_half, rotations[i].L, rotations[i].H);
}

/* ---------------------------------------------------------------- attention ------------------ */

enum { BOTH_WAYS = POSENC_MASK_NONE, CAUSAL = POSENC_MASK_CAUSAL };

// clang-format off
/* ORDER of a shape: spec, verb, H, G (0: H), Lq, Lk, D, window, mask, backward, dtype. */
static const struct {
    const char      *goal;
    const case_kind *kind;
    double           wanted;
    const char      *isa;
    pe_bench_shape   shape;
} squares[] = {
    {"G8",  &PEAK,    0.82, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 64, .mask = BOTH_WAYS}},
    {"G8",  &PEAK,    0.82, NULL, {"nope", PE_ATTEND, 2, 0, 8192, 8192, 64, .mask = BOTH_WAYS}},
    {"G8",  &PEAK,    0.82, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G8",  &PEAK,    0.82, NULL, {"nope", PE_ATTEND, 2, 0, 8192, 8192, 64, .mask = CAUSAL}},
    {"G8",  &PEAK,    0.87, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 128, .mask = BOTH_WAYS}},
    {"G8",  &PEAK,    0.87, NULL, {"nope", PE_ATTEND, 2, 0, 8192, 8192, 128, .mask = BOTH_WAYS}},
    {"G8",  &PEAK,    0.87, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 128, .mask = CAUSAL}},
    {"G8",  &PEAK,    0.87, NULL, {"nope", PE_ATTEND, 2, 0, 8192, 8192, 128, .mask = CAUSAL}},
    {"G9",  &PEAK,    0.82, NULL, {"nope", PE_ATTEND, 8, 0, 1024, 1024, 64, .mask = BOTH_WAYS}},
    {"G9",  &PEAK,    0.72, NULL, {"nope", PE_ATTEND, 8, 0, 1024, 1024, 64, .mask = CAUSAL}},
    {"G9",  &PEAK,    0.82, NULL, {"nope", PE_ATTEND, 8, 0, 1024, 1024, 128, .mask = BOTH_WAYS}},
    {"G9",  &PEAK,    0.72, NULL, {"nope", PE_ATTEND, 8, 0, 1024, 1024, 128, .mask = CAUSAL}},
    {"G10", &PEAK,    0.72, "avx2", {"nope", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = BOTH_WAYS}},
    {"G10", &PEAK,    0.72, "avx2", {"nope", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G10", &PEAK,    0.72, "avx2", {"nope", PE_ATTEND, 2, 0, 4096, 4096, 128, .mask = BOTH_WAYS}},
    {"G10", &PEAK,    0.72, "avx2", {"nope", PE_ATTEND, 2, 0, 4096, 4096, 128, .mask = CAUSAL}},
    {"G14", &THREADS, 1.85, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 64, .mask = BOTH_WAYS}},
    {"G14", &THREADS, 1.85, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G14", &THREADS, 1.85, NULL, {"nope", PE_ATTEND, 8, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PEAK,    0.65, NULL, {"nope", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G11", &PLAIN,   1.05, NULL, {"fox[form=token]", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G11", &PLAIN,   1.15, NULL,
     {"rope[map=leaky_rerope]", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G11", &PLAIN,   1.15, NULL,
     {"rope[map=self_extend]", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G11", &PLAIN,   1.15, NULL,
     {"rope[map=dca:map_chunk=1024:map_local=64]", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL}},
    {"G18", &PLAIN,   0,    NULL, {"inkling", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    /* gradients of a bias by distance: backward over backward without one */
    {"G18", &PLAIN,   1.05, NULL, {"alibi[learned=yes]", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   0,    NULL, {"fox[form=token]", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    /* path: twelve products for each pair of tiles in place of five; wall: keys times their gates for each
       head; stick_breaking: three sigmoids and a logarithm of each pair in double, backward twice */
    {"G18", &PLAIN,   0,    NULL, {"path", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   0,    NULL, {"wall", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   0,    NULL, {"stick_breaking", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   1.05, NULL, {"t5", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   1.05, NULL, {"kerple_log", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   1.05, NULL, {"kerple_power", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   1.05, NULL, {"toeplitz", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G18", &PLAIN,   1.05, NULL, {"relative_table", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, 1}},
    {"G19", &WIDE, 1.4, "avx512bf16",
     {"nope", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = BOTH_WAYS, .dtype = BF16}},
    {"G19", &WIDE, 1.4, "avx512bf16",
     {"nope", PE_ATTEND, 2, 0, 4096, 4096, 64, .mask = CAUSAL, .dtype = BF16}},
    {"G19", &WIDE, 1.4, "avx512bf16",
     {"nope", PE_ATTEND, 2, 0, 4096, 4096, 128, .mask = BOTH_WAYS, .dtype = BF16}},
    {"G19", &WIDE, 1.4, "avx512bf16",
     {"nope", PE_ATTEND, 2, 0, 4096, 4096, 128, .mask = CAUSAL, .dtype = BF16}},
};

/* What each may cost. 0: stated, because its hook or its second product has a limit of its own
   (docs/decisions/0013). */
static const struct {
    const char *spec;
    double      wanted;
} encodings[] = {
    {"alibi", 1.03},        {"t5", 1.03},         {"kerple_log", 1.03},     {"kerple_power", 1.03},
    {"sandwich", 1.03},     {"toeplitz", 1.03},   {"relative_table", 1.03}, {"dense_bias", 1.08},
    {"transformer_xl", 1.55}, {"shaw[values=no]", 1.55}, {"deberta", 2.1},  {"urpe", 1.05},
    {"nope[temperature=llama4]", 1.05},           {"nope[temperature=inkling:temper_length=1024]", 1.05},
    {"nope[temperature=ssmax]", 1.05},            {"nope[sink=head]", 1.05}, {"nope[softcap=50]", 1.05},
    {"inkling", 1.25},      {"rope[map=rerope]", 1.15},
    {"pope", 2.1},          {"cope", 0},            {"fire", 0},          {"shaw", 0},
};
// clang-format on

static void add_square(case_list *to, const char *goal, const case_kind *kind, double wanted, const char *isa,
                       pe_bench_shape s)
{
    const int     is_plain = kind == &PLAIN, names_isa = isa && s.dtype == POSENC_DTYPE_F32;
    pe_bench_case c = of_kind(kind, wanted, s);
    c.isa           = isa;
    add_case(to, goal, c, "%s %s %s%s%s, D %d, L %d, %s, %s", is_plain ? s.spec : "attention",
             s.backward ? "backward" : "forward", dtype_word(s.dtype), names_isa ? " " : "",
             names_isa ? isa : "", (int)s.D, (int)s.Lk, s.mask & POSENC_MASK_CAUSAL ? "causal" : "both ways",
             is_plain && !(wanted > 0) ? "time over plain" : kind->of);
}

static void add_over_plain(case_list *to, const char *spec, double wanted, int mask)
{
    add_square(
        to, "G11", &PLAIN, wanted, NULL,
        (pe_bench_shape){
            .spec = spec, .H = 2, .Lq = 4096, .Lk = 4096, .D = 64, .mask = mask, .dtype = POSENC_DTYPE_F32});
}

static void add_squares(case_list *to)
{
    for (size_t i = 0; i < COUNT(squares); i++)
        add_square(to, squares[i].goal, squares[i].kind, squares[i].wanted, squares[i].isa, squares[i].shape);
    for (size_t i = 0; i < COUNT(encodings); i++) {
        add_over_plain(to, encodings[i].spec, encodings[i].wanted, BOTH_WAYS);
        add_over_plain(to, encodings[i].spec, encodings[i].wanted, CAUSAL);
    }
    for (int i = 0; i < posenc_encoding_count(); i++) { /* every other one that acts in attention, stated */
        const posenc_encoding_info *info     = posenc_encoding_info_at(i);
        int                         is_named = !strcmp(info->name, "nope");
        for (size_t k = 0; k < COUNT(encodings); k++)
            is_named |= !strcmp(encodings[k].spec, info->name);
        if (info->place != POSENC_PLACE_INPUT && !is_named)
            add_over_plain(to, info->name, 0, CAUSAL);
    }
}

/* ---------------------------------------------------------------- one by one ----------------- */

// clang-format off
/* ORDER of a shape: spec, verb, H, G (0: H), Lq, Lk, D. */
static const struct {
    const char      *goal;
    const case_kind *kind;
    double           wanted;
    pe_bench_shape   shape;
    const char      *name;
} singles[] = {
    {"G7", &PASS, 0.90, {"sinusoidal", PE_MAKE_TABLE, 1, 0, 262144, 262144, 128, .kind = PE_PASS_STORE},
     "sinusoidal table f32, 262144 x 128, out of cache, of the best store"},
    {"G7", &PASS, 0.55, {"sinusoidal", PE_MAKE_TABLE, 1, 0, 4096, 4096, 128, .kind = PE_PASS_STORE},
     "sinusoidal table f32, 4096 x 128, in cache, of the best store"},
    {"G7", &PASS, 0.90, {"rope", PE_MAKE_TABLE, 1, 0, 262144, 262144, 128, .kind = PE_PASS_STORE},
     "rotary table f32, 262144 x 128, out of cache, of the best store"},
    {"G7", &PASS, 0.55, {"rope", PE_MAKE_TABLE, 1, 0, 4096, 4096, 128, .kind = PE_PASS_STORE},
     "rotary table f32, 4096 x 128, in cache, of the best store"},
    /* MiB of q, k and v, as linear means: no more than is read; bits of Lq x Lk would be 128 and 8 GiB */
    {"G17", &SECONDS, 0,
     {"alibi", PE_ATTEND, 1, 0, 1048576, 1048576, 64, .window = 4096, .mask = CAUSAL | POSENC_MASK_WINDOW},
     "one head with alibi, D 64, L 1048576, causal, window 4096: seconds"},
    {"G17", &SECONDS, 0, {"alibi", PE_ATTEND, 1, 0, 262144, 262144, 64, .mask = CAUSAL},
     "one head with alibi, D 64, L 262144, causal, in full: seconds"},
    {"G17", &MEGABYTES, 768,
     {"alibi", PE_ATTEND, 1, 0, 1048576, 1048576, 64, .window = 4096, .mask = CAUSAL | POSENC_MASK_WINDOW},
     "one head with alibi, D 64, L 1048576, causal, window 4096: "
     "MiB beyond inputs and outputs, at most those of q, k, v"},
    {"G17", &MEGABYTES, 192, {"alibi", PE_ATTEND, 1, 0, 262144, 262144, 64, .mask = CAUSAL},
     "one head with alibi, D 64, L 262144, causal, in full: "
     "MiB beyond inputs and outputs, at most those of q, k, v"},
    {"G20", &READ, 0.85, {"nope", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, nope, f32, of read bandwidth"},
    {"G20", &READ, 0.85, {"alibi", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, alibi, f32, of read bandwidth"},
    {"G20", &READ, 0.85, {"t5", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, t5, f32, of read bandwidth"},
    {"G20", &READ, 0.85, {"nope", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL, .dtype = BF16},
     "one token against 32768 keys, heads 32/8, D 128, nope, bf16, of read bandwidth"},
    {"G20", &READ, 0.85, {"alibi", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL, .dtype = BF16},
     "one token against 32768 keys, heads 32/8, D 128, alibi, bf16, of read bandwidth"},
    {"G20", &READ, 0.85, {"t5", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL, .dtype = BF16},
     "one token against 32768 keys, heads 32/8, D 128, t5, bf16, of read bandwidth"},
    {"G20", &PLAIN, 1.10, {"fox[form=token]", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, fox with running sums, f32, time over plain"},
    /* a cache of keys as they came: all are rotated as they are read */
    {"G20", &READ, 0, {"rope", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, rope, f32, of read bandwidth"},
    /* the last is the model that presets of `compare` train */
    {"G15", &STEP, 0.45, {"nope", .H = 4, .Lq = 256, .D = 128, .layers = 4, .batch = 16},
     "training step, d 128, 4 layers, L 256, batch 16, of the multiply-add peak"},
    {"G15", &PAIR, 1.9, {"nope", .H = 4, .Lq = 256, .D = 128, .layers = 4, .batch = 16},
     "training step, two runs side by side over one"},
    {"G15", &STEP, 0, {"nope", .H = 4, .Lq = 64, .D = 64, .layers = 3, .batch = 32},
     "training step, d 64, 3 layers, L 64, batch 32, of the multiply-add peak"},
    {"FLOATER", &PEAK, 0, {"floater[positions=512]", PE_MAKE_ROWS, 1, 0, 512, 512, 128, .backward = 0},
     "rows forward f32, 512 x 128, one state, of the multiply-add peak"},
    {"FLOATER", &PEAK, 0, {"floater[positions=512]", PE_MAKE_ROWS, 1, 0, 512, 512, 128, .backward = 1},
     "rows backward f32, 512 x 128, one state, of the multiply-add peak"},
    {"FLOATER", &PEAK, 0,
     {"floater[positions=512:states=16]", PE_MAKE_ROWS, 1, 0, 512, 512, 128, .backward = 0},
     "rows forward f32, 512 x 128, 16 states, of the multiply-add peak"},
    {"FLOATER", &PEAK, 0,
     {"floater[positions=512:states=16]", PE_MAKE_ROWS, 1, 0, 512, 512, 128, .backward = 1},
     "rows backward f32, 512 x 128, 16 states, of the multiply-add peak"},
};
// clang-format on

static void add_singles(case_list *to)
{
    for (size_t i = 0; i < COUNT(singles); i++) {
        pe_bench_case c = of_kind(singles[i].kind, singles[i].wanted, singles[i].shape);
        c.is_long       = !strcmp(singles[i].goal, "G17");
        add_case(to, singles[i].goal, c, "%s", singles[i].name);
    }
}

/* ---------------------------------------------------------------- an engine's calls ---------- */

/* One token against its cache. */
static void add_token(case_list *to, int64_t keys, int64_t page, pe_bench_crew crew)
{
    static const char *const crews[] = {"", "one thread", "two threads of OpenMP", "two threads of the pool"};
    const pe_bench_shape     s       = {.spec = "alibi",
                                        .verb = PE_ATTEND,
                                        .H    = 32,
                                        .G    = 8,
                                        .Lq   = 1,
                                        .Lk   = keys,
                                        .D    = 128,
                                        .mask = CAUSAL,
                                        .page = page,
                                        .crew = crew};
    pe_bench_case            c       = of_kind(&READ, 0, s);
    c.processors                     = pe_crew_threads(crew, 1);
    add_case(to, "G21", c,
             "one token against %d keys %s, heads 32/8, D 128, alibi, %s, of one thread's reading", (int)keys,
             page ? "in pages of 16" : "side by side", crews[crew]);
}

static void add_calls(case_list *to)
{
    static const int64_t keys[] = {512, 4096, 32768};
    for (size_t k = 0; k < COUNT(keys); k++)
        for (int64_t page = 0; page <= 16; page += 16)
            for (int crew = PE_CREW_ONE; crew <= PE_CREW_POOL; crew++)
                add_token(to, keys[k], page, (pe_bench_crew)crew);
    for (int i = 0; i < 2 * posenc_encoding_count(); i++) {
        const posenc_encoding_info *info     = posenc_encoding_info_at(i / 2);
        const int                   is_bound = i % 2;
        if (info->place != POSENC_PLACE_INPUT && strcmp(info->name, "nope") != 0)
            add_case(to, "G22",
                     of_kind(&CALL, 0,
                             (pe_bench_shape){.spec     = info->name,
                                              .verb     = PE_ATTEND,
                                              .H        = 8,
                                              .Lq       = 1,
                                              .Lk       = 32768,
                                              .D        = 64,
                                              .mask     = CAUSAL,
                                              .keys     = 1,
                                              .is_bound = is_bound}),
                     "%s, one key in a plan of 32768, parameters %s, time over plain", info->name,
                     is_bound ? "bound" : "not bound");
    }
}

/* ---------------------------------------------------------------- memory --------------------- */

/* Is a parameter a matrix of the caller's, with a number for each pair? It is short then, for it is an
   input. */
static int is_dense(const posenc_encoding_info *info)
{
    for (int p = 0; p < info->param_count; p++)
        if (strstr(info->params[p].shape, "Lq,Lk"))
            return 1;
    return 0;
}

static void add_growth(case_list *to)
{
    for (int i = 0; i < 2 * posenc_encoding_count(); i++) {
        const posenc_encoding_info *info     = posenc_encoding_info_at(i / 2);
        const int                   L        = is_dense(info) ? 2048 : 4096;
        const int                   is_input = info->place == POSENC_PLACE_INPUT;
        const pe_bench_shape        s        = {.spec     = info->name,
                                                .verb     = is_input ? PE_MAKE_ROWS : PE_ATTEND,
                                                .H        = 1,
                                                .Lq       = L,
                                                .Lk       = L,
                                                .D        = 64,
                                                .mask     = CAUSAL,
                                                .backward = i % 2,
                                                .dtype    = POSENC_DTYPE_F32};
        add_case(to, "G12", of_kind(&GROWTH, 2.1, s), "%s %s, memory at L %d over that at L %d, at most",
                 s.spec, s.backward ? "backward" : "forward", 2 * L, L);
    }
}

/* ---------------------------------------------------------------- the list ------------------- */

posenc_status pe_cases_create(pe_bench_case **cases, int *count, posenc_error *err)
{
    static void (*const families[])(case_list *) = {add_limits,  add_rotations, add_squares,
                                                    add_singles, add_calls,     add_growth};
    case_list list                               = {.rows = calloc(MOST_CASES, sizeof *list.rows)};
    if (!list.rows) {
        *err = (posenc_error){POSENC_ERROR_MEMORY, "bench: not enough memory for the list of rows"};
        return err->status;
    }
    for (size_t i = 0; i < COUNT(families); i++)
        families[i](&list);
    *cases = list.rows;
    *count = list.count;
    return POSENC_OK;
}
