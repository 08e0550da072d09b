/* SPDX-License-Identifier: MIT */
/*
 * compare.c: _core.compare, the engine of `posenc compare` in this process
 *
 * The trainer's workers are threads of its own that never touch Python; the calling thread watches them and
 * is the only one that calls back. While it waits other Python threads run: they are held up only for the
 * calls of `tell`. Ctrl-C is looked for ten times a second, and stops the comparison as it stops the command:
 * what is finished counts.
 */
#include "core.h"

#include "train/compare.h"

#include <stdlib.h>

typedef struct watching {
    PyObject *tell; /* called with (runs, finished, fraction, seconds, remaining, row or None), or None */
    PyThreadState *thread;
    int            failed;   /* an exception is set: what tell raised */
    int            was_told; /* Ctrl-C */
} watching;

static PyObject *number(double x)
{
    return PyFloat_FromDouble(x);
}

/* An exception is set: Ctrl-C, or what ends the comparison. */
static void note_exception(watching *w)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
        w->was_told = 1;
        PyErr_Clear();
    } else
        w->failed = 1;
}

/* Steals row. */
static void tell(watching *w, const pe_compare_state *s, PyObject *row)
{
    if (w->failed) {
        Py_XDECREF(row);
        return;
    }
    PyObject *said = row ? PyObject_CallFunction(w->tell, "iiNNNO", s->runs, s->finished, number(s->fraction),
                                                 number(s->seconds), number(s->remaining), row)
                         : NULL;
    if (!said)
        note_exception(w);
    Py_XDECREF(said);
    Py_XDECREF(row);
}

static void show_progress(void *self, const pe_compare_state *state)
{
    watching *w = self;
    PyEval_RestoreThread(w->thread);
    tell(w, state, Py_NewRef(Py_None));
    w->thread = PyEval_SaveThread();
}

static void show_finished(void *self, const pe_compare_run *run, const pe_compare_state *state)
{
    watching *w = self;
    PyEval_RestoreThread(w->thread);
    tell(w, state,
         Py_BuildValue("{szszsLsNsNsNsNsNsO}", "encoding", run->label, "task", run->task, "seed",
                       (long long)run->seed, "accuracy_at_L", number(run->accuracy_at_L), "accuracy_at_2L",
                       number(run->accuracy_at_2L), "loss_at_L", number(run->loss_at_L), "loss_beyond",
                       number(run->loss_beyond), "seconds", number(run->seconds), "diverged",
                       run->diverged ? Py_True : Py_False));
    w->thread = PyEval_SaveThread();
}

/* Ctrl-C, or something that tell has raised. */
static int is_interrupted(void *self)
{
    watching *w = self;
    if (w->failed || w->was_told)
        return 1;
    PyEval_RestoreThread(w->thread);
    if (PyErr_CheckSignals() != 0)
        note_exception(w);
    w->thread = PyEval_SaveThread();
    return w->was_told || w->failed;
}

/* ---------------------------------------------------------------- what came out ------------- */

/* Steals value. */
static int put(PyObject *dict, const char *name, PyObject *value)
{
    const int status = value ? PyDict_SetItemString(dict, name, value) : -1;
    Py_XDECREF(value);
    return status;
}

/* (heads, rows of texts, notes) */
static PyObject *table_of(const pe_table *t)
{
    PyObject *heads = PyTuple_New(t->column_count), *rows = PyTuple_New(t->row_count);
    for (int c = 0; heads && c < t->column_count; c++)
        PyTuple_SetItem(heads, c, PyUnicode_FromString(t->columns[c].head));
    for (int r = 0; rows && r < t->row_count; r++) {
        PyObject *row = PyTuple_New(t->column_count);
        for (int c = 0; row && c < t->column_count; c++) {
            const char *text = pe_table_cell(t, r, c);
            PyTuple_SetItem(row, c, PyUnicode_FromString(text ? text : ""));
        }
        PyTuple_SetItem(rows, r, row);
    }
    return Py_BuildValue("NNs", heads, rows, t->notes ? t->notes : "");
}

static posenc_status checks_of(const pe_compare *c, pe_table *t, posenc_error *err)
{
    return pe_summary_checks(c, t, 0, err);
}

static int put_tables(PyObject *out, core_state *state, const pe_compare *c)
{
    static const struct {
        const char *name;
        posenc_status (*make)(const pe_compare *c, pe_table *t, posenc_error *err);
    } rows[] = {{"losses", pe_summary_table},
                {"tasks", pe_report_tasks_table},
                {"extension", pe_report_extension_table},
                {"costs", pe_answer_costs},
                {"checks", checks_of},
                {"answer", pe_answer_table}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        pe_table     made;
        posenc_error err;
        if (rows[i].make(c, &made, &err)) {
            core_fail(state, &err);
            return -1;
        }
        const int status = made.row_count ? put(out, rows[i].name, table_of(&made)) : 0;
        pe_table_free(&made);
        if (status != 0)
            return -1;
    }
    return 0;
}

/* {json, tables, words, interrupted} */
static PyObject *results_of(core_state *state, const pe_compare *c, int interrupted)
{
    char                  *json;
    posenc_error           err;
    const pe_compare_words says = pe_compare_says(c);
    if (pe_results_json(c, &json, &err))
        return core_fail(state, &err);
    PyObject *out = Py_BuildValue("{sssiszszszszsisi}", "json", json, "interrupted", interrupted, "warning",
                                  says.warning, "advice", says.advice, "rates", says.rates, "orders",
                                  says.orders, "runs", says.runs, "missing", says.missing);
    PyObject *tables = PyDict_New();
    free(json);
    if (!out || !tables || put_tables(tables, state, c) != 0 ||
        PyDict_SetItemString(out, "tables", tables) != 0)
        Py_CLEAR(out);
    Py_XDECREF(tables);
    return out;
}

/* ---------------------------------------------------------------- all ----------------------- */

/* A call: its configuration and what that points to. */
typedef struct request {
    pe_compare_config config;
    void             *preset, *asked;
} request;

static posenc_status read_request(request *r, const char *preset, const char *object, posenc_error *err)
{
    const pe_preset    *found = pe_preset_find(preset);
    const posenc_status status =
        found ? POSENC_OK : pe_preset_read(&r->config.preset, &r->preset, preset, err);
    if (found)
        r->config.preset = *found;
    return status ? status : pe_preset_ask(&r->config, &r->asked, object, err);
}

static PyObject *estimate(core_state *state, pe_compare *c)
{
    pe_compare_cost     cost;
    posenc_error        err;
    char               *json;
    PyThreadState      *thread = PyEval_SaveThread();
    const posenc_status status = pe_compare_estimate(c, &cost, &err);
    PyEval_RestoreThread(thread);
    if (status || pe_results_plan_json(c, &cost, &json, &err))
        return core_fail(state, &err);
    PyObject *text = PyUnicode_FromString(json);
    free(json);
    return text;
}

static PyObject *train(core_state *state, pe_compare *c, const request *r, PyObject *call)
{
    posenc_error           err;
    int                    interrupted;
    watching               w     = {.tell = call};
    const pe_compare_watch watch = {&w, is_interrupted, call == Py_None ? NULL : show_progress,
                                    call == Py_None ? NULL : show_finished};
    w.thread                     = PyEval_SaveThread();
    posenc_status status         = pe_compare_train(c, &watch, &interrupted, &err);
    const int     is_empty       = !status && pe_compare_says(c).finished == 0;
    if (!status && !is_empty && !w.failed && r->config.directory)
        status = pe_results_write(c, &err);
    PyEval_RestoreThread(w.thread);
    if (w.failed)
        return NULL;
    if (status)
        return core_fail(state, &err);
    if (interrupted && is_empty) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        return NULL;
    }
    return results_of(state, c, interrupted);
}

/* compare(text, tokens, token_bytes, name, directory, preset, asked, workers, resume, seconds, dry, tell):
   text: bytes; or tokens: uint16 as bytes; token_bytes: int32 as bytes, or None. */
PyObject *core_compare(PyObject *module, PyObject *args)
{
    core_state  *state = PyModule_GetState(module);
    request      r     = {0};
    Py_buffer    text = {0}, tokens = {0}, sizes = {0};
    const char  *preset, *object;
    long long    workers;
    int          dry;
    PyObject    *call, *out = NULL;
    posenc_error err;
    pe_compare  *c = NULL;
    if (!PyArg_ParseTuple(args, "z*z*z*szssLidpO", &text, &tokens, &sizes, &r.config.text_name,
                          &r.config.directory, &preset, &object, &workers, &r.config.resume,
                          &r.config.checkpoint_seconds, &dry, &call))
        return NULL;
    r.config.text        = text.buf;
    r.config.tokens      = tokens.buf;
    r.config.text_size   = tokens.buf ? (int64_t)tokens.len / 2 : (int64_t)text.len;
    r.config.token_bytes = sizes.buf;
    r.config.token_kinds = (int64_t)sizes.len / 4;
    r.config.workers     = workers;
    if (read_request(&r, preset, object, &err) || pe_compare_create(&c, &r.config, &err))
        core_fail(state, &err);
    else
        out = dry ? estimate(state, c) : train(state, c, &r, call);
    pe_compare_free(c);
    pe_preset_forget(r.asked);
    pe_preset_forget(r.preset);
    PyBuffer_Release(&text);
    PyBuffer_Release(&tokens);
    PyBuffer_Release(&sizes);
    return out;
}
