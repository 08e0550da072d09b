/* SPDX-License-Identifier: MIT */
/*
 * angle.h: cosine and sine of position * frequency, of the exact product
 *
 * The usual double product p*w loses what a large position makes of w's last bits, and libm then reduces the
 * wrong number. Here w is kept in quarter turns as a double-double (k_hi + k_lo = w * 2/pi), the whole
 * quarter turns are removed exactly, and what is left, |r| <= 1/2, goes to short polynomials. Because quarter
 * turns are removed first, zeros of both functions sit at r = 0 and keep relative accuracy.
 *
 * Error  |p| <= 2^31: in double at most 2.3e-16 absolute, and 1e-15 relative plus |p*w| * 2^-104 absolute:
 *        what two doubles leave of k, seen only next to a zero; rounded to float at most 0.501 ulp, zeros
 *        included
 * Needs  a correctly rounded fma and no contraction of h - n into one (-ffp-contract=off)
 * Source the method of Cody and Waite with 2/pi in two doubles
 */
#ifndef PE_BASE_ANGLE_H
#define PE_BASE_ANGLE_H

typedef struct pe_frequency {
    double k_hi, k_lo; /* w in quarter turns */
} pe_frequency;

pe_frequency pe_frequency_of(double w);
void         pe_cos_sin(double position, pe_frequency k, double *cosine, double *sine);

/* Of the exact sum of n products position[i] * k[i]: a place of several coordinates, or the way from one
   angle to another. What is left of each product after its whole quarter turns is summed as a
   double-double. */
void pe_cos_sin_sum(int n, const double position[], const pe_frequency k[], double *cosine, double *sine);

#endif
