/* SPDX-License-Identifier: MIT */
/*
 * NoPE: no positional encoding
 *
 * Place    score (nothing is added to it)
 * Formula  S[h,i,j] = scale * q_i . k_j
 * Learns   nothing
 * Source   Haviv et al. 2022, arXiv:2203.16634; Kazemnejad et al. 2023, arXiv:2305.19466
 *
 * The baseline. With a causal mask a model can still read order from how many keys each query sees; without
 * one, attention is a bag of words: permuting the tokens permutes the outputs.
 */
#include "encodings/encoding.h"

const pe_encoding pe_nope = {
    .info.name     = "nope",
    .info.place    = POSENC_PLACE_SCORE,
    .info.title    = "no positional encoding",
    .info.formula  = "S_{h,i,j} = frac{q_i · k_j}{sqrt{D}}",
    .info.paper    = "arXiv:2305.19466",
    .info.models   = "Kazemnejad's NoPE; layers without rotation in SmolLM3, Llama 4",
    .info.beyond   = "Nothing ends, but a causal model without positions gets worse beyond its length too.",
    .info.pictures = "",
    .info.by_distance = 1,
    .info.sees        = "only the content",
};
