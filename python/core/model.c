/* SPDX-License-Identifier: MIT */
/* model.c: _core.Model, what a model's file says of its positions */
#include "core.h"

#include <posenc/files.h>
#include <string.h>

typedef struct model {
    PyObject_HEAD posenc_model *model;
} model;

/* Model(path) or Model(bytes, name) */
static PyObject *model_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject    *source;
    const char  *name = NULL;
    char        *bytes;
    Py_ssize_t   n;
    posenc_error err;
    if (!PyArg_ParseTuple(args, "O|z", &source, &name))
        return NULL;
    const int in_memory = PyBytes_Check(source);
    PyObject *path      = NULL;
    if (!in_memory && !PyUnicode_FSConverter(source, &path))
        return NULL;
    model *self = (model *)PyType_GenericAlloc(type, 0);
    if (!self || PyBytes_AsStringAndSize(in_memory ? source : path, &bytes, in_memory ? &n : NULL) != 0) {
        Py_XDECREF((PyObject *)self);
        Py_XDECREF(path);
        return NULL;
    }
    const posenc_status status = in_memory
                                     ? posenc_model_read_memory(&self->model, bytes, (size_t)n, name, &err)
                                     : posenc_model_read(&self->model, bytes, &err);
    Py_XDECREF(path);
    if (status == POSENC_OK)
        return (PyObject *)self;
    Py_DECREF((PyObject *)self);
    return core_fail(PyType_GetModuleState(type), &err);
}

static void model_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    posenc_model_free(((model *)self)->model);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *describe(PyObject *self, PyObject *unused)
{
    const posenc_model_info *i = posenc_model_describe(((model *)self)->model);
    return Py_BuildValue("{sssssssLsLsL}", "format", i->format, "model_type", i->type, "encoding",
                         i->encoding, "layers", (long long)i->layers, "max_positions",
                         (long long)i->max_positions, "original_length", (long long)i->original_length);
}

static PyObject *warnings(PyObject *self, PyObject *unused)
{
    const posenc_model *m    = ((model *)self)->model;
    PyObject           *list = PyList_New(0);
    for (int i = 0; list && i < posenc_model_describe(m)->warning_count; i++) {
        const posenc_model_warning *w   = posenc_model_warning_at(m, i);
        PyObject                   *row = Py_BuildValue("ss", w->code, w->sentence);
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---------------------------------------------------------------- groups -------------------- */

static PyObject *numbers(const double *list, int64_t n, int whole)
{
    PyObject *all = PyList_New((Py_ssize_t)n);
    for (int64_t i = 0; all && i < n; i++)
        PyList_SetItem(all, (Py_ssize_t)i, whole ? PyLong_FromDouble(list[i]) : PyFloat_FromDouble(list[i]));
    return all;
}

static PyObject *fact_value(const posenc_fact *f)
{
    switch (f->kind) {
    case POSENC_FACT_FLAG: return PyBool_FromLong(f->integer != 0);
    case POSENC_FACT_INTEGER: return PyLong_FromLongLong(f->integer);
    case POSENC_FACT_REAL: return PyFloat_FromDouble(f->real);
    case POSENC_FACT_WORD:
    case POSENC_FACT_WORDS: return PyUnicode_FromString(f->text);
    case POSENC_FACT_INTEGERS: return numbers(f->list, f->count, 1);
    case POSENC_FACT_REALS: return numbers(f->list, f->count, 0);
    case POSENC_FACT_NONE: break;
    }
    return Py_NewRef(Py_None);
}

/* name -> (value, rule) */
static PyObject *facts(const posenc_model_group *g)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < g->fact_count; i++) {
        const posenc_fact *f   = &g->facts[i];
        PyObject          *row = Py_BuildValue("Ns", fact_value(f), f->rule);
        if (!row || PyDict_SetItemString(dict, f->name, row) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(row);
    }
    return dict;
}

/* name -> (shape, float64 or float32 as bytes) */
static PyObject *array_dict(const posenc_array *arrays, int count)
{
    PyObject *dict = PyDict_New();
    for (int i = 0; dict && i < count; i++) {
        const posenc_tensor *t     = &arrays[i].tensor;
        PyObject            *shape = PyTuple_New(t->ndim);
        int64_t              n     = (int64_t)posenc_dtype_size(t->dtype);
        for (int32_t a = 0; shape && a < t->ndim; n *= t->shape[a++])
            PyTuple_SetItem(shape, a, PyLong_FromLongLong(t->shape[a]));
        PyObject *row = Py_BuildValue("Ny#", shape, (const char *)t->data, (Py_ssize_t)n);
        if (!row || PyDict_SetItemString(dict, arrays[i].name, row) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(row);
    }
    return dict;
}

static PyObject *layers(const posenc_model_group *g)
{
    PyObject *list = PyList_New((Py_ssize_t)g->layer_count);
    for (int64_t i = 0; list && i < g->layer_count; i++)
        PyList_SetItem(list, (Py_ssize_t)i, PyLong_FromLongLong(g->layers[i]));
    return list;
}

static PyObject *group(const posenc_model_group *g)
{
    const posenc_dims *d = &g->dims;
    return Py_BuildValue("{sssssssNsNsNs(LLLLLLLLL)sNsN}", "encoding", g->encoding, "spec", g->spec, "stack",
                         g->stack, "is_input", PyBool_FromLong(g->is_input), "is_all",
                         PyBool_FromLong(g->is_all), "layers", layers(g), "dims", (long long)d->B,
                         (long long)d->H, (long long)d->G, (long long)d->Lq, (long long)d->Lk,
                         (long long)d->D, (long long)d->Dv, (long long)d->d_model, (long long)d->L, "facts",
                         facts(g), "params", array_dict(g->params, g->param_count));
}

static PyObject *groups(PyObject *self, PyObject *unused)
{
    const posenc_model *m    = ((model *)self)->model;
    PyObject           *list = PyList_New(0);
    for (int i = 0; list && i < posenc_model_describe(m)->group_count; i++) {
        PyObject *row = group(posenc_model_group_at(m, i));
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *group_of(PyObject *self, PyObject *layer)
{
    const long long number = PyLong_AsLongLong(layer);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    return PyLong_FromLong(posenc_model_group_of(((model *)self)->model, number));
}

/* json(group): as `posenc inspect --json` has it; -1: of all. */
static PyObject *json(PyObject *self, PyObject *group_number)
{
    char        *text = NULL;
    posenc_error err;
    const long   number = PyLong_AsLong(group_number);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    if (posenc_model_json(&text, ((model *)self)->model, (int)number, &err) != POSENC_OK)
        return core_fail(core_state_of(self), &err);
    PyObject *word = PyUnicode_FromString(text);
    posenc_model_json_free(text);
    return word;
}

/* checkpoint(group, layer, path or None): the parameters of a group out of a checkpoint. */
static PyObject *checkpoint(PyObject *self, PyObject *args)
{
    int           number;
    long long     layer;
    PyObject     *source, *path = NULL;
    posenc_arrays found = {0};
    posenc_error  err;
    if (!PyArg_ParseTuple(args, "iLO", &number, &layer, &source) ||
        (source != Py_None && !PyUnicode_FSConverter(source, &path)))
        return NULL;
    const posenc_status status = posenc_model_params(&found, ((model *)self)->model, number, layer,
                                                     path ? PyBytes_AsString(path) : NULL, &err);
    PyObject           *dict =
        status == POSENC_OK ? array_dict(found.items, found.count) : core_fail(core_state_of(self), &err);
    posenc_arrays_free(&found);
    Py_XDECREF(path);
    return dict;
}

static PyMethodDef methods[] = {
    {"describe", describe, METH_NOARGS, "what is known of the whole"},
    {"warnings", warnings, METH_NOARGS, "(code, sentence) of each"},
    {"groups", groups, METH_NOARGS, "layers that are alike"},
    {"json", json, METH_O, "json(group): the text of `posenc inspect --json`; -1: of all"},
    {"checkpoint", checkpoint, METH_VARARGS, "checkpoint(group, layer, path or None): parameters by name"},
    {"group_of", group_of, METH_O, "group_of(layer): index of its group, or -1"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)model_new},
    {Py_tp_dealloc, (void *)model_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_model_spec = {"posenc._core.Model", sizeof(model), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
