/* SPDX-License-Identifier: MIT */
/*
 * plan.c: _core.Plan, a plan with its spare workspace, and every run
 *
 * The idea  A run is a C function and a table of slots: which argument fills which member of its struct. One
 *           loop fills them, one calls. Arguments are positional, None where there is none.
 * Memory    A plan keeps one workspace. A run takes it and puts it back; a second run at the same time makes
 *           its own. All of that happens under the interpreter's lock, which only the run itself gives up.
 */
#include "core.h"

#include <assert.h>
#include <posenc/rotary.h>
#include <posenc/scores.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 9 }; /* of runs: the bits of posenc_run */

typedef struct plan {
    PyObject_HEAD posenc_plan *plan;
    int                        params, tokens; /* of its encoding */
    size_t                     need[KINDS];    /* bytes of each kind of run, 0 until it is asked for */
    posenc_workspace           spare;
} plan;

typedef enum kind { READ, WRITE, AT, PARAMS, DPARAMS, TOKENS, DTOKENS, SIGN, OTHER } kind;

typedef struct slot {
    const char *name;
    kind        kind;
    size_t      at; /* offset in the struct of the call */
} slot;

typedef posenc_status run_call(const posenc_plan *p, void *call, const posenc_workspace *work,
                               posenc_error *err);

typedef struct method {
    const char *name;
    posenc_run  run;
    run_call   *call;
    const slot *slots;
    int         count;
} method;

#define METHOD(name, runs, slots)                                                          \
    {                                                                                      \
#name, (posenc_run)(runs), call_##name, slots, (int)(sizeof slots / sizeof *slots) \
    }

/* ---------------------------------------------------------------- workspaces ---------------- */

static size_t need(plan *p, posenc_run run)
{
    int bit = 0;
    while (!((unsigned)run >> 8 >> bit & 1))
        bit++;
    if (p->need[bit] == 0)
        p->need[bit] = posenc_plan_workspace(p->plan, run, NULL);
    return p->need[bit];
}

static int take(plan *p, posenc_workspace *work, size_t bytes)
{
    *work    = p->spare;
    p->spare = posenc_workspace_over(NULL, 0);
    if (work->memory && work->bytes >= bytes)
        return 0;
    free(work->memory);
    *work = posenc_workspace_over(aligned_alloc(64, bytes ? bytes : 64), bytes);
    if (!work->memory)
        PyErr_NoMemory();
    return work->memory ? 0 : -1;
}

static void put_back(plan *p, posenc_workspace *work)
{
    if (p->spare.bytes < work->bytes || !p->spare.memory) {
        free(p->spare.memory);
        p->spare = *work;
    } else
        free(work->memory);
}

/* ---------------------------------------------------------------- one run ------------------- */

typedef struct running {
    core_views    views;
    plan         *other; /* of rerotate */
    posenc_tensor params[CORE_PARAMS], dparams[CORE_PARAMS], tokens[CORE_PARAMS], dtokens[CORE_PARAMS];
} running;

static int fill_list(running *r, posenc_tensor *all, int count, void *member, const slot *s, PyObject *arg)
{
    const posenc_tensor *first = arg == Py_None ? NULL : all;
    memcpy(member, &first, sizeof first);
    if (arg == Py_None)
        return 0;
    return core_tensors(&r->views, all, count, arg, s->name,
                        (s->kind == DPARAMS || s->kind == DTOKENS) && !r->other ? CORE_WRITE : CORE_READ);
}

static int fill_other(running *r, void *member, PyObject *arg)
{
    if (Py_TYPE(arg) != r->views.state->plan) {
        PyErr_SetString(PyExc_TypeError, "another plan is wanted here");
        return -1;
    }
    r->other = (plan *)arg;
    memcpy(member, &r->other, sizeof r->other);
    return 0;
}

static int fill(running *r, const plan *p, const slot *s, void *call, PyObject *arg)
{
    void *member = (char *)call + s->at;
    switch (s->kind) {
    case READ: return core_tensor(&r->views, member, arg, s->name, CORE_READ);
    case WRITE: return core_tensor(&r->views, member, arg, s->name, CORE_WRITE);
    case AT: return core_positions(&r->views, member, arg, s->name);
    case PARAMS: return fill_list(r, r->params, p->params, member, s, arg);
    case DPARAMS: /* of rerotate: the other plan's, and only read */
        return fill_list(r, r->dparams, r->other ? r->other->params : p->params, member, s, arg);
    case TOKENS: return fill_list(r, r->tokens, p->tokens, member, s, arg);
    case DTOKENS: return fill_list(r, r->dtokens, p->tokens, member, s, arg);
    case OTHER: return fill_other(r, member, arg);
    case SIGN: break;
    }
    const long number = PyLong_AsLong(arg);
    if (number == -1 && PyErr_Occurred())
        return -1;
    *(int *)member = (int)number;
    return 0;
}

/* Another thread may work while a long run does. */
static posenc_status call_free(const running *r, const plan *p, const method *m, void *call,
                               const posenc_workspace *work, posenc_error *err)
{
    if (r->views.elements < CORE_FREE_ABOVE)
        return m->call(p->plan, call, work, err);
    PyThreadState      *thread = PyEval_SaveThread();
    const posenc_status status = m->call(p->plan, call, work, err);
    PyEval_RestoreThread(thread);
    return status;
}

static PyObject *run(PyObject *self, const method *m, void *call, PyObject *const *args, Py_ssize_t n)
{
    plan            *p = (plan *)self;
    running          r;
    posenc_workspace work;
    posenc_error     err    = {POSENC_OK, ""};
    int              failed = 0;
    r.views.state           = core_state_of(self);
    r.views.count = 0, r.views.elements = 0, r.other = NULL;
    if (n != m->count)
        return PyErr_Format(PyExc_TypeError, "%s takes %d arguments, here are %d", m->name, m->count, (int)n);
    for (int i = 0; i < m->count && !failed; i++)
        failed = fill(&r, p, &m->slots[i], call, args[i]);
    if (!failed && !take(p, &work, need(p, m->run) + (r.other ? need(r.other, m->run) : 0))) {
        call_free(&r, p, m, call, &work, &err);
        put_back(p, &work);
    }
    core_release(&r.views);
    if (err.status != POSENC_OK)
        return core_fail(r.views.state, &err);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* ---------------------------------------------------------------- the runs ------------------ */

typedef struct rows_call {
    posenc_rows_in   in;
    posenc_rows_grad grad;
    posenc_tensor    y;
} rows_call;

#define ROWS_IN                                                                             \
    {"x", READ, offsetof(rows_call, in.x)}, {"positions", AT, offsetof(rows_call, in.pos)}, \
    {                                                                                       \
        "params", PARAMS, offsetof(rows_call, in.params)                                    \
    }

static const slot rows_slots[]          = {ROWS_IN, {"out", WRITE, offsetof(rows_call, y)}};
static const slot rows_backward_slots[] = {ROWS_IN,
                                           {"grad", READ, offsetof(rows_call, grad.dy)},
                                           {"grad of x", WRITE, offsetof(rows_call, grad.dx)},
                                           {"grads of params", DPARAMS, offsetof(rows_call, grad.dparams)}};

static posenc_status call_rows(const posenc_plan *p, void *call, const posenc_workspace *work,
                               posenc_error *err)
{
    rows_call *c = call;
    return posenc_rows(p, &c->in, &c->y, work, err);
}

static posenc_status call_rows_backward(const posenc_plan *p, void *call, const posenc_workspace *work,
                                        posenc_error *err)
{
    rows_call *c = call;
    return posenc_rows_backward(p, &c->in, &c->grad, work, err);
}

typedef struct rotate_call {
    posenc_rotate_io   io;
    posenc_rotate_grad grad;
} rotate_call;

#define ROTATE_IN                                                                       \
    {"q", READ, offsetof(rotate_call, io.q)}, {"k", READ, offsetof(rotate_call, io.k)}, \
        {"q_positions", AT, offsetof(rotate_call, io.q_pos)},                           \
        {"k_positions", AT, offsetof(rotate_call, io.k_pos)},                           \
        {"direction", SIGN, offsetof(rotate_call, io.direction)},                       \
        {"params", PARAMS, offsetof(rotate_call, io.params)},                           \
    {                                                                                   \
        "tokens", TOKENS, offsetof(rotate_call, io.tokens)                              \
    }

static const slot rotate_slots[]          = {ROTATE_IN,
                                             {"out", WRITE, offsetof(rotate_call, io.to_q)},
                                             {"out of k", WRITE, offsetof(rotate_call, io.to_k)}};
static const slot rotate_backward_slots[] = {
    ROTATE_IN,
    {"grad of rotated q", READ, offsetof(rotate_call, grad.dto_q)},
    {"grad of rotated k", READ, offsetof(rotate_call, grad.dto_k)},
    {"grad of q", WRITE, offsetof(rotate_call, grad.dq)},
    {"grad of k", WRITE, offsetof(rotate_call, grad.dk)},
    {"grads of params", DPARAMS, offsetof(rotate_call, grad.dparams)},
    {"grads of tokens", DTOKENS, offsetof(rotate_call, grad.dtokens)}};

static posenc_status call_rotate(const posenc_plan *p, void *call, const posenc_workspace *work,
                                 posenc_error *err)
{
    return posenc_rotate(p, &((rotate_call *)call)->io, work, err);
}

static posenc_status call_rotate_backward(const posenc_plan *p, void *call, const posenc_workspace *work,
                                          posenc_error *err)
{
    rotate_call *c = call;
    return posenc_rotate_backward(p, &c->io, &c->grad, work, err);
}

typedef struct attend_call {
    posenc_attend_in  in;
    posenc_attend_out out;
} attend_call;

typedef struct attend_backward_call {
    posenc_attend_in   in;
    posenc_attend_grad grad;
} attend_backward_call;

typedef struct scores_call {
    posenc_attend_in in;
    posenc_tensor    to;
} scores_call;

/* `in` is the first member of all three. */
static_assert(offsetof(attend_call, in) == 0 && offsetof(attend_backward_call, in) == 0 &&
                  offsetof(scores_call, in) == 0,
              "ATTEND_IN counts from the start");

#define ATTEND_IN                                                                                           \
    {"q", READ, offsetof(posenc_attend_in, q)}, {"k", READ, offsetof(posenc_attend_in, k)},                 \
        {"v", READ, offsetof(posenc_attend_in, v)}, {"q_positions", AT, offsetof(posenc_attend_in, q_pos)}, \
        {"k_positions", AT, offsetof(posenc_attend_in, k_pos)},                                             \
        {"key_allowed", READ, offsetof(posenc_attend_in, key_allowed)},                                     \
        {"mask", READ, offsetof(posenc_attend_in, allowed)},                                                \
        {"q_segments", READ, offsetof(posenc_attend_in, q_segments)},                                       \
        {"k_segments", READ, offsetof(posenc_attend_in, k_segments)},                                       \
        {"params", PARAMS, offsetof(posenc_attend_in, params)},                                             \
    {                                                                                                       \
        "tokens", TOKENS, offsetof(posenc_attend_in, tokens)                                                \
    }

static const slot attend_slots[]          = {ATTEND_IN,
                                             {"out", WRITE, offsetof(attend_call, out.o)},
                                             {"lse", WRITE, offsetof(attend_call, out.lse)}};
static const slot attend_backward_slots[] = {
    ATTEND_IN,
    {"o", READ, offsetof(attend_backward_call, grad.o)},
    {"lse", READ, offsetof(attend_backward_call, grad.lse)},
    {"grad", READ, offsetof(attend_backward_call, grad.dout)},
    {"grad of lse", READ, offsetof(attend_backward_call, grad.dlse)},
    {"grad of q", WRITE, offsetof(attend_backward_call, grad.dq)},
    {"grad of k", WRITE, offsetof(attend_backward_call, grad.dk)},
    {"grad of v", WRITE, offsetof(attend_backward_call, grad.dv)},
    {"grads of params", DPARAMS, offsetof(attend_backward_call, grad.dparams)},
    {"grads of tokens", DTOKENS, offsetof(attend_backward_call, grad.dtokens)}};
static const slot scores_slots[] = {ATTEND_IN, {"out", WRITE, offsetof(scores_call, to)}};

static posenc_status call_attend(const posenc_plan *p, void *call, const posenc_workspace *work,
                                 posenc_error *err)
{
    attend_call *c = call;
    return posenc_attend(p, &c->in, &c->out, work, err);
}

static posenc_status call_attend_backward(const posenc_plan *p, void *call, const posenc_workspace *work,
                                          posenc_error *err)
{
    attend_backward_call *c = call;
    return posenc_attend_backward(p, &c->in, &c->grad, work, err);
}

static posenc_status call_scores(const posenc_plan *p, void *call, const posenc_workspace *work,
                                 posenc_error *err)
{
    scores_call *c = call;
    return posenc_scores(p, &c->in, &c->to, work, err);
}

static posenc_status call_bias(const posenc_plan *p, void *call, const posenc_workspace *work,
                               posenc_error *err)
{
    scores_call *c = call;
    return posenc_bias(p, &c->in, &c->to, work, err);
}

typedef struct bias_backward_call {
    posenc_attend_in in;
    posenc_tensor    dbias;
    posenc_tensor   *dparams;
} bias_backward_call;

static_assert(offsetof(bias_backward_call, in) == 0, "ATTEND_IN counts from the start");

static const slot bias_backward_slots[] = {ATTEND_IN,
                                           {"grad", READ, offsetof(bias_backward_call, dbias)},
                                           {"grads of params", DPARAMS,
                                            offsetof(bias_backward_call, dparams)}};

static posenc_status call_bias_backward(const posenc_plan *p, void *call, const posenc_workspace *work,
                                        posenc_error *err)
{
    bias_backward_call *c = call;
    return posenc_bias_backward(p, &c->in, &c->dbias, c->dparams, work, err);
}

typedef struct table_call {
    posenc_rotary_in in;
    int              side;
    posenc_tensor    table, temperature;
} table_call;

#define TABLE_IN                                          \
    {"positions", AT, offsetof(table_call, in.pos)},      \
    {                                                     \
        "params", PARAMS, offsetof(table_call, in.params) \
    }

static const slot table_slots[]  = {TABLE_IN,
                                    {"side", SIGN, offsetof(table_call, side)},
                                    {"out", WRITE, offsetof(table_call, table)}};
static const slot angles_slots[] = {TABLE_IN,
                                    {"angles", WRITE, offsetof(table_call, table)},
                                    {"temperature", WRITE, offsetof(table_call, temperature)}};

static posenc_status call_table(const posenc_plan *p, void *call, const posenc_workspace *work,
                                posenc_error *err)
{
    table_call *c = call;
    return posenc_rotary_table(p, c->side ? POSENC_SIDE_KEYS : POSENC_SIDE_QUERIES, &c->in, &c->table, work,
                               err);
}

static posenc_status call_angles(const posenc_plan *p, void *call, const posenc_workspace *work,
                                 posenc_error *err)
{
    table_call *c = call;
    return posenc_rotary_angles(p, &c->in, &c->table, c->temperature.data ? &c->temperature : NULL, work,
                                err);
}

typedef struct rerotate_call {
    posenc_rerotate_io io;
    plan              *to;
} rerotate_call;

static const slot rerotate_slots[] = {
    {"dst", OTHER, offsetof(rerotate_call, to)},
    {"k", READ, offsetof(rerotate_call, io.k)},
    {"src_positions", AT, offsetof(rerotate_call, io.from_pos)},
    {"dst_positions", AT, offsetof(rerotate_call, io.to_pos)},
    {"params", PARAMS, offsetof(rerotate_call, io.from_params)},
    {"params of dst", DPARAMS, offsetof(rerotate_call, io.to_params)},
    {"out", WRITE, offsetof(rerotate_call, io.to_k)},
};

static posenc_status call_rerotate(const posenc_plan *p, void *call, const posenc_workspace *work,
                                   posenc_error *err)
{
    rerotate_call *c = call;
    return posenc_rotary_rerotate(p, c->to->plan, &c->io, work, err);
}

static const method rows_method = METHOD(rows, POSENC_RUN_ROWS, rows_slots);
static const method rows_backward_method =
    METHOD(rows_backward, POSENC_RUN_ROWS_BACKWARD, rows_backward_slots);
static const method rotate_method = METHOD(rotate, POSENC_RUN_ROTATE, rotate_slots);
static const method rotate_backward_method =
    METHOD(rotate_backward, POSENC_RUN_ROTATE_BACKWARD, rotate_backward_slots);
static const method attend_method = METHOD(attend, POSENC_RUN_ATTEND | POSENC_RUN_DECODE, attend_slots);
static const method attend_backward_method =
    METHOD(attend_backward, POSENC_RUN_ATTEND_BACKWARD, attend_backward_slots);
static const method scores_method = METHOD(scores, POSENC_RUN_SCORES, scores_slots);
static const method bias_method   = METHOD(bias, POSENC_RUN_SCORES, scores_slots);
static const method bias_backward_method =
    METHOD(bias_backward, POSENC_RUN_BIAS_BACKWARD, bias_backward_slots);
static const method table_method    = METHOD(table, POSENC_RUN_ROTATE, table_slots);
static const method angles_method   = METHOD(angles, POSENC_RUN_ROTATE, angles_slots);
static const method rerotate_method = METHOD(rerotate, POSENC_RUN_ROTATE, rerotate_slots);

/* The library's structs begin with their sizes; all else is zero until it is filled. */
#define RUN(name, type, ...)                                                          \
    static PyObject *plan_##name(PyObject *self, PyObject *const *args, Py_ssize_t n) \
    {                                                                                 \
        type c = {__VA_ARGS__};                                                       \
        return run(self, &name##_method, &c, args, n);                                \
    }
RUN(rows, rows_call, .in = {sizeof c.in})
RUN(rows_backward, rows_call, .in = {sizeof c.in}, .grad = {sizeof c.grad})
RUN(rotate, rotate_call, .io = {sizeof c.io})
RUN(rotate_backward, rotate_call, .io = {sizeof c.io}, .grad = {sizeof c.grad})
RUN(attend, attend_call, .in = {sizeof c.in}, .out = {sizeof c.out})
RUN(attend_backward, attend_backward_call, .in = {sizeof c.in}, .grad = {sizeof c.grad})
RUN(scores, scores_call, .in = {sizeof c.in})
RUN(bias, scores_call, .in = {sizeof c.in})
RUN(bias_backward, bias_backward_call, .in = {sizeof c.in})
RUN(table, table_call, .in = {sizeof c.in})
RUN(angles, table_call, .in = {sizeof c.in})
RUN(rerotate, rerotate_call, .io = {sizeof c.io})

/* ---------------------------------------------------------------- what is asked of a plan --- */

/* (w, pairs, magnitude); w is None where frequencies are parameters. */
static PyObject *plan_frequencies(PyObject *self, PyObject *unused)
{
    const posenc_plan *p         = ((plan *)self)->plan;
    int64_t            pairs     = 0;
    double             magnitude = 0;
    posenc_error       err;
    if (posenc_rotary_frequencies(p, NULL, &pairs, &magnitude, &err) != POSENC_OK)
        return core_fail(core_state_of(self), &err);
    PyObject *w = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)pairs * (Py_ssize_t)sizeof(double));
    if (!w)
        return NULL;
    if (posenc_rotary_frequencies(p, (double *)(void *)PyBytes_AsString(w), &pairs, &magnitude, &err) !=
        POSENC_OK) {
        Py_DECREF(w);
        if (err.status != POSENC_ERROR_UNSUPPORTED)
            return core_fail(core_state_of(self), &err);
        w = Py_NewRef(Py_None);
    }
    return Py_BuildValue("NLd", w, (long long)pairs, magnitude);
}

static PyObject *pair_list(const posenc_rotary_pair *pairs, int64_t n)
{
    PyObject *list = PyList_New((Py_ssize_t)n);
    for (int64_t m = 0; list && m < n; m++) {
        const posenc_rotary_pair *p = &pairs[m];
        PyObject *row = Py_BuildValue("((LL)(LL)id)", (long long)p->from[0], (long long)p->from[1],
                                      (long long)p->to[0], (long long)p->to[1], p->coordinate, p->w);
        if (!row || PyList_SetItem(list, (Py_ssize_t)m, row) != 0)
            Py_CLEAR(list);
    }
    return list;
}

/* pairs(params, length): a row ((from), (to), coordinate, w) for each pair. */
static PyObject *plan_pairs(PyObject *self, PyObject *args)
{
    plan            *p = (plan *)self;
    PyObject        *params, *list = NULL;
    double           length;
    int64_t          n = 0;
    posenc_tensor    tensors[CORE_PARAMS];
    core_views       views = {.state = core_state_of(self)};
    posenc_error     err;
    posenc_workspace work;
    if (!PyArg_ParseTuple(args, "Od", &params, &length))
        return NULL;
    if (posenc_rotary_frequencies(p->plan, NULL, &n, NULL, &err) != POSENC_OK)
        return core_fail(views.state, &err);
    posenc_rotary_pair *pairs = malloc((size_t)(n + 1) * sizeof *pairs);
    if (!pairs)
        return PyErr_NoMemory();
    if (!core_tensors(&views, tensors, p->params, params, "params", CORE_READ) &&
        !take(p, &work, need(p, POSENC_RUN_ROTATE))) {
        const posenc_status status = posenc_rotary_pairs(p->plan, tensors, length, pairs, &work, &err);
        put_back(p, &work);
        list = status == POSENC_OK ? pair_list(pairs, n) : core_fail(views.state, &err);
    }
    core_release(&views);
    free(pairs);
    return list;
}

static PyObject *plan_sizes(PyObject *self, PyObject *unused)
{
    const posenc_plan *p = ((plan *)self)->plan;
    return Py_BuildValue("{sLsLsLsisLsd}", "rows_width", (long long)posenc_rows_width(p), "q_width",
                         (long long)posenc_rotary_width(p, POSENC_SIDE_QUERIES), "k_width",
                         (long long)posenc_rotary_width(p, POSENC_SIDE_KEYS), "coordinates",
                         posenc_rotary_coordinates(p), "heads", (long long)posenc_rotary_heads(p),
                         "operations", posenc_plan_operations(p));
}

/* ---------------------------------------------------------------- the type ------------------ */

/* Plan(encoding, dims, mask, window, threads, executor, max_distances) */
static PyObject *plan_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    core_state    *state = PyType_GetModuleState(type);
    PyObject      *encoding, *sizes;
    posenc_dims    dims;
    posenc_options options = posenc_options_default();
    posenc_error   err;
    int            executor = 0;
    long long      window = 0, max_distances = 0;
    if (!PyArg_ParseTuple(args, "O!OiLiiL", state->encoding, &encoding, &sizes, &options.mask, &window,
                          &options.threads, &executor, &max_distances) ||
        core_dims(&dims, sizes) != 0)
        return NULL;
    options.window           = window;
    options.max_distances    = max_distances;
    options.executor         = (posenc_executor)executor;
    const posenc_encoding *e = core_encoding(encoding);
    if (posenc_param_count(e) > CORE_PARAMS)
        return PyErr_Format(PyExc_ValueError, "the encoding has more than %d parameters", CORE_PARAMS);
    plan *p = (plan *)PyType_GenericAlloc(type, 0);
    if (!p)
        return NULL;
    if (posenc_plan_create(&p->plan, e, &dims, &options, &err) != POSENC_OK) {
        Py_DECREF((PyObject *)p);
        return core_fail(state, &err);
    }
    p->params = posenc_param_count(e);
    p->tokens = posenc_token_count(e);
    return (PyObject *)p;
}

static void plan_dealloc(PyObject *self)
{
    plan         *p    = (plan *)self;
    PyTypeObject *type = Py_TYPE(self);
    posenc_plan_free(p->plan);
    free(p->spare.memory);
    PyObject_Free(self);
    Py_DECREF(type);
}

#define FAST(name, doc)                                                     \
    {                                                                       \
#name, (PyCFunction)(void (*)(void))plan_##name, METH_FASTCALL, doc \
    }

static PyMethodDef methods[] = {
    FAST(rows, "rows(x, positions, params, out)"),
    FAST(rows_backward, "rows_backward(x, positions, params, dy, dx, dparams)"),
    FAST(rotate, "rotate(q, k, q_positions, k_positions, direction, params, to_q, to_k)"),
    FAST(rotate_backward, "rotate_backward(q, k, q_positions, k_positions, direction, params, dto_q, dto_k, "
                          "dq, dk, dparams)"),
    FAST(attend,
         "attend(q, k, v, q_positions, k_positions, key_allowed, mask, q_segments, k_segments, params, "
         "o, lse)"),
    FAST(attend_backward, "attend_backward(q, k, v, q_positions, k_positions, key_allowed, mask, q_segments, "
                          "k_segments, params, o, lse, do, dlse, dq, dk, dv, dparams)"),
    FAST(scores, "scores(q, ..., params, out), as attend"),
    FAST(bias, "bias(q, ..., params, out), as attend"),
    FAST(bias_backward, "bias_backward(q, ..., params, grad, dparams), as attend"),
    FAST(table, "table(positions, params, side, out)"),
    FAST(angles, "angles(positions, params, angles, temperature)"),
    FAST(rerotate, "rerotate(dst, k, src_positions, dst_positions, params, params of dst, out)"),
    {"frequencies", plan_frequencies, METH_NOARGS, "(float64 as bytes or None, pairs, magnitude)"},
    {"pairs", plan_pairs, METH_VARARGS, "pairs(params, length)"},
    {"sizes", plan_sizes, METH_NOARGS, "what depends on the plan, by name"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, (void *)plan_new},
    {Py_tp_dealloc, (void *)plan_dealloc},
    {Py_tp_methods, methods},
    {0, NULL},
};

PyType_Spec core_plan_spec = {"posenc._core.Plan", sizeof(plan), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
