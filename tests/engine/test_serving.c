/* SPDX-License-Identifier: MIT */
/*
 * test_serving: a step of an engine that serves: 64 sequences, block tables, threads of its own
 *
 *     test_engine_serving [KEYS]      the longest sequence has KEYS keys: 800 without, 4096 at most
 *
 * Every encoding of the registry that acts in attention decodes one token of each sequence, with 1, 2 and 4
 * threads of this program's pool, from caches of float32 and of bfloat16 in pages in any order. Lengths go
 * from none over few to KEYS, of which two threads are worth their while. The same is computed by a plain
 * loop in double, sequence by sequence, over keys side by side; each score in it is the formula of a paper
 * (formulas.h), and nothing in it is the library's. All numbers of threads must give the same bits, one with
 * parameters given to the run, more with parameters bound. For each encoding a line is printed: how far it is
 * off in shares of what is allowed, and the workspace that each number of threads asks for and that four have
 * touched: lengths that differ are attended one by one, so it is less than what a batch of KEYS each takes
 * (memory/test_touched). Nothing behind it may change. What may be off is derived in test_decode.c: 2^-20 of
 * the largest score in each score, and 6 sqrt(n) 2^-24 in sums of n numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/scores.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "base/half.h"
#include "encodings/formulas.h"

enum {
    B       = 64,
    H       = 8,
    G       = 8,
    D       = 128,
    PAGE    = 16,
    LONGEST = 4096,
    SHORT   = 400,
    CREW    = 4,
    PATTERN = 0xa5,
    BEHIND  = 4096
};

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

/* As the gates of CoPE add up, keys are asked from the last to the first. */
static double cope_from_the_last(const pair *x) /* npos=8 */
{
    static double gates;
    gates = (x->t == 0 ? 0 : gates) + sigmoid_of(plain(x));
    return plain(x) + cope_at(x, gates) / sqrt((double)width(x));
}

/* Of one coordinate: T5's own. */
static double t5_line(const pair *x)
{
    return dot(x->q, x->k, width(x)) / sqrt((double)width(x)) +
           numbers(x, "table1")[bucket_of(-x->t, 8, 20, 1) * x->c->dims.H + x->h];
}

/* Each encoding of the registry, with room for LONGEST keys. */
static const told encodings[] = {
    {"nope", plain, 0, 0, 0, 0, 0},
    {"rope", rope, 0, 0, 0, 0, 0},
    {"rope+alibi", rope_alibi, 0, 0, 0, 0, 0},
    {"rope[q_phase=0.7:phase_heads=odd]", rope_odd_phase, 0, 0, 0, 0, 0},
    {"rope[map=rerope:map_window=3]", rope_rerope, 0, 0, 0, 0, 0},
    {"rope[map=leaky_rerope:map_window=3:map_factor=4]", rope_leaky, 0, 0, 0, 0, 0},
    {"rope[map=self_extend:map_window=5:map_factor=2]", rope_self_extend, 0, 0, 0, 0, 0},
    {"rope[map=dca:map_chunk=5:map_local=1]", rope_dca, 0, 0, 0, 0, 0},
    {"rope[content=step]", rope_by_step, 0, 0, 0, 0, 0},
    {"xpos[scale_base=20]", xpos, 0, 0, 0, 0, 0},
    {"shaw[max_relative=3]", shaw, 0, "rv", shaw_value_row, 0, 0},
    {"huang_m4[max_positions=4096]", huang, 0, 0, 0, 0, 0},
    {"transformer_xl[sigma=0.4]", transformer_xl, 0, 0, 0, 0, 0},
    {"xlnet[clamp_len=3:sigma=0.4]", xlnet, 0, 0, 0, 0, 0},
    {"t5[num_buckets=7:max_distance=30:bidirectional=no]", t5_past, 0, 0, 0, 0, 0},
    {"t5_nd[num_buckets=8:max_distance=20:factor=1:sigma=0.4]", t5_line, 0, 0, 0, 0, 0},
    {"absolute_distance[grid=4096x1]", absolute_line, 0, 0, 0, 0, 0},
    {"swin[window=512x8]", swin, 0, 0, 0, 0, 0},
    {"swin_v2[window=512x8:mlp_width=5:sigma=0.5]", swin_v2_long, 0, 0, 0, 0, 0},
    {"decomposed[grid=512x8:sigma=0.5]", decomposed, 0, 0, 0, 0, 0},
    {"deberta[span=4:sigma=0.5]", deberta, 0, 0, 0, 0, 0},
    {"tupe[rows=4098:sigma=0.5]", tupe, 0, 0, 0, 0, 0},
    {"alibi", alibi, 0, 0, 0, 0, 0},
    {"fox", fox, 0, 0, 0, 0, 0},
    {"path[gate=plain]", path_with_gates, 0, 0, 0, 0, 0},
    {"wall", wall, 0, 0, 0, 0, 0},
    {"stick_breaking[attend_current=yes]", plain, 0, 0, 0, 0, 0},
    {"inkling[extent=40:width=3:sigma=0.5]", inkling, 0, 0, 0, 0, 0},
    {"pope[init=uniform]", pope, 0, 0, 0, 0, 0},
    {"kerple_log", kerple_log, 0, 0, 0, 0, 0},
    {"kerple_power", kerple_power, 0, 0, 0, 0, 0},
    {"sandwich[d_bar=10]", sandwich, 0, 0, 0, 0, 0},
    {"fire[init_L=4:mlp_width=5]", fire, 0, 0, 0, 0, 0},
    {"relative_table[max_relative=3]", relative_table, 0, 0, 0, 0, 0},
    {"toeplitz[first=0:count=4096]", toeplitz_past, 0, 0, 0, 0, 0},
    {"dense_bias", dense_own, 0, 0, 0, 0, 0},
    {"urpe[index_offset=4095]", urpe, urpe_gate, 0, 0, 0, 0},
    {"cope[npos=8]", cope_from_the_last, 0, 0, 0, 0, 0},
    {"complex_order_attention", complex_plain, 0, 0, 0, 0, 0},
};
enum { ENCODINGS = sizeof encodings / sizeof *encodings };

typedef struct served {
    const told    *told;
    posenc_dims    dims;
    attention_case c; /* one sequence: its query, its keys and values side by side, the parameters */
    posenc_tensor  params[CASE_PARAMS], sums[CASE_TOKENS], /* of keys, the same for all sequences; */
        tokens[CASE_TOKENS];                               /* of queries, as many copies */
} served;

static void stop(const served *s, const posenc_error *err)
{
    fail_msg("%s: %s", s->told->spec, err->message);
}

static posenc_tensor copies_of(const array *t)
{
    const int64_t shape[4] = {B, t->shape[1], t->shape[2], t->shape[3]};
    double       *all      = malloc((size_t)(B * t->count) * sizeof *all);
    for (int b = 0; b < B; b++)
        memcpy(all + b * t->count, t->wide, (size_t)t->count * sizeof *all);
    return posenc_tensor_contiguous(all, POSENC_DTYPE_F64, 4, shape);
}

/* Is it seen through its sums alone, so that a cache keeps those? */
static int has_sums(const char *token)
{
    return strcmp(token, "w") != 0 && strcmp(token, "beta") != 0;
}

static void close_encoding(served *s)
{
    for (int k = 0; k < s->c.token_count; k++) {
        free(s->sums[k].data);
        free(s->tokens[k].data);
    }
    case_free(&s->c);
}

static served open_encoding(const told *f)
{
    served s = {
        .told = f,
        .dims = {.B = 1, .H = H, .G = G, .Lq = 1, .Lk = pages * PAGE, .D = D, .Dv = D, .d_model = 16}};
    s.c = case_make(f->spec, s.dims, 1);
    memset(s.c.q_segments, 0, sizeof *s.c.q_segments);
    memset(s.c.k_segments, 0, (size_t)s.dims.Lk * sizeof *s.c.k_segments);
    for (int i = 0; i < s.c.param_count; i++)
        s.params[i] = array_tensor(&s.c.params[i], 1);
    for (int i = 0; i < s.c.token_count; i++) {
        if (!posenc_token_describe(s.c.e, i)->of_keys || !has_sums(posenc_token_name(s.c.e, i))) {
            s.tokens[i] = copies_of(&s.c.tokens[i]);
            continue;
        }
        s.sums[i]           = posenc_tensor_contiguous(malloc((size_t)s.c.tokens[i].count * sizeof(double)),
                                                       POSENC_DTYPE_F64, 4, s.c.tokens[i].shape);
        s.sums[i].shape[0]  = B;
        s.sums[i].stride[0] = 0;
    }
    s.dims.B = B;
    return s;
}

static posenc_plan *make_plan(const served *s, int threads)
{
    posenc_options options = posenc_options_default();
    posenc_plan   *plan;
    posenc_error   err;
    options.mask    = POSENC_MASK_CAUSAL;
    options.threads = threads;
    if (threads > 1) {
        options.parallel_for     = parallel_for;
        options.parallel_context = &the_crew;
    }
    if (posenc_plan_create(&plan, s->c.e, &s->dims, &options, &err))
        stop(s, &err);
    return plan;
}

/* ---------------------------------------------------------------- the plain loop ------------- */

/* Sequence b of a cache becomes the problem of the formulas. */
static void take_sequence(served *s, const cache *c, int b)
{
    s->c.q_pos = posenc_positions_range(length[b] - 1, 1);
    for (int64_t n = 0; n < H * D; n++)
        s->c.q.wide[n] = (double)((const float *)q[b])[n];
    for (int64_t g = 0; g < G; g++)
        for (int64_t j = 0; j < length[b]; j++) {
            read_row(s->c.k.wide + (g * s->dims.Lk + j) * D, &c->k, b, g, j);
            read_row(s->c.v.wide + (g * s->dims.Lk + j) * D, &c->v, b, g, j);
        }
}

/* What key j adds to channel d of o where its weight is 1. */
static double value_at(const served *s, const pair *x, int64_t d)
{
    const double *v = s->c.v.wide + (x->h / (H / G) * s->dims.Lk + x->j) * D;
    return v[d] + (s->told->values ? vector_at(x, s->told->values, (int64_t)s->told->value_row(x))[d] : 0);
}

/* o [D] of a head from n keys, and what it may be off by. */
static void attend_plainly(double o[D], double allowed[D], const served *s, int64_t n, int64_t h)
{
    static double S[LONGEST];
    double        largest = -INFINITY, steepest = 0, sum = 0;
    for (int64_t j = n - 1; j >= 0; j--) {
        const pair x = pair_at(&s->c, 0, h, 0, j);
        S[j]         = s->told->score(&x);
        largest      = fmax(largest, S[j]);
        steepest     = fmax(steepest, fabs(S[j]));
    }
    const int breaks = strstr(s->told->spec, "stick_breaking") != NULL;
    double    left   = 0;
    for (int64_t j = 0; j < n; j++)
        sum += exp(S[j] - largest);
    for (int64_t j = n - 1; breaks && j >= 0; j--) { /* S becomes the weights */
        const double breaking = log1p(exp(S[j]));
        S[j]                  = exp(S[j] - breaking + left);
        left -= breaking;
    }
    memset(o, 0, D * sizeof *o);
    memset(allowed, 0, D * sizeof *allowed);
    for (int pass = 0; pass < 2; pass++) /* the second needs o */
        for (int64_t j = 0; j < n; j++) {
            const pair   x     = pair_at(&s->c, 0, h, 0, j);
            const double w     = breaks ? S[j] : exp(S[j] - largest) / sum;
            const double gated = s->told->gate ? w * s->told->gate(&x) : w;
            for (int64_t d = 0; d < D; d++) {
                const double share = gated * value_at(s, &x, d);
                if (pass == 0)
                    o[d] += share;
                else
                    allowed[d] += 0x1p-20 * steepest * (breaks ? 16 * fabs(share) : fabs(share - w * o[d])) +
                                  6 * sqrt((double)n) * 0x1p-24 * fabs(share);
            }
        }
}

/* Does the formula ask each token between for each channel? Of long sequences that takes minutes. */
static int asks_each_channel(const served *s)
{
    const char *spec = s->told->spec;
    return !strncmp(spec, "path", 4) || !strncmp(spec, "wall", 4) || strstr(spec, "content=step");
}

/* The largest difference in shares of what is allowed. */
static double held_against_the_loop(served *s, const cache *c, const float *got)
{
    double o[D], allowed[D], most = 0;
    for (int b = 0; b < B; b++) {
        if (asks_each_channel(s) && length[b] > SHORT)
            continue;
        take_sequence(s, c, b);
        for (int64_t h = 0; h < H; h++) {
            attend_plainly(o, allowed, s, length[b], h);
            for (int64_t d = 0; d < D; d++) {
                const double off = fabs((double)got[(b * H + h) * D + d] - o[d]);
                most             = off == 0 ? most : off <= most * allowed[d] ? most : off / allowed[d];
            }
        }
    }
    return most;
}

/* ---------------------------------------------------------------- a step --------------------- */

typedef struct memory {
    size_t asked, touched;
} memory;

static posenc_workspace make_workspace(size_t bytes)
{
    void *all = aligned_alloc(64, bytes + BEHIND);
    assert_non_null(all);
    return posenc_workspace_over(memset(all, PATTERN, bytes + BEHIND), bytes);
}

/* Bytes that were written, none of them behind the workspace. */
static size_t touched_of(const posenc_workspace *work, const served *s)
{
    const unsigned char *at    = work->memory;
    size_t               count = 0;
    for (size_t i = 0; i < work->bytes; i++)
        count += at[i] != PATTERN;
    for (size_t i = work->bytes; i < work->bytes + BEHIND; i++)
        if (at[i] != PATTERN)
            fail_msg("%s: byte %zu behind a workspace of %zu is written", s->told->spec, i - work->bytes,
                     work->bytes);
    return count;
}

static memory decode(const served *s, const cache *c, int threads, float *o)
{
    const int64_t query[4] = {B, H, 1, D}, rows[2] = {B, pages}, batch[2] = {B, 1};
    posenc_plan  *plan  = make_plan(s, threads);
    posenc_bound *bound = NULL;
    posenc_sizes  sizes = posenc_sizes_default();
    posenc_error  err;
    sizes.dtype      = POSENC_DTYPE_F32;
    the_crew.threads = threads; /* as many as the plan has scratch for, when binding too */
    if (threads > 1 && posenc_plan_bind(&bound, plan, s->params, &err))
        stop(s, &err);
    const posenc_tensor *sums = NULL;
    for (int i = 0; i < s->c.token_count; i++) {
        const posenc_tensor token = array_tensor(&s->c.tokens[i], 1);
        if (!s->sums[i].data)
            continue;
        posenc_tensor first = s->sums[i];
        first.shape[0]      = 1;
        if (posenc_token_sums(plan, i, &token, &first, 0, &err))
            stop(s, &err);
        sums = s->sums;
    }
    const posenc_workspace  work = make_workspace(posenc_plan_workspace(plan, POSENC_RUN_DECODE, &sizes));
    const posenc_attend_in  in   = {.size  = sizeof in,
                                    .q     = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, query),
                                    .k     = c->k,
                                    .v     = c->v,
                                    .q_pos = posenc_positions_array(
                                        posenc_tensor_contiguous(position, POSENC_DTYPE_I32, 2, batch)),
                                    .params    = threads > 1 ? NULL : s->params,
                                    .bound     = bound,
                                    .tokens    = s->tokens,
                                    .sums      = sums,
                                    .k_lengths = posenc_tensor_contiguous(length, POSENC_DTYPE_I32, 1, batch),
                                    .k_pages   = posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, rows)};
    const posenc_attend_out out  = {.size = sizeof out,
                                    .o    = posenc_tensor_contiguous(o, POSENC_DTYPE_F32, 4, query)};
    if (posenc_attend(plan, &in, &out, &work, &err))
        stop(s, &err);
    const memory m = {work.bytes, touched_of(&work, s)};
    free(work.memory);
    posenc_bound_free(bound);
    posenc_plan_free(plan);
    return m;
}

/* Do a few queries read vectors by distance of a bound that without one they do not make (posenc_plan_bind)?
   Then other bits are right too. */
static int makes_no_vectors(const served *s)
{
    return !strncmp(s->told->spec, "transformer_xl", 14) || !strncmp(s->told->spec, "xlnet", 5);
}

static void serve(served *s)
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
                fail_msg("%s: %d threads give other bits than one", s->told->spec, threads[n]);
        }
        off[i] = held_against_the_loop(s, &caches[i], o[0]);
        if (makes_no_vectors(s))
            off[i] = fmax(off[i], held_against_the_loop(s, &caches[i], o[1]));
    }
    printf("%-52s%6.2f%6.2f%10zu%8zu%8zu%10zu\n", s->told->spec, off[0], off[1], m[0].asked >> 10,
           m[1].asked >> 10, m[2].asked >> 10, m[2].touched >> 10);
    for (int i = 0; i < 2; i++)
        if (!(off[i] <= 1))
            fail_msg("%s, %s: off by %.3g times what is allowed", s->told->spec, i ? "bf16" : "f32", off[i]);
}

static void every_encoding_serves_on_any_number_of_threads(void **state)
{
    (void)state;
    printf("%d sequences, 0 to %d keys, pages of %d; workspace in KiB\n", B, (int)keys, PAGE);
    printf("%-52s%6s%6s%10s%8s%8s%10s\n", "ENCODING", "F32", "BF16", "1 THREAD", "2", "4", "TOUCHED");
    for (int i = 0; i < ENCODINGS; i++) {
        served s = open_encoding(&encodings[i]);
        serve(&s);
        close_encoding(&s);
    }
    assert_true(the_crew.calls > 0);
}

/* Each of them is too little for two threads, all together are not: each is one task. */
static void short_sequences_are_shared_among_threads(void **state)
{
    static float o[2][B * H * D];
    (void)state;
    for (int b = 0; b < B; b++) {
        length[b]        = PAGE - b % 2;
        position[b]      = length[b] - 1;
        table[b * pages] = (int32_t)(b % page_count);
    }
    for (int i = 0; i < ENCODINGS; i++) {
        served s = open_encoding(&encodings[i]);
        decode(&s, &caches[0], makes_no_vectors(&s) ? 2 : 1, o[0]);
        the_crew.batches = 0;
        decode(&s, &caches[0], CREW, o[1]);
        if (the_crew.batches != 1 || memcmp(o[0], o[1], sizeof o[0]) != 0)
            fail_msg("%s: sequences are %s, and %s bits", encodings[i].spec,
                     the_crew.batches ? "tasks" : "one after the other",
                     memcmp(o[0], o[1], sizeof o[0]) ? "other" : "the same");
        close_encoding(&s);
    }
}

/* An encoding that is added must be served too. */
static void every_encoding_of_attention_is_served(void **state)
{
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *info  = posenc_encoding_info_at(i);
        int                         found = info->place == POSENC_PLACE_INPUT;
        for (int e = 0; e < ENCODINGS; e++)
            found |= strcspn(encodings[e].spec, "[+") == strlen(info->name) &&
                     !strncmp(encodings[e].spec, info->name, strlen(info->name));
        if (!found)
            fail_msg("%s is not served", info->name);
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
                                       cmocka_unit_test(short_sequences_are_shared_among_threads),
                                       cmocka_unit_test(every_encoding_of_attention_is_served)};
    if (argc > 1)
        keys = (int64_t)limit(atof(argv[1]), B, LONGEST);
    return cmocka_run_group_tests(tests, set_up, clear_up);
}
