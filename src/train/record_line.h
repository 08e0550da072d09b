/* SPDX-License-Identifier: MIT */
/*
 * record_line.h: what the lines of runs.jsonl have in common, whatever their runs train on
 */
#ifndef PE_TRAIN_RECORD_LINE_H
#define PE_TRAIN_RECORD_LINE_H

#include <jansson.h>
#include <posenc/posenc.h>

#define PE_RECORD_FORMAT "posenc compare run"

/* An identity as text; malloc'd, NULL without memory. */
char *pe_record_text(const json_t *identity);
/* The fingerprint of an identity as a string; NULL without memory. */
json_t *pe_record_run(const json_t *identity);
/* The object as a line with its check, malloc'd, and the object released. MEMORY, naming the label. */
posenc_status pe_record_seal(char **line, json_t *json, const char *label, posenc_error *err);
/* The line as an object of ours; NULL, with the reason, if it is none. */
json_t *pe_record_open(const char *line, posenc_error *err);
/* FORMAT: the line lacks something. */
posenc_status pe_record_damaged(posenc_error *err, const char *what);
/* null where x is not finite, and NaN where there is no number. */
json_t *pe_record_number(double x);
double  pe_record_real(const json_t *json, const char *key);

#endif
