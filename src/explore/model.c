/* SPDX-License-Identifier: MIT */
/* model.c: a config.json that was dropped on the page, read as `posenc inspect` reads it. Contract:
 * explore.h. */
#include "explore/explore.h"

#include <posenc/files.h>
#include <string.h>

#ifdef PE_EXPLORE_FILES
enum { MOST_GROUPS = 64 };

/* The last one, and its groups with those of its parts: their numbers are asked for later. */
static posenc_model             *model;
static const posenc_model_group *groups[MOST_GROUPS];
static int                       group_count;

static void put_group(pe_explore_text *t, const posenc_model_group *g)
{
    pe_explore_put(t, "{\"index\": %d, \"spec\": ", group_count);
    pe_explore_string(t, g->spec);
    pe_explore_put(t, ", \"dim\": %lld, \"heads\": %lld, \"rules\": {", (long long)g->dims.D,
                   (long long)g->dims.H);
    for (int k = 0; k < g->fact_count; k++) {
        pe_explore_put(t, k ? ", " : "");
        pe_explore_string(t, g->facts[k].name);
        pe_explore_put(t, ": ");
        pe_explore_string(t, g->facts[k].rule);
    }
    pe_explore_put(t, "}}");
    groups[group_count++] = g;
}

static void put_model(pe_explore_text *t, const posenc_model *m)
{
    const posenc_model_info *info = posenc_model_describe(m);
    pe_explore_put(t, "\"groups\": [");
    for (int i = 0; i < info->group_count && group_count < MOST_GROUPS; i++) {
        pe_explore_put(t, i ? ", " : "");
        put_group(t, posenc_model_group_at(m, i));
    }
    pe_explore_put(t, "], \"warnings\": [");
    for (int i = 0; i < info->warning_count; i++) {
        pe_explore_put(t, i ? ", " : "");
        pe_explore_string(t, posenc_model_warning_at(m, i)->sentence);
    }
    pe_explore_put(t, "], \"towers\": [");
    for (int i = 0; i < info->tower_count; i++) {
        pe_explore_put(t, i ? ", {" : "{");
        put_model(t, posenc_model_tower(m, i));
        pe_explore_put(t, "}");
    }
    pe_explore_put(t, "]");
}

/* {"model": what inspect --json prints, "groups": [{"index", "spec", "dim", "heads", "rules": {fact: rule}}],
   "warnings": [sentence], "towers": [the same of each part]} */
posenc_status pe_explore_model(pe_explore_text *t, const char *json, posenc_error *err)
{
    char         *text;
    posenc_model *read;
    posenc_status status = posenc_model_read_memory(&read, json, strlen(json), "the file", err);
    if (status)
        return status;
    posenc_model_free(model);
    model       = read;
    group_count = 0;
    if ((status = posenc_model_json(&text, model, -1, err)))
        return status;
    pe_explore_put(t, "{\"model\": %s, ", text);
    posenc_model_json_free(text);
    put_model(t, model);
    pe_explore_put(t, "}");
    return POSENC_OK;
}

int pe_explore_held(pe_explore_part *p, int group)
{
    const posenc_model_group *g       = group >= 0 && group < group_count ? groups[group] : NULL;
    int                       trained = 0;
    for (int i = 0; g && i < posenc_param_count(p->e); i++)
        for (int k = 0; k < g->param_count; k++) {
            const posenc_tensor *from = &g->params[k].tensor, *to = &p->params[i];
            int64_t              n = 1, m = 1;
            for (int a = 0; a < from->ndim; a++)
                n *= from->shape[a];
            for (int a = 0; a < to->ndim; a++)
                m *= to->shape[a];
            if (n == m && !strcmp(g->params[k].name, posenc_param_name(p->e, i))) {
                memcpy(to->data, from->data, (size_t)n * sizeof(double));
                trained += p->varied[i];
                p->varied[i] = 0;
            }
        }
    return trained;
}
#else
posenc_status pe_explore_model(pe_explore_text *t, const char *json, posenc_error *err)
{
    static const char sentence[] =
        "this page was made without jansson and reads no config.json; make explore fetches it";
    memcpy(err->message, sentence, sizeof sentence);
    return err->status = POSENC_ERROR_UNSUPPORTED;
}

int pe_explore_held(pe_explore_part *p, int group)
{
    return 0;
}
#endif
