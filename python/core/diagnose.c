/* SPDX-License-Identifier: MIT */
/* diagnose.c: what is wrong with positions of a model, as diagnose/diagnose.h finds it, for posenc.check and
 * verify */
#include "core.h"

#include "diagnose/diagnose.h"

#include <string.h>

enum { MOST_RIVALS = 8 };

/* conventions(encoding): (words, SPEC or None, shift, inverse) of each other way to understand it. */
PyObject *core_conventions(PyObject *module, PyObject *encoding)
{
    core_state     *state = PyModule_GetState(module);
    pe_conventions *list;
    posenc_error    err;
    if (!PyObject_TypeCheck(encoding, state->encoding))
        return PyErr_Format(PyExc_TypeError, "conventions takes an encoding");
    if (pe_conventions_create(&list, core_encoding(encoding), &err))
        return core_fail(state, &err);
    PyObject *all = PyList_New(0);
    for (int i = 0; all && i < list->count; i++) {
        const pe_convention *c = &list->items[i];
        PyObject *row = Py_BuildValue("sziO", c->words, c->e ? posenc_encoding_spec(c->e) : NULL, c->shift,
                                      c->inverse ? Py_True : Py_False);
        if (!row || PyList_Append(all, row) != 0)
            Py_CLEAR(all);
        Py_XDECREF(row);
    }
    pe_conventions_free(list);
    return all;
}

/* An encoding and its parameters */
typedef struct side {
    core_views    views;
    posenc_tensor params[CORE_PARAMS];
} side;

static int read_side(side *s, core_state *state, PyObject *encoding, PyObject *params)
{
    s->views = (core_views){.state = state};
    return core_tensors(&s->views, s->params, posenc_param_count(core_encoding(encoding)), params, "params",
                        CORE_READ);
}

/* ((words, encoding, params), ...); how many were read, of which the last may have failed. */
static int read_rivals(pe_rival *rivals, side *sides, core_state *state, PyObject *tuple)
{
    int       read = 0;
    PyObject *encoding, *params;
    for (; read < PyTuple_Size(tuple) && read < MOST_RIVALS && !PyErr_Occurred(); read++) {
        sides[read].views.count = 0;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, read), "sO!O", &rivals[read].words, state->encoding,
                              &encoding, &params))
            return read;
        rivals[read].e      = core_encoding(encoding);
        rivals[read].params = sides[read].params;
        read_side(&sides[read], state, encoding, params);
    }
    return read;
}

/* turns(encoding, params, D, positions, cosines, sines, rivals), the arrays float64 in one piece: (right,
   interleaved, error, allowed, row, pair, channel, got, wanted, cause). */
PyObject *core_turns(PyObject *module, PyObject *args)
{
    core_state      *state = PyModule_GetState(module);
    pe_rival         rivals[MOST_RIVALS];
    static const int doubles = (int)sizeof(double);
    side             own, sides[MOST_RIVALS];
    pe_turns         t = {.rivals = rivals};
    pe_turns_verdict v;
    Py_buffer        at = {0}, cosines = {0}, sines = {0};
    PyObject        *encoding, *params, *others, *out = NULL;
    long long        D;
    posenc_error     err;
    if (!PyArg_ParseTuple(args, "O!OLy*y*y*O!", state->encoding, &encoding, &params, &D, &at, &cosines,
                          &sines, &PyTuple_Type, &others))
        return NULL;
    t.e               = core_encoding(encoding);
    t.D               = D;
    t.rows            = (int64_t)at.len / doubles;
    t.width           = t.rows ? (int64_t)cosines.len / doubles / t.rows : 0;
    t.positions       = at.buf;
    t.cosines         = cosines.buf;
    t.sines           = sines.buf;
    t.params          = own.params;
    own.views.count   = 0;
    const int is_read = read_side(&own, state, encoding, params) == 0;
    t.rival_count     = is_read ? read_rivals(rivals, sides, state, others) : 0;
    if (is_read && !PyErr_Occurred() && (cosines.len != sines.len || t.width < 2))
        PyErr_SetString(PyExc_ValueError, "turns takes cosines and sines [rows, width]");
    if (!PyErr_Occurred() && pe_turns_judge(&v, &t, &err))
        core_fail(state, &err);
    if (!PyErr_Occurred())
        out = Py_BuildValue("iiddLLLdds", v.is_right, v.is_interleaved, v.error, v.allowed, (long long)v.row,
                            (long long)v.pair, (long long)v.channel, v.got, v.wanted, v.cause);
    core_release(&own.views);
    for (int i = 0; i < t.rival_count; i++)
        core_release(&sides[i].views);
    PyBuffer_Release(&at);
    PyBuffer_Release(&cosines);
    PyBuffer_Release(&sines);
    return out;
}

/* seen(seen, (B, Lq, Lk), causal, window, allowed or None), bytes: (right, b, i, j, how many, cause). */
PyObject *core_seen(PyObject *module, PyObject *args)
{
    Py_buffer seen = {0}, allowed = {0};
    pe_seen   s = {0};
    long long B, Lq, Lk, window;
    PyObject *out = NULL;
    if (!PyArg_ParseTuple(args, "y*(LLL)pLz*", &seen, &B, &Lq, &Lk, &s.causal, &window, &allowed))
        return NULL;
    s = (pe_seen){seen.buf, B, Lq, Lk, s.causal, window, allowed.buf};
    if (seen.len != B * Lq * Lk || Lq > Lk || (allowed.buf && allowed.len != B * Lk))
        PyErr_SetString(PyExc_ValueError, "seen takes a mask [B, Lq, Lk] and allowed [B, Lk], with Lq <= Lk");
    else {
        const pe_seen_verdict v = pe_seen_judge(&s);
        out = Py_BuildValue("iLLLLs", v.is_right, (long long)v.b, (long long)v.i, (long long)v.j,
                            (long long)v.wrong, v.cause);
    }
    PyBuffer_Release(&seen);
    PyBuffer_Release(&allowed);
    return out;
}

/* positions_cause(got, wanted), float64: in words what differs, "" if nothing does. */
PyObject *core_positions_cause(PyObject *module, PyObject *args)
{
    char      cause[PE_CAUSE];
    Py_buffer got = {0}, wanted = {0};
    if (!PyArg_ParseTuple(args, "y*y*", &got, &wanted))
        return NULL;
    if (got.len == wanted.len)
        pe_positions_judge(cause, got.buf, wanted.buf, (int64_t)got.len / (int64_t)sizeof(double));
    else
        strcpy(cause, "there are more or fewer of them");
    PyBuffer_Release(&got);
    PyBuffer_Release(&wanted);
    return PyUnicode_FromString(cause);
}
