/* SPDX-License-Identifier: MIT */
/* lesson.c: the tables of the tutorials. Contract: lesson.h. */
#include "cli/tutorial/lesson.h"

#include <stdio.h>
#include <string.h>

/* clang-format off */
static const unsigned char t000[] = {
#include "tutorials/000.inc"
}, t001[] = {
#include "tutorials/001.inc"
}, t002[] = {
#include "tutorials/002.inc"
}, t003[] = {
#include "tutorials/003.inc"
}, t004[] = {
#include "tutorials/004.inc"
}, stored_runs[] = {
#include "tutorials/stored.inc"
}, grid_table[] = {
#include "tutorials/grid_table.inc"
};
/* clang-format on */

static const struct {
    const unsigned char *bytes;
    size_t               size;
} tables[CLI_LESSONS] = {
    {t000, sizeof t000}, {t001, sizeof t001}, {t002, sizeof t002}, {t003, sizeof t003}, {t004, sizeof t004}};

static json_t *read_table(const unsigned char *bytes, size_t size)
{
    return json_loadb((const char *)bytes, size, JSON_REJECT_DUPLICATES, NULL);
}

int cli_lesson_open(cli_lesson *l, int index)
{
    *l = (cli_lesson){.json = read_table(tables[index].bytes, tables[index].size)};
    const int fault =
        !l->json || json_unpack_ex(l->json, NULL, JSON_STRICT, "{s:s, s:{s:s, s:s}, s:{s:s, s:s}, s:o}",
                                   "number", &l->number, "title", "en", &l->title[CLI_ENGLISH], "zh",
                                   &l->title[CLI_CHINESE], "source", "en", &l->source[CLI_ENGLISH], "zh",
                                   &l->source[CLI_CHINESE], "sections", &l->sections);
    if (fault)
        cli_lesson_free(l);
    return fault ? -1 : 0;
}

void cli_lesson_free(cli_lesson *l)
{
    json_decref(l->json);
    *l = (cli_lesson){0};
}

static const char *const tongues[CLI_TONGUES] = {"en", "zh"};

const char *cli_lesson_heading(const json_t *section, cli_tongue tongue)
{
    return json_string_value(json_object_get(section, tongues[tongue]));
}

json_t *cli_lesson_rows(const json_t *section)
{
    return json_object_get(section, "rows");
}

/* ---------------------------------------------------------------- rows ---------------------- */

static const char *fault_of(char fault[160], const json_error_t *e, const char *id)
{
    snprintf(fault, 160, "%.24s: %.120s", id ? id : "a row", e->text);
    return fault;
}

const char *cli_lesson_row(cli_row *r, json_t *from, char fault[160])
{
    json_error_t e;
    *r = (cli_row){0};
    if (json_unpack_ex(from, &e, JSON_STRICT, "{s:s, s:s, s:s, s?s, s?{s:s, s:s}, s?{s:i, s:s, s:s}, s?o}",
                       "id", &r->id, "en", &r->says[CLI_ENGLISH], "zh", &r->says[CLI_CHINESE], "formula",
                       &r->formula, "note", "en", &r->note[CLI_ENGLISH], "zh", &r->note[CLI_CHINESE],
                       "erratum", "entry", &r->erratum, "en", &r->right[CLI_ENGLISH], "zh",
                       &r->right[CLI_CHINESE], "runs", &r->runs))
        return fault_of(fault, &e, r->id);
    return NULL;
}

const char *cli_lesson_run(cli_row_run *r, json_t *from, char fault[160])
{
    json_error_t e;
    *r = (cli_row_run){0};
    if (json_unpack_ex(from, &e, JSON_STRICT, "{s:s, s?i, s?o, s?o, s?o}", "command", &r->command, "status",
                       &r->status, "show", &r->show, "numbers", &r->numbers, "measured", &r->measured))
        return fault_of(fault, &e, r->command);
    return NULL;
}

const char *cli_lesson_kind(const char *id, cli_tongue tongue)
{
    static const struct {
        char        letter;
        const char *names[CLI_TONGUES];
    } kinds[] = {{'F', {"figure", "图"}},
                 {'E', {"formula", "公式"}},
                 {'N', {"number", "数值"}},
                 {'L', {"listing", "代码"}},
                 {'C', {"claim", "说法"}}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kinds[i].letter == id[4])
            return kinds[i].names[tongue];
    return "";
}

/* ---------------------------------------------------------------- stored -------------------- */

const char *cli_lesson_stored(const char *command, cli_tongue tongue, const char **measured_on)
{
    static json_t *all; /* read once; the texts live as long as the tool */
    if (!all)
        all = read_table(stored_runs, sizeof stored_runs);
    const json_t *run = json_object_get(all, command);
    *measured_on      = cli_lesson_heading(json_object_get(run, "on"), tongue);
    return json_string_value(json_object_get(run, "output"));
}

const void *cli_lesson_file(const char *path, size_t *size)
{
    *size = sizeof grid_table;
    return strcmp(path, "docs/tutorials/grid_table.csv") ? NULL : grid_table;
}
