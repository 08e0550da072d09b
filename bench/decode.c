/* SPDX-License-Identifier: MIT */
/*
 * bench/decode.c: one new token against a long cache, as a share of the bandwidth with which the cache can be read
 *
 *     build/default/bench/decode [Lk [REPEATS [THREADS]]]          Lk = 32768, 15 repeats, one thread
 *
 * 32 query heads share 8 key heads, D = 128. The limit is a loop that only reads the same keys and values: plain and
 * with software prefetch at three distances, from four alignments; the fastest of them, measured anew between the
 * repeats, counts. Bytes are those of K and V once. Rows: no bias, ALiBi, T5; RoPE where the cache holds keys that are
 * turned already (the query is turned by posenc_rotate, the attention knows no rotation), and where it holds them as
 * they came (the attention turns all of them on their way). Random data; median and quartiles.
 */
#define _DEFAULT_SOURCE /* madvise */
#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <posenc/posenc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "clock.h"

enum { H = 32, G = 8, D = 128, MAX_REPEATS = 101, MAX_PARAMS = 4, LINE = 64 };

/* On huge pages where the system has them: a limit of memory, not of its tables. */
static void *block(size_t bytes)
{
    const size_t huge = (size_t)1 << 21, all = (bytes + LINE + huge - 1) / huge * huge;
    void        *p = aligned_alloc(huge, all);
    if (!p)
        exit(1);
#ifdef MADV_HUGEPAGE
    madvise(p, all, MADV_HUGEPAGE);
#endif
    return p;
}

/* ---- the limit: reading ---- */

enum { CHAINS = 8 };

/* Bits of all lines joined, so that no load can be left out. `ahead` bytes are prefetched; 0: none. */
#define READ(name, attribute, wide, load, join)                                \
    attribute static uint32_t name(const char *p, size_t bytes, size_t ahead)  \
    {                                                                          \
        wide         x[CHAINS] = {0};                                          \
        uint32_t     words[sizeof x / 4], all = 0;                             \
        const size_t step = sizeof x;                                          \
        for (size_t at = 0; at + step <= bytes; at += step) {                  \
            for (size_t line = 0; ahead && line < step; line += LINE)          \
                __builtin_prefetch(p + at + ahead + line);                     \
            _Pragma("GCC unroll 8") for (size_t c = 0; c < CHAINS; c++) x[c] = \
                join(x[c], load((const void *)(p + at + c * sizeof(wide))));   \
        }                                                                      \
        memcpy(words, x, sizeof x);                                            \
        for (size_t i = 0; i < sizeof x / 4; i++)                              \
            all |= words[i];                                                   \
        return all;                                                            \
    }

typedef uint32_t four __attribute__((vector_size(16)));

static inline four load_four(const void *p)
{
    four x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline four join_four(four a, four b)
{
    return a | b;
}

READ(read_plain, , four, load_four, join_four)
#ifdef __x86_64__
READ(read_avx2, __attribute__((target("avx2"))), __m256i, _mm256_loadu_si256, _mm256_or_si256)
READ(read_avx512, __attribute__((target("avx512f"))), __m512i, _mm512_loadu_si512, _mm512_or_si512)
#endif

static uint32_t read_all(const char *p, size_t bytes, size_t ahead)
{
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f"))
        return read_avx512(p, bytes, ahead);
    if (__builtin_cpu_supports("avx2"))
        return read_avx2(p, bytes, ahead);
#endif
    return read_plain(p, bytes, ahead);
}

/* Ways of reading: bytes ahead that are prefetched, and where reading begins. */
enum { WAYS = 7 };
static const struct {
    size_t ahead, start;
} ways[WAYS] = {{0, 0}, {0, 64}, {0, 16}, {0, 4}, {1024, 0}, {4096, 0}, {16384, 0}};

/* Seconds for both blocks. */
static double read_time(int way, const char *k, const char *v, size_t bytes)
{
    static volatile uint32_t sink;
    const double             start = now();
    sink                           = read_all(k + ways[way].start, bytes - LINE, ways[way].ahead);
    sink                           = read_all(v + ways[way].start, bytes - LINE, ways[way].ahead);
    (void)sink;
    return now() - start;
}

/* ---- the problem ---- */

typedef struct problem {
    posenc_encoding *e, *turner;
    posenc_plan     *plan, *turn;
    posenc_dtype     dtype;
    int64_t          Lk;
    void            *q, *turned, *k, *v, *o, *work;
    posenc_tensor    params[MAX_PARAMS];
} problem;

static void *random_numbers(int64_t n, posenc_dtype dtype, const char *name)
{
    enum { MANY = 1 << 16 };
    static float few[MANY + 1];
    char        *x = block((size_t)n * posenc_dtype_size(dtype) + LINE);
    for (int64_t i = 0; i < MANY; i++)
        few[i] = (float)posenc_random_normal(1, name, (uint64_t)i);
    for (int64_t i = 0; i < n; i++) { /* the same numbers again and again, from another place each time */
        const float y = few[(i + i / MANY * 77) % MANY];
        uint32_t    bits;
        memcpy(&bits, &y, sizeof bits);
        const uint16_t bf16 = (uint16_t)(bits >> 16),
                       f16  = (uint16_t)((bits >> 16 & 0x8000) | 0x3800 | (bits >> 13 & 0x3ff));
        if (dtype == POSENC_F32)
            ((float *)(void *)x)[i] = y;
        else
            ((uint16_t *)(void *)x)[i] = dtype == POSENC_BF16 ? bf16 : f16;
    }
    return x;
}

static posenc_tensor tensor(void *x, posenc_dtype dtype, int64_t heads, int64_t L)
{
    return posenc_tensor_contiguous(x, dtype, 4, (int64_t[]){1, heads, L, D});
}

static posenc_plan *make_plan(posenc_encoding **e, const char *spec, const posenc_dims *dims, int threads)
{
    posenc_options o = posenc_options_default();
    posenc_plan   *plan;
    posenc_error   err;
    o.mask     = POSENC_MASK_CAUSAL;
    o.threads  = threads;
    o.executor = POSENC_TILED;
    if (posenc_encoding_create(e, spec, NULL, &err) || posenc_plan_create(&plan, *e, dims, &o, &err))
        stop("decode", &err);
    return plan;
}

/* turner: a rotation of the query alone, by a call of its own; NULL: none */
static problem make_problem(const char *spec, const char *turner, posenc_dtype dtype, int64_t Lk, int threads)
{
    const posenc_dims dims = {.B = 1, .H = H, .G = G, .Lq = 1, .Lk = Lk, .D = D};
    problem           p    = {.dtype = dtype, .Lk = Lk};
    posenc_error      err;
    p.plan = make_plan(&p.e, spec, &dims, threads);
    if (turner)
        p.turn = make_plan(&p.turner, turner, &dims, threads);
    p.q      = random_numbers(H * D, dtype, "q");
    p.turned = random_numbers(H * D, dtype, "q");
    p.o      = random_numbers(H * D, dtype, "o");
    p.k      = random_numbers(G * Lk * D, dtype, "k");
    p.v      = random_numbers(G * Lk * D, dtype, "v");
    for (int i = 0; i < posenc_param_count(p.e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS], n = 1;
        if (posenc_param_shape(p.e, &dims, i, &ndim, shape, &err))
            stop("decode", &err);
        for (int a = 0; a < ndim; a++)
            n *= shape[a];
        p.params[i] = posenc_tensor_contiguous(random_numbers(n, POSENC_F32, "p"), POSENC_F32, ndim, shape);
    }
    if (posenc_param_init(p.e, &dims, p.params, 1, &err))
        stop("decode", &err);
    size_t bytes = posenc_plan_workspace(p.plan, POSENC_FORWARD);
    if (p.turn && posenc_plan_workspace(p.turn, POSENC_FORWARD) > bytes)
        bytes = posenc_plan_workspace(p.turn, POSENC_FORWARD);
    p.work = block(bytes);
    return p;
}

static void free_problem(problem *p)
{
    void *all[] = {p->q, p->turned, p->k, p->v, p->o, p->work};
    for (int i = 0; i < posenc_param_count(p->e); i++)
        free(p->params[i].data);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
    posenc_plan_free(p->plan);
    posenc_plan_free(p->turn);
    posenc_encoding_free(p->e);
    posenc_encoding_free(p->turner);
}

static void run(const problem *p)
{
    const posenc_positions last = posenc_positions_range((double)(p->Lk - 1), 1);
    posenc_error           err;
    posenc_rotate_io       io  = {.q         = tensor(p->q, p->dtype, H, 1),
                                  .to_q      = tensor(p->turned, p->dtype, H, 1),
                                  .q_pos     = last,
                                  .direction = 1};
    posenc_attend_in       in  = {.q      = tensor(p->turn ? p->turned : p->q, p->dtype, H, 1),
                                  .k      = tensor(p->k, p->dtype, G, p->Lk),
                                  .v      = tensor(p->v, p->dtype, G, p->Lk),
                                  .q_pos  = last,
                                  .params = p->params};
    posenc_attend_out      out = {.o = tensor(p->o, p->dtype, H, 1)};
    if ((p->turn && posenc_rotate(p->turn, &io, p->work, &err)) ||
        posenc_attend(p->plan, &in, &out, p->work, &err))
        stop("decode", &err);
}

/* ---- reports ---- */

typedef struct share {
    double median, low, high, bandwidth;
} share;

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double quantile(const double *x, int n, int quarter)
{
    double sorted[MAX_REPEATS];
    memcpy(sorted, x, (size_t)n * sizeof *x);
    qsort(sorted, (size_t)n, sizeof *x, ascending);
    return sorted[n * quarter / 4];
}

/* The share of the read bandwidth that decoding reaches: one row of a report. The way of reading is the one that is
   fastest in the median; a share compares times of one repeat. */
static share measure(const char *spec, const char *turner, posenc_dtype dtype, int64_t Lk, int repeats,
                     int threads)
{
    problem      p     = make_problem(spec, turner, dtype, Lk, threads);
    const size_t bytes = (size_t)(G * Lk * D) * posenc_dtype_size(dtype);
    double       took[MAX_REPEATS], limit[WAYS][MAX_REPEATS], shares[MAX_REPEATS];
    int          best = 0;
    run(&p);
    for (int r = 0; r < repeats; r++) {
        for (int way = 0; way < WAYS; way++)
            limit[way][r] = read_time(way, p.k, p.v, bytes);
        const double start = now();
        run(&p);
        took[r] = now() - start;
    }
    for (int way = 1; way < WAYS; way++)
        if (quantile(limit[way], repeats, 2) < quantile(limit[best], repeats, 2))
            best = way;
    for (int r = 0; r < repeats; r++)
        shares[r] = limit[best][r] / took[r];
    free_problem(&p);
    return (share){quantile(shares, repeats, 2), quantile(shares, repeats, 1), quantile(shares, repeats, 3),
                   2e-9 * (double)bytes / quantile(limit[best], repeats, 2)};
}

static const struct {
    const char  *name, *spec, *turner;
    posenc_dtype dtype;
} rows[] = {
    {"f32, no bias", "nope", NULL, POSENC_F32},
    {"f32, ALiBi", "alibi", NULL, POSENC_F32},
    {"f32, T5", "t5[bidirectional=no]", NULL, POSENC_F32},
    {"f32, RoPE, keys turned before", "nope", "rope", POSENC_F32},
    {"f32, RoPE, keys turned on the way", "rope", NULL, POSENC_F32},
    {"bf16, no bias", "nope", NULL, POSENC_BF16},
    {"bf16, ALiBi", "alibi", NULL, POSENC_BF16},
    {"bf16, T5", "t5[bidirectional=no]", NULL, POSENC_BF16},
    {"bf16, RoPE, keys turned before", "nope", "rope", POSENC_BF16},
    {"bf16, RoPE, keys turned on the way", "rope", NULL, POSENC_BF16},
    {"f16, no bias", "nope", NULL, POSENC_F16},
};

int main(int argc, char **argv)
{
    const int64_t Lk      = argc > 1 ? atoll(argv[1]) : 32768;
    const int     repeats = argc > 2 ? atoi(argv[2]) : 15, threads = argc > 3 ? atoi(argv[3]) : 1;
    if (Lk < 1 || repeats < 1 || repeats > MAX_REPEATS || threads < 1) {
        fprintf(stderr, "bench_decode: usage: bench_decode [Lk [REPEATS up to %d [THREADS]]]\n", MAX_REPEATS);
        return 2;
    }
    printf("instruction set %s, %d thread(s), %d query heads, %d key heads, D = %d, %lld keys\n",
           posenc_isa(), threads, H, G, D, (long long)Lk);
    printf("share of the bandwidth of a loop that reads K and V on one thread: median [quartiles] of %d\n",
           repeats);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const share s = measure(rows[i].spec, rows[i].turner, rows[i].dtype, Lk, repeats, threads);
        printf("%-36s %6.3f  [%.3f %.3f]  wanted 0.85  %-7s  limit %.1f GB/s\n", rows[i].name, s.median,
               s.low, s.high, s.median >= 0.85 ? "met" : "NOT MET", s.bandwidth);
        fflush(stdout);
    }
    return 0;
}
