/* SPDX-License-Identifier: MIT */
/*
 * identity.h: what decides the numbers of a run, as one line of JSON
 *
 * The encoding with all settings, the model, the optimiser, the seed, the text (by a fingerprint) or the
 * task, the version of the program. Two runs with the same identity have the same numbers, so what was kept
 * under it may take the place of training. Threads, machines, names of files and times do not belong to it.
 */
#ifndef PE_TRAIN_IDENTITY_H
#define PE_TRAIN_IDENTITY_H

#include "train/run.h"

/* 16 hexadecimal digits: the fingerprint of an identity, which names its file. */
enum { PE_RUN_NAME = 17 };

/* FNV-1a over n bytes. */
uint64_t pe_fingerprint(const void *bytes, size_t n);

/* Malloc'd, NULL without memory. */
char *pe_run_identity(const pe_run_config *config);
void  pe_run_name(char name[PE_RUN_NAME], const char *identity);

/* In which member the identities differ that should be the same ("steps is 20 there and 30 here"); empty if
   only in which encoding and which seed. */
void pe_identity_difference(char *text, size_t n, const char *there, const char *here);

#endif
