/* SPDX-License-Identifier: MIT */
/*
 * test_serving: a step of an engine that serves: 64 sequences, block tables, threads of its own
 *
 *     test_engine_serving [KEYS]      the longest sequence has KEYS keys, 800 without
 *
 * Every encoding of the registry that acts in attention decodes one token of each sequence, with 1, 2 and 4
 * threads of this program's pool, from caches of float32 and of bfloat16 in pages in any order. Lengths go
 * from none over few to KEYS, of which two threads are worth their while. The same is computed by a plain
 * loop in double, sequence by sequence, over keys side by side; the scores in it are those of the reference
 * executor, which test_formulas holds against the papers. All numbers of threads must give the same bits, one
 * with parameters given to the run, more with parameters bound. For each encoding a line is printed: how far
 * it is off in shares of what is allowed, and the workspace that each number of threads asks for and that
 * four have touched. What may be off is derived in test_decode.c: 2^-20 of the largest score in each score,
 * and 6 sqrt(n) 2^-24 in sums of n numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <posenc/registry.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/half.h"

enum { B = 64, H = 8, G = 8, D = 128, PAGE = 16, CREW = 4, MOST_PARAMS = 16, PATTERN = 0xa5 };

static int64_t keys = 800;

/* ---------------------------------------------------------------- the pool ------------------- */

/* Helpers sleep; a job wakes as many as it may have, and waits for them. */
typedef struct crew {
    int          threads, calls; /* of a run; how often the library had work for more than one */
    int          batches;        /* of them with a task for each sequence */
    sem_t        work[CREW], done;
    posenc_task *task;
    void        *argument;
    int64_t      n;
    atomic_llong next;
} crew;

typedef struct helper {
    crew *c;
    int   slot;
} helper;

static crew the_crew;

static void run_tasks(crew *c, int slot)
{
    for (int64_t index; (index = (int64_t)atomic_fetch_add(&c->next, 1)) < c->n;)
        c->task(c->argument, index, slot);
}

static void *help(void *of)
{
    const helper *h = of;
    for (; !sem_wait(&h->c->work[h->slot]); sem_post(&h->c->done))
        run_tasks(h->c, h->slot);
    return NULL;
}

static void parallel_for(void *context, int64_t n, posenc_task *task, void *argument)
{
    crew *c     = context;
    c->task     = task;
    c->argument = argument;
    c->n        = n;
    c->next     = 0;
    c->calls++;
    c->batches += n == B;
    for (int slot = 1; slot < c->threads; slot++)
        sem_post(&c->work[slot]);
    run_tasks(c, 0);
    for (int slot = 1; slot < c->threads; slot++)
        sem_wait(&c->done);
}

static void start_crew(crew *c)
{
    static helper helpers[CREW];
    pthread_t     thread;
    assert_int_equal(sem_init(&c->done, 0, 0), 0);
    for (int slot = 1; slot < CREW; slot++) {
        helpers[slot] = (helper){c, slot};
        assert_int_equal(sem_init(&c->work[slot], 0, 0), 0);
        assert_int_equal(pthread_create(&thread, NULL, help, &helpers[slot]), 0);
        assert_int_equal(pthread_detach(thread), 0);
    }
}

/* ---------------------------------------------------------------- the caches ----------------- */

/* Of one storage type. */
typedef struct cache {
    posenc_dtype  dtype;
    posenc_tensor k, v; /* [N, G, PAGE, D] */
} cache;

static int32_t length[B], position[B], *table; /* table [B, pages] */
static int64_t pages, page_count;              /* of a sequence at most; in all */
static float   q[B][H][D];
static cache   caches[2];

static void count_keys(void)
{
    pages = (keys + PAGE - 1) / PAGE;
    for (int b = 0; b < B; b++) {
        length[b]   = (int32_t)(b + (double)(keys - B + 1) * pow((double)b / (B - 1), 40));
        position[b] = length[b] - 1;
        page_count += (length[b] + PAGE - 1) / PAGE;
    }
}

/* Pages from the first and from the last in turns; -1 where none is needed. */
static void deal_pages(void)
{
    int64_t taken = 0;
    table         = malloc((size_t)(B * pages) * sizeof *table);
    for (int64_t n = 0; n < B * pages; n++) {
        table[n] = -1;
        if (n % pages * PAGE < length[n / pages]) {
            table[n] = (int32_t)(taken % 2 ? page_count - 1 - taken / 2 : taken / 2);
            taken++;
        }
    }
}

/* Uniform between -1 and 1. */
static float next_number(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (float)(int32_t)(state >> 32) * 0x1p-31f;
}

static posenc_tensor make_pages(posenc_dtype dtype)
{
    const int64_t       shape[4] = {page_count, G, PAGE, D}, n = page_count * G * PAGE * D;
    const posenc_tensor t =
        posenc_tensor_contiguous(malloc((size_t)n * posenc_dtype_size(dtype)), dtype, 4, shape);
    assert_non_null(t.data);
    for (int64_t i = 0; i < n; i++)
        if (dtype == POSENC_DTYPE_BF16)
            ((uint16_t *)t.data)[i] = pe_half_float_to_bf16(next_number());
        else
            ((float *)t.data)[i] = next_number();
    return t;
}

static void make_caches(void)
{
    static const posenc_dtype types[2] = {POSENC_DTYPE_F32, POSENC_DTYPE_BF16};
    count_keys();
    deal_pages();
    for (int i = 0; i < 2; i++)
        caches[i] = (cache){types[i], make_pages(types[i]), make_pages(types[i])};
    for (int64_t i = 0; i < B * H * D; i++)
        ((float *)q)[i] = 3 * next_number();
}

/* Key (or value) j of a sequence. */
static void read_row(double to[D], const posenc_tensor *t, int b, int64_t g, int64_t j)
{
    const int64_t at = ((table[b * pages + j / PAGE] * G + g) * PAGE + j % PAGE) * D;
    for (int64_t d = 0; d < D; d++)
        to[d] = t->dtype == POSENC_DTYPE_BF16
                    ? (double)pe_half_bf16_to_float(((const uint16_t *)t->data)[at + d])
                    : (double)((const float *)t->data)[at + d];
}

/* ---------------------------------------------------------------- an encoding ---------------- */

typedef struct served {
    const posenc_encoding_info *info;
    posenc_encoding            *e;
    posenc_dims                 dims;
    posenc_tensor               params[MOST_PARAMS];
} served;

static void stop(const served *s, const posenc_error *err)
{
    fail_msg("%s: %s", s->info->name, err->message);
}

/* As the encoding starts; zeros become random, or nothing would be seen of them. */
static void make_params(served *s)
{
    posenc_error err;
    int64_t      count[MOST_PARAMS];
    for (int i = 0; i < posenc_param_count(s->e); i++) {
        int32_t ndim;
        int64_t shape[POSENC_MAX_DIMS];
        if (posenc_param_shape(s->e, &s->dims, i, &ndim, shape, &err))
            stop(s, &err);
        count[i] = 1;
        for (int32_t a = 0; a < ndim; a++)
            count[i] *= shape[a];
        s->params[i] = posenc_tensor_contiguous(malloc((size_t)(count[i] + 1) * sizeof(double)),
                                                POSENC_DTYPE_F64, ndim, shape);
    }
    if (posenc_param_count(s->e) && posenc_param_init(s->e, &s->dims, s->params, 1, &err))
        stop(s, &err);
    for (int i = 0; i < posenc_param_count(s->e); i++)
        for (int64_t n = 0; n < count[i]; n++) {
            double *x = (double *)s->params[i].data + n;
            *x        = *x != 0 ? *x : 0.1 * posenc_random_normal(5, "zero", (uint64_t)n);
        }
}

/* 0 for an encoding that is not one of attention. */
static int open_encoding(served *s, const posenc_encoding_info *info)
{
    char         small[256];
    posenc_error err;
    *s = (served){.info = info,
                  .dims = {.B = B, .H = H, .G = G, .Lq = 1, .Lk = pages * PAGE, .D = D, .d_model = 64}};
    if (info->place == POSENC_PLACE_INPUT)
        return 0;
    if (posenc_small_model(info->name, &s->dims, POSENC_MASK_CAUSAL, small, sizeof small, &err) ||
        posenc_encoding_create(&s->e, info->name, small, &err))
        stop(s, &err);
    make_params(s);
    return 1;
}

static void close_encoding(served *s)
{
    for (int i = 0; i < posenc_param_count(s->e); i++)
        free(s->params[i].data);
    posenc_encoding_free(s->e);
}

static const posenc_tensor *param_named(const served *s, const char *name)
{
    for (int i = 0; i < posenc_param_count(s->e); i++)
        if (!strcmp(posenc_param_name(s->e, i), name))
            return &s->params[i];
    return NULL;
}

static posenc_plan *make_plan(const served *s, int threads, posenc_executor executor)
{
    posenc_options options = posenc_options_default();
    posenc_plan   *plan;
    posenc_error   err;
    options.mask     = POSENC_MASK_CAUSAL;
    options.executor = executor;
    options.threads  = threads;
    if (threads > 1) {
        options.parallel_for     = parallel_for;
        options.parallel_context = &the_crew;
    }
    if (posenc_plan_create(&plan, s->e, &s->dims, &options, &err))
        stop(s, &err);
    return plan;
}

/* ---------------------------------------------------------------- the plain loop ------------- */

/* Keys of a sequence side by side, in double. */
static double *gather(const posenc_tensor *t, int b)
{
    double *rows = malloc((size_t)(G * length[b] * D + 1) * sizeof *rows);
    for (int64_t g = 0; g < G; g++)
        for (int64_t j = 0; j < length[b]; j++)
            read_row(rows + (g * length[b] + j) * D, t, b, g, j);
    return rows;
}

/* Scores [H, keys] of a sequence. */
static double *scores_of(const served *s, const posenc_plan *plan, const posenc_workspace *work,
                         const cache *c, int b)
{
    const int64_t n = length[b], rows[4] = {1, G, n, D}, query[4] = {1, H, 1, D}, all[4] = {1, H, 1, n};
    double       *S = malloc((size_t)(H * n + 1) * sizeof *S), *k = gather(&c->k, b);
    posenc_tensor to = posenc_tensor_contiguous(S, POSENC_DTYPE_F64, 4, all);
    posenc_error  err;
    const posenc_attend_in in = {.size   = sizeof in,
                                 .q      = posenc_tensor_contiguous(q[b], POSENC_DTYPE_F32, 4, query),
                                 .k      = posenc_tensor_contiguous(k, POSENC_DTYPE_F64, 4, rows),
                                 .q_pos  = posenc_positions_range((double)(n - 1), 1),
                                 .params = s->params};
    if (n && posenc_scores(plan, &in, &to, work, &err))
        stop(s, &err);
    free(k);
    return S;
}

/* Row of parameter `rv` that is added to the value of a key t tokens back, and what `c` multiplies its weight
   by: tables of distances that reach equally far both ways. */
static const double *added(const served *s, int64_t t)
{
    static const double  none[D];
    const posenc_tensor *rv   = param_named(s, "rv");
    const int64_t        most = rv ? (rv->shape[0] - 1) / 2 : 0;
    return rv ? (const double *)rv->data + (most - (t > most ? most : t)) * D : none;
}

static double factor(const served *s, int64_t t, int64_t h)
{
    const posenc_tensor *c = s->info->place == POSENC_PLACE_WEIGHT ? param_named(s, "c") : NULL;
    return c ? ((const double *)c->data)[(c->shape[0] / 2 - 1 - t) * H + h] : 1;
}

/* o [D] of a head from its scores and values of n keys, and what it may be off by. */
static void attend_plainly(double o[D], double allowed[D], const served *s, const double *S, const double *v,
                           int64_t n, int64_t h)
{
    double largest = -INFINITY, steepest = 0, sum = 0;
    for (int64_t j = 0; j < n; j++) {
        largest  = fmax(largest, S[j]);
        steepest = fmax(steepest, fabs(S[j]));
    }
    for (int64_t j = 0; j < n; j++)
        sum += exp(S[j] - largest);
    memset(o, 0, D * sizeof *o);
    memset(allowed, 0, D * sizeof *allowed);
    for (int64_t j = 0; j < n; j++) {
        const double *const more = added(s, n - 1 - j), *const x = v + j * D;
        const double w = exp(S[j] - largest) / sum * factor(s, n - 1 - j, h);
        for (int64_t d = 0; d < D; d++)
            o[d] += w * (x[d] + more[d]);
    }
    for (int64_t j = 0; j < n; j++) {
        const double *const more = added(s, n - 1 - j), *const x = v + j * D;
        const double w = exp(S[j] - largest) / sum, gated = w * factor(s, n - 1 - j, h);
        for (int64_t d = 0; d < D; d++)
            allowed[d] += 0x1p-20 * steepest * fabs(gated * (x[d] + more[d]) - w * o[d]) +
                          6 * sqrt((double)n) * 0x1p-24 * fabs(gated) * (fabs(x[d]) + fabs(more[d]));
    }
}

/* The largest difference in shares of what is allowed. */
static double held_against_the_loop(const served *s, const cache *c, const float *got)
{
    posenc_plan     *plan = make_plan(s, 1, POSENC_EXECUTOR_REFERENCE);
    posenc_workspace work;
    posenc_error     err;
    double           o[D], allowed[D], most = 0;
    if (posenc_workspace_create(&work, plan, POSENC_RUN_SCORES, NULL, &err))
        stop(s, &err);
    for (int b = 0; b < B; b++) {
        double *S = scores_of(s, plan, &work, c, b), *v = gather(&c->v, b);
        for (int64_t h = 0; h < H; h++) {
            attend_plainly(o, allowed, s, S + h * length[b], v + h / (H / G) * length[b] * D, length[b], h);
            for (int64_t d = 0; d < D; d++) {
                const double off = fabs((double)got[(b * H + h) * D + d] - o[d]);
                most             = off == 0 ? most : off <= most * allowed[d] ? most : off / allowed[d];
            }
        }
        free(S), free(v);
    }
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    return most;
}

/* ---------------------------------------------------------------- a step --------------------- */

typedef struct memory {
    size_t asked, touched;
} memory;

static size_t touched_of(const posenc_workspace *work)
{
    size_t count = 0;
    for (size_t i = 0; i < work->bytes; i++)
        count += ((const unsigned char *)work->memory)[i] != PATTERN;
    return count;
}

static memory decode(const served *s, const cache *c, int threads, float *o)
{
    const int64_t    query[4] = {B, H, 1, D}, rows[2] = {B, pages}, batch[2] = {B, 1};
    posenc_plan     *plan  = make_plan(s, threads, POSENC_EXECUTOR_AUTO);
    posenc_bound    *bound = NULL;
    posenc_sizes     sizes = posenc_sizes_default();
    posenc_workspace work;
    posenc_error     err;
    sizes.dtype = POSENC_DTYPE_F32;
    if (threads > 1 && posenc_plan_bind(&bound, plan, s->params, &err))
        stop(s, &err);
    if (posenc_workspace_create(&work, plan, POSENC_RUN_DECODE, &sizes, &err))
        stop(s, &err);
    memset(work.memory, PATTERN, work.bytes);
    const posenc_attend_in  in  = {.size  = sizeof in,
                                   .q     = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, query),
                                   .k     = c->k,
                                   .v     = c->v,
                                   .q_pos = posenc_positions_array(
                                       posenc_tensor_contiguous(position, POSENC_DTYPE_I32, 2, batch)),
                                   .params    = threads > 1 ? NULL : s->params,
                                   .bound     = bound,
                                   .k_lengths = posenc_tensor_contiguous(length, POSENC_DTYPE_I32, 1, batch),
                                   .k_pages   = posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, rows)};
    const posenc_attend_out out = {.size = sizeof out,
                                   .o    = posenc_tensor_contiguous(o, POSENC_DTYPE_F32, 4, query)};
    the_crew.threads            = threads;
    if (posenc_attend(plan, &in, &out, &work, &err))
        stop(s, &err);
    const memory m = {posenc_plan_workspace(plan, POSENC_RUN_DECODE, &sizes), touched_of(&work)};
    posenc_workspace_free(&work);
    posenc_bound_free(bound);
    posenc_plan_free(plan);
    return m;
}

/* Do a few queries read vectors by distance of a bound that without one they do not make (posenc_plan_bind)?
   Then other bits are right too. */
static int makes_no_vectors(const served *s)
{
    return !strcmp(s->info->name, "transformer_xl") || !strcmp(s->info->name, "xlnet");
}

static void serve(const served *s)
{
    static const int threads[] = {1, 2, CREW};
    static float     o[3][B * H * D];
    double           off[2];
    memory           m[3];
    for (int i = 0; i < 2; i++) {
        for (int n = 0; n < 3; n++) {
            memset(o[n], 0xff, sizeof o[n]);
            m[n] = decode(s, &caches[i], threads[n], o[n]);
            if (memcmp(o[n == 2 && makes_no_vectors(s)], o[n], sizeof o[0]) != 0 &&
                !(n == 1 && makes_no_vectors(s)))
                fail_msg("%s: %d threads give other bits than one", s->info->name, threads[n]);
        }
        off[i] = held_against_the_loop(s, &caches[i], o[0]);
        if (makes_no_vectors(s))
            off[i] = fmax(off[i], held_against_the_loop(s, &caches[i], o[1]));
    }
    printf("%-24s%8.2f%8.2f%10zu%8zu%8zu%10zu\n", s->info->name, off[0], off[1], m[0].asked >> 10,
           m[1].asked >> 10, m[2].asked >> 10, m[2].touched >> 10);
    for (int i = 0; i < 2; i++)
        if (!(off[i] <= 1))
            fail_msg("%s, %s: off by %.3g times what is allowed", s->info->name, i ? "bf16" : "f32", off[i]);
}

static void every_encoding_serves_on_any_number_of_threads(void **state)
{
    served s;
    (void)state;
    printf("%d sequences, 0 to %d keys, pages of %d; workspace in KiB\n", B, (int)keys, PAGE);
    printf("%-24s%8s%8s%10s%8s%8s%10s\n", "ENCODING", "F32", "BF16", "1 THREAD", "2", "4", "TOUCHED");
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (open_encoding(&s, posenc_encoding_info_at(i))) {
            serve(&s);
            close_encoding(&s);
        }
    assert_true(the_crew.calls > 0);
}

/* Each of them is too little for two threads, all together are not: each is one task. */
static void short_sequences_are_shared_among_threads(void **state)
{
    static float o[2][B * H * D];
    served       s;
    (void)state;
    for (int b = 0; b < B; b++) {
        length[b]        = PAGE - b % 2;
        position[b]      = length[b] - 1;
        table[b * pages] = (int32_t)(b % page_count);
    }
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (open_encoding(&s, posenc_encoding_info_at(i))) {
            decode(&s, &caches[0], makes_no_vectors(&s) ? 2 : 1, o[0]);
            the_crew.batches = 0;
            decode(&s, &caches[0], CREW, o[1]);
            if (the_crew.batches != 1 || memcmp(o[0], o[1], sizeof o[0]) != 0)
                fail_msg("%s: sequences are %s, and %s bits", s.info->name,
                         the_crew.batches ? "tasks" : "one after the other",
                         memcmp(o[0], o[1], sizeof o[0]) ? "other" : "the same");
            close_encoding(&s);
        }
}

static int set_up(void **state)
{
    (void)state;
    make_caches();
    start_crew(&the_crew);
    return 0;
}

static int clear_up(void **state)
{
    (void)state;
    free(table);
    for (int i = 0; i < 2; i++)
        free(caches[i].k.data), free(caches[i].v.data);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_encoding_serves_on_any_number_of_threads),
                                       cmocka_unit_test(short_sequences_are_shared_among_threads)};
    if (argc > 1)
        keys = atoll(argv[1]) < B ? B : atoll(argv[1]);
    return cmocka_run_group_tests(tests, set_up, clear_up);
}
