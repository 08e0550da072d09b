/* SPDX-License-Identifier: MIT */
/*
 * build.h: a model while its file is being read
 *
 * The readers (config.c, gguf_model.c) find numbers; this part stores them as groups of facts and knows
 * nothing of file formats. One way to fail: the first refusal sticks in model->status, questions asked after
 * it get harmless answers, and only the end must ask (pe_build_finish). Memory is taken piece by piece and
 * freed with the model; a piece that could not be had is such a refusal.
 */
#ifndef PE_FILES_BUILD_H
#define PE_FILES_BUILD_H

#include <posenc/files.h>

#include "base/shared/compiler.h"
#include "files/arrays/file.h"

enum {
    PE_MODEL_TOWERS   = 8,
    PE_MODEL_GROUPS   = 8,
    PE_MODEL_FACTS    = 48,
    PE_MODEL_PARAMS   = 4,
    PE_MODEL_WARNINGS = 64
};

/* The widest head, and the most heads and layers, that are believed: bounds on what a small file may make us
   allocate. */
enum { PE_MODEL_WIDEST = 1 << 16, PE_MODEL_DEEPEST = 1 << 16 };

/* Kinds of layers, a character for each: rotated, rotated otherwise (sliding, compressed), attention without
   positions, none at all. */
enum { PE_FULL = 'f', PE_LOCAL = 'l', PE_NOPE = 'n', PE_NO_ATTENTION = '-' };

struct posenc_model {
    const char            *path; /* while it is read, as err */
    posenc_error          *err;
    posenc_status          status; /* of the first refusal */
    posenc_model_info      info;
    posenc_model_group     groups[PE_MODEL_GROUPS];
    posenc_model_warning   warnings[PE_MODEL_WARNINGS];
    posenc_model          *towers[PE_MODEL_TOWERS]; /* info.tower_count of them */
    const int64_t         *windows;                 /* [info.layers], 0: none; NULL: no layer has one */
    const char            *window_rule;
    const char            *other_terms; /* NULL: none */
    int                    other_terms_slide;
    double                 softcap; /* 0: none */
    int                    has_sinks, sinks_slide;
    struct pe_build_piece *pieces;
};

/* ---------------------------------------------------------------- filling ------------------- */

/* NULL without memory, which *err then says. */
posenc_model *pe_build_begin(const char *format, const char *path, posenc_error *err);
/* Makes one of groups that are alike, sorts groups and warnings and names the encoding of the whole. After a
   refusal frees the model and returns its status. */
posenc_status pe_build_finish(posenc_model **out, posenc_model *model);

/* Refuses the file, FORMAT; for want of memory. */
void pe_build_refuse(posenc_model *model, const char *format, ...) PE_PRINTF(2, 3);
void pe_build_refuse_memory(posenc_model *model);

/* Zeroed memory that lives as long as the model, NULL without; a text in it. */
void *pe_build_alloc(posenc_model *model, size_t n);
char *pe_build_text(posenc_model *model, const char *format, ...) PE_PRINTF(2, 3);

/* "base-default" and what it means here. The same sentence twice is one warning. */
void pe_build_warn(posenc_model *model, const char *code, const char *format, ...) PE_PRINTF(3, 4);

/* A new group of these sizes and this width of a head, of all layers as yet. There are never more than
   PE_MODEL_GROUPS. What follows is about the group that was made last; names, rules, texts and lists must
   live as long as the model. */
posenc_model_group *pe_build_group(posenc_model *model, const char *encoding, posenc_dims dims,
                                   int64_t width);
/* The layers whose kind is `kind`, all where that is every one of them. */
void pe_build_layers(posenc_model *model, const char *kinds, int64_t count, char kind);
/* How many keys each layer sees, 0 all: [info.layers]. A fact of every group with such a layer. */
void pe_build_windows(posenc_model *model, const int64_t *windows, const char *rule);
/* What the model's attention does that no SPEC says, in words; in layers that slide alone. A fact. */
void pe_build_other_terms(posenc_model *model, const char *text, int only_sliding);
/* A cap of scores, and sinks that are learned for each head (in layers that slide alone): facts, and in the
   SPEC of each group. */
void pe_build_softcap(posenc_model *model, double cap);
void pe_build_sinks(posenc_model *model, int only_sliding);
/* A parameter of the group's encoding: a list [count]. */
void pe_build_param(posenc_model *model, const char *name, const double *values, int64_t count);

/* Facts, in the order in which they are printed. `rule` may be NULL. The first has no value yet. */
posenc_fact *pe_build_fact(posenc_model *model, const char *name, posenc_fact_kind kind, const char *rule);
void         pe_build_flag(posenc_model *model, const char *name, int value, const char *rule);
void         pe_build_integer(posenc_model *model, const char *name, int64_t value, const char *rule);
void pe_build_real(posenc_model *model, const char *name, double value, const char *rule); /* NaN: none */
void pe_build_word(posenc_model *model, const char *name, const char *value,
                   const char *rule); /* NULL: none */
void pe_build_list(posenc_model *model, const char *name, posenc_fact_kind kind, const double *values,
                   int64_t count, const char *rule);

/* ---------------------------------------------------------------- groups -------------------- */

/* One rotation as a model's file describes it, whatever the format. The readers fill a pe_file_rotation, and
   pe_rotation_group turns it into a group: the SPEC, the facts, and the frequencies and the magnitude that
   the library's own `rope` gives for that SPEC. So no schedule is written here. */
enum { PE_ROTATION_AXES = 4 };

typedef struct pe_file_rotation {
    const char   *layout, *schedule; /* words of the settings of `rope` */
    int           inverse, writes_half;
    int64_t       head_dim, dim, offset;
    double        base;
    double        factor; /* NaN: none is given */
    double        alpha, low_freq_factor, high_freq_factor, beta_fast, beta_slow, extrapolation;
    int           truncate;
    int64_t       original_length, max_length;
    double        partial;                                  /* proportional */
    double        mixed_b;                                  /* ntk_mixed; NaN: the plain form */
    int           periods;                                  /* lists in pi, of coordinates from -1 to 1 */
    double        attention_factor, mscale, mscale_all_dim; /* NaN: absent */
    double        magnitude;                                /* NaN: by the rule of the schedule */
    double        magnitude_long;                           /* longrope; NaN: as for short inputs */
    const double *short_factor, *long_factor, *divisors;    /* [dim/2] or NULL */
    double        score_scale;                              /* NaN: not known */
    int           axes;
    const char   *axis_rule; /* NULL for one axis */
    int64_t       sections[PE_ROTATION_AXES];
    const char   *temperature; /* llama4, ministral, or NULL */
    double        temperature_scale;
    int64_t       temperature_length;
    posenc_dims   dims; /* heads, key heads, widths */

    /* Where the numbers come from, in words; NULL where the name says all. */
    const char *source, /* of the schedule's numbers that have no rule of their own */
        *fast_rule, *slow_rule, *truncate_rule, *extrapolation_rule, *layout_rule, *dim_rule, *head_rule,
        *base_rule, *schedule_rule, *factor_rule, *length_rule, *magnitude_rule, *score_rule, *sections_rule;
} pe_file_rotation;

/* Everything absent, axes 1. */
pe_file_rotation pe_rotation_none(void);

/* Refuses a part that cannot rotate: dim of head_dim. */
void pe_rotation_check(posenc_model *m, const pe_file_rotation *r);

/* 0.1 mu ln s + 1 (1 for s <= 1), of which YaRN's magnitudes are made. */
double pe_rotation_yarn(double s, double mu);

/* What follows adds a group, or after a refusal nothing and gives NULL. */

/* The layers of one kind. A SPEC that the library refuses is refused here with its sentence. */
posenc_model_group *pe_rotation_group(posenc_model *m, const pe_file_rotation *r, const char *kinds,
                                      int64_t depth, char kind);

/* The layers without positions; r gives width, score scale and temperature. */
void pe_rotation_nope(posenc_model *m, const pe_file_rotation *r, const char *kinds, int64_t depth);

/* ALiBi's slopes for these heads, 2^(-8/H) ... as the library has them, raised to most / 8 (8 is the
   paper's); each times bias_scale is what the encoding takes. score_scale is the factor of q.k. */
void pe_build_alibi(posenc_model *m, posenc_dims dims, int64_t width, double most, double bias_scale,
                    double score_scale);

/* A learned table at the input. */
typedef struct pe_learned_table {
    int64_t     rows, offset, dim;
    const char *rows_rule, *dim_rule, *stack;
} pe_learned_table;

posenc_model_group *pe_build_input(posenc_model *m, const char *encoding, posenc_dims dims,
                                   const char *stack);
posenc_model_group *pe_build_learned(posenc_model *m, posenc_dims dims, const pe_learned_table *table);

#endif
