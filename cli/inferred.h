/* SPDX-License-Identifier: MIT */
/*
 * inferred.h: settings that the arrays of a file say
 *
 * A parameter's axis is often just a setting ("mlp_width,2"): whoever brings the array has said the number.
 * Where the user did not give that setting, it is read off the array, so that parameters of a model need not
 * be described twice. An axis that is the product of a list of two ("grid1*grid2") is read as one column of
 * as many rows.
 */
#ifndef CLI_INFERRED_H
#define CLI_INFERRED_H

#include <posenc/posenc.h>

/* The array of a parameter, or NULL. */
typedef const posenc_tensor *cli_param_finder(void *context, const char *name);

/* `given` and what the arrays add to it, as text for posenc_encoding_create beside `spec`; free() it. NULL
   without memory. e: the encoding of spec and given. */
char *cli_inferred_settings(const posenc_encoding *e, const char *spec, const char *given,
                            cli_param_finder *find, void *context);

#endif
