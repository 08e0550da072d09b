/* SPDX-License-Identifier: MIT */
/* test_null: every function of files.h without its pointers: refused by name, or the value that is neutral */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <posenc/files.h>

#include "null_arguments.h"
#include "scratch.h"

static const char CONFIG[] = "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
                             "\"num_hidden_layers\": 2, \"max_position_embeddings\": 128}";

static posenc_arrays one(void)
{
    posenc_arrays set = {0};
    assert_non_null(posenc_arrays_add(&set, "x", POSENC_DTYPE_F32, 1, (const int64_t[]){2}));
    return set;
}

static posenc_status arrays_write(unsigned without, posenc_error *err)
{
    posenc_arrays       set    = one();
    const posenc_status status = posenc_arrays_write(WITH(0, &set), WITH(1, scratch("x.npz")), err);
    posenc_arrays_free(&set);
    return status;
}

static posenc_status arrays_read(unsigned without, posenc_error *err)
{
    posenc_arrays       set    = {0};
    const posenc_status status = posenc_arrays_read(WITH(0, &set), WITH(1, scratch("x.npz")), err);
    posenc_arrays_free(&set);
    return status;
}

static posenc_status arrays_print(unsigned without, posenc_error *err)
{
    posenc_arrays       set    = one();
    FILE               *to     = fopen(scratch("x.csv"), "w");
    const posenc_status status = posenc_arrays_print(WITH(0, &set), WITH(1, to), err);
    fclose(to);
    posenc_arrays_free(&set);
    return status;
}

static posenc_status whole_file_open(unsigned without, posenc_error *err)
{
    posenc_whole_file   file   = {0};
    const posenc_status status = posenc_whole_file_open(WITH(0, &file), WITH(1, scratch("whole")), err);
    posenc_whole_file_discard(&file);
    return status;
}

static posenc_status whole_file_commit(unsigned without, posenc_error *err)
{
    posenc_whole_file file;
    assert_int_equal(posenc_whole_file_open(&file, scratch("whole"), NULL), POSENC_OK);
    const posenc_status status = posenc_whole_file_commit(WITH(0, &file), err);
    if (status)
        posenc_whole_file_discard(&file);
    return status;
}

static posenc_status cases_read(unsigned without, posenc_error *err)
{
    posenc_cases        cases = {0};
    const posenc_status status =
        posenc_cases_read(WITH(0, &cases), WITH(1, POSENC_SOURCE_DIR "/tests/golden"), err);
    posenc_cases_free(&cases);
    return status;
}

static posenc_status model_read(unsigned without, posenc_error *err)
{
    posenc_model       *model = NULL;
    const posenc_status status =
        posenc_model_read(WITH(0, &model), WITH(1, POSENC_SOURCE_DIR "/tests/golden/configs/apertus_8b.json"),
                          err);
    posenc_model_free(model);
    return status;
}

static posenc_status model_read_memory(unsigned without, posenc_error *err)
{
    posenc_model       *model  = NULL;
    const posenc_status status = posenc_model_read_memory(WITH(0, &model), WITH(1, CONFIG), sizeof CONFIG - 1,
                                                          WITH(2, "config.json"), err);
    posenc_model_free(model);
    return status;
}

static posenc_model *a_model(void)
{
    posenc_model *model;
    assert_int_equal(posenc_model_read_memory(&model, CONFIG, sizeof CONFIG - 1, NULL, NULL), POSENC_OK);
    return model;
}

/* Its parameters are in the file, if it has any. */
static posenc_status model_params(unsigned without, posenc_error *err)
{
    posenc_model       *model  = a_model();
    posenc_arrays       params = {0};
    const posenc_status status =
        posenc_model_params(WITH(0, &params), WITH(1, model), 0, -1, WITH(2, scratch("x.npz")), err);
    posenc_arrays_free(&params);
    posenc_model_free(model);
    return status;
}

static posenc_status model_json(unsigned without, posenc_error *err)
{
    posenc_model       *model  = a_model();
    char               *text   = NULL;
    const posenc_status status = posenc_model_json(WITH(0, &text), WITH(1, model), -1, err);
    posenc_model_json_free(text);
    posenc_model_free(model);
    return status;
}

static void each_call_refuses_and_names_the_pointer(void **state)
{
    static const null_subject subjects[] = {
        {"posenc_arrays_write", arrays_write, {"set", "path"}},
        {"posenc_arrays_read", arrays_read, {"set", "path"}},
        {"posenc_arrays_print", arrays_print, {"set", "to"}},
        {"posenc_whole_file_open", whole_file_open, {"file", "path"}},
        {"posenc_whole_file_commit", whole_file_commit, {"file"}},
        {"posenc_cases_read", cases_read, {"cases", "dir"}},
        {"posenc_model_read", model_read, {"model", "path"}},
        {"posenc_model_read_memory", model_read_memory, {"model", "bytes", "name?"}},
        {"posenc_model_params", model_params, {"params", "model", "checkpoint?"}},
        {"posenc_model_json", model_json, {"text", "model"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        null_try(&subjects[i]);
}

static void each_value_without_its_object_is_the_neutral_one(void **state)
{
    posenc_arrays set = one();
    posenc_model *model;
    (void)state;
    posenc_arrays_free(NULL);
    posenc_cases_free(NULL);
    posenc_whole_file_discard(NULL);
    posenc_model_free(NULL);
    assert_null(posenc_arrays_find(NULL, "x"));
    assert_null(posenc_arrays_find(&set, NULL));
    assert_null(posenc_arrays_find(NULL, NULL));
    assert_null(posenc_arrays_add(NULL, "y", POSENC_DTYPE_F32, 1, (const int64_t[]){2}));
    assert_null(posenc_arrays_add(&set, NULL, POSENC_DTYPE_F32, 1, (const int64_t[]){2}));
    assert_null(posenc_arrays_add(&set, "y", POSENC_DTYPE_F32, 1, NULL));
    assert_int_equal(set.count, 1);
    posenc_arrays_free(&set);
    assert_null(posenc_model_describe(NULL));
    assert_null(posenc_model_group_at(NULL, 0));
    assert_null(posenc_model_warning_at(NULL, 0));
    assert_int_equal(posenc_model_group_of(NULL, 0), -1);
    assert_null(posenc_model_tower(NULL, 0));
    assert_int_equal(posenc_model_window(NULL, 0), 0);
    posenc_model_json_free(NULL);
    assert_null(posenc_model_fact(NULL, "base"));
    assert_null(posenc_model_fact(NULL, NULL));
    assert_int_equal(posenc_model_read_memory(&model, CONFIG, sizeof CONFIG - 1, NULL, NULL), POSENC_OK);
    assert_null(posenc_model_fact(posenc_model_group_at(model, 0), NULL));
    assert_null(posenc_model_group_at(model, -1));
    assert_null(posenc_model_group_at(model, 99));
    assert_null(posenc_model_warning_at(model, -1));
    posenc_model_free(model);
}

static void a_whole_file_that_is_not_open_cannot_be_committed(void **state)
{
    posenc_whole_file file = {0};
    posenc_error      err;
    (void)state;
    assert_int_equal(posenc_whole_file_commit(&file, &err), POSENC_ERROR_ARGUMENT);
    assert_non_null(strstr(err.message, "stream must not be NULL"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_refuses_and_names_the_pointer),
        cmocka_unit_test(each_value_without_its_object_is_the_neutral_one),
        cmocka_unit_test(a_whole_file_that_is_not_open_cannot_be_committed),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
