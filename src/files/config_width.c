/* SPDX-License-Identifier: MIT */
/*
 * config_width.c: how wide a head is, and how much of it turns
 *
 * Four kinds of head (model_types.def): the width is a key, or follows from the model's, or is the sum of
 * what turns and what does not (MLA, whose last channels turn), or only its last channels turn. A fraction
 * comes from the dictionary, the top level or the class, in this order; one that the class does not read is
 * without effect in the default schedule and fails in every other.
 * Source  transformers 5.16, the configuration and modeling files of the types
 */
#include "files/config_rope.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- widths -------------------- */

static void warn_of_given_width(pe_config *c, int64_t width)
{
    const int64_t given = pe_config_whole(c, c->file, "head_dim", 1, PE_MODEL_WIDEST, width);
    if (given != width)
        pe_modelfile_warn(c->model, "head_dim-mismatch",
                          "head_dim is %lld, but the class never reads it: hidden_size / heads = %lld counts",
                          (long long)given, (long long)width);
}

static int64_t key_width(pe_config *c, pe_rotation *r)
{
    const char   *own   = pe_config_get(c->file, c->type->head_dim_key) ? c->type->head_dim_key : "head_dim";
    const int64_t given = pe_config_whole(c, c->file, own, 1, PE_MODEL_WIDEST, 0);
    const int64_t standard = c->is_unknown ? 0 : c->type->head_dim;
    r->head_rule           = given      ? pe_modelfile_text(c->model, "%s of the file", own)
                             : standard ? pe_modelfile_text(c->model, "standard of the class %s", c->type->name)
                                        : "hidden_size / heads";
    return given ? given : standard ? standard : pe_config_derived_width(c);
}

static void mla_width(pe_config *c, pe_rotation *r)
{
    const int64_t alias =
        pe_config_whole(c, c->file, c->type->head_dim_key, 1, PE_MODEL_WIDEST, c->type->rope_dim);
    const int64_t nope =
        pe_config_whole(c, c->file, "qk_nope_head_dim", 0, PE_MODEL_WIDEST, c->type->nope_dim);
    r->dim       = pe_config_whole(c, c->file, "qk_rope_head_dim", 1, PE_MODEL_WIDEST, alias);
    r->head_dim  = nope + r->dim;
    r->head_rule = "qk_nope_head_dim + qk_rope_head_dim";
    r->dim_rule  = "qk_rope_head_dim";
}

/* Head width; for the heads whose last channels turn, those as well. */
void pe_rope_find_width(pe_config *c, pe_rotation *r, int is_full)
{
    if (pe_is(c->type->head, "mla"))
        mla_width(c, r);
    else if (pe_is(c->type->head, "derived")) {
        r->head_dim  = pe_config_derived_width(c);
        r->head_rule = "hidden_size / heads";
        warn_of_given_width(c, r->head_dim);
    } else
        r->head_dim = key_width(c, r);
    if (is_full && c->type->full_head_dim) {
        r->head_dim =
            pe_config_whole(c, c->file, "global_head_dim", 1, PE_MODEL_WIDEST, c->type->full_head_dim);
        r->head_rule = "global_head_dim";
    }
}

/* ---------------------------------------------------------------- fraction ------------------ */

static double find_fraction(pe_config *c, const pe_rope_source *s, const char **rule)
{
    const char  *key      = c->type->partial_key ? c->type->partial_key : "partial_rotary_factor";
    const double of_words = pe_config_real(c, s->words, "partial_rotary_factor", (double)NAN);
    const double of_file  = pe_config_real(c, c->file, key, (double)NAN);
    const double standard = c->type->partial > 0 ? c->type->partial : 1;
    *rule                 = !isnan(of_words) ? s->name : !isnan(of_file) ? "the file" : "the class";
    if (!isnan(of_words) && !isnan(of_file) && of_words != of_file)
        pe_modelfile_warn(c->model, "partial-conflict",
                          "the fraction that rotates is %g in %s but %g at top level; %g counts", of_words,
                          s->name, of_file, of_words);
    return !isnan(of_words) ? of_words : !isnan(of_file) ? of_file : standard;
}

/* Python's int(): towards zero. Refused where no whole number of channels could come out. */
static int64_t part_of(pe_config *c, int64_t width, double fraction)
{
    if (!(fraction > 0 && fraction <= 1))
        pe_config_refuse(c, "the fraction of a head that rotates is %g; it must lie above 0 and up to 1",
                         fraction);
    return c->status ? 2 : (int64_t)((double)width * fraction);
}

static void unread_fraction(pe_config *c, pe_rotation *r, double fraction)
{
    if (fraction == 1)
        return;
    if (pe_rope_is_scaled(r))
        pe_config_refuse(c,
                         "partial_rotary_factor is %g with the schedule %s; the class %s rotates whole "
                         "heads, so it must be 1",
                         fraction, r->schedule, c->is_unknown ? "(read as llama)" : c->type->name);
    pe_modelfile_warn(c->model, "partial-ignored",
                      "partial_rotary_factor is %g, but the class %s does not read it", fraction,
                      c->is_unknown ? "(read as llama)" : c->type->name);
}

/* MLA: the width of the rotated part is a size of its own. A class that reads fractions takes them of
   that. */
static void mla_dim(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    const char  *where;
    const double fraction = find_fraction(c, s, &where);
    if (fraction == 1 || (c->type->share_read && part_of(c, r->head_dim, fraction) == r->dim))
        return;
    if (!c->type->partial_read) {
        unread_fraction(c, r, fraction);
        return;
    }
    r->dim      = part_of(c, r->dim, fraction);
    r->dim_rule = pe_modelfile_text(c->model, "fraction %g of qk_rope_head_dim, from %s", fraction, where);
}

static int has_fraction(const pe_config *c, const pe_rope_source *s)
{
    return pe_config_get(s->words, "partial_rotary_factor") ||
           pe_config_get(c->file, "partial_rotary_factor");
}

static void fraction_dim(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    const char   *where;
    const double  fraction = find_fraction(c, s, &where);
    const int64_t counted  = c->type->rotary_dim_key ? pe_config_whole(c, c->file, "rotary_dim", 1,
                                                                       PE_MODEL_WIDEST, c->type->rotary_dim)
                                                     : 0;
    r->dim                 = r->head_dim;
    r->dim_rule            = "the whole head";
    if (pe_is(r->schedule, "proportional")) {
        r->partial  = fraction;
        r->dim_rule = "proportional: pairs over the whole head";
        part_of(c, r->head_dim, fraction);
        return;
    }
    if (counted)
        r->dim = counted, r->dim_rule = "rotary_dim";
    else if (c->type->partial_read && fraction != 1) {
        r->dim      = part_of(c, r->head_dim, fraction);
        r->dim_rule = pe_modelfile_text(c->model, "fraction %g of head_dim, from %s", fraction, where);
    } else if (!c->type->partial_read)
        unread_fraction(c, r, fraction);
}

void pe_rope_find_dim(pe_config *c, const pe_rope_source *s, pe_rotation *r)
{
    if (pe_is(c->type->head, "mla"))
        mla_dim(c, s, r);
    else if (pe_is(c->type->head, "tail") && !has_fraction(c, s)) {
        r->dim      = pe_config_whole(c, c->file, "qk_rope_head_dim", 1, PE_MODEL_WIDEST, c->type->rope_dim);
        r->dim_rule = "qk_rope_head_dim";
    } else
        fraction_dim(c, s, r);
    if (!c->status && (r->dim < 2 || r->dim % 2 || r->dim > r->head_dim))
        pe_config_refuse(
            c, "%lld channels of a head of %lld would rotate; it must be an even number from 2 to the width",
            (long long)r->dim, (long long)r->head_dim);
    r->offset = pe_is(c->type->head, "mla") || pe_is(c->type->head, "tail") ? r->head_dim - r->dim : 0;
}
