/* SPDX-License-Identifier: MIT */
/*
 * trial.h: which learning rate each encoding is compared at
 *
 * One rate for all would be right for one encoding and wrong for another. So each is tried at several rates,
 * with the first seed, on a share of the steps, each trial with a whole schedule of its own; the runs proper
 * have the rate of the best trial.
 *
 * The choice must not be made on the windows that score the comparison, or the winner would owe some of its
 * lead to luck there. It is made on the last bytes of the training part, which no run of the comparison is
 * then trained on (pe_text.spared): short windows, read by a follow-up of the trial (run.h).
 * docs/experiments.md, section 18.
 */
#ifndef PE_TRAIN_TRIAL_H
#define PE_TRAIN_TRIAL_H

#include "train/jobs/outcome.h"

/* What the follow-up of a trial reads. Its numbers: the mean loss of each window at [L/2, L). */
typedef struct pe_trial_plan {
    int64_t windows; /* of L bytes */
    int64_t batch;   /* of training */
    char    name[64];
} pe_trial_plan;

typedef struct pe_trials {
    double          rates[PE_MOST_RATES]; /* the lowest first */
    int             rate_count;           /* 1: there is nothing to choose, and no trial */
    double          share;                /* of the steps */
    pe_trial_plan   plan;
    pe_run_followup followup;
    int             encodings;
    pe_outcome     *outcomes; /* [encodings, rate_count], one run each; NULL where there are none */
    int            *chosen;   /* [encodings] number of its rate; -1: not chosen yet */
} pe_trials;

/* The trials of a comparison whose encodings are known. Sets the rate of every outcome where there is only
   one. ARGUMENT for what is no list of rates, and for a text that is too short for a choice. */
posenc_status pe_trial_list_create(pe_compare *c, posenc_error *err);
void          pe_trial_list_free(pe_trials *trials); /* NULL is fine */
int64_t       pe_trial_runs(const pe_trials *trials);

/* The trial of encoding i at rate number r. */
pe_outcome *pe_trial_at(const pe_trials *trials, int i, int r);
/* Its mean loss on the windows for the choice; NaN where it diverged or did not finish. */
double pe_trial_loss(const pe_trials *trials, int i, int r);
int    pe_trial_all_ended(const pe_trials *trials);
/* Fills `chosen`: the rate of the lowest loss, of equals the lowest rate. */
void pe_trial_choose(pe_trials *trials);
/* -1 or 1: the rate of encoding i is the lowest or highest that was tried, so that a better one may lie
   beyond; 0: it is neither, or nothing was tried. */
int pe_trial_edge(const pe_trials *trials, int i);

/* "0.001, 0.002"; "" where nothing was tried. */
enum { PE_RATES_TEXT = 128 };
void pe_trial_write_rates(char text[PE_RATES_TEXT], const pe_trials *trials);

/* So many of the steps. */
int64_t pe_trial_steps(int64_t steps, double share);
/* What a rate for `all` steps is where only `steps` are trained: the best one falls as the root of the steps
   (docs/decisions/0014-recipe.md). */
double pe_trial_rate(double rate, int64_t steps, int64_t all);

#endif
