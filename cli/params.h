/* SPDX-License-Identifier: MIT */
/*
 * params.h: the parameters of an encoding, from a file as far as it has them, else as they start
 *
 * All are initialised first, so that a parameter's numbers do not depend on which others the file has; then
 * those that the file has, by name or as par_<name>, take their place.
 *
 * A parameter's name may be a word for something else (`pos`, which are positions elsewhere): it is the
 * parameter then.
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

/* What a file may call a parameter, ended by NULL: its name, also behind the encoding's ("tupe.pos", as a
   combination says it), and each behind "par_", or behind "in_" as reference cases that call it an input. */
enum { CLI_PARAM_NAMES = 6, CLI_PARAM_TEXT = 160 };
typedef struct cli_param_names {
    char        text[CLI_PARAM_NAMES][CLI_PARAM_TEXT];
    const char *list[CLI_PARAM_NAMES + 1];
} cli_param_names;

void cli_param_names_of(cli_param_names *names, const posenc_encoding *e, const char *name);

/* Is `name`, as a file would have it, a parameter of e? */
int cli_is_param(const posenc_encoding *e, const char *name);

/* In `dtype`, but float64 where the file's are. Returns the inputs' status. Free in any case. */
int  cli_params_make(cli_params *p, cli_inputs *in, const posenc_encoding *e, const posenc_dims *dims,
                     posenc_dtype dtype, int64_t seed);
void cli_params_free(cli_params *p);

/* The array of a parameter in a file, as cli_inferred_settings asks for it. */
typedef struct cli_param_search {
    const cli_inputs      *in;
    const posenc_encoding *e;
} cli_param_search;

const posenc_tensor *cli_params_array(void *search, const char *name);

/* A warning for each that training would have changed and the file lacks. */
void cli_params_warn_initial(const cli_params *p, const cli_inputs *in, const posenc_encoding *e);

#endif
