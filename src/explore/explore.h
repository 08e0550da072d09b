/* SPDX-License-Identifier: MIT */
/* explore.h: what the parts of the explorer's module share: a request, one encoding of it, and what is
 * answered. */
#ifndef PE_EXPLORE_EXPLORE_H
#define PE_EXPLORE_EXPLORE_H

#include "explore/text.h"
#include "plot/draw.h"

enum {
    PE_EXPLORE_PARAMS = 64,
    PE_EXPLORE_WORDS  = 32,
    PE_EXPLORE_TEXT   = 160,
    PE_EXPLORE_PARTS  = 2,
    PE_EXPLORE_SPEC   = 512
};

/* One encoding of a picture or of a sentence. */
typedef struct pe_explore_part {
    posenc_encoding *e;
    pe_offer         offer;
    pe_picture_data  data;
    posenc_tensor    params[PE_EXPLORE_PARAMS]; /* F64, malloc'd */
    int              varied[PE_EXPLORE_PARAMS]; /* 1: trained, so that its start is no more than a start */
    char             origin[PE_EXPLORE_TEXT];
    int              group; /* of a model's file, whose numbers its parameters are; -1: none */
    pe_picture      *picture;
} pe_explore_part;

/* The words of a request, which the figure names. */
typedef struct pe_explore_words {
    char        text[1024];
    const char *word[PE_EXPLORE_WORDS];
    int         count;
} pe_explore_words;

/* request.c. The value of a line "name=value" of the request, up to n-1 bytes; "" if there is no such line.
 */
const char *pe_explore_value(const char *request, const char *name, char *to, size_t n);
int64_t     pe_explore_whole(const char *request, const char *name, int64_t otherwise);
double      pe_explore_number(const char *request, const char *name, double otherwise);
/* The encoding number `index` of the request (spec, spec2); its parameters for dims, as they are initialised
   or as a model's file has them. */
posenc_status pe_explore_part_read(pe_explore_part *p, const char *request, int index, posenc_error *err);
posenc_status pe_explore_part_params(pe_explore_part *p, const posenc_dims *dims, int64_t seed,
                                     posenc_error *err);
void          pe_explore_part_free(pe_explore_part *p);

/* sentence.c: scores and weights of the words of a sentence under one or two encodings, made from a request:
     words, times   the sentence, said so many times while tables are made for once
     dim, heads, head (from 0), causal, seed, query (from 0)
     q, k           typed vectors, "1 0; 0 1": of each word, or one of all; zeros follow; else drawn by word
     tokens         typed token inputs, "f: 1 -2 0.5": one of each word, or one of all; else drawn
     shift          the position of the first word */
typedef struct pe_explore_sentence {
    pe_figure figure, panels[3 * PE_EXPLORE_PARTS + 2];
    double    changes[PE_EXPLORE_PARTS]; /* the largest change of a weight by the shift */
    double   *numbers;
    char      titles[3 * PE_EXPLORE_PARTS + 3][PE_EXPLORE_TEXT];
} pe_explore_sentence;

posenc_status pe_explore_sentence_make(pe_explore_sentence *s, pe_explore_part *parts, int count,
                                       pe_explore_words *words, const char *request, posenc_error *err);
void          pe_explore_sentence_free(pe_explore_sentence *s);

/* model.c: a model's own file, where the module has the files library; else reading says so. The parameters
   that the file holds of `group`, in the place of initial ones; how many of them training would have changed.
 */
posenc_status pe_explore_model(pe_explore_text *to, const char *json, posenc_error *err);
int           pe_explore_held(pe_explore_part *p, int group);

#endif
