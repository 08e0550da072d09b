/* SPDX-License-Identifier: MIT */
/*
 * search.h: what the parts of the search for a rotation share (rotation.c says how it goes)
 */
#ifndef PE_DIAGNOSE_SEARCH_H
#define PE_DIAGNOSE_SEARCH_H

#include "base/shared/compiler.h"
#include "diagnose/dump.h"

#include <posenc/rotary.h>

enum { PE_SEARCH_TEXT = 400, PE_MOST_PAIRINGS = 24, PE_MOST_THEORIES = 96, PE_LOOK = 160, PE_LOWS = 24 };
static const unsigned pe_to_base = 1u << PE_BASE, pe_to_schedule = 1u << PE_SCHEDULE,
                      pe_to_factor = 1u << PE_FACTOR;

static const double pe_same = 2.5;  /* roundings: less is no difference */
static const double pe_fine = 1e-6; /* relative error of frequencies that were computed in float32 */

typedef struct pe_theory {
    posenc_encoding *e;
    unsigned         departs;
    int              cost; /* hundreds: departures; rest: digits */
    int              pairing;
    double           step, offset;
    double          *list; /* [rows,N] positions that follow no rule; NULL */
    double          *w;    /* [M] speeds that no schedule gives; NULL */
    char             places[PE_WORDS];
    int              axes[PE_MOST_AXES];
    int              low; /* 1 + row of lows; 0: exact or float32 */
    double           size[2], misfit, strict;
    char             words[PE_WORDS];
} pe_theory;

typedef struct pe_paired {
    pe_pairing pairing;
    double     look; /* misfit of a few rows */
    pe_gains  *gains;
    double    *w, *error;           /* [M] measured speeds */
    double     agreed, reach, unit; /* unit: steps of positions in one of the expected */
    double    *of_axes;             /* [N,3,M] w, error and order of each coordinate; NULL: there is one */
    double     reaches[PE_MOST_AXES];
    unsigned   departs;
} pe_paired;

typedef struct pe_search {
    const pe_rotation *in;
    pe_rows           *rows;
    const char        *base;      /* SPEC that theories change */
    char               plain[32]; /* it where nothing is expected */
    int                N;
    pe_paired          pairings[PE_MOST_PAIRINGS];
    int                pairing_count;
    pe_theory          theories[PE_MOST_THEORIES];
    int                theory_count;
    double             floor, noisiness; /* least squares left of any pairing; in units of rounding */
    double             length;           /* largest position + 1 */
    int64_t            look[PE_LOOK];
    int                look_count;
    int                axes[PE_MOST_AXES]; /* which expected coordinate each is taken for */
    double             coarse;             /* relative error of a speed that numbers may be fitted to */
    posenc_error      *err;
} pe_search;

/* What an encoding makes of the pairs of a pairing. */
typedef struct pe_frame {
    pe_course           course;
    posenc_rotary_pair *pairs;
    int64_t             M;
} pe_frame;

typedef struct pe_left {
    double free, wide, strict, bad, cells; /* squares beyond rounded angles of float32; beyond those of
                                              rounded frequencies too; all; cells that are far off, of */
} pe_left;
enum { PE_LOOSE_BASE = 1, PE_LOOSE_FACTOR = 2 };

/* Settings with two numbers to find. */
typedef struct pe_family {
    const char *fixed; /* "schedule=yarn original_length=4096" */
    const char *key;   /* "factor" or "alpha"; NULL: it has none */
    double      base, factor;
} pe_family;

/* spec.c: "half" of "rope[layout=half:base=5e5]"; 0, or what is otherwise, where it is not said. Numbers as
 * printed with few digits. */
int    pe_spec_said(char *value, size_t size, const char *spec, const char *name);
double pe_spec_number(const char *spec, const char *name, double otherwise);
int    pe_spec_is_word(const char *spec, const char *name, const char *word, int otherwise);
/* The expected schedule with another factor, and all else of it the same? */
int pe_spec_is_rescaled(const char *spec, const char *expected);
/* Without the numbers of other schedules than its own: a theory changes the expected SPEC, and leaves them.
 */
void        pe_spec_strip(char *spec);
const char *pe_spec_fewest_digits(char text[40], double x, int digits);
double      pe_spec_nearest_round(double x, double slackness, int *digits);
const char *pe_spec_value(char text[64], const char *spec, const char *name, const char *otherwise);
void        pe_spec_say(char words[PE_WORDS], const char *format, ...) PE_PRINTF(2, 3);

/* frame.c: 0 where it cannot be: an encoding that does not fit the heads, or has parameters that nobody
 * knows. */
void pe_frame_free(pe_frame *f);
int  pe_frame_open(pe_frame *f, const pe_search *s, const posenc_encoding *e);
/* With frequencies that follow the theory's own positions; NULL where these are the expected length's. */
posenc_encoding *pe_frame_follow(pe_frame *f, const pe_search *s, const pe_theory *t);
int              pe_frame_has_channels(const pe_frame *f, const pe_pairing *p);
void             pe_frame_sort(pe_frame *f);

/* misfit.c: Of the rows looked at, or of all; and parts of it. */
double         pe_misfit_place(const pe_search *s, const pe_theory *t, int64_t row, int axis);
double         pe_misfit_longest(const pe_search *s, const pe_theory *t); /* position */
double complex pe_misfit_turned(double size, double angle);
double         pe_misfit_distance(double complex a, double complex b);
void           pe_misfit_measure(pe_theory *t, const pe_search *s, const pe_frame *f, int is_all, pe_left *l);
int            pe_misfit_is_ggml(int low);
/* The gain of fewer bits, ggml aside. */
double complex pe_misfit_low(int low, double w, double p, double size);
const char    *pe_misfit_angles(const pe_theory *t);

/* pairings.c: 0 where an encoding has none of ours. */
int           pe_pairings_of(pe_pairing *p, const pe_search *s, const posenc_encoding *e);
int           pe_pairings_rank(int64_t d, int64_t D);
posenc_status pe_pairings_find(pe_search *s, const pe_pairing *expected);
posenc_status pe_pairings_keep(pe_search *s);
int           pe_pairings_is_rotation(const pe_search *s, const pe_paired *p);

/* places.c: Lists are [rows,N]; restarted: NULL where nothing starts again. */
void    pe_places_find(double *list, const pe_search *s, int pairing, const pe_frame *f, int is_all);
double *pe_places_restarted(const pe_search *s, int pairing);
/* Whole numbers that no rounding of expected positions to fewer bits gives. */
int  pe_places_are_unrounded(const pe_search *s, const double *list);
void pe_places_describe(char words[PE_WORDS], const pe_search *s, const double *list);
void pe_places_settle(pe_theory *t, const pe_search *s, const pe_frame *f, double *list);

/* theories.c: Whether a theory was kept. What is kept is owned by the search. */
posenc_encoding *pe_theories_encoding(const pe_search *s, int pairing, const char *settings);
void             pe_theories_free(pe_theory *t);
int              pe_theories_departures(unsigned departs);
void             pe_theories_keep(pe_search *s, pe_theory *t);
int              pe_theories_try(pe_search *s, int pairing, const char *settings, unsigned departs, int cost,
                                 const char *words);
void             pe_theories_try_measured(pe_search *s, int pairing);
int              pe_theories_best_cost(const pe_search *s);
int              pe_theories_has(const pe_search *s, int cost);
/* The least cost of those that leave hardly anything over. */
int pe_theories_sure_cost(const pe_search *s);
/* So many that it would be neither the answer nor an alternative: verdict.c lists what departs in one more
 * than the answer. */
int pe_theories_are_too_many(const pe_search *s, unsigned departs);
/* Is there one that may be the answer? Those that are kept in the hope of more digits may leave too much
 * over. */
int pe_theories_explain(const pe_search *s);

/* numbers.c: loose: which of the two numbers are to be found. */
void   pe_numbers_text(char text[PE_SEARCH_TEXT], const pe_family *f);
int    pe_numbers_fit(pe_family *f, const pe_search *s, int pairing, int loose);
int    pe_numbers_try(pe_search *s, int pairing, pe_family f, int loose, unsigned departs, const char *words);
double pe_numbers_of_axes(pe_search *s, int p, const char *settings);

/* schedules.c */
void pe_schedules_try(pe_search *s, int p, const char *prefix, unsigned departs);

/* axes.c: `try` with the settings of each rule that pairs may follow coordinates by */
typedef void pe_axes_fn(pe_search *s, int p, const char *settings, unsigned departs);
void         pe_axes_each(pe_search *s, int p, pe_axes_fn *try);

/* lows.c */
void pe_lows_try(pe_search *s);

/* advice.c */
void pe_advice_read(pe_reading *r, const pe_theory *t);
void pe_advice_all(pe_diagnosis *d, double wanted_size);
/* A default is written out where it departs from what the other SPEC says. */
void pe_advice_spell(pe_diagnosis *d);

/* verdict.c: How far what is expected is from what was found, in roundings. */
double pe_verdict_distance(const pe_search *s, int is_strict, pe_theory *expected);
void   pe_verdict_choose(pe_diagnosis *d, pe_search *s);

#endif
