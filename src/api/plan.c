/* SPDX-License-Identifier: MIT */
/*
 * plan.c: prepare - an encoding resolved for sizes
 *
 * A plan is made of what does not change from run to run: settings as numbers, the score's terms, the
 * rotation's frequencies, the kernels. Positions, masks, parameters and lengths come with each run. It keeps
 * a copy of its encoding, which is small and flat: so either may be freed first.
 */
#include <math.h>
#include <posenc/registry.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/objects.h"
#include "base/memory.h"
#include "base/sizes.h"

#define LONGEST \
    ((int64_t)1 << 31) /* of B, H, G, Lq, Lk, D, Dv: products of three of them stay in range below */

enum { MOST_WIDTH = 1 << 24, MOST_ROW = 1 << 20 }; /* of d_model; numbers in a row of the input */

static int attends(const posenc_plan *plan)
{
    return plan->dims.D > 0;
}

static posenc_status check_dims(const posenc_dims *d, posenc_error *err)
{
    const struct {
        const char *name;
        int64_t     size, most;
    } all[] = {{"B", d->B, LONGEST},   {"H", d->H, 65536},
               {"G", d->G, 65536},     {"Lq", d->Lq, LONGEST},
               {"Lk", d->Lk, LONGEST}, {"D", d->D, 65536},
               {"Dv", d->Dv, 65536},   {"d_model", d->d_model, MOST_WIDTH},
               {"L", d->L, LONGEST}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i].size < 0 || all[i].size > all[i].most)
            return pe_fail(err, POSENC_ERROR_SHAPE, "plan: dims.%s is %lld; it must be from 0 to %lld",
                           all[i].name, (long long)all[i].size, (long long)all[i].most);
    if ((d->D > 0) != (d->H > 0))
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "plan: dims.H is %lld and dims.D is %lld; give both (attention) or neither (input)",
                       (long long)d->H, (long long)d->D);
    if (d->H > 0 && d->H % d->G != 0)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "plan: dims.G is %lld key heads; it must divide dims.H = %lld", (long long)d->G,
                       (long long)d->H);
    if (d->Lq < 1)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "plan: dims.Lq and dims.Lk are 0; give the longest length of a run");
    return POSENC_OK;
}

/* Numbers in the tables and rows of one batch item, and in the queries of all, in double because the product
   may exceed any integer: below 2^44 of the former (2^47 bytes of doubles) and 2^46 of the latter no size of
   a workspace overflows, whatever a run makes of them. */
static posenc_status check_total(const posenc_plan *plan, posenc_error *err)
{
    const posenc_dims *d    = &plan->dims;
    const double       rows = (double)d->Lq + (double)d->Lk + (double)plan->max_distances,
                 width = (double)d->D + (double)d->Dv, all = rows * (double)d->H * (width + PE_LANES),
                 queries = (double)d->B * (double)d->H * (double)d->Lq * width;
    if (all > 0x1p44)
        return pe_fail(
            err, POSENC_ERROR_SHAPE,
            "plan: dims and options.max_distances make %.3g numbers, too large; at most 2^44 are possible",
            all);
    if (queries > 0x1p46)
        return pe_fail(err, POSENC_ERROR_SHAPE,
                       "plan: dims make queries and outputs of %.3g numbers; at most 2^46 are possible",
                       queries);
    return POSENC_OK;
}

/* What a run takes of its workspace, however it runs. */
static posenc_status check_bytes(const posenc_plan *plan, posenc_error *err)
{
    enum { MOST = sizeof(size_t) < 8 ? 29 : 47 }; /* a power of two */
    const int    all   = POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD | POSENC_RUN_DECODE | POSENC_RUN_SCORES;
    const size_t bytes = posenc_plan_workspace(plan, (posenc_run)all, NULL);
    if (bytes <= (size_t)1 << MOST)
        return POSENC_OK;
    return pe_fail(err, POSENC_ERROR_SHAPE,
                   "plan: a run of %s with these dims takes %.3g bytes; at most 2^%d are possible",
                   plan->e->spec, (double)bytes, (int)MOST);
}

static posenc_status check_options(const posenc_plan *plan, posenc_error *err)
{
    const posenc_options *o = &plan->options;
    const int all = POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW | POSENC_MASK_KEY_PADDING | POSENC_MASK_EXPLICIT |
                    POSENC_MASK_SEGMENTS;
    if (o->mask & ~all)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.mask is %d; it must be POSENC_MASK_... joined by |", o->mask);
    if (o->max_distances < 0)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.max_distances is %lld; it must be 0 (automatic) or more",
                       (long long)o->max_distances);
    if ((o->mask & POSENC_MASK_WINDOW) && o->window < 1)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.window is %lld; a window mask needs at least 1", (long long)o->window);
    if (!(o->mask & POSENC_MASK_WINDOW) && o->window)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.window is %lld, but options.mask has no POSENC_MASK_WINDOW; add it, or "
                       "leave window 0",
                       (long long)o->window);
    if (o->threads < 0 || o->threads > PE_MOST_THREADS)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.threads is %d; it must be 0 (automatic) to %d", o->threads,
                       PE_MOST_THREADS);
    if (o->parallel_for && !o->threads)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.threads is 0; give the number of threads of options.parallel_for");
    if (o->tile_q < 0 || o->tile_k < 0 || o->tile_q > 4096 || o->tile_k > 4096)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "plan: options.tile_q and tile_k must be 0 (automatic) to 4096");
    if ((unsigned)o->executor > POSENC_EXECUTOR_TILED)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "plan: options.executor is %d; see enum posenc_executor",
                       (int)o->executor);
    if ((unsigned)o->products > POSENC_PRODUCTS_F32)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "plan: options.products is %d; see enum posenc_products",
                       (int)o->products);
    return POSENC_OK;
}

static posenc_status resolve_parts(posenc_plan *plan, posenc_error *err)
{
    for (int place = 0; place < PE_PLACES; place++) {
        const pe_chosen *part = &plan->e->parts[place];
        if (!part->room)
            continue;
        if (place != POSENC_PLACE_INPUT && place != PE_PLACE_COMMON && !attends(plan))
            return pe_fail(err, POSENC_ERROR_SHAPE,
                           "plan: %s acts in attention; dims.H and dims.D are needed", part->room->info.name);
        const posenc_status status = pe_encoding_resolve(&plan->parts[place], part, &plan->dims, err);
        if (status)
            return status;
        plan->parts[place].problem.set     = plan->parts[place].set; /* the struct was copied into the plan */
        plan->parts[place].problem.kernels = plan->kernels;
    }
    const pe_resolved *input = &plan->parts[POSENC_PLACE_INPUT];
    if (!input->room)
        return POSENC_OK;
    const char *tokens = input->room->input.tokens, *ids = input->room->input.ids;
    plan->row_width  = pe_encoding_whole(input, &plan->dims, input->room->input.width);
    plan->row_tokens = tokens ? pe_encoding_whole(input, &plan->dims, tokens) : INT64_C(1) << 53;
    plan->row_ids    = ids ? pe_encoding_whole(input, &plan->dims, ids) : 0;
    if (plan->row_width > MOST_ROW)
        return pe_fail(err, POSENC_ERROR_SETTING,
                       "plan: %s makes rows of %lld numbers; at most 2^20 are possible",
                       input->room->info.name, (long long)plan->row_width);
    return POSENC_OK;
}

static posenc_status find_sizes(posenc_plan *plan, posenc_error *err)
{
    for (int i = 0; i < plan->e->param_count; i++) {
        pe_shape           *shape = &plan->shapes[i];
        const posenc_status status =
            posenc_param_shape(plan->e, &plan->dims, i, &shape->ndim, shape->sizes, err);
        if (status)
            return status;
        int64_t *size = &plan->sizes[plan->e->params[i].place][plan->e->params[i].local];
        *size         = 1;
        for (int a = 0; a < shape->ndim; a++)
            *size *= shape->sizes[a];
    }
    return POSENC_OK;
}

static posenc_status find_tokens(posenc_plan *plan, posenc_error *err)
{
    for (int i = 0; attends(plan) && i < plan->e->token_count; i++) {
        int64_t             shape[4];
        const posenc_status status = posenc_token_shape(plan->e, &plan->dims, i, shape, err);
        if (status)
            return status;
        plan->token_channels[i] = shape[3];
    }
    return POSENC_OK;
}

static posenc_status find_derived(posenc_plan *plan, posenc_error *err)
{
    for (int place = 0; place < POSENC_PLACE_COUNT; place++) {
        const pe_resolved *part = &plan->parts[place];
        if (!part->room || !part->room->attention.derived)
            continue;
        const int64_t size = part->room->attention.derived(&part->problem);
        if (size > (int64_t)1 << 40)
            return pe_fail(
                err, POSENC_ERROR_SETTING,
                "plan: %s would compute %lld numbers from its parameters; at most 2^40 are possible",
                part->room->info.name, (long long)size);
        plan->sizes[place][part->room->info.param_count] = size;
    }
    return POSENC_OK;
}

/* Members by distance of the weight part join those of the score part; there is one of each. */
static posenc_status add_weight_terms(posenc_plan *plan, posenc_error *err)
{
    const pe_resolved *weight = &plan->parts[POSENC_PLACE_WEIGHT];
    pe_terms           more   = plan->terms;
    if (!weight->room)
        return POSENC_OK;
    more.gate = more.A = more.B = more.r = (pe_by_distance){0};
    more.bias                            = weight->room->attention.bias;
    weight->room->attention.terms(&weight->problem, &more);
    const struct {
        pe_by_distance *to, *from;
        const char     *what;
    } members[] = {{&plan->terms.bias, &more.bias, "a bias"},
                   {&plan->terms.gate, &more.gate, "a factor of the weights"},
                   {&plan->terms.A, &more.A, "vectors that multiply the queries"},
                   {&plan->terms.B, &more.B, "vectors that multiply the keys"},
                   {&plan->terms.r, &more.r, "vectors added to the values"}};
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (pe_member_is_given(members[i].from)) {
            if (pe_member_is_given(members[i].to))
                return pe_fail(err, POSENC_ERROR_UNSUPPORTED,
                               "plan: %s and %s both have %s by distance; leave out one of the two",
                               plan->parts[POSENC_PLACE_SCORE].room->info.name, weight->room->info.name,
                               members[i].what);
            *members[i].to       = *members[i].from;
            members[i].to->owner = PE_WEIGHT;
        }
    plan->terms.stick = more.stick;
    return POSENC_OK;
}

/* Terms of the score part (plain scaled products where there is none) and the scale the caller chose. */
static posenc_status fill_terms(posenc_plan *plan, posenc_error *err)
{
    const pe_resolved *score  = &plan->parts[POSENC_PLACE_SCORE];
    const pe_resolved *common = &plan->parts[PE_PLACE_COMMON];
    const pe_terms     none   = {.u = PE_NONE, .w = PE_NONE, .us = PE_NONE, .G = PE_NONE};
    plan->terms               = none;
    plan->terms.sink = plan->terms.sink_token = plan->terms.profile = PE_NONE;
    plan->terms.scale                                               = 1.0 / sqrt((double)plan->dims.D);
    if (score->room) {
        plan->terms.bias = score->room->attention.bias;
        plan->terms.hook = score->room->attention.hook;
    }
    if (score->room && score->room->attention.terms)
        score->room->attention.terms(&score->problem, &plan->terms);
    const posenc_status status = add_weight_terms(plan, err);
    if (status)
        return status;
    common->room->attention.terms(&common->problem, &plan->terms);
    for (int place = 0; place < PE_PLACES; place++)
        plan->parts[place].problem.scale = plan->terms.scale;
    return POSENC_OK;
}

/* Coordinates of a position, and heads with frequencies of their own. */
static void lay_out_rotary(pe_rotary *to, pe_arena *memory, const pe_resolved *rotary,
                           const posenc_dims *full)
{
    const pe_encoding *room = rotary->room;
    pe_rotation_lay_out(to, memory, full->D, room->coordinates ? room->coordinates(rotary->set) : 1,
                        room->rotary.heads ? pe_encoding_whole(rotary, full, room->rotary.heads) : 1);
}

/* The rotation as far as it is known without a run, and its ladder, if no run changes that. */
static posenc_status rotary_create(posenc_plan *plan, posenc_error *err)
{
    const pe_resolved  *rotary = &plan->parts[POSENC_PLACE_ROTARY];
    const pe_rotary_run none   = {NULL, 0};
    pe_arena            arena  = {0}; /* counts, until it has memory */
    if (!rotary->room)
        return POSENC_OK;
    lay_out_rotary(&plan->rotary, &arena, rotary, &plan->dims);
    plan->rotary_memory = pe_memory_zeros_create(&plan->allocator, arena.used);
    if (!plan->rotary_memory)
        return pe_fail(err, POSENC_ERROR_MEMORY, "plan: out of memory");
    arena = (pe_arena){plan->rotary_memory, 0};
    lay_out_rotary(&plan->rotary, &arena, rotary, &plan->dims);
    rotary->room->rotary.fill(&rotary->problem, &none, &plan->rotary);
    pe_rotation_finish(&plan->rotary);
    plan->rotary_keys = pe_rotation_for_keys(&plan->rotary);
    if (!plan->rotary.depends_on_run)
        plan->rotary_ladder = pe_rotation_ladder_create(&plan->rotary, plan->kernels, &plan->allocator);
    return POSENC_OK;
}

/* A map of distances has several forms of a query and a key, of which scores must want nothing but their
   product. */
static posenc_status check_map(const posenc_plan *plan, posenc_error *err)
{
    const pe_terms *m    = &plan->terms;
    const int       more = (pe_has(m, PE_A) && m->profile == PE_NONE) || pe_has(m, PE_B) || m->u != PE_NONE ||
                     m->w != PE_NONE || m->us != PE_NONE || m->G != PE_NONE || m->prepare.fill ||
                     m->hook.content;
    if (plan->rotary.map.kind == PE_MAP_NONE || !attends(plan) || !more)
        return POSENC_OK;
    return pe_fail(
        err, POSENC_ERROR_UNSUPPORTED,
        "plan: a map of distances has several forms of queries and keys, and %s multiplies them by "
        "more than each other; leave out map=, or choose another encoding beside rope",
        plan->parts[POSENC_PLACE_SCORE].room->info.name);
}

/* The ladder of the input part, if that has waves; NULL too where there is no memory, as rows are made
   without one then. */
static pe_ladder *waves_create(const posenc_plan *plan, double *blank)
{
    const pe_resolved *input         = &plan->parts[POSENC_PLACE_INPUT];
    const int64_t      width         = input->room && input->room->input.waves ? posenc_rows_width(plan) : 0;
    const posenc_allocator *const by = &plan->allocator;
    double *const                 w  = pe_memory_zeros_create(by, ((size_t)width + 1) * sizeof *w);
    pe_frequency                 *k  = pe_memory_zeros_create(by, ((size_t)width + 1) * sizeof *k);
    pe_wave_form                  form = {.blank = NAN};
    const int64_t    M       = w && k && width > 0 ? input->room->input.waves(&input->problem, w, &form) : 0;
    const pe_columns columns = {M, width, form.cosine, form.sine, form.step};
    for (int64_t m = 0; m < M; m++)
        k[m] = pe_angle_frequency(w[m]);
    pe_ladder *ladder = M > 0 ? pe_ladder_create(&columns, PE_MIDDLE, k, 1, 1, plan->kernels, by) : NULL;
    *blank            = form.blank;
    pe_memory_free(by, w);
    pe_memory_free(by, k);
    return ladder;
}

/* The kernels that options or environment name, else the best; a name that is none of them is refused. */
static posenc_status choose_kernels(posenc_plan *plan, posenc_error *err)
{
    const char *wanted = plan->options.isa ? plan->options.isa : pe_kernels_wanted();
    char        list[80];
    size_t      used = 0;
    plan->kernels    = plan->options.isa ? pe_kernels_named(wanted) : pe_kernels_choose();
    if (plan->kernels)
        return POSENC_OK;
    for (int i = 0; posenc_isa_at(i) && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, i ? ", %s" : "%s", posenc_isa_at(i));
    return pe_fail(err, POSENC_ERROR_ARGUMENT,
                   "plan: %s is \"%s\", which this processor does not run; it must be one of: %s",
                   plan->options.isa ? "options.isa" : "POSENC_ISA", wanted, list);
}

static posenc_status prepare(posenc_plan *plan, posenc_error *err)
{
    posenc_status status;
    if ((status = choose_kernels(plan, err)) || (status = check_dims(&plan->dims, err)) ||
        (status = check_total(plan, err)) || (status = resolve_parts(plan, err)) ||
        (status = check_options(plan, err)) || (status = find_sizes(plan, err)) ||
        (status = find_tokens(plan, err)) || (status = find_derived(plan, err)) ||
        (attends(plan) && (status = fill_terms(plan, err))) || (status = rotary_create(plan, err)) ||
        (status = check_map(plan, err)))
        return status;
    plan->waves = waves_create(plan, &plan->waves_blank);
    for (int backward = 0; attends(plan) && backward < 2; backward++) {
        size_t *bytes = plan->turn_bytes[backward]; /* pieces are rounded up one by one: never too few */
        bytes[0]      = pe_rotate_bytes(plan, 0, backward);
        bytes[1]      = pe_rotate_bytes(plan, 1, backward) - bytes[0];
    }
    if ((status = check_bytes(plan, err)))
        return status;
    if (attends(plan))
        pe_attend_know(plan);
    return POSENC_OK;
}

/* What the caller chose; a sentence about what could not even be read. */
static posenc_status read_options(posenc_options *to, posenc_allocator *from, const posenc_options *options,
                                  posenc_error *err)
{
    *to   = posenc_options_default();
    *from = (posenc_allocator){0};
    if (!options)
        return POSENC_OK;
    posenc_options copy;
    if (!(options = pe_given_read(&copy, options, PE_GIVEN(posenc_options, mask), "plan", "options", err)))
        return POSENC_ERROR_ARGUMENT;
    *to = *options;
    return pe_given_allocator(from, to->allocator, "plan", err);
}

posenc_status posenc_plan_create(posenc_plan **plan, const posenc_encoding *e, const posenc_dims *dims,
                                 const posenc_options *options, posenc_error *err)
{
    posenc_options   chosen;
    posenc_allocator from;
    posenc_status    status;
    if (plan)
        *plan = NULL;
    if (!plan || !e || !dims)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "plan: plan, e and dims must not be NULL");
    if ((status = read_options(&chosen, &from, options, err)))
        return status;
    posenc_plan *made = pe_memory_zeros_create(&from, sizeof *made);
    if (!made)
        return pe_fail(err, POSENC_ERROR_MEMORY, "plan: out of memory");
    made->own       = *e;
    made->e         = &made->own;
    made->dims      = pe_encoding_full_dims(dims);
    made->options   = chosen;
    made->allocator = from;
    made->threads   = pe_parallel_threads(chosen.threads);
    made->max_distances =
        chosen.max_distances > 0 ? chosen.max_distances : pe_sizes_sum(made->dims.Lq, made->dims.Lk);
    if ((status = prepare(made, err))) {
        posenc_plan_free(made);
        return status;
    }
    *plan = made;
    return pe_done(err);
}

void posenc_plan_free(posenc_plan *plan)
{
    if (!plan)
        return;
    const posenc_allocator to = plan->allocator;
    pe_memory_free(&to, plan->rotary_memory);
    pe_memory_free(&to, plan->rotary_ladder);
    pe_memory_free(&to, plan->waves);
    pe_memory_free(&to, plan);
}

const char *posenc_isa_at(int index)
{
    const pe_kernels *kernels = pe_kernels_at(index);
    return kernels ? kernels->isa : NULL;
}

const char *posenc_isa(void)
{
    const pe_kernels *chosen = pe_kernels_choose();
    int               last   = 0;
    while (pe_kernels_at(last + 1))
        last++;
    return chosen ? chosen->isa : posenc_isa_at(last);
}

int posenc_version_number(void)
{
    return POSENC_VERSION_NUMBER;
}

const char *posenc_version(void)
{
#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)
    return TEXT(POSENC_VERSION_MAJOR) "." TEXT(POSENC_VERSION_MINOR) "." TEXT(POSENC_VERSION_PATCH);
#undef TEXT
#undef TEXT_OF
}
