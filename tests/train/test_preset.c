/* SPDX-License-Identifier: MIT */
/*
 * Presets, lists of specifications, and what a small model's settings make of them.
 */
#include "train/model/spec.h"
#include "train/jobs/preset.h"
#include "train/tasks/task.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const posenc_dims dims = {
    .B = 1, .H = 4, .G = 4, .Lq = 512, .Lk = 512, .D = 16, .Dv = 16, .d_model = 64, .L = 64};

static void every_preset_is_found_by_its_name_and_its_encodings_exist(void **state)
{
    (void)state;
    for (int i = 0; i < PE_PRESETS; i++) {
        const pe_preset *p = &pe_presets[i];
        posenc_status    status;
        char             spec[256], complete[1024];
        assert_ptr_equal(pe_preset_find(p->name), p);
        for (const char *list = p->encodings; list;) {
            list = pe_spec_next(spec, sizeof spec, list, &status, NULL);
            assert_int_equal(status, POSENC_OK);
            assert_int_equal(pe_spec_complete(complete, sizeof complete, spec, &dims, POSENC_MASK_CAUSAL,
                                              NULL),
                             POSENC_OK);
            assert_int_equal(pe_spec_check(complete, NULL), POSENC_OK);
        }
    }
    assert_null(pe_preset_find("no such preset"));
    assert_string_equal(pe_presets[0].name, "quick");
}

/* Known, each once, with steps and seeds, and what all tasks share. */
static void every_preset_names_tasks_that_exist(void **state)
{
    (void)state;
    for (int i = 0; i < PE_PRESETS; i++) {
        const pe_preset *p = &pe_presets[i];
        assert_true(p->task_layers > 0 && p->task_batch > 0 && p->sequences > 0 && p->longest >= PE_TASK_4);
        assert_true(p->tasks[0].name && p->d_model % p->heads == 0);
        for (int t = 0; t < PE_MOST_TASKS && p->tasks[t].name; t++) {
            assert_non_null(pe_task_find(p->tasks[t].name));
            assert_true(p->tasks[t].steps > 0 && p->tasks[t].seeds > 0);
            for (int k = 0; k < t; k++)
                assert_string_not_equal(p->tasks[t].name, p->tasks[k].name);
        }
    }
}

/* Those that stand on a grid: no room refuses them there. */
static void encodings_of_grids_are_encodings(void **state)
{
    int found = 0;
    (void)state;
    for (int i = 0; i < PE_PRESETS; i++)
        for (const char *list = pe_presets[i].grid_encodings; list;) {
            posenc_status    status;
            posenc_encoding *e;
            char             spec[256];
            list = pe_spec_next(spec, sizeof spec, list, &status, NULL);
            assert_int_equal(status, POSENC_OK);
            assert_int_equal(posenc_encoding_create(&e, spec, NULL, NULL), POSENC_OK);
            posenc_encoding_free(e);
            found++;
        }
    assert_true(found > 0);
}

/* ---------------------------------------------------------------- files --------------------- */

#define EXAMPLE POSENC_SOURCE_DIR "/docs/quick.json"

static void the_example_of_a_preset_file_is_quick(void **state)
{
    const pe_preset *quick = &pe_presets[0];
    pe_preset        p;
    void            *memory;
    posenc_error     err;
    (void)state;
    if (pe_preset_read(&p, &memory, EXAMPLE, &err))
        fail_msg("%s", err.message);
    assert_string_equal(p.name, "quick.json");
    assert_string_equal(p.encodings, quick->encodings);
    for (int i = 0; i < PE_MOST_TASKS && quick->tasks[i].name; i++)
        assert_string_equal(p.tasks[i].name, quick->tasks[i].name);
    /* and all that is no text of its own: what the file leaves out would be that of default */
    for (int i = 0; i < PE_MOST_TASKS; i++)
        p.tasks[i].name = quick->tasks[i].name;
    p.name           = quick->name;
    p.minutes        = quick->minutes;
    p.encodings      = quick->encodings;
    p.grid_encodings = quick->grid_encodings;
    p.extension      = quick->extension;
    assert_null(p.rates); /* it has a learning rate */
    assert_string_equal(p.stability, quick->stability);
    p.stability = quick->stability;
    assert_memory_equal(&p, quick, sizeof p);
    assert_int_equal(pe_preset_check(&p, NULL), POSENC_OK);
    pe_preset_forget(memory);
}

/* What a file of this text says. */
static posenc_status read_text(pe_preset *p, void **memory, const char *text, posenc_error *err)
{
    static const char path[] = "build/test_preset.json";
    FILE             *to     = fopen(path, "w");
    assert_non_null(to);
    fputs(text, to);
    fclose(to);
    const posenc_status status = pe_preset_read(p, memory, path, err);
    remove(path);
    return status;
}

static int64_t batch_of_file(const char *text)
{
    pe_preset    p;
    void        *memory;
    posenc_error err = {0};
    if (read_text(&p, &memory, text, &err))
        fail_msg("%s: %s", text, err.message);
    pe_preset_forget(memory);
    return p.batch;
}

static void another_length_keeps_the_bytes_of_a_step(void **state)
{
    (void)state;
    assert_int_equal(pe_preset_batch(16, 64, 128), 8);
    assert_int_equal(pe_preset_batch(16, 64, 32), 32);
    assert_int_equal(pe_preset_batch(16, 64, 96), 10);
    assert_int_equal(pe_preset_batch(16, 64, 65536), 1);
    assert_int_equal(batch_of_file("{\"length\": 256}"), 4);
    assert_int_equal(batch_of_file("{\"batch\": 16, \"length\": 256}"), 16);
    assert_int_equal(batch_of_file("{\"length\": 64}"), 16);
}

/* ---------------------------------------------------------------- asked by a program -------- */

static void what_a_program_asks_for_is_what_the_options_would_say(void **state)
{
    static const char object[] =
        "{\"encodings\": \"rope,alibi\", \"steps\": 30, \"length\": 128, \"seeds\": 3, "
        "\"tasks\": \"order\", \"combine\": \"concat\", \"bidirectional\": true, "
        "\"learning-rate\": 0.001, \"lang\": \"zh\"}";
    pe_compare_config config = {.preset = *pe_preset_find("default")};
    const int64_t     batch = config.preset.batch, L = config.preset.L;
    void             *memory;
    posenc_error      err;
    (void)state;
    assert_non_null(config.preset.rates);
    if (pe_preset_ask(&config, &memory, object, &err))
        fail_msg("%s", err.message);
    assert_string_equal(config.preset.encodings, "rope,alibi");
    assert_string_equal(config.tasks, "order");
    assert_string_equal(config.combine, "concat");
    assert_int_equal(config.bidirectional, 1);
    assert_int_equal(config.language, PE_CHINESE);
    assert_int_equal(config.preset.steps, 30);
    assert_int_equal(config.task_steps, 30);
    assert_int_equal(config.task_seeds, 3);
    assert_int_equal(config.preset.batch, pe_preset_batch(batch, L, 128));
    assert_null(config.preset.rates);
    assert_null(config.preset.extension); /* nobody asked to extend these encodings */
    pe_preset_forget(memory);
}

static void refuse_object(const char *object, const char *sentence)
{
    pe_compare_config config = {.preset = *pe_preset_find("default")};
    void             *memory;
    posenc_error      err = {0};
    assert_int_not_equal(pe_preset_ask(&config, &memory, object, &err), POSENC_OK);
    if (!strstr(err.message, sentence))
        fail_msg("%s: \"%s\" does not say \"%s\"", object, err.message, sentence);
    pe_preset_forget(memory);
}

static void what_a_program_asks_wrongly_is_refused(void **state)
{
    (void)state;
    refuse_object("[1]", "one JSON object");
    refuse_object("{\"stepz\": 1}", "no field \"stepz\"");
    refuse_object("{\"steps\": 0}", "steps is 0; it must be a whole number");
    refuse_object("{\"tasks\": 3}", "tasks is 3");
    refuse_object("{\"lang\": \"fr\"}", "fr");
    refuse_object("{\"rates\": \"0.1\", \"learning-rate\": 0.1}", "exclude each other");
}

static void refuse_file(const char *text, const char *sentence)
{
    pe_preset    p;
    void        *memory;
    posenc_error err = {0};
    assert_int_not_equal(read_text(&p, &memory, text, &err), POSENC_OK);
    if (!strstr(err.message, sentence))
        fail_msg("%s: \"%s\" does not say \"%s\"", text, err.message, sentence);
    pe_preset_forget(memory);
}

static void a_preset_file_with_a_fault_is_refused_with_its_name_and_the_mend(void **state)
{
    (void)state;
    refuse_file("{\"widht\": 64}", "there is no field \"widht\"; fields are named as the options are");
    refuse_file("{\"width\": \"64\"}", "width is \"64\"; it must be a whole number from 1 to 16384");
    refuse_file("{\"width\": 64.5}", "width is 64.5; it must be a whole number");
    refuse_file("{\"learning-rate\": -1}", "learning-rate is -1; it must be a number from");
    refuse_file("{\"encodings\": [\"rope\"]}", "encodings is [\"rope\"]; it must be a text");
    refuse_file("{\"tasks\": [{\"name\": \"sudoku\", \"steps\": 1, \"seeds\": 1}]}",
                "it must be \"none\", or a list of");
    refuse_file("{\"claims\": 1}", "claims is 1; it must be true or false");
    refuse_file("{\"longest\": \"x3\"}", "longest is \"x3\"");
    refuse_file("{\"steps\": 1, \"steps\": 2}", "line 1: duplicate");
    refuse_file("[1]", "it must hold one JSON object");
}

static void a_name_with_a_slash_or_json_is_a_file(void **state)
{
    (void)state;
    assert_true(pe_preset_is_path("mine.json") && pe_preset_is_path("./mine") &&
                pe_preset_is_path("a/b.json"));
    assert_false(pe_preset_is_path("quick") || pe_preset_is_path("json") || pe_preset_is_path("quick.txt"));
}

/* Of help: what it says is counted from the preset. */
static void a_preset_is_described_by_its_numbers(void **state)
{
    char text[128];
    (void)state;
    for (int i = 0; i < PE_PRESETS; i++) {
        pe_preset_describe(text, sizeof text, &pe_presets[i]);
        assert_true(strlen(text) < 69 && pe_presets[i].minutes[0]);
    }
    pe_preset_describe(text, sizeof text, &pe_presets[0]);
    assert_int_equal(strncmp(text, "7 encodings, 2400 steps, L 64, width 64, 3 tasks", 48), 0);
}

static void a_comma_within_brackets_belongs_to_the_specification(void **state)
{
    static const char *const want[] = {"a[x=1,y=2]", "b", "c[z=3]+d[w=1,v=2]"};
    const char              *list   = "a[x=1,y=2],b,c[z=3]+d[w=1,v=2]";
    char                     spec[64];
    posenc_status            status;
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_non_null(list);
        list = pe_spec_next(spec, sizeof spec, list, &status, NULL);
        assert_int_equal(status, POSENC_OK);
        assert_string_equal(spec, want[i]);
    }
    assert_null(list);
}

static void empty_places_and_giants_are_refused(void **state)
{
    static const char *const bad[] = {"", ",a", "abcdefghij"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char          spec[8];
        posenc_status status;
        posenc_error  err;
        assert_null(pe_spec_next(spec, sizeof spec, bad[i], &status, &err));
        assert_int_equal(status, POSENC_ERROR_ARGUMENT);
        assert_true(strlen(err.message) > 10);
    }
}

/* The first encoding of the registry whose room recommends something for a small model. */
static const char *find_recommended(char *settings, size_t n)
{
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const char *name = posenc_encoding_info_at(i)->name;
        if (!posenc_small_model(name, &dims, POSENC_MASK_CAUSAL, settings, n, NULL) && settings[0])
            return name;
    }
    return NULL;
}

static void create_both(const char *spec, char *canonical, size_t n)
{
    char             complete[1024];
    posenc_encoding *e;
    assert_int_equal(pe_spec_complete(complete, sizeof complete, spec, &dims, POSENC_MASK_CAUSAL, NULL),
                     POSENC_OK);
    assert_int_equal(posenc_encoding_create(&e, complete, NULL, NULL), POSENC_OK);
    snprintf(canonical, n, "%s", posenc_encoding_spec(e));
    posenc_encoding_free(e);
}

static void own_settings_override_those_for_a_small_model(void **state)
{
    char        settings[512], spec[1024], plain[1024], own[1024];
    const char *name = find_recommended(settings, sizeof settings);
    (void)state;
    if (!name)
        skip();
    create_both(name, plain, sizeof plain);
    snprintf(spec, sizeof spec, "%s[%s]", name, settings);
    create_both(spec, own, sizeof own);
    assert_string_equal(plain, own); /* saying the same again changes nothing */
    snprintf(spec, sizeof spec, "%s[scale=0.375]", name);
    create_both(spec, own, sizeof own);
    assert_non_null(strstr(own, "scale=0.375"));
}

/* A room may want other settings where keys in the future count; whatever it says must be settings of its
   own. */
static void a_mask_decides_which_settings_a_room_recommends(void **state)
{
    int differing = 0;
    (void)state;
    for (int i = 0; i < posenc_encoding_count(); i++) {
        const char      *name = posenc_encoding_info_at(i)->name;
        char             causal[1024], both[1024];
        posenc_encoding *e;
        assert_int_equal(pe_spec_complete(causal, sizeof causal, name, &dims, POSENC_MASK_CAUSAL, NULL),
                         POSENC_OK);
        assert_int_equal(pe_spec_complete(both, sizeof both, name, &dims, POSENC_MASK_NONE, NULL), POSENC_OK);
        assert_int_equal(posenc_encoding_create(&e, both, NULL, NULL), POSENC_OK);
        posenc_encoding_free(e);
        differing += strcmp(causal, both) != 0;
    }
    assert_true(differing > 0);
}

static void a_stranger_is_named_with_his_neighbour(void **state)
{
    char         complete[256];
    posenc_error err;
    (void)state;
    assert_int_not_equal(pe_spec_complete(complete, sizeof complete, "no_such_encoding", &dims,
                                          POSENC_MASK_CAUSAL, &err),
                         POSENC_OK);
    assert_non_null(strstr(err.message, "no_such_encoding"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_preset_is_found_by_its_name_and_its_encodings_exist),
        cmocka_unit_test(every_preset_names_tasks_that_exist),
        cmocka_unit_test(encodings_of_grids_are_encodings),
        cmocka_unit_test(the_example_of_a_preset_file_is_quick),
        cmocka_unit_test(another_length_keeps_the_bytes_of_a_step),
        cmocka_unit_test(a_preset_file_with_a_fault_is_refused_with_its_name_and_the_mend),
        cmocka_unit_test(what_a_program_asks_for_is_what_the_options_would_say),
        cmocka_unit_test(what_a_program_asks_wrongly_is_refused),
        cmocka_unit_test(a_name_with_a_slash_or_json_is_a_file),
        cmocka_unit_test(a_preset_is_described_by_its_numbers),
        cmocka_unit_test(a_comma_within_brackets_belongs_to_the_specification),
        cmocka_unit_test(empty_places_and_giants_are_refused),
        cmocka_unit_test(own_settings_override_those_for_a_small_model),
        cmocka_unit_test(a_mask_decides_which_settings_a_room_recommends),
        cmocka_unit_test(a_stranger_is_named_with_his_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
