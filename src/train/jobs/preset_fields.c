/* SPDX-License-Identifier: MIT */
/*
 * preset_fields.c: the fields of a preset by the names of their options: bounds, and a file of one's own
 *
 * A preset file is a JSON object whose members are named as the options of `posenc compare`. What it leaves
 * out is as in the preset "default". So that a misspelt word is not taken for a default, members that are not
 * in the table are refused. A program that calls the trainer asks by such an object too (pe_preset_ask),
 * which may also have what is no part of a preset.
 */
#include "train/jobs/preset.h"

#include "base/status.h"
#include "train/run/run.h"
#include "train/run/stats.h"

#include <errno.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BASE "default"

typedef enum field_kind { WHOLE, REAL, TEXT, FLAG, LONGEST, TASKS, LANGUAGE } field_kind;

/* A member of pe_preset, or of pe_compare_config; low and high bound a number. */
typedef struct field {
    const char *name;
    field_kind  kind;
    size_t      at;
    double      low, high;
} field;

#define AT(member) offsetof(pe_preset, member)

/* clang-format off */
static const field fields[] = {
    {"encodings",      TEXT,    AT(encodings),      0, 0},
    {"grid-encodings", TEXT,    AT(grid_encodings), 0, 0},
    {"seeds",          WHOLE,   AT(seeds),          1, 1000},
    {"steps",          WHOLE,   AT(steps),          1, 1e8},
    {"length",         WHOLE,   AT(L),              PE_SHORTEST_L, 65536},
    {"reach",          WHOLE,   AT(reach),          2, PE_LONGEST_REACH},
    {"width",          WHOLE,   AT(d_model),        1, 16384},
    {"layers",         WHOLE,   AT(layers),         1, 1024},
    {"heads",          WHOLE,   AT(heads),          1, 1024},
    {"batch",          WHOLE,   AT(batch),          1, 16384},
    {"learning-rate",  REAL,    AT(learning_rate),  1e-9, 1e3},
    {"warmup",         WHOLE,   AT(warmup),         0, 1e8},
    {"weight-decay",   REAL,    AT(weight_decay),   0, 1e3},
    {"clip",           REAL,    AT(clip),           0, 1e9},
    {"windows",        WHOLE,   AT(windows),        1, 1e6},
    {"tasks",          TASKS,   AT(tasks),          0, 0},
    {"task-layers",    WHOLE,   AT(task_layers),    0, 1024},
    {"task-batch",     WHOLE,   AT(task_batch),     0, 16384},
    {"sequences",      WHOLE,   AT(sequences),      0, 1e6},
    {"longest",        LONGEST, AT(longest),        0, 0},
    {"extension",      TEXT,    AT(extension),      0, 0},
    {"tune-steps",     WHOLE,   AT(tune_steps),     0, 1e8},
    {"claims",         FLAG,    AT(claims),         0, 0},
    {"rates",          TEXT,    AT(rates),          0, 0},
    {"rate-share",     REAL,    AT(rate_share),     0, 1},
    {"stability",      TEXT,    AT(stability),      0, 0},
    {"positions",      TEXT,    AT(positions),      0, 0},
};

/* What the options say beside a preset, in pe_compare_config. */
#define ASKED(member) offsetof(pe_compare_config, member)
static const field asked[] = {
    {"tasks",          TEXT,    ASKED(tasks),         0, 0},
    {"combine",        TEXT,    ASKED(combine),       0, 0},
    {"bidirectional",  FLAG,    ASKED(bidirectional), 0, 0},
    {"task-steps",     WHOLE,   ASKED(task_steps),    1, 1e8},
    {"lang",           LANGUAGE, ASKED(language),     0, 0},
};
/* clang-format on */

enum { FIELDS = sizeof fields / sizeof *fields, ASKED_FIELDS = sizeof asked / sizeof *asked };

/* ---------------------------------------------------------------- bounds -------------------- */

static double number_at(const pe_preset *p, const field *f)
{
    const char *at = (const char *)p + f->at;
    return f->kind == REAL ? *(const double *)(const void *)at : (double)*(const int64_t *)(const void *)at;
}

static posenc_status check_sizes(const pe_preset *p, posenc_error *err)
{
    if (p->L % 2)
        return pe_fail(err, POSENC_ERROR_ARGUMENT, "compare: --length is %lld; it must be even",
                       (long long)p->L);
    if (p->reach & (p->reach - 1))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "compare: --reach is %lld; it must be a power of two: 2, 4, 8 ... %d",
                       (long long)p->reach, PE_LONGEST_REACH);
    if (p->d_model % p->heads)
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "compare: --width is %lld and --heads %lld; the heads must divide the width",
                       (long long)p->d_model, (long long)p->heads);
    pe_run_places places;
    return p->positions ? pe_run_positions_read(&places, p->positions, p->L, err) : POSENC_OK;
}

posenc_status pe_preset_check(const pe_preset *p, posenc_error *err)
{
    for (const field *f = fields; f < fields + FIELDS; f++) {
        const double x = f->kind == WHOLE || f->kind == REAL ? number_at(p, f) : f->low;
        if (!(x >= f->low && x <= f->high))
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "compare: --%s is %.10g; it must be %.10g to %.10g",
                           f->name, x, f->low, f->high);
    }
    return check_sizes(p, err);
}

/* ---------------------------------------------------------------- a file -------------------- */

/* A member as it stands in the file, for a sentence. */
static posenc_status refuse(const char *path, const char *name, const json_t *value, const char *wanted,
                            posenc_error *err)
{
    char               *text   = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    const posenc_status status = pe_fail(err, POSENC_ERROR_ARGUMENT, "%.100s: %s is %.60s; it must be %s",
                                         path, name, text ? text : "?", wanted);
    free(text);
    return status;
}

static posenc_status read_longest(int *longest, const char *path, const json_t *value, posenc_error *err)
{
    for (int i = PE_TASK_L; i < PE_TASK_LENGTHS && json_is_string(value); i++)
        if (!strcmp(pe_task_length_name(i), json_string_value(value))) {
            *longest = i;
            return POSENC_OK;
        }
    return refuse(path, "longest", value, "the longest length of the tasks: \"x2\", \"x4\" or \"x8\"", err);
}

/* [{"name": "order", "steps": 300, "seeds": 1}, ...] */
static posenc_status read_tasks(pe_preset_task tasks[PE_MOST_TASKS], const char *path, const json_t *value,
                                posenc_error *err)
{
    static const char wanted[] =
        "\"none\", or a list of {\"name\": ..., \"steps\": ..., \"seeds\": ...}, of each task one";
    const size_t count = json_array_size(value);
    memset(tasks, 0, PE_MOST_TASKS * sizeof *tasks);
    if (json_is_string(value) && !strcmp(json_string_value(value), "none"))
        return POSENC_OK;
    if (!json_is_array(value) || count >= PE_MOST_TASKS)
        return refuse(path, "tasks", value, wanted, err);
    for (size_t i = 0; i < count; i++) {
        json_t     *row = json_array_get(value, i);
        const char *name;
        json_int_t  steps, seeds;
        if (json_unpack(row, "{s:s, s:I, s:I !}", "name", &name, "steps", &steps, "seeds", &seeds) ||
            !pe_task_find(name) || steps < 1 || seeds < 1)
            return refuse(path, "tasks", row, wanted, err);
        tasks[i] = (pe_preset_task){name, steps, seeds};
    }
    return POSENC_OK;
}

static posenc_status read_field(void *of, const field *f, const char *path, const json_t *value,
                                posenc_error *err)
{
    void *at = (char *)of + f->at;
    char  wanted[80];
    snprintf(wanted, sizeof wanted, "a %snumber from %.10g to %.10g", f->kind == WHOLE ? "whole " : "",
             f->low, f->high);
    switch (f->kind) {
    case TASKS: return read_tasks(at, path, value, err);
    case LONGEST: return read_longest(at, path, value, err);
    case LANGUAGE:
        if (!json_is_string(value))
            return refuse(path, f->name, value, "\"en\" or \"zh\"", err);
        return pe_preset_read_language(at, json_string_value(value), err);
    case TEXT:
        if (!json_is_string(value))
            return refuse(path, f->name, value, "a text, as the option has", err);
        *(const char **)at = json_string_value(value);
        return POSENC_OK;
    case FLAG:
        if (!json_is_boolean(value))
            return refuse(path, f->name, value, "true or false", err);
        *(int *)at = json_is_true(value);
        return POSENC_OK;
    default:
        if (!(f->kind == WHOLE ? json_is_integer(value) : json_is_number(value)) ||
            !(json_number_value(value) >= f->low && json_number_value(value) <= f->high))
            return refuse(path, f->name, value, wanted, err);
        if (f->kind == WHOLE)
            *(int64_t *)at = json_integer_value(value);
        else
            *(double *)at = json_number_value(value);
        return POSENC_OK;
    }
}

static const field *find_field(const field *list, int count, const char *name)
{
    for (const field *f = list; f < list + count; f++)
        if (!strcmp(f->name, name))
            return f;
    return NULL;
}

/* config: where what is asked for besides goes; NULL: a preset of its own, which has none of it. */
static posenc_status read_object(pe_preset *p, pe_compare_config *config, const char *path, json_t *json,
                                 posenc_error *err)
{
    const int64_t L = p->L;
    const char   *key;
    json_t       *value;
    if (json_object_get(json, "learning-rate"))
        p->rates = NULL; /* one, unless there are several */
    json_object_foreach(json, key, value)
    {
        const int    is_list = json_is_array(value); /* of tasks: a preset's, with their steps */
        const field *more    = config && !is_list ? find_field(asked, ASKED_FIELDS, key) : NULL;
        const field *f       = more ? more : find_field(fields, FIELDS, key);
        if (!f)
            return pe_fail(
                err, POSENC_ERROR_ARGUMENT,
                "%.100s: there is no field \"%.40s\"; fields are named as the options are, such as "
                "\"width\": docs/quick.json has them, all but \"rates\" and \"rate-share\"",
                path, key);
        const posenc_status status = read_field(more ? (void *)config : (void *)p, f, path, value, err);
        if (status)
            return status;
    }
    if (!json_object_get(json, "batch"))
        p->batch = pe_preset_batch(p->batch, L, p->L);
    return POSENC_OK;
}

int pe_preset_is_path(const char *name)
{
    const char *end = strrchr(name, '.');
    return strchr(name, '/') || (end && !strcmp(end, ".json"));
}

posenc_status pe_preset_read(pe_preset *preset, void **memory, const char *path, posenc_error *err)
{
    json_error_t why;
    const char  *slash = strrchr(path, '/');
    json_t      *json  = json_load_file(path, JSON_REJECT_DUPLICATES, &why);
    *preset            = *pe_preset_find(BASE);
    preset->name       = slash && slash[1] ? slash + 1 : path;
    *memory            = json; /* the texts of the preset stand there */
    if (json && json_is_object(json))
        return read_object(preset, NULL, path, json, err);
    if (json)
        return pe_fail(err, POSENC_ERROR_FORMAT,
                       "%.100s: it must hold one JSON object, {\"steps\": 500, ...}", path);
    return why.line < 1
               ? pe_fail(err, POSENC_ERROR_FILE, "%.100s: it cannot be read: %s", path, strerror(errno))
               : pe_fail(err, POSENC_ERROR_FORMAT, "%.100s: line %d: %.100s", path, why.line, why.text);
}

posenc_status pe_preset_ask(pe_compare_config *config, void **memory, const char *object, posenc_error *err)
{
    json_error_t why;
    pe_preset   *p    = &config->preset;
    json_t      *json = json_loads(object, JSON_REJECT_DUPLICATES, &why);
    *memory           = json;
    if (!json || !json_is_object(json))
        return pe_fail(err, POSENC_ERROR_FORMAT, "compare: what is asked for must be one JSON object: %.100s",
                       json ? "{\"steps\": 500, ...}" : why.text);
    if (json_object_get(json, "learning-rate") && json_object_get(json, "rates"))
        return pe_fail(err, POSENC_ERROR_ARGUMENT,
                       "compare: --learning-rate and --rates exclude each other; give one of them");
    if (json_object_get(json, "encodings")) { /* others than the preset's are not extended unasked */
        p->extension      = NULL;
        p->grid_encodings = NULL;
    }
    const posenc_status status = read_object(p, config, "compare", json, err);
    if (!config->task_steps && json_object_get(json, "steps"))
        config->task_steps = p->steps;
    if (json_object_get(json, "seeds"))
        config->task_seeds = p->seeds;
    return status;
}

void pe_preset_forget(void *memory)
{
    json_decref(memory);
}
