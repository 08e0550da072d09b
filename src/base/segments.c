/* SPDX-License-Identifier: MIT */
/*
 * segments: where the tokens of text, images and videos stand (contract: posenc.h)
 *
 * One rule makes all three: a segment is a block of frames x rows x columns tokens that begins at s, and token (f, r, c)
 * stands at (s + time(f), s + r, s + c). A word is a block of one token, so text walks the diagonal and is rotated as by
 * plain RoPE; an image is a block of one frame. What comes next is s + the longest side of the block, time counted in
 * positions, or left out for a video where a program does so.
 *
 * Sizes are checked, and the tokens counted, before anything is written.
 */
#include <math.h>

#include "base/status.h"
#include "base/tensor.h"

static const int64_t MOST_TOKENS = INT64_C(1) << 40;

/* A segment in tokens: text is `count` blocks of one. */
typedef struct block {
    int64_t count, frames, rows, columns;
    double  step; /* positions from frame to frame */
} block;

static int64_t merge_of(const posenc_segment *s)
{
    return s->merge ? s->merge : 1;
}

static block block_of(const posenc_segment *s, int rules)
{
    if (s->kind == POSENC_SEGMENT_TEXT)
        return (block){s->tokens, 1, 1, 1, 0};
    const double seconds = rules & POSENC_SEGMENTS_WHOLE_SECONDS ? floor(s->seconds) : s->seconds;
    return (block){.count   = 1,
                   .frames  = s->kind == POSENC_SEGMENT_VIDEO ? s->frames : 1,
                   .rows    = s->rows / merge_of(s),
                   .columns = s->columns / merge_of(s),
                   .step    = s->rate > 0 ? seconds * s->rate : 1};
}

static int64_t time_of(const block *b, int64_t frame)
{
    return (int64_t)floor((double)frame * b->step);
}

/* How far behind its beginning a block lets the next one begin. */
static int64_t extent(const block *b, int ignores_time)
{
    const int64_t side = b->rows > b->columns ? b->rows : b->columns, last = time_of(b, b->frames - 1) + 1;
    return ignores_time || side > last ? side : last;
}

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_sizes(const posenc_segment *s, int64_t index, posenc_error *err)
{
    const int       is_text = s->kind == POSENC_SEGMENT_TEXT, is_video = s->kind == POSENC_SEGMENT_VIDEO;
    const int64_t   merge = merge_of(s);
    const long long n     = index;
    if (!is_text && !is_video && s->kind != POSENC_SEGMENT_IMAGE)
        return pe_fail(err, POSENC_ARGUMENT,
                       "positions: segment %lld is of kind %d; it must be one of the enum", n, (int)s->kind);
    if (is_text)
        return s->tokens >= 1 ? POSENC_OK
                              : pe_fail(err, POSENC_ARGUMENT,
                                        "positions: segment %lld has %lld tokens; it must have at least 1", n,
                                        (long long)s->tokens);
    if (merge < 1 || s->rows < 1 || s->columns < 1 || (is_video && s->frames < 1))
        return pe_fail(
            err, POSENC_ARGUMENT,
            "positions: segment %lld has %lld frames, %lld rows, %lld columns and merge %lld; each "
            "must be at least 1",
            n, (long long)(is_video ? s->frames : 1), (long long)s->rows, (long long)s->columns,
            (long long)merge);
    if (s->rows % merge || s->columns % merge)
        return pe_fail(
            err, POSENC_ARGUMENT,
            "positions: segment %lld has %lld rows and %lld columns; its merge %lld must divide both", n,
            (long long)s->rows, (long long)s->columns, (long long)merge);
    if (is_video && !(isfinite(s->rate) && s->rate >= 0 && isfinite(s->seconds) && s->seconds >= 0))
        return pe_fail(err, POSENC_ARGUMENT,
                       "positions: segment %lld has seconds=%g and rate=%g; both must be numbers from 0", n,
                       s->seconds, s->rate);
    return POSENC_OK;
}

/* count * frames * rows * columns, or -1 where it is more than `most`. */
static int64_t tokens_of(const block *b, int64_t most)
{
    const int64_t sizes[] = {b->count, b->frames, b->rows, b->columns};
    int64_t       product = 1;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > most / product)
            return -1;
        product *= sizes[i];
    }
    return product;
}

/* Tokens so far, and a bound of the positions they stand at. */
typedef struct sum {
    int64_t tokens;
    double  reach;
} sum;

static posenc_status add_segment(sum *all, const posenc_segment *s, int64_t index, posenc_error *err)
{
    const posenc_status status = check_sizes(s, index, err);
    if (status)
        return status;
    const block   b    = block_of(s, 0);
    const int64_t more = tokens_of(&b, MOST_TOKENS - all->tokens);
    if (more < 0)
        return pe_fail(err, POSENC_RANGE, "positions: with segment %lld there are more than 2^40 tokens",
                       (long long)index);
    all->tokens += more;
    all->reach += fmax((double)b.frames * b.step, (double)more);
    if (!(all->reach < 0x1p53))
        return pe_fail(err, POSENC_RANGE,
                       "positions: segment %lld ends at about %g; positions must stay below 2^53",
                       (long long)index, all->reach);
    return POSENC_OK;
}

posenc_status posenc_segments_tokens(const posenc_segment *segments, int64_t count, int64_t *tokens,
                                     posenc_error *err)
{
    sum all = {0};
    if (!segments || count < 1 || !tokens)
        return pe_fail(err, POSENC_ARGUMENT,
                       "positions: segments and tokens must not be NULL, and count at least 1");
    for (int64_t i = 0; i < count; i++) {
        const posenc_status status = add_segment(&all, &segments[i], i, err);
        if (status)
            return status;
    }
    *tokens = all.tokens;
    return pe_done(err);
}

/* ---------------------------------------------------------------- positions ----------------- */

/* Where a sequence has come to. */
typedef struct place {
    int64_t at;               /* tokens written, of all sequences */
    int64_t next, n, largest; /* s, tokens, and the largest position, of this sequence */
} place;

static void put(const posenc_tensor *pos, place *p, int64_t time, int64_t row, int64_t column)
{
    const int64_t at[3] = {p->next + time, p->next + row, p->next + column};
    for (int c = 0; c < 3; c++) {
        ((int64_t *)pos->data)[p->at * pos->stride[0] + c * pos->stride[1]] = at[c];
        p->largest = at[c] > p->largest ? at[c] : p->largest;
    }
    p->at++;
    p->n++;
}

static void put_block(const posenc_tensor *pos, place *p, const block *b, int ignores_time)
{
    for (int64_t f = 0; f < b->frames; f++)
        for (int64_t i = 0; i < b->rows * b->columns; i++)
            put(pos, p, time_of(b, f), i / b->columns, i % b->columns);
    p->next += extent(b, ignores_time);
}

posenc_status posenc_positions_segments(const posenc_segment *segments, int64_t count, int rules,
                                        posenc_tensor *pos, int64_t *delta, posenc_error *err)
{
    place         p = {0};
    int64_t       tokens;
    posenc_status status = posenc_segments_tokens(segments, count, &tokens, err);
    if (status)
        return status;
    if (!pos)
        return pe_fail(err, POSENC_ARGUMENT, "positions: pos must not be NULL");
    if (rules & ~(POSENC_SEGMENTS_IGNORE_TIME | POSENC_SEGMENTS_WHOLE_SECONDS))
        return pe_fail(err, POSENC_ARGUMENT,
                       "positions: rules is %d; it must be POSENC_SEGMENTS_... joined by |", rules);
    status = pe_check_tensor(pos, "positions: pos", 2, (const int64_t[2]){tokens, 3}, err);
    if (!status && pos->dtype != POSENC_I64)
        status =
            pe_fail(err, POSENC_DTYPE, "positions: pos is %s; it must be I64", pe_dtype_name(pos->dtype));
    if (status)
        return status;
    for (int64_t i = 0; i < count; i++) {
        const block b = block_of(&segments[i], rules);
        if (segments[i].restart)
            p.next = p.n = p.largest = 0;
        for (int64_t n = 0; n < b.count; n++)
            put_block(pos, &p, &b, (rules & POSENC_SEGMENTS_IGNORE_TIME) != 0);
    }
    if (delta)
        *delta = p.largest + 1 - p.n;
    return pe_done(err);
}
