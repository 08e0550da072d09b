/* SPDX-License-Identifier: MIT */
/*
 * record_task.c: a finished run on a task as one line of JSON, and back
 *
 * What was right is whole numbers, one per test sequence, and stands there as it is. The definition of a task
 * is not part of the identity: it changes with the version of the program, which is.
 *
 * Surprise   Before the first finite loss the lowest one is infinite, for which JSON has no number: null
 *            there.
 */
#include "train/record_task.h"

#include "train/fail.h"
#include "train/record_line.h"

#include <math.h>
#include <stdlib.h>

enum { IDENTITY_FORMAT = 1 };

static json_t *identity_json(const pe_task_config *c)
{
    const pe_descent *d = &c->descent;
    json_t           *json =
        json_pack("{s:i, s:s, s:s, s:s, s:I, s:s, s:s}", "identity", IDENTITY_FORMAT, "version",
                  posenc_version(), "task", c->task->name, "encoding", c->spec, "seed", (json_int_t)c->seed,
                  "combine", pe_combine_name(c->entry.combine), "inject", pe_inject_name(c->entry.inject));
    json_t *numbers =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:s}", "d_model",
                  (json_int_t)c->d_model, "layers", (json_int_t)c->layers, "heads", (json_int_t)c->heads,
                  "batch", (json_int_t)c->batch, "steps", (json_int_t)d->steps, "warmup",
                  (json_int_t)d->warmup, "learning_rate", d->learning_rate, "weight_decay", d->weight_decay,
                  "clip", d->clip, "sequences", (json_int_t)c->sequences, "longest",
                  pe_task_length_name(c->longest));
    json_object_update(json, numbers);
    json_decref(numbers);
    return json;
}

char *pe_task_identity(const pe_task_config *config)
{
    json_t *json = identity_json(config);
    char   *text = pe_record_text(json);
    json_decref(json);
    return text;
}

/* ---------------------------------------------------------------- writing ------------------- */

static json_t *losses(const pe_task_result *r)
{
    json_t *array = json_array();
    for (int i = 0; i < PE_TASK_LENGTHS; i++)
        json_array_append_new(array, pe_record_number(r->loss[i]));
    return array;
}

/* Per length the right answers of every test sequence; no numbers where the task is not tested. */
static json_t *right(const pe_task_config *c, const pe_task_result *r)
{
    json_t *lengths = json_array();
    for (int i = 0; i < PE_TASK_LENGTHS; i++) {
        json_t       *counts = json_array();
        const int64_t n      = i <= c->longest && pe_task_size(c->task, i) ? c->sequences : 0;
        for (int64_t s = 0; s < n; s++)
            json_array_append_new(counts, json_integer(r->right[i * c->sequences + s]));
        json_array_append_new(lengths, counts);
    }
    return lengths;
}

static json_t *record_json(const char *label, const pe_task_config *c, const pe_task_result *r)
{
    json_t *identity = identity_json(c);
    json_t *json     = json_pack("{s:s, s:o, s:s, s:s, s:I, s:b, s:o}", "format", PE_RECORD_FORMAT, "run",
                                 pe_record_run(identity), "encoding", label, "task", c->task->name, "seed",
                                 (json_int_t)c->seed, "diverged", r->diverged, "loss", losses(r));
    json_object_set_new(json, "time",
                        json_pack("{s:f, s:f, s:s}", "train_seconds", r->train_seconds, "eval_seconds",
                                  r->eval_seconds, "instructions", posenc_isa()));
    json_object_set_new(json, "parameters", json_integer(r->parameters));
    json_object_set_new(json, "encoding_parameters", json_integer(r->encoding_parameters));
    json_object_set_new(json, "lowest_loss", pe_record_number(r->lowest_loss));
    json_object_set_new(json, "last_loss", pe_record_number(r->last_loss));
    json_object_set_new(json, "config", identity);
    json_object_set_new(json, "right", right(c, r));
    return json;
}

posenc_status pe_task_record_write(char **line, const char *label, const pe_task_config *config,
                                   const pe_task_result *result, posenc_error *err)
{
    return pe_record_seal(line, record_json(label, config, result), label, err);
}

/* ---------------------------------------------------------------- reading ------------------- */

static void read_numbers(pe_task_result *r, const json_t *json)
{
    const json_t *time = json_object_get(json, "time"), *lowest = json_object_get(json, "lowest_loss"),
                 *loss     = json_object_get(json, "loss");
    r->diverged            = json_is_true(json_object_get(json, "diverged"));
    r->parameters          = json_integer_value(json_object_get(json, "parameters"));
    r->encoding_parameters = json_integer_value(json_object_get(json, "encoding_parameters"));
    r->lowest_loss         = json_is_number(lowest) ? json_number_value(lowest) : INFINITY;
    r->last_loss           = pe_record_real(json, "last_loss");
    r->train_seconds       = pe_record_real(time, "train_seconds");
    r->eval_seconds        = pe_record_real(time, "eval_seconds");
    for (size_t i = 0; i < PE_TASK_LENGTHS; i++) {
        const json_t *one = json_array_get(loss, i);
        r->loss[i]        = json_is_number(one) ? json_number_value(one) : NAN;
    }
}

/* Every tested length must have as many counts as there are sequences, none larger than what was asked. */
static int read_right(pe_task_result *r, const pe_task_config *c, const json_t *lengths)
{
    for (int i = 0; i < PE_TASK_LENGTHS; i++) {
        const json_t *counts = json_array_get(lengths, (size_t)i);
        const int64_t n      = i <= c->longest && pe_task_size(c->task, i) ? c->sequences : 0;
        if (!json_is_array(counts) || json_array_size(counts) != (size_t)n)
            return 0;
        for (int64_t s = 0; s < n; s++) {
            const json_int_t count = json_integer_value(json_array_get(counts, (size_t)s));
            if (count < 0 || count > pe_task_asked(c->task, i))
                return 0;
            r->right[i * c->sequences + s] = (uint16_t)count;
        }
    }
    return 1;
}

posenc_status pe_task_record_read(pe_task_result *result, const pe_task_config *config, const char *line,
                                  posenc_error *err)
{
    *result      = (pe_task_result){0};
    json_t *json = pe_record_open(line, err);
    if (!json)
        return POSENC_FORMAT;
    posenc_status status = POSENC_OK;
    result->right        = calloc((size_t)(PE_TASK_LENGTHS * config->sequences), sizeof *result->right);
    read_numbers(result, json);
    if (!result->right)
        status = pe_train_fail(err, POSENC_MEMORY, "no memory for the answers of a run");
    else if (!read_right(result, config, json_object_get(json, "right")))
        status = pe_record_damaged(err, "its right answers are not there");
    json_decref(json);
    return status;
}
