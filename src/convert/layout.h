/* SPDX-License-Identifier: MIT */
/* layout.h: which channels of a head are a pair: 2i and 2i+1, or i and i+M. */
#ifndef PE_CONVERT_LAYOUT_H
#define PE_CONVERT_LAYOUT_H

typedef enum pe_layout { PE_LAYOUT_UNTOLD = -1, PE_LAYOUT_HALF, PE_LAYOUT_INTERLEAVED } pe_layout;

static inline const char *pe_layout_name(pe_layout layout)
{
    return layout == PE_LAYOUT_HALF ? "half" : "interleaved";
}

#endif
