/* SPDX-License-Identifier: MIT */
/*
 * arrays.c: the memory of a Python array as a posenc_tensor
 *
 * Two ways lead to it. Tensors whose type has `__dlpack_c_exchange_api__` (torch) are asked by one C call
 * without any Python object; the type's function is looked up once. Everything else is asked for its buffer
 * (NumPy). uint16 is bfloat16's storage, for which the buffer protocol has no letter: the Python files see to
 * it that no other uint16 comes here.
 */
#include "core.h"

#include <string.h>

/* ---------------------------------------------------------------- DLPack -------------------- */

enum { DL_CPU = 1, DL_CUDA = 2, DL_CUDA_HOST = 3, DL_ROCM = 10, DL_ROCM_HOST = 11 };

/* The start of DLPackExchangeAPI, version 1. */
typedef struct exchange {
    uint32_t major, minor;
    void    *previous;
    int (*allocate)(void *, void *, void *, void *);
    int (*managed_from)(void *, void *);
    int (*managed_to)(void *, void *);
    core_dltensor_from *tensor_from;
} exchange;

static core_dltensor_from *ask_type(core_state *state, PyTypeObject *type)
{
    core_dltensor_from *read    = NULL;
    PyObject           *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
        const exchange *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
        read                = api->major == 1 ? api->tensor_from : NULL;
    }
    PyErr_Clear();
    Py_XDECREF(capsule);
    if (state->exporter_count < CORE_EXPORTERS) {
        state->exporters[state->exporter_count].type   = (PyTypeObject *)Py_NewRef((PyObject *)type);
        state->exporters[state->exporter_count++].read = read;
    }
    return read;
}

/* The function that reads tensors of this type, or NULL: then it is asked for its buffer. */
static core_dltensor_from *exporter(core_state *state, PyTypeObject *type)
{
    for (int i = 0; i < state->exporter_count; i++)
        if (state->exporters[i].type == type)
            return state->exporters[i].read;
    return ask_type(state, type);
}

static const struct {
    uint8_t      code, bits;
    posenc_dtype dtype;
} dl_types[] = {{2, 32, POSENC_DTYPE_F32},  {2, 64, POSENC_DTYPE_F64}, {2, 16, POSENC_DTYPE_F16},
                {4, 16, POSENC_DTYPE_BF16}, {0, 64, POSENC_DTYPE_I64}, {0, 32, POSENC_DTYPE_I32},
                {1, 8, POSENC_DTYPE_U8},    {6, 8, POSENC_DTYPE_U8},   {10, 8, POSENC_DTYPE_F8_E4M3}};

static int refuse_type(core_state *state, const char *name, const char *type)
{
    PyErr_Format(state->errors[POSENC_ERROR_DTYPE],
                 "%s has the type %s; it may be float32, float64, float16 or bfloat16, positions and ids "
                 "int64 or int32, masks bool or uint8",
                 name, type);
    return -1;
}

static int too_many_axes(core_state *state, const char *name, int ndim)
{
    PyErr_Format(state->errors[POSENC_ERROR_SHAPE], "%s has %d axes; the most is %d", name, ndim,
                 POSENC_MAX_DIMS);
    return -1;
}

static int from_dlpack(core_views *views, posenc_tensor *t, PyObject *array, const char *name,
                       core_dltensor_from *read)
{
    core_state   *state = views->state;
    core_dltensor dl;
    if (read(array, &dl) != 0)
        return -1;
    if (dl.device_type != DL_CPU && dl.device_type != DL_CUDA_HOST && dl.device_type != DL_ROCM_HOST) {
        PyErr_Format(state->device_error, "%s lies on %s:%d; posenc computes on the CPU: call .cpu()", name,
                     dl.device_type == DL_CUDA || dl.device_type == DL_ROCM ? "cuda" : "device",
                     (int)dl.device_id);
        return -1;
    }
    if (dl.ndim > POSENC_MAX_DIMS)
        return too_many_axes(state, name, dl.ndim);
    size_t row = 0;
    while (row < sizeof dl_types / sizeof *dl_types &&
           (dl_types[row].code != dl.code || dl_types[row].bits != dl.bits))
        row++;
    if (row == sizeof dl_types / sizeof *dl_types || dl.lanes != 1)
        return refuse_type(state, name, "of another kind");
    *t = posenc_tensor_contiguous((char *)dl.data + dl.byte_offset, dl_types[row].dtype, dl.ndim, dl.shape);
    int64_t elements = 1;
    for (int32_t a = 0; a < dl.ndim; a++) {
        elements *= dl.shape[a];
        if (dl.strides)
            t->stride[a] = dl.strides[a];
    }
    views->elements += elements;
    return 0;
}

/* ---------------------------------------------------------------- buffers ------------------- */

static int dtype_of(const Py_buffer *b, posenc_dtype *dtype)
{
    static const struct {
        char         letter;
        posenc_dtype dtype;
    } types[]          = {{'f', POSENC_DTYPE_F32},  {'d', POSENC_DTYPE_F64}, {'e', POSENC_DTYPE_F16},
                          {'H', POSENC_DTYPE_BF16}, {'l', POSENC_DTYPE_I64}, {'q', POSENC_DTYPE_I64},
                          {'i', POSENC_DTYPE_I32},  {'B', POSENC_DTYPE_U8},  {'?', POSENC_DTYPE_U8}};
    const char *format = b->format ? b->format : "B";
    format += *format == '@' || *format == '=' || *format == '<';
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (format[0] == types[i].letter && !format[1] &&
            b->itemsize == (Py_ssize_t)posenc_dtype_size(types[i].dtype)) {
            *dtype = types[i].dtype;
            return 0;
        }
    return -1;
}

static int from_buffer(core_views *views, posenc_tensor *t, PyObject *array, const char *name,
                       core_access access)
{
    core_state *state = views->state;
    Py_buffer  *b     = &views->buffers[views->count];
    if (PyObject_GetBuffer(array, b, access == CORE_WRITE ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0) {
        if (PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError))
            PyErr_Format(state->errors[POSENC_ERROR_ARGUMENT], "%s gives no %smemory; pass %s", name,
                         access == CORE_WRITE ? "writable " : "",
                         access == CORE_WRITE ? "an array that may be written to" : "a NumPy array");
        else
            PyErr_Format(state->errors[POSENC_ERROR_DTYPE],
                         "%s is no array of numbers; pass a NumPy array or a tensor", name);
        return -1;
    }
    views->count++; /* from here core_release gives it back */
    posenc_dtype dtype = POSENC_DTYPE_F32;
    if (b->ndim > POSENC_MAX_DIMS)
        return too_many_axes(state, name, b->ndim);
    if (dtype_of(b, &dtype) != 0)
        return refuse_type(state, name, b->format ? b->format : "bytes");
    int64_t shape[POSENC_MAX_DIMS];
    for (int a = 0; a < b->ndim; a++)
        shape[a] = b->shape[a];
    *t = posenc_tensor_contiguous(b->buf, dtype, b->ndim, shape);
    for (int a = 0; a < b->ndim; a++) {
        if (b->strides[a] % b->itemsize != 0) {
            PyErr_Format(state->errors[POSENC_ERROR_SHAPE],
                         "%s has elements that are not a whole number of elements apart; copy it", name);
            return -1;
        }
        t->stride[a] = b->strides[a] / b->itemsize;
    }
    if ((uintptr_t)b->buf % (size_t)b->itemsize != 0) {
        PyErr_Format(state->errors[POSENC_ERROR_ARGUMENT], "%s is not aligned to its elements; copy it",
                     name);
        return -1;
    }
    views->elements += b->len / b->itemsize;
    return 0;
}

int core_tensor(core_views *views, posenc_tensor *t, PyObject *array, const char *name, core_access access)
{
    if (array == Py_None) {
        memset(t, 0, sizeof *t);
        return 0;
    }
    core_dltensor_from *read = exporter(views->state, Py_TYPE(array));
    return read ? from_dlpack(views, t, array, name, read) : from_buffer(views, t, array, name, access);
}

/* A number n: n, n+1, ...; a pair (start, step); an array; None: 0, 1, ... */
int core_positions(core_views *views, posenc_positions *p, PyObject *from, const char *name)
{
    double start = 0, step = 1;
    if (from != Py_None && !PyLong_Check(from) && !PyFloat_Check(from) && !PyTuple_Check(from)) {
        *p = posenc_positions_range(0, 1);
        return core_tensor(views, &p->array, from, name, CORE_READ);
    }
    if (PyTuple_Check(from)) {
        if (!PyArg_ParseTuple(from, "dd;positions are a number, a pair (start, step) or an array", &start,
                              &step))
            return -1;
    } else if (from != Py_None) {
        start = PyFloat_AsDouble(from);
        if (start == -1 && PyErr_Occurred())
            return -1;
    }
    *p = posenc_positions_range(start, step);
    return 0;
}

/* A tuple, which nobody can change while the call runs. */
int core_tensors(core_views *views, posenc_tensor *all, int count, PyObject *tuple, const char *name,
                 core_access access)
{
    if (!PyTuple_Check(tuple) || PyTuple_Size(tuple) != count) {
        PyErr_Format(PyExc_TypeError, "%s must be a tuple of %d arrays", name, count);
        return -1;
    }
    for (int i = 0; i < count; i++)
        if (core_tensor(views, &all[i], PyTuple_GetItem(tuple, i), name, access) != 0)
            return -1;
    return 0;
}

void core_release(core_views *views)
{
    while (views->count > 0)
        PyBuffer_Release(&views->buffers[--views->count]);
}
