/* SPDX-License-Identifier: MIT */
/*
 * diagnose.h: what is wrong with positions that another program computed, and why
 *
 * Given what a model's own code made (cosines and sines, a mask, positions) and what its config asks for,
 * these functions say whether they agree, where first they do not, and which known mistake gives just these
 * numbers: a cause is named only where it fits everything that was given. Nothing here trains, reads files or
 * prints.
 */
#ifndef PE_DIAGNOSE_H
#define PE_DIAGNOSE_H

#include <posenc/registry.h>

enum { PE_CAUSE = 200, PE_MOST_CONVENTIONS = 96 };

/* Channels of a head that is looked at: which are pairs is tried for every width below it. */
enum { PE_WIDEST = 1024 };

/* ---------------------------------------------------------------- conventions: conventions.c - */

/* The same encoding, understood otherwise: the sign, the start, or one setting. */
typedef struct pe_convention {
    char             words[PE_CAUSE]; /* "layout is half" */
    posenc_encoding *e;               /* owned by the list; NULL: the given one */
    int              shift, inverse;  /* positions are so much more; angles turn the other way */
} pe_convention;

typedef struct pe_conventions {
    pe_convention items[PE_MOST_CONVENTIONS];
    int           count;
} pe_conventions;

/* The likely ones first. Settings that do not go together are left out. */
posenc_status pe_conventions_create(pe_conventions **list, const posenc_encoding *e, posenc_error *err);
void          pe_conventions_free(pe_conventions *list); /* NULL is fine */

/* ---------------------------------------------------------------- rotation: turns.c --------- */

/* Another encoding of the same model, whose numbers may have been taken. */
typedef struct pe_rival {
    const char            *words; /* "the table of full_attention layers" */
    const posenc_encoding *e;
    const posenc_tensor   *params;
} pe_rival;

/* Cosines and sines [rows, width] that a program turns by at positions [rows], one coordinate each; width is
   twice the pairs, as halves or neighbours. D: width of a head. params: of e, as posenc_rotate takes them. */
typedef struct pe_turns {
    const posenc_encoding *e;
    const posenc_tensor   *params;
    int64_t                D, rows, width;
    const double          *positions, *cosines, *sines;
    const pe_rival        *rivals;
    int                    rival_count;
} pe_turns;

typedef struct pe_turns_verdict {
    int     is_right;           /* within what angles in float32 may differ */
    int     is_interleaved;     /* each number twice, not the halves one after the other */
    double  error, allowed;     /* largest difference of a cosine or sine */
    int64_t row, channel, pair; /* the first that is wrong */
    double  got, wanted;        /* its cosine */
    char    cause[PE_CAUSE];
} pe_turns_verdict;

/* Errors: those of plans; MEMORY. */
posenc_status pe_turns_judge(pe_turns_verdict *verdict, const pe_turns *turns, posenc_error *err);

/* ---------------------------------------------------------------- masks: masks.c ------------ */

/* Which keys queries see, [B,Lq,Lk] bytes; the last query stands at the last key. Queries that are padding
   themselves are not looked at. */
typedef struct pe_seen {
    const unsigned char *seen;
    int64_t              B, Lq, Lk;
    int                  causal;
    int64_t              window;  /* keys with |t| < window; 0: none */
    const unsigned char *allowed; /* [B,Lk] keys that are no padding; NULL: all */
} pe_seen;

typedef struct pe_seen_verdict {
    int     is_right;
    int64_t b, i, j; /* the first that is wrong */
    int64_t wrong;   /* how many */
    char    cause[PE_CAUSE];
} pe_seen_verdict;

pe_seen_verdict pe_seen_judge(const pe_seen *seen);

/* Positions [n] that a model uses against those that it should: the difference in words, "" where there is
   none. */
void pe_positions_judge(char cause[PE_CAUSE], const double *got, const double *wanted, int64_t n);

/* ---------------------------------------------------------------- two implementations ------- */

/* What may differ between two implementations, in the order of pe_departures; a set of them has bit 1 << x.
 */
typedef enum pe_departure {
    PE_LAYOUT,
    PE_DIM,
    PE_DIRECTION,
    PE_BASE,
    PE_SCHEDULE,
    PE_FACTOR,
    PE_POSITIONS,
    PE_MAGNITUDE,
    PE_AXES,
    PE_ANGLES,
    PE_SLOPES,
    PE_BUCKETS,
    PE_SCALE,
    PE_MASK,
    PE_TEMPERATURE,
    PE_SOFTCAP,
    PE_DEPARTURES
} pe_departure;
extern const char *const pe_departures[PE_DEPARTURES];

enum { PE_WORDS = 300, PE_SPEC = 640, PE_MOST_ALTERNATIVES = 12, PE_MOST_ADVICE = 12, PE_MOST_AXES = 8 };

/* What to change, in words. */
typedef struct pe_fixes {
    int  count;
    char words[PE_MOST_ADVICE][PE_WORDS];
} pe_fixes;

/* FOUND: nothing was expected, and this is what it is. */
typedef enum pe_verdict { PE_SAME, PE_DIFFERENT, PE_UNEXPLAINED, PE_FOUND } pe_verdict;

/* One way to understand what was found. */
typedef struct pe_reading {
    unsigned departs;             /* from what is expected */
    char     spec[PE_SPEC];       /* the encoding, as posenc_encoding_create takes it */
    char     words[PE_WORDS];     /* what differs */
    double   step, offset;        /* of the positions: expected times step plus offset */
    char     positions[PE_WORDS]; /* in words: "as expected", "offset by 3" */
    int      axes[PE_MOST_AXES];  /* coordinate n of this reading is that of the expected positions */
    double   magnitude, mismatch; /* factor on cosine and sine; rms difference in units of the rounding */
    char     angles[32];          /* exact, float32, ggml, bfloat16 */
} pe_reading;

/* Heads before and after a rotation, [B,H,L,D] of any strides; positions [B*L,N] as they should be. */
typedef struct pe_dump {
    const char   *name; /* "q" */
    posenc_tensor before, after;
    const double *positions;
} pe_dump;

typedef struct pe_rotation {
    const posenc_encoding *e;      /* a rope as it should be; NULL: nothing is expected */
    const posenc_tensor   *params; /* its parameters */
    pe_dump                sides[2];
    int                    count;       /* of sides: q, k or both */
    int                    coordinates; /* N */
    int                    is_strict;   /* angles=exact was asked for: those of float32 are not right */
} pe_rotation;

typedef struct pe_diagnosis {
    pe_verdict  verdict;
    unsigned    departs;
    pe_reading  found, expected; /* `found` has no spec where the verdict is UNEXPLAINED */
    pe_reading  alternatives[PE_MOST_ALTERNATIVES];
    int         alternative_count;
    pe_fixes    advice;
    double      residual;    /* rms of what the finding leaves over, in units of the rounding of `after` */
    double      difference;  /* the same of what was expected */
    double     *frequencies; /* [pairs] of the finding; pe_diagnosis_free */
    int64_t     pairs;
    const char *side; /* of two the one that this is about, the other being as expected; NULL: both */
} pe_diagnosis;

/* Errors: SHAPE where the sides do not fit; MEMORY; those of plans. */
posenc_status pe_rotation_judge(pe_diagnosis *d, const pe_rotation *in, posenc_error *err);
void          pe_diagnosis_free(pe_diagnosis *d);

/* ---------------------------------------------------------------- scores: scores.c ---------- */

/* Which keys are seen: t = P(i) - P(j) from low to high. */
typedef struct pe_range {
    int64_t low, high;
} pe_range;

/* What makes scores `after` of scores `before`: softcap(scale * before + bias), and a mask. */
typedef struct pe_scores_reading {
    char     encoding[16]; /* none, alibi, t5, distance (a bias of each distance), unknown */
    double   scale;
    int      has_temperature; /* the scale differs from row to row: first .. last */
    double   first, last;
    double   softcap; /* 0: none */
    int      caps;    /* how often it is applied */
    pe_range seen;
    int      is_irregular; /* the mask is no range of distances */
    int64_t  buckets, max_distance;
    int      is_bidirectional;
    double  *slopes; /* [H] of alibi */
    int64_t  heads;
    char     words[PE_WORDS];
} pe_scores_reading;

typedef struct pe_scores {
    posenc_tensor            before, after; /* [B,H,Lq,Lk]; the last query stands at the last key */
    const pe_scores_reading *expected;      /* NULL: nothing is */
} pe_scores;

typedef struct pe_scores_diagnosis {
    pe_verdict        verdict;
    unsigned          departs;
    pe_scores_reading found; /* its slopes: pe_scores_diagnosis_free */
    unsigned          alternatives[PE_MOST_ALTERNATIVES];
    char              alternative_words[PE_MOST_ALTERNATIVES][PE_WORDS];
    int               alternative_count;
    pe_fixes          advice;
    double            residual; /* rms, in units of the rounding of `after`, float32 with that of sums */
} pe_scores_diagnosis;

/* Errors: SHAPE, MEMORY. */
posenc_status pe_scores_judge(pe_scores_diagnosis *d, const pe_scores *in, posenc_error *err);
void          pe_scores_diagnosis_free(pe_scores_diagnosis *d);

/* Which keys queries see: "the last 4 keys up to their own"; returns text. */
enum { PE_RANGE_TEXT = 100 };
const char *pe_scores_range_text(char text[PE_RANGE_TEXT], const pe_range *r, int64_t Lk);

/* The slopes of the paper for H heads. */
void pe_scores_slopes(double *slopes, int64_t H);

#endif
