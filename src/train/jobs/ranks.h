/* SPDX-License-Identifier: MIT */
/*
 * ranks.h: several processes that work on one comparison, started by mpirun or srun
 *
 * Built with -DPOSENC_MPI=ON these are MPI's; otherwise there is one process, number 0, and nobody to talk
 * to. Number 0 speaks: it reads the text, prints, and writes files. All calls come from the thread that
 * called pe_ranks_begin.
 */
#ifndef PE_TRAIN_RANKS_H
#define PE_TRAIN_RANKS_H

#include <posenc/posenc.h>
#include <stddef.h>

/* Joins the others; returns this process's number. */
int pe_ranks_begin(void);
int pe_ranks_here(void);
int pe_ranks_count(void); /* 1 before pe_ranks_begin, too */
/* Waits, asleep, until all have come here. */
void pe_ranks_end(void);

/* The n bytes of number 0 become everybody's. */
void pe_ranks_share(void *data, size_t n);
/* OK if all have status OK; otherwise the status and sentence of the first who has not, for everybody. */
posenc_status pe_ranks_agree(posenc_status status, posenc_error *err);

/* One message. `to` must be receiving from time to time, as long ones wait for that. */
void pe_ranks_send(int to, int kind, const void *data, size_t n);
/* The next message, if one has arrived: 1, and *data is malloc'd with a zero byte after it; 0 if there is
   none. */
int pe_ranks_receive(int *from, int *kind, void **data, size_t *n);

#endif
