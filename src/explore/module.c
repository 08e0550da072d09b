/* SPDX-License-Identifier: MIT */
/*
 * module.c: what the explorer's page asks of the library, compiled to WebAssembly
 *
 * The page draws and computes nothing: it sends a request, lines "name=value", and gets JSON in which arrays
 * are {"at": address, "n": count} of float64 in this module's memory. They stay until the next request. What
 * is drawn, and its CSV, are those of `posenc plot` (plot/plot.h) with the same names and the same defaults.
 *
 *   explore_offers    of SPEC: {"spec", "learns", "tokens": [{"name", "meaning"}],
 *                     "kinds": [{"kind", "place", "length", "dim", "grid"}]}
 *   explore_picture   a picture of one or two SPECs: a figure (pe_explore_figure)
 *   explore_attend    scores and weights of the words of a sentence: {"figure", "changes": a number per SPEC}
 *   explore_registry  every encoding with its settings, and those that all have
 *   explore_model     what inspect says of a config.json, which is the whole request
 *   explore_csv       the numbers of the figure that was made last
 *
 * All return text that lives until the next call; {"error": sentence} where something is wrong.
 */
#include "explore/explore.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHOSEN = 64 };

static struct {
    pe_explore_part     parts[PE_EXPLORE_PARTS];
    int                 count;
    pe_picture         *joint;
    const pe_figure    *figure;
    pe_explore_sentence sentence;
    pe_explore_words    words;
    int64_t             chosen[MOST_CHOSEN];
    char               *answer;
} now;

/* What the module exports: cmake/explore.cmake names them. */
const char *explore_picture(const char *request);
const char *explore_offers(const char *request);
const char *explore_attend(const char *request);
const char *explore_model(const char *json);
const char *explore_registry(void);
const char *explore_csv(void);
char       *explore_memory(size_t n);
void        explore_free(char *memory);

/* ---------------------------------------------------------------- requests ------------------ */

static void forget(void)
{
    pe_picture_free(now.joint);
    for (int i = 0; i < PE_EXPLORE_PARTS; i++)
        pe_explore_part_free(&now.parts[i]);
    pe_explore_sentence_free(&now.sentence);
    free(now.answer);
    memset(&now, 0, sizeof now);
}

static const char *answer(pe_explore_text *text)
{
    free(now.answer);
    return now.answer = pe_explore_finish(text);
}

static const char *refuse(const posenc_error *err)
{
    pe_explore_text text = {0};
    pe_explore_put(&text, "{\"error\": ");
    pe_explore_string(&text, err->message);
    pe_explore_put(&text, "}");
    return answer(&text);
}

/* One or two SPECs, and the words. */
static posenc_status read_parts(const char *request, posenc_error *err)
{
    char          second[PE_EXPLORE_SPEC];
    posenc_status status = POSENC_OK;
    forget();
    pe_explore_value(request, "words", now.words.text, sizeof now.words.text);
    for (char *at = strtok(now.words.text, " \t"); at && now.words.count < PE_EXPLORE_WORDS;
         at       = strtok(NULL, " \t"))
        now.words.word[now.words.count++] = at;
    now.count = *pe_explore_value(request, "spec2", second, sizeof second) ? 2 : 1;
    for (int i = 0; i < now.count && !status; i++)
        status = pe_explore_part_read(&now.parts[i], request, i, err);
    return status;
}

/* ---------------------------------------------------------------- pictures ------------------ */

/* Channels, pairs or points: whole numbers with anything between. */
static int read_chosen(const char *request)
{
    char text[256];
    int  n = 0;
    for (const char *at = pe_explore_value(request, "chosen", text, sizeof text); *at && n < MOST_CHOSEN;) {
        char *end;
        at += strcspn(at, "0123456789");
        if (*at)
            now.chosen[n++] = strtoll(at, &end, 10), at = end;
    }
    return n;
}

/* What the request says; the rest is what the kind of picture has by itself. */
static void read_data(pe_picture_data *d, const char *request, const char *kind)
{
    const int is_words = !strcmp(kind, "words") && now.words.count;
    d->length          = is_words ? now.words.count : pe_explore_whole(request, "length", 0);
    d->rows            = pe_explore_whole(request, "rows", 0);
    d->cols            = pe_explore_whole(request, "cols", 0);
    d->dims.H          = pe_explore_whole(request, "heads", 0);
    d->dims.D          = pe_explore_whole(request, "dim", 0);
    d->draws           = pe_explore_whole(request, "draws", 0);
    d->seed            = (uint64_t)pe_explore_whole(request, "seed", 1);
    d->products        = pe_explore_whole(request, "products", 0) != 0;
    d->transposed      = pe_explore_whole(request, "transpose", 0) != 0;
    d->binary_counter  = pe_explore_whole(request, "counter", 0) != 0;
    d->words           = is_words ? now.words.word : NULL;
    d->chosen          = now.chosen;
    d->chosen_count    = read_chosen(request);
}

/* Tables are made for `trained` positions, where it is said: what lies beyond is what breaks. */
static void cut_tables(pe_picture_data *d, const char *request)
{
    const int64_t trained = pe_explore_whole(request, "trained", 0);
    if (trained < 2 || d->rows)
        return;
    d->dims.L     = trained;
    d->mark       = (double)trained;
    d->mark_label = "trained for";
}

static posenc_status make_part(pe_explore_part *p, const char *request, posenc_error *err)
{
    char          kind[PE_KIND_LENGTH], settings[PE_SETTINGS], spec[PE_EXPLORE_SPEC];
    posenc_status status;
    if (!pe_picture_offered(p->e, pe_explore_value(request, "kind", kind, sizeof kind), &p->offer))
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT, "%s has no picture \"%s\"",
                            posenc_encoding_spec(p->e), kind);
    read_data(&p->data, request, kind);
    if (p->data.dims.D < 0 || p->data.dims.H < 0 || p->data.length < 0 || p->data.rows < 0 ||
        p->data.cols < 0 || p->data.length > pe_picture_size_of(kind)->longest)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT,
                            "sizes are at least 1, and at most %lld positions are drawn",
                            (long long)pe_picture_size_of(kind)->longest);
    pe_picture_fit(p->e, &p->offer, &p->data, settings);
    p->data.binary_counter &= !p->data.rows;
    if (*settings) {
        posenc_encoding *made;
        snprintf(spec, sizeof spec, "%s", posenc_encoding_spec(p->e));
        if ((status = posenc_encoding_create(&made, spec, settings, err)))
            return status;
        posenc_encoding_free(p->e);
        p->e = made;
    }
    cut_tables(&p->data, request);
    if ((status = pe_explore_part_params(p, &p->data.dims, (int64_t)p->data.seed, err)))
        return status;
    return pe_picture_create_varied(&p->picture, p->e, &p->offer, &p->data, p->varied, p->origin,
                                    sizeof p->origin, err);
}

const char *explore_picture(const char *request)
{
    posenc_error    err;
    pe_explore_text text   = {0};
    posenc_status   status = read_parts(request, &err);
    for (int i = 0; i < now.count && !status; i++)
        status = make_part(&now.parts[i], request, &err);
    pe_picture *const pictures[] = {now.parts[0].picture, now.parts[1].picture};
    if (!status && now.count > 1)
        status = pe_picture_join(&now.joint, pictures, now.count, &err);
    if (status)
        return refuse(&err);
    now.figure = pe_picture_figure(now.joint ? now.joint : pictures[0]);
    pe_explore_figure(&text, now.figure);
    return answer(&text);
}

const char *explore_attend(const char *request)
{
    posenc_error    err;
    pe_explore_text text   = {0};
    posenc_status   status = read_parts(request, &err);
    if (!status)
        status = pe_explore_sentence_make(&now.sentence, now.parts, now.count, &now.words, request, &err);
    if (status)
        return refuse(&err);
    now.figure = &now.sentence.figure;
    pe_explore_put(&text, "{\"figure\": ");
    pe_explore_figure(&text, now.figure);
    pe_explore_put(&text, ", \"changes\": [");
    for (int i = 0; i < now.count; i++)
        pe_explore_put(&text, "%s%.17g", i ? ", " : "", now.sentence.changes[i]);
    pe_explore_put(&text, "]}");
    return answer(&text);
}

const char *explore_model(const char *json)
{
    posenc_error    err;
    pe_explore_text text = {0};
    forget();
    return pe_explore_model(&text, json, &err) ? refuse(&err) : answer(&text);
}

/* ---------------------------------------------------------------- what there is ------------- */

static void put_member(pe_explore_text *t, const char *name, const char *text)
{
    pe_explore_put(t, ", \"%s\": ", name);
    pe_explore_string(t, text);
}

static void put_kinds(pe_explore_text *t, const posenc_encoding *e)
{
    pe_offer  offers[PE_MOST_OFFERS];
    const int count = pe_picture_offers(e, offers);
    pe_explore_put(t, ", \"kinds\": [");
    for (int i = 0; i < count; i++) {
        const pe_picture_size *size = pe_picture_size_of(offers[i].kind);
        pe_explore_put(
            t, "%s{\"kind\": \"%s\", \"place\": \"%s\", \"length\": %lld, \"dim\": %lld, \"grid\": %s}",
            i ? ", " : "", offers[i].kind, posenc_place_name(offers[i].place), (long long)size->length,
            (long long)size->dim,
            pe_picture_wants_grid(e, &offers[i], size->length, size->dim) ? "true" : "false");
    }
    pe_explore_put(t, "]");
}

const char *explore_offers(const char *request)
{
    posenc_error    err;
    pe_explore_text t      = {0};
    int             learns = 0;
    forget();
    if (pe_explore_part_read(&now.parts[0], request, 0, &err))
        return refuse(&err);
    const posenc_encoding *e = now.parts[0].e;
    for (int i = 0; i < posenc_param_count(e); i++)
        learns |= posenc_param_trainable(e, i);
    pe_explore_put(&t, "{\"learns\": %s", learns ? "true" : "false");
    put_member(&t, "spec", posenc_encoding_spec(e));
    pe_explore_put(&t, ", \"tokens\": [");
    for (int i = 0; i < posenc_token_count(e); i++) {
        pe_explore_put(&t, "%s{\"name\": \"%s\"", i ? ", " : "", posenc_token_name(e, i));
        put_member(&t, "meaning", posenc_token_describe(e, i)->meaning);
        pe_explore_put(&t, "}");
    }
    pe_explore_put(&t, "]");
    put_kinds(&t, e);
    pe_explore_put(&t, "}");
    return answer(&t);
}

static void put_settings(pe_explore_text *t, const posenc_setting_info *settings, int count)
{
    pe_explore_put(t, ", \"settings\": [");
    for (int i = 0; i < count; i++) {
        pe_explore_put(t, "%s{\"name\": ", i ? ", " : "");
        pe_explore_string(t, settings[i].name);
        put_member(t, "type", settings[i].type), put_member(t, "default", settings[i].default_value);
        put_member(t, "range", settings[i].range), put_member(t, "meaning", settings[i].meaning);
        pe_explore_put(t, "}");
    }
    pe_explore_put(t, "]");
}

/* The colours of figures: [[r, g, b], ...] of magnitudes, and of signed values. */
static void put_scales(pe_explore_text *t)
{
    pe_explore_put(t, ", \"scales\": [");
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const pe_rgb *stops;
        const int     n = pe_colours_stops(is_signed, &stops);
        for (int i = 0; i < n; i++)
            pe_explore_put(t, "%s[%d, %d, %d]",
                           i           ? ", "
                           : is_signed ? ", ["
                                       : "[",
                           stops[i].r, stops[i].g, stops[i].b);
        pe_explore_put(t, "]");
    }
    pe_explore_put(t, "]");
}

/* Every encoding: name, place, title, formula and what its letters mean, models, settings. */
const char *explore_registry(void)
{
    pe_explore_text            t = {0};
    const posenc_setting_info *common;
    const int                  n = posenc_common_settings(&common);
    forget();
    pe_explore_put(&t, "{\"version\": \"%s\"", posenc_version());
    put_scales(&t);
    put_settings(&t, common, n);
    pe_explore_put(&t, ", \"encodings\": [");
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const posenc_encoding_info *e = posenc_encoding_info_at(i);
        pe_explore_put(&t, "%s{\"place\": \"%s\"", i ? ", " : "", posenc_place_name(e->place));
        put_member(&t, "name", e->name), put_member(&t, "title", e->title);
        put_member(&t, "formula", e->formula), put_member(&t, "symbols", e->symbols);
        put_member(&t, "models", e->models), put_member(&t, "beyond", e->beyond);
        put_member(&t, "paper", e->paper), put_member(&t, "pictures", e->pictures);
        put_settings(&t, e->settings, e->setting_count);
        pe_explore_put(&t, "}");
    }
    pe_explore_put(&t, "]}");
    return answer(&t);
}

const char *explore_csv(void)
{
    char  *text = NULL;
    size_t n;
    FILE  *to = open_memstream(&text, &n);
    if (!to || !now.figure) {
        if (to)
            fclose(to);
        free(text);
        return "";
    }
    pe_numbers_write(to, now.figure);
    fclose(to);
    free(now.answer);
    return now.answer = text;
}

/* Memory for a request of n bytes, the page's to free. */
char *explore_memory(size_t n)
{
    return malloc(n);
}

void explore_free(char *memory)
{
    free(memory);
}
