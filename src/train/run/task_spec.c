/* SPDX-License-Identifier: MIT */
/*
 * task_spec.c: what an encoding is called for a task: its settings, and on a grid its rows and columns
 *
 * A model of a task has another length than that of the text, perhaps another mask, and few symbols, so the
 * settings that rooms recommend for a small model are asked for again. On a grid an encoding must be told how
 * large it is. Rooms have different words for it (`shape`, `window` ...); the table below knows these words,
 * and no encoding. An encoding without any of them stands on a line: it is not asked about grids.
 */
#include "train/fail.h"
#include "train/model/model.h"
#include "train/run/run.h"

#include <string.h>

/* Which grid a setting is about: the largest that is tested, or that of training. */
typedef enum grid_of { TESTED, TRAINED } grid_of;

static const struct {
    const char *setting, *format;
    grid_of     of;
} words[] = {{"height", "%lld", TESTED},       {"width", "%lld", TESTED},
             {"shape", "%lldx%lld", TESTED},   {"window", "%lldx%lld", TESTED},
             {"grid", "%lldx%lld", TESTED},    {"pretrained_window", "%lldx%lld", TRAINED},
             {"grid_in", "%lldx%lld", TESTED}, {"grid_out", "%lldx%lld", TESTED}};

static int has_setting(const posenc_encoding_info *info, const char *name)
{
    for (int i = 0; info && i < info->setting_count; i++)
        if (!strcmp(info->settings[i].name, name))
            return 1;
    return 0;
}

/* The settings of a grid that an encoding has: "height=16:width=16". */
static void write_grid(char *text, size_t n, const posenc_encoding_info *info, const int64_t side[2])
{
    pe_spec_text t = pe_spec_begin(text, n);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char          value[64], pair[128];
        const int64_t s = side[words[i].of];
        if (!has_setting(info, words[i].setting))
            continue;
        snprintf(value, sizeof value, words[i].format, (long long)s, (long long)s);
        snprintf(pair, sizeof pair, "%s%s=%s", text[0] ? ":" : "", words[i].setting, value);
        pe_spec_put(&t, pair, strlen(pair));
    }
}

/* spec, whose parts know rows and columns. */
static posenc_status give_grid(char *to, size_t n, const char *spec, const int64_t side[2], posenc_error *err)
{
    pe_spec_text t     = pe_spec_begin(to, n);
    pe_spec_part p     = pe_spec_first(spec);
    int          knows = 0;
    do {
        char grid[256];
        write_grid(grid, sizeof grid, posenc_encoding_find(p.name), side);
        pe_spec_put_with(&t, &p, grid, ":");
        knows |= grid[0] != 0;
    } while (pe_spec_further(&t, &p));
    if (t.is_full || knows)
        return pe_spec_end(&t, spec, err);
    return pe_train_fail(err, POSENC_UNSUPPORTED,
                         "task: its positions stand on a line, and cells of a grid have rows and columns");
}

posenc_status pe_task_spec(char *complete, size_t n, pe_entry *entry, const char *label,
                           const pe_run_config *config, posenc_error *err)
{
    const pe_task        *task    = config->task;
    const pe_model_config model   = pe_run_model_config(config);
    const posenc_dims     dims    = pe_model_dims(&model, 1, model.longest);
    const int             mask    = task->full ? POSENC_MASK_NONE : POSENC_MASK_CAUSAL;
    const int64_t         side[2] = {pe_task_largest(task, config->longest), task->L}; /* ORDER grid_of */
    char                  plain[PE_LONGEST_SPEC], placed[PE_LONGEST_SPEC];
    posenc_status         status = pe_entry_take(plain, sizeof plain, entry, label, err);
    if (!status && entry->inject == PE_IN_BLOCKS)
        status = pe_entry_give(plain, "states", config->layers, err);
    if (!status)
        status = pe_entry_give(plain, "vocab", task->symbols, err);
    if (!status && task->grid)
        status = give_grid(placed, sizeof placed, plain, side, err);
    if (status)
        return status;
    return pe_spec_complete(complete, n, task->grid ? placed : plain, &dims, mask, err);
}
