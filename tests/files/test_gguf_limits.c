/* SPDX-License-Identifier: MIT */
/*
 * GGUF at its limits: every type of value, values that are walked over, alignments, and what no such file can
 * say
 */
#include "gguf_file.h"

#include <math.h>

/* Types of values, in the order of their numbers. */
enum { U8, I8, U16, I16, U32, I32, REAL, BOOL, TEXT, LIST, U64, I64, F64, TYPES };

static const float    eight[8]      = {1, 1, 1, 1, 1, 1, 1, 1};
static const uint64_t eight_long[1] = {8};

/* ---------------------------------------------------------------- what is read -------------- */

/* 100 in n bytes. */
static void number_of_any_type_is_read(uint32_t type, const void *bytes, size_t n)
{
    file f = sized("llama");
    put_key(&f, "llama.rope.freq_base", type);
    put(f.values, &f.value_size, bytes, n);
    posenc_model *model = read_file(&f);
    assert_true(fact(model, 0, "base")->real == 100);
    posenc_model_free(model);
}

static void numbers_of_every_type_are_read(void **state)
{
    static const uint64_t whole = 100;
    static const float    x     = 100;
    static const double   y     = 100;
    (void)state;
    number_of_any_type_is_read(U8, &whole, 1);
    number_of_any_type_is_read(I8, &whole, 1);
    number_of_any_type_is_read(U16, &whole, 2);
    number_of_any_type_is_read(I16, &whole, 2);
    number_of_any_type_is_read(U32, &whole, 4);
    number_of_any_type_is_read(I32, &whole, 4);
    number_of_any_type_is_read(REAL, &x, 4);
    number_of_any_type_is_read(U64, &whole, 8);
    number_of_any_type_is_read(I64, &whole, 8);
    number_of_any_type_is_read(F64, &y, 8);
}

static void negative_numbers_of_every_type_are_negative(void **state)
{
    static const int64_t  minus   = -2;
    static const uint32_t types[] = {I8, I16, I32, I64};
    static const size_t   sizes[] = {1, 2, 4, 8};
    (void)state;
    for (int i = 0; i < 4; i++) {
        file f = sized("llama");
        put_key(&f, "llama.rope.freq_base", types[i]);
        put(f.values, &f.value_size, &minus, sizes[i]);
        refused(&f, 3, "llama.rope.freq_base is -2; a base must be above 1");
    }
}

static void put_list_head(file *f, uint32_t type, uint64_t n)
{
    put_u32(f->values, &f->value_size, type);
    put_u64(f->values, &f->value_size, n);
}

/* What says nothing about positions is walked over, to the right byte: the base behind it is still found. */
static void what_is_not_stored_is_walked_over(void **state)
{
    char long_text[4098];
    file f = sized("llama");
    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    put_key(&f, "tokenizer.chat_template", TEXT);
    put_text(f.values, &f.value_size, long_text);
    put_key(&f, "tokenizer.ggml.tokens", LIST);
    put_list_head(&f, TEXT, 3);
    put_text(f.values, &f.value_size, "one");
    put_text(f.values, &f.value_size, "");
    put_text(f.values, &f.value_size, "three");
    put_key(&f, "general.lists", LIST);
    put_list_head(&f, LIST, 2);
    put_list_head(&f, U8, 3);
    put(f.values, &f.value_size, "abc", 3);
    put_list_head(&f, LIST, 1);
    put_list_head(&f, F64, 0);
    put_key(&f, "general.flag", BOOL);
    put(f.values, &f.value_size, "\1", 1);
    add_real(&f, "llama.rope.freq_base", 500);
    posenc_model *model = read_file(&f);
    assert_true(fact(model, 0, "base")->real == 500);
    posenc_model_free(model);
}

static void an_empty_list_is_a_list(void **state)
{
    file f = sized("cohere2");
    (void)state;
    add_list(&f, "cohere2.attention.sliding_window_pattern", (const uint32_t[]){0}, 0);
    posenc_model *model = read_file(&f); /* the pattern of the architecture goes on where the list ends */
    assert_string_equal(posenc_model_group_at(model, posenc_model_group_of(model, 3))->encoding, "nope");
    posenc_model_free(model);
}

/* Heads by layer: the first that is not 0 is a layer with attention. */
static void a_list_of_head_counts_gives_its_first(void **state)
{
    static const uint32_t heads[8] = {0, 0, 4, 4, 4, 4, 4, 4};
    file                  f        = {0};
    (void)state;
    add_word(&f, "general.architecture", "llama");
    add_whole(&f, "llama.block_count", 8);
    add_whole(&f, "llama.embedding_length", 64);
    add_list(&f, "llama.attention.head_count", heads, 8);
    posenc_model *model = read_file(&f);
    assert_int_equal(posenc_model_group_at(model, 0)->dims.H, 4);
    assert_int_equal(fact(model, 0, "head_dim")->integer, 16);
    posenc_model_free(model);
}

/* A pattern of the file, as a list and as a number, wins over that of the architecture: every fourth. */
static void a_pattern_of_the_file_wins(void **state)
{
    static const uint32_t slides[8] = {0, 1, 1, 1, 1, 1, 1, 0};
    file                  listed = sized("cohere2"), counted = sized("cohere2");
    (void)state;
    add_list(&listed, "cohere2.attention.sliding_window_pattern", slides, 8);
    add_whole(&counted, "cohere2.attention.sliding_window_pattern", 3);
    posenc_model *a = read_file(&listed), *b = read_file(&counted);
    for (int64_t i = 0; i < 8; i++) {
        const int full_a = i == 0 || i == 7, full_b = i == 2 || i == 5;
        assert_string_equal(posenc_model_group_at(a, posenc_model_group_of(a, i))->encoding,
                            full_a ? "nope" : "rope");
        assert_string_equal(posenc_model_group_at(b, posenc_model_group_of(b, i))->encoding,
                            full_b ? "nope" : "rope");
    }
    posenc_model_free(a);
    posenc_model_free(b);
}

static void data_begin_at_the_alignment_of_the_file(void **state)
{
    static const uint32_t alignments[] = {1, 8, 64};
    static const float    divisors[8]  = {1, 2, 3, 4, 5, 6, 7, 8};
    file                  bare         = sized("llama");
    posenc_model         *plain        = read_file(&bare);
    (void)state;
    for (size_t i = 0; i < sizeof alignments / sizeof *alignments; i++) {
        file f      = sized("llama");
        f.alignment = alignments[i];
        add_whole(&f, "general.alignment", alignments[i]);
        add_tensor(&f, "rope_freqs.weight", divisors, 8, F32);
        posenc_model *model = read_file(&f);
        for (int k = 0; k < 8; k++)
            assert_true(
                fabs(fact(model, 0, "inv_freq")->list[k] * divisors[k] / fact(plain, 0, "inv_freq")->list[k] -
                     1) < 1e-15);
        posenc_model_free(model);
    }
    posenc_model_free(plain);
}

/* Of Q8_0 a block is 32 numbers in 34 bytes. */
static void a_tensor_of_blocks_must_be_there_whole(void **state)
{
    static const uint64_t      shape[2]   = {32, 2};
    static const unsigned char blocks[68] = {0};
    enum { Q8_0 = 8, NOVEL = 1000 };
    (void)state;
    for (size_t bytes = 67; bytes <= 68; bytes++) {
        file f = sized("llama");
        put_entry(&f, "token_embd.weight", 2, shape, Q8_0, 0);
        put(f.data, &f.data_size, blocks, bytes);
        if (bytes < 68)
            refused(&f, 3, "its tensors need 68 bytes after the header but 67 are there: it is truncated");
        else
            posenc_model_free(read_file(&f));
    }
    file novel = sized("llama"); /* of a type that is not known nothing is believed */
    put_entry(&novel, "token_embd.weight", 2, shape, NOVEL, 0);
    posenc_model_free(read_file(&novel));
}

/* ---------------------------------------------------------------- what no file can say ------ */

static void limits_of_the_container_are_refused(void **state)
{
    file values = sized("llama"), tensors = sized("llama"), type = sized("llama"), item = sized("llama"),
         deep = sized("llama"), zero = sized("llama");
    char key[1026];
    (void)state;
    values.value_count = (1 << 16) + 1;
    refused(&values, 3, "it would have 65537 values");
    tensors.tensor_count = (1 << 20) + 1;
    refused(&tensors, 3, "1048577 tensors; at most 65536 and 1048576 are accepted");
    put_key(&type, "general.odd", TYPES);
    refused(&type, 3, "general.odd is of type 13, which GGUF does not have");
    put_key(&item, "general.odd", LIST);
    put_list_head(&item, TYPES, 1);
    refused(&item, 3, "a list of type 13, or lists in lists in lists");
    put_key(&deep, "general.deep", LIST);
    for (int depth = 0; depth < 8; depth++)
        put_list_head(&deep, LIST, 1);
    put_list_head(&deep, U8, 0);
    refused(&deep, 3, "a list of type 9, or lists in lists in lists");
    put_u64(zero.values, &zero.value_size, 3);
    put(zero.values, &zero.value_size, "a\0b", 3);
    put_u32(zero.values, &zero.value_size, U8);
    put(zero.values, &zero.value_size, "", 1);
    zero.value_count++;
    refused(&zero, 3, "the name of a value has a byte 0 in its text");
    memset(key, 'k', sizeof key - 1);
    for (size_t n = 1024; n <= 1025; n++) {
        file f = sized("llama");
        key[n] = '\0';
        add_whole(&f, key, 1);
        if (n > 1024)
            refused(&f, 3, "the name of a value has 1025 bytes; at most 1024 are read");
        else
            posenc_model_free(read_file(&f));
        key[n] = 'k';
    }
}

static void tensors_that_cannot_be_are_refused(void **state)
{
    static const uint64_t five[5] = {1, 1, 1, 1, 1}, wide[2] = {UINT64_C(1) << 40, UINT64_C(1) << 40};
    file axes = sized("llama"), huge = sized("llama"), far = sized("llama"), odd = sized("llama"),
         twice = sized("llama"), beyond = sized("llama"), table = sized("llama");
    (void)state;
    put_entry(&axes, "a.weight", 5, five, F32, 0);
    refused(&axes, 3, "tensor a.weight has 5 axes; GGUF has at most 4");
    put_entry(&huge, "a.weight", 2, wide, F32, 0);
    refused(&huge, 3, "the sizes of tensor a.weight overflow");
    put_entry(&far, "a.weight", 1, eight_long, F32, UINT64_C(1) << 62);
    refused(&far, 3, "tensor a.weight begins at byte 4611686018427387904 of the data: it is truncated");
    put_entry(&odd, "a.weight", 1, eight_long, F32, 16);
    put(odd.data, &odd.data_size, eight, sizeof eight);
    put(odd.data, &odd.data_size, eight, sizeof eight);
    refused(&odd, 3, "tensor a.weight begins at byte 16 of the data, not a multiple of the alignment 32");
    put_entry(&beyond, "blk.0.weight", 1, eight_long, F32, 32); /* a tensor of a layer is checked too */
    put(beyond.data, &beyond.data_size, eight, sizeof eight);
    refused(&beyond, 3, "its tensors need 64 bytes after the header but 32 are there: it is truncated");
    add_tensor(&twice, "a.weight", eight, 8, F32);
    add_tensor(&twice, "a.weight", eight, 8, F32);
    refused(&twice, 3, "the tensor a.weight appears twice");
    add_table(&table, "rope_freqs.weight", eight, 4, 2);
    refused(&table, 3, "rope_freqs.weight: it has 4 numbers on 2 axes; it must have one for each of 8 pairs");
}

static void an_alignment_is_a_power_of_two(void **state)
{
    static const double wrong[] = {0, -8, 1.5, 48, 1 << 21, (double)INFINITY, (double)NAN};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        file f = sized("llama");
        put_key(&f, "general.alignment", F64);
        put(f.values, &f.value_size, &wrong[i], sizeof *wrong);
        refused(&f, 3, "general.alignment is not a power of two from 1 to 1048576");
    }
    file word = sized("llama");
    add_word(&word, "general.alignment", "32");
    refused(&word, 3, "general.alignment is not a power of two");
}

/* ---------------------------------------------------------------- keys of the model --------- */

/* One more value in a file of that architecture, and a part of the sentence that refuses it. */
typedef struct wrong_value {
    const char *architecture, *key;
    uint32_t    type; /* TEXT, U32 or REAL */
    float       number;
    const char *part;
} wrong_value;

static void add_value(file *f, const wrong_value *v)
{
    if (v->type == TEXT)
        add_word(f, v->key, "word");
    else if (v->type == U32)
        add_whole(f, v->key, (uint32_t)v->number);
    else
        add_real(f, v->key, v->number);
}

static void values_that_no_model_has_are_refused(void **state)
{
    static const wrong_value rows[] = {
        {"llama", "llama.rope.freq_base", REAL, 1, "llama.rope.freq_base is 1; a base must be above 1"},
        {"llama", "llama.rope.freq_base", REAL, INFINITY, "llama.rope.freq_base is not a finite number"},
        {"llama", "llama.rope.dimension_count", REAL, 7.5F, "is 7.5; it must be a whole number up to 65536"},
        {"llama", "llama.rope.dimension_count", REAL, -2, "is -2; it must be a whole number up to 65536"},
        {"llama", "llama.rope.dimension_count", U32, 65537,
         "is 65537; it must be a whole number up to 65536"},
        {"llama", "llama.rope.dimension_count", U32, 18, "18 channels of a head of 16 would rotate"},
        {"llama", "llama.rope.dimension_count", U32, 7, "7 channels of a head of 16 would rotate"},
        {"llama", "llama.attention.key_length", U32, 15, "15 channels of a head of 15 would rotate"},
        {"llama", "llama.rope.scaling.type", U32, 3, "llama.rope.scaling.type is not a string"},
        {"llama", "llama.rope.scaling.type", TEXT, 0, "is word; known are none, linear, yarn, longrope"},
        {"llama", "llama.rope.scaling.factor", REAL, -2, "is -2; it must be above 0, or 0 for none"},
        {"llama", "llama.rope.scaling.attn_factor", REAL, 0,
         "rope.scaling.attn_factor is 0; it must be above 0"},
        {"llama", "llama.rope.scaling.attn_factor", REAL, -1, "it must be above 0"},
        {"bloom", "bloom.attention.max_alibi_bias", REAL, 0, "max_alibi_bias is not above 0"},
        {"gemma3", "gemma3.rope.freq_base_swa", REAL, 0.5F,
         "rope.freq_base_swa is 0.5; a base must be above 1"},
        {"gemma3", "gemma3.attention.key_length_swa", U32, 15, "15 channels of a head of 15"},
        {"qwen2vl", "qwen2vl.rope.dimension_sections", U32, 8, "missing, or not a list of 3 or 4 numbers"},
        {"qwen3vl", "qwen3vl.other", U32, 8, "qwen3vl.rope.dimension_sections is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file f = sized(rows[i].architecture);
        add_value(&f, &rows[i]);
        refused(&f, 3, rows[i].part);
    }
}

static void what_a_model_needs_is_asked_for(void **state)
{
    static const struct {
        const char *architecture, *part;
    } rows[] = {{"llama", "llama.block_count is missing"},
                {"bloom",
                 "embedding_length 0 is not a multiple of 0 heads, and attention.key_length is missing"},
                {"gpt2", "position_embd.weight is empty, or context_length or embedding_length is missing"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file f = {0};
        add_word(&f, "general.architecture", rows[i].architecture);
        refused(&f, 3, rows[i].part);
    }
    file nameless = {0}, numbered = {0};
    add_whole(&nameless, "llama.block_count", 1);
    refused(&nameless, 3, "general.architecture is missing");
    add_whole(&numbered, "general.architecture", 1);
    refused(&numbered, 3, "general.architecture is not a string");
}

static void sections_are_numbers_of_pairs(void **state)
{
    static const uint32_t two[2] = {4, 4}, five[5] = {2, 2, 2, 2, 0}, few[3] = {4, 2, 1},
                          wide[3] = {4, 2, 1 << 17};
    file a = sized("qwen2vl"), b = sized("qwen2vl"), c = sized("qwen2vl"), d = sized("qwen2vl"),
         gap = sized("qwen3vl");
    (void)state;
    add_list(&a, "qwen2vl.rope.dimension_sections", two, 2);
    refused(&a, 3, "not a list of 3 or 4 numbers");
    add_list(&b, "qwen2vl.rope.dimension_sections", five, 5);
    refused(&b, 3, "not a list of 3 or 4 numbers");
    add_list(&c, "qwen2vl.rope.dimension_sections", few, 3);
    refused(&c, 3, "rope.dimension_sections sums to 7; it must sum to the 8 pairs that rotate");
    add_list(&d, "qwen2vl.rope.dimension_sections", wide, 3);
    refused(&d, 3, "rope.dimension_sections holds 131072; it must hold numbers of pairs");
    add_list(&gap, "qwen3vl.rope.dimension_sections", few, 3); /* interleaved: the rest follows time */
    posenc_model *model = read_file(&gap);
    assert_true(warns(model, "sections-sum"));
    posenc_model_free(model);
}

/* A file of llama with yarn; an original length of 0 is not written. */
static file with_yarn(float factor, uint32_t original, float fast, float slow)
{
    file f = sized("llama");
    add_word(&f, "llama.rope.scaling.type", "yarn");
    add_real(&f, "llama.rope.scaling.factor", factor);
    if (original)
        add_whole(&f, "llama.rope.scaling.original_context_length", original);
    add_real(&f, "llama.rope.scaling.yarn_beta_fast", fast);
    add_real(&f, "llama.rope.scaling.yarn_beta_slow", slow);
    return f;
}

static void a_schedule_that_contradicts_itself_is_warned_of(void **state)
{
    static const struct {
        float       factor;
        uint32_t    original;
        float       fast, slow;
        const char *code; /* NULL: none of them */
    } rows[] = {{4, 1024, 32, 1, NULL},
                {8, 1024, 32, 1, "factor-vs-max_position"},
                {4, 1024, 1, 32, "beta-order"},
                {4, 0, 32, 1, "original-length-missing"},
                {0.5F, 8192, 32, 1, "factor-below-one"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        file          f     = with_yarn(rows[i].factor, rows[i].original, rows[i].fast, rows[i].slow);
        posenc_model *model = read_file(&f);
        for (size_t k = 1; k < sizeof rows / sizeof *rows; k++)
            if (warns(model, rows[k].code) != (k == i))
                fail_msg("row %zu: %s is %s", i, rows[k].code, k == i ? "not said" : "said");
        posenc_model_free(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_type_are_read),
        cmocka_unit_test(negative_numbers_of_every_type_are_negative),
        cmocka_unit_test(what_is_not_stored_is_walked_over),
        cmocka_unit_test(an_empty_list_is_a_list),
        cmocka_unit_test(a_list_of_head_counts_gives_its_first),
        cmocka_unit_test(a_pattern_of_the_file_wins),
        cmocka_unit_test(data_begin_at_the_alignment_of_the_file),
        cmocka_unit_test(a_tensor_of_blocks_must_be_there_whole),
        cmocka_unit_test(limits_of_the_container_are_refused),
        cmocka_unit_test(tensors_that_cannot_be_are_refused),
        cmocka_unit_test(an_alignment_is_a_power_of_two),
        cmocka_unit_test(values_that_no_model_has_are_refused),
        cmocka_unit_test(what_a_model_needs_is_asked_for),
        cmocka_unit_test(sections_are_numbers_of_pairs),
        cmocka_unit_test(a_schedule_that_contradicts_itself_is_warned_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
