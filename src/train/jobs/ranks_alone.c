/* SPDX-License-Identifier: MIT */
/*
 * ranks_alone.c: one process, in a build without MPI
 */
#include "train/jobs/ranks.h"

int pe_ranks_begin(void)
{
    return 0;
}

int pe_ranks_here(void)
{
    return 0;
}

int pe_ranks_count(void)
{
    return 1;
}

void pe_ranks_end(void)
{
}

void pe_ranks_share(void *data, size_t n)
{
}

posenc_status pe_ranks_agree(posenc_status status, posenc_error *err)
{
    return status;
}

void pe_ranks_send(int to, int kind, const void *data, size_t n)
{
}

int pe_ranks_receive(int *from, int *kind, void **data, size_t *n)
{
    return 0;
}
