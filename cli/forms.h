/* SPDX-License-Identifier: MIT */
/* forms.h: the forms that a case of an encoding can have, by what the library is asked to do. */
#ifndef CLI_FORMS_H
#define CLI_FORMS_H

#include "trial.h"

posenc_status cli_run_rows(cli_trial *t);      /* place input: out_y */
posenc_status cli_run_words(cli_trial *t);     /* place input, of words: out_re, out_im */
posenc_status cli_run_rotation(cli_trial *t);  /* place rotary: out_q, out_k */
posenc_status cli_run_attention(cli_trial *t); /* places score and weight, and any case with in_v: out_o */

#endif
