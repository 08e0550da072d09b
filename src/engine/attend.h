/* SPDX-License-Identifier: MIT */
/*
 * attend.h: the pass that attends, and which executor it goes to
 *
 * Two executors take a checked run. `reference` computes in double, one query row at a time, and reads like
 * the paper. `tiled` computes in float, one tile at a time, in linear memory; a forward of simple terms goes
 * a faster way where queries are few (decode.c) or all is stored in bf16 (bf16.c). Each has two functions:
 * *_lay_out takes the pieces of an arena, which on an arena without memory only counts them, and *_run
 * computes. A workspace, made before its runs are known, is counted with for_any_run set.
 */
#ifndef PE_ENGINE_ATTEND_H
#define PE_ENGINE_ATTEND_H

#include "engine/score/attention.h"

enum { PE_ATTEND_BIAS = 0 }; /* a run besides POSENC_RUN_ATTEND, _ATTEND_BACKWARD and _SCORES */

/* What any run of these sizes and this type of q takes from the arena. */
void pe_attend_lay_out(const pe_attention *a, int run, int reference, pe_arena *arena);

/* How many keys a few queries of a plan may have at most, known not to go part by part. */
int64_t pe_attend_whole_keys(const pe_attention *a, int reference);

/* S: the scores before masks, or [H,Lq,Lk] what the terms add whatever the content (positions of batch item
   0; always the reference), or the cotangent of that. */
void pe_attend_run(const pe_attention *a, int run, int reference, const posenc_tensor *S, pe_arena *arena);

#endif
