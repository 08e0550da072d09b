/* SPDX-License-Identifier: MIT */
/* workspace.h: a workspace of exactly what the plan says, filled with NaN: no run may count on a clean one */
#ifndef TESTS_WORKSPACE_H
#define TESTS_WORKSPACE_H

#include <posenc/posenc.h>
#include <string.h>

static inline posenc_workspace workspace_for(const posenc_plan *plan, int runs)
{
    posenc_workspace work;
    posenc_error     err;
    if (posenc_workspace_create(&work, plan, (posenc_run)runs, NULL, &err))
        fail_msg("%s", err.message);
    memset(work.memory, 0xff, work.bytes);
    return work;
}

#endif
