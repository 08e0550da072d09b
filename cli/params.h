/* SPDX-License-Identifier: MIT */
/*
 * params.h: the parameters of an encoding, from a file as far as it has them, else as they start
 *
 * All are initialised first, so that a parameter's numbers do not depend on which others the file has; then those that
 * the file has, by name or as par_<name>, take their place.
 */
#ifndef CLI_PARAMS_H
#define CLI_PARAMS_H

#include "inputs.h"

typedef struct cli_params {
    posenc_tensor *tensors;    /* posenc_param_count of them; data live as long as the inputs */
    unsigned char *is_initial; /* the file does not have it */
    int            count;
    int64_t        seed;
} cli_params;

/* In `dtype`, but float64 where the file's are. Returns the inputs' status. Free in any case. */
int  cli_params_make(cli_params *p, cli_inputs *in, const posenc_encoding *e, const posenc_dims *dims,
                     posenc_dtype dtype, int64_t seed);
void cli_params_free(cli_params *p);

/* The array of a parameter in a file, as cli_inferred_settings asks for it; `inputs` is a cli_inputs. */
const posenc_tensor *cli_params_array(void *inputs, const char *name);

/* A warning for each that training would have changed and the file lacks. */
void cli_params_warn_initial(const cli_params *p, const cli_inputs *in, const posenc_encoding *e);

#endif
