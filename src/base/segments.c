/* SPDX-License-Identifier: MIT */
/*
 * segments: positions of the tokens of text, images and videos (contract: posenc.h)
 *
 * One rule gives all three: a segment is a block of frames x rows x columns tokens that begins at s, and
 * token (f, r, c) has the position (s + time(f), s + r, s + c). A word is a block of one token, so in text
 * all coordinates are equal and it is rotated as by plain RoPE; an image is a block of one frame. The next
 * block begins at s + the longest side of this one; time is a side too, in positions, except for a video
 * where a program ignores it.
 *
 * Two models do otherwise. A video with sound alternates: a chunk of positions of what is seen, then what is
 * heard meanwhile. Four coordinates (XD-RoPE) begin at the number of the token instead of s, and an image at
 * (0, 0).
 *
 * Sizes are checked, and the tokens counted, before anything is written.
 */
#include <math.h>
#include <posenc/positions.h>

#include "base/sizes.h"
#include "base/status.h"
#include "base/tensor.h"

static const int64_t MOST_TOKENS = INT64_C(1) << 40;

/* A segment in tokens: text is `count` blocks of one. */
typedef struct token_block {
    int64_t count, frames, rows, columns;
    double  step;         /* positions from frame to frame */
    int64_t sound, chunk; /* tokens heard meanwhile, and positions of a chunk */
} token_block;

enum { MARKS = 4 }; /* around a video with sound */

static int64_t merge_of(const posenc_segment *s)
{
    return s->merge ? s->merge : 1;
}

static token_block block_of(const posenc_segment *s, int rules)
{
    if (s->kind == POSENC_SEGMENT_TEXT)
        return (token_block){.count = s->tokens, .frames = 1, .rows = 1, .columns = 1};
    const int    is_video = s->kind == POSENC_SEGMENT_VIDEO, cuts = rules & POSENC_SEGMENTS_WHOLE_SECONDS;
    const double seconds = cuts && !s->sound ? floor(s->seconds) : s->seconds;
    return (token_block){.count   = 1,
                         .frames  = is_video ? s->frames : 1,
                         .rows    = s->rows / merge_of(s),
                         .columns = pe_sizes_sum(s->columns / merge_of(s), s->kind == POSENC_SEGMENT_LINES),
                         .step    = is_video && s->rate > 0 ? seconds * s->rate : 1,
                         .sound   = is_video ? s->sound : 0,
                         .chunk   = s->chunk};
}

static int64_t time_of(const token_block *b, int64_t frame)
{
    return (int64_t)floor((double)frame * b->step);
}

/* ---------------------------------------------------------------- checks -------------------- */

static posenc_status check_sizes(const posenc_segment *s, int64_t index, posenc_error *err)
{
    const int       is_text = s->kind == POSENC_SEGMENT_TEXT, is_video = s->kind == POSENC_SEGMENT_VIDEO;
    const int64_t   merge = merge_of(s);
    const long long n     = index;
    if (!is_text && !is_video && s->kind != POSENC_SEGMENT_IMAGE && s->kind != POSENC_SEGMENT_LINES)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "positions: segment %lld has kind %d; see enum posenc_segment_kind", n, (int)s->kind);
    if (is_text)
        return s->tokens >= 1 ? POSENC_OK
                              : pe_fail(err, POSENC_ERROR_ARGUMENT,
                                        "positions: segment %lld has %lld tokens; it must have at least 1", n,
                                        (long long)s->tokens);
    if (merge < 1 || s->rows < 1 || s->columns < 1 || (is_video && s->frames < 1))
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "positions: segment %lld has %lld frames, %lld rows, %lld columns and merge %lld; each "
            "must be at least 1",
            n, (long long)(is_video ? s->frames : 1), (long long)s->rows, (long long)s->columns,
            (long long)merge);
    if (s->rows % merge || s->columns % merge)
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "positions: segment %lld has %lld rows and %lld columns; its merge %lld must divide both", n,
            (long long)s->rows, (long long)s->columns, (long long)merge);
    if (is_video && !(isfinite(s->rate) && s->rate >= 0 && isfinite(s->seconds) && s->seconds >= 0))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "positions: segment %lld has seconds=%g and rate=%g; both must be numbers from 0", n,
                       s->seconds, s->rate);
    if (is_video && ((s->sound || s->chunk) && (s->sound < 1 || s->chunk < 1)))
        return pe_fail(
            err, POSENC_ERROR_ARGUMENT,
            "positions: segment %lld has sound=%lld and chunk=%lld; both must be at least 1, or both 0", n,
            (long long)s->sound, (long long)s->chunk);
    return POSENC_OK;
}

/* count * frames * rows * columns, and what is heard, or -1 where it is more than `most`. */
static int64_t tokens_of(const token_block *b, int64_t most)
{
    const int64_t sizes[] = {b->count, b->frames, b->rows, b->columns};
    int64_t       product = 1;
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > most / product)
            return -1;
        product *= sizes[i];
    }
    if (!b->sound)
        return product;
    return b->sound > most - product - MARKS ? -1 : product + b->sound + MARKS;
}

/* Tokens so far, and a bound of their positions. */
typedef struct sum {
    int64_t tokens;
    double  reach;
} sum;

static posenc_status add_segment(sum *all, const posenc_segment *s, int64_t index, posenc_error *err)
{
    const posenc_status status = check_sizes(s, index, err);
    if (status)
        return status;
    const token_block b    = block_of(s, 0);
    const int64_t     more = tokens_of(&b, MOST_TOKENS - all->tokens);
    if (more < 0)
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "positions: with segment %lld there are more than 2^40 tokens", (long long)index);
    all->tokens += more;
    all->reach += fmax((double)b.frames * b.step, (double)more);
    if (!(all->reach < 0x1p53))
        return pe_fail(err, POSENC_ERROR_RANGE,
                       "positions: segment %lld ends at about %g; positions must stay below 2^53",
                       (long long)index, all->reach);
    return POSENC_OK;
}

posenc_status posenc_segments_tokens(const posenc_segment *segments, int64_t count, int64_t *tokens,
                                     posenc_error *err)
{
    sum all = {0};
    if (!segments || count < 1 || !tokens)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
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

/* The state of a sequence. */
typedef struct sequence_state {
    int64_t at;               /* tokens written, of all sequences */
    int64_t next, n, largest; /* s, tokens, and the largest position, of this sequence */
    int64_t images;           /* LINES so far, of this sequence */
} sequence_state;

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void put_token(const posenc_tensor *pos, sequence_state *p, const int64_t at[])
{
    for (int64_t c = 0; c < pos->shape[1]; c++) {
        ((int64_t *)pos->data)[p->at * pos->stride[0] + c * pos->stride[1]] = at[c];
        p->largest                                                          = later(p->largest, at[c]);
    }
    p->at++;
    p->n++;
}

/* At p->next plus this. */
static void put_after(const posenc_tensor *pos, sequence_state *p, int64_t time, int64_t row, int64_t column)
{
    const int64_t at[3] = {p->next + time, p->next + row, p->next + column};
    put_token(pos, p, at);
}

static void put_block(const posenc_tensor *pos, sequence_state *p, const token_block *b, int ignores_time)
{
    for (int64_t f = 0; f < b->frames; f++)
        for (int64_t i = 0; i < b->rows * b->columns; i++)
            put_after(pos, p, time_of(b, f), i / b->columns, i % b->columns);
    const int64_t side = later(b->rows, b->columns);
    p->next += ignores_time ? side : later(side, time_of(b, b->frames - 1) + 1);
}

/* ---- a video with sound ---- */

/* The end of the chunk that begins with token `from` of n: the first token that is not before `until`. */
static int64_t end_of_chunk(const token_block *b, int64_t from, int64_t n, double until, int is_seen)
{
    const int64_t area = b->rows * b->columns;
    int64_t       i    = from + 1;
    while (i < n && (double)(is_seen ? time_of(b, i / area) : i) < until)
        i++;
    return i;
}

/* Tokens from .. to-1 of what is seen or heard; returns how far they reach. */
static int64_t put_chunk(const posenc_tensor *pos, sequence_state *p, const token_block *b, int64_t from,
                         int64_t to, int is_seen)
{
    const int64_t area = b->rows * b->columns;
    int64_t       far  = 0;
    for (int64_t i = from; i < to; i++) {
        const int64_t time = is_seen ? time_of(b, i / area) : i, row = is_seen ? i % area / b->columns : i,
                      column = is_seen ? i % b->columns : i;
        put_after(pos, p, time, row, column);
        far = later(far, later(time, later(row, column)));
    }
    return far;
}

static void put_marks(const posenc_tensor *pos, sequence_state *p)
{
    put_after(pos, p, 0, 0, 0);
    put_after(pos, p, 0, 0, 0);
    p->next++;
}

static void put_film(const posenc_tensor *pos, sequence_state *p, const token_block *b)
{
    const int64_t n[2]    = {b->sound, b->frames * b->rows * b->columns}; /* heard, seen */
    int64_t       from[2] = {0}, far = 0;
    put_marks(pos, p);
    for (double until = (double)b->chunk; from[0] < n[0] || from[1] < n[1]; until += (double)b->chunk)
        for (int is_seen = 1; is_seen >= 0; is_seen--)
            if (from[is_seen] < n[is_seen]) {
                const int64_t to = end_of_chunk(b, from[is_seen], n[is_seen], until, is_seen);
                far              = put_chunk(pos, p, b, from[is_seen], to, is_seen);
                from[is_seen]    = to;
            }
    p->next += far + 1;
    put_marks(pos, p);
}

/* ---- four coordinates ---- */

/* Words have their own number as position; so do cells of an image, in the first coordinate. */
static void put_numbered(const posenc_tensor *pos, sequence_state *p, const token_block *b, int is_image)
{
    for (int64_t i = 0; i < b->count * b->rows * b->columns; i++) {
        const int64_t word[4] = {p->n, p->n, p->n, p->n},
                      cell[4] = {p->n, i % b->columns, i / b->columns, p->images};
        put_token(pos, p, is_image ? cell : word);
    }
    p->images += is_image;
}

/* ---- all ---- */

static posenc_status check_kinds(const posenc_segment *segments, int64_t count, const posenc_tensor *pos,
                                 posenc_error *err)
{
    const int four = pos->shape[1] == 4;
    for (int64_t i = 0; i < count; i++) {
        const posenc_segment_kind kind = segments[i].kind;
        if (four ? kind == POSENC_SEGMENT_IMAGE || kind == POSENC_SEGMENT_VIDEO
                 : kind == POSENC_SEGMENT_LINES)
            return pe_fail(
                err, POSENC_ERROR_ARGUMENT,
                four ? "positions: segment %lld is an IMAGE or VIDEO; where pos is [tokens,4] it must be "
                       "TEXT or LINES"
                     : "positions: segment %lld is LINES; with it pos must be [tokens,4]",
                (long long)i);
    }
    return POSENC_OK;
}

static posenc_status check_pos(const posenc_segment *segments, int64_t count, int rules, int64_t tokens,
                               const posenc_tensor *pos, posenc_error *err)
{
    if (!pos)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "positions: pos must not be NULL");
    if (rules & ~(POSENC_SEGMENTS_IGNORE_TIME | POSENC_SEGMENTS_WHOLE_SECONDS))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "positions: rules is %d; it must be POSENC_SEGMENTS_... joined by |", rules);
    const int64_t width  = pos->ndim == 2 && pos->shape[1] == 4 ? 4 : 3;
    posenc_status status = pe_tensor_check(pos, "positions: pos", 2, (const int64_t[2]){tokens, width}, err);
    if (!status && pos->dtype != POSENC_DTYPE_I64)
        status = pe_fail(err, POSENC_ERROR_DTYPE, "positions: pos is %s; it must be I64",
                         pe_tensor_dtype_name(pos->dtype));
    if (!status)
        status = pe_tensor_check_self(pos, "positions: pos", err);
    return status ? status : check_kinds(segments, count, pos, err);
}

static void put_segment(const posenc_tensor *pos, sequence_state *p, const posenc_segment *s, int rules)
{
    const token_block b = block_of(s, rules);
    if (s->restart)
        *p = (sequence_state){.at = p->at};
    if (pos->shape[1] == 4)
        put_numbered(pos, p, &b, s->kind == POSENC_SEGMENT_LINES);
    else if (b.sound)
        put_film(pos, p, &b);
    else
        for (int64_t n = 0; n < b.count; n++)
            put_block(pos, p, &b, (rules & POSENC_SEGMENTS_IGNORE_TIME) != 0);
}

posenc_status posenc_positions_segments(const posenc_segment *segments, int64_t count, int rules,
                                        posenc_tensor *pos, int64_t *delta, posenc_error *err)
{
    sequence_state p = {0};
    int64_t        tokens;
    posenc_status  status = posenc_segments_tokens(segments, count, &tokens, err);
    if (!status)
        status = check_pos(segments, count, rules, tokens, pos, err);
    if (status)
        return status;
    for (int64_t i = 0; i < count; i++)
        put_segment(pos, &p, &segments[i], rules);
    if (delta)
        *delta = p.largest + 1 - p.n;
    return pe_done(err);
}
