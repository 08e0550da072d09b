/* SPDX-License-Identifier: MIT */
/*
 * pairings.c: which channels may be pairs
 *
 * All blocks at the front or the tail of the head that hold every channel that changes, in both layouts;
 * those that leave over much more than the best are dropped.
 */
#include "diagnose/search.h"

#include <math.h>
#include <stdlib.h>

static int is_same_pairing(const pe_pairing *a, const pe_pairing *b)
{
    return a->in == b->in && a->out == b->out && a->blocks == b->blocks && a->offset == b->offset &&
           a->dim == b->dim;
}

/* The pairing of an encoding, if it is one of ours. */
int pe_pairings_of(pe_pairing *p, const pe_search *s, const posenc_encoding *e)
{
    const char *spec = posenc_encoding_spec(e);
    pe_frame    f;
    if (!pe_frame_open(&f, s, e))
        return 0;
    p->in           = pe_spec_is_word(spec, "layout", "half", 0);
    p->out          = pe_spec_is_word(spec, "layout_out", "half",
                                      p->in && !pe_spec_is_word(spec, "layout_out", "interleaved", 0));
    p->dim          = 2 * f.M;
    p->offset       = (int64_t)pe_spec_number(spec, "offset_dim", 0);
    p->blocks       = pe_spec_is_word(spec, "axis_rule", "halves", 0) ? s->N : 1;
    const int is_it = pe_frame_has_channels(&f, p);
    pe_frame_free(&f);
    return is_it;
}

/* Widths of blocks that are often met come first: where nothing turns, a wider block does as well. */
int pe_pairings_rank(int64_t d, int64_t D)
{
    return d == D                                       ? 0
           : 2 * d == D || 4 * d == D || 4 * d == 3 * D ? 1
           : d % 32 == 0                                ? 2
           : d % 16 == 0                                ? 3
           : d % 8 == 0                                 ? 4
                                                        : 5;
}

/* What it leaves over, and more where its width is rarely met: where nothing turns, many widths leave the
 * same. */
static double demerit(const pe_search *s, const pe_pairing *p, double look)
{
    return look + 0.3 * pe_pairings_rank(p->dim, s->rows->D);
}

/* Adds a pairing that nobody has added yet. */
static void add_pairing(pe_search *s, pe_pairing p, unsigned departs)
{
    if (p.dim < 2 || p.dim % 2 || p.offset < 0 || p.offset + p.dim > s->rows->D || p.dim / 2 % p.blocks)
        return;
    for (int i = 0; i < s->pairing_count; i++)
        if (is_same_pairing(&s->pairings[i].pairing, &p))
            return;
    const double look = pe_pairing_misfit(s->rows, &p);
    int          at   = s->pairing_count;
    if (at && look > 40 + 4 * s->pairings[0].look && departs) /* no pairs at all */
        return;
    if (at == PE_MOST_PAIRINGS) { /* in the place of the worst block that is not the expected one */
        at = -1;
        for (int i = 0; i < s->pairing_count; i++)
            if ((s->pairings[i].departs >> PE_DIM & 1) &&
                (at < 0 || demerit(s, &s->pairings[i].pairing, s->pairings[i].look) >
                               demerit(s, &s->pairings[at].pairing, s->pairings[at].look)))
                at = i;
        if (at < 0 || !(demerit(s, &p, look) < demerit(s, &s->pairings[at].pairing, s->pairings[at].look)))
            return;
    } else
        s->pairing_count++;
    s->pairings[at] = (pe_paired){.pairing = p, .look = look, .departs = departs};
}

static void add_block(pe_search *s, const pe_pairing *e, int64_t offset, int64_t dim, int is_expected_dim)
{
    for (int layouts = 0; layouts < 4; layouts++) {
        pe_pairing p = {layouts & 1, layouts >> 1, 1, offset, dim};
        p.in ^= e->in;
        p.out ^= e->out;
        const unsigned layout = p.in != e->in || p.out != e->out ? 1u << PE_LAYOUT : 0;
        add_pairing(s, p, layout | (is_expected_dim ? 0 : 1u << PE_DIM));
        if (s->N > 1 && p.in && p.out) {
            p.blocks = s->N;
            add_pairing(s, p, layout | (is_expected_dim ? 0 : 1u << PE_DIM) | 1u << PE_AXES);
        }
    }
}

/* All blocks that hold every channel that changes, at the head's front or tail. */
posenc_status pe_pairings_find(pe_search *s, const pe_pairing *expected)
{
    const int64_t D       = s->rows->D;
    double       *changed = malloc((size_t)D * sizeof *changed);
    int64_t       low = D, high = -1;
    if (!changed)
        return POSENC_ERROR_MEMORY;
    pe_channels_changed(changed, s->rows);
    for (int64_t c = 0; c < D; c++)
        if (changed[c] > 10) {
            low  = low < c ? low : c;
            high = c;
        }
    free(changed);
    add_pairing(s, *expected, 0);
    add_block(s, expected, expected->offset, expected->dim, 1);
    for (int rank = 0; rank < 6; rank++)
        for (int64_t d = D - D % 2; d >= 2; d -= 2) {
            if (pe_pairings_rank(d, D) != rank)
                continue;
            if (d > high)
                add_block(s, expected, 0, d, 0);
            if (d < D && D - d <= low)
                add_block(s, expected, D - d, d, 0);
        }
    return POSENC_OK;
}

static posenc_status measure_pairing(pe_search *s, pe_paired *p)
{
    p->unit                    = 1;
    const size_t        M      = (size_t)p->pairing.dim / 2;
    const posenc_status status = pe_gains_create(&p->gains, s->rows, &p->pairing, s->err);
    p->w                       = malloc(M * sizeof *p->w);
    p->error                   = malloc(M * sizeof *p->error);
    if (status || !p->w || !p->error)
        return POSENC_ERROR_MEMORY;
    if (s->N == 1) {
        p->agreed = pe_speeds(p->w, p->error, &p->reach, s->rows, p->gains);
        return POSENC_OK;
    }
    p->of_axes = malloc(3 * M * (size_t)s->N * sizeof *p->of_axes);
    for (int n = 0; p->of_axes && n < s->N; n++) {
        double *at    = p->of_axes + 3 * M * (size_t)n;
        p->reaches[n] = pe_speeds_of_axis(at, at + M, at + 2 * M, s->rows, p->gains, n);
    }
    return p->of_axes ? POSENC_OK : POSENC_ERROR_MEMORY;
}

/* Keeps pairings that leave over hardly more than the best does; the expected one stays, for comparison. */
posenc_status pe_pairings_keep(pe_search *s)
{
    double best = INFINITY;
    int    kept = 1;
    for (int i = 0; i < s->pairing_count; i++)
        best = fmin(best, s->pairings[i].look);
    for (int i = 1; i < s->pairing_count; i++)
        if (s->pairings[i].look <= fmax(2, 1.7 * best + 0.5) && s->pairings[i].look < 40)
            s->pairings[kept++] = s->pairings[i];
    s->pairing_count = kept;
    s->floor         = INFINITY;
    for (int i = 0; i < kept; i++) {
        if (measure_pairing(s, &s->pairings[i]))
            return POSENC_ERROR_MEMORY;
        s->floor = fmin(s->floor, s->pairings[i].gains->floor);
    }
    double noise = 0;
    for (int i = 0; i < kept; i++) {
        const pe_gains *g = s->pairings[i].gains;
        if (g->floor == s->floor && noise == 0)
            for (int64_t k = 0; k < s->rows->count * g->M; k++)
                noise += g->noise[k];
    }
    s->noisiness = fmin(30, fmax(0.5, s->floor / (noise + 1e-300)));
    return POSENC_OK;
}

int pe_pairings_is_rotation(const pe_search *s, const pe_paired *p)
{
    return p->gains->floor <= fmax(2 * s->floor, s->floor + 4 * s->rows->total) &&
           s->floor <= 40 * s->rows->total;
}
