/* SPDX-License-Identifier: MIT */
/*
 * CoPE: contextual position encoding
 *
 * Place    score
 * Formula  S[h,i,j] = scale * ( q_i . k_j + e(p_ij) )     scaling=ram; paper: scale * q_i.k_j + e(p_ij)
 *          p_ij     = min( sum_{k=j..} g_ik, npos - 1 ), over allowed keys k >= j
 *          g_ik     = sigmoid(scale * q_i.k_k)
 *          e(p)     = z[ceil p] (p - floor p) + z[floor p] (1 - (p - floor p)),  z[m] = q_i . E[m]
 * Learns   E [npos, D], shared by the heads; starts at zero
 * Source   Golovneva et al. 2024, arXiv:2405.18719; facebookresearch/RAM,
 *          projects/cope/src/cope/context_position.py
 *
 * Positions are counted, not given: each query counts the keys its gates let through, from itself backwards.
 * The authors' code scales e with the product, their paper's listing does not (z is then made of the unscaled
 * query); both compute gates from the scaled product. Where p is an integer or clipped its gradient is zero.
 *
 * The count at a key needs all gates to its right, so this is a hook that visits keys from right to left,
 * with one running sum per query; the backward starts at the left with the total, and sums dp as it goes.
 */
#include "encodings/encoding.h"

enum { NPOS, SCALING }; /* ORDER settings */
static const posenc_setting_info settings[] = {
    {"npos", "integer", "L+1", "1..", "contextual positions in the table; larger counts use the last"},
    {"scaling", "word", "ram", "ram|paper",
     "is e(p) multiplied by scale (ram: the authors' code) or not (paper)"},
    {0},
};
static_assert(PE_ROWS(settings) == SCALING + 1, "ORDER settings");

/* TRANSPOSED is made of E: [D, transposed_stride]. */
enum { E, TRANSPOSED }; /* ORDER params */
static const posenc_param_info params[] = {
    {"E", "npos,D", "zeros", "one vector per counted position, multiplied with the query", 1},
    {0},
};
static_assert(PE_ROWS(params) == E + 1, "ORDER params");

static const posenc_example examples[] = {
    {"H=1 D=2 npos=4", 0, 5, 2, 0, "without content e(p) = 0: z is a product with the query, and q = 0"},
    {0},
};

enum {
    CARRY,
    PREFIX,
    STATE
}; /* forward: gates to the right. backward: gates of this tile and to its right; sum of dp */

/* ---- E transposed, its last vector repeated for what lies beyond the table ---- */

static int64_t transposed_stride(const pe_problem *p)
{
    return pe_padded64(p->set[NPOS].integer + 1) + PE_LANES64;
}

static int64_t transposed_count(const pe_problem *p)
{
    return p->D * transposed_stride(p);
}

static void transpose(const pe_problem *p, const double *const par[], double made[])
{
    const int64_t last = p->set[NPOS].integer - 1;
    for (int64_t d = 0; d < p->D; d++)
        for (int64_t m = 0; m < transposed_stride(p); m++)
            made[d * transposed_stride(p) + m] = par[E][(m < last ? m : last) * p->D + d];
}

/*
 * A query with a run of keys. Counts change by less than one per key, so the run needs few entries of z: they
 * are computed first, and the loop over keys has nothing to decide.
 */
enum { RUN = 64 };

typedef struct gate_walk {
    const pe_problem    *p;
    const double        *q, *E, *transposed;
    const double *const *par;
    int64_t              D, npos, n;
    double  count; /* forward: of the keys to the right of the run; backward: of the run and those */
    double  gates[RUN], above[RUN];  /* above: how far a count stands from entry[] towards the next one */
    int64_t entry[RUN], first, used; /* entries first .. first+used-1 of z are there */
    double  z[RUN + 2 * PE_LANES64];
} gate_walk;

static void start(gate_walk *w, const pe_problem *p, const double *const par[], const pe_tile *tile,
                  int64_t r)
{
    w->p          = p;
    w->q          = tile->q + r * p->D;
    w->par        = par;
    w->E          = par[E];
    w->transposed = par[TRANSPOSED];
    w->D          = p->D;
    w->npos       = p->set[NPOS].integer;
    w->count      = tile->state[r * PE_HOOK_STATE + CARRY];
}

/* Keys of a tile's row that its query may see, except those that masks hide between them: first .. last-1. */
typedef struct seen {
    int64_t first, last;
} seen;

static seen seen_of(const pe_tile *tile, int64_t r)
{
    const double *s = tile->s + r * tile->stride;
    seen          x = {0, tile->cols};
    while (x.last > 0 && s[x.last - 1] == -INFINITY)
        x.last--;
    while (x.first < x.last && s[x.first] == -INFINITY)
        x.first++;
    return x;
}

static double factor_of(const pe_problem *p, const pe_tile *tile)
{
    return p->set[SCALING].integer == 0 ? tile->scale : 1;
}

/* Clipped at the end of the table; and at 0, for coming down, rounding may take a count that is nearly 0
   below it. */
static void place(gate_walk *w, int64_t c)
{
    const double last = (double)(w->npos - 1), p = w->count < 0 ? 0 : w->count < last ? w->count : last;
    w->entry[c] = (int64_t)p;
    w->above[c] = p - (double)w->entry[c];
}

/* Gates and places of keys s[0..n-1]. Forward from the right, upwards; backward from the left, downwards. */
static void count_run(gate_walk *w, const double *s, int64_t n, int backward)
{
    w->n = n;
    w->p->kernels->sigmoids(w->gates, s, n);
    for (int64_t c = 0; backward && c < n; c++) {
        place(w, c);
        w->count -= w->gates[c];
    }
    for (int64_t c = n - 1; !backward && c >= 0; c--) {
        w->count += w->gates[c];
        place(w, c);
    }
    w->first = w->entry[n - 1];
    w->used  = w->entry[0] - w->first + 2;
}

/* Where E is not transposed: one vector after the other. */
static void find_entries_apart(gate_walk *w)
{
    double vector[RUN];
    for (int64_t i = 0; i < w->used; i++) {
        const int64_t last = w->npos - 1, m = w->first + i < last ? w->first + i : last;
        double        sums[PE_LANES64] = {0};
        for (int64_t d0 = 0; d0 < w->D; d0 += RUN) {
            const int64_t n = w->D - d0 < RUN ? w->D - d0 : RUN;
            pe_read(w->p, w->par, E, m * w->D + d0, n, vector);
            for (int64_t d = 0; d < n; d++)
                sums[d % PE_LANES64] += w->q[d0 + d] * vector[d];
        }
        w->z[i] = 0;
        for (int lane = 0; lane < PE_LANES64; lane++)
            w->z[i] += sums[lane];
    }
}

static void find_entries(gate_walk *w)
{
    if (!w->transposed) {
        find_entries_apart(w);
        return;
    }
    memset(w->z, 0, (size_t)pe_padded64(w->used) * sizeof *w->z);
    pe_multiply64(w->p, w->z, pe_padded64(w->used), w->q, w->D, 1, w->transposed + w->first,
                  transposed_stride(w->p), 1, pe_padded64(w->used), w->D);
}

static void spread_ends(double x[], seen at, int64_t cols)
{
    for (int64_t c = 0; c < at.first; c++)
        x[c] = x[at.first];
    for (int64_t c = at.last; c < cols; c++)
        x[c] = x[at.last - 1];
}

/* Keys beyond those that a query sees have no gates, and all of them the place of the first beyond. */
static void visit(const pe_problem *p, const double *const par[], const pe_tile *tile, double x[])
{
    const double factor = factor_of(p, tile);
    gate_walk    w;
    for (int64_t r = 0; r < tile->rows; r++) {
        seen see = seen_of(tile, r);
        see.first -= see.first > 0;
        see.last += see.last < tile->cols;
        start(&w, p, par, tile, r);
        for (int64_t step = 0; step < see.last - see.first; step += RUN) {
            const int64_t n    = see.last - see.first - step < RUN ? see.last - see.first - step : RUN,
                          from = r * tile->stride + (tile->backward ? see.first + step : see.last - step - n);
            count_run(&w, tile->s + from, n, tile->backward);
            find_entries(&w);
            for (int64_t c = 0; c < n; c++) {
                const double *z = w.z + (w.entry[c] - w.first);
                const double  f = w.above[c];
                x[from + c]     = factor * (z[1] * f + z[0] * (1 - f));
            }
        }
        spread_ends(x + r * tile->stride, see, tile->cols);
        if (!tile->backward)
            tile->state[r * PE_HOOK_STATE + CARRY] = w.count;
    }
}

/* dq += dz E[m], dE[m] += dz q, once for each entry that the run used. What lies beyond the table is its last
   entry. */
static void entries_back(const gate_walk *w, double dz[], double *dq, double *dE)
{
    const int64_t there = w->npos - w->first, n = w->used < there ? w->used : there;
    for (int64_t i = there; i < w->used; i++)
        dz[there - 1] += dz[i];
    pe_multiply64(w->p, dq, w->D, dz, n, 1, w->E + w->first * w->D, w->D, 1, w->D, n);
    if (dE)
        pe_multiply64(w->p, dE + w->first * w->D, w->D, dz, 1, n, w->q, w->D, n, w->D, 1);
}

/* Of a run, from the left: a gate counts for itself and every key to its left, whose dp are in `prefix` by
   then. dp is 0 where the count is a whole number or beyond the table. */
static void run_back(const gate_walk *w, const double s[], const double dx[], double factor, double *prefix,
                     double ds[], double dz[RUN + 2])
{
    memset(dz, 0, (size_t)w->used * sizeof *dz);
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
    gate_walk w;
    double    dz[RUN + 2];
    for (int64_t r = 0; r < tile->rows; r++) {
        double    *state = tile->state + r * PE_HOOK_STATE;
        const seen see   = seen_of(tile, r);
        start(&w, p, par, tile, r);
        for (int64_t from = see.first; from < see.last; from += RUN) {
            const int64_t at = r * tile->stride + from;
            count_run(&w, tile->s + at, see.last - from < RUN ? see.last - from : RUN, 1);
            find_entries(&w);
            run_back(&w, tile->s + at, dx + at, factor_of(p, tile), &state[PREFIX], tile->ds + at, dz);
            entries_back(&w, dz, tile->dq + r * p->D, dpar[E]);
        }
        state[CARRY] = w.count;
    }
}

const pe_encoding pe_cope = {
    .info.name        = "cope",
    .info.place       = POSENC_PLACE_SCORE,
    .info.title       = "contextual positions, counted by gates",
    .info.formula     = "S_{h,i,j} = s (q_i · k_j + e(p_{i,j})) , "
                        "p_{i,j} = min(∑_{k=j}^{i} g_{i,k} , n − 1)\n"
                        "g_{i,k} = σ(s q_i · k_k) , e(p) = (p − ⌊ p ⌋) z_{⌈ p ⌉} + "
                        "(1 − p + ⌊ p ⌋) z_{⌊ p ⌋} , z_m = q_i · E_m",
    .info.symbols     = "g_{i,k}: the gate: how much token k counts for query i\n"
                        "p_{i,j}: the position of key j for query i: the sum of the gates from j to i\n"
                        "n: how many positions have a vector, setting npos\n"
                        "e: the score of a position that lies between two whole ones\n"
                        "p: the position p_{i,j}\n"
                        "z_m: the score of the whole position m\n"
                        "E_m: the learned vector of position m\n"
                        "m: a whole position\n"
                        "k: a key between j and i; k_k is its vector",
    .info.paper       = "arXiv:2405.18719",
    .info.models      = "research (FAIR)",
    .info.beyond      = "Places are counted by content; counts beyond npos share the last vector.",
    .info.pictures    = "",
    .info.by_distance = 1,
    .info.sees        = "how many keys the query lets through, by their content",
    .model            = "npos=L",
    /* For each query and head what it makes of the entries of E it may need; for each pair its gate (three),
       the count, and the mean of two entries (six). */
    .operations = "H*Lq*(2*D*min(npos,Lk+1)+10*Lk)",
    .attention
        .hook = {.visit = visit, .visit_back = visit_back, .content = 1, .state = STATE, .learns = 1 << E},
    /* gradients go to E itself */
    .attention.derived          = transposed_count,
    .attention.derived_for_many = 1,
    .attention.in_place         = 1 << E,
    .attention.derive           = transpose,
    PE_TABLES(settings, params, examples),
};
