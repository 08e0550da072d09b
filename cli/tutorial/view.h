/* SPDX-License-Identifier: MIT */
/* view.h: where a tutorial is shown: in the terminal, or as a page. */
#ifndef CLI_TUTORIAL_VIEW_H
#define CLI_TUTORIAL_VIEW_H

#include "cli/tutorial/lesson.h"

#include <stdio.h>

/* What a verdict is shown as. */
typedef enum cli_mood { CLI_GOOD, CLI_OTHER, CLI_BAD } cli_mood;

typedef struct cli_view cli_view;
struct cli_view {
    FILE      *to;
    cli_tongue tongue;
    int        width;    /* characters of a line */
    int        colour;   /* escape sequences */
    int        pictures; /* 1: it has `picture`, and commands that draw are asked for SVG */
    void (*begin)(const cli_view *v, const cli_lesson *l);
    void (*section)(const cli_view *v, int number, const char *heading);
    int (*row)(const cli_view *v, const cli_row *row); /* 0: its formula could not be written */
    void (*command)(const cli_view *v, const char *command);
    int (*output)(const cli_view *v, const char *text); /* 0: no memory */
    void (*picture)(const cli_view *v, const char *svg, const char *title);
    void (*verdict)(const cli_view *v, cli_mood mood, const char *text);
    void (*note)(const cli_view *v, const char *text);
    void (*end_row)(const cli_view *v);
    void (*end)(const cli_view *v, const char *summary); /* NULL: of one row */
};

/* Sets the functions of one: text for a terminal; one HTML file that needs nothing else. */
void cli_screen_view(cli_view *v);
void cli_page_view(cli_view *v);

#endif
