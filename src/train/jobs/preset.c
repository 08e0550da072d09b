/* SPDX-License-Identifier: MIT */
/*
 * preset.c: the presets of `posenc compare`: data, compiled in: the tool finds them wherever it is
 *
 * Numbers are those of docs/experiments.md; step counts are fixed and never adapted to the clock, so that the
 * same command gives the same table on any machine. `default` has the encodings of `quick` and four more;
 * `full` all encodings that a causal model can use, and combinations; `huge` a larger model, and settings of
 * 2024 to 2026 that `full` has no time for. Tasks are {name,
 * steps, seeds} (task.h); extension: extension.h; rates: trial.h; stability: level.h. `huge` is meant for
 * several machines.
 */
#include "train/jobs/preset.h"

#include "base/status.h"
#include "train/model/spec.h"
#include "train/run/stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// clang-format off
#define SMALL_MODEL \
    .L = 64, .reach = PE_REACH, .d_model = 64, .layers = 3, .heads = 4, .batch = 16, .warmup = 20, \
    .learning_rate = 0.024, .weight_decay = 0.1, .clip = 1, .windows = 96, .tune_steps = 100, .claims = 1, \
    .stability = "brief", SMALL_TASKS(512, PE_TASK_4)
#define SMALL_RATES "0.012,0.024,0.048"
#define SMALL_TASKS(n, most) .task_layers = 2, .task_batch = 64, .sequences = n, .longest = most
#define CAUSAL \
    "nope,learned,sinusoidal,rope,alibi,t5,transformer_xl,kerple_log,fire,shaw,cope,kerple_power,sandwich," \
    "huang_m4,xlnet,deberta,tupe,urpe,xpos,relative_table,hierarchical,floater,complex_order"
#define NEWER "fox,inkling"
#define NEWER_STILL \
    "pope,fox+rope,rope[q_phase=-1.5707963267948966:phase_heads=second_half],nope[temperature=ssmax]," \
    "rope[temperature=ssmax],rope[sink=head],rope[sink=token],rope[window=64]/nope," \
    "rope[window=128]/nope[temperature=ssmax]"
#define COMBINATIONS "rope+alibi,rope+t5,sinusoidal+alibi,rope+urpe,kerple_log+urpe"
#define GRIDS \
    "sinusoidal2d,sinusoidal2d[preset=wh_interleaved],sinusoidal2d[preset=mae]," \
    "sinusoidal2d[preset=mocov3],sinusoidal2d[preset=timm],sinusoidal2d[preset=big_vision]," \
    "sinusoidal_nd,absolute_distance,swin,swin_v2"

const pe_preset pe_presets[PE_PRESETS] = {
    {.name = "quick", .minutes = "4 minutes",
     .encodings = "nope,learned,sinusoidal,rope,alibi,t5,transformer_xl", .steps = 2400, .seeds = 1,
     .tasks = {{"posid", 200, 1}, {"order", 300, 1}, {"shift", 200, 1}}, SMALL_MODEL},
    {.name = "default", .minutes = "10 minutes",
     .encodings = "nope,learned,sinusoidal,rope,alibi,t5,transformer_xl,kerple_log,fire,shaw,fox",
     .steps = 2400, .seeds = 1,
     .tasks = {{"posid", 200, 1}, {"order", 300, 1}, {"shift", 300, 2}, {"needle", 300, 2}},
     .extension = "brief", .rates = SMALL_RATES, SMALL_MODEL},
    {.name = "full", .minutes = "85 minutes",
     .encodings = CAUSAL "," NEWER "," COMBINATIONS, .grid_encodings = GRIDS, .steps = 2400, .seeds = 3,
     .tasks = {{"posid", 200, 2}, {"order", 300, 2}, {"shift", 600, 2}, {"needle", 600, 2},
               {"copy", 600, 2}, {"reverse", 600, 2}, {"sort", 600, 2}, {"count", 600, 2},
               {"parity", 600, 2}, {"grid", 600, 2}},
     .extension = "full", .rates = SMALL_RATES, SMALL_MODEL},
    {.name = "huge", .minutes = "130 hours",
     .encodings = CAUSAL "," NEWER "," NEWER_STILL "," COMBINATIONS, .grid_encodings = GRIDS,
     .steps = 4000, .seeds = 3, .L = 256,
     .reach = PE_REACH, .d_model = 128, .layers = 4, .heads = 4, .batch = 32, .warmup = 20,
     .learning_rate = 0.024, .weight_decay = 0.1, .clip = 1, .windows = 96, .extension = "full",
     .tune_steps = 100, .claims = 1, .stability = "brief",
     .tasks = {{"posid", 4000, 3}, {"order", 4000, 3}, {"shift", 4000, 3}, {"needle", 4000, 3},
               {"copy", 4000, 3}, {"reverse", 4000, 3}, {"sort", 4000, 3}, {"count", 4000, 3},
               {"parity", 4000, 3}, {"grid", 4000, 3}, {"addition", 4000, 3}, {"summation", 4000, 3},
               {"lego", 4000, 3}, {"fflm", 4000, 3}, {"fflm_sparse", 4000, 3}, {"fflm_dense", 4000, 3},
               {"indirect", 4000, 3}, {"mqrar_1", 4000, 3}, {"mqrar_2", 4000, 3}, {"mqrar_3", 4000, 3},
               {"mqrar_4", 4000, 3}},
     SMALL_TASKS(1024, PE_TASK_8)},
};
// clang-format on

enum { NAME = 64 };

const pe_preset *pe_preset_find(const char *name)
{
    for (int i = 0; i < PE_PRESETS; i++)
        if (!strcmp(pe_presets[i].name, name))
            return &pe_presets[i];
    return NULL;
}

/* How many SPECs there are in a list. */
static int count_specs(const char *list)
{
    char          spec[PE_LONGEST_SPEC];
    posenc_status status = POSENC_OK;
    int           count  = 0;
    for (; list && !status; count++)
        list = pe_spec_next(spec, sizeof spec, list, &status, NULL);
    return count;
}

int64_t pe_preset_batch(int64_t batch, int64_t from, int64_t L)
{
    const int64_t n = batch * from / L;
    return n > 1 ? n : 1;
}

void pe_preset_describe(char *text, size_t n, const pe_preset *p)
{
    int tasks = 0;
    while (tasks < PE_MOST_TASKS && p->tasks[tasks].name)
        tasks++;
    snprintf(text, n, "%d encodings, %lld steps, L %lld, width %lld, %d tasks: %s", count_specs(p->encodings),
             (long long)p->steps, (long long)p->L, (long long)p->d_model, tasks,
             p->minutes ? p->minutes : "");
}

/* ---------------------------------------------------------------- words --------------------- */

static const char *const languages[] = {"en", "zh"};              /* ORDER pe_language */
static const char *const extents[]   = {"none", "brief", "full"}; /* ORDER pe_preset_extent */

enum { LANGUAGES = sizeof languages / sizeof *languages, EXTENTS = sizeof extents / sizeof *extents };

/* The number of a word, or -1. */
static int word_of(const char *const words[], int count, const char *word)
{
    while (--count >= 0 && strcmp(words[count], word) != 0)
        continue;
    return count;
}

posenc_status pe_preset_read_language(pe_language *language, const char *word, posenc_error *err)
{
    const int i = word_of(languages, LANGUAGES, word);
    *language   = i < 0 ? PE_ENGLISH : (pe_language)i;
    return i >= 0 ? POSENC_OK
                  : pe_fail(err, POSENC_ERROR_ARGUMENT, "lang: \"%.20s\" is not known; it must be en or zh",
                            word);
}

const char *pe_preset_language_code(pe_language language)
{
    return languages[language];
}

posenc_status pe_preset_read_extent(pe_preset_extent *extent, const char *word, posenc_error *err)
{
    const int i = word_of(extents, EXTENTS, word);
    *extent     = i < 0 ? PE_EXTENT_NONE : (pe_preset_extent)i;
    return i >= 0 ? POSENC_OK
                  : pe_fail(err, POSENC_ERROR_ARGUMENT,
                            "extension: \"%.40s\" is not known; it must be none, brief or full", word);
}

const char *pe_preset_extent_name(pe_preset_extent extent)
{
    return extents[extent];
}

/* ---------------------------------------------------------------- tasks --------------------- */

static posenc_status refuse_task(const char *name, posenc_error *err)
{
    char known[384] = "";
    for (int i = 0; i < PE_TASKS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 pe_tasks[i].name);
    return pe_fail(err, POSENC_ERROR_ARGUMENT, "tasks: there is no task \"%.40s\"; there are: %s; or none",
                   name, known);
}

static posenc_status add_task(const pe_task **tasks, int *count, const char *name, posenc_error *err)
{
    const pe_task *task = pe_task_find(name);
    if (!task)
        return refuse_task(name, err);
    for (int i = 0; i < *count; i++)
        if (tasks[i] == task)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "tasks: %s is named twice; give it once", name);
    tasks[(*count)++] = task;
    return POSENC_OK;
}

posenc_status pe_preset_read_tasks(const pe_task **tasks, int *count, const char *list, posenc_error *err)
{
    posenc_status status = POSENC_OK;
    *count               = 0;
    if (!strcmp(list, "none"))
        return POSENC_OK;
    for (;;) {
        const size_t n = strcspn(list, ",");
        char         name[NAME];
        snprintf(name, sizeof name, "%.*s", (int)(n < NAME ? n : NAME - 1), list);
        status = add_task(tasks, count, name, err);
        if (status || !list[n])
            return status;
        list += n + 1;
    }
}

posenc_status pe_preset_choose_tasks(const pe_task **tasks, int *count, const pe_compare_config *c,
                                     posenc_error *err)
{
    posenc_status status = POSENC_OK;
    *count               = 0;
    if (c->tasks)
        return pe_preset_read_tasks(tasks, count, c->tasks, err);
    for (int i = 0; i < PE_MOST_TASKS && c->preset.tasks[i].name && !status; i++)
        status = add_task(tasks, count, c->preset.tasks[i].name, err);
    return status;
}

/* ---------------------------------------------------------------- rates, stability ---------- */

#define HIGHEST_RATE 1000

static int ascending_rates(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

posenc_status pe_preset_read_rates(double *rates, int *count, const char *list, posenc_error *err)
{
    for (*count = 0;; list++) {
        char        *end;
        const double rate = strtod(list, &end);
        if (end == list || (*end && *end != ',') || !(rate > 0 && rate <= HIGHEST_RATE))
            return pe_fail(err, POSENC_ERROR_ARGUMENT,
                           "rates: \"%.20s\" is not a learning rate; each must be a number above 0, up to %d",
                           list, HIGHEST_RATE);
        if (*count == PE_MOST_RATES)
            return pe_fail(err, POSENC_ERROR_ARGUMENT, "rates: there are more than %d; give fewer",
                           PE_MOST_RATES);
        for (int i = 0; i < *count; i++)
            if (rates[i] == rate)
                return pe_fail(err, POSENC_ERROR_ARGUMENT, "rates: %g is named twice; give it once", rate);
        rates[(*count)++] = rate;
        list              = end;
        if (!*end)
            break;
    }
    qsort(rates, (size_t)*count, sizeof *rates, ascending_rates);
    return POSENC_OK;
}

posenc_status pe_preset_read_stability(pe_preset_extent *extent, const char *word, posenc_error *err)
{
    const int i = word_of(extents, EXTENTS, word);
    *extent     = i < 0 ? PE_EXTENT_NONE : (pe_preset_extent)i;
    return i >= 0 ? POSENC_OK
                  : pe_fail(err, POSENC_ERROR_ARGUMENT,
                            "stability: \"%.40s\" is not known; it must be none, brief or full", word);
}
