/* SPDX-License-Identifier: MIT */
/*
 * decode.c: token after token of several sequences, from a cache in pages, on threads of your own
 *
 *     cc decode.c $(pkg-config --cflags --libs posenc) -lm -pthread -o decode && ./decode
 *
 * A sequence takes the next free page when its last one is full; its row of `table` says which are its own.
 * Tasks of the library run on two threads of this program; what is too little for two stays on the one that
 * calls. Keys are alike here and values are positions, so ALiBi looks 1 / (e^slope - 1) tokens back.
 */
#include <math.h>
#include <posenc/posenc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>

enum { B = 3, H = 16, G = 8, D = 128, PAGE = 64, MOST = 16, POOL = B * MOST, STEPS = 20 };
static float   q[B][H][D], o[B][H][D], slopes[H], k[POOL][G][PAGE][D], v[POOL][G][PAGE][D];
static int32_t table[B][MOST], length[B], position[B], taken, calls;

/* The threads: the one that calls, and one that sleeps until there is work. */
static sem_t        begin, end;
static atomic_llong left;
static posenc_task *the_task;
static void        *its_argument;

static void run_tasks(int slot) /* no other thread has this slot */
{
    for (int64_t index; (index = (int64_t)atomic_fetch_sub(&left, 1) - 1) >= 0;)
        the_task(its_argument, index, slot);
}

static void *help(void *unused)
{
    for (; !sem_wait(&begin); sem_post(&end))
        run_tasks(1);
    return unused;
}

static void parallel_for(void *unused, int64_t n, posenc_task *task, void *argument)
{
    (void)unused, calls++, the_task = task, its_argument = argument, left = n;
    sem_post(&begin);
    run_tasks(0);
    sem_wait(&end);
}

static void append(int b) /* a key and a value, which a model would make of a token */
{
    const int j = position[b] = length[b]++, row = j % PAGE;
    if (row == 0)
        table[b][j / PAGE] = taken++ * 5 % POOL; /* in any order */
    for (int n = 0, page = table[b][j / PAGE]; n < G * D; n++)
        k[page][n / D][row][n % D] = 1, v[page][n / D][row][n % D] = (float)j;
}

int main(void)
{
    const int64_t queries[] = {B, H, 1, D}, cache[] = {POOL, G, PAGE, D}, rows[] = {B, MOST}, heads[] = {H};
    const posenc_dims dims    = {.B = B, .H = H, .G = G, .Lq = 1, .Lk = MOST * PAGE, .D = D};
    posenc_options    options = posenc_options_default();
    posenc_tensor     params  = posenc_tensor_contiguous(slopes, POSENC_DTYPE_F32, 1, heads);
    posenc_encoding  *e;
    posenc_plan      *plan;
    posenc_bound     *bound; /* the parameters of one layer, made ready once */
    posenc_workspace  work;
    posenc_error      err;
    pthread_t         other;
    options.mask = POSENC_MASK_CAUSAL, options.threads = 2, options.parallel_for = parallel_for;
    if (sem_init(&begin, 0, 0) || sem_init(&end, 0, 0) || pthread_create(&other, NULL, help, NULL))
        return perror("threads"), 1;
    if (posenc_encoding_create(&e, "alibi", NULL, &err) || posenc_param_init(e, &dims, &params, 0, &err) ||
        posenc_plan_create(&plan, e, &dims, &options, &err) ||
        posenc_plan_bind(&bound, plan, &params, &err) ||
        posenc_workspace_create(&work, plan, POSENC_RUN_DECODE, NULL, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    posenc_attend_in  in  = {.size = sizeof in, .bound = bound};
    posenc_attend_out out = {.size = sizeof out};
    in.q = out.o = posenc_tensor_contiguous(q, POSENC_DTYPE_F32, 4, queries), out.o.data = o;
    in.k = in.v = posenc_tensor_contiguous(k, POSENC_DTYPE_F32, 4, cache), in.v.data = v;
    in.q_pos.array = posenc_tensor_contiguous(position, POSENC_DTYPE_I32, 2, (int64_t[]){B, 1});
    in.k_lengths   = posenc_tensor_contiguous(length, POSENC_DTYPE_I32, 1, rows);
    in.k_pages     = posenc_tensor_contiguous(table, POSENC_DTYPE_I32, 2, rows);
    for (int step = 0; step < STEPS; step++) {
        for (int b = 0; b < B; b++)
            for (append(b); length[b] < 50 + 400 * b;) /* first the prompt */
                append(b);
        if (posenc_attend(plan, &in, &out, &work, &err))
            return fprintf(stderr, "%s\n", err.message), 1;
    }
    double off = 0, want = 1 / (exp((double)slopes[0]) - 1);
    for (int b = 0; b < B; b++)
        off = fmax(off, fabs(position[b] - (double)o[b][0][0] - want));
    printf("%d sequences of %d to %d keys in %d of %d pages\n", B, length[0], length[B - 1], taken, POOL);
    const int right = off < 1e-3 && calls;
    printf("Head 0 looks %.4f tokens back, on threads of its own: %s\n", want, right ? "yes" : "no");
    posenc_workspace_free(&work), posenc_bound_free(bound), posenc_plan_free(plan), posenc_encoding_free(e);
    return right ? 0 : 1;
}
