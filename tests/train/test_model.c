/* SPDX-License-Identifier: MIT */
/*
 * The gradients of the whole model, for every encoding of the registry that a causal model can use, and for
 * every one that a bidirectional model can; those that act at the input in every way in which rows can enter.
 *
 * In double, a tensor's gradient is held against the difference quotient (f(x+h) - f(x-h)) / 2h at
 * four of its elements: those with the largest gradients and two more. With h = 1e-5 the quotient's
 * own error is some 1e-10: h^2 from the curvature and 1e-16 / h from rounding. A judge must also be
 * seen to condemn: each term of the gradient is left out once (pe_gradient_term), and each time the
 * same judge must say no.
 *
 * No encoding is named here: settings come from the rooms (posenc_small_model), and the terms that
 * only some encodings have look for one that has them.
 */
#include "train/model/model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { LENGTH = 8, WIDTH = 16, HEADS = 2, LAYERS = 2, BATCH = 2, SAMPLES = 4 };

static const double step = 1e-5, relative = 1e-6, absolute = 2e-9;

/* Of windows that do not stand in order: [BATCH, LENGTH]; NULL: they do. */
static const int64_t *standing;
/* Are q and k of each head normed in the models of a test? */
static int normed;

static void small_spec(char *spec, size_t n, const char *name, int mask)
{
    const posenc_dims dims = {.B       = BATCH,
                              .H       = HEADS,
                              .G       = HEADS,
                              .Lq      = LENGTH,
                              .Lk      = LENGTH,
                              .D       = WIDTH / HEADS,
                              .Dv      = WIDTH / HEADS,
                              .d_model = WIDTH,
                              .L       = LENGTH};
    posenc_error      err;
    char              settings[256];
    if (posenc_small_model(name, &dims, mask, settings, sizeof settings, &err))
        fail_msg("%s", err.message);
    snprintf(spec, n, settings[0] ? "%s[%s]" : "%s", name, settings);
}

static void spec_of(char *spec, size_t n, const char *name)
{
    small_spec(spec, n, name, POSENC_MASK_CAUSAL);
}

/* Among the settings of a specification of one part. */
static void add_setting(char *spec, size_t n, const char *pair)
{
    char *end = strchr(spec, ']');
    snprintf(end ? end : spec + strlen(spec), n - strlen(spec), "%s%s]", end ? ":" : "[", pair);
}

/* How rows enter: added, concatenated (rows of another width as well), in every block, there with rows of its
   own. */
enum { ADDED, CONCATENATED, CONCATENATED_WIDE, IN_BLOCKS, IN_BLOCKS_OWN, WAYS };

static int has_setting(const posenc_encoding_info *info, const char *name)
{
    for (int i = 0; i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name))
            return 1;
    return 0;
}

/* The setting with which rows get another width: one state per block where there are states, else wider
   rows. */
static void write_width(char pair[32], const posenc_encoding_info *info, int way)
{
    if (way == IN_BLOCKS_OWN && has_setting(info, "states"))
        snprintf(pair, 32, "states=%d", LAYERS);
    else
        snprintf(pair, 32, "dim=%d", way == IN_BLOCKS_OWN ? LAYERS * WIDTH : WIDTH + 8);
}

/* Every encoding in every way: specification number i; 0 where that encoding has no such way. */
static int spec_at(char *spec, size_t n, int i, int mask)
{
    const posenc_encoding_info *info = posenc_encoding_info_at(i / WAYS);
    const int                   way  = i % WAYS;
    char                        pair[32];
    small_spec(spec, n, info->name, mask);
    if (way == ADDED)
        return 1;
    const int wide = way == CONCATENATED_WIDE || way == IN_BLOCKS_OWN;
    if (info->place != POSENC_PLACE_INPUT || (wide && !has_setting(info, "dim")))
        return 0;
    write_width(pair, info, way);
    if (wide)
        add_setting(spec, n, pair);
    add_setting(spec, n, way >= IN_BLOCKS ? "inject=blocks" : "combine=concat");
    return 1;
}

static int spec_count(void)
{
    return posenc_encoding_count() * WAYS;
}

static pe_model_config config_of(const char *plain, const pe_entry *entry, posenc_dtype dtype)
{
    return (pe_model_config){.spec    = plain,
                             .L       = LENGTH,
                             .d_model = WIDTH,
                             .layers  = LAYERS,
                             .heads   = HEADS,
                             .batch   = BATCH,
                             .seed    = 3,
                             .dtype   = dtype,
                             .entry   = *entry};
}

static pe_model *create(const char *spec, posenc_dtype dtype, int64_t longest, int bidirectional)
{
    posenc_error err;
    pe_model    *m;
    pe_entry     entry;
    char         plain[PE_LONGEST_SPEC];
    if (pe_spec_split(plain, sizeof plain, &entry, spec, &err) ||
        pe_spec_set_missing(plain, "vocab", PE_BYTES + bidirectional, &err))
        fail_msg("%s", err.message);
    pe_model_config config     = config_of(plain, &entry, dtype);
    config.longest             = longest;
    config.bidirectional       = bidirectional;
    config.scattered           = standing ? 3 * LENGTH : 0;
    config.norms_heads         = normed;
    const posenc_status status = pe_model_create(&m, &config, &err);
    if (status && status != POSENC_ERROR_UNSUPPORTED)
        fail_msg("%s: %s", spec, err.message);
    return m;
}

/* NULL if the specification has no meaning in a causal model. */
static pe_model *model_of_spec(const char *spec, posenc_dtype dtype, int64_t longest)
{
    return create(spec, dtype, longest, 0);
}

/* Model number i of all, and its specification; NULL where there is none. */
static pe_model *model_at(int i, char spec[512], posenc_dtype dtype, int64_t longest)
{
    return spec_at(spec, 512, i, POSENC_MASK_CAUSAL) ? model_of_spec(spec, dtype, longest) : NULL;
}

/* Random text over few symbols, so that bytes repeat within a window. */
static const uint16_t *const *text(void)
{
    enum { WINDOW = 4 * LENGTH + 1 };
    static uint16_t        bytes[BATCH][WINDOW];
    static const uint16_t *windows[BATCH];
    for (int b = 0; b < BATCH; b++) {
        for (uint64_t s = 0; s < WINDOW; s++)
            bytes[b][s] = (uint16_t)(97 + 6 * posenc_random_uniform(1, "text", (uint64_t)b * WINDOW + s));
        windows[b] = bytes[b];
    }
    return windows;
}

/* Away from the zeros and ones of the start, where products with a zero would hide a missing term. Small
   parameters keep their sign and stay above half of themselves: an encoding may hold them within bounds, and
   a bound is a kink. */
static void stir(pe_model *m)
{
    double *theta = m->theta;
    for (int i = 0; i < m->weight_count; i++)
        for (int64_t j = 0; j < m->weights[i].count && m->weights[i].trains; j++) {
            double      *x    = &theta[m->weights[i].offset + j];
            const double move = 0.1 * posenc_random_normal(7, m->weights[i].name, (uint64_t)j);
            *x += *x == 0 || fabs(move) < 0.5 * fabs(*x) ? move : 0.5 * *x;
        }
}

static double loss_of(pe_model *m)
{
    double losses[BATCH * LENGTH], sum = 0;
    assert_int_equal(
        pe_model_losses(m, losses,
                        &(pe_batch){.windows = text(), .B = BATCH, .length = LENGTH, .positions = standing},
                        NULL),
        POSENC_OK);
    for (int i = 0; i < BATCH * LENGTH; i++)
        sum += losses[i];
    return sum / (BATCH * LENGTH);
}

static double quotient(pe_model *m, int64_t at)
{
    double *x = (double *)m->theta + at, old = *x;
    *x                = old + step;
    const double more = loss_of(m);
    *x                = old - step;
    const double less = loss_of(m);
    *x                = old;
    return (more - less) / (2 * step);
}

/* Among the elements whose stretch of WIDTH numbers is even (0), odd (1) or any (2), that with the largest
   gradient. */
static int64_t largest(const double *grad, const pe_weight *w, int parity)
{
    int64_t best = -1;
    for (int64_t j = 0; j < w->count; j++)
        if ((parity == 2 || j / WIDTH % 2 == parity) && (best < 0 || fabs(grad[j]) > fabs(grad[best])))
            best = j;
    return best < 0 ? 0 : best;
}

/* The largest gradient, two at random, and the largest among stretches of the other parity: in rows that hold
   a stretch for every block, that is another block's. */
static int64_t sample(const double *grad, const pe_weight *w, int which)
{
    const int64_t best = largest(grad, w, 2);
    if (which == 0)
        return best;
    if (which == SAMPLES - 1)
        return largest(grad, w, best / WIDTH % 2 == 0);
    return (int64_t)((double)w->count * posenc_random_uniform(5, w->name, (uint64_t)which));
}

/* A copy of the gradient without the terms that `drop` names. */
static double *gradient_of(pe_model *m, pe_gradient_term drop)
{
    const size_t bytes = (size_t)m->size * sizeof(double);
    double       loss, *grad = malloc(bytes);
    assert_non_null(grad);
    m->drop_gradient = drop;
    assert_int_equal(
        pe_model_gradient(m, &loss,
                          &(pe_batch){.windows = text(), .B = BATCH, .length = LENGTH, .positions = standing},
                          NULL),
        POSENC_OK);
    memcpy(grad, m->grad, bytes);
    return grad;
}

/* The largest |gradient - quotient| over what is allowed: at most 1 for a right gradient. The
   elements are chosen by the whole gradient, so that the choice is the same whatever is left out of
   the one that is judged. */
static double verdict(pe_model *m, pe_gradient_term drop, const char **where)
{
    double  worst = 0;
    double *whole = gradient_of(m, PE_DROP_NONE), *judged = gradient_of(m, drop);
    for (int i = 0; i < m->weight_count; i++)
        for (int s = 0; s < SAMPLES && m->weights[i].trains; s++) {
            const pe_weight *w     = &m->weights[i];
            const int64_t    at    = w->offset + sample(whole + w->offset, w, s);
            const double     q     = quotient(m, at);
            const double     error = fabs(judged[at] - q) / (absolute + relative * fabs(q));
            if (error > worst) {
                worst  = error;
                *where = w->name;
            }
        }
    free(whole);
    free(judged);
    return worst;
}

static void gradients_are_difference_quotients_for_every_encoding(void **state)
{
    (void)state;
    int tried[WAYS] = {0};
    for (int i = 0; i < spec_count(); i++) {
        char        spec[512];
        const char *where = "";
        pe_model   *m     = model_at(i, spec, POSENC_DTYPE_F64, 0);
        if (!m)
            continue;
        stir(m);
        const double worst = verdict(m, PE_DROP_NONE, &where);
        if (worst > 1)
            fail_msg("%s: %s is off by %g times what is allowed", spec, where, worst);
        pe_model_free(m);
        tried[i % WAYS]++;
    }
    for (int way = 0; way < WAYS; way++)
        assert_true(tried[way] > 0);
}

/* Do parameters of encoding number i train, as it stands, and does it act at the input (1) or elsewhere
   (0)? */
static int learns_at(int i, int at_input)
{
    const posenc_encoding_info *info    = posenc_encoding_info_at(i);
    int                         trained = 0;
    posenc_encoding            *e;
    assert_int_equal(posenc_encoding_create(&e, info->name, NULL, NULL), POSENC_OK);
    for (int p = 0; p < posenc_param_count(e); p++)
        trained |= posenc_param_trainable(e, p);
    posenc_encoding_free(e);
    return trained && (info->place == POSENC_PLACE_INPUT) == at_input;
}

/* The first such encoding; NULL if there is none. */
static const char *encoding_that_learns(int at_input)
{
    for (int i = 0; i < posenc_encoding_count(); i++)
        if (learns_at(i, at_input))
            return posenc_encoding_info_at(i)->name;
    return NULL;
}

/* One part that learns at the input, shared by the layers, and one that learns in each. */
static void gradients_are_difference_quotients_for_two_parts_joined(void **state)
{
    (void)state;
    char        spec[1024], second[512];
    const char *where = "";
    spec_of(spec, 512, encoding_that_learns(1));
    spec_of(second, sizeof second, encoding_that_learns(0));
    strcat(strcat(spec, "+"), second);
    pe_model *m = model_of_spec(spec, POSENC_DTYPE_F64, 0);
    assert_non_null(m);
    assert_true(m->has_rows && pe_model_encoding_parameters(m) > 0);
    stir(m);
    const double worst = verdict(m, PE_DROP_NONE, &where);
    if (worst > 1)
        fail_msg("%s: %s is off by %g times what is allowed", spec, where, worst);
    assert_true(verdict(m, PE_DROP_ROWS, &where) > 100 && verdict(m, PE_DROP_ENCODING, &where) > 100);
    pe_model_free(m);
}

/* Does the judge say no? 0 only where the specification has no meaning: a judge that says yes fails the
   test. */
static int is_noticed(const char *spec, pe_gradient_term term)
{
    const char *where = "";
    pe_model   *m     = model_of_spec(spec, POSENC_DTYPE_F64, 0);
    if (!m)
        return 0;
    stir(m);
    const double worst = verdict(m, term, &where);
    if (worst < 100)
        fail_msg("%s: without term %d the worst error is only %g times what is allowed", spec, (int)term,
                 worst);
    pe_model_free(m);
    return 1;
}

static void leaving_out_any_term_of_the_gradient_is_noticed(void **state)
{
    (void)state;
    for (int term = PE_DROP_NONE + 1; term <= PE_DROP_EMBEDDING; term++) {
        char spec[512];
        spec_of(spec, sizeof spec, encoding_that_learns(term == PE_DROP_ROWS));
        assert_true(is_noticed(spec, (pe_gradient_term)term));
    }
}

/* Every encoding of the registry that takes something of each token besides q, k and v; fails if none does.
 */
static void leaving_out_a_projection_of_token_inputs_is_noticed(void **state)
{
    (void)state;
    int tried = 0;
    for (int i = 0; i < posenc_encoding_count(); i++)
        for (int term = PE_DROP_PROJECTION; term <= PE_DROP_PROJECTION_STREAM; term++) {
            char             spec[512];
            posenc_encoding *e;
            spec_of(spec, sizeof spec, posenc_encoding_info_at(i)->name);
            assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
            if (posenc_token_count(e) > 0)
                tried += is_noticed(spec, (pe_gradient_term)term);
            posenc_encoding_free(e);
        }
    assert_true(tried > 0);
}

/* A window, token inputs of the query's side and of the key's in one layer, and none in the next, whose
   parameters are others. */
static void gradients_are_difference_quotients_where_layers_differ(void **state)
{
    (void)state;
    const char *spec  = "fox[window=5:sink=token]/alibi[learned=yes:temperature=ssmax]";
    const char *where = "";
    pe_model   *m     = model_of_spec(spec, POSENC_DTYPE_F64, 0);
    assert_non_null(m);
    assert_int_equal(m->kind_count, 2);
    assert_int_equal(m->stack[0].kind->token_count, 2);
    assert_int_equal(m->stack[1].kind->token_count, 0);
    stir(m);
    const double worst = verdict(m, PE_DROP_NONE, &where);
    if (worst > 1)
        fail_msg("%s: %s is off by %g times what is allowed", spec, where, worst);
    assert_true(verdict(m, PE_DROP_PROJECTION, &where) > 100 && verdict(m, PE_DROP_ENCODING, &where) > 100);
    pe_model_free(m);
}

/* In every way in which positions enter, with rows of each window's own. */
static void gradients_are_difference_quotients_where_windows_stand_apart(void **state)
{
    static const int64_t apart[BATCH * LENGTH] = {0, 1, 4, 5, 9, 11, 15, 23, 2, 3, 8, 10, 12, 13, 20, 21};
    /* clang-format off */
    static const char *const specs[] = {
        "learned[rows=24]", "learned[rows=24:combine=concat]", "learned[rows=24:inject=blocks]", "rope+t5",
        "fox[sink=token]", "inkling[extent=16]/rope[window=6]", "path[gate=plain]", "wall"};
    /* clang-format on */
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const char *where = "";
        standing          = apart;
        pe_model *m       = model_of_spec(specs[i], POSENC_DTYPE_F64, 0);
        assert_non_null(m);
        stir(m);
        const double worst = verdict(m, PE_DROP_NONE, &where), there = loss_of(m);
        standing = NULL;
        /* it is noticed where they stand; not by fox, path and wall, which count tokens */
        assert_int_equal(there != loss_of(m), strncmp(specs[i], "fox", 3) != 0 &&
                                                  strncmp(specs[i], "path", 4) != 0 &&
                                                  strncmp(specs[i], "wall", 4) != 0);
        pe_model_free(m);
        if (worst > 1)
            fail_msg("%s: %s is off by %g times what is allowed", specs[i], where, worst);
    }
}

/* In float and in double: what a head's q and k are multiplied by does not matter, and its gradient does. */
static void heads_that_are_normed_have_no_length(void **state)
{
    (void)state;
    const char *where = "";
    normed            = 1;
    pe_model *m       = model_of_spec("alibi", POSENC_DTYPE_F64, 0);
    normed            = 0;
    pe_model *other   = model_of_spec("alibi", POSENC_DTYPE_F64, 0);
    assert_true(m && other);
    stir(m);
    stir(other);
    const double here = loss_of(m), worst = verdict(m, PE_DROP_NONE, &where);
    if (worst > 1)
        fail_msg("%s is off by %g times what is allowed", where, worst);
    assert_true(verdict(m, PE_DROP_HEAD_NORM, &where) > 100);
    assert_true(here != loss_of(other));
    double *qkv = (double *)m->theta + m->weights[PE_QKV].offset; /* of the first layer */
    for (int64_t i = 0; i < WIDTH; i++)
        for (int64_t c = 0; c < 2 * WIDTH; c++)
            qkv[i * 3 * WIDTH + c] *= 64; /* so that the 1e-5 beside the mean square is less still */
    const double there = loss_of(m);
    for (int64_t i = 0; i < WIDTH; i++)
        for (int64_t c = 0; c < 2 * WIDTH; c++)
            qkv[i * 3 * WIDTH + c] *= 64;
    assert_true(fabs(there - here) < 1e-4 && fabs(loss_of(m) - there) < 1e-7);
    pe_model_free(m);
    pe_model_free(other);
}

static void projections_begin_as_their_rooms_say(void **state)
{
    (void)state;
    pe_model        *m = model_of_spec("fox", POSENC_DTYPE_F64, 0);
    const pe_weight *w = pe_model_projection(m, 1, 0), *b = w + 1;
    const double    *theta = m->theta;
    double           sum   = 0;
    assert_string_equal(w->name, "layer1.tokens.f");
    assert_int_equal(w->count, WIDTH * HEADS);
    assert_int_equal(b->count, HEADS);
    assert_true(w->decays && !b->decays);
    for (int64_t i = 0; i < w->count; i++)
        sum += theta[w->offset + i] * theta[w->offset + i];
    assert_true(sum > 0.5 * HEADS && sum < 2 * HEADS); /* WIDTH HEADS numbers of variance 1 / WIDTH */
    for (int64_t h = 0; h < HEADS; h++)
        assert_true(theta[b->offset + h] == 5);
    assert_int_equal(pe_model_encoding_parameters(m), LAYERS * (WIDTH + 1) * HEADS);
    pe_model_free(m);
}

/* In the ways that are not the library's sum, for every encoding that learns at the input. */
static void leaving_out_any_term_of_how_rows_enter_is_noticed(void **state)
{
    static const struct {
        int              way;
        pe_gradient_term term;
    } rows[] = {
        {ADDED, PE_DROP_ROWS},
        {CONCATENATED, PE_DROP_TOKEN_HALF},
        {CONCATENATED, PE_DROP_ROWS_HALF},
        {CONCATENATED, PE_DROP_MIXING},
        {CONCATENATED, PE_DROP_ROWS},
        {CONCATENATED, PE_DROP_EMBEDDING},
        {IN_BLOCKS, PE_DROP_ROWS},
        {IN_BLOCKS, PE_DROP_BLOCK_ROWS},
        {IN_BLOCKS_OWN, PE_DROP_ROWS},
        {IN_BLOCKS_OWN, PE_DROP_BLOCK_ROWS},
    };
    int tried = 0;
    (void)state;
    for (int i = 0; i < spec_count(); i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            char spec[512];
            if (i % WAYS != rows[k].way || !learns_at(i / WAYS, 1) ||
                !spec_at(spec, sizeof spec, i, POSENC_MASK_CAUSAL))
                continue;
            tried += is_noticed(spec, rows[k].term);
        }
    assert_true(tried >= (int)(sizeof rows / sizeof *rows));
    for (int term = PE_DROP_NONE + 1; term < PE_DROP_TERMS; term++) { /* no term is in no list */
        int listed = term <= PE_DROP_HEAD_NORM;
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            listed |= (int)rows[k].term == term;
        assert_true(listed);
    }
}

static void copy_to_float(pe_model *to, const pe_model *from)
{
    for (int64_t i = 0; i < from->size; i++)
        ((float *)to->theta)[i] = (float)((const double *)from->theta)[i];
}

static double length_of(const double *a, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * a[i];
    return sqrt(sum);
}

/* Every tensor's gradient in float, against the double one: the difference is rounding. */
static void the_float_model_has_the_gradients_of_the_double_model(void **state)
{
    (void)state;
    for (int i = 0; i < spec_count(); i++) {
        char      name[512];
        pe_model *a = model_at(i, name, POSENC_DTYPE_F64, 0), *b = model_at(i, name, POSENC_DTYPE_F32, 0);
        double    exact, loss;
        if (!a)
            continue;
        stir(a);
        copy_to_float(b, a);
        assert_int_equal(
            pe_model_gradient(
                a, &exact,
                &(pe_batch){.windows = text(), .B = BATCH, .length = LENGTH, .positions = standing}, NULL),
            POSENC_OK);
        assert_int_equal(
            pe_model_gradient(
                b, &loss, &(pe_batch){.windows = text(), .B = BATCH, .length = LENGTH, .positions = standing},
                NULL),
            POSENC_OK);
        assert_true(fabs(loss - exact) < 1e-5);
        const double whole = length_of(a->grad, a->size);
        for (int w = 0; w < a->weight_count; w++) {
            const double *x   = (const double *)a->grad + a->weights[w].offset;
            const float  *y   = (const float *)b->grad + a->weights[w].offset;
            double        off = 0;
            for (int64_t j = 0; j < a->weights[w].count; j++)
                off += ((double)y[j] - x[j]) * ((double)y[j] - x[j]);
            if (sqrt(off) > 1e-5 * (length_of(x, a->weights[w].count) + 0.1 * whole))
                fail_msg("%s: the float gradient of %s is off by %g", name, a->weights[w].name, sqrt(off));
        }
        pe_model_free(a);
        pe_model_free(b);
    }
}

static void no_byte_sees_what_follows_it(void **state)
{
    (void)state;
    for (int i = 0; i < spec_count(); i++) {
        char      spec[512];
        pe_model *m = model_at(i, spec, POSENC_DTYPE_F32, 0);
        if (!m)
            continue;
        uint16_t        other[LENGTH + 1];
        const uint16_t *window = other;
        double          before[LENGTH], after[LENGTH];
        memcpy(other, text()[0], sizeof other);
        assert_int_equal(pe_model_losses(m, before, &(pe_batch){.windows = &window, .B = 1, .length = LENGTH},
                                         NULL),
                         POSENC_OK);
        other[LENGTH - 1] ^= 1;
        assert_int_equal(pe_model_losses(m, after, &(pe_batch){.windows = &window, .B = 1, .length = LENGTH},
                                         NULL),
                         POSENC_OK);
        /* byte LENGTH-1 is the target of LENGTH-2 and the input of LENGTH-1 */
        assert_memory_equal(before, after, (LENGTH - 2) * sizeof *before);
        assert_true(before[LENGTH - 1] != after[LENGTH - 1]);
        pe_model_free(m);
    }
}

static void a_long_window_begins_like_a_short_one(void **state)
{
    (void)state;
    for (int i = 0; i < spec_count(); i++) {
        char      name[512];
        pe_model *m = model_at(i, name, POSENC_DTYPE_F64, 4 * LENGTH);
        if (!m)
            continue;
        double few[LENGTH], many[4 * LENGTH];
        assert_int_equal(pe_model_losses(m, few, &(pe_batch){.windows = text(), .B = 1, .length = LENGTH},
                                         NULL),
                         POSENC_OK);
        assert_int_equal(pe_model_losses(m, many,
                                         &(pe_batch){.windows = text(), .B = 1, .length = 4 * LENGTH}, NULL),
                         POSENC_OK);
        for (int p = 0; p < LENGTH; p++)
            if (fabs(few[p] - many[p]) > 1e-12)
                fail_msg("%s: position %d has loss %g alone and %g in a longer window", name, p, few[p],
                         many[p]);
        pe_model_free(m);
    }
}

static void all_encodings_start_from_the_same_shared_numbers(void **state)
{
    (void)state;
    pe_model *first = NULL;
    for (int i = 0; i < spec_count(); i++) {
        char      spec[512];
        pe_model *m = model_at(i, spec, POSENC_DTYPE_F32, 0);
        if (!first) {
            first = m;
            continue;
        }
        if (!m)
            continue;
        const pe_weight *last = &m->weights[m->encoding_weight - 1];
        assert_int_equal(first->encoding_weight, m->encoding_weight);
        assert_memory_equal(first->theta, m->theta, (size_t)(last->offset + last->count) * sizeof(float));
        pe_model_free(m);
    }
    pe_model_free(first);
}

/* ---------------------------------------------------------------- bidirectional ------------- */

/* Every third byte of each window is hidden. */
static const unsigned char *hidden(void)
{
    static unsigned char flags[BATCH * LENGTH];
    for (int i = 0; i < BATCH * LENGTH; i++)
        flags[i] = i % LENGTH % 3 == 1;
    return flags;
}

/* NULL where the registry says that the encoding has no meaning without a causal mask, or its size follows
   L. */
static pe_model *both_ways(int i, char spec[512])
{
    return spec_at(spec, 512, i, POSENC_MASK_NONE) ? create(spec, POSENC_DTYPE_F64, 0, 1) : NULL;
}

static double hidden_loss_of(pe_model *m)
{
    double losses[BATCH * LENGTH], sum = 0;
    int    count = 0;
    assert_int_equal(
        pe_model_losses(m, losses,
                        &(pe_batch){.windows = text(), .hidden = hidden(), .B = BATCH, .length = LENGTH},
                        NULL),
        POSENC_OK);
    for (int i = 0; i < BATCH * LENGTH; i++) {
        assert_int_equal(hidden()[i] == 0, isnan(losses[i]) != 0);
        sum += hidden()[i] ? losses[i] : 0;
        count += hidden()[i];
    }
    return sum / count;
}

static double hidden_quotient(pe_model *m, int64_t at)
{
    double *x = (double *)m->theta + at, old = *x;
    *x                = old + step;
    const double more = hidden_loss_of(m);
    *x                = old - step;
    const double less = hidden_loss_of(m);
    *x                = old;
    return (more - less) / (2 * step);
}

static void gradients_of_hidden_bytes_are_difference_quotients_for_every_encoding(void **state)
{
    (void)state;
    for (int i = 0; i < spec_count(); i++) {
        char      name[512];
        pe_model *m = both_ways(i, name);
        double    loss;
        if (!m)
            continue;
        stir(m);
        assert_int_equal(pe_model_gradient(
                             m, &loss,
                             &(pe_batch){.windows = text(), .hidden = hidden(), .B = BATCH, .length = LENGTH},
                             NULL),
                         POSENC_OK);
        assert_true(fabs(loss - hidden_loss_of(m)) < 1e-12);
        for (int w = 0; w < m->weight_count; w++) {
            const pe_weight *weight = &m->weights[w];
            const double    *grad   = (double *)m->grad + weight->offset;
            for (int s = 0; weight->trains && s < SAMPLES; s++) {
                const int64_t j    = sample(grad, weight, s);
                const double  want = hidden_quotient(m, weight->offset + j);
                if (fabs(grad[j] - want) > relative * fabs(want) + absolute)
                    fail_msg("%s: %s[%lld] has gradient %.12g, the quotient is %.12g", name, weight->name,
                             (long long)j, grad[j], want);
            }
        }
        pe_model_free(m);
    }
}

/* The model reads the symbol instead of a hidden byte: changing the byte changes its own loss alone. A byte
   that is not hidden reaches predictions on both sides of it. */
static void hidden_bytes_are_not_seen_and_others_are_from_both_sides(void **state)
{
    (void)state;
    for (int i = 0; i < spec_count(); i++) {
        char      name[512];
        pe_model *m = both_ways(i, name);
        if (!m)
            continue;
        stir(m);
        uint16_t        other[LENGTH];
        const uint16_t *window = other;
        const pe_batch  batch  = {.windows = &window, .hidden = hidden(), .B = 1, .length = LENGTH};
        double          before[LENGTH], after[LENGTH];
        memcpy(other, text()[0], sizeof other);
        assert_int_equal(pe_model_losses(m, before, &batch, NULL), POSENC_OK);
        other[4] ^= 1; /* hidden */
        assert_int_equal(pe_model_losses(m, after, &batch, NULL), POSENC_OK);
        assert_true(before[1] == after[1] && before[7] == after[7] && before[4] != after[4]);
        other[4] ^= 1;
        other[3] ^= 1; /* seen */
        assert_int_equal(pe_model_losses(m, after, &batch, NULL), POSENC_OK);
        assert_true(before[1] != after[1] && before[7] != after[7]);
        pe_model_free(m);
    }
}

static void hidden_bytes_belong_to_bidirectional_models_alone(void **state)
{
    (void)state;
    char      spec[512];
    pe_model *causal = model_at(0, spec, POSENC_DTYPE_F64, 0), *both = both_ways(0, spec);
    double    losses[LENGTH];
    assert_int_equal(
        pe_model_losses(causal, losses,
                        &(pe_batch){.windows = text(), .hidden = hidden(), .B = 1, .length = LENGTH}, NULL),
        POSENC_ERROR_ARGUMENT);
    assert_int_equal(pe_model_losses(both, losses, &(pe_batch){.windows = text(), .B = 1, .length = LENGTH},
                                     NULL),
                     POSENC_ERROR_ARGUMENT);
    /* the rows of the bytes start from the same numbers, and one row more stands for what is hidden */
    const int64_t at = causal->weights[LAYERS * PE_LAYER_WEIGHTS].offset;
    assert_int_equal(both->weights[LAYERS * PE_LAYER_WEIGHTS].count -
                         causal->weights[LAYERS * PE_LAYER_WEIGHTS].count,
                     WIDTH);
    assert_memory_equal((double *)causal->theta + at, (double *)both->theta + at,
                        PE_BYTES * WIDTH * sizeof(double));
    pe_model_free(causal);
    pe_model_free(both);
}

static void sizes_without_a_meaning_are_refused_with_a_sentence(void **state)
{
    (void)state;
    const char           *name   = posenc_encoding_info_at(0)->name;
    const pe_model_config good   = {.spec = name, .L = 8, .d_model = 16, .layers = 1, .heads = 2, .batch = 1};
    pe_model_config       bad[3] = {good, good, good};
    bad[0].heads                 = 3;
    bad[1].layers                = 0;
    bad[2].longest               = 4;
    for (int i = 0; i < 3; i++) {
        pe_model    *m;
        posenc_error err = {0};
        assert_int_equal(pe_model_create(&m, &bad[i], &err), POSENC_ERROR_ARGUMENT);
        assert_null(m);
        assert_non_null(strstr(err.message, "must"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_difference_quotients_for_every_encoding),
        cmocka_unit_test(gradients_are_difference_quotients_for_two_parts_joined),
        cmocka_unit_test(leaving_out_any_term_of_the_gradient_is_noticed),
        cmocka_unit_test(leaving_out_a_projection_of_token_inputs_is_noticed),
        cmocka_unit_test(gradients_are_difference_quotients_where_layers_differ),
        cmocka_unit_test(gradients_are_difference_quotients_where_windows_stand_apart),
        cmocka_unit_test(heads_that_are_normed_have_no_length),
        cmocka_unit_test(projections_begin_as_their_rooms_say),
        cmocka_unit_test(leaving_out_any_term_of_how_rows_enter_is_noticed),
        cmocka_unit_test(the_float_model_has_the_gradients_of_the_double_model),
        cmocka_unit_test(no_byte_sees_what_follows_it),
        cmocka_unit_test(a_long_window_begins_like_a_short_one),
        cmocka_unit_test(all_encodings_start_from_the_same_shared_numbers),
        cmocka_unit_test(gradients_of_hidden_bytes_are_difference_quotients_for_every_encoding),
        cmocka_unit_test(hidden_bytes_are_not_seen_and_others_are_from_both_sides),
        cmocka_unit_test(hidden_bytes_belong_to_bidirectional_models_alone),
        cmocka_unit_test(sizes_without_a_meaning_are_refused_with_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
