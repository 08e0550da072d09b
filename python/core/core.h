/* SPDX-License-Identifier: MIT */
/*
 * core.h: what the files of the extension module posenc._core share
 *
 * The module is C17 in Python's limited API (3.11), so that one wheel serves every later version; it includes
 * no header of NumPy or torch. It checks types, finds the memory of arrays and calls the library, no more:
 * what is friendly (names, defaults, copies, plans kept) is in the Python files above it.
 */
#ifndef POSENC_PYTHON_CORE_H
#define POSENC_PYTHON_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <posenc/registry.h>

enum {
    CORE_EXPORTERS  = 8,  /* types of tensors known so far: torch.Tensor, torch.nn.Parameter ... */
    CORE_PARAMS     = 64, /* of one encoding */
    CORE_VIEWS      = 24 + 2 * CORE_PARAMS,
    CORE_ERRORS     = POSENC_ERROR_CANCELLED + 1,
    CORE_FREE_ABOVE = 1 << 16 /* elements of a run from which other Python threads may run meanwhile */
};

/* DLPack's view of a tensor (dmlc/dlpack, dlpack.h): its layout is fixed for all of version 1. */
typedef struct core_dltensor {
    void    *data;
    int32_t  device_type, device_id;
    int32_t  ndim;
    uint8_t  code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} core_dltensor;

typedef int core_dltensor_from(void *object, core_dltensor *out);

typedef struct core_state {
    PyObject     *errors[CORE_ERRORS]; /* by status */
    PyObject     *device_error;
    PyTypeObject *encoding, *plan, *model;
    struct {
        PyTypeObject       *type;
        core_dltensor_from *read;
    } exporters[CORE_EXPORTERS];
    int exporter_count;
} core_state;

/* The arrays of a call while it runs. */
typedef struct core_views {
    core_state *state;
    int64_t     elements; /* of all of them */
    int         count;    /* of buffers held */
    Py_buffer   buffers[CORE_VIEWS];
} core_views;

typedef enum core_access { CORE_READ = 0, CORE_WRITE } core_access;

/* All return 0, or -1 with an exception set. None gives a tensor without data. */
int  core_tensor(core_views *views, posenc_tensor *t, PyObject *array, const char *name, core_access access);
int  core_positions(core_views *views, posenc_positions *p, PyObject *from, const char *name);
int  core_tensors(core_views *views, posenc_tensor *all, int count, PyObject *tuple, const char *name,
                  core_access access);
void core_release(core_views *views);

core_state *core_state_of(PyObject *self); /* of an instance of one of the module's types */
PyObject   *core_fail(core_state *state, const posenc_error *err); /* raises what err says; NULL */
int         core_dims(posenc_dims *dims, PyObject *tuple); /* of nine numbers, in the order of posenc_dims */

const posenc_encoding *core_encoding(PyObject *self);

extern PyType_Spec core_encoding_spec, core_plan_spec, core_model_spec;

/* Functions of the module that are about encodings, positions and files. */
PyObject *core_registry(PyObject *module, PyObject *unused);
PyObject *core_small_model(PyObject *module, PyObject *args);
PyObject *core_index_map(PyObject *module, PyObject *args);
PyObject *core_windows(PyObject *module, PyObject *args);
PyObject *core_positions_fairseq(PyObject *module, PyObject *args);
PyObject *core_positions_from_mask(PyObject *module, PyObject *args);
PyObject *core_positions_detr(PyObject *module, PyObject *args);
PyObject *core_positions_segments(PyObject *module, PyObject *args);
PyObject *core_compare(PyObject *module, PyObject *args);
PyObject *core_conventions(PyObject *module, PyObject *encoding);
PyObject *core_turns(PyObject *module, PyObject *args);
PyObject *core_seen(PyObject *module, PyObject *args);
PyObject *core_rotation(PyObject *module, PyObject *args);
PyObject *core_scores_cause(PyObject *module, PyObject *args);
PyObject *core_positions_cause(PyObject *module, PyObject *args);
PyObject *core_offer(PyObject *module, PyObject *args);
PyObject *core_picture(PyObject *module, PyObject *args);

#endif
