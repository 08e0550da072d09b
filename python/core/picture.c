/* SPDX-License-Identifier: MIT */
/*
 * picture.c: _core.picture, the pictures of `posenc plot`
 *
 * What is drawn, and how, is the library's (plot/plot.h); here arguments become its structures. Gnuplot is a
 * program of its own, and other Python threads run while it draws.
 */
#include "core.h"

#include "plot/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 8, MOST_NUMBERS = 4096, MOST_WORDS = 32, TEXT = 120 };

/* One encoding of a picture, and what all of them share. */
typedef struct part {
    const posenc_encoding *e;
    pe_offer               offer;
    pe_picture_data        data;
    posenc_tensor          params[CORE_PARAMS];
    int                    varied[CORE_PARAMS];
    char                   origin[TEXT];
} part;

typedef struct shared {
    pe_picture_data data;
    int64_t         chosen[MOST_NUMBERS];
    double          bases[MOST_NUMBERS];
    const char     *words[MOST_WORDS];
} shared;

/* offer(encoding, kind, length, dim, heads, rows, cols): (place, settings, length, rows, cols, and of the
   sizes H, D, d_model, Lk, L), with what is drawn where 0 is given (pe_picture_fit). */
PyObject *core_offer(PyObject *module, PyObject *args)
{
    core_state     *state = PyModule_GetState(module);
    PyObject       *encoding;
    const char     *kind;
    long long       length, dim, heads, rows, cols;
    pe_picture_data d = {0};
    pe_offer        offer, offers[PE_MOST_OFFERS];
    char            settings[PE_SETTINGS], known[PE_MOST_OFFERS * (PE_KIND_LENGTH + 2)] = "no pictures";
    size_t          used = 0;
    if (!PyArg_ParseTuple(args, "O!sLLLLL", state->encoding, &encoding, &kind, &length, &dim, &heads, &rows,
                          &cols))
        return NULL;
    const posenc_encoding *e = core_encoding(encoding);
    if (pe_picture_offered(e, kind, &offer)) {
        d.length = length, d.rows = rows, d.cols = cols;
        d.dims = (posenc_dims){.H = heads, .D = dim};
        pe_picture_fit(e, &offer, &d, settings);
        return Py_BuildValue("ssLLLLLLLL", posenc_place_name(offer.place), settings, (long long)d.length,
                             (long long)d.rows, (long long)d.cols, (long long)d.dims.H, (long long)d.dims.D,
                             (long long)d.dims.d_model, (long long)d.dims.Lk, (long long)d.dims.L);
    }
    const int n = pe_picture_offers(e, offers);
    for (int i = 0; i < n; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", offers[i].kind);
    PyErr_Format(state->errors[POSENC_ERROR_ARGUMENT], "plot: %s has no picture \"%s\"; it has: %s",
                 posenc_encoding_spec(e), kind, known);
    return NULL;
}

/* ---------------------------------------------------------------- what is asked ------------- */

/* A tuple of at most `most` numbers; how many, or -1. */
static int read_numbers(PyObject *tuple, int64_t *whole, double *real, const char *name)
{
    const Py_ssize_t n = PyTuple_Size(tuple);
    if (n > MOST_NUMBERS)
        PyErr_Format(PyExc_ValueError, "%s has %zd numbers; at most %d are drawn", name, n, MOST_NUMBERS);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        if (whole)
            whole[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
        else
            real[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
    return PyErr_Occurred() ? -1 : (int)n;
}

static int read_words(shared *s, PyObject *tuple)
{
    const Py_ssize_t n = PyTuple_Size(tuple);
    if (n > MOST_WORDS)
        PyErr_Format(PyExc_ValueError, "words has %zd words; at most %d are drawn", n, MOST_WORDS);
    for (Py_ssize_t i = 0; i < n && !PyErr_Occurred(); i++)
        s->words[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, i), NULL);
    s->data.words = n > 0 ? s->words : NULL;
    return PyErr_Occurred() ? -1 : 0;
}

/* (transposed, digits or -1, counter, products, thetas, theta, contents, draws, seed, chosen, bases, words)
 */
static int read_shared(shared *s, PyObject *tuple)
{
    pe_picture_data *d = &s->data;
    int              digits;
    long long        draws, seed;
    PyObject        *chosen, *bases, *words;
    if (!PyArg_ParseTuple(tuple, "pippidiLLO!O!O!", &d->transposed, &digits, &d->binary_counter, &d->products,
                          &d->thetas, &d->theta, &d->contents, &draws, &seed, &PyTuple_Type, &chosen,
                          &PyTuple_Type, &bases, &PyTuple_Type, &words))
        return -1;
    d->with_numbers = digits >= 0;
    d->decimals     = digits < 0 ? 0 : digits;
    d->draws        = draws;
    d->seed         = (uint64_t)seed;
    d->chosen       = s->chosen;
    d->bases        = s->bases;
    d->chosen_count = read_numbers(chosen, s->chosen, NULL, "channels, pairs or points");
    d->base_count   = read_numbers(bases, NULL, s->bases, "bases");
    return d->chosen_count < 0 || d->base_count < 0 ? -1 : read_words(s, words);
}

/* (encoding, place, dims, length, rows, cols, name, params, varied), the parameters in float64 and the
   picture's to change */
static int read_part(part *p, core_views *views, const shared *s, const char *kind, PyObject *tuple)
{
    PyObject   *encoding, *dims, *params, *varied;
    const char *place, *name;
    long long   length, rows, cols;
    if (!PyArg_ParseTuple(tuple, "O!sOLLLzOO!", views->state->encoding, &encoding, &place, &dims, &length,
                          &rows, &cols, &name, &params, &PyTuple_Type, &varied))
        return -1;
    p->e    = core_encoding(encoding);
    p->data = s->data;
    if (core_dims(&p->data.dims, dims) != 0 ||
        core_tensors(views, p->params, posenc_param_count(p->e), params, "params", CORE_WRITE) != 0)
        return -1;
    p->data.length = length;
    p->data.rows   = rows;
    p->data.cols   = cols;
    p->data.name   = name;
    p->data.params = p->params;
    snprintf(p->offer.kind, sizeof p->offer.kind, "%s", kind);
    while (p->offer.place < POSENC_PLACE_COUNT - 1 && strcmp(posenc_place_name(p->offer.place), place) != 0)
        p->offer.place++;
    const posenc_encoding_info *info = posenc_encoding_part(p->e, p->offer.place);
    p->data.causal                   = info && info->causal_only;
    int trained                      = 0;
    for (int i = 0; i < posenc_param_count(p->e) && i < PyTuple_Size(varied); i++)
        trained += p->varied[i] = PyObject_IsTrue(PyTuple_GetItem(varied, i)) == 1;
    if (trained) {
        snprintf(p->origin, sizeof p->origin, "untrained: initial parameters, seed %lld",
                 (long long)s->data.seed);
        p->data.origin = p->origin;
    }
    return 0;
}

/* ---------------------------------------------------------------- drawing ------------------- */

/* *text is malloc'd, NULL where a file was written. format: svg, csv, text, or a path. */
static posenc_status show(char **text, const pe_picture *picture, const char *format, int columns,
                          posenc_error *err)
{
    const pe_figure *figure = pe_picture_figure(picture);
    size_t           n;
    posenc_status    status = POSENC_OK;
    *text                   = NULL;
    if (!strcmp(format, "svg"))
        return pe_gnuplot_svg(figure, "picture", text, err);
    if (strcmp(format, "csv") != 0 && strcmp(format, "text") != 0) {
        status = pe_gnuplot_path_check(format, err);
        return status ? status : pe_gnuplot_file(figure, format, err);
    }
    FILE *to = open_memstream(text, &n);
    if (!to) {
        *err = (posenc_error){.status = POSENC_ERROR_MEMORY, .message = "plot: not enough memory"};
        return POSENC_ERROR_MEMORY;
    }
    if (!strcmp(format, "csv"))
        pe_numbers_write(to, figure);
    else
        status = pe_terminal_print(figure, to, columns, 0, err);
    fclose(to);
    return status;
}

static posenc_status draw(char **text, part *parts, int count, const char *format, int columns,
                          posenc_error *err)
{
    pe_picture   *pictures[MOST_PARTS] = {NULL}, *joint = NULL;
    posenc_status status = POSENC_OK;
    for (int i = 0; i < count && !status; i++)
        status = pe_picture_create_varied(&pictures[i], parts[i].e, &parts[i].offer, &parts[i].data,
                                          parts[i].varied, parts[i].origin, sizeof parts[i].origin, err);
    if (!status && count > 1)
        status = pe_picture_join(&joint, pictures, count, err);
    if (!status)
        status = show(text, joint ? joint : pictures[0], format, columns, err);
    pe_picture_free(joint);
    for (int i = 0; i < count; i++)
        pe_picture_free(pictures[i]);
    return status;
}

/* picture(kind, parts, shared, format, columns): its text, or None where format is the path of a file. */
PyObject *core_picture(PyObject *module, PyObject *args)
{
    core_state   *state = PyModule_GetState(module);
    const char   *kind, *format;
    PyObject     *tuple, *options, *out = NULL;
    int           columns;
    char         *text = NULL;
    posenc_error  err;
    posenc_status status = POSENC_OK;
    if (!PyArg_ParseTuple(args, "sO!Osi", &kind, &PyTuple_Type, &tuple, &options, &format, &columns))
        return NULL;
    const int  count = (int)PyTuple_Size(tuple);
    shared    *s     = calloc(1, sizeof *s);
    part      *parts = calloc(MOST_PARTS, sizeof *parts);
    core_views views[MOST_PARTS]; /* of each part */
    int        read = 0;
    if (!s || !parts)
        PyErr_NoMemory();
    else if (count < 1 || count > MOST_PARTS)
        PyErr_Format(PyExc_ValueError, "%d encodings are given; 1 to %d are drawn", count, MOST_PARTS);
    else if (read_shared(s, options) == 0)
        for (; read < count && !PyErr_Occurred(); read++) {
            views[read] = (core_views){.state = state};
            read_part(&parts[read], &views[read], s, kind, PyTuple_GetItem(tuple, read));
        }
    if (!PyErr_Occurred()) {
        PyThreadState *thread = PyEval_SaveThread();
        status                = draw(&text, parts, count, format, columns, &err);
        PyEval_RestoreThread(thread);
        out = status ? core_fail(state, &err) : text ? PyUnicode_FromString(text) : Py_NewRef(Py_None);
    }
    for (int i = 0; i < read; i++)
        core_release(&views[i]);
    free(text);
    free(parts);
    free(s);
    return out;
}
