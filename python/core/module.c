/* SPDX-License-Identifier: MIT */
/*
 * module.c: the module posenc._core, its errors and its functions
 *
 * Every error of the library is a PosencError, and also the error that Python programs expect of such a fault
 * (TypeError for a storage type, NotImplementedError, MemoryError, OSError), with the library's sentence.
 */
#include "core.h"

core_state *core_state_of(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

PyObject *core_fail(core_state *state, const posenc_error *err)
{
    PyObject *type  = state->errors[err->status] ? state->errors[err->status] : PyExc_RuntimeError;
    PyObject *error = PyObject_CallFunction(type, "s", err->message);
    PyObject *word  = PyUnicode_FromString(posenc_status_string(err->status));
    if (error && word && PyObject_SetAttrString(error, "status", word) == 0)
        PyErr_SetObject(type, error);
    Py_XDECREF(word);
    Py_XDECREF(error);
    return NULL;
}

/* ---------------------------------------------------------------- errors -------------------- */

/* posenc.NAME, of PosencError and one of Python's own. */
static PyObject *error_type(PyObject *module, const char *name, const char *doc, PyObject *first,
                            PyObject *second)
{
    PyObject *bases = second ? PyTuple_Pack(2, first, second) : PyTuple_Pack(1, first);
    PyObject *type  = bases ? PyErr_NewExceptionWithDoc(name, doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    if (type && PyModule_AddObjectRef(module, name + sizeof "posenc." - 1, type) != 0)
        Py_CLEAR(type);
    return type;
}

static int add_errors(PyObject *module, core_state *state)
{
    static const struct {
        posenc_status status;
        const char   *name, *doc;
        PyObject    **base;
    } rows[] = {
        {POSENC_ERROR_DTYPE, "posenc.DtypeError", "A storage type that this call does not take.",
         &PyExc_TypeError},
        {POSENC_ERROR_UNSUPPORTED, "posenc.UnsupportedError", "Understood, but without a meaning here.",
         &PyExc_NotImplementedError},
        {POSENC_ERROR_MEMORY, "posenc.OutOfMemoryError", "The library could not allocate.",
         &PyExc_MemoryError},
        {POSENC_ERROR_FILE, "posenc.FileError", "A file cannot be opened, read or written.", &PyExc_OSError},
        {POSENC_ERROR_FORMAT, "posenc.FormatError", "A file is not what it should be.", NULL},
    };
    PyObject *base =
        error_type(module, "posenc.PosencError", "What posenc refuses; `status` says the kind in one word.",
                   PyExc_ValueError, NULL);
    if (!base)
        return -1;
    for (int i = 0; i < CORE_ERRORS; i++)
        state->errors[i] = Py_NewRef(base);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        PyObject *type =
            error_type(module, rows[i].name, rows[i].doc, base, rows[i].base ? *rows[i].base : NULL);
        Py_DECREF(state->errors[rows[i].status]);
        state->errors[rows[i].status] = type;
        if (!type)
            return -1;
    }
    state->device_error = error_type(module, "posenc.DeviceError", "A tensor that lies on another device.",
                                     base, PyExc_TypeError);
    return PyObject_SetAttrString(base, "status", PyUnicode_FromString("argument")) || !state->device_error
               ? -1
               : 0;
}

/* ---------------------------------------------------------------- functions ----------------- */

static PyObject *version(PyObject *module, PyObject *unused)
{
    return PyUnicode_FromString(posenc_version());
}

static PyObject *isa(PyObject *module, PyObject *unused)
{
    return PyUnicode_FromString(posenc_isa());
}

/* Whether .npz files are read and written, which takes libzip. */
static PyObject *has_npz(PyObject *module, PyObject *unused)
{
    return PyBool_FromLong(CORE_NPZ);
}

static PyMethodDef functions[] = {
    {"version", version, METH_NOARGS, "the library's version"},
    {"isa", isa, METH_NOARGS, "the instruction set in use"},
    {"has_npz", has_npz, METH_NOARGS, "whether this build knows .npz"},
    {"registry", core_registry, METH_NOARGS, "a dictionary for each encoding"},
    {"small_model", core_small_model, METH_VARARGS, "small_model(name, dims, mask)"},
    {"index_map", core_index_map, METH_VARARGS, "index_map(map, settings, rel, out)"},
    {"windows", core_windows, METH_VARARGS,
     "windows(rows, columns, pretrained_rows, pretrained_columns, index, coordinates)"},
    {"positions_fairseq", core_positions_fairseq, METH_VARARGS,
     "positions_fairseq(tokens, padding_idx, out)"},
    {"positions_from_mask", core_positions_from_mask, METH_VARARGS, "positions_from_mask(mask, out)"},
    {"positions_detr", core_positions_detr, METH_VARARGS, "positions_detr(valid, normalize, eps, out)"},
    {"positions_segments", core_positions_segments, METH_VARARGS, "positions_segments(segments, rules, out)"},
    {"offer", core_offer, METH_VARARGS, "offer(encoding, kind): place, axes, is a map, length, dim"},
    {"picture", core_picture, METH_VARARGS, "picture(kind, parts, shared, format, columns)"},
    {"conventions", core_conventions, METH_O, "conventions(encoding): (words, SPEC or None, shift, inverse)"},
    {"turns", core_turns, METH_VARARGS, "turns(encoding, params, D, positions, cosines, sines, rivals)"},
    {"rotation", core_rotation, METH_VARARGS, "rotation(encoding, params, tensors, positions, N, strict)"},
    {"scores_cause", core_scores_cause, METH_VARARGS, "scores_cause((before, after), expected)"},
    {"seen", core_seen, METH_VARARGS, "seen(seen, (B, Lq, Lk), causal, window, allowed)"},
    {"positions_cause", core_positions_cause, METH_VARARGS, "positions_cause(got, wanted)"},
    {"compare", core_compare, METH_VARARGS,
     "compare(text, tokens, token_bytes, name, directory, preset, asked, workers, resume, seconds, dry, "
     "tell)"},
    {NULL, NULL, 0, NULL},
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    return type && PyModule_AddType(module, type) == 0 ? type : NULL;
}

static int execute(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    state->encoding   = add_type(module, &core_encoding_spec);
    state->plan       = add_type(module, &core_plan_spec);
    state->model      = add_type(module, &core_model_spec);
    return state->encoding && state->plan && state->model ? add_errors(module, state) : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    core_state *state = PyModule_GetState(module);
    for (int i = 0; i < CORE_ERRORS; i++)
        Py_VISIT(state->errors[i]);
    Py_VISIT(state->device_error);
    Py_VISIT(state->encoding);
    Py_VISIT(state->plan);
    Py_VISIT(state->model);
    for (int i = 0; i < state->exporter_count; i++)
        Py_VISIT(state->exporters[i].type);
    return 0;
}

static int clear(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    for (int i = 0; i < CORE_ERRORS; i++)
        Py_CLEAR(state->errors[i]);
    Py_CLEAR(state->device_error);
    Py_CLEAR(state->encoding);
    Py_CLEAR(state->plan);
    Py_CLEAR(state->model);
    while (state->exporter_count > 0)
        Py_CLEAR(state->exporters[--state->exporter_count].type);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)execute}, {0, NULL}};

static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                 .m_name     = "posenc._core",
                                 .m_doc      = "The C library as Python sees it; use the package posenc.",
                                 .m_size     = sizeof(core_state),
                                 .m_methods  = functions,
                                 .m_slots    = slots,
                                 .m_traverse = traverse,
                                 .m_clear    = clear};

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&definition);
}
