/* SPDX-License-Identifier: MIT */
/*
 * test_segments: where text, images and videos stand
 *
 * Held against three things: positions worked out by hand; the two programs' way of computing them, written
 * here as they do it (grids laid out whole and added to the largest position before), on random sequences;
 * and what must hold whatever the rule: text alone is a plain range, and a row of packed sequences is those
 * sequences one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include <posenc/positions.h>
#include <posenc/registry.h>

enum { MOST = 4096 };

static int64_t place(int64_t at[MOST][3], const posenc_segment *segments, int64_t count, int rules,
                     int64_t *delta)
{
    posenc_error err;
    int64_t      n;
    if (posenc_segments_tokens(segments, count, &n, &err))
        fail_msg("%s", err.message);
    assert_true(n <= MOST);
    posenc_tensor pos = posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 2, (int64_t[]){n, 3});
    if (posenc_positions_segments(segments, count, rules, &pos, delta, &err))
        fail_msg("%s", err.message);
    return n;
}

/* ---------------------------------------------------------------- worked by hand ------------ */

static void expect(const posenc_segment *segments, int64_t count, int rules, int64_t n,
                   const int64_t *const want[3], int64_t delta)
{
    int64_t at[MOST][3], got;
    assert_int_equal(place(at, segments, count, rules, &got), n);
    for (int64_t i = 0; i < n; i++)
        for (int c = 0; c < 3; c++)
            if (at[i][c] != want[c][i])
                fail_msg("coordinate %d of token %d is %d instead of %d", c, (int)i, (int)at[i][c],
                         (int)want[c][i]);
    assert_int_equal(got, delta);
}

static void an_image_stands_beside_the_text_around_it(void **state)
{
    static const int64_t t[] = {0, 1, 2, 3, 3, 3, 3, 3, 3, 6, 7}, h[] = {0, 1, 2, 3, 3, 3, 4, 4, 4, 6, 7},
                         w[]        = {0, 1, 2, 3, 4, 5, 3, 4, 5, 6, 7};
    const posenc_segment segments[] = {{.tokens = 3},
                                       {.kind = POSENC_SEGMENT_IMAGE, .rows = 4, .columns = 6, .merge = 2},
                                       {.tokens = 2}};
    (void)state;
    for (int rules = 0; rules < 4; rules++) /* videos alone differ */
        expect(segments, 3, rules, 11, (const int64_t *const[]){t, h, w}, -3);
}

static const int64_t video_h[] = {0, 1, 2, 2, 3, 3, 2, 2, 3, 3, 2, 2, 3, 3},
                     video_w[] = {0, 1, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3, 2, 3};

static void text_after_a_video_stands_behind_its_time_or_among_its_frames(void **state)
{
    static const int64_t behind_t[] = {0, 1, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8},
                         among_t[]  = {0, 1, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6, 4, 5};
    const posenc_segment segments[] = {{.tokens = 2},
                                       {.kind    = POSENC_SEGMENT_VIDEO,
                                        .frames  = 3,
                                        .rows    = 4,
                                        .columns = 4,
                                        .merge   = 2,
                                        .seconds = 1,
                                        .rate    = 2},
                                       {.tokens = 2}};
    int64_t              h[16], w[16];
    (void)state;
    memcpy(h, video_h, sizeof video_h);
    memcpy(w, video_w, sizeof video_w);
    h[14] = w[14] = 7, h[15] = w[15] = 8;
    expect(segments, 3, 0, 16, (const int64_t *const[]){behind_t, h, w}, 9 - 16);
    h[14] = w[14] = 4, h[15] = w[15] = 5;
    expect(segments, 3, POSENC_SEGMENTS_IGNORE_TIME, 16, (const int64_t *const[]){among_t, h, w}, 7 - 16);
}

/* A frame every 0.75 seconds, two positions a second: 1.5 per frame, cut to a whole position but not
   before. */
static void fractions_of_seconds_count_or_are_cut(void **state)
{
    static const int64_t whole[] = {0, 1, 3, 4, 6, 7}, none[6] = {0}, counted[] = {0, 1, 2, 3, 4, 5};
    posenc_segment       video = {
              .kind = POSENC_SEGMENT_VIDEO, .frames = 6, .rows = 1, .columns = 1, .seconds = 0.75, .rate = 2};
    (void)state;
    expect(&video, 1, 0, 6, (const int64_t *const[]){whole, none, none}, 8 - 6);
    expect(&video, 1, POSENC_SEGMENTS_WHOLE_SECONDS, 6, (const int64_t *const[]){none, none, none}, 1 - 6);
    video.rate = 0;
    expect(&video, 1, POSENC_SEGMENTS_WHOLE_SECONDS, 6, (const int64_t *const[]){counted, none, none}, 0);
}

/* 180 frames of 14 x 14 tokens, a second apart, two positions a second: the next word at 359, or at 14. A
   decoded token stands behind all of them either way. */
static void a_long_video_parts_the_rules_by_346_positions(void **state)
{
    enum { TOKENS = 180 * 14 * 14 + 1 };
    const posenc_segment segments[] = {{.kind    = POSENC_SEGMENT_VIDEO,
                                        .frames  = 180,
                                        .rows    = 28,
                                        .columns = 28,
                                        .merge   = 2,
                                        .seconds = 1,
                                        .rate    = 2},
                                       {.tokens = 1}};
    static int64_t       at[TOKENS][3];
    posenc_tensor        pos = posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 2, (int64_t[]){TOKENS, 3});
    int64_t              delta;
    (void)state;
    assert_int_equal(posenc_positions_segments(segments, 2, 0, &pos, &delta, NULL), POSENC_OK);
    assert_true(at[TOKENS - 1][0] == 359 && delta == 360 - TOKENS);
    assert_int_equal(posenc_positions_segments(segments, 2, POSENC_SEGMENTS_IGNORE_TIME, &pos, &delta, NULL),
                     POSENC_OK);
    assert_true(at[TOKENS - 1][0] == 14 && delta == 359 - TOKENS);
}

/* Two positions a second, two seconds a turn; frames a second apart. Both marks stand at one position. */
static void a_video_with_sound_takes_turns(void **state)
{
    static const int64_t t[]        = {0, 1, 1, 2, 2, 4, 4, 2, 3, 4, 5, 6, 6, 6, 7, 7, 8},
                         h[]        = {0, 1, 1, 2, 2, 2, 2, 2, 3, 4, 5, 2, 2, 6, 7, 7, 8},
                         w[]        = {0, 1, 1, 2, 3, 2, 3, 2, 3, 4, 5, 2, 3, 6, 7, 7, 8};
    const posenc_segment segments[] = {{.tokens = 1},
                                       {.kind    = POSENC_SEGMENT_VIDEO,
                                        .frames  = 3,
                                        .rows    = 2,
                                        .columns = 4,
                                        .merge   = 2,
                                        .seconds = 1,
                                        .rate    = 2,
                                        .sound   = 5,
                                        .chunk   = 4},
                                       {.tokens = 1}};
    (void)state;
    for (int rules = 0; rules < 4; rules++)
        expect(segments, 3, rules, 17, (const int64_t *const[]){t, h, w}, 9 - 17);
}

/* One step of sound, and two frames three columns wide: the last turn is one of frames, which ends two
   columns on. */
static void what_follows_stands_behind_the_last_turn(void **state)
{
    static const int64_t t[] = {0, 0, 1, 1, 1, 1, 2, 2, 2, 4, 4}, h[] = {0, 0, 1, 1, 1, 1, 1, 1, 1, 4, 4},
                         w[]   = {0, 0, 1, 2, 3, 1, 1, 2, 3, 4, 4};
    const posenc_segment video = {
        .kind = POSENC_SEGMENT_VIDEO, .frames = 2, .rows = 1, .columns = 3, .sound = 1, .chunk = 1};
    (void)state;
    expect(&video, 1, 0, 11, (const int64_t *const[]){t, h, w}, 5 - 11);
}

/* Hunyuan-VL: number of the token, column, row, number of the image; each row ends with a token of its
   own. */
static void four_coordinates_are_number_column_row_and_image(void **state)
{
    static const int64_t want[][4]  = {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 1, 0, 0},  {3, 2, 0, 0},
                                       {4, 0, 1, 0}, {5, 1, 1, 0}, {6, 2, 1, 0},  {7, 7, 7, 7},
                                       {8, 8, 8, 8}, {9, 0, 0, 1}, {10, 1, 0, 1}, {11, 11, 11, 11},
                                       {0, 0, 0, 0}, {1, 0, 0, 0}, {2, 1, 0, 0}};
    const posenc_segment segments[] = {{.tokens = 1},
                                       {.kind = POSENC_SEGMENT_LINES, .rows = 4, .columns = 4, .merge = 2},
                                       {.tokens = 2},
                                       {.kind = POSENC_SEGMENT_LINES, .rows = 1, .columns = 1},
                                       {.tokens = 1},
                                       {.tokens = 1, .restart = 1},
                                       {.kind = POSENC_SEGMENT_LINES, .rows = 1, .columns = 1}};
    int64_t              at[15][4], n, delta;
    posenc_tensor        pos = posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 2, (int64_t[]){15, 4});
    (void)state;
    assert_int_equal(posenc_segments_tokens(segments, 7, &n, NULL), POSENC_OK);
    assert_int_equal(n, 15);
    assert_int_equal(posenc_positions_segments(segments, 7, 0, &pos, &delta, NULL), POSENC_OK);
    assert_memory_equal(at, want, sizeof at);
    assert_int_equal(delta, 0);
}

/* ---------------------------------------------------------------- as the programs do it ----- */

static int64_t random_below(int64_t n, uint64_t *index)
{
    return (int64_t)(posenc_random_uniform(3, "segments", (*index)++) * (double)n);
}

static posenc_segment random_segment(uint64_t *index)
{
    static const double rates[] = {0, 1, 2, 25, 1.5}, seconds[] = {0, 0.25, 0.5, 1, 1.5, 2};
    posenc_segment      s = {.kind   = (posenc_segment_kind)random_below(3, index),
                             .tokens = 1 + random_below(9, index),
                             .frames = 1 + random_below(5, index),
                             .merge  = random_below(4, index)};
    const int64_t       m = s.merge ? s.merge : 1;
    s.rows                = m * (1 + random_below(5, index));
    s.columns             = m * (1 + random_below(5, index));
    s.rate                = rates[random_below(5, index)];
    s.seconds             = seconds[random_below(6, index)];
    return s;
}

/* vLLM: st_idx = the largest position so far + 1; then t_index, h_index, w_index of the grid, flattened, plus
   st_idx. Returns the tokens of the segment. */
static int64_t lay_grid(int64_t at[][3], const posenc_segment *s, int64_t start, int whole_seconds)
{
    const int     is_text = s->kind == POSENC_SEGMENT_TEXT;
    const int64_t m = s->merge ? s->merge : 1, T = s->kind == POSENC_SEGMENT_VIDEO ? s->frames : 1,
                  H = is_text ? 1 : s->rows / m, W = is_text ? 1 : s->columns / m,
                  n      = is_text ? s->tokens : T * H * W;
    const double seconds = whole_seconds ? (double)(int64_t)s->seconds : s->seconds;
    for (int64_t i = 0; i < n; i++) {
        const int64_t f = i / (H * W);
        at[i][0] = start + (is_text ? i : s->rate > 0 ? (int64_t)((double)f * (seconds * s->rate)) : f);
        at[i][1] = start + (is_text ? i : i / W - f * H);
        at[i][2] = start + (is_text ? i : i - i / W * W);
    }
    return n;
}

static int64_t largest(int64_t at[][3], int64_t n)
{
    int64_t most = -1;
    for (int64_t i = 0; i < 3 * n; i++)
        most = at[i / 3][i % 3] > most ? at[i / 3][i % 3] : most;
    return most;
}

static void random_sequences_stand_where_the_programs_put_them(void **state)
{
    uint64_t index = 0;
    (void)state;
    for (int round = 0; round < 400; round++) {
        enum { PARTS = 6 };
        posenc_segment segments[PARTS];
        int64_t        at[MOST][3], want[MOST][3], n = 0, next = 0, delta;
        const int      rules = round % 4;
        for (int i = 0; i < PARTS; i++) {
            const posenc_segment *s = &segments[i];
            segments[i]             = random_segment(&index);
            const int64_t start     = rules & POSENC_SEGMENTS_IGNORE_TIME ? next : largest(want, n) + 1,
                          more      = lay_grid(want + n, s, start, rules & POSENC_SEGMENTS_WHOLE_SECONDS),
                          m         = s->merge ? s->merge : 1;
            next                    = start + (s->kind == POSENC_SEGMENT_TEXT ? s->tokens
                                               : s->rows > s->columns         ? s->rows / m
                                                                              : s->columns / m);
            n += more;
        }
        assert_int_equal(place(at, segments, PARTS, rules, &delta), n);
        assert_memory_equal(at, want, (size_t)n * sizeof *at);
        assert_int_equal(delta, largest(want, n) + 1 - n);
    }
}

/* transformers, get_chunked_index: begin[k] of each run whose times have reached the next chunk. Returns how
   many. */
static int chunks_of(const int64_t time[], int64_t n, int64_t per, int64_t begin[])
{
    int count = 1;
    begin[0]  = 0;
    for (int64_t i = 0, current = 1; i < n; i++)
        if (time[i] >= current * per) {
            begin[count++] = i;
            current++;
        }
    begin[count] = n;
    return count;
}

/* transformers, Qwen2.5-Omni: both lists laid out whole, cut into chunks, and dealt out in turns. */
static int64_t lay_film(int64_t at[][3], const posenc_segment *s, int64_t start)
{
    static int64_t video[MOST][3], audio[MOST][3], seen_time[MOST], heard_time[MOST], seen[MOST], heard[MOST];
    posenc_segment silent = *s;
    silent.sound = silent.chunk = 0;
    const int64_t base = start + 1, tokens = lay_grid(video, &silent, base, 0);
    int64_t       n = 0;
    for (int64_t i = 0; i < tokens; i++)
        seen_time[i] = video[i][0] - base;
    for (int64_t i = 0; i < s->sound; i++) {
        heard_time[i] = i;
        audio[i][0] = audio[i][1] = audio[i][2] = base + i;
    }
    const int seen_count  = chunks_of(seen_time, tokens, s->chunk, seen),
              heard_count = chunks_of(heard_time, s->sound, s->chunk, heard);
    for (int i = 0; i < 6; i++)
        at[i / 3][i % 3] = start;
    n            = 2;
    int64_t last = 0;
    for (int k = 0; k < seen_count || k < heard_count; k++) {
        if (k < seen_count) {
            last = n;
            for (int64_t i = seen[k]; i < seen[k + 1]; i++)
                memcpy(at[n++], video[i], sizeof *at);
        }
        if (k < heard_count) {
            last = n;
            for (int64_t i = heard[k]; i < heard[k + 1]; i++)
                memcpy(at[n++], audio[i], sizeof *at);
        }
    }
    const int64_t end = largest(at + last, n - last) + 1;
    for (int i = 0; i < 6; i++)
        at[n + i / 3][i % 3] = end;
    return n + 2;
}

static void random_videos_with_sound_stand_where_transformers_puts_them(void **state)
{
    uint64_t index = 9000;
    (void)state;
    for (int round = 0; round < 300; round++) {
        posenc_segment s[3] = {{.tokens = 1 + random_below(5, &index)}, {0}, {.tokens = 2}};
        int64_t        at[MOST][3], want[MOST][3], n;
        do
            s[1] = random_segment(&index);
        while (s[1].kind != POSENC_SEGMENT_VIDEO);
        s[1].sound = 1 + random_below(60, &index);
        s[1].chunk = 1 + random_below(20, &index);
        n          = lay_grid(want, &s[0], 0, 0);
        n += lay_film(want + n, &s[1], n);
        n += lay_grid(want + n, &s[2], want[n - 1][0] + 1, 0);
        assert_int_equal(place(at, s, 3, round % 4, NULL), n);
        assert_memory_equal(at, want, (size_t)n * sizeof *at);
    }
}

/* ---------------------------------------------------------------- what must hold ------------ */

static void packed_sequences_stand_as_each_alone(void **state)
{
    uint64_t index = 5000;
    (void)state;
    for (int round = 0; round < 50; round++) {
        posenc_segment both[4];
        int64_t        at[MOST][3], first[MOST][3], second[MOST][3], delta, alone;
        for (int i = 0; i < 4; i++)
            both[i] = random_segment(&index);
        both[2].restart = 1;
        const int64_t n = place(at, both, 4, 0, &delta), a = place(first, both, 2, 0, NULL),
                      b = place(second, both + 2, 2, 0, &alone);
        assert_int_equal(n, a + b);
        assert_memory_equal(at, first, (size_t)a * sizeof *at);
        assert_memory_equal(at + a, second, (size_t)b * sizeof *at);
        assert_int_equal(delta, alone);
    }
}

/* An item of [B,L,3], coordinates apart: what lies between stays. */
static void positions_are_written_by_strides(void **state)
{
    const posenc_segment segments[] = {{.tokens = 1},
                                       {.kind = POSENC_SEGMENT_IMAGE, .rows = 1, .columns = 2}};
    int64_t              room[3][7] = {{0}}, at[MOST][3];
    posenc_tensor        pos        = posenc_tensor_contiguous(room, POSENC_DTYPE_I64, 2, (int64_t[]){3, 3});
    (void)state;
    pos.stride[0] = 2;
    pos.stride[1] = 7;
    memset(room, 0x11, sizeof room);
    const int64_t kept = room[0][1];
    assert_int_equal(posenc_positions_segments(segments, 2, 0, &pos, NULL, NULL), POSENC_OK);
    place(at, segments, 2, 0, NULL);
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 7; i++)
            assert_true(room[c][i] == (i % 2 == 0 && i < 6 ? at[i / 2][c] : kept));
}

static void what_cannot_stand_is_refused_and_nothing_is_written(void **state)
{
    int64_t       at[12][3];
    posenc_tensor pos = posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 2, (int64_t[]){12, 3}), real = pos,
                  small = pos, four = posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 2, (int64_t[]){9, 4});
    const posenc_segment image   = {.kind = POSENC_SEGMENT_IMAGE, .rows = 3, .columns = 4},
                         video   = {.kind = POSENC_SEGMENT_VIDEO, .frames = 3, .rows = 2, .columns = 2};
    const posenc_segment lines   = {.kind = POSENC_SEGMENT_LINES, .rows = 3, .columns = 2},
                         square  = {.kind = POSENC_SEGMENT_IMAGE, .rows = 3, .columns = 3},
                         lines12 = {.kind = POSENC_SEGMENT_LINES, .rows = 3, .columns = 3};
    posenc_segment wrong[12];
    posenc_error   err;
    (void)state;
    real.dtype     = POSENC_DTYPE_F64;
    small.shape[0] = 11;
    for (int i = 0; i < 12; i++)
        wrong[i] = i < 4 ? image : video;
    wrong[0].merge   = 2;
    wrong[1].rows    = 0;
    wrong[2].merge   = -1;
    wrong[3].kind    = (posenc_segment_kind)4;
    wrong[4].frames  = 0;
    wrong[5].seconds = NAN;
    wrong[6].rate    = -1;
    wrong[7].frames  = INT64_C(1) << 39;
    wrong[8].seconds = 1e300, wrong[8].rate = 1e300;
    wrong[9].sound  = 3;
    wrong[10].sound = 3, wrong[10].chunk = -1;
    wrong[11].sound = INT64_C(1) << 40, wrong[11].chunk = 1;
    const posenc_segment nothing = {.tokens = 0};
    const struct {
        const posenc_segment *segments;
        int64_t               count;
        int                   rules;
        posenc_tensor        *pos;
        posenc_status         status;
        const char           *words;
    } all[] = {
        {NULL, 1, 0, &pos, POSENC_ERROR_ARGUMENT, "segments and tokens must not be NULL"},
        {&image, 0, 0, &pos, POSENC_ERROR_ARGUMENT, "count at least 1"},
        {&image, 1, 0, NULL, POSENC_ERROR_ARGUMENT, "pos must not be NULL"},
        {&image, 1, 4, &pos, POSENC_ERROR_ARGUMENT, "rules is 4"},
        {&image, 1, 0, &real, POSENC_ERROR_DTYPE, "pos is F64; it must be I64"},
        {&image, 1, 0, &small, POSENC_ERROR_SHAPE, "[12,3]"},
        {&nothing, 1, 0, &pos, POSENC_ERROR_ARGUMENT, "segment 0 has 0 tokens; it must have at least 1"},
        {&wrong[0], 1, 0, &pos, POSENC_ERROR_ARGUMENT,
         "segment 0 has 3 rows and 4 columns; its merge 2 must divide"},
        {&wrong[1], 1, 0, &pos, POSENC_ERROR_ARGUMENT,
         "has 1 frames, 0 rows, 4 columns and merge 1; each must be"},
        {&wrong[2], 1, 0, &pos, POSENC_ERROR_ARGUMENT, "merge -1; each must be at least 1"},
        {&wrong[3], 1, 0, &pos, POSENC_ERROR_ARGUMENT, "segment 0 has kind 4"},
        {&wrong[4], 1, 0, &pos, POSENC_ERROR_ARGUMENT, "has 0 frames"},
        {&wrong[5], 1, 0, &pos, POSENC_ERROR_ARGUMENT,
         "has seconds=nan and rate=0; both must be numbers from 0"},
        {&wrong[6], 1, 0, &pos, POSENC_ERROR_ARGUMENT, "rate=-1"},
        {&wrong[7], 1, 0, &pos, POSENC_ERROR_RANGE, "with segment 0 there are more than 2^40 tokens"},
        {&wrong[9], 1, 0, &pos, POSENC_ERROR_ARGUMENT,
         "sound=3 and chunk=0; both must be at least 1, or both 0"},
        {&wrong[10], 1, 0, &pos, POSENC_ERROR_ARGUMENT, "sound=3 and chunk=-1"},
        {&wrong[11], 1, 0, &pos, POSENC_ERROR_RANGE, "more than 2^40 tokens"},
        {&lines12, 1, 0, &pos, POSENC_ERROR_ARGUMENT, "segment 0 is LINES; with it pos must be [tokens,4]"},
        {&square, 1, 0, &four, POSENC_ERROR_ARGUMENT, "segment 0 is an IMAGE or VIDEO"},
        {&lines, 1, 4, &four, POSENC_ERROR_ARGUMENT, "rules is 4"},
        {&wrong[8], 1, 0, &pos, POSENC_ERROR_RANGE,
         "segment 0 ends at about inf; positions must stay below 2^53"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        memset(at, 0x5a, sizeof at);
        const int64_t before = at[0][0];
        if (posenc_positions_segments(all[i].segments, all[i].count, all[i].rules, all[i].pos, NULL, &err) !=
                all[i].status ||
            !strstr(err.message, all[i].words))
            fail_msg("case %zu: %s", i, err.message);
        assert_true(at[0][0] == before);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_stands_beside_the_text_around_it),
        cmocka_unit_test(text_after_a_video_stands_behind_its_time_or_among_its_frames),
        cmocka_unit_test(fractions_of_seconds_count_or_are_cut),
        cmocka_unit_test(a_long_video_parts_the_rules_by_346_positions),
        cmocka_unit_test(a_video_with_sound_takes_turns),
        cmocka_unit_test(what_follows_stands_behind_the_last_turn),
        cmocka_unit_test(four_coordinates_are_number_column_row_and_image),
        cmocka_unit_test(random_sequences_stand_where_the_programs_put_them),
        cmocka_unit_test(random_videos_with_sound_stand_where_transformers_puts_them),
        cmocka_unit_test(packed_sequences_stand_as_each_alone),
        cmocka_unit_test(positions_are_written_by_strides),
        cmocka_unit_test(what_cannot_stand_is_refused_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
