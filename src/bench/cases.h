/* SPDX-License-Identifier: MIT */
/* cases.h: the list of cases while it is made: each file of goals adds its own rows. */
#ifndef PE_BENCH_CASES_H
#define PE_BENCH_CASES_H

#include "bench/bench.h"

typedef struct pe_case_list {
    pe_bench_case *rows;
    int            count, room, is_full; /* is_full: there was no memory for a row */
} pe_case_list;

/* Adds a copy of `c` under the name that `format` makes. */
void pe_add_case(pe_case_list *to, const char *goal, pe_bench_case c, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* "causal", "both ways"; "half", "interleaved"; "f32", "bf16": words of names. */
const char *pe_mask_word(int mask);
const char *pe_dtype_word(posenc_dtype dtype);

/* One per file of goals, called in this order. */
void pe_machine_cases(pe_case_list *to);
void pe_rotation_cases(pe_case_list *to);
void pe_table_cases(pe_case_list *to);
void pe_attention_cases(pe_case_list *to);
void pe_growth_cases(pe_case_list *to);
void pe_training_cases(pe_case_list *to);
void pe_floater_cases(pe_case_list *to);

#endif
