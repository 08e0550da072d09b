/* SPDX-License-Identifier: MIT */
/* Which executor a run goes to. Contract: attend.h. */
#include "engine/attend.h"

#include "engine/fast/fast.h"
#include "engine/parts.h"
#include "engine/reference/reference.h"
#include "engine/tiled/backward.h"

static int decodes(const pe_attention *a)
{
    return pe_fast_serves(a) && a->sizes.Lq <= POSENC_DECODE_QUERIES;
}

/* ---- the executors, as whole runs and as parts of runs ---- */

static void lay_out_reference(const pe_attention *a, int run, pe_arena *arena)
{
    (void)run;
    pe_reference_lay_out(a, arena, 0);
}

static void lay_out_tiled(const pe_attention *a, int run, pe_arena *arena)
{
    (void)run;
    pe_tiled_forward_lay_out(a, arena);
}

static void run_reference(const pe_attention *a, int run, const posenc_tensor *S, pe_arena *arena)
{
    if (run == PE_ATTEND_BIAS)
        pe_reference_bias_run(a, S, arena);
    else
        pe_reference_forward_run(a, S, arena);
}

static void run_tiled(const pe_attention *a, int run, const posenc_tensor *S, pe_arena *arena)
{
    pe_forward f = pe_tiled_forward_lay_out(a, arena);
    (void)run;
    f.S = S;
    pe_tiles_fill(&f.T);
    pe_tiled_forward_run(&f);
}

static pe_executor executor_of(int run, int reference)
{
    if (reference || run == PE_ATTEND_BIAS)
        return (pe_executor){run, 1, lay_out_reference, run_reference};
    return (pe_executor){run, 0, lay_out_tiled, run_tiled};
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Of an executor: of few queries and, if there may be more, of many. */
static void lay_out_executor(const pe_attention *a, const pe_executor *by, pe_arena *arena)
{
    pe_arena few = *arena, many = *arena;
    pe_parts_lay_out(a, by, &few);
    if (a->sizes.Lq > POSENC_DECODE_QUERIES)
        by->lay_out(a, by->run, &many);
    arena->used = larger(few.used, many.used);
}

/* Whichever way a run of at most these sizes goes, the memory is that of the one that needs most. */
static void lay_out_forward(const pe_attention *a, const pe_executor *by, pe_arena *arena)
{
    pe_arena decode = *arena, bf16 = *arena, tiled = *arena;
    if (pe_fast_serves(a))
        pe_decode_lay_out(a, &decode);
    if (!decodes(a) && a->q.dtype == POSENC_DTYPE_BF16 && pe_bf16_may_serve(a))
        pe_bf16_lay_out(a, &bf16);
    if (!decodes(a))
        lay_out_executor(a, by, &tiled);
    arena->used = larger(larger(decode.used, bf16.used), tiled.used);
}

/* What is said query by query is not a bias, and a softmax is none of scores. */
static pe_attention of_run(const pe_attention *whole, int run)
{
    pe_attention a    = *whole;
    const int    bias = run == PE_ATTEND_BIAS || run == POSENC_RUN_BIAS_BACKWARD;
    a.has_sink        = a.has_sink && !bias && run != POSENC_RUN_SCORES;
    a.temper_on       = bias ? PE_TEMPER_NONE : a.temper_on;
    a.softcap         = bias ? 0 : a.softcap;
    if (bias)
        a.rotary = a.rotary_keys = NULL;
    return a;
}

static int is_backward(int run)
{
    return run == POSENC_RUN_ATTEND_BACKWARD || run == POSENC_RUN_BIAS_BACKWARD;
}

void pe_attend_lay_out(const pe_attention *a, int run, int reference, pe_arena *arena)
{
    const pe_executor by  = executor_of(run, reference);
    pe_attention      any = of_run(a, run);
    any.for_any_run       = 1;
    pe_temper_lay_out(&any, arena, run == POSENC_RUN_ATTEND_BACKWARD);
    pe_drift_lay_out(&any, arena, is_backward(run));
    pe_turn_lay_out(&any, arena, is_backward(run));
    pe_chain_lay_out(&any, arena);
    if (run == POSENC_RUN_ATTEND_BACKWARD)
        pe_sink_lay_out(&any, arena);
    if (run == POSENC_RUN_BIAS_BACKWARD || (run == POSENC_RUN_ATTEND_BACKWARD && reference))
        pe_reference_lay_out(&any, arena, 1);
    else if (run == POSENC_RUN_ATTEND_BACKWARD)
        pe_tiled_backward_lay_out(&any, arena);
    else if (run == POSENC_RUN_ATTEND && !reference)
        lay_out_forward(&any, &by, arena);
    else
        lay_out_executor(&any, &by, arena);
}

int64_t pe_attend_whole_keys(const pe_attention *a, int reference)
{
    const pe_executor by = executor_of(POSENC_RUN_ATTEND, reference);
    return pe_parts_whole_keys(a, &by);
}

static void run_tiled_backward(const pe_attention *a, pe_arena *arena)
{
    pe_backward w = pe_tiled_backward_lay_out(a, arena);
    pe_tiles_fill(&w.T);
    pe_tiled_backward_run(&w);
}

/* Multiplications that are worth a second thread: a twentieth of a millisecond; of few queries, which are
   waited for one after the other, a millisecond, as a thread that other programs keep from its processor
   costs more. */
enum { LITTLE = 1 << 20, LITTLE_OF_FEW = 1 << 24 };

static pe_team team_of(const pe_attention *a)
{
    const pe_problem *p       = &a->sizes;
    const int64_t     vectors = 1 + pe_has(a->terms, PE_A) + pe_has(a->terms, PE_B) + pe_has(a->terms, PE_R);
    const double      pairs   = (double)(p->B * p->H) * (double)p->Lq * (double)p->Lk;
    return pe_parallel_for_work(&a->team, pairs * (double)(vectors * p->D + p->Dv),
                                p->Lq <= POSENC_DECODE_QUERIES ? LITTLE_OF_FEW : LITTLE);
}

static void run_forward(const pe_attention *a, const pe_executor *by, const posenc_tensor *S, pe_arena *arena)
{
    if (by->run == POSENC_RUN_ATTEND && !by->reference && pe_bf16_serves(a))
        pe_bf16_run(a, arena);
    else if (pe_parts_serve(a, by))
        pe_parts_run(a, by, S, arena);
    else
        by->compute(a, by->run, S, arena);
}

static void run_backward(pe_attention *a, int reference, pe_arena *arena)
{
    pe_sink_lay_out(a, arena);
    pe_sink_back(a);
    if (reference)
        pe_reference_backward_run(a, arena);
    else
        run_tiled_backward(a, arena);
    pe_temper_fold(a);
    pe_sink_fold(a);
    pe_turn_back_run(a, &(pe_turn_back){&a->q, &a->dq, &a->k, &a->dk, 1});
}

void pe_attend_run(const pe_attention *whole, int run, int reference, const posenc_tensor *S, pe_arena *arena)
{
    const pe_executor by  = executor_of(run, reference);
    pe_attention      own = of_run(whole, run);
    const int few = run == POSENC_RUN_ATTEND && !reference && decodes(&own); /* it counts for itself */
    if (!few)
        own.team = team_of(whole);
    pe_temper_lay_out(&own, arena, run == POSENC_RUN_ATTEND_BACKWARD);
    pe_temper_fill(&own);
    pe_drift_lay_out(&own, arena, is_backward(run));
    pe_drift_fill(&own);
    pe_turn_lay_out(&own, arena, is_backward(run));
    pe_turn_fill(&own);
    pe_chain_lay_out(&own, arena);
    pe_chain_fill(&own);
    if (few)
        pe_decode_run(&own, arena);
    else if (run == POSENC_RUN_BIAS_BACKWARD)
        pe_reference_bias_backward_run(&own, S, arena);
    else if (run == POSENC_RUN_ATTEND_BACKWARD)
        run_backward(&own, reference, arena);
    else
        run_forward(&own, &by, S, arena);
}
