/* SPDX-License-Identifier: MIT */
/*
 * inside.h: what a case holds of the inside of an encoding
 *
 * Besides outputs some cases have what came between: the vectors of each distance, all that is added to a
 * score, positions that were counted, the tables that a window determines. Each is found through the
 * library's public calls.
 */
#ifndef CLI_INSIDE_H
#define CLI_INSIDE_H

#include "trial.h"

/* Every array of that kind that the attention case has. Returns the trial's status. */
posenc_status cli_compare_inside(cli_trial *t, const posenc_attend_in *in);

/* index_map, table swin: out_index_RxC and out_coords_RxC of each window in the file. */
posenc_status cli_compare_windows(cli_trial *t);

#endif
