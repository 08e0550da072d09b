/* SPDX-License-Identifier: MIT */
/*
 * spread.h: how much a trained model's numbers vary from one seed to another
 *
 * Two or three seeds show that badly by themselves, one not at all. So the variances of all encodings of a
 * comparison are estimated together, and with variances that were measured beforehand: spread.c.
 */
#ifndef PE_TRAIN_SPREAD_H
#define PE_TRAIN_SPREAD_H

#include "train/run/stats.h"

/* Encodings vary alike that fare alike: classes by loss in a bucket / loss at L, up to 1.1, up to 1.4, and
   above. -1 for NaN. */
enum { PE_SPREAD_CLASSES = 3 };
int pe_spread_class(double ratio);

/* One bucket of a comparison. */
typedef struct pe_spread_runs {
    const double *means;   /* [count, seeds] mean loss of each run */
    const int    *classes; /* [count]; -1: takes no part */
    int           count;
    int64_t       seeds;
    int           bucket;
    double        unit; /* of the losses, in nats per byte */
} pe_spread_runs;

/* Fills spreads [count], and own [count]: each encoding's variance by itself, with 0 degrees of freedom where
   there is one seed. */
void pe_spread_estimate(pe_spread *spreads, pe_spread *own, const pe_spread_runs *runs);

/* Of the difference of two readings of the same models in a bucket, of these classes (their own spreads are
   not looked at). */
pe_spread pe_spread_of_readings(const pe_stats_sample *a, const pe_stats_sample *b, int bucket, int class_a,
                                int class_b, double unit);

/* Of a share of right answers among n sequences, given for each seed; chance: what guessing gets. */
pe_spread pe_spread_of_rate(const double *by_seed, int64_t seeds, int64_t n, double chance);

/* What was measured beforehand: the variance between seeds, and as degrees of freedom how alike it is among
   the encodings of a class. */
pe_spread pe_spread_stored(int bucket, int class, double unit);

/* What to say before a comparison with so many seeds; NULL: nothing. */
const char *pe_spread_advice(int64_t seeds);

#endif
