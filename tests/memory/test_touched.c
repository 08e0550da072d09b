/* SPDX-License-Identifier: MIT */
/*
 * test_touched: what runs ask for is what they use
 *
 *     test_memory_touched [LENGTH]      256 without
 *
 * Each kind of run at the full size of its plan, on one thread, in a workspace of exactly the bytes that the
 * plan says, filled with a pattern. Bytes behind it must keep the pattern; lines of 64 bytes in it that lost
 * it are touched. For each encoding a line is printed: KiB asked and touched of each kind. A plan counts the
 * largest of what its runs may need, whatever their storage, positions and lengths: up to PARTS bytes of a
 * thread are for runs of few queries, whose keys are cut into parts, and for scratch that these inputs do not
 * need. Beyond them what is asked is at most three times what is touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "attention_case.h"

enum { B = 2, H = 8, G = 4, D = 64, PATTERN = 0xa5, BEHIND = 4096, LINE = 64, PARTS = 4 << 20 };

static int64_t L = 256;

/* A problem of one encoding, and what its runs write. */
typedef struct problem {
    const char      *name;
    attention_case   c;
    posenc_plan     *plan;
    posenc_tensor    params[CASE_PARAMS], dparams[CASE_PARAMS];
    array            gradients[CASE_PARAMS], x, y, q, k, o, lse, dq, dk, dv, S;
    posenc_attend_in in;
} problem;

typedef posenc_status call(problem *p, const posenc_workspace *work, posenc_error *err);

static posenc_tensor of(const array *a)
{
    return array_tensor(a, 0);
}

static posenc_rows_in rows_in(const problem *p)
{
    return (posenc_rows_in){.size = sizeof(posenc_rows_in), .x = of(&p->x), .params = p->params};
}

static posenc_status rows(problem *p, const posenc_workspace *work, posenc_error *err)
{
    const posenc_rows_in in = rows_in(p);
    posenc_tensor        y  = of(&p->y);
    return posenc_rows(p->plan, &in, &y, work, err);
}

static posenc_status rows_backward(problem *p, const posenc_workspace *work, posenc_error *err)
{
    const posenc_rows_in   in   = rows_in(p);
    const posenc_rows_grad grad = {
        .size = sizeof grad, .dy = of(&p->x), .dx = of(&p->y), .dparams = p->dparams};
    return posenc_rows_backward(p->plan, &in, &grad, work, err);
}

static posenc_rotate_io turn(const problem *p)
{
    return (posenc_rotate_io){.size      = sizeof(posenc_rotate_io),
                              .q         = of(&p->c.q),
                              .k         = of(&p->c.k),
                              .to_q      = of(&p->q),
                              .to_k      = of(&p->k),
                              .direction = 1,
                              .params    = p->params};
}

static posenc_status rotate(problem *p, const posenc_workspace *work, posenc_error *err)
{
    const posenc_rotate_io io = turn(p);
    return posenc_rotate(p->plan, &io, work, err);
}

static posenc_status rotate_backward(problem *p, const posenc_workspace *work, posenc_error *err)
{
    const posenc_rotate_io   io   = turn(p);
    const posenc_rotate_grad grad = {.size    = sizeof grad,
                                     .dto_q   = of(&p->c.q),
                                     .dto_k   = of(&p->c.k),
                                     .dq      = of(&p->dq),
                                     .dk      = of(&p->dk),
                                     .dparams = p->dparams};
    return posenc_rotate_backward(p->plan, &io, &grad, work, err);
}

static posenc_status attend(problem *p, const posenc_workspace *work, posenc_error *err)
{
    const posenc_attend_out out = {.size = sizeof out, .o = of(&p->o), .lse = of(&p->lse)};
    return posenc_attend(p->plan, &p->in, &out, work, err);
}

static posenc_status attend_backward(problem *p, const posenc_workspace *work, posenc_error *err)
{
    const posenc_attend_grad grad = {.size    = sizeof grad,
                                     .o       = of(&p->o),
                                     .lse     = of(&p->lse),
                                     .dout    = of(&p->c.dout),
                                     .dq      = of(&p->dq),
                                     .dk      = of(&p->dk),
                                     .dv      = of(&p->dv),
                                     .dparams = p->dparams};
    return posenc_attend_backward(p->plan, &p->in, &grad, work, err);
}

/* The last token of each item. */
static posenc_status decode(problem *p, const posenc_workspace *work, posenc_error *err)
{
    posenc_attend_in  in  = p->in;
    posenc_attend_out out = {.size = sizeof out, .o = of(&p->o)};
    in.q.shape[2] = out.o.shape[2] = 1;
    in.q_pos                       = posenc_positions_range((double)(L - 1), 1);
    return posenc_attend(p->plan, &in, &out, work, err);
}

static posenc_status scores(problem *p, const posenc_workspace *work, posenc_error *err)
{
    posenc_tensor S = of(&p->S);
    return posenc_scores(p->plan, &p->in, &S, work, err);
}

static const struct {
    const char *name;
    posenc_run  run;
    call       *call;
    int64_t     Lq; /* 0: all */
} kinds[] = {
    {"rows", POSENC_RUN_ROWS, rows, 0},
    {"rows back", POSENC_RUN_ROWS_BACKWARD, rows_backward, 0},
    {"rotate", POSENC_RUN_ROTATE, rotate, 0},
    {"rotate back", POSENC_RUN_ROTATE_BACKWARD, rotate_backward, 0},
    {"attend", POSENC_RUN_ATTEND, attend, 0},
    {"decode", POSENC_RUN_DECODE, decode, 1},
    {"attend back", POSENC_RUN_ATTEND_BACKWARD, attend_backward, 0},
    {"scores", POSENC_RUN_SCORES, scores, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* Has the encoding such a run? */
static int has(const problem *p, posenc_run run)
{
    if (run & (POSENC_RUN_ROWS | POSENC_RUN_ROWS_BACKWARD))
        return posenc_rows_width(p->plan) > 0;
    if (run & (POSENC_RUN_ROTATE | POSENC_RUN_ROTATE_BACKWARD))
        return posenc_encoding_part(p->c.e, POSENC_PLACE_ROTARY) != NULL;
    if (run & POSENC_RUN_DECODE && p->c.token_count) /* those of one query are made elsewhere */
        return 0;
    return posenc_rows_width(p->plan) == 0;
}

static void open_problem(problem *to, const posenc_encoding_info *info)
{
    const posenc_dims dims = {
        .B = B, .H = H, .G = G, .Lq = L, .Lk = L, .D = D, .Dv = D, .d_model = 64, .L = L};
    problem      p = {.name = info->name};
    char         spec[300], small[256];
    posenc_error err;
    assert_int_equal(posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                     POSENC_OK);
    snprintf(spec, sizeof spec, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
    p.c              = case_make(spec, dims, 1);
    p.c.options.mask = POSENC_MASK_CAUSAL;
    if (posenc_plan_create(&p.plan, p.c.e, &dims, &p.c.options, &err))
        case_stop("plan", &p.c, &err);
    p.in            = case_in(&p.c, 0, p.params);
    p.in.q_segments = p.in.k_segments = (posenc_tensor){0};
    const int64_t width               = posenc_rows_width(p.plan);
    p.x = array_make(3, (int64_t[]){B, L, width}), p.y = array_make(3, (int64_t[]){B, L, width});
    p.q = array_make4(B, H, L, D), p.k = array_make4(B, G, L, D), p.o = array_make4(B, H, L, D);
    p.dq = array_make4(B, H, L, D), p.dk = array_make4(B, G, L, D), p.dv = array_make4(B, G, L, D);
    p.lse = array_make(3, (int64_t[]){B, H, L}), p.S = array_make4(B, H, L, L);
    for (int i = 0; i < p.c.param_count; i++) {
        p.gradients[i] = array_make(p.c.params[i].ndim, p.c.params[i].shape);
        p.dparams[i]   = of(&p.gradients[i]);
    }
    *to           = p;
    to->in.params = to->params;
}

static void close_problem(problem *p)
{
    array *const all[] = {&p->x, &p->y, &p->q, &p->k, &p->o, &p->dq, &p->dk, &p->dv, &p->lse, &p->S};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        array_free(all[i]);
    for (int i = 0; i < p->c.param_count; i++)
        array_free(&p->gradients[i]);
    posenc_plan_free(p->plan);
    case_free(&p->c);
}

/* Bytes in lines that are not all pattern. */
static size_t touched(const unsigned char *memory, size_t bytes)
{
    size_t lines = 0;
    for (size_t i = 0; i < bytes; i += LINE) {
        int is_touched = 0;
        for (size_t n = i; n < i + LINE; n++)
            is_touched |= memory[n] != PATTERN;
        lines += (size_t)is_touched;
    }
    return lines * LINE;
}

/* 1 where more is asked than is said above. */
static int measure(problem *p, int kind)
{
    posenc_sizes sizes = posenc_sizes_default();
    posenc_error err;
    sizes.Lq                      = kinds[kind].Lq;
    const size_t           asked  = posenc_plan_workspace(p->plan, kinds[kind].run, &sizes);
    unsigned char         *memory = aligned_alloc(LINE, asked + BEHIND);
    const posenc_workspace work   = posenc_workspace_over(memset(memory, PATTERN, asked + BEHIND), asked);
    if (kinds[kind].call(p, &work, &err))
        fail_msg("%s, %s: %s", p->name, kinds[kind].name, err.message);
    if (touched(memory + asked, BEHIND))
        fail_msg("%s, %s: memory behind a workspace of %zu bytes is written", p->name, kinds[kind].name,
                 asked);
    const size_t used = touched(memory, asked);
    free(memory);
    printf("%7zu /%6zu", asked >> 10, used >> 10);
    return asked > 3 * used + PARTS;
}

static void runs_touch_what_they_ask_for_and_nothing_behind(void **state)
{
    int wrong = 0;
    (void)state;
    printf("%-24s", "KiB asked / touched");
    for (int kind = 0; kind < KINDS; kind++)
        printf("%15s", kinds[kind].name);
    for (int i = 0; i < posenc_encoding_count(); i++) {
        problem p;
        open_problem(&p, posenc_encoding_info_at(i));
        printf("\n%-24s", p.name);
        for (int kind = 0; kind < KINDS; kind++)
            if (!has(&p, kinds[kind].run))
                printf("%15s", "");
            else if (measure(&p, kind)) {
                printf("!");
                wrong++;
            } else
                printf(" ");
        close_problem(&p);
    }
    printf("\n");
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_touch_what_they_ask_for_and_nothing_behind),
    };
    if (argc > 1)
        L = atoll(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
