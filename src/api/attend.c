/* SPDX-License-Identifier: MIT */
/*
 * attend.c: posenc_attend, its backward, posenc_scores and posenc_bias
 *
 * All checks (attend_checks.h) come before the first write. Then the run becomes a pe_attention and goes to
 * the executor: the plan's, or by the storage of q where the plan leaves it open.
 */
#include "api/attend_checks.h"
#include "base/tensor.h"

/* The parts of a pe_attention that the plan knows. */
static pe_attention attention_of(const posenc_plan *plan)
{
    const posenc_dims *d = &plan->dims;
    pe_attention       a = {0};
    a.sizes =
        (pe_problem){d->B, d->H, d->G, d->Lq, d->Lk, d->D, d->Dv, d->d_model, d->L, NULL, 0, plan->kernels};
    a.D     = d->D;
    a.terms = &plan->terms;
    if (plan->terms.prepare.fill)
        a.sizes.D = plan->terms.prepare.width;
    a.mask          = plan->options.mask;
    a.threads       = plan->threads;
    a.tile_q        = plan->options.tile_q;
    a.tile_k        = plan->options.tile_k;
    a.max_distances = plan->max_distances;
    a.kernels       = plan->kernels;
    a.products      = plan->options.products;
    return a;
}

/* Growth is a matter of pairs, not of rows: rows are turned without it. */
static void set_turn(pe_attention *a, const pe_run_turn *turn)
{
    a->turn      = turn->queries;
    a->turn_keys = turn->keys;
    a->grown     = turn->queries && turn->queries->growth ? turn->queries : NULL;
    if (!a->grown)
        return;
    a->plain[0]        = *turn->queries;
    a->plain[1]        = *turn->keys;
    a->plain[0].growth = a->plain[1].growth = NULL;
    a->turn                                 = &a->plain[0];
    a->turn_keys                            = &a->plain[1];
}

static void set_parts(pe_attention *a, const posenc_plan *plan, const pe_numbers *numbers, int gradients)
{
    a->parts[PE_SCORE]  = pe_part_of(plan, POSENC_SCORE, numbers, gradients);
    a->parts[PE_WEIGHT] = pe_part_of(plan, POSENC_WEIGHT, numbers, gradients);
}

/* Whose parameters attention needs. */
enum { PLACES = 1 << POSENC_ROTARY | 1 << POSENC_SCORE | 1 << POSENC_WEIGHT };

typedef enum run_kind { FORWARD, BACKWARD, SCORES, BIAS } run_kind;

static void execute(const pe_attention *a, run_kind kind, int reference, const posenc_tensor *S,
                    pe_arena *arena)
{
    switch (kind) {
    case FORWARD: (reference ? pe_reference_forward : pe_tiled_forward)(a, arena); break;
    case BACKWARD: (reference ? pe_reference_backward : pe_tiled_backward)(a, arena); break;
    case SCORES: (reference ? pe_reference_scores : pe_tiled_scores)(a, S, arena); break;
    case BIAS: pe_attend_bias(a, S, arena); break;
    }
}

size_t pe_attend_bytes(const posenc_plan *plan, int run)
{
    size_t most = 0;
    for (int reference = 0; reference < 2; reference++) {
        pe_arena     arena = {0};
        pe_numbers   numbers;
        pe_attention a = attention_of(plan);
        if (plan->options.executor == (reference ? POSENC_TILED : POSENC_REFERENCE) && run != POSENC_SCORES)
            continue;
        pe_run_turn turn;
        pe_numbers_load(&numbers, plan, PLACES, NULL, NULL, &arena);
        pe_run_turn_make(&turn, plan, &numbers, 0, &arena);
        set_turn(&a, &turn);
        set_parts(&a, plan, &numbers, 0);
        if (run == POSENC_BACKWARD)
            pe_rotary_slopes(plan, &numbers, 0, 1, NULL, &arena);
        execute(&a,
                run == POSENC_FORWARD    ? FORWARD
                : run == POSENC_BACKWARD ? BACKWARD
                                         : SCORES,
                reference, NULL, &arena);
        most = arena.used > most ? arena.used : most;
    }
    return most;
}

static int uses_reference(const posenc_plan *plan, const pe_attention *a)
{
    return plan->options.executor == POSENC_REFERENCE ||
           (plan->options.executor == POSENC_AUTO && a->q.dtype == POSENC_F64);
}

/* ---- runs ---- */

/* Parameters into the workspace, and the rotation made of them; refused where it is none. */
static posenc_status load(pe_attention *a, pe_numbers *numbers, pe_run_turn *turn, const posenc_plan *plan,
                          const posenc_tensor *params, posenc_tensor *dparams, const char *who,
                          pe_arena *arena, posenc_error *err)
{
    double length = pe_rotary_length(0, &a->q_turn, a->sizes.Lq);
    length        = pe_rotary_length(length, &a->k_turn, a->sizes.Lk);
    pe_numbers_load(numbers, plan, PLACES, params, dparams, arena);
    pe_run_turn_make(turn, plan, numbers, length, arena);
    set_turn(a, turn);
    set_parts(a, plan, numbers, dparams != NULL);
    return pe_run_turn_check(turn, plan, who, err);
}

/* Gradients of the rotary part's parameters from dq and dk, when these are complete. */
static void fold_rotary(const pe_attention *a, const posenc_plan *plan, const pe_numbers *numbers,
                        pe_arena arena)
{
    const pe_turned_side sides[2] = {{&a->q, &a->dq, &a->q_turn, a->turn},
                                     {&a->k, &a->dk, &a->k_turn, a->turn_keys}};
    double               length   = pe_rotary_length(0, &a->q_turn, a->sizes.Lq);
    length                        = pe_rotary_length(length, &a->k_turn, a->sizes.Lk);
    pe_rotary_slopes(plan, numbers, length, 1, sides, &arena);
}

posenc_status posenc_attend(const posenc_plan *plan, const posenc_attend_in *in, const posenc_attend_out *out,
                            void *workspace, posenc_error *err)
{
    posenc_status status = pe_attend_check_start(plan, in, out, "attend", err);
    if (!status)
        status = pe_attend_check_causal(plan, err);
    if (status)
        return status;
    pe_attention a = attention_of(plan);
    status         = pe_attend_check_in(plan, in, &a, 1, err);
    if (status)
        return status;
    status = pe_attend_check_out(&a, out, err);
    if (!status)
        status = pe_numbers_check(plan, PLACES, in->params, NULL, "attend", err);
    if (!status)
        status = pe_check_workspace(workspace, "attend", err);
    if (status)
        return status;
    pe_arena    arena = {workspace, 0};
    pe_numbers  numbers;
    pe_run_turn turn;
    status = load(&a, &numbers, &turn, plan, in->params, NULL, "attend", &arena, err);
    if (status)
        return status;
    a.o   = out->o;
    a.lse = out->lse;
    execute(&a, FORWARD, uses_reference(plan, &a), NULL, &arena);
    return pe_done(err);
}

posenc_status posenc_attend_backward(const posenc_plan *plan, const posenc_attend_in *in,
                                     const posenc_attend_grad *grad, void *workspace, posenc_error *err)
{
    posenc_status status = pe_attend_check_start(plan, in, grad, "attend", err);
    if (!status)
        status = pe_attend_check_causal(plan, err);
    if (status)
        return status;
    pe_attention a = attention_of(plan);
    status         = pe_attend_check_in(plan, in, &a, 1, err);
    if (!status)
        status = pe_attend_check_gradients(&a, grad, err);
    if (!status)
        status = pe_rotary_slopes_check(plan, grad->dparams, &grad->dq, &grad->dk, "attend", err);
    if (!status)
        status = pe_numbers_check(plan, PLACES, in->params, grad->dparams, "attend", err);
    if (!status)
        status = pe_check_workspace(workspace, "attend", err);
    if (status)
        return status;
    pe_arena    arena = {workspace, 0};
    pe_numbers  numbers;
    pe_run_turn turn;
    status = load(&a, &numbers, &turn, plan, in->params, grad->dparams, "attend", &arena, err);
    if (status)
        return status;
    a.o                        = grad->o;
    a.lse                      = grad->lse;
    a.dout                     = grad->dout;
    a.dq                       = grad->dq;
    a.dk                       = grad->dk;
    a.dv                       = grad->dv;
    const pe_arena free_memory = arena;
    execute(&a, BACKWARD, uses_reference(plan, &a), NULL, &arena);
    fold_rotary(&a, plan, &numbers, free_memory);
    pe_numbers_add(&numbers, plan, grad->dparams);
    return pe_done(err);
}

static posenc_status run_scores(const posenc_plan *plan, const posenc_attend_in *in, pe_attention *a,
                                run_kind kind, const posenc_tensor *S, void *workspace, posenc_error *err)
{
    posenc_status status =
        pe_numbers_check(plan, PLACES, in->params, NULL, kind == BIAS ? "bias" : "scores", err);
    if (!status)
        status = pe_check_workspace(workspace, kind == BIAS ? "bias" : "scores", err);
    if (status)
        return status;
    pe_arena    arena = {workspace, 0};
    pe_numbers  numbers;
    pe_run_turn turn;
    status = load(a, &numbers, &turn, plan, in->params, NULL, kind == BIAS ? "bias" : "scores", &arena, err);
    if (status)
        return status;
    execute(a, kind, uses_reference(plan, a), S, &arena);
    return pe_done(err);
}

posenc_status posenc_scores(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *S,
                            void *workspace, posenc_error *err)
{
    posenc_status status = pe_attend_check_start(plan, in, S, "scores", err);
    if (status)
        return status;
    pe_attention a = attention_of(plan);
    a.unmasked     = 1;
    if (!plan->terms.hook.content) /* then nothing depends on the mask, and its arrays are not needed */
        a.mask = POSENC_MASK_NONE;
    status = pe_attend_check_in(plan, in, &a, 0, err);
    if (status)
        return status;
    const int64_t shape[4] = {a.sizes.B, a.sizes.H, a.sizes.Lq, a.sizes.Lk};
    status                 = pe_check_output(S, "scores: S", 4, shape, err);
    return status ? status : run_scores(plan, in, &a, SCORES, S, workspace, err);
}

posenc_status posenc_bias(const posenc_plan *plan, const posenc_attend_in *in, posenc_tensor *bias,
                          void *workspace, posenc_error *err)
{
    posenc_status status = pe_attend_check_start(plan, in, bias, "bias", err);
    if (status)
        return status;
    pe_attention a = attention_of(plan);
    a.mask         = POSENC_MASK_NONE;
    a.unmasked     = 1;
    status         = pe_attend_check_bias(plan, in, bias, &a, err);
    return status ? status : run_scores(plan, in, &a, BIAS, bias, workspace, err);
}
