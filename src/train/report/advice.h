/* SPDX-License-Identifier: MIT */
/*
 * advice.h: which of several to recommend for one need, and how sure that is
 *
 * A contest is about one number per candidate, of which less is better: a loss, a share of wrong answers,
 * work. The recommendation names everybody who cannot be told from the first; so a tie stays a tie.
 */
#ifndef PE_TRAIN_ADVICE_H
#define PE_TRAIN_ADVICE_H

#include "train/run/stats.h"

typedef struct pe_contest {
    int           count;
    const double *value;      /* [count]; NaN: takes no part */
    double        resolution; /* smaller differences are not told by these runs, whatever their interval says;
                                 0: the intervals know all */
    double margin;            /* one as large is not in the group, only not excluded */
    double matters;           /* a group is a tie where no difference can be as large; 0: not asked */
    double most;              /* a larger number is no success */
    /* value[other] - value[first], with its 95 % interval */
    pe_interval (*behind)(const void *self, int other, int first);
    /* Does their order change with the training? NULL: nobody has looked. */
    int (*is_moving)(const void *self, int other, int first);
    const void *self;
} pe_contest;

typedef enum pe_confidence {
    PE_SETTLED, /* the first is told from all others */
    PE_TIE,     /* several cannot be told apart, and differ by little, whatever their intervals hold */
    PE_OPEN,    /* another may be as good, or better: an interval is wide, or the order still moves */
    PE_SINGLE,  /* nothing was compared with it */
    PE_FAILED_ALL,
    PE_NOBODY
} pe_confidence;

enum { PE_MOST_ADVISED = 64 };

typedef struct pe_advice {
    pe_confidence confidence;
    int           group[PE_MOST_ADVISED]; /* the first and who ties with it, least number first */
    int           count;
    int           doubtful[PE_MOST_ADVISED]; /* not in the group, and not excluded */
    int           doubtful_count;
} pe_advice;

pe_advice   pe_advice_decide(const pe_contest *c);
const char *pe_advice_name(pe_confidence confidence);

#endif
