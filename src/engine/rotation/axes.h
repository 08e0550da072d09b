/* SPDX-License-Identifier: MIT */
/*
 * axes.h: which coordinate of a position each pair of a rotation follows
 *
 * A position may have several coordinates: time, row and column of a video. A rule deals them out over the M
 * pairs of the rotated block and says, for each pair, which number it has in which list of frequencies: pair
 * m follows coordinate axis[m] and is number index[m] of a list over pe_axes_width channels. The rules are
 * those of published models, a closed list; with one coordinate they are all the same. `matrix` deals nothing
 * out: the angle of a pair is a sum over all coordinates.
 *
 * Surprise  For text all coordinates are equal, and then every rule with one list over all pairs is plain
 *           RoPE: a wrong rule shows with pictures only.
 */
#ifndef PE_ENGINE_AXES_H
#define PE_ENGINE_AXES_H

#include <posenc/posenc.h>

enum { PE_MAX_AXES = 8 };

typedef enum pe_axis_rule {
    PE_SECTIONS,                  /* contiguous: Qwen2-VL, GLM-4V */
    PE_INTERLEAVED_SECTIONS,      /* dealt out in turn, the rest to coordinate 0: Qwen3-VL */
    PE_INTERLEAVED_SECTIONS_GGML, /* the same, the rest to coordinate 3 */
    PE_ALTERNATE_SECTIONS,        /* 1, 2, 1, 2, ..., then 0: Ernie 4.5 VL */
    PE_BALANCED,                  /* spread evenly: openPangu-VL */
    PE_AXIAL,           /* a block with a list of its own each: EVA, DINOv3, Qwen2-VL's eyes, FLUX */
    PE_HALVES,          /* the same, and half-split within each block: Gemma 4's eyes */
    PE_AXIAL_ALTERNATE, /* pairs in turn, a list each: Kimi */
    PE_ALTERNATE,       /* blocks that share one list in turn: Pixtral */
    PE_MATRIX,          /* all together: timm mixed */
    PE_AXIS_RULES
} pe_axis_rule;

typedef struct pe_axes {
    pe_axis_rule rule;
    int64_t      M;
    int          N;                     /* coordinates */
    int          given;                 /* sections, 0 where there are none */
    int64_t      sections[PE_MAX_AXES]; /* in pairs */
} pe_axes;

/* Do rule, coordinates and sections fit M pairs? `who` opens the sentence. */
posenc_status pe_axes_check(const pe_axes *x, const char *who, posenc_error *err);

/* axis, index [M]; of pe_axes that were checked. */
void pe_axes_deal(const pe_axes *x, int32_t axis[], int32_t index[]);

/* Channels of the list that pairs of a coordinate belong to. */
int64_t pe_axes_width(const pe_axes *x, int axis);

/* Pairs of coordinate n where each has a block of its own. */
int64_t pe_axes_block(const pe_axes *x, int n);

#endif
