/* SPDX-License-Identifier: MIT */
/*
 * fuzz_positions: the calls of positions.h, with any sizes and strides
 *
 * Segments are numbered into an array of just the tokens that they are said to have; masks and ids lie in
 * blocks of their own, and so do the positions made of them. Where a call succeeds, positions are whole
 * numbers below 2^53; where it fails it says why and has written nothing.
 */
#include <posenc/positions.h>

#include "fuzz/draw.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST = 1 << 12, CELLS = 96, SEGMENTS = 6 };

static void require(int holds)
{
    if (!holds)
        abort();
}

static int is_refused(posenc_status status, const posenc_error *err, const draw_view *to)
{
    require(!status || (err->status == status && err->message[0] && !strchr(err->message, '\n')));
    if (status && to)
        draw_require_untouched(to);
    return status != POSENC_OK;
}

/* ---- segments ---- */

static posenc_segment draw_segment(draw_source *s)
{
    posenc_segment x = {.kind =
                            (posenc_segment_kind)(draw_chance(s, 16) ? draw_integer(s) : draw_below(s, 4)),
                        .restart = draw_chance(s, 8),
                        .tokens  = draw_integer(s),
                        .frames  = draw_integer(s),
                        .rows    = draw_integer(s),
                        .columns = draw_integer(s),
                        .merge   = draw_chance(s, 4) ? draw_integer(s) : draw_below(s, 3)};
    if (draw_chance(s, 2)) {
        x.seconds = draw_real(s);
        x.rate    = draw_real(s);
    }
    if (draw_chance(s, 4)) {
        x.sound = draw_integer(s);
        x.chunk = draw_integer(s);
    }
    return x;
}

static void try_segments(draw_source *s)
{
    posenc_segment all[SEGMENTS];
    posenc_error   err;
    int64_t        tokens = 0, delta;
    const int64_t  count = draw_below(s, SEGMENTS + 1), width = 3 + draw_chance(s, 3);
    for (int64_t i = 0; i < count; i++)
        all[i] = draw_segment(s);
    if (is_refused(posenc_segments_tokens(all, count, &tokens, &err), &err, NULL) || tokens > MOST)
        return;
    require(tokens > 0);
    draw_numbers a  = draw_array(2, (int64_t[]){tokens - draw_chance(s, 16), width});
    draw_view    to = draw_tensor(s, &a, POSENC_DTYPE_I64, 0, 1);
    if (!is_refused(posenc_positions_segments(all, count, (int)draw_below(s, 5), &to.t, &delta, &err), &err,
                    &to))
        for (int64_t i = 0; i < a.count; i++) {
            const int64_t at = ((int64_t *)to.t.data)[draw_offset(&to.t, a.shape, i)];
            require(at >= 0 && at <= INT64_C(1) << 53);
        }
    draw_free(to.block);
    free(a.x);
}

/* ---- ids and masks ---- */

static draw_numbers draw_ids(draw_source *s, int axes)
{
    draw_numbers a =
        draw_array(axes, (int64_t[]){1 + draw_below(s, 3), 1 + draw_below(s, 7), 1 + draw_below(s, 7)});
    s->noise += (uint64_t)draw_below(s, 256);
    for (int64_t i = 0; i < a.count; i++)
        a.x[i] = draw_noise(s) > 0 ? 1 : 0;
    return a;
}

/* No elements, however large the other sizes; one over the other, or between two elements: refused, or
   nothing is read. */
static void spoil_both(draw_source *s, posenc_tensor *from, posenc_tensor *to)
{
    const int64_t axis = draw_below(s, 2);
    switch (draw_below(s, 4)) {
    case 0:
        from->shape[axis] = to->shape[axis] = draw_integer(s);
        from->shape[!axis] = to->shape[!axis] = 0;
        break;
    case 1: to->data = (char *)to->data + 1; break;
    case 2: from->data = (char *)from->data + (from->dtype != POSENC_DTYPE_U8); break;
    default: to->stride[axis] = 0;
    }
}

static void try_numbers(draw_source *s)
{
    posenc_error       err;
    draw_numbers       a       = draw_ids(s, 2);
    const int          is_mask = draw_chance(s, 2);
    const posenc_dtype dtype   = is_mask && draw_chance(s, 2) ? POSENC_DTYPE_U8 : POSENC_DTYPE_I64;
    draw_view from = draw_tensor(s, &a, dtype, 0, 0), to = draw_tensor(s, &a, POSENC_DTYPE_I64, 0, 1);
    if (draw_chance(s, 8))
        from.t.shape[draw_below(s, 2)] = draw_integer(s);
    if (draw_chance(s, 8))
        spoil_both(s, &from.t, &to.t);
    const posenc_status status = is_mask ? posenc_positions_from_mask(&from.t, &to.t, &err)
                                         : posenc_positions_fairseq(&from.t, draw_integer(s), &to.t, &err);
    is_refused(status, &err, &to);
    draw_free(from.block);
    draw_free(to.block);
    free(a.x);
}

static void try_detr(draw_source *s)
{
    posenc_error  err;
    draw_numbers  a        = draw_ids(s, 3);
    const int64_t shape[3] = {a.shape[0], a.shape[1] * a.shape[2], 2};
    draw_numbers  n        = draw_array(3, shape);
    draw_view     from = draw_tensor(s, &a, draw_chance(s, 2) ? POSENC_DTYPE_U8 : POSENC_DTYPE_I64, 0, 0), to;
    draw_source   none = {0};
    to                 = draw_tensor(&none, &n, POSENC_DTYPE_F64, 1, 1);
    if (draw_chance(s, 8))
        from.t.shape[draw_below(s, 3)] = draw_integer(s);
    if (draw_chance(s, 8))
        spoil_both(s, &from.t, &to.t);
    const double eps = draw_chance(s, 4) ? draw_real(s) : 1e-6;
    is_refused(posenc_positions_detr(&from.t, draw_chance(s, 2), eps, &to.t, &err), &err, &to);
    draw_free(from.block);
    draw_free(to.block);
    free(a.x);
    free(n.x);
}

/* ---- maps ---- */

static void try_windows(draw_source *s)
{
    posenc_error  err;
    const int64_t rows = draw_integer(s), columns = draw_integer(s), old = draw_integer(s),
                  older = draw_integer(s);
    const int     fits  = rows > 0 && columns > 0 && rows <= CELLS && columns <= CELLS / rows;
    const int64_t n = fits ? rows * columns : 1, offsets = fits ? (2 * rows - 1) * (2 * columns - 1) : 1;
    int64_t      *index       = malloc((size_t)(n * n) * sizeof *index);
    double       *coordinates = malloc((size_t)(2 * offsets) * sizeof *coordinates);
    if (fits || rows < 1 || columns < 1 || rows > 4096 || columns > 4096) {
        if (!is_refused(posenc_window_index(rows, columns, index, &err), &err, NULL))
            for (int64_t i = 0; i < n * n; i++)
                require(index[i] >= 0 && index[i] < offsets);
        is_refused(posenc_window_coordinates(rows, columns, old, older, coordinates, &err), &err, NULL);
    }
    free(index);
    free(coordinates);
}

static void try_map(draw_source *s)
{
    static const char *const names[]       = {"position_buckets", "max_relative_positions", "clip_first",
                                              "num_buckets",      "max_distance",           "bidirectional"};
    char                     settings[160] = "";
    int64_t                  rel[8], out[8];
    posenc_error             err;
    for (int64_t n = draw_below(s, 4); n > 0; n--) {
        const size_t used = strlen(settings);
        snprintf(settings + used, sizeof settings - used, "%s=%.17g ", names[draw_below(s, 6)], draw_real(s));
    }
    for (int i = 0; i < 8; i++)
        rel[i] = draw_integer(s);
    is_refused(posenc_index_map(draw_chance(s, 2) ? "t5" : "deberta", settings, rel, 8, out, &err), &err,
               NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const all[])(draw_source *) = {try_segments, try_segments, try_numbers,
                                                 try_detr,     try_windows,  try_map};
    draw_source s                             = {.at = data, .left = size};
    all[draw_below(&s, sizeof all / sizeof *all)](&s);
    return 0;
}
