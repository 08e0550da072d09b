/* SPDX-License-Identifier: MIT */
/*
 * words.h: what `posenc explain SPEC --words` computes, and shows
 *
 * Two sentences of the same words in two orders go through one layer of attention, four times: without an
 * encoding and with it, without a mask and under a causal one. words.c reads the sentences and computes,
 * words_shown.c prints.
 */
#ifndef CLI_WORDS_H
#define CLI_WORDS_H

#include "cli/commands/explain/explain.h"

enum { CLI_WORDS_MOST = 16 };
enum { CLI_WORDS_PLAIN, CLI_WORDS_CODED, CLI_WORDS_ENCODINGS };
enum { CLI_WORDS_OPEN, CLI_WORDS_CAUSAL, CLI_WORDS_MASKS };
enum { CLI_WORDS_SENTENCES = 2 };

/* What one sentence becomes. Queries are as the scores see them: rotated, where the encoding rotates. */
typedef struct cli_words_layer {
    double *y; /* [L,d]: the embedded words */
    double *q; /* [H,L,D] */
    double *S; /* [H,L,L], before the mask */
    double *W; /* [H,L,L] */
    double *o; /* [H,L,D] */
    int     is_rotated;
} cli_words_layer;

/* Both sentences under one encoding and mask, and the largest difference of what belongs to the same words in
   both; `sum`: of the sums of all outputs. */
typedef struct cli_words_run {
    int             is_made; /* not without a mask that the encoding needs, and nope only once */
    int             is_coded, is_causal;
    cli_words_layer layers[CLI_WORDS_SENTENCES];
    double          y, q, S, W, o, sum;
} cli_words_run;

typedef struct cli_words {
    cli_explanation *x;
    pe_calc         *p;
    posenc_encoding *plain;                                     /* nope */
    const char      *said[CLI_WORDS_SENTENCES][CLI_WORDS_MOST]; /* the words of both, in their order */
    int64_t          id[CLI_WORDS_MOST];    /* of each word of the first; equal words have the same */
    int64_t          order[CLI_WORDS_MOST]; /* word i of the second sentence is word order[i] of the first */
    int64_t          place[CLI_WORDS_MOST]; /* word i of the first sentence is word place[i] of the second */
    int64_t          L, V, d, H, D;
    double           start;      /* position of the first word */
    double          *table;      /* [V,d] */
    double          *W[3];       /* [d,H*D]: of queries, keys and values */
    double           by_one_hot; /* largest difference of one-hot x table and the rows looked up */
    cli_words_run    runs[CLI_WORDS_ENCODINGS][CLI_WORDS_MASKS];
} cli_words;

/* Are the two orders told apart? Outputs are sums of numbers of size 1: less is round-off. */
static inline int cli_words_differ(const cli_words_run *run)
{
    return run->o > 1e-9;
}

/* Reads the sentences and computes; what it cannot do is refused by w->p. w->plain is to be freed; all other
   memory is of x. */
void cli_words_make(cli_words *w, cli_explanation *x);

#endif
