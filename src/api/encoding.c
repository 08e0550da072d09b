/* SPDX-License-Identifier: MIT */
/* encoding.c: an encoding and sizes: its parts, and their settings as numbers */
#include <math.h>

#include "api/objects.h"

void pe_resolve_words(const pe_chosen *part, pe_value set[PE_MAX_SETTINGS])
{
    const posenc_encoding_info *info = &part->room->info;
    for (int i = 0; i < info->setting_count; i++)
        pe_setting_resolve(&set[i], &info->settings[i], part->text[i].text, NULL, info->name, NULL);
}

int posenc_coordinates(const posenc_encoding *e)
{
    const pe_chosen *part = &e->parts[POSENC_INPUT];
    pe_value         set[PE_MAX_SETTINGS];
    if (!part->room || !part->room->coordinates)
        return 1;
    pe_resolve_words(part, set);
    return part->room->coordinates(set);
}

const posenc_encoding_info *posenc_encoding_part(const posenc_encoding *e, posenc_place place)
{
    return (size_t)place < POSENC_PLACES && e->parts[place].room ? &e->parts[place].room->info : NULL;
}

posenc_dims pe_full_dims(const posenc_dims *dims)
{
    posenc_dims d = *dims;
    d.B           = d.B ? d.B : 1;
    d.G           = d.G ? d.G : d.H;
    d.Dv          = d.Dv ? d.Dv : d.D;
    d.Lk          = d.Lk ? d.Lk : d.Lq;
    d.Lq          = d.Lq ? d.Lq : d.Lk;
    d.d_model     = d.d_model ? d.d_model : d.H * d.D;
    d.L           = d.L ? d.L : d.Lk;
    return d;
}

/* Where no plan says which; a POSENC_ISA that does not run here is refused when a plan is made. */
static const pe_kernels *any_kernels(void)
{
    const pe_kernels *chosen = pe_kernels_choose();
    return chosen ? chosen : pe_kernels_at(0);
}

posenc_status pe_resolve(pe_resolved *r, const pe_chosen *part, const posenc_dims *full, posenc_error *err)
{
    const posenc_encoding_info *info = &part->room->info;
    *r                               = (pe_resolved){.room = part->room};
    for (int i = 0; i < info->setting_count; i++) {
        const pe_scope      scope  = {full, info->settings, r->set, i};
        const posenc_status status = pe_setting_resolve_in(&r->set[i], &info->settings[i], part->text[i].text,
                                                           &scope, info->name, err);
        if (status)
            return status;
    }
    r->problem = (pe_problem){full->B,  full->H,       full->G, full->Lq, full->Lk, full->D,
                              full->Dv, full->d_model, full->L, r->set,   NAN,      any_kernels()};
    return part->room->check ? part->room->check(&r->problem, err) : POSENC_OK;
}

posenc_status posenc_rows_tokens(const posenc_encoding *e, const posenc_dims *dims, int64_t *tokens,
                                 posenc_error *err)
{
    pe_resolved r;
    if (!e || !dims || !tokens)
        return pe_fail(err, POSENC_ARGUMENT, "rows: e, dims and tokens must not be NULL");
    const pe_chosen *part = &e->parts[POSENC_INPUT];
    if (!part->room)
        return pe_fail(err, POSENC_UNSUPPORTED, "rows: %s has no part at place input", e->spec);
    const posenc_dims   full   = pe_full_dims(dims);
    const posenc_status status = pe_resolve(&r, part, &full, err);
    if (status)
        return status;
    *tokens = part->room->tokens ? (int64_t)pe_number_of(&r, &full, part->room->tokens) : 0;
    return pe_done(err);
}
