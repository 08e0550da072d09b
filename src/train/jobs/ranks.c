/* SPDX-License-Identifier: MIT */
/*
 * ranks.c: several processes by MPI, or in a build without it one process
 *
 * Seven calls of MPI 3 and no more, from one thread. Errors are fatal, as is MPI's standard: a process that
 * dies takes the others with it, and what they had is in DIR.partial.
 *
 * What surprises: waiting in MPI burns a processor, which others of us train on. So nobody waits in it for
 * long: messages are looked for, and the end is a barrier that is asked about now and then.
 *
 * Source: MPI: A Message-Passing Interface Standard, version 3.1, sections 3.2, 3.8, 5.4, 5.12, 8.7.
 */
#include "train/jobs/ranks.h"

static int here, count = 1;

int pe_ranks_here(void)
{
    return here;
}

int pe_ranks_count(void)
{
    return count;
}

#ifdef POSENC_MPI

#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int pe_ranks_begin(void)
{
    int level;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &here);
    MPI_Comm_size(MPI_COMM_WORLD, &count);
    return here;
}

void pe_ranks_end(void)
{
    const struct timespec moment = {0, 20000000};
    MPI_Request           all;
    int                   done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &all);
    for (MPI_Test(&all, &done, MPI_STATUS_IGNORE); !done; MPI_Test(&all, &done, MPI_STATUS_IGNORE))
        nanosleep(&moment, NULL);
    MPI_Finalize();
}

void pe_ranks_share(void *data, size_t n)
{
    for (char *at = data; n > 0;) {
        const int piece = n < INT_MAX ? (int)n : INT_MAX;
        MPI_Bcast(at, piece, MPI_BYTE, 0, MPI_COMM_WORLD);
        at += piece;
        n -= (size_t)piece;
    }
}

posenc_status pe_ranks_agree(posenc_status status, posenc_error *err)
{
    posenc_error mine  = err ? *err : (posenc_error){.status = status};
    int          first = status ? here : count;
    MPI_Allreduce(MPI_IN_PLACE, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (first == count)
        return POSENC_OK;
    MPI_Bcast(&mine, (int)sizeof mine, MPI_BYTE, first, MPI_COMM_WORLD);
    if (err)
        *err = mine;
    return mine.status;
}

void pe_ranks_send(int to, int kind, const void *data, size_t n)
{
    MPI_Send(data, (int)n, MPI_BYTE, to, kind, MPI_COMM_WORLD);
}

int pe_ranks_receive(int *from, int *kind, void **data, size_t *n)
{
    int        arrived, size;
    MPI_Status about;
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &arrived, &about);
    if (!arrived)
        return 0;
    MPI_Get_count(&about, MPI_BYTE, &size);
    char *bytes = malloc((size_t)size + 1);
    if (!bytes)
        MPI_Abort(MPI_COMM_WORLD, 1); /* a message that cannot be received would be waited for forever */
    MPI_Recv(bytes, size, MPI_BYTE, about.MPI_SOURCE, about.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    bytes[size] = 0;
    *from       = about.MPI_SOURCE;
    *kind       = about.MPI_TAG;
    *data       = bytes;
    *n          = (size_t)size;
    return 1;
}

#else

int pe_ranks_begin(void)
{
    return 0;
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

#endif
