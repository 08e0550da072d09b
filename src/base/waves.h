/* SPDX-License-Identifier: MIT */
/*
 * waves.h: sines and cosines of one coordinate as channels of rows
 *
 * Every sinusoidal table is the same two numbers per frequency, put into different channels: rooms decide
 * which frequency goes where, this fills the channels in, and folds cotangents of the channels back for a
 * factor before all of them. One frequency for all rows at a time, so that its power is paid once. Angles are
 * exact (base/angle.h).
 */
#ifndef PE_BASE_WAVES_H
#define PE_BASE_WAVES_H

#include <stdint.h>

/* n rows of `width` channels, and where they stand: row s at pos[s*step]. A row at NAN or at `blank` has no
   waves. */
typedef struct pe_waves {
    const double *pos;
    int64_t       n, step, width;
    double        blank; /* NAN: none */
} pe_waves;

/* Where waves go in a row: sine k in channel sine + k*step, cosine k in channel cosine + k*step, as far as
   the row is wide; step 1, or 2: pairs, the sine first. Every channel is one of them. */
typedef struct pe_wave_form {
    int64_t sine, cosine, step;
    double  blank; /* position of a zero row, NAN: none */
} pe_wave_form;

/* base^(-k/N), rounded once: a far position multiplies its error. The first frequency is 1 whatever N is: a
   denominator of 0 leaves that one, and 0 for all others. */
double pe_wave_frequency(double base, double k, double N);

/* out[s*width + sine] = size * sin(pos*w) and out[s*width + cosine] = size * cos(pos*w). A channel below 0,
   or at or beyond width, is left out. */
void pe_wave_fill(const pe_waves *x, double w, int64_t sine, int64_t cosine, double size, double out[]);

/* The sum over all rows of dout * wave in these channels: the gradient of `size`. */
double pe_wave_fold(const pe_waves *x, double w, int64_t sine, int64_t cosine, const double dout[]);

#endif
