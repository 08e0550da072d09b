/* SPDX-License-Identifier: MIT */
/* encoding.c: _core.Encoding, and what is asked of the registry */
#include "core.h"

#include <posenc/positions.h>
#include <stdlib.h>
#include <string.h>

typedef struct encoding {
    PyObject_HEAD posenc_encoding *e;
} encoding;

const posenc_encoding *core_encoding(PyObject *self)
{
    return ((encoding *)self)->e;
}

int core_dims(posenc_dims *dims, PyObject *tuple)
{
    long long n[9];
    if (!PyTuple_Check(tuple)) {
        PyErr_SetString(PyExc_TypeError, "sizes must be a tuple of nine numbers");
        return -1;
    }
    if (!PyArg_ParseTuple(tuple, "LLLLLLLLL", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7], &n[8]))
        return -1;
    *dims = (posenc_dims){n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
    return 0;
}

/* ---------------------------------------------------------------- the type ------------------ */

static PyObject *encoding_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    const char  *spec, *settings = NULL;
    posenc_error err;
    if (!PyArg_ParseTuple(args, "s|z", &spec, &settings))
        return NULL;
    encoding *self = (encoding *)PyType_GenericAlloc(type, 0);
    if (self && posenc_encoding_create(&self->e, spec, settings, &err) != POSENC_OK) {
        Py_DECREF((PyObject *)self);
        return core_fail(PyType_GetModuleState(type), &err);
    }
    return (PyObject *)self;
}

static void encoding_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    posenc_encoding_free(((encoding *)self)->e);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *encoding_spec(PyObject *self, PyObject *unused)
{
    return PyUnicode_FromString(posenc_encoding_spec(core_encoding(self)));
}

/* {"rotary": "rope", ...} */
static PyObject *encoding_parts(PyObject *self, PyObject *unused)
{
    PyObject *dict = PyDict_New();
    for (int place = 0; dict && place < POSENC_PLACE_COUNT; place++) {
        const posenc_encoding_info *info = posenc_encoding_part(core_encoding(self), (posenc_place)place);
        PyObject                   *name = info ? PyUnicode_FromString(info->name) : NULL;
        if (info && (!name || PyDict_SetItemString(dict, posenc_place_name((posenc_place)place), name) != 0))
            Py_CLEAR(dict);
        Py_XDECREF(name);
    }
    return dict;
}

static PyObject *shape_tuple(int32_t ndim, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New(ndim);
    for (int32_t a = 0; tuple && a < ndim; a++)
        PyTuple_SetItem(tuple, a, PyLong_FromLongLong(shape[a]));
    return tuple;
}

/* params(dims or None): (name, shape or None, trainable, place, letters, init, meaning) of each. */
static PyObject *encoding_params(PyObject *self, PyObject *sizes)
{
    const posenc_encoding *e = core_encoding(self);
    posenc_dims            dims;
    posenc_error           err;
    if (sizes != Py_None && core_dims(&dims, sizes) != 0)
        return NULL;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < posenc_param_count(e); i++) {
        const posenc_param_info *info = posenc_param_describe(e, i);
        int32_t                  ndim;
        int64_t                  shape[POSENC_MAX_DIMS];
        int                      place = POSENC_PLACE_SCORE; /* of the settings of every encoding */
        for (int at = 0; at < POSENC_PLACE_COUNT; at++) {    /* whose list holds it */
            const posenc_encoding_info *part = posenc_encoding_part(e, (posenc_place)at);
            if (part && info >= part->params && info < part->params + part->param_count)
                place = at;
        }
        if (sizes != Py_None && posenc_param_shape(e, &dims, i, &ndim, shape, &err) != POSENC_OK) {
            Py_DECREF(list);
            return core_fail(core_state_of(self), &err);
        }
        PyObject *row =
            Py_BuildValue("sNNssss", posenc_param_name(e, i),
                          sizes == Py_None ? Py_NewRef(Py_None) : shape_tuple(ndim, shape),
                          PyBool_FromLong(posenc_param_trainable(e, i)),
                          posenc_place_name((posenc_place)place), info->shape, info->init, info->meaning);
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* token_names(): of the inputs per token. */
static PyObject *encoding_token_names(PyObject *self, PyObject *unused)
{
    const posenc_encoding *e    = core_encoding(self);
    PyObject              *list = PyList_New(0);
    for (int i = 0; list && i < posenc_token_count(e); i++) {
        PyObject *name = PyUnicode_FromString(posenc_token_name(e, i));
        if (!name || PyList_Append(list, name) != 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

/* init(dims, arrays, seed) */
static PyObject *encoding_init(PyObject *self, PyObject *args)
{
    PyObject          *sizes, *arrays;
    unsigned long long seed;
    posenc_dims        dims;
    posenc_error       err = {POSENC_OK, ""};
    posenc_tensor      params[CORE_PARAMS];
    core_views         views = {.state = core_state_of(self)};
    const int          count = posenc_param_count(core_encoding(self));
    if (!PyArg_ParseTuple(args, "OOK", &sizes, &arrays, &seed) || core_dims(&dims, sizes) != 0)
        return NULL;
    const int failed =
        count > CORE_PARAMS || core_tensors(&views, params, count, arrays, "params", CORE_WRITE) != 0;
    if (!failed)
        posenc_param_init(core_encoding(self), &dims, params, seed, &err);
    core_release(&views);
    if (failed)
        return NULL;
    return err.status == POSENC_OK ? Py_NewRef(Py_None) : core_fail(views.state, &err);
}

static PyObject *encoding_coordinates(PyObject *self, PyObject *unused)
{
    return PyLong_FromLong(posenc_rows_coordinates(core_encoding(self)));
}

/* How many tokens a range of positions numbers in the grid of the input part. */
static PyObject *encoding_tokens(PyObject *self, PyObject *sizes)
{
    posenc_dims  dims;
    posenc_error err;
    int64_t      tokens = 0;
    if (core_dims(&dims, sizes) != 0)
        return NULL;
    if (posenc_rows_tokens(core_encoding(self), &dims, &tokens, &err) != POSENC_OK)
        return core_fail(core_state_of(self), &err);
    return PyLong_FromLongLong(tokens);
}

static PyMethodDef methods[] = {
    {"spec", encoding_spec, METH_NOARGS, "the canonical SPEC"},
    {"parts", encoding_parts, METH_NOARGS, "place -> name"},
    {"params", encoding_params, METH_O, "params(dims or None)"},
    {"token_names", encoding_token_names, METH_NOARGS, "token_names(): of the inputs per token"},
    {"init", encoding_init, METH_VARARGS, "init(dims, arrays, seed)"},
    {"coordinates", encoding_coordinates, METH_NOARGS, "numbers per position of the input part"},
    {"tokens", encoding_tokens, METH_O, "tokens(dims): of the input part's grid"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)encoding_new},
    {Py_tp_dealloc, (void *)encoding_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_encoding_spec = {"posenc._core.Encoding", sizeof(encoding), 0,
                                  Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};

/* ---------------------------------------------------------------- the registry -------------- */

static PyObject *settings_list(const posenc_setting_info *settings, int count)
{
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++) {
        const posenc_setting_info *s = &settings[i];
        PyObject *row = Py_BuildValue("sssss", s->name, s->type, s->default_value, s->range, s->meaning);
        if (!row || PyList_SetItem(list, i, row) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* A dictionary for each encoding, in the order of `posenc list`. */
PyObject *core_registry(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *e = posenc_encoding_info_at(i);

        PyObject *row =
            Py_BuildValue("{sssssssssssssNsNsNsssssssN}", "name", e->name, "title", e->title, "paper",
                          e->paper, "models", e->models, "place", posenc_place_name(e->place), "pictures",
                          e->pictures, "by_distance", PyBool_FromLong(e->by_distance), "causal_only",
                          PyBool_FromLong(e->causal_only), "by_word", PyBool_FromLong(e->by_word), "beyond",
                          e->beyond, "formula", e->formula, "scale",
                          e->place != POSENC_PLACE_SCORE ? ""
                          : e->scale                     ? e->scale
                                                         : "1/sqrt(D)",
                          "settings", settings_list(e->settings, e->setting_count));
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

/* ---------------------------------------------------------------- positions, index maps ----- */

static PyObject *done(core_views *views, int failed, const posenc_error *err)
{
    core_release(views);
    if (failed)
        return NULL;
    return err->status == POSENC_OK ? Py_NewRef(Py_None) : core_fail(views->state, err);
}

/* index_map(map, settings, rel, out): rel and out int64, contiguous, of one size. */
PyObject *core_index_map(PyObject *module, PyObject *args)
{
    const char   *map, *settings;
    PyObject     *rel, *out;
    posenc_tensor from, to;
    posenc_error  err   = {POSENC_OK, ""};
    core_views    views = {.state = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "ssOO", &map, &settings, &rel, &out))
        return NULL;
    int failed =
        core_tensor(&views, &from, rel, "rel", CORE_READ) || core_tensor(&views, &to, out, "out", CORE_WRITE);
    if (!failed &&
        (from.dtype != POSENC_DTYPE_I64 || to.dtype != POSENC_DTYPE_I64 || from.ndim != 1 || to.ndim != 1 ||
         from.shape[0] != to.shape[0] || from.stride[0] != 1 || to.stride[0] != 1)) {
        PyErr_SetString(PyExc_TypeError, "rel and out must be int64, contiguous and of one length");
        failed = 1;
    }
    if (!failed)
        posenc_index_map(map, settings, from.data, from.shape[0], to.data, &err);
    return done(&views, failed, &err);
}

static int is_contiguous(const posenc_tensor *t, posenc_dtype dtype, int64_t elements)
{
    int64_t n = 1;
    for (int32_t a = t->ndim; a-- > 0; n *= t->shape[a])
        if (t->stride[a] != n && t->shape[a] > 1)
            return 0;
    return t->dtype == dtype && n == elements;
}

/* windows(rows, columns, pretrained_rows, pretrained_columns, index, coordinates): Swin's, into int64 [n,n]
   and float64 [2 rows - 1, 2 columns - 1, 2]. */
PyObject *core_windows(PyObject *module, PyObject *args)
{
    long long     rows, columns, old_rows, old_columns;
    PyObject     *index, *coordinates;
    posenc_tensor i, c;
    posenc_error  err   = {POSENC_OK, ""};
    core_views    views = {.state = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "LLLLOO", &rows, &columns, &old_rows, &old_columns, &index, &coordinates))
        return NULL;
    int failed = core_tensor(&views, &i, index, "index", CORE_WRITE) ||
                 core_tensor(&views, &c, coordinates, "coordinates", CORE_WRITE);
    if (!failed && (rows < 1 || columns < 1 || rows > 4096 || columns > 4096 ||
                    !is_contiguous(&i, POSENC_DTYPE_I64, rows * columns * rows * columns) ||
                    !is_contiguous(&c, POSENC_DTYPE_F64, (2 * rows - 1) * (2 * columns - 1) * 2))) {
        PyErr_SetString(PyExc_ValueError, "a window has 1 to 4096 rows and columns");
        failed = 1;
    }
    if (!failed && posenc_window_index(rows, columns, i.data, &err) == POSENC_OK)
        posenc_window_coordinates(rows, columns, old_rows, old_columns, c.data, &err);
    return done(&views, failed, &err);
}

PyObject *core_positions_fairseq(PyObject *module, PyObject *args)
{
    PyObject     *tokens, *out;
    long long     padding;
    posenc_tensor from, to;
    posenc_error  err   = {POSENC_OK, ""};
    core_views    views = {.state = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "OLO", &tokens, &padding, &out))
        return NULL;
    const int failed = core_tensor(&views, &from, tokens, "tokens", CORE_READ) ||
                       core_tensor(&views, &to, out, "out", CORE_WRITE);
    if (!failed)
        posenc_positions_fairseq(&from, padding, &to, &err);
    return done(&views, failed, &err);
}

PyObject *core_positions_from_mask(PyObject *module, PyObject *args)
{
    PyObject     *mask, *out;
    posenc_tensor from, to;
    posenc_error  err   = {POSENC_OK, ""};
    core_views    views = {.state = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "OO", &mask, &out))
        return NULL;
    const int failed = core_tensor(&views, &from, mask, "mask", CORE_READ) ||
                       core_tensor(&views, &to, out, "out", CORE_WRITE);
    if (!failed)
        posenc_positions_from_mask(&from, &to, &err);
    return done(&views, failed, &err);
}

PyObject *core_positions_detr(PyObject *module, PyObject *args)
{
    PyObject     *valid, *out;
    int           normalize;
    double        eps;
    posenc_tensor from, to;
    posenc_error  err   = {POSENC_OK, ""};
    core_views    views = {.state = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "OpdO", &valid, &normalize, &eps, &out))
        return NULL;
    const int failed = core_tensor(&views, &from, valid, "valid", CORE_READ) ||
                       core_tensor(&views, &to, out, "out", CORE_WRITE);
    if (!failed)
        posenc_positions_detr(&from, normalize, eps, &to, &err);
    return done(&views, failed, &err);
}

/* A tuple (kind, restart, tokens, frames, rows, columns, merge, seconds, rate, sound, chunk). */
static int segment_of(posenc_segment *s, PyObject *tuple)
{
    int       kind;
    long long n[7];
    if (!PyTuple_Check(tuple) ||
        !PyArg_ParseTuple(tuple, "ipLLLLLddLL", &kind, &s->restart, &n[0], &n[1], &n[2], &n[3], &n[4],
                          &s->seconds, &s->rate, &n[5], &n[6])) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_TypeError, "a segment must be a tuple");
        return -1;
    }
    s->kind    = (posenc_segment_kind)kind;
    s->tokens  = n[0];
    s->frames  = n[1];
    s->rows    = n[2];
    s->columns = n[3];
    s->merge   = n[4];
    s->sound   = n[5];
    s->chunk   = n[6];
    return 0;
}

/* positions_segments(segments, rules, out or None): (tokens, delta). */
PyObject *core_positions_segments(PyObject *module, PyObject *args)
{
    PyObject     *segments, *out;
    int           rules;
    int64_t       tokens = 0, delta = 0;
    posenc_tensor to;
    posenc_error  err   = {POSENC_OK, ""};
    core_views    views = {.state = PyModule_GetState(module)};
    if (!PyArg_ParseTuple(args, "O!iO", &PyTuple_Type, &segments, &rules, &out))
        return NULL;
    const Py_ssize_t n      = PyTuple_Size(segments);
    posenc_segment  *all    = malloc((size_t)(n + 1) * sizeof *all);
    int              failed = 0;
    if (!all)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < n && !failed; i++)
        failed = segment_of(&all[i], PyTuple_GetItem(segments, i));
    failed = failed || core_tensor(&views, &to, out, "out", CORE_WRITE);
    if (!failed && posenc_segments_tokens(all, n, &tokens, &err) == POSENC_OK && to.data)
        posenc_positions_segments(all, n, rules, &to, &delta, &err);
    free(all);
    PyObject *none = done(&views, failed, &err);
    Py_XDECREF(none);
    return none ? Py_BuildValue("LL", (long long)tokens, (long long)delta) : NULL;
}

/* small_model(name, dims, mask): settings for a small model, as text. */
PyObject *core_small_model(PyObject *module, PyObject *args)
{
    const char  *name;
    PyObject    *sizes;
    int          mask;
    posenc_dims  dims;
    char         text[1024];
    posenc_error err;
    if (!PyArg_ParseTuple(args, "sOi", &name, &sizes, &mask) || core_dims(&dims, sizes) != 0)
        return NULL;
    if (posenc_small_model(name, &dims, mask, text, sizeof text, &err) != POSENC_OK)
        return core_fail(PyModule_GetState(module), &err);
    return PyUnicode_FromString(text);
}
