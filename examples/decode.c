/* SPDX-License-Identifier: MIT */
/*
 * decode.c: token after token of several sequences, from a cache in pages, on threads of your own
 *
 *     cc decode.c $(pkg-config --cflags --libs posenc) -lm -pthread -o decode && ./decode
 *
 * Sequences of different lengths share a pool of pages of PAGE keys each. A sequence takes the next free page
 * when its last one is full; its row of `table` says which are its own. In each step every sequence gets one
 * key, one value and one output. What the parameters alone decide is made ready before the first step. Tasks
 * of the library run on two threads of this program; work that is too little for two stays on the one that
 * calls. At the end the last outputs are computed again by a plain loop.
 */
#include <math.h>
#include <posenc/posenc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

enum { B = 3, H = 16, G = 8, D = 128, PAGE = 64, MOST = 16, POOL = B * MOST, STEPS = 20 };
static float   q[B][H][D], o[B][H][D], slopes[H], k[POOL][G][PAGE][D], v[POOL][G][PAGE][D];
static int32_t table[B][MOST], length[B], position[B], taken;

/* The threads: the one that calls, and one that sleeps until there is work. */
static struct {
    sem_t        work, done;
    posenc_task *task;
    void        *argument;
    atomic_llong left;
    int          calls;
} crew;

static void run_tasks(int slot) /* no other thread has this slot */
{
    for (int64_t index; (index = (int64_t)atomic_fetch_sub(&crew.left, 1) - 1) >= 0;)
        crew.task(crew.argument, index, slot);
}

static void *help(void *unused)
{
    for (; !sem_wait(&crew.work); sem_post(&crew.done))
        run_tasks(1);
    return unused;
}

static void parallel_for(void *context, int64_t n, posenc_task *task, void *argument)
{
    (void)context;
    crew.task     = task;
    crew.argument = argument;
    crew.left     = n;
    crew.calls++;
    sem_post(&crew.work);
    run_tasks(0);
    sem_wait(&crew.done);
}

/* What a model would compute for a token; here numbers between -1 and 1. */
static float noise(void)
{
    static uint32_t state = 1;
    return (float)(int32_t)(state = state * 1664525u + 1013904223u) * 0x1p-31f;
}

static void append(int b)
{
    if (length[b] % PAGE == 0)
        table[b][length[b] / PAGE] = taken++ * 5 % POOL; /* in any order */
    const int page = table[b][length[b] / PAGE], row = length[b]++ % PAGE;
    for (int n = 0; n < G * D; n++)
        k[page][n / D][row][n % D] = noise(), v[page][n / D][row][n % D] = noise();
    position[b] = length[b] - 1;
}

/* Largest difference of a sequence's o from softmax(q.k / sqrt(D) - slope * distance) v. */
static double difference(int b, int h)
{
    double sum = 0, mean[D] = {0}, most = 0;
    for (int j = 0; j < length[b]; j++) {
        const int page = table[b][j / PAGE], row = j % PAGE, g = h / (H / G);
        double    dot = 0;
        for (int d = 0; d < D; d++)
            dot += (double)q[b][h][d] * (double)k[page][g][row][d];
        const double weight = exp(dot / sqrt(D) - (double)slopes[h] * (position[b] - j));
        sum += weight;
        for (int d = 0; d < D; d++)
            mean[d] += weight * (double)v[page][g][row][d];
    }
    for (int d = 0; d < D; d++)
        most = fmax(most, fabs((double)o[b][h][d] - mean[d] / sum));
    return most;
}

int main(void)
{
    const int64_t queries[] = {B, H, 1, D}, cache[] = {POOL, G, PAGE, D}, items[] = {B, 1},
                  rows[] = {B, MOST}, heads[] = {H};
    const posenc_dims dims    = {.B = B, .H = H, .G = G, .Lq = 1, .Lk = MOST * PAGE, .D = D};
    posenc_tensor     params  = posenc_tensor_contiguous(slopes, POSENC_DTYPE_F32, 1, heads);
    posenc_options    options = posenc_options_default();
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_bound     *bound; /* of one layer */
    posenc_workspace  work;
    posenc_error      err;
    pthread_t         helper;
    options.mask = POSENC_MASK_CAUSAL, options.threads = 2, options.parallel_for = parallel_for;
    if (sem_init(&crew.work, 0, 0) || sem_init(&crew.done, 0, 0) || pthread_create(&helper, NULL, help, NULL))
        return perror("threads"), 1;
    if (posenc_encoding_create(&e, "alibi", NULL, &err) ||
        posenc_plan_create(&plan, e, &dims, &options, &err) ||
        posenc_param_init(e, &dims, &params, 0, &err) || posenc_plan_bind(&bound, plan, &params, &err) ||
        posenc_workspace_create(&work, plan, POSENC_RUN_DECODE, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;

    const posenc_attend_in  in  = {.size  = sizeof in,
                                   .q     = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, queries),
                                   .k     = posenc_tensor_contiguous(k, POSENC_DTYPE_F32, 4, cache),
                                   .v     = posenc_tensor_contiguous(v, POSENC_DTYPE_F32, 4, cache),
                                   .q_pos = posenc_positions_array(
                                       posenc_tensor_contiguous(position, POSENC_DTYPE_I32, 2, items)),
                                   .k_lengths = posenc_tensor_contiguous(length, POSENC_DTYPE_I32, 1, items),
                                   .k_pages   = posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, rows),
                                   .bound     = bound};
    const posenc_attend_out out = {.size = sizeof out,
                                   .o    = posenc_tensor_contiguous(o, POSENC_DTYPE_F32, 4, queries)};
    for (int b = 0; b < B; b++)
        while (length[b] < 50 + 400 * b) /* the prompts */
            append(b);
    for (int step = 0; step < STEPS; step++) {
        for (int n = 0; n < B * H * D; n++)
            ((float *)q)[n] = noise();
        for (int b = 0; b < B; b++)
            append(b);
        if (posenc_attend(plan, &in, &out, &work, &err))
            return fprintf(stderr, "%s\n", err.message), 1;
    }
    double most = 0;
    for (int n = 0; n < B * H; n++)
        most = fmax(most, difference(n / H, n % H));
    printf("%d sequences of %d to %d keys in %d of %d pages\n", B, length[0], length[B - 1], taken, POOL);
    printf("A plain loop differs by less than 1e-6: %s; own threads were used: %s\n",
           most < 1e-6 ? "yes" : "no", crew.calls ? "yes" : "no");
    posenc_workspace_free(&work);
    posenc_bound_free(bound);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return most < 1e-6 && crew.calls ? 0 : 1;
}
