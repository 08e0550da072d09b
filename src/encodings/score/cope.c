/* SPDX-License-Identifier: MIT */
/*
 * CoPE: contextual position encoding
 *
 * Place    score
 * Formula  S[h,i,j] = scale * ( q_i . k_j + e(p_ij) )     scaling=ram     (scale * q_i.k_j + e(p_ij): scaling=paper)
 *          p_ij     = min( sum_{k=j..} g_ik, npos - 1 )   over allowed keys k >= j;  g_ik = sigmoid(scale * q_i.k_k)
 *          e(p)     = z[ceil p] (p - floor p) + z[floor p] (1 - (p - floor p)),  z[m] = q_i . E[m]
 * Learns   E [npos, D], shared by the heads; starts at zero
 * Source   Golovneva et al. 2024, arXiv:2405.18719; facebookresearch/RAM, projects/cope/src/cope/context_position.py
 *
 * Positions are counted, not given: each query counts the keys its gates let through, from itself backwards. The
 * authors' code scales e with the product, their paper's listing does not (z then meets the unscaled query); both
 * compute gates from the scaled product. Where p is an integer or clipped its gradient is zero.
 *
 * The count at a key needs all gates to its right, so this is a hook that travels from right to left and carries one sum
 * per query; the backward comes back from the left with the total and carries the prefix sum of dp.
 */
#include "encodings/encoding.h"

#include <math.h>

enum { NPOS, SCALING }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"npos", "integer", "L+1", "1..", "contextual positions in the table; larger counts use the last"},
    {"scaling", "word", "ram", "ram|paper",
     "is e(p) multiplied by scale (ram: the authors' code) or not (paper)"},
    {0},
};
static_assert(PE_ROWS(settings) == SCALING + 1, "ORDER settings");

enum { E }; /* ORDER params */
static const posenc_param_info params[] = {
    {"E", "npos,D", "zeros", "one vector per counted position, met by the query", 1},
    {0},
};
static_assert(PE_ROWS(params) == E + 1, "ORDER params");

static const posenc_example examples[] = {
    {"H=1 D=2 npos=4", 0, 5, 2, 0, "without content e(p) = 0: the query meets the table, and q = 0"},
    {0},
};

enum {
    CARRY,
    PREFIX,
    STATE
}; /* forward: gates to the right. backward: gates of this tile and to its right; sum of dp */

static double init(const pe_problem *p, int index, pe_random *rng, int64_t i)
{
    (void)p, (void)index, (void)rng, (void)i;
    return 0;
}

static double gate(double s)
{
    return s == -INFINITY ? 0 : 1 / (1 + exp(-s));
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* One query on its way along the keys: the counted position and the two entries of z around it. */
typedef struct walker {
    const double *q, *E;
    int64_t       D, npos,
        m; /* z_low = z[m], z_high = z[m+1] (or z[m] at the end of the table); m = -1: none yet */
    double z_low, z_high, count;
} walker;

static double entry(const walker *w, int64_t m)
{
    return dot(w->q, w->E + (m < w->npos ? m : w->npos - 1) * w->D, w->D);
}

/* Moves to where the count stands: counts grow by less than one per key, so mostly nothing or one entry is new. */
static double locate(walker *w)
{
    const double  last = (double)(w->npos - 1), p = w->count < last ? w->count : last;
    const int64_t m = (int64_t)floor(p);
    if (m != w->m) {
        w->z_low  = m == w->m + 1 && w->m >= 0 ? w->z_high : entry(w, m);
        w->z_high = entry(w, m + 1);
        w->m      = m;
    }
    return p - (double)m;
}

static double sum_of_gates(const pe_tile *tile, int64_t r)
{
    double sum = 0;
    for (int64_t c = tile->cols - 1; c >= 0; c--)
        sum += gate(tile->s[r * tile->stride + c]);
    return sum;
}

static walker start(const pe_problem *p, const double *const par[], const pe_tile *tile, int64_t r,
                    double count)
{
    return (walker){.q     = tile->q + r * p->D,
                    .E     = par[E],
                    .D     = p->D,
                    .npos  = p->set[NPOS].integer,
                    .m     = -1,
                    .count = count};
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    const double factor = p->set[SCALING].integer == 0 ? tile->scale : 1;
    for (int64_t r = 0; r < tile->rows; r++) {
        double *state = tile->state + r * PE_HOOK_STATE;
        walker  w     = start(p, par, tile, r, state[CARRY] - (tile->backward ? sum_of_gates(tile, r) : 0));
        for (int64_t c = tile->cols - 1; c >= 0; c--) {
            const int64_t at = r * tile->stride + c;
            w.count += gate(tile->s[at]);
            const double f = locate(&w);
            x[at]          = factor * (w.z_high * f + w.z_low * (1 - f));
        }
        if (!tile->backward)
            state[CARRY] = w.count;
    }
}

/* E and q of one key: e(p) = z_high f + z_low (1 - f), with f = p - floor p. Returns d e / d p. */
static double table_back(const walker *w, double f, double de, double *dE, double *dq)
{
    const int64_t low = w->m, high = low + 1 < w->npos ? low + 1 : low;
    for (int64_t d = 0; d < w->D; d++) {
        dq[d] += de * (f * w->E[high * w->D + d] + (1 - f) * w->E[low * w->D + d]);
        if (dE) {
            dE[high * w->D + d] += de * f * w->q[d];
            dE[low * w->D + d] += de * (1 - f) * w->q[d];
        }
    }
    return f == 0 || w->count >= (double)(w->npos - 1) ? 0 : w->z_high - w->z_low;
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    const double factor = p->set[SCALING].integer == 0 ? tile->scale : 1;
    for (int64_t r = 0; r < tile->rows; r++) {
        double      *state = tile->state + r * PE_HOOK_STATE, *ds = tile->ds + r * tile->stride;
        const double sum = sum_of_gates(tile, r);
        walker       w   = start(p, par, tile, r, state[CARRY] - sum);
        for (int64_t c = tile->cols - 1; c >= 0; c--) { /* dp of each key, kept in ds for a moment */
            const int64_t at = r * tile->stride + c;
            if (tile->s[at] == -INFINITY)
                continue;
            w.count += gate(tile->s[at]);
            const double f = locate(&w), de = factor * dx[at];
            ds[c] = de * table_back(&w, f, de, dpar[E], tile->dq + r * p->D);
        }
        for (int64_t c = 0; c < tile->cols; c++) { /* a gate counts for itself and every key to its left */
            const double g = gate(tile->s[r * tile->stride + c]);
            state[PREFIX] += ds[c];
            ds[c] = state[PREFIX] * g * (1 - g);
        }
        state[CARRY] -= sum;
    }
}

static void terms(const pe_problem *p, pe_terms *s)
{
    s->scale = 1.0 / sqrt((double)p->D);
    s->hook  = (pe_tile_hook){.visit = visit, .visit_back = visit_back, .content = 1, .state = STATE};
}

/* For each query and head what it makes of the entries of E it may need; for each pair its gate (three), the count, and the
   mean of two entries (six). */
static double operations(const pe_problem *p)
{
    const int64_t npos = p->set[NPOS].integer, met = npos < p->Lk + 1 ? npos : p->Lk + 1;
    return (double)p->H * (double)p->Lq * (2 * (double)p->D * (double)met + 10 * (double)p->Lk);
}

const pe_encoding pe_cope = {
    .info =
        {
            .name          = "cope",
            .place         = POSENC_SCORE,
            .title         = "contextual positions, counted by gates",
            .paper         = "arXiv:2405.18719",
            .models        = "research (FAIR)",
            .pictures      = "",
            .settings      = settings,
            .setting_count = PE_ROWS(settings),
            .params        = params,
            .param_count   = PE_ROWS(params),
            .by_distance   = 1,
            .sees          = "how many keys the query lets through, by their content",
        },
    .model      = "npos=L",
    .examples   = examples,
    .operations = operations,
    .init       = init,
    .terms      = terms,
};
