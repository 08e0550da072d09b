/* SPDX-License-Identifier: MIT */
/*
 * plot.c: a figure becomes a file, or a piece of a page
 *
 * Which terminal of gnuplot an ending asks for is a table. Sizes and fonts are chosen so that a picture of
 * full width can be read on a page without zooming. "sans-serif" and "Sans" are names that every reader's
 * machine turns into a font that it has; gnuplot has no way to carry one along.
 */
#include "plot/plot.h"

#include "plot/fail.h"
#include "plot/gnuplot.h"

#include <posenc/files.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* clang-format off */
/* width and height are variables that the script sets first, in pixels. */
static const struct {
    const char *ending, *terminal;
} formats[] = {
    {".png", "if (strstrt(GPVAL_TERMINALS, ' pngcairo ')) {\n"
             "set terminal pngcairo size width,height font 'Sans,13' background 'white'\n"
             "} else {\nset terminal png size width,height font 'Sans,11' background 'white'\n}"},
    {".svg", "set terminal svg size width,height dynamic font 'sans-serif,16' background 'white'"},
    {".pdf", "set terminal pdfcairo size width/100.0,height/100.0 font 'Sans,12.5' background 'white'"},
};
/* clang-format on */

enum { FORMATS = sizeof formats / sizeof *formats };

/* The terminal for a path's ending, or NULL. */
static const char *terminal_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < FORMATS; i++)
        if (!strcasecmp(dot, formats[i].ending))
            return formats[i].terminal;
    return NULL;
}

posenc_status pe_plot_path_check(const char *path, posenc_error *err)
{
    if (terminal_of(path))
        return POSENC_OK;
    return pe_plot_fail(err, POSENC_ARGUMENT, "%.120s: a picture's name must end in .png, .svg or .pdf",
                        path);
}

static posenc_status draw(const pe_figure *figure, const char *terminal, char **output, size_t *size,
                          posenc_error *err)
{
    char  *script = NULL;
    size_t script_size;
    FILE  *to = open_memstream(&script, &script_size);
    if (to)
        pe_gnuplot_script(to, figure, terminal);
    if (!to || fclose(to)) {
        free(script);
        return pe_plot_fail(err, POSENC_MEMORY, "there is no memory for the picture \"%.80s\"",
                            figure->title ? figure->title : "");
    }
    const posenc_status status = pe_gnuplot_run(script, script_size, output, size, err);
    free(script);
    return status;
}

posenc_status pe_plot_file(const pe_figure *figure, const char *path, posenc_error *err)
{
    char             *picture;
    size_t            size;
    posenc_whole_file file;
    posenc_status     status = pe_plot_path_check(path, err);
    if (!status)
        status = draw(figure, terminal_of(path), &picture, &size, err);
    if (status)
        return status;
    status = posenc_whole_file_open(&file, path, err);
    if (!status) {
        fwrite(picture, 1, size, file.stream); /* commit notices what could not be written */
        status = posenc_whole_file_commit(&file, err);
    }
    free(picture);
    return status;
}

posenc_status pe_plot_svg(const pe_figure *figure, const char *name, char **svg, posenc_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    char              terminal[256];
    size_t            size;
    *svg = NULL;
    if (!*name || name[strspn(name, letters)] || strlen(name) > 64)
        return pe_plot_fail(err, POSENC_ARGUMENT,
                            "picture: name is \"%.70s\"; it must be 1 to 64 letters, digits or '_'", name);
    /* the script of "mouse" knows one pair of axes */
    snprintf(terminal, sizeof terminal,
             "set terminal svg size width,height dynamic %s name '%s' font 'sans-serif,16' "
             "background 'white'",
             figure->kind == PE_PANELS ? "" : "mouse standalone", name);
    return draw(figure, terminal, svg, &size, err);
}
