/* SPDX-License-Identifier: MIT */
/*
 * positions.h: positions by the rules of published models, and the buckets that they sort distances into
 *
 * A position is data of a run (posenc_positions in posenc.h). These calls fill arrays of the caller with the
 * positions that fairseq, Hugging Face, DETR and vision-language models give their tokens, and the index maps
 * by which T5, DeBERTa and Swin find a row for a distance. Nothing is allocated; positions count tokens or
 * patches from 0 unless a rule says otherwise.
 */
#ifndef POSENC_POSITIONS_H
#define POSENC_POSITIONS_H

#include <posenc/posenc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* fairseq's and RoBERTa's rule: pos = cumsum(token != padding_idx) * (token != padding_idx) + padding_idx.
   tokens, pos [B,L] I64, one tensor or apart. Errors: ARGUMENT (NULL, a padding_idx beyond 2^53), SHAPE,
   DTYPE. Source: fairseq/utils.py, make_positions. */
POSENC_API posenc_status posenc_positions_fairseq(const posenc_tensor *tokens, int64_t padding_idx,
                                                  posenc_tensor *pos, posenc_error *err);

/* Hugging Face's rule for padded batches: pos = cumsum(mask) - 1 where mask is not 0, else 1. mask [B,L] U8
   or I64, pos [B,L] I64, one tensor or apart. Errors: ARGUMENT, SHAPE, DTYPE. Source: transformers,
   prepare_inputs_for_generation.
 */
POSENC_API posenc_status posenc_positions_from_mask(const posenc_tensor *mask, posenc_tensor *pos,
                                                    posenc_error *err);

/* DETR's rule for images in a padded batch: a pixel stands at how many valid ones there are up to it, itself
   counted, in its column and in its row. valid [B,h,w] U8 or I64, not 0 where the image is (DETR's own mask
   is true on padding); pos [B,h*w,2] F64 contiguous, (y, x) of pixels row by row. normalize: y becomes y / (y
   of the column's last row + eps) * 2 pi, x likewise; a line of nothing but padding gets 0. eps > 0, DETR has
   1e-6. For sinusoidal2d with preset=detr, whose own normalize and eps are for grids without a mask.
   Errors: ARGUMENT, SHAPE, DTYPE. Source: detr, models/position_encoding.py, PositionEmbeddingSine. */
POSENC_API posenc_status posenc_positions_detr(const posenc_tensor *valid, int normalize, double eps,
                                               posenc_tensor *pos, posenc_error *err);

/* What the sequence of a vision-language model is made of (M-RoPE): each token stands at (time, row, column).
   s is the position that comes next.
     TEXT   `tokens` words, or steps of audio: s, s+1, ... in all three coordinates.
     IMAGE  rows x columns tokens, row by row, at (s, s + row, s + column); then s + max(rows, columns) is
            next.
     VIDEO  as many frames of such, one after another, at (s + time of the frame, s + row, s + column).
     LINES  an image of Hunyuan-VL (XD-RoPE), whose rows end with a token of their own: rows x (columns + 1)
            tokens.
   rows and columns count patches; a square of merge x merge patches is one token, and tokens are what is
   numbered. The time of frame f is f where rate is 0 (Qwen2-VL), else floor(f * (seconds * rate))
   (Qwen2.5-VL): `seconds` between frames (second_per_grid_t), `rate` positions per second
   (tokens_per_second). Models that write a time stamp before each frame (Qwen3-VL, GLM-4.5V) have a TEXT and
   an IMAGE per frame, and no VIDEO.
     A VIDEO with `sound` (Qwen2.5-Omni, use_audio_in_video) is heard while it is seen: `sound` steps of
   audio, one position each in all coordinates, alternate with the frames in chunks of `chunk` positions (rate
   * seconds_per_chunk), what is seen first. Its two opening marks, both at s, and its two closing ones belong
   to it; both of these follow whichever chunk comes last, of frames or of sound, whatever `rules` say. Like
   transformers, a chunk ends at the first token that is a chunk later, and the next one has a token at least,
   so of frames more than a chunk apart each chunk has one token. */
typedef enum posenc_segment_kind {
    POSENC_SEGMENT_TEXT = 0,
    POSENC_SEGMENT_IMAGE,
    POSENC_SEGMENT_VIDEO,
    POSENC_SEGMENT_LINES
} posenc_segment_kind;

typedef struct posenc_segment {
    posenc_segment_kind kind;
    int                 restart;               /* another sequence of a packed row begins: s is 0 again */
    int64_t             tokens;                /* TEXT */
    int64_t             frames, rows, columns; /* IMAGE does not read frames */
    int64_t             merge;                 /* 0 is 1; must divide rows and columns */
    double              seconds, rate;         /* VIDEO, others do not read them; at least 0 */
    int64_t             sound, chunk;          /* VIDEO; both 0, or both at least 1 */
} posenc_segment;

/* Where programs differ, joined by |. Without the first, s after a video follows its largest coordinate, time
   included (the paper, vLLM, transformers 4); with it s + max(rows, columns), so that what follows a long
   video stands among its frames (transformers 5). With the second, seconds are cut to whole ones, so that
   frames half a second apart share one time (transformers 5.16, corrected since). A model wants the rules
   that it was trained with. */
enum { POSENC_SEGMENTS_IGNORE_TIME = 1, POSENC_SEGMENTS_WHOLE_SECONDS = 2 };

/* *tokens = how many tokens the segments are. RANGE, ARGUMENT: as posenc_positions_segments. */
POSENC_API posenc_status posenc_segments_tokens(const posenc_segment *segments, int64_t count,
                                                int64_t *tokens, posenc_error *err);

/* pos [tokens,3] I64, any strides (an item of a batch is a view): time, row and column of each token, for
   rope[axes=3]. Or pos [tokens,4], for rope[axes=4], of TEXT and LINES only: number of the token, column,
   row, number of the image in its sequence; a word has its own number in all four, a model with three axes
   reads the last three. *delta (may be NULL) = 1 + the largest position, minus the tokens, of the last
   sequence: a decoded token n stands at n + delta in all coordinates (rope_delta).
   Errors: ARGUMENT (NULL, no segments, a size below 1, sizes that merge does not divide, a time that is no
   number from 0, sound without chunk, kinds that do not fit the width of pos), RANGE (more than 2^40 tokens,
   times beyond 2^53), SHAPE and DTYPE (pos).
   Source: Wang et al. 2024, arXiv:2409.12191, section 2.1; transformers and vLLM, get_rope_index of Qwen2-VL,
   Qwen2.5-VL, Qwen2.5-Omni and HunYuanVL. */
POSENC_API posenc_status posenc_positions_segments(const posenc_segment *segments, int64_t count, int rules,
                                                   posenc_tensor *pos, int64_t *delta, posenc_error *err);

/* out[i] = map(rel[i]), n of each, for the index maps "t5" and "deberta" with their settings as text, exact
   integers. t5: rel = P(j) - P(i); "num_buckets=32 max_distance=128 bidirectional=yes".
   deberta: rel = P(i) - P(j); "position_buckets=256 max_relative_positions=512 clip_first=no"; signed, before
   adding k. out may be rel. Errors: ARGUMENT (NULL, another map, out and rel overlap), SETTING.
   Source: mesh-tensorflow, _relative_position_bucket; microsoft/DeBERTa, make_log_bucket_position. */
POSENC_API posenc_status posenc_index_map(const char *map, const char *settings, const int64_t *rel,
                                          int64_t n, int64_t *out, posenc_error *err);

/* A window of rows x columns tokens, row by row (Swin). index [n,n], n = rows*columns: which of the (2 rows -
   1)(2 columns - 1) offsets lies between query i and key j. coordinates [2 rows - 1, 2 columns - 1, 2]: what
   swin_v2's network sees of each offset, y first; pretrained sizes of 0 mean the window itself.
   Errors: ARGUMENT (NULL), RANGE (sizes below 1 or above 4096; a pretrained size of 1 where the window has
   more). Source: microsoft/Swin-Transformer, relative_position_index and relative_coords_table. */
POSENC_API posenc_status posenc_window_index(int64_t rows, int64_t columns, int64_t *index,
                                             posenc_error *err);
POSENC_API posenc_status posenc_window_coordinates(int64_t rows, int64_t columns, int64_t pretrained_rows,
                                                   int64_t pretrained_columns, double *coordinates,
                                                   posenc_error *err);

#ifdef __cplusplus
}
#endif
#endif
