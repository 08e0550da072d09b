/* SPDX-License-Identifier: MIT */
/* parts.h: few queries against many keys, in memory that does not grow with them; idea: parts.c. */
#ifndef PE_ENGINE_PARTS_H
#define PE_ENGINE_PARTS_H

#include "engine/score/attention.h"

/* The executor whose run this is. */
typedef struct pe_executor {
    int run;       /* POSENC_RUN_ATTEND, POSENC_RUN_SCORES or PE_ATTEND_BIAS */
    int reference; /* or tiled */
    void (*lay_out)(const pe_attention *a, int run, pe_arena *arena);
    void (*compute)(const pe_attention *a, int run, const posenc_tensor *S, pe_arena *arena);
} pe_executor;

/* Does such a run go part by part? Otherwise it is small. How many keys a few queries of a plan may have that
   surely do not. */
int     pe_parts_serve(const pe_attention *a, const pe_executor *by);
int64_t pe_parts_whole_keys(const pe_attention *a, const pe_executor *by);

/* Memory, of a plan for POSENC_DECODE_QUERIES queries at most; whichever way a run goes, it is enough. */
void pe_parts_lay_out(const pe_attention *a, const pe_executor *by, pe_arena *arena);
void pe_parts_run(const pe_attention *a, const pe_executor *by, const posenc_tensor *S, pe_arena *arena);

#endif
