/* SPDX-License-Identifier: MIT */
/*
 * registry.h: which encodings there are, and what is known about each
 *
 * Places, settings, parameters, numbers of the papers, settings for a small model: constant text, from which
 * `posenc list`, the tests and the report are made; and random numbers. Pointers live as long as the program.
 */
#ifndef POSENC_REGISTRY_H
#define POSENC_REGISTRY_H

#include <posenc/posenc.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum posenc_place {
    POSENC_PLACE_INPUT = 0, /* vectors added to the embeddings: posenc_rows */
    POSENC_PLACE_ROTARY,    /* q and k are rotated by their positions: posenc_rotate, posenc_attend */
    POSENC_PLACE_SCORE,     /* terms added to the scores: posenc_attend */
    POSENC_PLACE_WEIGHT     /* what multiplies the values is changed: posenc_attend */
} posenc_place;

enum { POSENC_PLACE_COUNT = 4 };

/* One setting of an encoding. `default_value` is text; "" means absent (the encoding then
   decides by the rule in `meaning`). `range` says what is accepted: "half|interleaved", "2..", "yes|no". */
typedef struct posenc_setting_info {
    const char *name, *type, *default_value, *range, *meaning;
} posenc_setting_info;

/* One parameter: `shape` in glossary letters and setting names, e.g. "num_buckets,H" ("H if per_head": an
   axis that a flag calls for; "window1" is the first number of the list `window`; "" is a single number).
   `trainable` 0 means that it has a fixed value which a caller may still replace (ALiBi's slopes). */
typedef struct posenc_param_info {
    const char *name, *shape, *init, *meaning;
    int         trainable;
} posenc_param_info;

/* An input per token that the model makes, beside q, k and v: [B, H or G or 1, L, channels], L that of the
   queries or of the keys; [B, G or 1, L, channels] where keys themselves follow it (key_heads). `channels` is
   an expression of settings and sizes. A model that learns it projects hidden states to it, y = x W + b, with
   W from a normal distribution of variance 1/d_model and all of b at `bias`, and makes of y what `made`
   says. */
typedef enum posenc_token_made {
    POSENC_TOKEN_PLAIN = 0, /* y */
    POSENC_TOKEN_UNIT,      /* y/|y|, each head for itself */
    POSENC_TOKEN_UP_TO_2    /* 2/(1 + e^-y) */
} posenc_token_made;

typedef struct posenc_token_info {
    const char       *name, *channels, *meaning;
    int               of_keys; /* one for each key; else one for each query */
    double            bias;
    int               key_heads;
    posenc_token_made made;
} posenc_token_info;

/* What an encoding is, as constant text; arrays end at the counts given. `title`: a few words, in lower case.
   `paper`: "arXiv:2108.12409" or a short address, at most 24 characters: `posenc list` is 100 columns wide.
   `models`: who uses it, "research" or "" if no known model does. `pictures`: those that `posenc plot` makes
   of it, by the names of its place in src/plot/picture.c, as in "bias,mass"; "": none. */
typedef struct posenc_encoding_info {
    const char                *name, *title, *paper, *models, *pictures;
    posenc_place               place;
    const posenc_setting_info *settings;
    int                        setting_count;
    const posenc_param_info   *params;
    int                        param_count;
    int         by_distance; /* the scores see only t: shifting all positions changes nothing */
    int         causal_only; /* has no meaning without a causal mask */
    const char *why_causal;  /* the reason, where causal_only is set; else NULL */
    const char *row_limit;   /* the setting that says how many positions have a row each; NULL: none has */
    const char *at_length; /* settings that suit Lk positions where the default ones do not; NULL: they do */
    const char *scale;     /* score: the default of the setting scale; NULL: 1/sqrt(D) */
    const char *sees;      /* what scores see, where positions do not matter; NULL: distances or positions */
    int by_word; /* input: a row belongs to a word too and replaces its vector; positions are (id, P) */
    int replaces_softmax; /* weight: nothing is divided by a sum; else factors multiply a softmax */
    const char *beyond;   /* a sentence of at most 95 characters: what it does beyond the trained length */
    /* With default settings, in the glossary's letters: UTF-8 lines with frac{a}{b}, sqrt{a}, x_{h,i}^2. */
    const char *formula;
    /* What the letters of the formula mean that the glossary does not have: lines "w_m: the frequency ...".
     */
    const char              *symbols;
    const posenc_token_info *tokens; /* all that any settings call for */
    int                      token_count;
} posenc_encoding_info;

/* The only list of encodings there is. Names are found without regard to case: "RoPE" is rope. */
POSENC_API int                         posenc_encoding_count(void);
POSENC_API const posenc_encoding_info *posenc_encoding_info_at(int index);     /* NULL outside */
POSENC_API const posenc_encoding_info *posenc_encoding_find(const char *name); /* NULL if unknown */
POSENC_API const char *posenc_encoding_nearest(const char *name);              /* spelling help; never NULL */
POSENC_API const char *posenc_place_name(posenc_place place);                  /* "input" ... */

/* The part of e at a place, or NULL. */
POSENC_API const posenc_encoding_info *posenc_encoding_part(const posenc_encoding *e, posenc_place place);

/* What parameter `index` of e is (posenc_param_name), NULL outside; and whether training changes it, with e's
   settings (alibi[learned=yes] trains its slopes). */
POSENC_API const posenc_param_info *posenc_param_describe(const posenc_encoding *e, int index);
POSENC_API int                      posenc_param_trainable(const posenc_encoding *e, int index);

/* Token input `index` of e (0 .. posenc_token_count-1): what it is, and its name, which is plain in
   combinations too and lives as long as e; NULL outside. shape receives [B,H,L,n] for dims, L that of queries
   or of keys; a run may bring G heads or 1 in the place of H: query head h then reads head floor(h Ht/H) of
   Ht. Errors: ARGUMENT (index, NULL), SETTING (settings that do not fit dims). */
POSENC_API const posenc_token_info *posenc_token_describe(const posenc_encoding *e, int index);
POSENC_API const char              *posenc_token_name(const posenc_encoding *e, int index);
POSENC_API posenc_status posenc_token_shape(const posenc_encoding *e, const posenc_dims *dims, int index,
                                            int64_t shape[4], posenc_error *err);

/* What one layer of a model has of a SPEC per layer. `spec` is for posenc_encoding_create. A query of the
   layer sees the keys with t < window only (POSENC_MASK_WINDOW); 0: it has no window. After `period` layers
   the whole repeats. */
typedef struct posenc_layer {
    char    spec[1024];
    int64_t window, period;
} posenc_layer;

/* Reads layer `index`, from 0, of a SPEC per layer: "rope[window=32]:3/nope" are entries in the order of the
   layers, joined by '/'; ":n" after an entry repeats it for n layers, and the whole repeats to the last
   layer. `window` is a setting of every entry (of a part that has such a setting itself, as swin has, it is
   the part's). Any SPEC is one entry. Encodings are not looked at. Errors: ARGUMENT (NULL, index below 0),
   SETTING (an empty entry, one that is too long, a window or a count that is no whole number from 1, two
   windows). */
POSENC_API posenc_status posenc_layer_read(posenc_layer *layer, const char *spec, int64_t index,
                                           posenc_error *err);

/* Settings that every encoding accepts (scale, temperature, sink ...) in addition to its own (settings may be
 * NULL). Returns their count. */
POSENC_API int posenc_common_settings(const posenc_setting_info **settings);

/* The settings with which an encoding is tried in a small model that is trained at dims->L under `mask`
   (`compare`), as text for posenc_encoding_create; each encoding states its own. Without POSENC_MASK_CAUSAL
   keys in the future count as well, which may call for others (t5: buckets for both directions). buf receives
   at most n bytes. Errors: SETTING (name; a setting that does not fit dims), ARGUMENT (NULL, n too small). */
POSENC_API posenc_status posenc_small_model(const char *name, const posenc_dims *dims, int mask, char *buf,
                                            size_t n, posenc_error *err);

/* Worked numbers from the paper, stated by each encoding: the value at (a,b,c) under `settings`.
   input: row a, channel b. rotary: frequency of pair a. score: bias of head a, query at b, key at c.
   Each parameter that training changes holds 0, 1, 2, ... in memory order, and so 0 if it is a single number;
   the others hold what posenc_param_init gives. */
typedef struct posenc_example {
    const char *settings; /* settings and sizes, e.g. "H=8 form=distance" */
    int64_t     a, b, c;
    double      value;
    const char *source;
} posenc_example;

/* Returns their count; 0 and NULL for an unknown name. examples may be NULL. */
POSENC_API int posenc_examples(const char *name, const posenc_example **examples);

/* Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): number `index` of the stream named by
   seed and name (NULL: ""); the same everywhere, in any order. Uniform in [0,1), and standard normal. */
POSENC_API double posenc_random_uniform(uint64_t seed, const char *name, uint64_t index);
POSENC_API double posenc_random_normal(uint64_t seed, const char *name, uint64_t index);

/* Number `index` of the instruction sets that this processor runs, best last: "plain", "avx2", "avx512",
   "avx512bf16", or "plain", "neon"; NULL beyond. */
POSENC_API const char *posenc_isa_at(int index);

#ifdef __cplusplus
}
#endif
#endif
