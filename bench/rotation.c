/* SPDX-License-Identifier: MIT */
/*
 * bench/rotation.c: how far rotation and tables of sines are from what this machine's memory gives
 *
 *     build/default/bench/rotation [REPEATS [ROW...]]          9 repeats, every row whose name contains a ROW
 *
 * One thread unless a row says otherwise. Each row is one function that runs the public call once and returns seconds;
 * each limit another that passes over the very same buffer: x = -x in place, memcpy into a second one, ordinary and
 * streaming stores. A limit is the best of its variants (plain, prefetched). Within a repeat row and limits take turns
 * and each is the median of as many tries; what is printed is the median over the repeats of limit / row, and its quartiles. Data is random (zeros stream twice as fast) and lies
 * in huge pages where the system gives them.
 */
#define _DEFAULT_SOURCE
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <math.h>
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"

enum { MAX_REPEATS = 101, TRIES = 5, VARIANTS = 2, AHEAD = 4096, HUGE_PAGE = 1 << 21 };

/* ---- limits: one pass over n bytes, n a multiple of 256 ---- */

typedef void pass_fn(void *to, const void *from, size_t n);

/* Four vectors at a time; what a pass does not need is not touched. */
#define PASSES(isa, attribute, wide, load, put, stream, negate, spread)            \
    attribute static void negate_##isa(void *to, const void *from, size_t n)       \
    {                                                                              \
        (void)from;                                                                \
        for (wide *p = to, *end = p + n / sizeof *p; p < end; p++)                 \
            put(p, negate(load(p)));                                               \
    }                                                                              \
    attribute static void negate_ahead_##isa(void *to, const void *from, size_t n) \
    {                                                                              \
        (void)from;                                                                \
        for (char *p = to, *end = p + n; p < end; p += 64) {                       \
            __builtin_prefetch(p + AHEAD, 1);                                      \
            for (size_t i = 0; i < 64; i += sizeof(wide))                          \
                put((wide *)(p + i), negate(load((wide *)(p + i))));               \
        }                                                                          \
    }                                                                              \
    attribute static void store_##isa(void *to, const void *from, size_t n)        \
    {                                                                              \
        const wide x = spread(1.2345f);                                            \
        (void)from;                                                                \
        for (wide *p = to, *end = p + n / sizeof *p; p < end; p++)                 \
            put(p, x);                                                             \
    }                                                                              \
    attribute static void stream_##isa(void *to, const void *from, size_t n)       \
    {                                                                              \
        const wide x = spread(1.2345f);                                            \
        (void)from;                                                                \
        for (wide *p = to, *end = p + n / sizeof *p; p < end; p++)                 \
            stream(p, x);                                                          \
        __atomic_thread_fence(__ATOMIC_SEQ_CST);                                   \
    }

typedef float four __attribute__((vector_size(16), aligned(16)));

#define PUT(p, x) (*(p) = (x))
#define GET(p)    (*(p))
#define FLIP(x)   (-(x))
#define FOUR(x)   ((four){x, x, x, x})
PASSES(plain, , four, GET, PUT, PUT, FLIP, FOUR)
#ifdef __x86_64__
#define AVX2           __attribute__((target("avx2")))
#define AVX512         __attribute__((target("avx512f")))
#define PUT8(p, x)     _mm256_store_ps((float *)(p), x)
#define GET8(p)        _mm256_load_ps((const float *)(p))
#define STREAM8(p, x)  _mm256_stream_ps((float *)(p), x)
#define FLIP8(x)       _mm256_xor_ps(x, _mm256_set1_ps(-0.f))
#define PUT16(p, x)    _mm512_store_ps((float *)(p), x)
#define GET16(p)       _mm512_load_ps((const float *)(p))
#define STREAM16(p, x) _mm512_stream_ps((float *)(p), x)
#define FLIP16(x) \
    _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32((int)0x80000000u)))
PASSES(avx2, AVX2, __m256, GET8, PUT8, STREAM8, FLIP8, _mm256_set1_ps)
PASSES(avx512, AVX512, __m512, GET16, PUT16, STREAM16, FLIP16, _mm512_set1_ps)
#endif

static void copy(void *to, const void *from, size_t n)
{
    memcpy(to, from, n);
}

typedef enum limit {
    RMW,
    COPY,
    STORE,
    STREAM,
    LIMITS,
    BY_TABLE = LIMITS
} limit; /* the same row with a table */

static const char *const limit_names[] = {"read-modify-write", "memcpy", "store", "streaming store",
                                          "rotation by a table"};

/* Each limit's variants, NULL where there are fewer. */
static const struct {
    const char *isa;
    pass_fn    *passes[LIMITS][VARIANTS];
} levels[] = {
    {"plain", {{negate_plain, negate_ahead_plain}, {copy}, {store_plain}, {stream_plain}}},
#ifdef __x86_64__
    {"avx2", {{negate_avx2, negate_ahead_avx2}, {copy}, {store_avx2}, {stream_avx2}}},
    {"avx512", {{negate_avx512, negate_ahead_avx512}, {copy}, {store_avx512}, {stream_avx512}}},
#endif
};

static pass_fn *const *variants_of(limit l)
{
    size_t i = 0;
    while (i < sizeof levels / sizeof *levels && strcmp(levels[i].isa, posenc_isa()) != 0)
        i++;
    return levels[i < sizeof levels / sizeof *levels ? i : 0].passes[l];
}

/* Seconds of one pass of variant v; `calls` of it are timed together. */
static double limit_seconds(limit l, int v, void *to, const void *from, size_t n, int calls)
{
    pass_fn *const pass  = variants_of(l)[v];
    const double   start = now();
    for (int c = 0; c < calls; c++)
        pass(to, from, n);
    return (now() - start) / calls;
}

/* ---- what is measured ---- */

typedef enum work { IN_PLACE, OUT_OF_PLACE, FLIGHT, TABLE, SINES } work;

typedef struct row {
    const char  *goal, *name, *spec;
    posenc_dtype dtype;
    work         work;
    int64_t      L, H; /* tokens and heads */
    int          threads, calls;
    limit        limits[2];
    double       wanted[2]; /* 0: no second limit */
} row;

enum { D = 128 };

#define HALF        "rope[layout=half]"
#define INTERLEAVED "rope"

// clang-format off
static const row rows[] = {
    {"G1", "f32 half 64 MiB",           HALF,        POSENC_F32,  IN_PLACE, 4096, 32, 1, 1, {RMW, COPY}, {.95, 1.45}},
    {"G1", "f32 interleaved 64 MiB",    INTERLEAVED, POSENC_F32,  IN_PLACE, 4096, 32, 1, 1, {RMW, COPY}, {.95, 1.45}},
    {"G1", "f32 half 128 MiB",          HALF,        POSENC_F32,  IN_PLACE, 32768, 8, 1, 1, {RMW, COPY}, {.95, 1.45}},
    {"G1", "f32 interleaved 128 MiB",   INTERLEAVED, POSENC_F32,  IN_PLACE, 32768, 8, 1, 1, {RMW, COPY}, {.95, 1.45}},
    {"G2", "bf16 half 32 MiB",          HALF,        POSENC_BF16, IN_PLACE, 4096, 32, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "bf16 interleaved 32 MiB",   INTERLEAVED, POSENC_BF16, IN_PLACE, 4096, 32, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "bf16 half 64 MiB",          HALF,        POSENC_BF16, IN_PLACE, 32768, 8, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "bf16 interleaved 64 MiB",   INTERLEAVED, POSENC_BF16, IN_PLACE, 32768, 8, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "f16 half 32 MiB",           HALF,        POSENC_F16,  IN_PLACE, 4096, 32, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "f16 interleaved 32 MiB",    INTERLEAVED, POSENC_F16,  IN_PLACE, 4096, 32, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "f16 half 64 MiB",           HALF,        POSENC_F16,  IN_PLACE, 32768, 8, 1, 1, {RMW, COPY}, {.90}},
    {"G2", "f16 interleaved 64 MiB",    INTERLEAVED, POSENC_F16,  IN_PLACE, 32768, 8, 1, 1, {RMW, COPY}, {.90}},
    {"G3", "f32 half decode",           HALF,        POSENC_F32,  IN_PLACE, 8, 32, 1, 2000, {RMW, COPY}, {.85}},
    {"G3", "f32 interleaved decode",    INTERLEAVED, POSENC_F32,  IN_PLACE, 8, 32, 1, 2000, {RMW, COPY}, {.85}},
    {"G4", "f32 half out of place",     HALF,        POSENC_F32,  OUT_OF_PLACE, 4096, 32, 1, 1, {COPY}, {1.2}},
    {"G4", "f32 interl. out of place",  INTERLEAVED, POSENC_F32,  OUT_OF_PLACE, 4096, 32, 1, 1, {COPY}, {1.2}},
    {"G4", "f32 half out of pl. 128",   HALF,        POSENC_F32,  OUT_OF_PLACE, 32768, 8, 1, 1, {COPY}, {1.2}},
    {"G6", "in flight, half 32 heads",  HALF,        POSENC_F32,  FLIGHT, 4096, 32, 1, 1, {RMW, BY_TABLE}, {0, .95}},
    {"G6", "in flight, interl. 32",     INTERLEAVED, POSENC_F32,  FLIGHT, 4096, 32, 1, 1, {RMW, BY_TABLE}, {0, .95}},
    {"G6", "in flight, half 8 heads",   HALF,        POSENC_F32,  FLIGHT, 32768, 8, 1, 1, {RMW, BY_TABLE}, {0, .95}},
    {"G6", "in flight, interl. 8",      INTERLEAVED, POSENC_F32,  FLIGHT, 32768, 8, 1, 1, {RMW, BY_TABLE}, {0, .95}},
    {"G7", "rotary table 128 MiB",      HALF,        POSENC_F32,  TABLE, 262144, 1, 1, 1, {STREAM}, {.90}},
    {"G7", "rotary table 2 MiB",        HALF,        POSENC_F32,  TABLE, 4096, 1, 1, 20, {STORE}, {.55}},
    {"G7", "sinusoidal 128 MiB",        "sinusoidal", POSENC_F32, SINES, 262144, 1, 1, 1, {STREAM}, {.90}},
    {"G7", "sinusoidal 2 MiB",          "sinusoidal", POSENC_F32, SINES, 4096, 1, 1, 20, {STORE}, {.55}},
    {"-",  "f32 half 64 MiB, 2 threads", HALF,       POSENC_F32,  IN_PLACE, 4096, 32, 2, 1, {RMW}, {.95}},
};
// clang-format on

typedef struct subject {
    const row       *row;
    posenc_encoding *e;
    posenc_plan     *plan;
    void            *work;
    char            *x, *y;
    float           *table;
    size_t           bytes;
} subject;

static void *pages(size_t bytes)
{
    const size_t all = (bytes + HUGE_PAGE + AHEAD) / HUGE_PAGE * HUGE_PAGE;
    void        *p   = aligned_alloc(HUGE_PAGE, all);
    if (!p)
        stop("rotation", &(posenc_error){POSENC_MEMORY, "out of memory"});
    madvise(p, all, MADV_HUGEPAGE);
    memset(p, 0, all);
    return p;
}

/* Floats, or 16-bit floats, of size 1 to 2, with either sign. */
static void fill(void *to, posenc_dtype dtype, size_t bytes)
{
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i < bytes / 4; i++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        const uint32_t x = (uint32_t)(state >> 16), signs = x & 0x80008000u;
        ((uint32_t *)to)[i] = dtype == POSENC_F32    ? (x & 0x807fffffu) | 0x3f800000u
                              : dtype == POSENC_BF16 ? signs | 0x3f803f80u | (x & 0x007f007fu)
                                                     : signs | 0x3c003c00u | (x & 0x03ff03ffu);
    }
}

static int is_input(const row *r)
{
    return r->work == SINES;
}

static posenc_positions positions(void)
{
    return posenc_positions_range(0, 1);
}

static posenc_tensor table_tensor(const subject *s)
{
    return posenc_tensor_contiguous(s->table, POSENC_F32, 3, (int64_t[]){1, s->row->L, D});
}

static void make_table(const subject *s)
{
    posenc_error           err;
    const posenc_positions pos   = positions();
    posenc_tensor          table = table_tensor(s);
    if (posenc_rotary_table(s->plan, POSENC_QUERIES, NULL, &pos, &table, s->work, &err))
        stop("rotation", &err);
}

static subject open_subject(const row *r)
{
    subject        s = {.row = r};
    posenc_options o = posenc_options_default();
    posenc_error   err;
    posenc_dims    dims = {.B = 1, .Lq = r->L, .Lk = r->L, .d_model = D};
    if (!is_input(r))
        dims.H = dims.G = r->H, dims.D = D;
    o.threads = r->threads;
    if (posenc_encoding_create(&s.e, r->spec, NULL, &err) ||
        posenc_plan_create(&s.plan, s.e, &dims, &o, &err))
        stop("rotation", &err);
    s.bytes = (size_t)(r->L * r->H * D) * posenc_dtype_size(r->dtype);
    s.work  = pages(posenc_plan_workspace(s.plan, POSENC_FORWARD));
    s.x     = pages(s.bytes);
    s.y     = pages(s.bytes);
    s.table = pages((size_t)(r->L * D) * sizeof(float));
    fill(s.x, r->dtype, s.bytes);
    fill(s.y, r->dtype, s.bytes);
    if (!is_input(r))
        make_table(&s);
    return s;
}

static void close_subject(subject *s)
{
    free(s->x), free(s->y), free(s->table), free(s->work);
    posenc_plan_free(s->plan);
    posenc_encoding_free(s->e);
}

/* Seconds of one posenc_rotate of [1,H,L,D] stored as [L,H,D]. */
static double rotate_seconds(const subject *s, int by_table)
{
    const row             *r = s->row;
    posenc_error           err;
    const posenc_tensor    x     = posenc_tensor_from_blhd(s->x, r->dtype, 1, r->L, r->H, D);
    const posenc_tensor    y     = posenc_tensor_from_blhd(s->y, r->dtype, 1, r->L, r->H, D);
    const posenc_rotate_io io    = {.q         = x,
                                    .to_q      = r->work == OUT_OF_PLACE ? y : x,
                                    .q_pos     = positions(),
                                    .q_table   = by_table ? table_tensor(s) : (posenc_tensor){0},
                                    .direction = 1};
    const double           start = now();
    for (int c = 0; c < r->calls; c++)
        if (posenc_rotate(s->plan, &io, s->work, &err))
            stop("rotation", &err);
    return (now() - start) / r->calls;
}

/* Seconds of one posenc_rotary_table [1,L,D]. */
static double table_seconds(const subject *s)
{
    const double start = now();
    for (int c = 0; c < s->row->calls; c++)
        make_table(s);
    return (now() - start) / s->row->calls;
}

/* Seconds of one posenc_rows [1,L,D]: the table alone. */
static double sines_seconds(const subject *s)
{
    posenc_error         err;
    const posenc_rows_in in    = {.pos = positions()};
    posenc_tensor        y     = table_tensor(s);
    const double         start = now();
    for (int c = 0; c < s->row->calls; c++)
        if (posenc_rows(s->plan, &in, &y, s->work, &err))
            stop("rotation", &err);
    return (now() - start) / s->row->calls;
}

static double row_seconds(const subject *s)
{
    return s->row->work == TABLE   ? table_seconds(s)
           : s->row->work == SINES ? sines_seconds(s)
                                   : rotate_seconds(s, s->row->work != FLIGHT);
}

/* Over the buffer that the row writes. */
static double limit_of_row(const subject *s, limit l, int variant)
{
    const int calls = s->row->calls;
    if (l == BY_TABLE)
        return rotate_seconds(s, 1);
    if (l == COPY)
        return limit_seconds(l, variant, s->y, s->x, s->bytes, calls);
    return limit_seconds(l, variant, s->row->work == TABLE || s->row->work == SINES ? (void *)s->table : s->x,
                         NULL, s->bytes, calls);
}

static int variants(limit l)
{
    return l != BY_TABLE && variants_of(l)[1] ? 2 : 1;
}

/* ---- reports ---- */

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct spread {
    double median, q1, q3;
} spread;

static spread spread_of(double x[], int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return (spread){x[n / 2], x[n / 4], x[n * 3 / 4]};
}

/* One repeat: row and limits, each variant of them, take turns TRIES times. What counts is the median of each, and of the
   variants of a limit the best. */
static void repeat_row(const subject *s, int limits, double *seconds, double bound[2])
{
    double own[TRIES], pass[2][VARIANTS][TRIES];
    for (int t = 0; t < TRIES; t++) {
        for (int l = 0; l < limits; l++)
            for (int v = 0; v < variants(s->row->limits[l]); v++)
                pass[l][v][t] = limit_of_row(s, s->row->limits[l], v);
        own[t] = row_seconds(s);
    }
    *seconds = spread_of(own, TRIES).median;
    for (int l = 0; l < limits; l++) {
        bound[l] = INFINITY;
        for (int v = 0; v < variants(s->row->limits[l]); v++)
            bound[l] = fmin(bound[l], spread_of(pass[l][v], TRIES).median);
    }
}

static void report(const row *r, int repeats)
{
    subject   s = open_subject(r);
    double    share[2][MAX_REPEATS], seconds[MAX_REPEATS], bound[2][MAX_REPEATS];
    const int limits = r->wanted[1] > 0 || r->limits[1] == COPY ? 2 : 1;
    row_seconds(&s);
    for (int i = 0; i < repeats; i++) {
        double bounds[2];
        repeat_row(&s, limits, &seconds[i], bounds);
        for (int l = 0; l < limits; l++) {
            bound[l][i] = bounds[l];
            share[l][i] = bounds[l] / seconds[i];
        }
    }
    printf("%-3s %-27s %9.2f us", r->goal, r->name, 1e6 * spread_of(seconds, repeats).median);
    for (int l = 0; l < limits; l++) {
        const spread x = spread_of(share[l], repeats);
        printf("   %.3f [%.3f %.3f] of %s (%.2f us)", x.median, x.q1, x.q3, limit_names[r->limits[l]],
               1e6 * spread_of(bound[l], repeats).median);
        if (r->wanted[l] > 0)
            printf(", wanted %.2f: %s", r->wanted[l], x.median >= r->wanted[l] ? "met" : "NOT MET");
    }
    printf("\n");
    fflush(stdout);
    close_subject(&s);
}

/* What a call costs beyond its work: one row of one head against a pass over it. */
static void report_overhead(int repeats)
{
    const row one = {"G3", "overhead", HALF, POSENC_F32, IN_PLACE, 1, 1, 1, 20000, {RMW}, {0}};
    subject   s   = open_subject(&one);
    double    ns[MAX_REPEATS];
    for (int i = 0; i < repeats; i++)
        ns[i] = 1e9 * (row_seconds(&s) - fmin(limit_of_row(&s, RMW, 0), limit_of_row(&s, RMW, 1)));
    const spread x = spread_of(ns, repeats);
    printf("G3  call beyond its work        %9.1f ns [%.1f %.1f], wanted below 50: %s\n", x.median, x.q1,
           x.q3, x.median < 50 ? "met" : "NOT MET");
    close_subject(&s);
}

static int is_wanted(const char *name, int count, char **words)
{
    for (int i = 0; i < count; i++)
        if (strstr(name, words[i]))
            return 1;
    return count == 0;
}

int main(int argc, char **argv)
{
    const int repeats = argc > 1 ? atoi(argv[1]) : 9, count = argc > 2 ? argc - 2 : 0;
    if (repeats < 1 || repeats > MAX_REPEATS) {
        fprintf(stderr, "bench_rotation: usage: bench_rotation [REPEATS up to %d [ROW...]]\n", MAX_REPEATS);
        return 2;
    }
    printf("instruction set %s; limit / time: median [quartiles] of %d\n", posenc_isa(), repeats);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_wanted(rows[i].name, count, argv + 2) || is_wanted(rows[i].goal, count, argv + 2))
            report(&rows[i], repeats);
    if (is_wanted("overhead", count, argv + 2) || is_wanted("G3", count, argv + 2))
        report_overhead(repeats);
    return 0;
}
