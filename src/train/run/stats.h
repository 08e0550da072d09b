/* SPDX-License-Identifier: MIT */
/*
 * stats.h: from losses by position to what may be claimed
 *
 * Buckets of positions, intervals of differences and ratios, ranks that are shared where the data cannot
 * tell. Nothing here knows an encoding or a file. Definitions: docs/experiments.md, section 8.
 */
#ifndef PE_TRAIN_STATS_H
#define PE_TRAIN_STATS_H

#include <posenc/registry.h>
#include <stdint.h>

/* Positions of a window of R L: [0,L/2), [L/2,L), [L,2L), [2L,4L), ... [R L/2,R L). PE_BUCKETS of them where
   R is PE_REACH, as in all presets. */
enum { PE_BUCKETS = 5, PE_MOST_BUCKETS = 8, PE_AT_HALF = 0, PE_AT_L, PE_AT_2L, PE_AT_4L, PE_AT_8L };
enum { PE_REACH = 8, PE_LONGEST_REACH = 64 };
/* The last of them, and how many there are. */
int pe_stats_furthest(int64_t reach);
int pe_stats_buckets(int64_t reach);

/* First position of bucket b, 0 <= b <= pe_stats_buckets(R): bucket b is [edge(b), edge(b+1)). */
int64_t pe_stats_bucket_edge(int64_t L, int bucket);
/* "L/2..L", "x2" ...: short, for a table's head. */
const char *pe_stats_bucket_name(int bucket);
/* The same numbered as lengths: bucket b ends where a window of pe_stats_bucket_edge(L, b + 1) bytes does.
   "L/2", "x2" ... */
const char *pe_stats_length_name(int bucket);

/* means[w] = mean over the bucket of window w. losses [windows, length]. */
void pe_stats_bucket_means(double *means, const float *losses, int64_t windows, int64_t length, int64_t L,
                           int bucket);

/* E |cos| of the angle between two random directions in d dimensions: Gamma(d/2) / (sqrt(pi) Gamma((d +
   1)/2)), which is near sqrt(2 / (pi d)): 0.100 at d = 64, 0.035 at d = 512. (One component of a uniform unit
   vector has density proportional to (1 - x^2)^((d - 3)/2); that is the integral of |x| under it.) */
double pe_stats_random_cosine(int64_t d);

double pe_stats_mean(const double *x, int64_t n);

/* smooth[i] = mean of x over the window of `width` numbers centred at i, cut at the ends. smooth != x. */
void pe_stats_smooth(double *smooth, const double *x, int64_t n, int64_t width);

typedef struct pe_interval {
    double value, low, high; /* the estimate and its 95 % interval */
} pe_interval;

/* The 95 % interval of a rate that was seen in n trials (Wilson 1927): with z = 1.96 and p the rate seen,
   (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n). Within 0 and 1 also where p is one of them. n
   need not be whole: trials that depend on each other count as fewer. */
pe_interval pe_stats_wilson(double rate, double n);

/* A variance, and the degrees of freedom that it is known with. */
typedef struct pe_spread {
    double variance, freedom;
    int    is_odd; /* too large to be from the same population as the others': spread.h */
} pe_spread;

/* What all runs of one encoding measured: x [seeds, windows], and how much their mean varies from one seed to
   another. */
typedef struct pe_stats_sample {
    const double *x;
    int64_t       seeds, windows;
    pe_spread     spread;
} pe_stats_sample;

/* mean(a) - mean(b), and mean(a) / mean(b), over the same seeds and windows. */
pe_interval pe_stats_difference(const pe_stats_sample *a, const pe_stats_sample *b);
pe_interval pe_stats_ratio(const pe_stats_sample *a, const pe_stats_sample *b);

/* With so many seeds the interval of a difference as large as the one seen would exclude zero in four of five
   comparisons; PE_MOST_SEEDS + 1: with more than PE_MOST_SEEDS, or never. */
enum { PE_MOST_SEEDS = 50 };
int pe_stats_seeds_to_settle(const pe_stats_sample *a, const pe_stats_sample *b);

/* The 97.5 % quantile of Student's t; the probability that a ratio of two variances of the same population is
   above f (F distribution). Degrees of freedom need not be whole. */
double pe_stats_student(double freedom);
double pe_stats_above_f(double f, double freedom, double freedom_below);

/* Entropy in nats of symbols that were counted: -sum p ln p. A model that knows nothing but how frequent each
   symbol is has this loss. */
double pe_stats_entropy(const int64_t *counts, int64_t n);

/* Sorts `count` indices of keys, the lowest key first and NaN last; equals stay in order. */
void pe_stats_sort(int order[], const double *keys, int count);

/* Ranks from 1; NaN gets 0. Taken in the order of their means, an item shares the rank of the leader of the
   group before it unless differs(self, leader, item) says that the two can be told apart; then it leads the
   next group, and its rank is 1 + the number of items before it. */
void pe_stats_rank(int *ranks, const double *means, int count,
                   int (*differs)(void *self, int better, int worse), void *self);

/* The largest position p with smooth(p) <= limit, or -1. */
int64_t pe_stats_break_position(const double *smooth, int64_t n, double limit);

#endif
