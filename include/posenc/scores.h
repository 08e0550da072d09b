/* SPDX-License-Identifier: MIT */
/*
 * scores.h: what scores learn, for whoever attends elsewhere
 *
 * posenc_bias (posenc.h) gives what an encoding adds to the scores; a program that uses it as the mask of an
 * attention of its own, on a GPU say, trains the encoding by the call below. The rules and the errors of runs
 * that posenc.h states hold here too.
 */
#ifndef POSENC_SCORES_H
#define POSENC_SCORES_H

#include <posenc/posenc.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The gradient of posenc_bias with the same `in`: dbias [H,Lq,Lk] is the cotangent of the bias, dparams (F32
   or F64, as in posenc_attend_grad) add. For whoever attends elsewhere, on a GPU say, with the bias as a
   mask. Always in double. What the class token of tupe adds to its own row, which a softmax does not see,
   takes none. ARGUMENT: dparams is NULL. */
POSENC_API posenc_status posenc_bias_backward(const posenc_plan *plan, const posenc_attend_in *in,
                                              const posenc_tensor *dbias, posenc_tensor *dparams,
                                              const posenc_workspace *work, posenc_error *err);

/* Running sums of a token input that is seen through its sums (fox: f; rope[content=step]: phi), for a cache
   that grows: decoding adds a row per token and head here, and posenc_attend_in.sums spares it all the
   others. token [B, Ht, n, c] is the input of the keys from, from+1, ...; sums [B, Ht, L, c] F64, any
   strides, L at least from+n, has those of the keys before, and receives those of these n. A key that padding
   hides wants a gate of 1 (f of +infinity), a step of 0. A run is given sums of all keys, [B, Ht, Lk, c]; the
   backward takes tokens alone. Errors: ARGUMENT (NULL, an index that has no sums), SHAPE, DTYPE, RANGE
   (from). */
POSENC_API posenc_status posenc_token_sums(const posenc_plan *plan, int index, const posenc_tensor *token,
                                           posenc_tensor *sums, int64_t from, posenc_error *err);

/* Decoding with path: new tokens rewrite the cached keys in place, k_j <- k_j - beta (w.k_j) w, after which a
   query of the newest token attends to them as products without positions (nope; with a gate fox, its sums
   made by posenc_token_sums of this plan). k [B,G,L,D], F32, F64, F16 or BF16, any strides, is the caller's
   cache: the tokens are those of the keys from, from+1, ..., whose own rows come as the model makes them and
   may be there already; each token rewrites all keys before its own, so L is at least from+n-1. w [B, G or 1,
   n, D] and beta [B, G or 1, n, 1] are the token inputs. A page is a cache of its own, with all its keys
   before `from`. A key that padding hides wants beta 0. The cache is altered: whoever shares the beginning of
   a sequence keeps a copy. Memory: none. Errors: ARGUMENT (NULL, a plan without path), SHAPE, DTYPE, RANGE
   (from). Source: Yang et al. 2025, arXiv:2505.16381. */
POSENC_API posenc_status posenc_path_keys(const posenc_plan *plan, posenc_tensor *k, const posenc_tensor *w,
                                          const posenc_tensor *beta, int64_t from, posenc_error *err);

#ifdef __cplusplus
}
#endif
#endif
