/* SPDX-License-Identifier: MIT */
/*
 * diagnose.h: what the two questions of posenc diagnose share, a rotation and scores
 */
#ifndef CLI_DIAGNOSE_H
#define CLI_DIAGNOSE_H

#include "cli/commands/config.h"
#include "cli/print/print.h"
#include "diagnose/diagnose.h"

typedef struct diagnose_job {
    pe_calc         p;     /* the file before, and the encoding */
    pe_calc         after; /* the file after */
    pe_calc         where; /* of --positions */
    const cli_args *args;
    const char     *before_path, *after_path;
    int             is_blhd, is_json, is_expected;
    int64_t         offset;
    cli_config      config;
    pe_rotation     in;
    pe_diagnosis    d;
    const char     *scores_before, *scores_after, *content;
    int             status;
} diagnose_job;

/* report.c: "half" of "rope[layout=half:base=5e5]", or what is meant where it is not said. */
const char *cli_diagnose_setting(pe_calc *p, const char *spec, const char *name, const char *otherwise);
json_t     *cli_diagnose_names(unsigned departs);
json_t     *cli_diagnose_six_digits(double x);
json_t     *cli_diagnose_fixes(const pe_fixes *m);
int         cli_diagnose_status(pe_verdict verdict);
void        cli_diagnose_print_verdict(pe_verdict verdict, unsigned departs);
void        cli_diagnose_print_names(unsigned departs);
void        cli_diagnose_print_fixes(const pe_fixes *m);
extern const char *const cli_diagnose_verdicts[];

/* scores.c */
void cli_diagnose_scores(diagnose_job *j);

#endif
