/* SPDX-License-Identifier: MIT */
/*
 * way.c: the ways to read further, as a table, SPECs and rows
 *
 * A way of a rotation is a SPEC. A way of a table is rows: those of other encodings, which are asked to make
 * f L rows of the L that were trained; so the arithmetic of stretching and of digits stands in their rooms
 * only.
 */
#include "train/jobs/extension.h"

#include "base/status.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* base grows with f^2, about as it did in the field: 10000 to 500000 for eight times the length in LLaMA 2
   Long (Xiong et al. 2023, arXiv:2309.16039), to 10^6 for four times in Code Llama (Roziere et al. 2023,
   arXiv:2308.12950). */
// clang-format off
const pe_way pe_ways[PE_WAYS] = {
    {.family = "rope", .name = "none", .encoding = "rope", .settings = "", .ignores_factor = 1,
     .what = "as it was trained"},
    {.family = "rope", .name = "linear", .encoding = "rope", .settings = "schedule=linear",
     .of_factor = "factor",
     .what = "position interpolation: all frequencies / f (Chen et al. 2023, arXiv:2306.15595)"},
    {.family = "rope", .name = "ntk", .encoding = "rope", .settings = "schedule=ntk", .of_factor = "alpha",
     .what = "NTK-aware: the base times f^(D/(D-2)), so that the slowest pair slows by f and the "
             "fastest not"},
    {.family = "rope", .name = "dynamic", .encoding = "rope", .settings = "schedule=dynamic",
     .of_factor = "factor", .of_length = "max_length", .follows_length = 1,
     .what = "dynamic NTK: as trained up to L; beyond it the base grows with the length"},
    {.family = "rope", .name = "yarn", .encoding = "rope", .settings = "schedule=yarn", .of_factor = "factor",
     .of_length = "original_length",
     .what = "YaRN: slow pairs / f, fast ones unchanged, and scores scaled (Peng et al. 2023, "
             "arXiv:2309.00071)"},
    {.family = "rope", .name = "base", .encoding = "rope", .settings = "", .base_power = 2,
     .what = "another base: 10000 f^2"},
    {.family = "rope", .name = "rerope", .encoding = "rope", .settings = "map=rerope",
     .of_half = "map_window", .ignores_factor = 1, .is_untuned = 1,
     .what = "ReRoPE: no distance is more than L/2 (Su 2023, kexue.fm/archives/9708)"},
    {.family = "rope", .name = "leaky_rerope", .encoding = "rope", .settings = "map=leaky_rerope",
     .of_half = "map_window", .of_press = "map_factor", .is_untuned = 1,
     .what = "leaky ReRoPE: distances beyond L/2 grow 2 f - 1 times more slowly, so that f L is at L"},
    {.family = "rope", .name = "self_extend", .encoding = "rope", .settings = "map=self_extend",
     .of_half = "map_window", .of_press = "map_factor", .is_untuned = 1,
     .what = "Self-Extend: beyond L/2 positions in groups of 2 f - 1 (Jin et al. 2024, arXiv:2401.01325)"},
    {.family = "rope", .name = "dca", .encoding = "rope", .settings = "map=dca", .of_length = "map_chunk",
     .of_quarter = "map_local", .ignores_factor = 1, .is_untuned = 1,
     .what = "dual chunk attention: chunks of 3/4 L, no distance is more than L (An et al. 2024, "
             "arXiv:2402.17463)"},
    {.family = "rope", .name = "drope", .encoding = "nope", .settings = "", .stays_at_L = 1, .norms_heads = 1,
     .what = "DroPE: the rotation is dropped, q and k are normed, and training goes on at L "
             "(arXiv:2512.12167)"},
    {.family = "rope", .name = "kept", .encoding = "rope", .settings = "", .stays_at_L = 1,
     .what = "what DroPE is to be compared with: training goes on at L as it was"},
    {.family = "learned", .name = "random", .ignores_factor = 1,
     .what = "rows from L on as they were initialised"},
    {.family = "learned", .name = "interpolation", .encoding = "learned_resize", .settings = "kind=linear",
     .of_length = "grid_in", .of_longer = "grid_out",
     .what = "L rows stretched to f L, as torch's interpolate does"},
    {.family = "learned", .name = "hierarchical", .encoding = "hierarchical", .settings = "alpha=0.4",
     .of_length = "rows", .ignores_factor = 1, .what = "two digits to base L, one row each (Su 2020)"},
};
// clang-format on

int64_t pe_way_factor(int factor_index)
{
    return (int64_t)2 << factor_index;
}

int pe_way_find(const char *family, const char *name)
{
    for (int i = 0; i < PE_WAYS; i++)
        if (!strcmp(pe_ways[i].family, family) && !strcmp(pe_ways[i].name, name))
            return i;
    return -1;
}

const char *pe_way_tuning_name(int tuning)
{
    return tuning == PE_TUNED ? "tuned" : "untuned";
}

const char *pe_way_bucket_name(int bucket)
{
    return pe_stats_bucket_name(bucket);
}

/* ---------------------------------------------------------------- a way as a SPEC ----------- */

/* encoding[settings of_factor=.. ...]: what of a SPEC depends on factor and length. */
static void write_settings(char *to, size_t n, const pe_way *way, int64_t factor, int64_t L)
{
    const struct {
        const char *name;
        double      value;
    } given[]   = {{way->of_factor, (double)factor},
                   {way->of_length, (double)L},
                   {way->of_longer, (double)(factor * L)},
                   {way->of_half, (double)(L / 2)},
                   {way->of_quarter, (double)(L / 4)},
                   {way->of_press, (double)(2 * factor - 1)},
                   {way->base_power ? "base" : NULL, 1e4 * pow((double)factor, way->base_power)}};
    size_t used = (size_t)snprintf(to, n, "%s[%s", way->encoding, way->settings);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        if (given[i].name)
            used += (size_t)snprintf(to + used, n - used, "%s%s=%.12g", to[used - 1] == '[' ? "" : " ",
                                     given[i].name, given[i].value);
    snprintf(to + used, n - used, "]");
}

posenc_status pe_way_spec(char spec[PE_LONGEST_SPEC], const pe_way *way, int64_t factor,
                          const posenc_dims *dims, posenc_error *err)
{
    char        given[PE_LONGEST_SPEC];
    const char *row_limit = posenc_encoding_find(way->family)->row_limit;
    if (row_limit) /* the family's own, raised: a table that holds the furthest position */
        snprintf(given, sizeof given, "%s[%s=%lld]", way->family, row_limit,
                 (long long)(PE_FURTHEST * dims->L));
    else
        write_settings(given, sizeof given, way, factor, dims->L);
    return pe_spec_complete(spec, PE_LONGEST_SPEC, given, dims, POSENC_MASK_CAUSAL, err);
}

/* ---------------------------------------------------------------- a way as rows ------------- */

static posenc_status make_rows(float *rows, int64_t count, const posenc_plan *plan, const float *table,
                               int64_t L, int64_t width, posenc_error *err)
{
    const int64_t shape[2] = {L, width}, out[3] = {1, count, width};
    posenc_tensor param     = posenc_tensor_contiguous((float *)table, POSENC_DTYPE_F32, 2, shape),
                  y         = posenc_tensor_contiguous(rows, POSENC_DTYPE_F32, 3, out);
    const posenc_rows_in in = {.size = sizeof in, .params = &param};
    posenc_workspace     work;
    posenc_status        status = posenc_workspace_create(&work, plan, POSENC_RUN_ROWS, NULL, err);
    if (!status)
        status = posenc_rows(plan, &in, &y, &work, err);
    posenc_workspace_free(&work);
    return status;
}

posenc_status pe_way_rows(float *rows, int64_t count, const pe_way *way, int64_t factor, const float *table,
                          int64_t L, int64_t width, posenc_error *err)
{
    char             spec[PE_LONGEST_SPEC];
    posenc_encoding *e       = NULL;
    posenc_plan     *plan    = NULL;
    posenc_options   options = posenc_options_default();
    posenc_dims      dims    = {.B = 1, .H = 1, .G = 1, .Lq = count, .Lk = count, .L = L};
    options.threads          = 1;
    dims.D = dims.Dv = dims.d_model = width;
    write_settings(spec, sizeof spec, way, factor, L);
    posenc_status status = posenc_encoding_create(&e, spec, NULL, err);
    if (!status)
        status = posenc_plan_create(&plan, e, &dims, &options, err);
    if (!status)
        status = make_rows(rows, count, plan, table, L, width, err);
    posenc_plan_free(plan);
    posenc_encoding_free(e);
    return status;
}
