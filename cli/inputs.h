/* SPDX-License-Identifier: MIT */
/*
 * inputs.h: the named tensors that a command works on
 *
 * People name an array as they say it (q) or as the reference cases do (in_q, par_table): a command
 * asks for all spellings at once, and two of them in one file are refused, because one would be
 * ignored in silence. What nobody asked for is named in a warning: a misspelt name is the likeliest
 * fault of an input file.
 *
 * The status is sticky, as in trial.h: the first thing wrong is printed, and after it the helpers
 * return tensors without data, so that a command may ask for all it needs and look once.
 */
#ifndef CLI_INPUTS_H
#define CLI_INPUTS_H

#include "cli.h"

#include <posenc/files.h>

typedef struct cli_inputs {
    const char    *path;
    posenc_arrays  file;
    unsigned char *used; /* per array of the file: was it asked for */
    posenc_arrays  made; /* everything allocated on the way */
    int            status;
} cli_inputs;

/* Prints one sentence that begins with the file's name, unless one was printed before. Returns the status. */
int cli_inputs_fail(cli_inputs *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Both return the status. Free in either case. */
int  cli_inputs_read(cli_inputs *in, const char *path);
void cli_inputs_free(cli_inputs *in);

/* The array that has one of these NULL-terminated names; no data if none has. `need` fails there. An array of
   complex numbers is for those who ask for it by cli_inputs_array (NULL if none has the name); the others
   refuse it. */
posenc_tensor       cli_inputs_find(cli_inputs *in, const char *const *names);
posenc_tensor       cli_inputs_need(cli_inputs *in, const char *const *names);
const posenc_array *cli_inputs_array(cli_inputs *in, const char *const *names);

/* Zeroed tensors that live as long as the inputs. `convert` reads every type and writes F64, F32, I64 and U8
   (a mask: 0 or 1); without data it gives none. */
posenc_tensor cli_inputs_make(cli_inputs *in, posenc_dtype dtype, int32_t ndim, const int64_t *shape);
posenc_tensor cli_inputs_convert(cli_inputs *in, posenc_dtype dtype, const posenc_tensor *from);
/* The positions under one of these names: whole numbers stay whole (I64), real ones become F64. */
posenc_tensor cli_inputs_positions(cli_inputs *in, const char *const *names);
/* A block aligned for workspaces. */
void *cli_inputs_block(cli_inputs *in, size_t bytes);

/* Warns of arrays that nobody asked for, but for results (out_*, g_*) and what has a prefix given here. */
void cli_inputs_warn_unused(const cli_inputs *in, const char *passed_over);

/* The same numbers with leading axes of length 1 added or taken until there are ndim, as NumPy broadcasts. */
posenc_tensor cli_with_axes(posenc_tensor t, int32_t ndim);
/* "[2,3,7,8]" */
enum { CLI_SHAPE_TEXT = 160 };
const char *cli_shape_text(char to[CLI_SHAPE_TEXT], int32_t ndim, const int64_t *shape);
int         cli_is_float(posenc_dtype dtype);

#endif
