/* SPDX-License-Identifier: MIT */
/*
 * gnuplot.h: the process beside us that draws
 */
#ifndef PE_PLOT_GNUPLOT_H
#define PE_PLOT_GNUPLOT_H

#include "plot/plot.h"

/* Feeds `script` to gnuplot and gives what it wrote to its standard output: *output is malloc'd, with a zero
   byte behind its *size bytes. FILE if gnuplot is missing, fails or writes nothing. */
posenc_status pe_gnuplot_run(const char *script, size_t script_size, char **output, size_t *size,
                             posenc_error *err);

/* Writes the script that draws figure. `terminal` is a whole "set terminal" line, which finds the size that
   suits the figure in the variables `width` and `height` (pixels). */
void pe_gnuplot_script(FILE *to, const pe_figure *figure, const char *terminal);

#endif
