/* SPDX-License-Identifier: MIT */
/* diagnose.c: what is wrong with positions of a model, as diagnose/diagnose.h finds it, for posenc.check and
 * verify */
#include "core.h"

#include "diagnose/diagnose.h"

#include <stdlib.h>
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

static PyObject *departures(unsigned set)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < PE_DEPARTURES; i++) {
        PyObject *name = set >> i & 1 ? PyUnicode_FromString(pe_departures[i]) : NULL;
        if (name && PyList_Append(list, name) != 0)
            Py_CLEAR(list);
        Py_XDECREF(name);
    }
    return list;
}

static const char *const verdicts[] = {"same", "different", "unexplained", "found"};

static PyObject *words_list(const char (*words)[PE_WORDS], int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        PyObject *row = PyUnicode_FromString(words[i]);
        if (!row || PyList_Append(list, row) != 0)
            Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *reading(const pe_reading *r)
{
    if (!r->spec[0])
        Py_RETURN_NONE;
    return Py_BuildValue("{s:N,s:s,s:s,s:d,s:d,s:s,s:d,s:d,s:s}", "departs", departures(r->departs), "spec",
                         r->spec, "words", r->words, "step", r->step, "offset", r->offset, "positions",
                         r->positions, "magnitude", r->magnitude, "residual", r->mismatch, "angles",
                         r->angles);
}

static PyObject *diagnosis(const pe_diagnosis *d)
{
    PyObject *others = PyList_New(0), *advice = words_list(d->advice.words, d->advice.count);
    for (int i = 0; others && i < d->alternative_count; i++) {
        PyObject *row = reading(&d->alternatives[i]);
        if (!row || PyList_Append(others, row) != 0)
            Py_CLEAR(others);
        Py_XDECREF(row);
    }
    return Py_BuildValue("{s:s,s:N,s:N,s:N,s:N,s:d,s:d,s:z,s:N}", "verdict", verdicts[d->verdict], "departs",
                         departures(d->departs), "found", reading(&d->found), "expected",
                         reading(&d->expected), "alternatives", others, "residual", d->residual, "difference",
                         d->difference, "side", d->side, "advice", advice);
}

/* rotation(encoding or None, params, (before, after, ...), (positions, ...), N, strict): q, k or both,
   tensors [B,H,L,D], positions float64 [B*L,N] in one piece: what pe_rotation_judge finds, as a dictionary.
 */
PyObject *core_rotation(PyObject *module, PyObject *args)
{
    core_state   *state = PyModule_GetState(module);
    pe_rotation   in    = {0};
    pe_diagnosis  d;
    side          own;
    posenc_tensor tensors[4] = {{0}};
    core_views    views      = {.state = state};
    Py_buffer     at[2]      = {{0}};
    PyObject     *encoding, *params, *all, *places, *out = NULL;
    posenc_error  err;
    if (!PyArg_ParseTuple(args, "OO!O!O!ip", &encoding, &PyTuple_Type, &params, &PyTuple_Type, &all,
                          &PyTuple_Type, &places, &in.coordinates, &in.is_strict))
        return NULL;
    own.views.count = 0;
    in.count        = (int)PyTuple_Size(places);
    if (in.count < 1 || in.count > 2 || PyTuple_Size(all) != 2 * in.count)
        return PyErr_Format(PyExc_ValueError, "rotation takes two tensors and positions for q, k or both");
    if (encoding != Py_None && !read_side(&own, state, encoding, params)) {
        in.e      = core_encoding(encoding);
        in.params = own.params;
    }
    int is_read =
        !PyErr_Occurred() && !core_tensors(&views, tensors, 2 * in.count, all, "tensors", CORE_READ);
    for (int i = 0; is_read && i < in.count; i++) {
        in.sides[i] = (pe_dump){.name = i ? "k" : "q", .before = tensors[2 * i], .after = tensors[2 * i + 1]};
        is_read     = PyObject_GetBuffer(PyTuple_GetItem(places, i), &at[i], PyBUF_C_CONTIGUOUS) == 0;
        in.sides[i].positions = at[i].buf;
        if (is_read &&
            (tensors[2 * i].ndim != 4 || at[i].len != (Py_ssize_t)sizeof(double) * tensors[2 * i].shape[0] *
                                                          tensors[2 * i].shape[2] * in.coordinates)) {
            PyErr_SetString(PyExc_ValueError, "rotation takes tensors [B,H,L,D] and positions [B*L,N]");
            is_read = 0;
        }
    }
    if (is_read && pe_rotation_judge(&d, &in, &err))
        core_fail(state, &err);
    else if (is_read) {
        out = diagnosis(&d);
        pe_diagnosis_free(&d);
    }
    core_release(&own.views);
    core_release(&views);
    for (int i = 0; i < 2; i++)
        PyBuffer_Release(&at[i]);
    return out;
}

static PyObject *slopes_of(const pe_scores_reading *r)
{
    const int has  = r->slopes && !strcmp(r->encoding, "alibi");
    PyObject *list = PyList_New(0);
    for (int64_t h = 0; list && has && h < r->heads; h++) {
        PyObject *slope = PyFloat_FromDouble(r->slopes[h]);
        if (!slope || PyList_Append(list, slope) != 0)
            Py_CLEAR(list);
        Py_XDECREF(slope);
    }
    return list;
}

static PyObject *scores_reading(const pe_scores_reading *r)
{
    PyObject *out     = Py_BuildValue("{s:s,s:d,s:d,s:N,s:s}", "encoding", r->encoding, "scale", r->scale,
                                      "softcap", r->softcap, "slopes", slopes_of(r), "words", r->words);
    PyObject *mask    = r->is_irregular ? PyUnicode_FromString("irregular")
                        : r->seen.low > r->seen.high
                            ? Py_NewRef(Py_None)
                            : Py_BuildValue("(LL)", (long long)r->seen.low, (long long)r->seen.high);
    PyObject *rows    = r->has_temperature ? Py_BuildValue("(dd)", r->first, r->last) : Py_NewRef(Py_None);
    PyObject *buckets = strcmp(r->encoding, "t5")
                            ? Py_NewRef(Py_None)
                            : Py_BuildValue("(LLO)", (long long)r->buckets, (long long)r->max_distance,
                                            r->is_bidirectional ? Py_True : Py_False);
    if (!out || !mask || !rows || !buckets || PyDict_SetItemString(out, "mask", mask) != 0 ||
        PyDict_SetItemString(out, "temperature", rows) != 0 ||
        PyDict_SetItemString(out, "buckets", buckets) != 0)
        Py_CLEAR(out);
    Py_XDECREF(mask);
    Py_XDECREF(rows);
    Py_XDECREF(buckets);
    return out;
}

static PyObject *scores_diagnosis(const pe_scores_diagnosis *d)
{
    PyObject *others = PyList_New(0);
    for (int i = 0; others && i < d->alternative_count; i++) {
        PyObject *row = Py_BuildValue("{s:N,s:s}", "departs", departures(d->alternatives[i]), "words",
                                      d->alternative_words[i]);
        if (!row || PyList_Append(others, row) != 0)
            Py_CLEAR(others);
        Py_XDECREF(row);
    }
    return Py_BuildValue("{s:s,s:N,s:N,s:N,s:d,s:N}", "verdict", verdicts[d->verdict], "departs",
                         departures(d->departs), "found",
                         d->verdict == PE_UNEXPLAINED ? Py_NewRef(Py_None) : scores_reading(&d->found),
                         "alternatives", others, "residual", d->residual, "advice",
                         words_list(d->advice.words, d->advice.count));
}

/* What is expected, of a tuple (encoding, scale, softcap, low, high, buckets, max_distance, bidirectional).
 */
static int read_expected(pe_scores_reading *e, PyObject *from)
{
    const char *name;
    long long   low, high, buckets, most;
    if (!PyArg_ParseTuple(from, "sddLLLLp", &name, &e->scale, &e->softcap, &low, &high, &buckets, &most,
                          &e->is_bidirectional))
        return -1;
    strncpy(e->encoding, name, sizeof e->encoding - 1);
    e->seen         = (pe_range){low, high};
    e->buckets      = buckets;
    e->max_distance = most;
    return 0;
}

/* scores_cause((before, after), expected or None), [B,H,Lq,Lk]: what pe_scores_judge finds, as a dictionary.
 */
PyObject *core_scores_cause(PyObject *module, PyObject *args)
{
    core_state         *state = PyModule_GetState(module);
    pe_scores           in    = {0};
    pe_scores_reading   e     = {0};
    pe_scores_diagnosis d;
    core_views          views      = {.state = state};
    posenc_tensor       tensors[2] = {{0}};
    PyObject           *all, *expected, *out = NULL;
    posenc_error        err;
    if (!PyArg_ParseTuple(args, "O!O", &PyTuple_Type, &all, &expected) ||
        (expected != Py_None && read_expected(&e, expected)))
        return NULL;
    const int64_t *n = tensors[0].shape;
    if (core_tensors(&views, tensors, 2, all, "scores", CORE_READ))
        ; /* said */
    else if (tensors[0].ndim != 4 || tensors[1].ndim != 4 ||
             memcmp(n, tensors[1].shape, sizeof(int64_t[4])) || n[2] > n[3] || n[0] * n[1] * n[2] < 1)
        PyErr_SetString(PyExc_ValueError, "scores before and after must both be [B,H,Lq,Lk], with Lq <= Lk");
    else if (!(e.slopes = malloc((size_t)n[1] * sizeof(double))))
        PyErr_NoMemory();
    else {
        pe_scores_slopes(e.slopes, e.heads = n[1]);
        in = (pe_scores){tensors[0], tensors[1], expected == Py_None ? NULL : &e};
        if (pe_scores_judge(&d, &in, &err))
            core_fail(state, &err);
        else {
            out = scores_diagnosis(&d);
            pe_scores_diagnosis_free(&d);
        }
    }
    free(e.slopes);
    core_release(&views);
    return out;
}
