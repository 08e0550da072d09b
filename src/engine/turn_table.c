/* SPDX-License-Identifier: MIT */
/* Tables of cosines and sines. Contract: turn.h. */
#include "engine/turn_angles.h"

/* The pairs of block i into its part of a row: cosines, then sines. */
static void fill_block(float *to, const pe_turn *turn, int i, const double at[], pe_walk *walk,
                       const pe_kernels *kernels)
{
    const int64_t pairs = turn->start[i + 1] - turn->start[i];
    for (int64_t m = 0; m < pairs; m += PE_TURN_CHUNK) {
        const int64_t n = pairs - m < PE_TURN_CHUNK ? pairs - m : PE_TURN_CHUNK;
        double        cosine[PE_TURN_CHUNK], sine[PE_TURN_CHUNK];
        pe_turn_chunk(turn, turn->start[i] + m, n, at, walk, kernels, cosine, sine);
        for (int64_t c = 0; c < n; c++) {
            to[m + c]         = (float)cosine[c];
            to[m + c + pairs] = (float)sine[c];
        }
    }
}

static void fill_row(float *row, const pe_turn *turn, const double at[], const pe_kernels *kernels)
{
    pe_walk walk;
    for (int i = 0; i < turn->blocks; i++)
        fill_block(row + 2 * turn->start[i], turn, i, at, &walk, kernels);
}

int pe_turn_climbs(const pe_turn *turn, const posenc_positions *pos)
{
    return turn->angles == PE_EXACT && !turn->is_matrix && !turn->growth && turn->blocks == 1 &&
           (turn->table_type == PE_AS_F64 || turn->table_type == PE_AS_F32) &&
           (turn->axes == 1 || !pos->array.data);
}

static pe_columns columns_of(const pe_turn *turn)
{
    return (pe_columns){.M = turn->M, .width = 2 * turn->M, .sine = turn->M, .step = 1};
}

void pe_turn_ladder(pe_ladder *ladder, const pe_turn *turn, const pe_kernels *kernels)
{
    const pe_columns columns = columns_of(turn);
    pe_ladder_make(ladder, &columns, turn->k, turn->magnitude, turn->sense, kernels);
}

pe_ladder *pe_turn_ladder_create(const pe_turn *turn, const pe_kernels *kernels)
{
    const posenc_positions range   = posenc_positions_range(0, 1);
    const pe_columns       columns = columns_of(turn);
    if (turn->M == 0 || turn->heads > 1 || pe_turn_spoilt(turn) >= 0 || !pe_turn_climbs(turn, &range))
        return NULL;
    return pe_ladder_create(&columns, turn->k, turn->magnitude, turn->sense, kernels);
}

/* How many of n elements from s on stand at whole positions one after another. */
static int64_t run_of(const posenc_positions *pos, int64_t b, int64_t s, int64_t n)
{
    const double p   = pe_position(pos, b, s);
    int64_t      run = 0;
    if (!pos->array.data && (pos->step == 0 || pos->step == 1))
        return pe_ladder_reaches(p) && pe_ladder_reaches(p + (double)(n - 1)) ? n : 0;
    while (run < n && pe_position(pos, b, s + run) == p + (double)run && pe_ladder_reaches(p + (double)run))
        run++;
    return run;
}

/* Cosines and sines alone; returns how many rows. Scattered positions have the very rounding of double. */
static int64_t fill_some(float *table, int64_t stride, const pe_turn *turn, const posenc_positions *pos,
                         int64_t b, int64_t s, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                         const pe_kernels *kernels)
{
    const int64_t run             = ladder ? run_of(pos, b, s, n) : 0;
    double        at[PE_MAX_AXES] = {0};
    if (run >= PE_LEAST_RUN) {
        pe_ladder_rows(ladder, rung, table, stride, run, pe_position(pos, b, s), stream);
        return run;
    }
    pe_turn_place(turn, pos, b, s, at);
    fill_row(table, turn, at, kernels);
    return 1;
}

void pe_turn_fill(float *table, int64_t stride, const pe_turn *turn, const posenc_positions *pos, int64_t b,
                  int64_t s0, int64_t n, const pe_ladder *ladder, pe_rung *rung, int stream,
                  const pe_kernels *kernels)
{
    for (int64_t s = 0; s < n;)
        s +=
            fill_some(table + s * stride, stride, turn, pos, b, s0 + s, n - s, ladder, rung, stream, kernels);
    for (int64_t s = 0; turn->temperature != PE_NO_TEMPERATURE && s < n; s++) {
        double at[PE_MAX_AXES] = {0};
        pe_turn_place(turn, pos, b, s0 + s, at);
        table[s * stride + 2 * turn->M] = (float)pe_turn_temperature(turn, at);
    }
}

void pe_turn_table(float *table, const pe_turn *turn, const posenc_positions *pos, int64_t b, int64_t s0,
                   int64_t n, const pe_kernels *kernels)
{
    pe_turn_fill(table, pe_turn_width(turn), turn, pos, b, s0, n, NULL, NULL, 0, kernels);
}
