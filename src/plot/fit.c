/* SPDX-License-Identifier: MIT */
/*
 * fit.c: what a picture needs where nobody says it: sizes, a grid, and the settings that follow from them
 *
 * An encoding says how long its table is, or how its grid is divided, by a setting; who asks for a picture
 * says how many positions to draw. The tool, the Python package and the explorer's page ask here, so that the
 * same few words make the same picture in all three.
 */
#include "plot/plot.h"

#include <string.h>

enum { HEADS = 8, GRID_ROWS = 16, GRID_COLS = 32 };

int pe_picture_offered(const posenc_encoding *e, const char *kind, pe_offer *offer)
{
    pe_offer  offers[PE_MOST_OFFERS];
    const int count = pe_picture_offers(e, offers);
    for (int i = 0; i < count; i++)
        if (!strcmp(offers[i].kind, kind)) {
            *offer = offers[i];
            return 1;
        }
    return 0;
}

int pe_picture_wants_grid(const posenc_encoding *e, const pe_offer *offer, int64_t length, int64_t dim)
{
    const posenc_dims dims = {.B = 1, .Lq = length, .Lk = length, .L = length, .d_model = dim};
    if (offer->place == POSENC_PLACE_INPUT)
        return !length || pe_picture_axes(e, &dims) > 1;
    return offer->place == POSENC_PLACE_SCORE && !strcmp(offer->kind, "bias") && pe_biases_is_map(e);
}

static int has_setting(const posenc_encoding_info *info, const char *name)
{
    for (int i = 0; i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name))
            return 1;
    return 0;
}

/* Does the SPEC say it? */
static int is_said(const posenc_encoding *e, const char *name)
{
    const char  *spec = posenc_encoding_spec(e);
    const size_t n    = strlen(name);
    for (const char *at = spec; (at = strstr(at, name)) != NULL; at++)
        if (at[n] == '=' && at > spec && strchr("[:,. ", at[-1]))
            return 1;
    return 0;
}

void pe_picture_lists(const posenc_encoding *e, const int64_t *sizes, int axes, char to[PE_SETTINGS])
{
    static const char *const    lists[] = {"shape", "grid_out", "grid_in"};
    const posenc_encoding_info *info    = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    size_t                      used    = 0;
    *to                                 = '\0';
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (!axes || !info || !has_setting(info, lists[i]) || (i == 2 && is_said(e, lists[i])))
            continue;
        used += (size_t)snprintf(to + used, PE_SETTINGS - used, "%s%s", used ? " " : "", lists[i]);
        for (int a = 0; a < axes && used < PE_SETTINGS; a++)
            used +=
                (size_t)snprintf(to + used, PE_SETTINGS - used, "%c%lld", a ? 'x' : '=', (long long)sizes[a]);
    }
}

static void fit_settings(const posenc_encoding *e, const pe_offer *offer, pe_picture_data *d,
                         char to[PE_SETTINGS])
{
    const posenc_encoding_info *info = posenc_encoding_part(e, offer->place);
    const char                 *spec = posenc_encoding_spec(e);
    if (offer->place == POSENC_PLACE_INPUT && d->rows)
        pe_picture_lists(e, d->sizes ? d->sizes : (int64_t[]){d->rows, d->cols}, d->sizes ? d->axes : 2, to);
    if (offer->place == POSENC_PLACE_SCORE && d->rows && info->row_limit) /* the window of a bias */
        snprintf(to, PE_SETTINGS, "%s.%s=%lldx%lld", info->name, info->row_limit, (long long)d->rows,
                 (long long)d->cols);
    if (offer->place == POSENC_PLACE_ROTARY && !is_said(e, "length") && /* frequencies that follow it */
        (strstr(spec, "schedule=dynamic") || strstr(spec, "schedule=longrope")))
        snprintf(to, PE_SETTINGS, "%s.length=%lld", info->name, (long long)d->length);
    if (offer->place != POSENC_PLACE_INPUT)
        d->rows = d->cols = 0; /* no positions of its own to draw */
}

void pe_picture_fit(const posenc_encoding *e, const pe_offer *offer, pe_picture_data *d,
                    char settings[PE_SETTINGS])
{
    const pe_picture_size      *size     = pe_picture_size_of(offer->kind);
    const posenc_encoding_info *info     = posenc_encoding_part(e, offer->place);
    const int                   is_input = offer->place == POSENC_PLACE_INPUT;
    const int64_t               D = d->dims.D ? d->dims.D : size->dim, H = d->dims.H ? d->dims.H : HEADS;
    *settings = '\0';
    d->causal = info->causal_only;
    d->length = d->length ? d->length : size->length;
    if (is_input && !d->rows && pe_picture_wants_grid(e, offer, d->length, D))
        d->rows = GRID_ROWS, d->cols = GRID_COLS;
    fit_settings(e, offer, d, settings);
    const int64_t n = d->rows ? d->rows * d->cols : d->length;
    /* a bias is drawn for keys in the future as well, up to the same distance */
    const int64_t most = offer->place == POSENC_PLACE_SCORE && !info->causal_only ? 2 * n - 1 : n;
    d->dims            = (posenc_dims){
                   .B = 1, .H = H, .D = D, .Lq = most, .Lk = most, .L = n, .d_model = is_input ? D : H * D};
}
