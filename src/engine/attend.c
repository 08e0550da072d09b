/* SPDX-License-Identifier: MIT */
/* Which executor a run goes to. Contract: attend.h. */
#include "engine/attend.h"

#include "engine/fast/fast.h"
#include "engine/reference/reference.h"
#include "engine/tiled/backward.h"

static int decodes(const pe_attention *a)
{
    return pe_fast_serves(a) && a->sizes.Lq <= POSENC_DECODE_QUERIES;
}

/* Whichever way a run of at most these sizes goes, the memory is that of the one that needs most. */
static void lay_out_forward(const pe_attention *a, pe_arena *arena)
{
    pe_arena decode = *arena, bf16 = *arena, tiled = *arena;
    if (pe_fast_serves(a))
        pe_decode_lay_out(a, &decode);
    if (!decodes(a) && a->q.dtype == POSENC_DTYPE_BF16 && pe_bf16_may_serve(a))
        pe_bf16_lay_out(a, &bf16);
    if (!decodes(a))
        pe_tiled_forward_lay_out(a, &tiled);
    arena->used = decode.used > bf16.used ? decode.used : bf16.used;
    arena->used = tiled.used > arena->used ? tiled.used : arena->used;
}

void pe_attend_lay_out(const pe_attention *a, int run, int reference, pe_arena *arena)
{
    pe_attention any = *a;
    any.for_any_run  = 1;
    if (reference || run == PE_ATTEND_BIAS)
        pe_reference_lay_out(&any, arena, run == POSENC_RUN_ATTEND_BACKWARD);
    else if (run == POSENC_RUN_ATTEND_BACKWARD)
        pe_tiled_backward_lay_out(&any, arena);
    else if (run == POSENC_RUN_SCORES)
        pe_tiled_forward_lay_out(&any, arena);
    else
        lay_out_forward(&any, arena);
}

static void run_reference(const pe_attention *a, int run, const posenc_tensor *S, pe_arena *arena)
{
    if (run == PE_ATTEND_BIAS)
        pe_reference_bias_run(a, S, arena);
    else if (run == POSENC_RUN_ATTEND_BACKWARD)
        pe_reference_backward_run(a, arena);
    else
        pe_reference_forward_run(a, S, arena);
}

static void run_tiled_forward(const pe_attention *a, const posenc_tensor *S, pe_arena *arena)
{
    pe_forward f = pe_tiled_forward_lay_out(a, arena);
    f.S          = S;
    pe_tiles_fill(&f.T);
    pe_tiled_forward_run(&f);
}

static void run_tiled_backward(const pe_attention *a, pe_arena *arena)
{
    pe_backward w = pe_tiled_backward_lay_out(a, arena);
    pe_tiles_fill(&w.T);
    pe_tiled_backward_run(&w);
}

void pe_attend_run(const pe_attention *a, int run, int reference, const posenc_tensor *S, pe_arena *arena)
{
    if (reference || run == PE_ATTEND_BIAS)
        run_reference(a, run, S, arena);
    else if (run == POSENC_RUN_ATTEND_BACKWARD)
        run_tiled_backward(a, arena);
    else if (run == POSENC_RUN_ATTEND && decodes(a))
        pe_decode_run(a, arena);
    else if (run == POSENC_RUN_ATTEND && pe_bf16_serves(a))
        pe_bf16_run(a, arena);
    else
        run_tiled_forward(a, S, arena);
}
