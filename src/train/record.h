/* SPDX-License-Identifier: MIT */
/*
 * record.h: a run as a name, and a finished run as one line of text
 *
 * The identity of a run is everything that decides its numbers, as one line of JSON: the encoding with all
 * settings, the model, the optimiser, the seed, the text (by a fingerprint), the version of the program. Two
 * runs with the same identity have the same numbers, so what was kept under it may take the place of
 * training. Threads, machines, names of files and times do not belong to it.
 */
#ifndef PE_TRAIN_RECORD_H
#define PE_TRAIN_RECORD_H

#include "train/run.h"

/* 16 hexadecimal digits: the fingerprint of an identity, which names its checkpoint. */
enum { PE_RUN_NAME = 17 };

/* FNV-1a over n bytes. */
uint64_t pe_fingerprint(const void *bytes, size_t n);

/* The identity of a run; malloc'd, NULL without memory. */
char *pe_run_identity(const pe_run_config *config);
void  pe_run_name(char name[PE_RUN_NAME], const char *identity);

/* What a line says about itself, both malloc'd. FORMAT if it is no whole line of a finished run. */
typedef struct pe_record_head {
    char *identity, *label;
} pe_record_head;
posenc_status pe_record_head_read(pe_record_head *head, const char *line, posenc_error *err);
void          pe_record_head_free(pe_record_head *head);

/* In which member the identities differ that should be the same ("steps is 20 there and 30 here"); empty if
   only in which encoding and which seed. */
void pe_identity_difference(char *text, size_t n, const char *there, const char *here);

/* A finished run as one line of JSON, without the line end; malloc'd. */
posenc_status pe_record_write(char **line, const char *label, const pe_run_config *config,
                              const pe_run_result *result, posenc_error *err);
/* The result that was written, bit for bit. config must have the identity of the line. FORMAT if something is
   missing; free with pe_run_result_free whatever the status. */
posenc_status pe_record_read(pe_run_result *result, const pe_run_config *config, const char *line,
                             posenc_error *err);

#endif
