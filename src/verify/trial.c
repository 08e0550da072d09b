/* SPDX-License-Identifier: MIT */
/* Finding, measuring and preparing the arrays of a case: contract in trial.h. */
#include "verify/trial.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- arrays -------------------- */

const posenc_tensor *pe_trial_find(pe_trial *t, const char *name)
{
    for (int i = 0; i < t->p.file.count; i++)
        if (!strcmp(t->p.file.items[i].name, name)) {
            t->p.used[i] = 1;
            return &t->p.file.items[i].tensor;
        }
    return NULL;
}

int pe_trial_has(const pe_trial *t, const char *name)
{
    return posenc_arrays_find(&t->p.file, name) != NULL;
}

int pe_trial_need(pe_trial *t, const char *const *names)
{
    for (; *names; names++)
        if (!pe_trial_has(t, *names))
            pe_calc_refuse(&t->p, "it has no array %s, which a case of this form needs", *names);
    return !pe_calc_failed(&t->p);
}

posenc_tensor pe_trial_numbers(pe_trial *t, const char *name)
{
    return pe_calc_convert(&t->p, t->with->dtype, pe_trial_find(t, name));
}

posenc_positions pe_trial_positions(pe_trial *t, const char *name)
{
    return posenc_positions_array(pe_calc_find_positions(&t->p, (const char *const[]){name, NULL}));
}

posenc_tensor pe_trial_join(pe_trial *t, const char *const parts[2])
{
    const posenc_tensor halves[2] = {pe_trial_numbers(t, parts[0]), pe_trial_numbers(t, parts[1])};
    return pe_calc_join(&t->p, halves);
}

const char *pe_trial_setting(const posenc_case *c, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = c->settings; *at; at += strcspn(at, " "), at += *at == ' ')
        if (!strncmp(at, name, n) && at[n] == '=')
            return at + n + 1;
    return NULL;
}

/* ---------------------------------------------------------------- tolerances ---------------- */

/* Of float64 and of float32 results; by_row says what a float32 factor is relative to. */
static const struct {
    double factor[2];
    int    by_row;
} rules[PE_CASE_KINDS] = {
    [PE_CASE_OUTPUT] = {{1e-12, 2e-6}, 1}, [PE_CASE_GRADIENT] = {{1e-11, 2e-5}, 1},
    [PE_CASE_SOLVED] = {{1e-10, 2e-6}, 1}, [PE_CASE_PREPARED] = {{1e-12, 1e-12}, 0},
    [PE_CASE_INDEX] = {{0, 0}, 0},
};

static const double LEAST_SCALE = 1e-3; /* of a row, relative to its array */

/* What a float64 gradient may be off by. An array whose references are all below is 0 - a number added to
   every score of a row has no gradient, for example - and what the reference holds is its own rounding: no
   scale for a float32 result, which is a sum of numbers as large as the other gradients. */
static const double ZERO = 1e-11;

static double largest(const posenc_tensor *t, int64_t from, int64_t n)
{
    double most = 0;
    for (int64_t i = from; i < from + n; i++) {
        const double x = fabs(pe_calc_element(t, i));
        if (isfinite(x) && x > most)
            most = x;
    }
    return most;
}

double pe_trial_largest(const posenc_tensor *t)
{
    return largest(t, 0, pe_tensor_elements(t));
}

static double fraction(double got, double want, double allowed)
{
    if (got == want)
        return 0;
    const double error = fabs(got - want);
    return isfinite(error) && allowed > 0 ? error / allowed : (double)INFINITY;
}

pe_difference pe_trial_measure(const posenc_tensor *got, const posenc_tensor *want, const pe_allowance *a)
{
    const int64_t n      = pe_tensor_elements(want);
    const int64_t last   = want->ndim ? want->shape[want->ndim - 1] : 1;
    const int64_t width  = a->by_head && want->ndim > 1 ? last * want->shape[want->ndim - 2] : last;
    const double  factor = rules[a->kind].factor[a->is_single], array = pe_trial_largest(want);
    const double  least  = a->kind == PE_CASE_GRADIENT && array <= ZERO ? a->others : LEAST_SCALE * array;
    const int     by_row = a->is_single && rules[a->kind].by_row;
    pe_difference m      = {0, 0, 0, 0};
    for (int64_t row = 0; width > 0 && row * width < n; row++) {
        const double most  = largest(want, row * width, width);
        const double scale = fmax(most, least);
        const double angle = (a->angles ? a->angles[row] : a->angle) * fmax(1, most);
        for (int64_t i = row * width; i < (row + 1) * width; i++) {
            const double x = pe_calc_element(got, i), ref = pe_calc_element(want, i);
            const double allowed = factor * (by_row ? scale : fmax(1, fabs(ref))) + angle;
            const double f       = fraction(x, ref, allowed);
            if (f > m.worst || i == 0)
                m = (pe_difference){f, i, x, ref};
        }
    }
    return m;
}

/* ---------------------------------------------------------------- measuring ----------------- */

/* Equal except for leading axes of length 1, which carry no meaning in the cases ([L,d] is [1,L,d]). */
static int same_shape(const posenc_tensor *a, const posenc_tensor *b)
{
    const posenc_tensor same = pe_calc_with_axes(*a, b->ndim);
    return same.ndim == b->ndim && !memcmp(same.shape, b->shape, (size_t)b->ndim * sizeof *b->shape);
}

static const char *element_text(pe_trial *t, const posenc_tensor *array, int64_t at)
{
    int64_t index[POSENC_MAX_DIMS];
    for (int32_t a = array->ndim - 1; a >= 0; a--) {
        index[a] = at % array->shape[a];
        at /= array->shape[a];
    }
    return pe_calc_shape_text(&t->p, array->ndim, index);
}

/* The new largest error, and which element shows it if it is too large. */
static void take_worst(pe_trial *t, const char *name, const posenc_tensor *want, const pe_difference *m)
{
    pe_case_result *r = t->result;
    r->worst          = m->worst;
    r->executor       = t->with ? t->with->name : NULL;
    snprintf(r->array, sizeof r->array, "%s", name);
    if (m->worst > 1)
        snprintf(r->problem, sizeof r->problem, "%.60s%s is %.17g instead of %.17g", name,
                 element_text(t, want, m->at), m->got, m->want);
}

static void measure(pe_trial *t, const char *name, const posenc_tensor *got, pe_allowance *allowance)
{
    const posenc_tensor *want = pe_calc_failed(&t->p) ? NULL : pe_trial_find(t, name);
    if (!want)
        return;
    if (!same_shape(got, want)) {
        pe_calc_refuse(&t->p, "%.60s has the shape %s but the encoding gives %s", name,
                       pe_calc_shape_text(&t->p, want->ndim, want->shape),
                       pe_calc_shape_text(&t->p, got->ndim, got->shape));
        return;
    }
    allowance->is_single  = t->with && t->with->dtype == POSENC_DTYPE_F32;
    const pe_difference m = pe_trial_measure(got, want, allowance);
    if (t->result->compared++ == 0 || m.worst > t->result->worst)
        take_worst(t, name, want, &m);
}

static void compare(pe_trial *t, const char *name, const posenc_tensor *got, pe_allowance allowance)
{
    for (int i = 0; allowance.kind == PE_CASE_GRADIENT && i < t->p.file.count; i++)
        if (!strncmp(t->p.file.items[i].name, "g_", 2))
            allowance.others = fmax(allowance.others, pe_trial_largest(&t->p.file.items[i].tensor));
    measure(t, name, got, &allowance);
}

void pe_trial_compare(pe_trial *t, pe_case_kind kind, const char *name, const posenc_tensor *got,
                      double angle)
{
    compare(t, name, got, (pe_allowance){.kind = kind, .angle = angle});
}

void pe_trial_compare_heads(pe_trial *t, const char *name, const posenc_tensor *got)
{
    compare(t, name, got, (pe_allowance){.kind = PE_CASE_GRADIENT, .by_head = 1});
}

void pe_trial_compare_rows(pe_trial *t, const char *name, const posenc_tensor *got, const double *angles)
{
    measure(t, name, got, &(pe_allowance){.kind = PE_CASE_OUTPUT, .angles = angles});
}

void pe_trial_compare_param_gradients(pe_trial *t, double angle)
{
    for (int i = 0; i < t->p.count && !pe_calc_failed(&t->p); i++)
        if (t->dparams[i].data)
            pe_trial_compare(t, PE_CASE_GRADIENT, pe_calc_text(&t->p, "g_%s", posenc_param_name(t->p.e, i)),
                             &t->dparams[i], angle);
}

void pe_trial_compare_parts(pe_trial *t, pe_case_kind kind, const char *const parts[2],
                            const posenc_tensor *got, double angle)
{
    const posenc_tensor *like = pe_calc_failed(&t->p) ? NULL : pe_trial_find(t, parts[0]);
    if (!like)
        return;
    if (2 * pe_tensor_elements(like) != pe_tensor_elements(got))
        pe_calc_refuse(&t->p, "%s is not half as large as what the encoding gives", parts[0]);
    const posenc_tensor halves[2] = {pe_calc_make_like(&t->p, got->dtype, like),
                                     pe_calc_make_like(&t->p, got->dtype, like)};
    if (!pe_calc_failed(&t->p))
        pe_calc_split(got, halves);
    for (int i = 0; i < 2; i++)
        pe_trial_compare(t, kind, parts[i], &halves[i], angle);
}

/* ---------------------------------------------------------------- plan and parameters ------- */

/* Copies the file's par_<name>, or in_<name>, over the initial value of a parameter. */
static void take_param(pe_trial *t, posenc_tensor *to, const char *name)
{
    const posenc_tensor *par  = pe_trial_find(t, pe_calc_text(&t->p, "par_%s", name));
    const posenc_tensor *from = par ? par : pe_trial_find(t, pe_calc_text(&t->p, "in_%s", name));
    if (from && !same_shape(from, to))
        pe_calc_refuse(&t->p, "par_%.60s has the shape %s; the settings ask for %s", name,
                       pe_calc_shape_text(&t->p, from->ndim, from->shape),
                       pe_calc_shape_text(&t->p, to->ndim, to->shape));
    for (int64_t n = 0; from && !pe_calc_failed(&t->p) && n < pe_tensor_elements(from); n++)
        pe_calc_put(to, n, pe_calc_element(from, n));
}

/* Does parameter i belong to the rotary part? */
static int is_rotary(const pe_calc *p, int i)
{
    const posenc_encoding_info *part = posenc_encoding_part(p->e, POSENC_PLACE_ROTARY);
    for (int n = 0; part && n < part->param_count; n++)
        if (&part->params[n] == posenc_param_describe(p->e, i))
            return 1;
    return 0;
}

int pe_trial_prepare(pe_trial *t, const posenc_dims *dims, int mask, posenc_run runs)
{
    pe_calc *p          = &t->p;
    p->dims             = *dims;
    p->options.mask     = mask;
    p->options.executor = t->with->executor;
    p->options.tile_q   = t->options->tile_q;
    p->options.tile_k   = t->options->tile_k;
    p->options.threads  = 1; /* cases are small, and the bits do not depend on it */
    p->params           = pe_calc_initial(p, t->with->dtype);
    t->exact            = pe_calc_initial(p, POSENC_DTYPE_F64);
    pe_calc_plan(p, runs); /* after the parameters, whose sizes are known to be reasonable by now */
    p->count   = pe_calc_failed(p) ? 0 : posenc_param_count(p->e);
    t->dparams = pe_calc_block(p, ((size_t)p->count + 1) * sizeof *t->dparams);
    for (int i = 0; i < p->count && !pe_calc_failed(p); i++) {
        const char *name = posenc_param_name(p->e, i);
        take_param(t, &p->params[i], name);
        take_param(t, &t->exact[i], name);
        if (pe_trial_find(t, pe_calc_text(p, "g_%s", name)))
            t->dparams[i] = pe_calc_make_like(p, t->with->dtype, &p->params[i]);
        if (is_rotary(p, i))
            p->params[i] = t->exact[i];
    }
    return !pe_calc_failed(p);
}
