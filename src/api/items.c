/* SPDX-License-Identifier: MIT */
/*
 * items.c: batches whose items are runs of their own, since their keys have lengths or lie in pages
 *
 * Such a batch is checked as a whole, then each item is a batch of one: views of the caller's tensors. So
 * every executor sees keys 0 .. length-1 of one item, positions along one diagonal where the item's are, and
 * no key that a length hides.
 */
#include "api/objects.h"
#include "base/positions.h"
#include "base/sizes.h"
#include "base/tensor.h"

int pe_items_apart(const posenc_attend_in *in)
{
    return in->k_lengths.data || pe_tensor_is_given(&in->k_pages);
}

int64_t pe_items_keys(const posenc_attend_in *in)
{
    const int64_t pages = pe_tensor_is_given(&in->k_pages) ? in->k_pages.shape[1] : 1;
    return in->k.ndim == 4 ? pe_sizes_product(in->k.shape[2], pages) : 0;
}

int64_t pe_items_length(const posenc_attend_in *in, int64_t b)
{
    return in->k_lengths.data ? pe_tensor_integer_at(&in->k_lengths, b * in->k_lengths.stride[0])
                              : pe_items_keys(in);
}

static int64_t page_at(const posenc_attend_in *in, int64_t b, int64_t i)
{
    return pe_tensor_integer_at(&in->k_pages, b * in->k_pages.stride[0] + i * in->k_pages.stride[1]);
}

static posenc_status check_whole(const posenc_tensor *t, const char *who, posenc_error *err)
{
    return pe_tensor_is_whole(t->dtype) ? POSENC_OK
                                        : pe_fail(err, POSENC_ERROR_DTYPE, "%s is %s; it must be I64 or I32",
                                                  who, pe_tensor_dtype_name(t->dtype));
}

posenc_status pe_items_check_pages(const posenc_attend_in *in, posenc_error *err)
{
    const int64_t shape[2] = {in->q.shape[0], -1};
    posenc_status status   = POSENC_OK;
    if (pe_tensor_is_given(&in->k_pages) &&
        !(status = pe_tensor_check(&in->k_pages, "attend: k_pages", 2, shape, err)))
        status = check_whole(&in->k_pages, "attend: k_pages", err);
    return status;
}

/* Each length, and each page that it needs. */
static posenc_status check_item(const posenc_attend_in *in, int64_t b, posenc_error *err)
{
    const int64_t all = pe_items_keys(in), length = pe_items_length(in, b), n = in->k.shape[2];
    if (length < 0 || length > all)
        return pe_fail(err, POSENC_ERROR_RANGE, "attend: k_lengths[%lld] is %lld; it must be from 0 to %lld",
                       (long long)b, (long long)length, (long long)all);
    for (int64_t i = 0; pe_tensor_is_given(&in->k_pages) && i * n < length; i++)
        if (page_at(in, b, i) < 0 || page_at(in, b, i) >= in->k.shape[0])
            return pe_fail(err, POSENC_ERROR_RANGE,
                           "attend: k_pages[%lld,%lld] is %lld; it must be from 0 to %lld, as k has pages",
                           (long long)b, (long long)i, (long long)page_at(in, b, i),
                           (long long)in->k.shape[0] - 1);
    return POSENC_OK;
}

posenc_status pe_items_check_lengths(const posenc_attend_in *in, posenc_error *err)
{
    const int64_t shape[1] = {in->q.shape[0]};
    posenc_status status   = POSENC_OK;
    if (in->k_lengths.data && !(status = pe_tensor_check(&in->k_lengths, "attend: k_lengths", 1, shape, err)))
        status = check_whole(&in->k_lengths, "attend: k_lengths", err);
    for (int64_t b = 0; !status && pe_items_apart(in) && b < in->q.shape[0]; b++)
        status = check_item(in, b, err);
    return status;
}

posenc_tensor pe_items_view(const posenc_tensor *t, int64_t b)
{
    posenc_tensor item = *t;
    if (!pe_tensor_is_given(t) || t->ndim == 0)
        return item;
    if (t->data && t->shape[0] != 1)
        item.data = (char *)t->data + pe_tensor_bytes(t->dtype, b * t->stride[0]);
    item.shape[0] = 1;
    return item;
}

/* An array of one axis is the same for all items; so is one of two where the second are coordinates. */
static posenc_positions positions_of(const posenc_positions *all, int64_t coordinates, int64_t b)
{
    posenc_positions pos = pe_positions_view(all, coordinates);
    if (pos.array.data && pos.array.ndim > 1)
        pos.array = pe_items_view(&pos.array, b);
    return pos;
}

posenc_attend_in pe_items_in(const posenc_plan *plan, const posenc_attend_in *in, int64_t b,
                             posenc_tensor tokens[])
{
    const int64_t    N    = pe_plan_coordinates(plan);
    posenc_attend_in item = *in;
    item.q                = pe_items_view(&in->q, b);
    item.q_pos            = positions_of(&in->q_pos, N, b);
    item.k_pos            = positions_of(&in->k_pos, N, b);
    item.key_allowed      = pe_items_view(&in->key_allowed, b);
    item.allowed          = pe_items_view(&in->allowed, b);
    item.q_segments       = pe_items_view(&in->q_segments, b);
    item.k_segments       = pe_items_view(&in->k_segments, b);
    item.k_pages          = pe_items_view(&in->k_pages, b);
    if (in->k_lengths.data) {
        item.k_lengths.data =
            (char *)in->k_lengths.data + pe_tensor_bytes(in->k_lengths.dtype, b * in->k_lengths.stride[0]);
        item.k_lengths.shape[0] = 1;
    }
    for (int i = 0; in->tokens && i < plan->e->token_count; i++)
        tokens[i] = pe_items_view(&in->tokens[i], b);
    item.tokens = in->tokens ? tokens : NULL;
    for (int i = 0; in->sums && i < plan->e->token_count; i++)
        tokens[PE_MAX_TOKENS + i] = pe_items_view(&in->sums[i], b);
    item.sums = in->sums ? tokens + PE_MAX_TOKENS : NULL;
    if (!pe_tensor_is_given(&in->k_pages)) {
        item.k = pe_items_view(&in->k, b);
        item.v = pe_items_view(&in->v, b);
    }
    return item;
}

void pe_items_clear(const posenc_tensor *t, int64_t from)
{
    for (int64_t b = 0; t->data && !pe_tensor_is_empty(t) && b < t->shape[0]; b++)
        for (int64_t h = 0; h < t->shape[1]; h++)
            for (int64_t s = from; s < t->shape[2]; s++)
                memset(pe_tensor_row(t, b, h, s), 0, (size_t)pe_tensor_bytes(t->dtype, t->shape[3]));
}
