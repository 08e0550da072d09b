/* SPDX-License-Identifier: MIT */
/*
 * cases.c: the table of all rows, which of them somebody asked for, and what a measured one means
 *
 * The list depends on nothing but this program: machines that can do less have the same rows, some of which
 * say why they hold no figure. The order is that of the goals' numbers, and within a goal that of the
 * tables below.
 */
#include "bench/problem.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/limits.h"

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))

enum { CHANNELS = 128 };
/* columns of the tables */
#define F32  POSENC_DTYPE_F32
#define F16  POSENC_DTYPE_F16
#define BF16 POSENC_DTYPE_BF16

void pe_add_case(pe_case_list *to, const char *goal, pe_bench_case c, const char *format, ...)
{
    if (to->count == to->room) {
        const int      room = 2 * to->room + 64;
        pe_bench_case *rows = realloc(to->rows, (size_t)room * sizeof *rows);
        if (!rows) {
            to->is_full = 1;
            return;
        }
        to->rows = rows;
        to->room = room;
    }
    va_list values;
    va_start(values, format);
    snprintf(c.goal, sizeof c.goal, "%s", goal);
    vsnprintf(c.name, sizeof c.name, format, values);
    va_end(values);
    to->rows[to->count++] = c;
}

static const char *dtype_word(posenc_dtype dtype)
{
    return dtype == POSENC_DTYPE_BF16 ? "bf16" : dtype == POSENC_DTYPE_F16 ? "f16" : "f32";
}

/* ---------------------------------------------------------------- what is measured ----------- */

/* Kinds of figures: what measures them, in what, and how a goal is meant; `of` ends the names of attention's
   rows. */
enum {
    PEAK,
    PASS,
    READ,
    PLAIN,
    WIDE,
    THREADS,
    SECONDS,
    OVERHEAD,
    FLIGHT,
    GROWTH,
    MEGABYTES,
    CLOCK,
    UNITS,
    BANDWIDTH
};

// clang-format off
static const struct {
    pe_bench_fn   *measure;
    const char    *unit;
    pe_bench_sense sense;
    const char    *of;
} kinds[] = {
    [PEAK]      = {pe_measure_share,      "GFLOP/s", PE_AT_LEAST, "of the multiply-add peak"},
    [PASS]      = {pe_measure_share,      "GB/s",    PE_AT_LEAST, NULL},
    [READ]      = {pe_measure_share,      "GB/s",    PE_AT_LEAST, NULL},
    [PLAIN]     = {pe_measure_over, "ms",      PE_AT_MOST,  "time over plain, at most"},
    [WIDE]      = {pe_measure_over, "ms",      PE_AT_LEAST, "speed over f32"},
    [THREADS]   = {pe_measure_over,    "ms",      PE_AT_LEAST, "two threads over one"},
    [SECONDS]   = {pe_measure_seconds,    "s",       PE_STATED,   NULL},
    [OVERHEAD]  = {pe_measure_overhead,   "ns",      PE_AT_MOST,  NULL},
    [FLIGHT]    = {pe_measure_in_flight,  "GB/s",    PE_AT_LEAST, NULL},
    [GROWTH]    = {pe_measure_growth,     "MiB",     PE_AT_MOST,  NULL},
    [MEGABYTES] = {pe_measure_megabytes,  "MiB",     PE_AT_MOST,  NULL},
    [CLOCK]     = {pe_measure_clock,      "GHz",     PE_STATED,   NULL},
    [UNITS]     = {pe_measure_units,      "GFLOP/s", PE_NEAR_ONE, NULL},
    [BANDWIDTH] = {pe_measure_bandwidth,  "GB/s",    PE_STATED,   NULL},
};
// clang-format on

/* A case of that kind. wanted 0: stated. */
static pe_bench_case of_kind(int kind, double wanted, pe_bench_shape shape)
{
    return (pe_bench_case){.unit    = kinds[kind].unit,
                           .wanted  = wanted,
                           .sense   = wanted > 0 ? kinds[kind].sense : PE_STATED,
                           .measure = kinds[kind].measure,
                           .shape   = shape};
}

/* ---------------------------------------------------------------- goal limits ---------------- */

/* What was seen: on a Zen 5 guest (measure.c). plain has no multiply-add that is fused, so no goal. */
static const struct {
    const char *isa;
    double      wanted, seen;
} arithmetic[] = {{"plain", 0, 0}, {"avx2", 0.97, 136}, {"avx512", 0.97, 272}, {"neon", 0.97, 0}};

static const struct {
    const char *name;
    int64_t     bytes;
    double      seen[PE_PASS_KINDS]; /* ORDER pe_pass_kind */
} sizes[] = {{"16 KiB", 16 << 10, {545, 543, 331, 274, 507}},
             {"256 KiB", 256 << 10, {390, 259, 267, 202, 201}},
             {"4 MiB", 4 << 20, {223, 116, 112, 104, 124}},
             {"256 MiB", 256 << 20, {58.5, 52.7, 39.5, 41.6, 40.3}}};

static void add_limits(pe_case_list *to)
{
    pe_add_case(to, "limits", of_kind(CLOCK, 0, (pe_bench_shape){0}),
                "clock, by dependent additions (4.04 to 4.23 seen on a Zen 5 guest)");
    for (size_t i = 0; i < COUNT(arithmetic); i++) {
        char          seen[48] = "";
        pe_bench_case c = of_kind(UNITS, arithmetic[i].wanted, (pe_bench_shape){.dtype = POSENC_DTYPE_F32});
        c.isa           = arithmetic[i].isa;
        if (arithmetic[i].seen > 0)
            snprintf(seen, sizeof seen, " (%.0f seen on a Zen 5 guest)", arithmetic[i].seen);
        pe_add_case(to, "limits", c, "multiply-adds f32 %s, of 2 x width x clock x units%s", c.isa, seen);
    }
    pe_add_case(to, "limits", of_kind(UNITS, 0.97, (pe_bench_shape){.dtype = POSENC_DTYPE_BF16}),
                "dot products bf16, of 4 x width x clock x units (545 seen on a Zen 5 guest)");
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int kind = 0; kind < PE_PASS_KINDS; kind++)
            pe_add_case(to, "limits",
                        of_kind(BANDWIDTH, 0, (pe_bench_shape){.kind = kind, .Lk = sizes[s].bytes}),
                        "%s, %s (%g seen on a Zen 5 guest)", pe_pass_kind_name((pe_pass_kind)kind),
                        sizes[s].name, sizes[s].seen[kind]);
}

/* ---------------------------------------------------------------- rotation and tables -------- */

static const char in_place[] = ", of in-place read-modify-write",
                  in_l2[]    = ", in L2, of in-place read-modify-write";

// clang-format off
static const struct {
    const char   *goal, *what, *of;
    int           kind;
    double        wanted;
    pe_bench_verb verb;
    posenc_dtype  dtype;
    int           pass; /* pe_pass_kind */
    int64_t       L, H; /* 0: both large sizes */
} turns[] = {
    {"G1", "rope in place",     in_place,      PASS, 0.95, PE_TURN,      F32,  PE_PASS_IN_PLACE, 0, 0},
    {"G1", "rope in place",     ", of memcpy", PASS, 1.45, PE_TURN,      F32,  PE_PASS_MEMCPY,   0, 0},
    {"G2", "rope in place",     in_place,      PASS, 0.90, PE_TURN,      BF16, PE_PASS_IN_PLACE, 0, 0},
    {"G2", "rope in place",     in_place,      PASS, 0.90, PE_TURN,      F16,  PE_PASS_IN_PLACE, 0, 0},
    {"G4", "rope out of place", ", of memcpy", PASS, 1.2,  PE_TURN_AWAY, F32,  PE_PASS_MEMCPY,   0, 0},
    {"G6", "cos and sin in flight", ", of the table's speed", FLIGHT, 0.95, PE_TURN, F32, 0, 0, 0},
    {"G3", "rope in place by a table", in_l2, PASS, 0.85, PE_TURN_BY_TABLE, F32,
     PE_PASS_IN_PLACE, 8, 32},
    {"G3", "rope in place from positions", in_l2, PASS, 0, PE_TURN, F32, PE_PASS_IN_PLACE, 8, 32},
    {"G3", "overhead of a call of rope by a table", ", in ns beyond the work", OVERHEAD, 50, PE_TURN_BY_TABLE,
     F32, 0, 8, 1},
    {"G3", "overhead of a call of rope from positions", ", in ns beyond the work", OVERHEAD, 0, PE_TURN,
     F32, 0, 8, 1},
    {"G6", "cos and sin in flight", ", in L2, of the table's speed", FLIGHT, 0, PE_TURN, F32, 0, 8,
     32},
};
// clang-format on

/* Of row i of the table. */
static void add_turn(pe_case_list *to, size_t i, int is_half, int64_t L, int64_t H)
{
    const pe_bench_shape shape = {.spec  = is_half ? "rope[layout=half]" : "rope",
                                  .verb  = turns[i].verb,
                                  .H     = H,
                                  .Lq    = L,
                                  .Lk    = L,
                                  .D     = CHANNELS,
                                  .dtype = turns[i].dtype,
                                  .kind  = turns[i].pass};
    pe_add_case(to, turns[i].goal, of_kind(turns[i].kind, turns[i].wanted, shape), "%s %s %s, %d x %d x %d%s",
                turns[i].what, dtype_word(shape.dtype), is_half ? "half" : "interleaved", (int)L, (int)H,
                CHANNELS, turns[i].of);
}

static void add_turns(pe_case_list *to)
{
    static const int64_t large[2][2] = {{4096, 32}, {32768, 8}}; /* L, H */
    for (int is_half = 1; is_half >= 0; is_half--) {
        for (int s = 0; s < 2; s++)
            for (size_t i = 0; i < COUNT(turns); i++)
                if (!turns[i].L)
                    add_turn(to, i, is_half, large[s][0], large[s][1]);
    }
    for (int is_half = 1; is_half >= 0; is_half--)
        for (size_t i = 0; i < COUNT(turns); i++)
            if (turns[i].L)
                add_turn(to, i, is_half, turns[i].L, turns[i].H);
}

/* ---------------------------------------------------------------- attention ------------------ */

enum { BOTH_WAYS = POSENC_MASK_NONE, CAUSAL = POSENC_MASK_CAUSAL };

// clang-format off
static const struct {
    const char  *goal, *spec;
    int          kind;
    double       wanted;
    int64_t      H, L, D;
    int          mask, backward;
    posenc_dtype dtype;
    const char  *isa;
} squares[] = {
    {"G8",  "nope", PEAK, 0.82, 8, 4096,  64, BOTH_WAYS, 0, F32, NULL},
    {"G8",  "nope", PEAK, 0.82, 2, 8192,  64, BOTH_WAYS, 0, F32, NULL},
    {"G8",  "nope", PEAK, 0.82, 8, 4096,  64, CAUSAL,    0, F32, NULL},
    {"G8",  "nope", PEAK, 0.82, 2, 8192,  64, CAUSAL,    0, F32, NULL},
    {"G8",  "nope", PEAK, 0.87, 8, 4096, 128, BOTH_WAYS, 0, F32, NULL},
    {"G8",  "nope", PEAK, 0.87, 2, 8192, 128, BOTH_WAYS, 0, F32, NULL},
    {"G8",  "nope", PEAK, 0.87, 8, 4096, 128, CAUSAL,    0, F32, NULL},
    {"G8",  "nope", PEAK, 0.87, 2, 8192, 128, CAUSAL,    0, F32, NULL},
    {"G9",  "nope", PEAK, 0.82, 8, 1024,  64, BOTH_WAYS, 0, F32, NULL},
    {"G9",  "nope", PEAK, 0.72, 8, 1024,  64, CAUSAL,    0, F32, NULL},
    {"G9",  "nope", PEAK, 0.82, 8, 1024, 128, BOTH_WAYS, 0, F32, NULL},
    {"G9",  "nope", PEAK, 0.72, 8, 1024, 128, CAUSAL,    0, F32, NULL},
    {"G10", "nope", PEAK, 0.72, 2, 4096,  64, BOTH_WAYS, 0, F32, "avx2"},
    {"G10", "nope", PEAK, 0.72, 2, 4096,  64, CAUSAL,    0, F32, "avx2"},
    {"G10", "nope", PEAK, 0.72, 2, 4096, 128, BOTH_WAYS, 0, F32, "avx2"},
    {"G10", "nope", PEAK, 0.72, 2, 4096, 128, CAUSAL,    0, F32, "avx2"},
    {"G14", "nope", THREADS, 1.85, 8, 4096, 64, BOTH_WAYS, 0, F32, NULL},
    {"G14", "nope", THREADS, 1.85, 8, 4096, 64, CAUSAL,    0, F32, NULL},
    {"G14", "nope", THREADS, 1.85, 8, 4096, 64, CAUSAL,    1, F32, NULL},
    {"G18", "nope", PEAK, 0.65, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    /* gradients of a bias by distance: backward over backward without one */
    {"G18", "alibi[learned=yes]", PLAIN, 1.05, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    {"G18", "t5",                 PLAIN, 1.05, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    {"G18", "kerple_log",         PLAIN, 1.05, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    {"G18", "kerple_power",       PLAIN, 1.05, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    {"G18", "toeplitz",           PLAIN, 1.05, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    {"G18", "relative_table",     PLAIN, 1.05, 2, 4096, 64, CAUSAL, 1, F32, NULL},
    {"G19", "nope", WIDE, 1.4, 2, 4096,  64, BOTH_WAYS, 0, BF16, "avx512bf16"},
    {"G19", "nope", WIDE, 1.4, 2, 4096,  64, CAUSAL,    0, BF16, "avx512bf16"},
    {"G19", "nope", WIDE, 1.4, 2, 4096, 128, BOTH_WAYS, 0, BF16, "avx512bf16"},
    {"G19", "nope", WIDE, 1.4, 2, 4096, 128, CAUSAL,    0, BF16, "avx512bf16"},
};

/* What each may cost. 0: stated, for its hook or its second product has a limit of its own
   (docs/performance.md). */
static const struct {
    const char *spec;
    double      wanted;
} encodings[] = {
    {"alibi", 1.03},        {"t5", 1.03},         {"kerple_log", 1.03},     {"kerple_power", 1.03},
    {"sandwich", 1.03},     {"toeplitz", 1.03},   {"relative_table", 1.03}, {"dense_bias", 1.08},
    {"transformer_xl", 1.55}, {"shaw[values=no]", 1.55}, {"deberta", 2.1},  {"urpe", 1.05},
    {"cope", 0},            {"fire", 0},          {"shaw", 0},
};
// clang-format on

static void add_square(pe_case_list *to, const char *goal, int kind, double wanted, const char *isa,
                       pe_bench_shape s)
{
    const int     is_plain = kind == PLAIN, names_isa = isa && s.dtype == POSENC_DTYPE_F32;
    pe_bench_case c = of_kind(kind, wanted, s);
    c.isa           = isa;
    c.processors    = kind == THREADS ? 2 : 0;
    pe_add_case(to, goal, c, "%s %s %s%s%s, D %d, L %d, %s, %s", is_plain ? s.spec : "attention",
                s.backward ? "backward" : "forward", dtype_word(s.dtype), names_isa ? " " : "",
                names_isa ? isa : "", (int)s.D, (int)s.Lk,
                s.mask & POSENC_MASK_CAUSAL ? "causal" : "both ways",
                is_plain && !(wanted > 0) ? "time over plain" : kinds[kind].of);
}

static void add_over_plain(pe_case_list *to, const char *spec, double wanted, int mask)
{
    add_square(
        to, "G11", PLAIN, wanted, NULL,
        (pe_bench_shape){
            .spec = spec, .H = 2, .Lq = 4096, .Lk = 4096, .D = 64, .mask = mask, .dtype = POSENC_DTYPE_F32});
}

static void add_squares(pe_case_list *to)
{
    for (size_t i = 0; i < COUNT(squares); i++)
        add_square(to, squares[i].goal, squares[i].kind, squares[i].wanted, squares[i].isa,
                   (pe_bench_shape){.spec     = squares[i].spec,
                                    .H        = squares[i].H,
                                    .Lq       = squares[i].L,
                                    .Lk       = squares[i].L,
                                    .D        = squares[i].D,
                                    .mask     = squares[i].mask,
                                    .backward = squares[i].backward,
                                    .dtype    = squares[i].dtype});
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
    const char    *goal;
    int            kind;
    double         wanted;
    pe_bench_shape shape;
    const char    *name;
} singles[] = {
    {"G7", PASS, 0.90, {"sinusoidal", PE_TABLE, 1, 0, 262144, 262144, 128, .kind = PE_PASS_STORE},
     "sinusoidal table f32, 262144 x 128, out of cache, of the best store"},
    {"G7", PASS, 0.55, {"sinusoidal", PE_TABLE, 1, 0, 4096, 4096, 128, .kind = PE_PASS_STORE},
     "sinusoidal table f32, 4096 x 128, in cache, of the best store"},
    {"G7", PASS, 0.90, {"rope", PE_TABLE, 1, 0, 262144, 262144, 128, .kind = PE_PASS_STORE},
     "rotary table f32, 262144 x 128, out of cache, of the best store"},
    {"G7", PASS, 0.55, {"rope", PE_TABLE, 1, 0, 4096, 4096, 128, .kind = PE_PASS_STORE},
     "rotary table f32, 4096 x 128, in cache, of the best store"},
    /* MiB of q, k and v, as linear means: no more than is read; bits of Lq x Lk would be 128 and 8 GiB */
    {"G17", SECONDS, 0,
     {"alibi", PE_ATTEND, 1, 0, 1048576, 1048576, 64, .window = 4096, .mask = CAUSAL | POSENC_MASK_WINDOW},
     "one head with alibi, D 64, L 1048576, causal, window 4096: seconds"},
    {"G17", SECONDS, 0, {"alibi", PE_ATTEND, 1, 0, 262144, 262144, 64, .mask = CAUSAL},
     "one head with alibi, D 64, L 262144, causal, in full: seconds"},
    {"G17", MEGABYTES, 768,
     {"alibi", PE_ATTEND, 1, 0, 1048576, 1048576, 64, .window = 4096, .mask = CAUSAL | POSENC_MASK_WINDOW},
     "one head with alibi, D 64, L 1048576, causal, window 4096: "
     "MiB beyond inputs and outputs, at most those of q, k, v"},
    {"G17", MEGABYTES, 192, {"alibi", PE_ATTEND, 1, 0, 262144, 262144, 64, .mask = CAUSAL},
     "one head with alibi, D 64, L 262144, causal, in full: "
     "MiB beyond inputs and outputs, at most those of q, k, v"},
    {"G20", READ, 0.85, {"nope", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, nope, f32, of read bandwidth"},
    {"G20", READ, 0.85, {"alibi", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, alibi, f32, of read bandwidth"},
    {"G20", READ, 0.85, {"t5", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, t5, f32, of read bandwidth"},
    {"G20", READ, 0.85, {"nope", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL, .dtype = BF16},
     "one token against 32768 keys, heads 32/8, D 128, nope, bf16, of read bandwidth"},
    {"G20", READ, 0.85, {"alibi", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL, .dtype = BF16},
     "one token against 32768 keys, heads 32/8, D 128, alibi, bf16, of read bandwidth"},
    {"G20", READ, 0.85, {"t5", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL, .dtype = BF16},
     "one token against 32768 keys, heads 32/8, D 128, t5, bf16, of read bandwidth"},
    /* a cache of keys as they came: all are turned on their way */
    {"G20", READ, 0, {"rope", PE_ATTEND, 32, 8, 1, 32768, 128, .mask = CAUSAL},
     "one token against 32768 keys, heads 32/8, D 128, rope, f32, of read bandwidth"},
    {"FLOATER", PEAK, 0, {"floater[positions=512]", PE_ROWS, 1, 0, 512, 512, 128, .backward = 0},
     "rows forward f32, 512 x 128, one state, of the multiply-add peak"},
    {"FLOATER", PEAK, 0, {"floater[positions=512]", PE_ROWS, 1, 0, 512, 512, 128, .backward = 1},
     "rows backward f32, 512 x 128, one state, of the multiply-add peak"},
    {"FLOATER", PEAK, 0, {"floater[positions=512:states=16]", PE_ROWS, 1, 0, 512, 512, 128, .backward = 0},
     "rows forward f32, 512 x 128, 16 states, of the multiply-add peak"},
    {"FLOATER", PEAK, 0, {"floater[positions=512:states=16]", PE_ROWS, 1, 0, 512, 512, 128, .backward = 1},
     "rows backward f32, 512 x 128, 16 states, of the multiply-add peak"},
};
// clang-format on

static void add_singles(pe_case_list *to)
{
    for (size_t i = 0; i < COUNT(singles); i++) {
        pe_bench_case c = of_kind(singles[i].kind, singles[i].wanted, singles[i].shape);
        c.is_long       = !strcmp(singles[i].goal, "G17");
        pe_add_case(to, singles[i].goal, c, "%s", singles[i].name);
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

static void add_growth(pe_case_list *to)
{
    for (int i = 0; i < 2 * posenc_encoding_count(); i++) {
        const posenc_encoding_info *info = posenc_encoding_info_at(i / 2);
        const int                   L    = is_dense(info) ? 2048 : 4096;
        const pe_bench_verb         verb = info->place == POSENC_PLACE_INPUT ? PE_ROWS : PE_ATTEND;
        const pe_bench_shape        s    = {.spec     = info->name,
                                            .verb     = verb,
                                            .H        = 1,
                                            .Lq       = L,
                                            .Lk       = L,
                                            .D        = 64,
                                            .mask     = CAUSAL,
                                            .backward = i % 2,
                                            .dtype    = POSENC_DTYPE_F32};
        pe_add_case(to, "G12", of_kind(GROWTH, 2.1, s), "%s %s, memory at L %d over that at L %d, at most",
                    s.spec, s.backward ? "backward" : "forward", 2 * L, L);
    }
}

/* ---------------------------------------------------------------- the list ------------------- */

/* "limits" before "G1" before "G2" before "G10"; words without a number last. */
static int rank(const char *goal)
{
    return !strcmp(goal, "limits") ? 0 : goal[0] == 'G' ? atoi(goal + 1) : 1000;
}

/* Stable, which qsort is not: rows of one goal keep their order. */
static void sort_by_goal(pe_bench_case *rows, int count)
{
    for (int i = 1; i < count; i++)
        for (int k = i; k > 0 && rank(rows[k].goal) < rank(rows[k - 1].goal); k--) {
            const pe_bench_case swapped = rows[k];
            rows[k]                     = rows[k - 1];
            rows[k - 1]                 = swapped;
        }
}

posenc_status pe_bench_cases(pe_bench_case **cases, int *count, posenc_error *err)
{
    static void (*const families[])(pe_case_list *) = {add_limits,  add_turns,  add_squares,
                                                       add_singles, add_growth, pe_training_cases};
    pe_case_list list                               = {0};
    for (size_t i = 0; i < COUNT(families); i++)
        families[i](&list);
    *cases = list.rows;
    *count = list.count;
    if (!list.is_full) {
        sort_by_goal(list.rows, list.count);
        return POSENC_OK;
    }
    free(list.rows);
    *err = (posenc_error){.status  = POSENC_ERROR_MEMORY,
                          .message = "bench: there is no memory for the list of rows"};
    return err->status;
}

/* ---------------------------------------------------------------- which are asked for -------- */

static int is_word(const char *list, const char *word)
{
    const size_t length = strcspn(list, ",");
    return strlen(word) == length && !strncmp(list, word, length);
}

int pe_bench_is_wanted(const char *goals, const char *goal)
{
    int found = !goals;
    while (!found && *goals) {
        found = is_word(goals, goal);
        goals += strcspn(goals, ",");
        goals += *goals == ',';
    }
    return found;
}

const char *pe_bench_stranger(const char *goals, const pe_bench_case *cases, int count, int *length)
{
    const char *word = goals;
    do {
        int i = 0;
        while (i < count && !is_word(word, cases[i].goal))
            i++;
        *length = (int)strcspn(word, ",");
        if (i == count)
            return word;
        word += *length;
    } while (*word++ == ',');
    return NULL;
}

/* ---------------------------------------------------------------- measured ------------------- */

void pe_bench_leave(pe_bench_row *row, const pe_bench_case *c, const char *reason)
{
    *row = (pe_bench_row){.what = c, .figure = {NAN, NAN, NAN, NAN}};
    snprintf(row->reason, sizeof row->reason, "%s", reason);
}

/* Why a case cannot be measured here, before anything is tried; 0: it can. */
static int refuse(char *reason, size_t size, const pe_bench_case *c, int is_long)
{
    if (c->is_long && !is_long)
        return snprintf(reason, size, "takes minutes; ask for it with --long");
    if (c->isa && !pe_runs_here(c->isa))
        return snprintf(reason, size,
                        "no instruction set %s: this processor lacks it, or this build its kernels", c->isa);
    if (c->processors > pe_processors())
        return snprintf(reason, size, "needs %d processors", c->processors);
    return 0;
}

void pe_bench_measure(pe_bench_row *row, const pe_bench_case *c, const pe_bench_effort *effort, int is_long)
{
    char         reason[sizeof row->reason];
    posenc_error err = {0};
    if (refuse(reason, sizeof reason, c, is_long)) {
        pe_bench_leave(row, c, reason);
        return;
    }
    pe_bench_leave(row, c, "");
    if (c->measure(c, effort, &row->figure, &err))
        pe_bench_leave(row, c, err.message);
}

int pe_bench_met(const pe_bench_row *row)
{
    const double value = row->figure.value, wanted = row->what->wanted;
    if (isnan(value))
        return -1;
    switch (row->what->sense) {
    case PE_AT_LEAST: return value >= wanted;
    case PE_AT_MOST: return value <= wanted;
    case PE_NEAR_ONE: return fabs(value - 1) <= 1 - wanted;
    case PE_STATED: break;
    }
    return -1;
}
