/* SPDX-License-Identifier: MIT */
/*
 * attention_run.h: one attention problem made from a case, ready to be run again and again
 *
 * Encodings get the settings that their rooms state for a small model trained at an eighth of the keys,
 * unless the case's spec has brackets. Parameters are as their source initialises them; those born as zeros
 * throughout are drawn, for zeros are not what anybody computes with.
 */
#ifndef PE_BENCH_ATTENTION_RUN_H
#define PE_BENCH_ATTENTION_RUN_H

#include "bench/buffers.h"
#include "bench/timing.h"

enum { PE_BENCH_PARAMS = 16 };

typedef struct pe_attention_run {
    pe_buffers         all;
    posenc_encoding   *e;
    posenc_plan       *plan;
    posenc_dims        dims;
    posenc_attend_in   in;
    posenc_attend_out  out;
    posenc_attend_grad grad;
    posenc_tensor      params[PE_BENCH_PARAMS], dparams[PE_BENCH_PARAMS];
    void              *work;
    size_t             work_bytes;
    int                backward;
    posenc_error       err; /* of the last run */
} pe_attention_run;

/* Everything but the workspace, whose bytes are counted. Close it whatever the status. */
posenc_status pe_attention_open(pe_attention_run *r, const pe_bench_case *c, int threads, posenc_error *err);
/* The workspace, and a first forward run: the backward one needs what it leaves. */
posenc_status pe_attention_start(pe_attention_run *r, posenc_error *err);
void          pe_attention_close(pe_attention_run *r);

/* One run, backward if the case says so. context is the pe_attention_run. */
void pe_attention_go(void *context);
/* The same to be timed, with its useful arithmetic: 4 D for each pair that the mask allows, backward 10 D,
   whatever the encoding adds. */
pe_timed pe_attention_timed(pe_attention_run *r, const pe_bench_shape *shape, int threads);

#endif
