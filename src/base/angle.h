/* SPDX-License-Identifier: MIT */
/*
 * angle.h: cosine and sine of the exact product position * frequency
 *
 * The usual double product p*w loses what a large position makes of w's last bits, and libm then reduces the
 * wrong number. Here w is held in quarter turns as a double-double (k_hi + k_lo = w * 2/pi), the whole
 * quarter turns are removed exactly, and the remainder, |r| <= 1/2, goes to short polynomials. Because
 * quarter turns are removed first, zeros of both functions lie at r = 0 and have full relative accuracy.
 *
 * Error  |p| <= 2^31: in double at most 2.3e-16 absolute, and 1e-15 relative plus |p*w| * 2^-104 absolute,
 *        the error of k in two doubles, visible only next to a zero; in float 0.501 ulp, zeros included
 * Needs  a correctly rounded fma and no contraction of h - n into one (-ffp-contract=off)
 * Source the method of Cody and Waite with 2/pi in two doubles
 */
#ifndef PE_BASE_ANGLE_H
#define PE_BASE_ANGLE_H

#include <stdint.h>

typedef struct pe_frequency {
    double k_hi, k_lo; /* w in quarter turns */
} pe_frequency;

pe_frequency pe_angle_frequency(double w);
pe_frequency pe_angle_divided(pe_frequency k, double divisor);
void         pe_angle_cos_sin(double position, pe_frequency k, double *cosine, double *sine);

/* Of the exact sum of n products position[i] * k[i]: several coordinates, or the difference of two angles.
   The remainder of each product after its whole quarter turns is summed as a double-double. */
void pe_angle_cos_sin_sum(int n, const double position[], const pe_frequency k[], double *cosine,
                          double *sine);

/*
 * Waves: sines and cosines of one coordinate as channels of rows
 *
 * Every sinusoidal table is the same two numbers per frequency, put into different channels: rooms decide
 * which frequency goes where, this fills the channels in, and folds cotangents of the channels back for a
 * factor on all of them. One frequency at a time for all rows, so that its power is computed once.
 */

/* n rows of `width` channels, and their positions: row s at pos[s*step]. A row at NAN or at `blank` has no
   waves. */
typedef struct pe_waves {
    const double *pos;
    int64_t       n, step, width;
    double        blank;     /* NAN: none */
    double        divisor;   /* positions are divided by it, as floats; 0: they are not */
    int           is_single; /* angles are products rounded to float, as common Python code makes them: of */
    double        times;     /* position and frequency, then of that and `times`; 0: 1 */
} pe_waves;

/* Where waves go in a row: sine k in channel sine + k*step, cosine k in channel cosine + k*step, as far as
   the row is wide; step 1, or 2: pairs, the sine first. Every channel is one of them. */
typedef struct pe_wave_form {
    int64_t sine, cosine, step;
    double  blank; /* position of a zero row, NAN: none */
} pe_wave_form;

/* base^(-k/N), rounded once, because a far position multiplies its error. The first frequency is 1 whatever N
   is: a denominator of 0 leaves that one, and 0 for all others. */
double pe_angle_base_frequency(double base, double k, double N);

/* The same as common Python code makes it of floats: exp(k * -(ln base / N)), or where `divided` the division
   comes after the product. */
double pe_angle_base_frequency_single(double base, double k, double N, int divided);

/* out[s*width + sine] = size * sin(pos*w) and out[s*width + cosine] = size * cos(pos*w). A channel below 0,
   or at or beyond width, is skipped. */
void pe_angle_wave_fill(const pe_waves *x, double w, int64_t sine, int64_t cosine, double size, double out[]);

/* The sum over all rows of dout * wave in these channels: the gradient of `size`. */
double pe_angle_wave_fold(const pe_waves *x, double w, int64_t sine, int64_t cosine, const double dout[]);

#endif
