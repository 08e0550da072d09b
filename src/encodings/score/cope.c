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
#include <string.h>

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

/* Several partial sums in a fixed order: additions that wait for one another are what a long sum takes its time for. */
static double dot(const double *a, const double *b, int64_t n)
{
    enum { APART = 8 };
    double sums[APART] = {0}, sum = 0;
    for (int64_t i = 0; i + APART <= n; i += APART)
        for (int k = 0; k < APART; k++)
            sums[k] += a[i + k] * b[i + k];
    for (int64_t i = n - n % APART; i < n; i++)
        sum += a[i] * b[i];
    for (int k = 0; k < APART; k++)
        sum += sums[k];
    return sum;
}

/*
 * A query with a run of keys. Counts change by less than one per key, so the run meets few entries of z: they are computed
 * first, and the loop over keys has nothing to decide.
 */
enum { RUN = 64 };

typedef struct walk {
    const double *q, *E;
    int64_t       D, npos, n;
    double        count; /* forward: of the keys to the right of the run; backward: of the run and those */
    double  gates[RUN], above[RUN]; /* above: how far a count stands from entry[] towards the next one */
    int64_t entry[RUN], first, met; /* entries first .. first+met-1 of z are there */
    double  z[RUN + 2];
} walk;

static void start(walk *w, const pe_problem *p, const double *const par[], const pe_tile *tile, int64_t r)
{
    w->q     = tile->q + r * p->D;
    w->E     = par[E];
    w->D     = p->D;
    w->npos  = p->set[NPOS].integer;
    w->count = tile->state[r * PE_HOOK_STATE + CARRY];
}

static double factor_of(const pe_problem *p, const pe_tile *tile)
{
    return p->set[SCALING].integer == 0 ? tile->scale : 1;
}

/* Clipped at the end of the table; and at 0, for coming down, rounding may take a count that is all but 0 below it. */
static void place(walk *w, int64_t c)
{
    const double last = (double)(w->npos - 1), p = w->count < 0 ? 0 : w->count < last ? w->count : last;
    w->entry[c] = (int64_t)p;
    w->above[c] = p - (double)w->entry[c];
}

/* Gates and places of keys s[0..n-1]. Forward from the right, upwards; backward from the left, downwards. */
static void count_run(walk *w, const double *s, int64_t n, int backward)
{
    w->n = n;
    for (int64_t c = 0; c < n; c++)
        w->gates[c] = gate(s[c]);
    for (int64_t c = 0; backward && c < n; c++) {
        place(w, c);
        w->count -= w->gates[c];
    }
    for (int64_t c = n - 1; !backward && c >= 0; c--) {
        w->count += w->gates[c];
        place(w, c);
    }
    w->first = w->entry[n - 1];
    w->met   = w->entry[0] - w->first + 2;
}

/* Beyond the end of the table z stays what it is there. */
static const double *row_of(const walk *w, int64_t i)
{
    const int64_t m = w->first + i;
    return w->E + (m < w->npos ? m : w->npos - 1) * w->D;
}

static void find_entries(walk *w)
{
    for (int64_t i = 0; i < w->met; i++)
        w->z[i] = dot(w->q, row_of(w, i), w->D);
}

static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    const double factor = factor_of(p, tile);
    walk         w;
    for (int64_t r = 0; r < tile->rows; r++) {
        start(&w, p, par, tile, r);
        for (int64_t step = 0; step < tile->cols; step += RUN) {
            const int64_t n    = tile->cols - step < RUN ? tile->cols - step : RUN,
                          from = r * tile->stride + (tile->backward ? step : tile->cols - step - n);
            count_run(&w, tile->s + from, n, tile->backward);
            find_entries(&w);
            for (int64_t c = 0; c < n; c++) {
                const double *z = w.z + (w.entry[c] - w.first);
                const double  f = w.above[c];
                x[from + c]     = factor * (z[1] * f + z[0] * (1 - f));
            }
        }
        if (!tile->backward)
            tile->state[r * PE_HOOK_STATE + CARRY] = w.count;
    }
}

/* dq += dz E[m], dE[m] += dz q, once for each entry that the run met */
static void entries_back(const walk *w, const double dz[], double *restrict dq, double *restrict dE)
{
    for (int64_t i = 0; i < w->met; i++) {
        const double *row = row_of(w, i);
        for (int64_t d = 0; d < w->D; d++)
            dq[d] += dz[i] * row[d];
        for (int64_t d = 0; dE && d < w->D; d++)
            dE[row - w->E + d] += dz[i] * w->q[d];
    }
}

/* Of a run, from the left: a gate counts for itself and every key to its left, whose dp are in `prefix` by then. dp is 0
   where the count is a whole number or beyond the table. */
static void run_back(const walk *w, const double s[], const double dx[], double factor, double *prefix,
                     double ds[], double dz[RUN + 2])
{
    memset(dz, 0, (size_t)w->met * sizeof *dz);
    for (int64_t c = 0; c < w->n; c++) {
        const int64_t i = w->entry[c] - w->first;
        const double  g = w->gates[c], f = w->above[c], de = s[c] == -INFINITY ? 0 : factor * dx[c];
        dz[i + 1] += de * f;
        dz[i] += de * (1 - f);
        *prefix += f == 0 ? 0 : de * (w->z[i + 1] - w->z[i]);
        ds[c] = *prefix * g * (1 - g);
    }
}

static void visit_back(const pe_problem *p, const double *const par[], const pe_tile *tile, const double dx[],
                       double *const dpar[])
{
    walk   w;
    double dz[RUN + 2];
    for (int64_t r = 0; r < tile->rows; r++) {
        double *state = tile->state + r * PE_HOOK_STATE;
        start(&w, p, par, tile, r);
        for (int64_t from = 0; from < tile->cols; from += RUN) {
            const int64_t at = r * tile->stride + from;
            count_run(&w, tile->s + at, tile->cols - from < RUN ? tile->cols - from : RUN, 1);
            find_entries(&w);
            run_back(&w, tile->s + at, dx + at, factor_of(p, tile), &state[PREFIX], tile->ds + at, dz);
            entries_back(&w, dz, tile->dq + r * p->D, dpar[E]);
        }
        state[CARRY] = w.count;
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
