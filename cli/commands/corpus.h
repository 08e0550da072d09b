/* SPDX-License-Identifier: MIT */
/*
 * corpus.h: what `posenc compare` trains on: the bytes of texts, or the ids of tokens
 *
 * With --tokens it is the ids of an .npy file, as the user's tokenizer cut a text; with --token-bytes another
 * one says how many bytes each id stands for.
 */
#ifndef CLI_CORPUS_H
#define CLI_CORPUS_H

#include "cli/frame/cli.h"
#include "train/compare.h"

enum { CORPUS_NAME = 120 };

typedef struct corpus {
    unsigned char *bytes;  /* of texts; NULL: tokens */
    uint16_t      *tokens; /* ids */
    int32_t       *token_bytes;
    size_t         size, kinds;       /* bytes or tokens; numbers of token_bytes */
    char           name[CORPUS_NAME]; /* for titles, without folders */
} corpus;

/* Reads it: process 0, from which all others have it. CLI_DONE, or an exit status after printing what is
   wrong. Free it whatever the status. */
int  corpus_read(corpus *c, const cli_args *args);
void corpus_put(pe_compare_config *config, const corpus *c);
void corpus_free(corpus *c);

#endif
