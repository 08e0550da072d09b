/* SPDX-License-Identifier: MIT */
/*
 * record.c: a finished run as one line of JSON, and back
 *
 * A line begins with what people read (encoding, seed, losses, the curves, times) and ends with what gives
 * the run back bit for bit: the loss of every held-out byte and the encoding's parameters, as base64. The
 * line is what runs.jsonl keeps, and what one process of several sends to the first.
 *
 * Surprise   JSON has no NaN. A training curve that ends because the run diverged has null there.
 * Check      The first member is a fingerprint of all that follows it: a line that was changed on the way is
 *            no line.
 * Precision  17 digits give a double back exactly, and so a float.
 */
#include "train/record.h"

#include "train/base64.h"
#include "train/fail.h"
#include "train/record_line.h"
#include "train/statistics.h"
#include "train/trained.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_BEGIN "{\"check\":\""
#define CHECK_END   "\","
enum { DIGITS = 17, IDENTITY_FORMAT = 1 };

/* ---------------------------------------------------------------- identity ------------------ */

/* Fowler, Noll and Vo: offset basis and prime of 64 bits. */
uint64_t pe_fingerprint(const void *bytes, size_t n)
{
    const unsigned char *at   = bytes;
    uint64_t             hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static json_t *text_json(const pe_text *text, uint64_t known)
{
    const uint64_t print = known ? known : pe_fingerprint(text->bytes, (size_t)text->size);
    return json_pack("{s:I, s:I, s:o}", "bytes", (json_int_t)text->size, "train_bytes",
                     (json_int_t)text->train_size, "fingerprint", json_sprintf("%016" PRIx64, print));
}

static json_t *identity_json(const pe_run_config *c)
{
    json_t *json = json_pack("{s:i, s:s, s:s, s:I, s:s, s:s, s:s}", "identity", IDENTITY_FORMAT, "version",
                             posenc_version(), "encoding", c->spec, "seed", (json_int_t)c->seed, "combine",
                             pe_combine_name(c->entry.combine), "inject", pe_inject_name(c->entry.inject),
                             "trains", c->bidirectional ? "masked bytes" : "next byte");
    json_t *numbers =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I}", "L", (json_int_t)c->L, "d_model",
                  (json_int_t)c->d_model, "layers", (json_int_t)c->layers, "heads", (json_int_t)c->heads,
                  "batch", (json_int_t)c->batch, "steps", (json_int_t)c->steps, "warmup",
                  (json_int_t)c->warmup, "learning_rate", c->learning_rate, "weight_decay", c->weight_decay,
                  "clip", c->clip, "windows", (json_int_t)c->windows);
    json_object_update(json, numbers);
    json_decref(numbers);
    json_object_set_new(json, "text", text_json(c->text, c->fingerprint));
    if (c->sequel)
        json_object_set_new(json, "sequel", json_string(c->sequel->name));
    return json;
}

char *pe_record_text(const json_t *json)
{
    return json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(DIGITS)) : NULL;
}

char *pe_run_identity(const pe_run_config *config)
{
    json_t *json = identity_json(config);
    char   *text = pe_record_text(json);
    json_decref(json);
    return text;
}

void pe_run_name(char name[PE_RUN_NAME], const char *identity)
{
    snprintf(name, PE_RUN_NAME, "%016" PRIx64, pe_fingerprint(identity, strlen(identity)));
}

void pe_identity_difference(char *text, size_t n, const char *there, const char *here)
{
    json_t     *a = json_loads(there, 0, NULL), *b = json_loads(here, 0, NULL);
    const char *key;
    json_t     *mine;
    text[0] = 0;
    json_object_foreach(b, key, mine)
    {
        json_t *other = json_object_get(a, key);
        if (json_equal(mine, other) || !strcmp(key, "encoding") || !strcmp(key, "seed") || text[0])
            continue;
        if (json_is_object(mine)) {
            snprintf(text, n, "the %s is another", key);
            continue;
        }
        char *x = other ? json_dumps(other, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
        char *y = json_dumps(mine, JSON_ENCODE_ANY | JSON_COMPACT);
        snprintf(text, n, "%s is %.80s there and %.80s here", key, x ? x : "missing", y ? y : "?");
        free(x);
        free(y);
    }
    json_decref(a);
    json_decref(b);
}

/* ---------------------------------------------------------------- writing ------------------- */

json_t *pe_record_number(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *floats(const float *x, int64_t n)
{
    char   *text = pe_base64_write(x, n);
    json_t *json = text ? json_string(text) : NULL;
    free(text);
    return json;
}

static json_t *bucket_losses(const pe_run_config *c, const pe_run_result *r)
{
    json_t *array = json_array();
    double *means = malloc((size_t)c->windows * sizeof *means);
    for (int b = 0; means && b < PE_BUCKETS; b++) {
        pe_bucket_means(means, r->window_loss, c->windows, c->L, b);
        json_array_append_new(array, pe_record_number(pe_mean(means, c->windows)));
    }
    free(means);
    return array;
}

/* Mean over the windows at every position. */
static json_t *curve(const pe_run_config *c, const pe_run_result *r)
{
    json_t       *array  = json_array();
    const int64_t length = PE_REACH * c->L;
    for (int64_t p = 0; p < length; p++) {
        double sum = 0;
        for (int64_t w = 0; w < c->windows; w++)
            sum += (double)r->window_loss[w * length + p];
        json_array_append_new(array, pe_record_number(sum / (double)c->windows));
    }
    return array;
}

static json_t *training(const pe_run_config *c, const pe_run_result *r)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < c->steps; i++)
        json_array_append_new(array, pe_record_number((double)r->train_loss[i]));
    return array;
}

static int64_t count_of(const posenc_tensor *t)
{
    int64_t n = 1;
    for (int32_t a = 0; a < t->ndim; a++)
        n *= t->shape[a];
    return n;
}

static int is_copy(const posenc_tensor *a, const posenc_tensor *b)
{
    const int64_t n = count_of(a);
    return n == count_of(b) && !memcmp(a->data, b->data, (size_t)n * sizeof(float));
}

/* Tensors layer by layer; one that equals that of the first layer, as rows at the input do, is null. */
static json_t *params(const pe_run_config *c, const pe_run_result *r)
{
    json_t   *array     = json_array();
    const int per_layer = r->param_count / (int)c->layers;
    for (int i = 0; i < r->param_count; i++) {
        const posenc_tensor *t = &r->params[i].tensor;
        if (i >= per_layer && is_copy(t, &r->params[i % per_layer].tensor)) {
            json_array_append_new(array, json_null());
            continue;
        }
        json_t *shape = json_array();
        for (int32_t a = 0; a < t->ndim; a++)
            json_array_append_new(shape, json_integer(t->shape[a]));
        json_array_append_new(array, json_pack("{s:s, s:o, s:o}", "name", r->params[i].name, "shape", shape,
                                               "data", floats(t->data, count_of(t))));
    }
    return array;
}

json_t *pe_record_run(const json_t *identity)
{
    char  name[PE_RUN_NAME];
    char *text = pe_record_text(identity);
    if (!text)
        return NULL;
    pe_run_name(name, text);
    free(text);
    return json_string(name);
}

static json_t *record_json(const char *label, const pe_run_config *c, const pe_run_result *r)
{
    json_t *identity = identity_json(c);
    json_t *json =
        json_pack("{s:s, s:o, s:s, s:I, s:b, s:o, s:{s:o, s:o}}", "format", PE_RECORD_FORMAT, "run",
                  pe_record_run(identity), "encoding", label, "seed", (json_int_t)c->seed, "diverged",
                  r->diverged, "loss", bucket_losses(c, r), "token_position_cosine", "before",
                  pe_record_number(r->cosine_before), "after", pe_record_number(r->cosine_after));
    json_object_set_new(json, "time",
                        json_pack("{s:f, s:f, s:f, s:s}", "train_seconds", r->train_seconds, "eval_seconds",
                                  r->eval_seconds, "bytes_per_second", r->tokens_per_second, "instructions",
                                  posenc_isa()));
    json_object_set_new(json, "parameters", json_integer(r->parameters));
    json_object_set_new(json, "encoding_parameters", json_integer(r->encoding_parameters));
    json_object_set_new(json, "config", identity);
    json_object_set_new(json, "curve", curve(c, r));
    json_object_set_new(json, "training", training(c, r));
    json_object_set_new(json, "window_loss", floats(r->window_loss, c->windows * PE_REACH * c->L));
    json_object_set_new(json, "params", params(c, r));
    json_object_set_new(json, "trained", floats(r->trained, pe_trained_count(c)));
    if (c->sequel)
        json_object_set_new(json, "sequel", floats(r->sequel, c->sequel->count));
    return json;
}

/* {"check":"0123456789abcdef", and the rest of an object. NULL without memory. */
static char *with_check(const char *object)
{
    const char  *rest = object + 1;
    const size_t size = strlen(rest) + sizeof CHECK_BEGIN + 2 * sizeof(uint64_t) + sizeof CHECK_END;
    char        *text = malloc(size);
    if (text)
        snprintf(text, size, CHECK_BEGIN "%016" PRIx64 CHECK_END "%s", pe_fingerprint(rest, strlen(rest)),
                 rest);
    return text;
}

static int has_check(const char *line)
{
    uint64_t     stated;
    int          end = 0;
    const size_t n   = strlen(CHECK_BEGIN) + 2 * sizeof stated + strlen(CHECK_END);
    if (strlen(line) <= n || sscanf(line, CHECK_BEGIN "%16" SCNx64 CHECK_END "%n", &stated, &end) != 1)
        return 0;
    return (size_t)end == n && stated == pe_fingerprint(line + n, strlen(line + n));
}

posenc_status pe_record_seal(char **line, json_t *json, const char *label, posenc_error *err)
{
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)) : NULL;
    *line      = text ? with_check(text) : NULL;
    json_decref(json);
    free(text);
    return *line ? POSENC_OK
                 : pe_train_fail(err, POSENC_MEMORY, "%.60s: no memory to write its run as a line", label);
}

posenc_status pe_record_write(char **line, const char *label, const pe_run_config *config,
                              const pe_run_result *result, posenc_error *err)
{
    return pe_record_seal(line, record_json(label, config, result), label, err);
}

/* ---------------------------------------------------------------- reading ------------------- */

posenc_status pe_record_damaged(posenc_error *err, const char *what)
{
    return pe_train_fail(err, POSENC_FORMAT, "it is no whole line of a finished run (%s)", what);
}

json_t *pe_record_open(const char *line, posenc_error *err)
{
    json_t     *json   = has_check(line) ? json_loads(line, JSON_REJECT_DUPLICATES, NULL) : NULL;
    const char *format = json_string_value(json_object_get(json, "format"));
    if (json && format && !strcmp(format, PE_RECORD_FORMAT))
        return json;
    pe_record_damaged(err, json ? "its format is another" : "its bytes are not those that were written");
    json_decref(json);
    return NULL;
}

posenc_status pe_record_head_read(pe_record_head *head, const char *line, posenc_error *err)
{
    json_t *json = pe_record_open(line, err);
    *head        = (pe_record_head){0};
    if (!json)
        return POSENC_FORMAT;
    const char *label = json_string_value(json_object_get(json, "encoding"));
    head->identity    = pe_record_text(json_object_get(json, "config"));
    head->label       = label ? strdup(label) : NULL;
    json_decref(json);
    if (head->identity && head->label)
        return POSENC_OK;
    pe_record_head_free(head);
    return pe_record_damaged(err, "it does not say which run it is of");
}

void pe_record_head_free(pe_record_head *head)
{
    free(head->identity);
    free(head->label);
    *head = (pe_record_head){0};
}

double pe_record_real(const json_t *json, const char *key)
{
    const json_t *value = json_object_get(json, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static int read_floats(float *x, int64_t n, const json_t *json)
{
    return json_is_string(json) && pe_base64_read(x, n, json_string_value(json), json_string_length(json));
}

static int read_training(pe_run_result *r, const pe_run_config *c, const json_t *array)
{
    if (json_array_size(array) != (size_t)c->steps)
        return 0;
    for (int64_t i = 0; i < c->steps; i++) {
        const json_t *value = json_array_get(array, (size_t)i);
        r->train_loss[i]    = json_is_number(value) ? (float)json_number_value(value) : NAN;
    }
    return 1;
}

/* Shape and memory of a tensor; -1 if there is none such, 0 without memory. */
static int param_create(pe_run_param *p, const char *name, const json_t *shape)
{
    int64_t   sizes[POSENC_MAX_DIMS];
    size_t    count = 1;
    const int ndim  = (int)json_array_size(shape);
    if (!name || !json_is_array(shape) || ndim > POSENC_MAX_DIMS)
        return -1;
    for (int a = 0; a < ndim; a++) {
        sizes[a] = json_integer_value(json_array_get(shape, (size_t)a));
        if (sizes[a] < 0 || (sizes[a] > 0 && count > SIZE_MAX / 8 / (size_t)sizes[a]))
            return -1;
        count *= (size_t)sizes[a];
    }
    p->name   = strdup(name);
    p->tensor = posenc_tensor_contiguous(malloc(count * sizeof(float) + 1), POSENC_F32, ndim, sizes);
    return p->name && p->tensor.data;
}

/* A copy of what the first layer has. */
static int param_copy(pe_run_param *p, const pe_run_param *first)
{
    const size_t bytes = (size_t)count_of(&first->tensor) * sizeof(float);
    p->name            = strdup(first->name);
    p->tensor          = first->tensor;
    p->tensor.data     = malloc(bytes + 1);
    if (!p->name || !p->tensor.data)
        return 0;
    memcpy(p->tensor.data, first->tensor.data, bytes);
    return 1;
}

/* 1, -1 if it is not what was written, 0 without memory. */
static int read_params(pe_run_result *r, const pe_run_config *c, const json_t *array)
{
    const int count = (int)json_array_size(array), per_layer = count / (int)c->layers;
    if (!json_is_array(array) || count % c->layers)
        return -1;
    r->params = calloc((size_t)count + 1, sizeof *r->params);
    for (int i = 0; r->params && i < count; i++) {
        const json_t *one = json_array_get(array, (size_t)i);
        pe_run_param *p   = &r->params[i];
        r->param_count++;
        if (json_is_null(one) && i < per_layer)
            return -1;
        const int made = json_is_null(one) ? param_copy(p, &r->params[i % per_layer])
                                           : param_create(p, json_string_value(json_object_get(one, "name")),
                                                          json_object_get(one, "shape"));
        if (made != 1)
            return made;
        if (!json_is_null(one) &&
            !read_floats(p->tensor.data, count_of(&p->tensor), json_object_get(one, "data")))
            return -1;
    }
    return r->params != NULL;
}

static void read_numbers(pe_run_result *r, const json_t *json)
{
    const json_t *time     = json_object_get(json, "time"),
                 *cosine   = json_object_get(json, "token_position_cosine");
    r->diverged            = json_is_true(json_object_get(json, "diverged"));
    r->parameters          = json_integer_value(json_object_get(json, "parameters"));
    r->encoding_parameters = json_integer_value(json_object_get(json, "encoding_parameters"));
    r->cosine_before       = pe_record_real(cosine, "before");
    r->cosine_after        = pe_record_real(cosine, "after");
    r->train_seconds       = pe_record_real(time, "train_seconds");
    r->eval_seconds        = pe_record_real(time, "eval_seconds");
    r->tokens_per_second   = pe_record_real(time, "bytes_per_second");
}

/* What came after training: measures, and numbers of the sequel. 1, -1 if they are not there, 0 without
   memory. */
static int read_after(pe_run_result *r, const pe_run_config *c, const json_t *json)
{
    const int64_t trained = pe_trained_count(c), sequel = c->sequel ? c->sequel->count : 0;
    r->trained = malloc((size_t)trained * sizeof *r->trained);
    r->sequel  = c->sequel ? malloc((size_t)sequel * sizeof *r->sequel) : NULL;
    if (!r->trained || (c->sequel && !r->sequel))
        return 0;
    return read_floats(r->trained, trained, json_object_get(json, "trained")) &&
                   (!c->sequel || read_floats(r->sequel, sequel, json_object_get(json, "sequel")))
               ? 1
               : -1;
}

static posenc_status read_all(pe_run_result *r, const pe_run_config *c, const json_t *json, posenc_error *err)
{
    const int64_t losses = c->windows * PE_REACH * c->L;
    r->train_loss        = malloc((size_t)c->steps * sizeof *r->train_loss);
    r->window_loss       = malloc((size_t)losses * sizeof *r->window_loss);
    if (!r->train_loss || !r->window_loss)
        return pe_train_fail(err, POSENC_MEMORY, "no memory for the losses of a run");
    read_numbers(r, json);
    if (!read_training(r, c, json_object_get(json, "training")))
        return pe_record_damaged(err, "its training curve has another length");
    if (!read_floats(r->window_loss, losses, json_object_get(json, "window_loss")))
        return pe_record_damaged(err, "its held-out losses are not there");
    const int made = read_params(r, c, json_object_get(json, "params"));
    const int more = made == 1 ? read_after(r, c, json) : made;
    if (!made || !more)
        return pe_train_fail(err, POSENC_MEMORY, "no memory for the parameters of a run");
    if (made == 1 && more < 0)
        return pe_record_damaged(err, "what was measured after training is not there");
    return made < 0 ? pe_record_damaged(err, "its parameters are not there") : POSENC_OK;
}

posenc_status pe_record_read(pe_run_result *result, const pe_run_config *config, const char *line,
                             posenc_error *err)
{
    *result      = (pe_run_result){0};
    json_t *json = pe_record_open(line, err);
    if (!json)
        return POSENC_FORMAT;
    const posenc_status status = read_all(result, config, json, err);
    json_decref(json);
    return status;
}
