/* SPDX-License-Identifier: MIT */
/*
 * outcome.c: from the list of SPECs to one outcome each, or to why there is none
 *
 * A SPEC is completed with the settings of a small model, its encoding is made and tried out on one window.
 * One that has no meaning in the model at hand is listed with the reason; it may still have one in tasks.
 */
#include "train/jobs/outcome.h"

#include "base/status.h"

#include <stdlib.h>
#include <string.h>

posenc_dims pe_outcome_dims(const pe_preset *p)
{
    return pe_model_dims(&(pe_model_config){.L = p->L, .d_model = p->d_model, .heads = p->heads}, 1,
                         p->reach * p->L);
}

/* Does training change a parameter of this part? */
static int is_trained(const posenc_encoding *e, const posenc_encoding_info *part)
{
    for (int i = 0; i < posenc_param_count(e); i++)
        for (int k = 0; k < part->param_count; k++)
            if (posenc_param_describe(e, i) == &part->params[k] && posenc_param_trainable(e, i))
                return 1;
    return 0;
}

/* A learned row per position: those beyond L are read in evaluation though no training step ever reached
   them. */
static int has_untrained_rows(const posenc_encoding *e)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)place);
        if (part && part->row_limit && is_trained(e, part))
            return 1;
    }
    return 0;
}

pe_run_config pe_outcome_run_config(const pe_compare *c, const posenc_encoding *e, const pe_entry *entry)
{
    const pe_preset *p = &c->config.preset;
    return (pe_run_config){.spec          = posenc_encoding_spec(e),
                           .L             = p->L,
                           .reach         = p->reach,
                           .d_model       = p->d_model,
                           .layers        = p->layers,
                           .heads         = p->heads,
                           .batch         = p->batch,
                           .steps         = p->steps,
                           .warmup        = p->warmup,
                           .learning_rate = p->learning_rate,
                           .weight_decay  = p->weight_decay,
                           .clip          = p->clip,
                           .windows       = c->windows,
                           .bidirectional = c->config.bidirectional,
                           .places        = c->places,
                           .entry         = *entry,
                           .text          = &c->text,
                           .fingerprint   = c->fingerprint,
                           .measures      = 1};
}

static posenc_status check_new(const pe_compare *c, const pe_outcome *o, posenc_error *err)
{
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->outcomes[i].config.spec, o->config.spec) &&
            c->outcomes[i].config.entry.combine == o->config.entry.combine &&
            c->outcomes[i].config.entry.inject == o->config.entry.inject)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "%.60s and %.60s are the same encoding; give it once",
                           c->outcomes[i].label, o->label);
    return POSENC_OK;
}

/* A SPEC as it was asked for, divided: for the library with the settings of its room, and how rows enter. */
static posenc_status read_spec(pe_outcome *o, char complete[PE_LONGEST_SPEC], pe_entry *entry,
                               const pe_compare *c, posenc_error *err)
{
    char              plain[PE_LONGEST_SPEC];
    const posenc_dims dims   = pe_outcome_dims(&c->config.preset);
    const int         mask   = c->config.bidirectional ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL;
    posenc_status     status = pe_spec_split(plain, sizeof plain, entry, o->label, err);
    o->is_plain              = posenc_encoding_find(o->label) != NULL;
    o->is_bare               = !status && posenc_encoding_find(plain) != NULL;
    if (!status && entry->inject == PE_IN_BLOCKS)
        status = pe_spec_set_missing(plain, "states", c->config.preset.layers, err);
    if (!status && (c->config.bidirectional || c->text.vocabulary))
        status = pe_spec_set_missing(plain, "vocab",
                                     (c->text.vocabulary ? c->text.vocabulary : PE_BYTES) +
                                         (c->config.bidirectional != 0),
                                     err);
    return status ? status : pe_spec_complete(complete, PE_LONGEST_SPEC, plain, &dims, mask, err);
}

/* A rotation turns pairs of channels of a head. */
static posenc_status check_heads(const posenc_encoding *e, const pe_preset *p, posenc_error *err)
{
    if (p->d_model / p->heads % 2 == 0 || !posenc_encoding_part(e, POSENC_PLACE_ROTARY))
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_ARGUMENT,
                   "compare: --width %lld in %lld --heads gives each head %lld channels, and the rotation of "
                   "%.60s needs an even number",
                   (long long)p->d_model, (long long)p->heads, (long long)(p->d_model / p->heads),
                   posenc_encoding_spec(e));
}

/* Rows of pixels or cells, which a text has none of; its bytes stand in line. */
static posenc_status check_line(const posenc_encoding *e, const posenc_dims *dims, posenc_error *err)
{
    int64_t   tokens = 0;
    const int N      = posenc_rows_coordinates(e);
    if (N < 2 || posenc_rows_tokens(e, dims, &tokens, NULL) || tokens < 1)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                   "its positions have %d coordinates, but the bytes of a text form a line", N);
}

static void add_part(pe_outcome *o, const posenc_encoding_info *part)
{
    for (int i = 0; i < o->part_count; i++)
        if (o->parts[i] == part)
            return;
    if (part && o->part_count < PE_MOST_PARTS)
        o->parts[o->part_count++] = part;
}

/* Of all layers, those of one place after those of the place before. */
static posenc_status list_parts(pe_outcome *o, posenc_error *err)
{
    posenc_layer  read   = {.period = 1};
    posenc_status status = POSENC_OK;
    for (int place = 0; place < POSENC_PLACE_COUNT; place++)
        for (int64_t l = 0; l < read.period && !status; l++) {
            posenc_encoding *e;
            status = pe_spec_layer(&e, &read, o->spec, l, err);
            if (!status)
                add_part(o, posenc_encoding_part(e, (posenc_place)place));
            posenc_encoding_free(e);
        }
    return status;
}

/* Its encodings, and all of their text. */
static posenc_status make_encodings(pe_outcome *o, const char *complete, posenc_error *err)
{
    posenc_layer  read;
    posenc_status status = pe_spec_check(complete, err);
    if (!status)
        status = pe_spec_layer(&o->e, &read, complete, 0, err);
    if (status)
        return status;
    o->spec = malloc(PE_LONGEST_SPEC);
    if (!o->spec)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", o->label);
    status = pe_spec_canonical(o->spec, PE_LONGEST_SPEC, complete, err);
    return status ? status : list_parts(o, err);
}

static posenc_status outcome_create(pe_compare *c, pe_outcome *o, posenc_error *err)
{
    char              complete[PE_LONGEST_SPEC];
    pe_entry          entry;
    const posenc_dims dims   = pe_outcome_dims(&c->config.preset);
    posenc_status     status = read_spec(o, complete, &entry, c, err);
    if (!status)
        status = make_encodings(o, complete, err);
    if (!status)
        status = check_heads(o->e, &c->config.preset, err);
    if (!status)
        status = check_line(o->e, &dims, err);
    if (status)
        return status;
    o->config      = pe_outcome_run_config(c, o->e, &entry);
    o->config.spec = o->spec;
    status         = check_new(c, o, err);
    if (status)
        return status;
    o->untrained_beyond = has_untrained_rows(o->e);
    o->runs             = calloc((size_t)c->config.preset.seeds, sizeof *o->runs);
    if (!o->runs)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", o->label);
    return pe_run_try(&o->config, err);
}

posenc_status pe_outcome_resize(pe_outcome *o, const pe_compare *c, const pe_preset *sizes, posenc_error *err)
{
    pe_compare other           = *c;
    other.config.preset        = *sizes;
    other.config.preset.seeds  = 1;
    other.count                = 0; /* nothing that it could be the same as */
    const posenc_status status = outcome_create(&other, o, err);
    o->config.text             = &c->text;
    return status;
}

/* Moves the outcome that was begun last to those that do not apply. */
static posenc_status add_absent(pe_compare *c, const posenc_error *why, posenc_error *err)
{
    pe_outcome *o    = &c->outcomes[c->count];
    pe_absent  *more = realloc(c->absent, (size_t)(c->absent_count + 1) * sizeof *more);
    if (!more)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %s", o->label);
    c->absent    = more;
    pe_absent *a = &more[c->absent_count++];
    snprintf(a->label, sizeof a->label, "%s", o->label);
    pe_outcome_reason(a->reason, sizeof a->reason, why);
    pe_outcome_free(o, c->config.preset.seeds);
    return POSENC_OK;
}

/* An encoding without a meaning in these models is named in the results: whose refusal is its own, and not
   something that the caller could correct. With the settings of its room whatever its plan or run refuses is;
   with settings of the caller's only what has no meaning at all. */
static posenc_status add_outcome(pe_compare *c, const char *label, posenc_error *err)
{
    posenc_error why  = {0};
    pe_outcome  *more = realloc(c->outcomes, (size_t)(c->count + 1) * sizeof *more);
    if (!more)
        return pe_fail(err, POSENC_ERROR_MEMORY, "compare: not enough memory for %d encodings", c->count + 1);
    c->outcomes   = more;
    pe_outcome *o = &more[c->count];
    *o            = (pe_outcome){0};
    snprintf(o->label, sizeof o->label, "%s", label);
    const posenc_status status = outcome_create(c, o, &why);
    const int of_sizes = o->is_bare && (status == POSENC_ERROR_SHAPE || status == POSENC_ERROR_SETTING ||
                                        status == POSENC_ERROR_RANGE);
    if (o->e && (status == POSENC_ERROR_UNSUPPORTED || of_sizes))
        return add_absent(c, &why, err);
    c->count++; /* an unfinished one is freed with the rest */
    if (status && err)
        *err = why;
    return status;
}

/* Does a part of this SPEC act at the input, and does the SPEC leave open how its rows are combined? */
static posenc_status is_open(int *open, const char *spec, posenc_error *err)
{
    char             plain[PE_LONGEST_SPEC];
    pe_entry         entry;
    posenc_encoding *e = NULL;
    posenc_layer     read;
    posenc_status    status = pe_spec_split(plain, sizeof plain, &entry, spec, err);
    if (!status)
        status = pe_spec_layer(&e, &read, plain, 0, err);
    *open = !status && pe_outcome_adds_rows(e) && !entry.names_combine && entry.inject == PE_AT_INPUT;
    posenc_encoding_free(e);
    return status;
}

/* One outcome for a SPEC, or one for each way of combining its rows that was asked for. */
static posenc_status add_spec(pe_compare *c, const char *spec, int *opened, posenc_error *err)
{
    char          named[PE_LONGEST_SPEC];
    int           open;
    posenc_status status = is_open(&open, spec, err);
    *opened += open;
    if (!status && (!open || c->ways & 1 << PE_ADD))
        status = add_outcome(c, spec, err);
    if (!status && open && c->ways & 1 << PE_CONCAT) {
        status = pe_spec_set_combine(named, sizeof named, spec, PE_CONCAT, err);
        if (!status)
            status = add_outcome(c, named, err);
    }
    return status;
}

posenc_status pe_outcome_list_create(pe_compare *c, posenc_error *err)
{
    char          spec[PE_LONGEST_SPEC];
    const char   *list   = c->config.preset.encodings;
    int           opened = 0;
    posenc_status status = pe_spec_read_combine(&c->ways, c->config.combine ? c->config.combine : "add", err);
    while (list && !status) {
        list = pe_spec_next(spec, sizeof spec, list, &status, err);
        if (!status)
            status = add_spec(c, spec, &opened, err);
    }
    if (!status && c->config.combine && opened == 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "combine: %s applies to none of the encodings: they set combine themselves or do not "
                       "act at the input; add one at the input, such as sinusoidal",
                       c->config.combine);
    if (!status && c->count == 0)
        return pe_fail(err, POSENC_ERROR_UNSUPPORTED, "%.60s cannot be compared %s: %s; give other encodings",
                       c->absent[0].label,
                       c->config.bidirectional ? "in a bidirectional model" : "in a causal model",
                       c->absent[0].reason);
    return status;
}

void pe_outcome_free(pe_outcome *o, int64_t seeds)
{
    pe_run_slots_free(o->runs, seeds);
    free(o->numbers);
    free(o->spec);
    posenc_encoding_free(o->e);
}

/* ---------------------------------------------------------------- what it is called --------- */

const char *pe_outcome_objective(int bidirectional)
{
    return bidirectional ? "masked bytes" : "next byte";
}

const char *pe_outcome_objective_text(int bidirectional)
{
    return bidirectional ? "predicting bytes that are hidden from it (15 %) from all bytes around them"
                         : "predicting the next byte";
}

const char *pe_outcome_bucket(const pe_outcome *o, int bucket, int64_t *first)
{
    *first = o->config.bidirectional ? 0 : pe_stats_bucket_edge(o->config.L, bucket);
    return o->config.bidirectional ? pe_stats_length_name(bucket) : pe_stats_bucket_name(bucket);
}

void pe_outcome_reason(char *reason, size_t n, const posenc_error *why)
{
    const char *at = strstr(why->message, ": ");
    at             = at ? at + 2 : why->message;
    snprintf(reason, n, "%.*s", (int)strcspn(at, ";"), at);
}

void pe_outcome_settings(char text[PE_LONGEST_SPEC + 64], const pe_outcome *o)
{
    const pe_entry *entry = &o->config.entry;
    snprintf(text, PE_LONGEST_SPEC + 64, "%s%s%s%s%s", o->config.spec,
             entry->combine == PE_ADD ? "" : ", combine=",
             entry->combine == PE_ADD ? "" : pe_spec_combine_name(entry->combine),
             entry->inject == PE_AT_INPUT ? "" : ", inject=",
             entry->inject == PE_AT_INPUT ? "" : pe_spec_inject_name(entry->inject));
}

int pe_outcome_adds_rows(const posenc_encoding *e)
{
    const posenc_encoding_info *input = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    return input && !input->by_word;
}

int pe_outcome_added(const pe_compare *c, int i)
{
    const pe_outcome *joint = &c->outcomes[i];
    for (int k = 0; k < c->count && joint->config.entry.combine == PE_CONCAT; k++) {
        const pe_outcome *o = &c->outcomes[k];
        if (o->is_complete && pe_spec_entry_is_default(&o->config.entry) &&
            !strcmp(o->config.spec, joint->config.spec))
            return k;
    }
    return -1;
}
