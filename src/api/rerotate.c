/* SPDX-License-Identifier: MIT */
/*
 * rerotate.c: posenc_rotary_rerotate, keys that one plan rotated as another would have rotated them
 *
 * A cache holds rotated keys. Where the rotation changes - another base, a longer context - its keys need not
 * be made anew: a pair is rotated by the difference of both angles, and multiplied by the quotient of both
 * magnitudes, in double, one key at a time. That needs the same pairs in both plans, so it is checked first.
 */
#include "api/objects.h"
#include "base/parallel.h"
#include "base/positions.h"
#include "base/tensor.h"

typedef struct rerotate {
    const posenc_rerotate_io *io;
    posenc_positions          from_pos, to_pos; /* as runs read them */
    const pe_rotary          *from, *to;        /* once the checks have passed, as are the rows */
    double                   *rows;             /* [threads, 2, D] */
} rerotate;

static void rerotate_element(void *context, int64_t index, int thread)
{
    const rerotate      *w = context;
    const posenc_tensor *k = &w->io->k, *to_k = &w->io->to_k;
    const int64_t        D = k->shape[3], b = index / k->shape[2], s = index % k->shape[2];
    double              *row = w->rows + thread * 2 * D, from_at[PE_MAX_AXES], to_at[PE_MAX_AXES];
    pe_rotation_place(w->from, &w->from_pos, b, s, from_at);
    pe_rotation_place(w->to, &w->to_pos, b, s, to_at);
    for (int64_t g = 0; g < k->shape[1]; g++) {
        pe_rotary own_from, own_to;
        pe_tensor_load_double(row, pe_tensor_row(k, b, g, s), k->dtype, 1, D);
        pe_rotation_rerotate(row + D, row, D, pe_rotation_of_head(&own_from, w->from, g), from_at,
                             pe_rotation_of_head(&own_to, w->to, g), to_at);
        pe_tensor_store_double(pe_tensor_row(to_k, b, g, s), to_k->dtype, 1, row + D, D);
    }
}

/* Do both rotate the same channels in the same pairs? */
static int pairs_are_equal(const pe_rotary *a, const pe_rotary *b)
{
    if (a->M != b->M || a->first != b->first || a->layout != b->layout || a->blocks != b->blocks)
        return 0;
    for (int i = 0; i <= a->blocks; i++)
        if (a->start[i] != b->start[i])
            return 0;
    return 1;
}

static posenc_status check_rerotate(const posenc_plan *from, const posenc_plan *to, const rerotate *w,
                                    posenc_error *err)
{
    static const char *const names[2] = {"rerotate: k", "rerotate: to_k"};
    const posenc_tensor     *k        = &w->io->k;
    posenc_status            status;
    if ((status = pe_rotary_require_of_one(from, "rerotate", err)) ||
        (status = pe_rotary_require_of_one(to, "rerotate", err)) ||
        (status = pe_rotary_require_positions(from, "rerotate", err)) ||
        (status = pe_rotary_require_positions(to, "rerotate", err)))
        return status;
    if (from->dims.D != to->dims.D || from->dims.G != to->dims.G)
        return pe_fail(
            err, POSENC_ERROR_SHAPE,
            "rerotate: the plans have %lld and %lld key heads of width %lld and %lld; they must be equal",
            (long long)from->dims.G, (long long)to->dims.G, (long long)from->dims.D, (long long)to->dims.D);
    if (!pairs_are_equal(&from->rotary, &to->rotary))
        return pe_fail(
            err, POSENC_ERROR_SHAPE,
            "rerotate: the plans pair different channels; dim, offset_dim and layout must be equal");
    if ((status = pe_rotary_check_rows(to, k, &w->io->to_k, to->dims.G, names, err)) ||
        (status = pe_positions_check(&w->from_pos, "rerotate: from_pos", k->shape[0], k->shape[2],
                                     from->rotary.axes, err)))
        return status;
    return pe_positions_check(&w->to_pos, "rerotate: to_pos", k->shape[0], k->shape[2], to->rotary.axes, err);
}

posenc_status posenc_rotary_rerotate(const posenc_plan *from, const posenc_plan *to,
                                     const posenc_rerotate_io *io, const posenc_workspace *work,
                                     posenc_error *err)
{
    pe_rotary_opened   old, now;
    posenc_rerotate_io copy;
    if (!from || !to || !io)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rerotate: from, to and io must not be NULL");
    if (!(io = pe_given_read(&copy, io, PE_GIVEN(posenc_rerotate_io, to_pos), "rerotate", "io", err)))
        return POSENC_ERROR_ARGUMENT;
    if (!pe_tensor_is_given(&io->k))
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "rerotate: k has no data; it is needed here");
    rerotate      w      = {.io       = io,
                            .from_pos = pe_rotary_read_positions(from, &io->from_pos),
                            .to_pos   = pe_rotary_read_positions(to, &io->to_pos)};
    posenc_status status = check_rerotate(from, to, &w, err);
    if (status)
        return status;
    if (pe_tensor_is_empty(&io->k))
        return pe_done(err);
    const int64_t           L   = io->k.shape[2];
    const pe_rotary_request was = {.plan   = from,
                                   .who    = "rerotate",
                                   .given  = {.params = io->from_params, .bound = io->from_bound},
                                   .length = pe_rotary_length(0, &w.from_pos, L)};
    if ((status = pe_rotary_open(&old, &was, work, err)))
        return status;
    const pe_rotary_request wants = {.plan   = to,
                                     .who    = "rerotate",
                                     .given  = {.params = io->to_params, .bound = io->to_bound},
                                     .length = pe_rotary_length(0, &w.to_pos, L),
                                     .taken  = pe_rotary_bytes(from, old.work.team.threads, 0)};
    if ((status = pe_rotary_open(&now, &wants, work, err)))
        return status;
    w.from = old.rotation.keys;
    w.to   = now.rotation.keys;
    w.rows = pe_rotary_lay_out_rows(to, now.work.team.threads, &now.work.arena);
    pe_parallel_for(io->k.shape[0] * L, &now.work.team, rerotate_element, &w);
    return pe_run_done(&now.work.team, "rerotate", err);
}
