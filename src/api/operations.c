/* SPDX-License-Identifier: MIT */
/*
 * operations.c: what an encoding costs, counted from its formulas
 *
 * Two halves. A room counts what its own formulas cost (pe_encoding.operations, or .count): a row of sines,
 * the steps of a solver, a network of the distance. Here the engine's half is counted from the same members
 * that it reads: adding rows, rotating pairs, multiplying by a table of distances, adding a bias. A query has
 * R products with a table of R rows, however many keys there are; a table without an end has a row for each
 * key that a query sees.
 *
 * It is a count of the formulas, not of instructions: a program may need fewer (the engine makes a
 * broken line of fire's network), and a function counts as one operation, though a sine takes longer than a
 * sum.
 */
#include "api/objects.h"

/* The sizes as numbers that may be multiplied without a thought of overflow. */
typedef struct sizes {
    double H, G, Lq, Lk, D, Dv, pairs; /* pairs: of a query and a key, in all heads */
} sizes;

static double rooms(const posenc_plan *plan)
{
    double sum = 0;
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const pe_resolved *part = &plan->parts[place];
        if (part->room && part->room->operations)
            sum += pe_encoding_number(part, &plan->dims, part->room->operations);
        if (part->room && part->room->count)
            sum += part->room->count(&part->problem);
    }
    return sum;
}

/* For each position and pair an angle, its cosine and sine; six for each pair of channels of a query or key.
   With growth queries and keys have factors of their own: an exponent, its power, two products. */
static double rotations(const posenc_plan *plan, const sizes *n)
{
    const double M = (double)plan->rotary.M, growth = plan->rotary.growth ? 4 * (n->Lq + n->Lk) : 0;
    return M * (3 * n->Lk * (double)plan->rotary.heads + growth + 6 * (n->H * n->Lq + n->G * n->Lk));
}

/* Rows of a member that one side meets, at most one for each of the `others`. */
static double rows_met(const pe_by_distance *m, double others)
{
    const double ends = m->clipped ? (double)(m->high - m->low + 1) : others;
    return ends < others ? ends : others;
}

/* Products of a vector with the rows it meets (2 D - 1 each), and their sum with the score of each pair. */
static double vectors(const posenc_plan *plan, const sizes *n)
{
    const pe_terms *s    = &plan->terms;
    const double    each = 2 * n->D - 1;
    double          sum  = 0;
    if (pe_has(s, PE_A))
        sum += n->H * n->Lq * rows_met(&s->A, n->Lk) *
                   (s->profile == PE_NONE ? each : 2 * (double)s->profile_width - 1) +
               n->pairs;
    if (pe_has(s, PE_B))
        sum += n->H * n->Lk * rows_met(&s->B, n->Lq) * each + n->pairs;
    if (s->G != PE_NONE)
        sum += n->H * n->Lq * 2 * each + n->pairs;
    return sum;
}

/* Weights of one row are added up before they multiply it, where several keys share it. */
static double values(const posenc_plan *plan, const sizes *n)
{
    if (!pe_has(&plan->terms, PE_R))
        return 0;
    const double met = rows_met(&plan->terms.r, n->Lk);
    return n->H * n->Lq * 2 * n->Dv * met + (met < n->Lk ? n->pairs : 0);
}

/* u, w and us, each added to every query; a bias, a gate, and what a hook gives, for each pair. A hook for
   special tokens takes the place of the bias. */
static double numbers(const posenc_plan *plan, const sizes *n)
{
    const pe_terms *s       = &plan->terms;
    const int       vectors = (s->u != PE_NONE) + (s->w != PE_NONE) + (s->us != PE_NONE);
    const int scalars = pe_has(s, PE_BIAS) + pe_has(s, PE_GATE) + (s->hook.visit && !s->hook.is_special) +
                        (s->pairs.matrix != NULL);
    return vectors * n->H * n->Lq * n->D + scalars * n->pairs;
}

/* Longer queries and keys have longer products; two forms are two products and a modulus. */
static double products(const posenc_plan *plan, const sizes *n)
{
    const pe_preparation *prepare = &plan->terms.prepare;
    if (!prepare->fill)
        return 0;
    const double width = (double)prepare->width, more = 2 * (width - n->D) * n->pairs;
    return prepare->forms > 1 ? more + (2 * width + 4) * n->pairs : more;
}

/* A rule of the temperature for each position, its factor for each channel of a query or each pair; a cap: a
   quotient, a function, a product; a sink: a power, a sum and its logarithm for each query, and the factor of
   its output. */
static double finishing(const posenc_plan *plan, const sizes *n)
{
    const pe_terms *s    = &plan->terms;
    const double    rows = n->H * n->Lq, rule = 5 * (s->temper.fill_by_head ? rows : n->Lq);
    const double    tau  = s->temper.on == PE_TEMPER_NONE    ? 0
                           : s->temper.on == PE_TEMPER_QUERY ? rule + rows * n->D
                                                             : rule + n->pairs;
    const int       sink = s->sink != PE_NONE || s->sink_token != PE_NONE;
    return tau + (s->softcap > 0 ? 3 * n->pairs : 0) + (sink ? rows * (4 + n->Dv) : 0);
}

double posenc_plan_operations(const posenc_plan *plan)
{
    if (!plan)
        return 0;
    const posenc_dims *d = &plan->dims;
    const double       H = (double)d->H, Lq = (double)d->Lq, Lk = (double)d->Lk;
    const sizes        n    = {H, (double)d->G, Lq, Lk, (double)d->D, (double)d->Dv, H * Lq * Lk};
    const double       rows = Lq * (double)posenc_rows_width(plan); /* y = x + row */
    return rooms(plan) + rows + rotations(plan, &n) + vectors(plan, &n) + values(plan, &n) +
           numbers(plan, &n) + products(plan, &n) + (plan->dims.D > 0 ? finishing(plan, &n) : 0);
}
