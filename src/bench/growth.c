/* SPDX-License-Identifier: MIT */
/*
 * growth.c: how memory grows with the length, for every encoding of the registry: G12, and the memory of G17
 *
 * A child process makes the problem, writes all inputs and outputs, then runs forward or backward and tells
 * by how much its peak of resident pages grew meanwhile: whatever the run touched that was neither input nor
 * output, be it workspace, stack or heap. A child is born with its parent's pages and with what the parent's
 * heap has freed, which would hide what the run takes: it gives the freed pages back and starts its peak
 * anew, before it makes the problem and before the run. From L to 2 L that may double. A matrix of Lq x Lk
 * would grow fourfold, were it of single bits even: 2 MiB at L = 4096, and a page is 4 KiB. A quarter of a
 * mebibyte is added on both sides, so that a few pages of the C library say nothing. Encodings at the input
 * have no pairs; their rows are measured the same way.
 */
#include "bench/attention_run.h"
#include "bench/cases.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

enum { LENGTH = 4096, DENSE_LENGTH = 2048, WIDTH = 64 };

#define FLOOR_KILOBYTES 256.0

/* ---------------------------------------------------------------- rows at the input ---------- */

typedef struct rows_run {
    pe_buffers       all;
    posenc_encoding *e;
    posenc_plan     *plan;
    posenc_rows_in   in;
    posenc_rows_grad grad;
    posenc_tensor    y, params[PE_BENCH_PARAMS], dparams[PE_BENCH_PARAMS];
    void            *work;
} rows_run;

static posenc_status open_row_params(rows_run *r, const posenc_dims *dims, posenc_error *err)
{
    const int count = posenc_param_count(r->e);
    for (int i = 0; i < count && i < PE_BENCH_PARAMS; i++) {
        int32_t             ndim;
        int64_t             shape[POSENC_MAX_DIMS], n = 1;
        const posenc_status status = posenc_param_shape(r->e, dims, i, &ndim, shape, err);
        if (status)
            return status;
        for (int32_t a = 0; a < ndim; a++)
            n *= shape[a];
        void *const x = pe_random_buffer(&r->all, n, POSENC_F32, err), *const dx =
                                                                           pe_random_buffer(&r->all, n,
                                                                                            POSENC_F32, err);
        if (!x || !dx)
            return err->status;
        r->params[i]  = posenc_tensor_contiguous(x, POSENC_F32, ndim, shape);
        r->dparams[i] = posenc_tensor_contiguous(dx, POSENC_F32, ndim, shape);
    }
    return count ? posenc_param_init(r->e, dims, r->params, 1, err) : POSENC_OK;
}

/* Positions 0, 1, 2, ...; where rows belong to words too, some word at each. */
static posenc_status open_positions(rows_run *r, const posenc_encoding_info *info, int64_t L,
                                    posenc_error *err)
{
    r->in.pos = posenc_positions_range(0, 1);
    if (!info->by_word)
        return POSENC_OK;
    int64_t *places = pe_plain_buffer(&r->all, (size_t)(2 * L) * sizeof *places, err);
    if (!places)
        return err->status;
    for (int64_t i = 0; i < L; i++) {
        places[2 * i]     = i % 64;
        places[2 * i + 1] = i;
    }
    r->in.pos = posenc_positions_array(posenc_tensor_contiguous(places, POSENC_I64, 2, (int64_t[]){L, 2}));
    return POSENC_OK;
}

static posenc_status open_rows(rows_run *r, const pe_bench_case *c, posenc_error *err)
{
    const pe_bench_shape       *s    = &c->shape;
    const posenc_encoding_info *info = posenc_encoding_find(s->spec);
    const posenc_dims           dims = {.B = 1, .H = 1, .Lq = s->Lk, .Lk = s->Lk, .D = s->D, .L = s->Lk / 8};
    posenc_options              o    = posenc_options_default();
    char                        small[512];
    memset(r, 0, sizeof *r);
    o.threads            = 1;
    posenc_status status = posenc_small_model(s->spec, &dims, small, sizeof small, err);
    if (!status)
        status = posenc_encoding_create(&r->e, s->spec, small, err);
    if (!status)
        status = posenc_plan_create(&r->plan, r->e, &dims, &o, err);
    if (!status)
        status = open_row_params(r, &dims, err);
    if (!status)
        status = open_positions(r, info, s->Lk, err);
    if (status)
        return status;
    const int64_t shape[3] = {1, s->Lk, posenc_row_width(r->plan)}, n = shape[1] * shape[2];
    void *const y = pe_random_buffer(&r->all, n, POSENC_F32, err), *const dy =
                                                                       pe_random_buffer(&r->all, n,
                                                                                        POSENC_F32, err);
    if (!y || !dy)
        return err->status;
    r->in.params    = r->params;
    r->y            = posenc_tensor_contiguous(y, POSENC_F32, 3, shape);
    r->grad.dy      = posenc_tensor_contiguous(dy, POSENC_F32, 3, shape);
    r->grad.dparams = r->dparams;
    return POSENC_OK;
}

static posenc_status run_rows(rows_run *r, int backward, posenc_error *err)
{
    const int runs = backward ? POSENC_BACKWARD : POSENC_FORWARD;
    r->work        = pe_plain_buffer(&r->all, posenc_plan_workspace(r->plan, runs), err);
    if (!r->work)
        return err->status;
    return backward ? posenc_rows_backward(r->plan, &r->in, &r->grad, r->work, err)
                    : posenc_rows(r->plan, &r->in, &r->y, r->work, err);
}

/* ---------------------------------------------------------------- in a child ----------------- */

/* What a child tells: kilobytes, or why there are none. */
typedef struct letter {
    double       kilobytes;
    posenc_error err;
} letter;

static double peak(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)use.ru_maxrss;
}

/* Freed memory goes back to the system, and the peak becomes what is resident now (Linux; elsewhere the peak
   stays). */
static void forget_peak(void)
{
    static const char word[] = "5"; /* of proc(5), clear_refs: reset the peak resident set size */
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    const int file = open("/proc/self/clear_refs", O_WRONLY);
    if (file < 0)
        return;
    const int done = write(file, word, sizeof word - 1) == (ssize_t)(sizeof word - 1);
    close(file);
    (void)done;
}

static void measure_rows(letter *to, const pe_bench_case *c)
{
    rows_run r;
    to->err.status = open_rows(&r, c, &to->err);
    forget_peak();
    const double before = peak();
    if (!to->err.status)
        to->err.status = run_rows(&r, c->shape.backward, &to->err);
    to->kilobytes = peak() - before;
}

static void measure_pairs(letter *to, const pe_bench_case *c)
{
    pe_attention_run r;
    to->err.status = pe_attention_open(&r, c, 1, &to->err);
    forget_peak();
    const double before = peak();
    if (!to->err.status)
        to->err.status = pe_attention_start(&r, &to->err);
    to->kilobytes = peak() - before;
}

static int is_input(const pe_bench_case *c)
{
    const posenc_encoding_info *info = posenc_encoding_find(c->shape.spec);
    return info && info->place == POSENC_INPUT;
}

/* What an end of a pipe was sent, and the child's end. */
static posenc_status read_letter(letter *to, int from, pid_t child, posenc_error *err)
{
    const int whole = read(from, to, sizeof *to) == (ssize_t)sizeof *to;
    waitpid(child, NULL, 0);
    if (whole) {
        *err = to->err;
        return err->status;
    }
    *err = (posenc_error){POSENC_MEMORY, "the measuring process ended early (out of memory?)"};
    return err->status;
}

static posenc_status ask_child(double *kilobytes, const pe_bench_case *c, posenc_error *err)
{
    int    ends[2];
    letter said = {0};
    *err        = (posenc_error){POSENC_MEMORY, "no second process can be started"};
    if (pipe(ends))
        return err->status;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        pe_take_small_pages();
        forget_peak();
        (is_input(c) ? measure_rows : measure_pairs)(&said, c);
        _exit(write(ends[1], &said, sizeof said) != (ssize_t)sizeof said);
    }
    close(ends[1]);
    if (child > 0)
        err->status = read_letter(&said, ends[0], child, err);
    close(ends[0]);
    *kilobytes = said.kilobytes;
    return err->status;
}

/* ---------------------------------------------------------------- the rows ------------------- */

/* limit: MiB at the shorter length. */
static posenc_status measure_growth(const pe_bench_case *c, const pe_bench_effort *effort,
                                    pe_bench_figure *figure, posenc_error *err)
{
    pe_bench_case twice   = *c;
    double        at_once = 0, at_twice = 0;
    (void)effort;
    twice.shape.Lq = twice.shape.Lk = 2 * c->shape.Lk;
    posenc_status status            = ask_child(&at_once, c, err);
    if (!status)
        status = ask_child(&at_twice, &twice, err);
    if (status)
        return status;
    figure->value = (at_twice + FLOOR_KILOBYTES) / (at_once + FLOOR_KILOBYTES);
    figure->q1 = figure->q3 = figure->value;
    figure->limit           = at_once / 1024;
    return POSENC_OK;
}

static posenc_status measure_megabytes(const pe_bench_case *c, const pe_bench_effort *effort,
                                       pe_bench_figure *figure, posenc_error *err)
{
    double              kilobytes;
    const posenc_status status = ask_child(&kilobytes, c, err);
    (void)effort;
    if (!status)
        figure->value = figure->q1 = figure->q3 = kilobytes / 1024;
    return status;
}

/* Is a parameter a matrix of the caller's, with a number for each pair? It is short then, for it is an
   input. */
static int is_dense(const posenc_encoding_info *info)
{
    for (int p = 0; p < info->param_count; p++)
        if (strstr(info->params[p].shape, "Lq,Lk"))
            return 1;
    return 0;
}

static void add_growth(pe_case_list *to, const posenc_encoding_info *info, int backward)
{
    const int64_t        L     = is_dense(info) ? DENSE_LENGTH : LENGTH;
    const pe_bench_shape shape = {.spec     = info->name,
                                  .H        = 1,
                                  .Lq       = L,
                                  .Lk       = L,
                                  .D        = WIDTH,
                                  .mask     = POSENC_MASK_CAUSAL,
                                  .backward = backward,
                                  .dtype    = POSENC_F32};
    pe_add_case(
        to, "G12",
        (pe_bench_case){
            .unit = "MiB", .wanted = 2.1, .sense = PE_AT_MOST, .measure = measure_growth, .shape = shape},
        "%s %s, memory at L %lld over that at L %lld, at most", info->name, backward ? "backward" : "forward",
        (long long)(2 * L), (long long)L);
}

/* Linear here means: no more than what it reads, which is q, k and v. A matrix of Lq x Lk bits would be 128
   and 8 GiB. */
static void add_long(pe_case_list *to)
{
    static const struct {
        const char *name;
        int64_t     L, window;
    } rows[] = {{"causal, window 4096", 1048576, 4096}, {"causal, in full", 262144, 0}};
    for (int i = 0; i < 2; i++)
        pe_add_case(
            to, "G17",
            (pe_bench_case){.unit    = "MiB",
                            .wanted  = (double)(3 * rows[i].L * WIDTH * 4) / 1048576,
                            .sense   = PE_AT_MOST,
                            .is_long = 1,
                            .measure = measure_megabytes,
                            .shape   = {.spec   = "alibi",
                                        .H      = 1,
                                        .Lq     = rows[i].L,
                                        .Lk     = rows[i].L,
                                        .D      = WIDTH,
                                        .window = rows[i].window,
                                        .mask  = POSENC_MASK_CAUSAL | (rows[i].window ? POSENC_MASK_WINDOW : 0),
                                        .dtype = POSENC_F32}},
            "one head with alibi, D 64, L %lld, %s: MiB beyond inputs and outputs, at most those of q, k, v",
            (long long)rows[i].L, rows[i].name);
}

void pe_growth_cases(pe_case_list *to)
{
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (int backward = 0; backward < 2; backward++)
            add_growth(to, posenc_encoding_info_at(i), backward);
    add_long(to);
}
