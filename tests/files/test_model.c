/* SPDX-License-Identifier: MIT */
/*
 * Reading models: every warning and every refusal of configurations by a file that shows that one thing, and
 * what the groups hold
 *
 * The agreement of whole files with reference cases is shown by tests/cli/inspect.txt. Here a file is a line
 * of JSON, with ' for ". SMALL stands for the sizes of a model whose heads are 16 wide.
 */
#include "files/model/build.h"
#include "files/parse.h"

#include "scratch.h"

#include <math.h>

#define SMALL \
    "'hidden_size': 64, 'num_attention_heads': 4, 'num_hidden_layers': 6, 'max_position_embeddings': 64"
#define LLAMA    "{'model_type': 'llama', " SMALL
#define GEMMA3   "{'model_type': 'gemma3_text', " SMALL
#define QWEN2_VL "{'model_type': 'qwen2_vl', " SMALL ", 'rope_scaling': {'type': 'mrope', 'mrope_section': "
#define DEBERTA  "{'model_type': 'deberta-v2', 'relative_attention': true, 'pos_att_type': "
/* Of a type that is not in the table, and without the sizes that a type would bring. */
#define NOVEL                                                                                       \
    "{'model_type': 'novel', 'hidden_size': 64, 'num_attention_heads': 4, 'num_hidden_layers': 2, " \
    "'rope_theta': 1e4"

enum { LONGEST_LINE = 4096 };

static posenc_status parse(posenc_model **model, const char *line, posenc_error *err)
{
    char         text[LONGEST_LINE];
    const size_t n = strlen(line);
    assert_true(n < sizeof text);
    for (size_t i = 0; i <= n; i++)
        text[i] = (char)(line[i] == '\'' ? '"' : line[i]);
    *model = NULL;
    return pe_modelfile_parse(model, text, n, "dir/config.json", err);
}

static posenc_model *read_line(const char *line)
{
    posenc_model *model;
    posenc_error  err;
    if (parse(&model, line, &err))
        fail_msg("%s", err.message);
    return model;
}

/* "a b": the codes of all warnings, each once. */
static void codes_of(char codes[LONGEST_LINE], const posenc_model *model)
{
    const char *last = "";
    *codes           = '\0';
    for (int i = 0; i < posenc_model_describe(model)->warning_count; i++) {
        const posenc_model_warning *w = posenc_model_warning_at(model, i);
        assert_true(strlen(w->sentence) > 10);
        if (strcmp(w->code, last) != 0)
            strcat(strcat(codes, *codes ? " " : ""), w->code);
        last = w->code;
    }
}

typedef struct pair {
    const char *line, *says;
} pair;

static void each_warning_has_its_file(void **state)
{
    static const pair files[] = {
        {LLAMA ", 'rope_theta': 1e4}", ""},
        {LLAMA "}", "base-default"},
        {"{'model_type': 'cohere', " SMALL "}", "base-default base-default-changed"},
        {"{'model_type': 'gpt_oss', " SMALL ", 'rope_theta': 1e5}",
         "factor-vs-max_position schedule-default truncate-false"},
        {"{'model_type': 'llama', 'rope_theta': 1e4}", "size-default"},
        {"{'model_type': 'llama', 'rope_theta': 1e4, 'rope_scaling': {'type': 'llama3', 'factor': 4,"
         " 'low_freq_factor': 1, 'high_freq_factor': 4, 'original_max_position_embeddings': 8192}}",
         "size-default"},
        {"{'model_type': 'llama', 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 4,"
         " 'original_max_position_embeddings': 32768}}",
         "size-default"},
        {"{'model_type': 'gpt2', 'n_embd': 64, 'n_head': 4, 'n_layer': 2, 'n_positions': 64}", ""},
        {"{'model_type': 'novel', " SMALL ", 'rotary_emb_base': 1e4}", "unknown-model-type"},
        {"{'model_type': 'novel'}", "unknown-model-type"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'linear', 'factor': 2},"
               " 'rope_parameters': {'rope_type': 'default'}}",
         "both-styles"},
        {LLAMA ", 'rope_theta': 1e5, 'rope_scaling': {'type': 'linear', 'factor': 2, 'a': null},"
               " 'rope_parameters': {'rope_type': 'linear', 'factor': 2.0, 'rope_theta': 1e5}}",
         ""},
        {LLAMA ", 'rope_theta': 1e5, 'rope_scaling': {'type': 'linear', 'factor': 2},"
               " 'rope_parameters': {'rope_type': 'linear', 'factor': 2.0, 'rope_theta': 1e6}}",
         "both-styles"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_parameters': {'rope_theta': 1e5}}", "base-conflict"},
        {"{'model_type': 'phi', " SMALL ", 'rope_theta': 1e4, 'partial_rotary_factor': 0.25,"
         " 'rope_parameters': {'partial_rotary_factor': 0.5}}",
         "partial-conflict"},
        {LLAMA ", 'rope_theta': 1e4, 'original_max_position_embeddings': 16,"
               " 'rope_scaling': {'type': 'yarn', 'factor': 4, 'original_max_position_embeddings': 32}}",
         "original-length-conflict"},
        {LLAMA
         ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'linear', 'rope_type': 'dynamic', 'factor': 2}}",
         "type-conflict"},
        {"{'model_type': 'phi3', " SMALL ", 'rope_theta': 1e4, 'original_max_position_embeddings': 16,"
         " 'rope_scaling': {'type': 'su', 'short_factor': [1,1,1,1,1,1,1,1], 'long_factor': "
         "[1,2,3,4,5,6,7,8]}}",
         "renamed-type"},
        {LLAMA ", 'rope_theta': 1e4, 'partial_rotary_factor': 0.5}", "partial-ignored"},
        {"{'model_type': 'roformer', " SMALL ", 'head_dim': 32}", "head_dim-mismatch"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 4}}",
         "original-length-missing"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'linear', 'factor': 4,"
               " 'original_max_position_embeddings': 16}}",
         "original-length-ignored"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'llama3', 'factor': 4, 'low_freq_factor': 1,"
               " 'high_freq_factor': 4, 'original_max_position_embeddings': 64}}",
         "original-length-not-below-max"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 8,"
               " 'original_max_position_embeddings': 16}}",
         "factor-vs-max_position"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': null,"
               " 'original_max_position_embeddings': 16}}",
         "factor-inferred"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'linear', 'factor': 0.5}}", "factor-below-one"},
        {LLAMA
         ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 4, 'beta_fast': 1, 'beta_slow': 2,"
         " 'original_max_position_embeddings': 16}}",
         "beta-order"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'llama3', 'factor': 4, 'low_freq_factor': 1,"
               " 'high_freq_factor': 1, 'original_max_position_embeddings': 16}}",
         "freq-factor-order"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 4, 'mscale': 1,"
               " 'mscale_all_dim': 0, 'original_max_position_embeddings': 16}}",
         "mscale-alone"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 4, 'attention_factor': 1,"
               " 'original_max_position_embeddings': 16}}",
         "magnitude-dialect"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'yarn', 'factor': 4, 'truncate': false,"
               " 'original_max_position_embeddings': 16}}",
         "truncate-false"},
        {"{'model_type': 'qwen3_vl_text', " SMALL ", 'head_dim': 16, 'rope_theta': 1e4,"
         " 'rope_scaling': {'mrope_section': [2, 2, 2]}}",
         "sections-sum"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'linear', 'factor': 4, 'finetuned': true}}",
         "unused-key"},
        {LLAMA ", 'rope_theta': 1e4, 'rope_scaling': {'type': 'linear', 'factor': 4, 'finetuned': null}}",
         ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char          codes[LONGEST_LINE];
        posenc_model *model = read_line(files[i].line);
        codes_of(codes, model);
        if (strcmp(codes, files[i].says) != 0)
            fail_msg("%s: warns \"%s\", not \"%s\"", files[i].line, codes, files[i].says);
        posenc_model_free(model);
    }
}

static void what_no_model_could_have_is_refused(void **state)
{
    static const pair files[] = {
        {"", "not valid JSON"},
        {"null", "not valid JSON"},
        {"7", "not valid JSON"},
        {"[]", "not an object"},
        {"{} {}", "not valid JSON"},
        {"{'model_type': 3}", "model_type is 3"},
        {LLAMA ", 'rope_theta': 'many'}", "rope_theta is \"many\""},
        {LLAMA ", 'rope_theta': true}", "rope_theta is true"},
        {LLAMA ", 'rope_theta': 0.5}", "above 1"},
        {LLAMA ", 'rope_scaling': 4}", "rope_scaling is 4"},
        {LLAMA ", 'rope_scaling': {'type': 'linear'}}", "factor is missing"},
        {LLAMA ", 'rope_scaling': {'type': 'yarn'}}", "factor is missing"},
        {LLAMA ", 'rope_scaling': {'type': 'longrope'}}", "short_factor is missing"},
        {LLAMA ", 'rope_scaling': {'type': 'llama3', 'factor': 8}}", "low_freq_factor is missing"},
        {LLAMA ", 'rope_scaling': {'type': 'linear', 'factor': -2}}", "factor is -2"},
        {LLAMA ", 'rope_scaling': {'type': 'ntk', 'alpha': 2}}", "ntk is not known"},
        {LLAMA ", 'rope_scaling': {'type': 'linear', 'factor': 2}, 'partial_rotary_factor': 0.5}",
         "whole heads"},
        {LLAMA ", 'rope_scaling': {'full_attention': {'rope_theta': 1e4}}}", "rope_parameters"},
        {LLAMA ", 'rope_scaling': {'type': 'longrope', 'short_factor': [1], 'long_factor': [1]}}",
         "has 1 numbers"},
        {LLAMA ", 'rope_scaling': {'type': 'longrope', 'short_factor': [1,1,1,1,1,1,1,0],"
               " 'long_factor': [1,1,1,1,1,1,1,1]}}",
         "at place 7"},
        {LLAMA ", 'head_dim': 15}", "must be even"},
        {LLAMA ", 'head_dim': 1}", "must be even"},
        {LLAMA ", 'head_dim': 16.5}", "head_dim is 16.5"},
        {LLAMA ", 'head_dim': 1e9}", "head_dim is 1"},
        {"{'model_type': 'llama', 'hidden_size': 65, 'num_attention_heads': 4}", "not a multiple of 4 heads"},
        {"{'model_type': 'llama', 'hidden_size': 0}", "hidden_size is 0"},
        {"{'model_type': 'novel', 'rope_theta': 1e4}", "missing"},
        {"{'model_type': 'phi', " SMALL ", 'partial_rotary_factor': 2}", "fraction"},
        {"{'model_type': 'phi', " SMALL ", 'partial_rotary_factor': 0.05}", "must be even"},
        {"{'model_type': 'gptj', 'n_embd': 64, 'n_head': 4, 'rotary_dim': 18}", "must be even"},
        {"{'model_type': 'phi3', " SMALL ", 'rope_scaling': {'type': 'linear', 'factor': 2}}",
         "not one that phi3 has"},
        {"{'model_type': 'phimoe', " SMALL ", 'rope_scaling': {'type': 'linear', 'factor': 2}}",
         "short_mscale is missing"},
        {"{'model_type': 'qwen2_vl', " SMALL "}", "mrope_section sums to 64; it must sum to the 8 pairs"},
        {"{'model_type': 'qwen2_vl', " SMALL
         ", 'rope_scaling': {'type': 'mrope', 'mrope_section': [2, 2, 2]}}",
         "sums to 6"},
        {"{'model_type': 'smollm3', " SMALL ", 'no_rope_layers': [1, 0]}", "no_rope_layers has 2 entries"},
        {"{'model_type': 'gemma3_text', " SMALL ", 'layer_types': ['a','b','c','d','e','f']}",
         "layer_types has \"a\""},
        {"{'model_type': 'gemma3_text', " SMALL ", 'rope_parameters': {'rope_theta': 1e4}}",
         "one per layer type"},
        {"{'model_type': 'hunyuan_v1_dense', 'hidden_size': 8, 'num_attention_heads': 4,"
         " 'rope_scaling': {'type': 'dynamic', 'alpha': 8}}",
         "divides by zero"},
        {"{'model_type': 'vit', 'image_size': 8}", "is smaller than a patch"},
        {"{'model_type': 'roberta', 'max_position_embeddings': 2}", "leave none for positions"},
        {"{'model_type': 'xlnet', 'attn_type': 'both'}", "bi or uni"},
        {"{'model_type': 'llama', 'model_type': 'phi'}", "not valid JSON"},
        {"{'model_type': 'novel', 'hidden_size': 64, 'num_attention_heads': 4, 'rope_theta': 1e4}",
         "num_hidden_layers is missing"},
        {NOVEL ", 'rope_scaling': {'type': 'dynamic', 'factor': 2}}", "the schedule dynamic needs it"},
        {NOVEL ", 'rope_scaling': {'type': 'yarn', 'factor': 2}}", "the schedule yarn needs one of them"},
        {LLAMA ", 'rope_scaling': {'rope_type': 3}}", "rope_type is 3; it must be a string"},
        {LLAMA ", 'rope_scaling': {'type': 'linear', 'factor': '2'}}",
         "factor is \"2\"; it must be a number"},
        {LLAMA ", 'rope_scaling': {'type': 'linear', 'factor': 0}}", "factor is 0"},
        {LLAMA ", 'rope_scaling': {'type': 'yarn', 'factor': 2, 'beta_fast': -1}}", "beta_fast is -1"},
        {LLAMA ", 'rope_scaling': {'type': 'yarn', 'factor': 2, 'beta_slow': -1}}", "beta_slow is -1"},
        {LLAMA ", 'rope_scaling': {'type': 'yarn', 'factor': 2, 'truncate': 'no'}}",
         "truncate is \"no\"; it must be true or false"},
        {LLAMA ", 'rope_scaling': {'type': 'llama3', 'factor': 8, 'low_freq_factor': 0, "
               "'high_freq_factor': 4}}",
         "low_freq_factor is 0 and high_freq_factor 4; both must be above 0"},
        {LLAMA ", 'rope_scaling': {'type': 'longrope', 'short_factor': 1, 'long_factor': [1]}}",
         "short_factor is 1; it must be a list"},
        {LLAMA ", 'rope_parameters': {'full_attention': {'rope_theta': 1e4}}}",
         "which the type llama does not take"},
        {NOVEL ", 'rope_parameters': {'full_attention': {'rope_theta': 1e4}}}",
         "which the type (not in the table) does not take"},
        {GEMMA3 ", 'rope_parameters': {'full_attention': 3, 'sliding_attention': {}}}",
         "rope_parameters.full_attention is 3; it must be an object"},
        {"{'model_type': 'hunyuan_v1_dense', " SMALL ", 'rope_scaling': {'type': 'dynamic', 'alpha': -1}}",
         "alpha is -1; it must be above 0"},
        {GEMMA3 ", 'layer_types': 'full_attention'}", "layer_types is \"full_attention\"; it must be a list"},
        {GEMMA3 ", 'layer_types': ['full_attention']}",
         "layer_types has 1 entries but the model has 6 layers; there must be one for each"},
        {GEMMA3 ", 'sliding_window_pattern': 'LGL'}", "it must be a number, or letters like LLLG"},
        {GEMMA3 ", 'sliding_window_pattern': ''}", "it must be a number, or letters like LLLG"},
        {GEMMA3 ", 'sliding_window_pattern': 0}", "it must be a whole number from 1"},
        {GEMMA3 ", 'query_pre_attn_scalar': 0}", "query_pre_attn_scalar is 0; it must be above 0"},
        {"{'model_type': 'smollm3', " SMALL ", 'no_rope_layers': [1,1,1,'no',1,1]}",
         "no_rope_layers has \"no\"; it must hold 1 (rotate) and 0"},
        {"{'model_type': 'deepseek_v4', 'num_hidden_layers': 2, 'compress_ratios': [4, 0.5]}",
         "compress_ratios has 0.5; it must hold whole numbers"},
        {"{'model_type': 'deepseek_v4', 'num_hidden_layers': 2, 'compress_ratios': [4]}",
         "compress_ratios has 1 entries but the model has 2 layers"},
        {"{'model_type': 'phi', " SMALL ", 'partial_rotary_factor': 0}", "above 0 and at most 1"},
        {"{'model_type': 'phi', " SMALL ", 'rope_parameters': {'partial_rotary_factor': -0.5}}",
         "above 0 and at most 1"},
        {QWEN2_VL "[2, 2]}}", "mrope_section has 2 numbers; it must have 3: time, height, width"},
        {QWEN2_VL "[4, 4.5, 0]}}", "mrope_section has 4.5; it must hold numbers of pairs"},
        {QWEN2_VL "[9, -1, 0]}}", "mrope_section has -1; it must hold numbers of pairs"},
        {QWEN2_VL "8}}", "mrope_section is 8; it must be a list"},
        {"{'model_type': 'gpt2', 'n_positions': 1073741825}", "a table of at most 1073741824 rows"},
        {"{'model_type': 'gpt2', 'n_positions': 0}", "n_positions is 0; it must be a whole number from 1"},
        {"{'model_type': 'vit', 'image_size': [224]}", "it must be a number or two, [height, width]"},
        {"{'model_type': 'vit', 'image_size': [224, 224, 3]}", "it must be a number or two, [height, width]"},
        {"{'model_type': 'vit', 'patch_size': [16, 0]}", "it must be a number or two, [height, width]"},
        {"{'model_type': 'vit', 'image_size': [224, 15]}", "image_size 224x15 is smaller than a patch"},
        {"{'model_type': 't5', 'relative_attention_num_buckets': 1}", "num_buckets is 1"},
        {"{'model_type': 'bloom', 'n_head': 0}", "n_head is 0"},
        {DEBERTA "3}", "pos_att_type is 3; it must be a list, or words joined by |"},
        {DEBERTA "[3]}", "pos_att_type has 3; it must hold c2p and p2c"},
        {DEBERTA "['c2p', 'p2q']}", "pos_att_type has p2q; known are c2p, p2c, p2p"},
        {DEBERTA "'c2p|c2px'}", "pos_att_type has c2px; known are c2p, p2c, p2p"},
        {DEBERTA "'c2'}", "pos_att_type has c2; known are c2p, p2c, p2p"},
        {DEBERTA "'c2p|'}", "pos_att_type has an empty word"},
        {DEBERTA "['', 'c2p']}", "pos_att_type has an empty word"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        posenc_model *model;
        posenc_error  err = {0};
        if (!parse(&model, files[i].line, &err))
            fail_msg("%s is accepted", files[i].line);
        assert_int_equal(err.status, POSENC_ERROR_FORMAT);
        assert_null(model);
        assert_null(strchr(err.message, '\n'));
        if (!strstr(err.message, files[i].says) || strncmp(err.message, "dir/config.json: ", 17) != 0)
            fail_msg("%s: \"%s\" does not say \"%s\"", files[i].line, err.message, files[i].says);
    }
}

/* ---------------------------------------------------------------- what groups hold ---------- */

static const posenc_fact *fact(const posenc_model *model, int group, const char *name)
{
    const posenc_fact *f = posenc_model_fact(posenc_model_group_at(model, group), name);
    if (!f)
        fail_msg("group %d has no fact %s", group, name);
    return f;
}

static void a_layer_finds_its_group(void **state)
{
    posenc_model *model = read_line("{'model_type': 'gemma3_text', " SMALL ", 'head_dim': 16}");
    (void)state;
    assert_int_equal(posenc_model_describe(model)->group_count, 2);
    assert_int_equal(posenc_model_group_of(model, 4), 0);
    assert_int_equal(posenc_model_group_of(model, 5), 1);
    assert_int_equal(posenc_model_group_of(model, 6), -1);
    assert_int_equal(posenc_model_group_of(model, -1), -1);
    assert_null(posenc_model_group_at(model, 2));
    assert_float_equal(fact(model, 0, "base")->real, 1e4, 0);
    assert_float_equal(fact(model, 1, "base")->real, 1e6, 0);
    posenc_model_free(model);
}

static void both_halves_of_an_old_modernbert_are_scaled(void **state)
{
    posenc_model *model =
        read_line("{'model_type': 'modernbert', " SMALL ", 'rope_scaling': {'type': 'linear', 'factor': 2}}");
    (void)state;
    assert_string_equal(fact(model, 0, "schedule")->text, "linear");
    assert_string_equal(fact(model, 1, "schedule")->text, "linear");
    posenc_model_free(model);
}

static void a_windowless_exaone_rotates_everywhere(void **state)
{
    posenc_model *with    = read_line("{'model_type': 'exaone4', " SMALL "}");
    posenc_model *without = read_line("{'model_type': 'exaone4', " SMALL ", 'sliding_window': null}");
    (void)state;
    assert_int_equal(posenc_model_describe(with)->group_count, 2);
    assert_int_equal(posenc_model_describe(without)->group_count, 1);
    posenc_model_free(with);
    posenc_model_free(without);
}

/* The length at top level wins where the schedule reads one; Ministral's temperature beside another has its
   dictionary's. */
static void two_lengths_are_for_the_schedule_and_for_the_temperature(void **state)
{
    static const struct {
        const char *type;
        int64_t     length;
    } all[] = {{"yarn", 32}, {"llama3", 32}, {"default", 16}, {"linear", 16}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char line[LONGEST_LINE];
        snprintf(
            line, sizeof line,
            "{'model_type': 'ministral3', " SMALL ", 'head_dim': 16, 'original_max_position_embeddings': 32,"
            " 'rope_parameters': {'rope_type': '%s', 'rope_theta': 1e6, 'factor': 2, 'low_freq_factor': 1,"
            " 'high_freq_factor': 4, 'llama_4_scaling_beta': 0.1, 'original_max_position_embeddings': 16}}",
            all[i].type);
        posenc_model *model = read_line(line);
        assert_int_equal(fact(model, 0, "temperature.length")->integer, all[i].length);
        posenc_model_free(model);
    }
}

/* PhiMoE's magnitudes are the file's, on either side of the original length. */
static void phimoe_has_two_magnitudes(void **state)
{
    posenc_model *model = read_line("{'model_type': 'phimoe', " SMALL
                                    ", 'rope_scaling': {'type': 'longrope', 'short_mscale': 1.25,"
                                    " 'long_mscale': 1.5, 'original_max_position_embeddings': 16,"
                                    " 'short_factor': [1,1,1,1,1,1,1,1], 'long_factor': [2,2,2,2,2,2,2,2]}}");
    (void)state;
    assert_float_equal(fact(model, 0, "magnitude")->real, 1.25, 0);
    assert_float_equal(fact(model, 0, "magnitude_long")->real, 1.5, 0);
    assert_float_equal(fact(model, 0, "inv_freq")->list[0], 1, 0);
    assert_float_equal(fact(model, 0, "inv_freq_long")->list[0], 0.5, 0);
    assert_non_null(
        strstr(posenc_model_group_at(model, 0)->spec, "attention_factor=1.25,attention_factor_long=1.5"));
    posenc_model_free(model);
    model = read_line("{'model_type': 'phimoe', " SMALL ", 'rope_scaling': {'type': 'yarn', 'factor': 4,"
                      " 'short_mscale': 1.25, 'long_mscale': 1.5, 'original_max_position_embeddings': 16}}");
    assert_float_equal(fact(model, 0, "magnitude")->real, 1.138629436111989, 1e-15); /* they are longrope's */
    posenc_model_free(model);
}

/* Layers whose numbers are all equal are one group, whichever dictionaries gave them. */
static void layers_that_are_alike_are_one_group(void **state)
{
    static const struct {
        const char *line;
        int         groups;
    } all[] = {
        {"{'model_type': 'olmo3', " SMALL ", 'rope_theta': 5e5}", 1},
        {"{'model_type': 'olmo3', " SMALL ", 'rope_theta': 4e5}", 2},
        {"{'model_type': 'gemma3_text', " SMALL ", 'rope_theta': 1e4, 'rope_local_base_freq': 1e4}", 1},
        {"{'model_type': 'gemma3_text', " SMALL ", 'rope_theta': 1e6, 'rope_local_base_freq': 1e4}", 2},
        {"{'model_type': 'gemma3_text', " SMALL ", 'rope_theta': 1e4, 'rope_local_base_freq': 1e4,"
         " 'rope_scaling': {'type': 'linear', 'factor': 8}}",
         2},
        {"{'model_type': 'modernbert', " SMALL ", 'global_rope_theta': 1e4, 'local_rope_theta': 1e4}", 1},
        {"{'model_type': 't5'}", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_model             *model = read_line(all[i].line);
        const posenc_model_group *g     = posenc_model_group_at(model, 0);
        if (posenc_model_describe(model)->group_count != all[i].groups)
            fail_msg("%s has %d groups, not %d", all[i].line, posenc_model_describe(model)->group_count,
                     all[i].groups);
        if (all[i].groups == 1) {
            assert_true(g->is_all && g->layer_count == 6);
            for (int64_t n = 0; n < 6; n++)
                assert_int_equal(g->layers[n], n);
        }
        posenc_model_free(model);
    }
}

/* The base in a sentence is the one in use; a base that is there but not read is named. */
static void what_is_said_of_a_missing_base_is_true(void **state)
{
    static const pair files[] = {
        {"{'model_type': 'ministral3', " SMALL "}", "the file gives no base; 1000000 is the default"},
        {"{'model_type': 'ministral3', " SMALL ", 'rope_parameters': {'rope_type': 'default'}}",
         "the file gives no base; 10000 is the default"},
        {"{'model_type': 'gemma3_text', " SMALL "}",
         "1000000 (full_attention) and 10000 (sliding_attention) are"},
        {"{'model_type': 'gpt_neox', " SMALL ", 'rope_theta': 5e5}",
         "the file gives rope_theta, which the class gpt_neox does not read; 10000 is its default"},
        {LLAMA ", 'rotary_emb_base': 5e5}",
         "the file gives rotary_emb_base, which the class llama does not read"},
        {"{'model_type': 'novel', " SMALL ", 'partial_rotary_factor': 1}", "10000 is the default of llama"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        posenc_model *model = read_line(files[i].line);
        int           found = 0;
        for (int w = 0; w < posenc_model_describe(model)->warning_count; w++)
            found += strstr(posenc_model_warning_at(model, w)->sentence, files[i].says) != NULL;
        if (!found)
            fail_msg("%s: no warning says \"%s\"", files[i].line, files[i].says);
        posenc_model_free(model);
    }
}

/* transformers 5.16: a step, whichever way the two factors stand. */
static void llama3_s_factors_may_stand_the_wrong_way_round(void **state)
{
    posenc_model *model =
        read_line("{'model_type': 'llama', 'hidden_size': 512, 'num_attention_heads': 8, 'rope_scaling':"
                  " {'rope_type': 'llama3', 'factor': 8, 'low_freq_factor': 4, 'high_freq_factor': 1,"
                  " 'original_max_position_embeddings': 1024}}");
    const double *w = fact(model, 0, "inv_freq")->list;
    (void)state;
    for (int m = 0; m < 32; m++) {
        const double plain = pow(10000, -2.0 * m / 64), turns = 1024 * plain / 6.283185307179586;
        assert_true(fabs(w[m] - (turns < 4 ? plain / 8 : plain)) <= 1e-15 * plain);
    }
    posenc_model_free(model);
}

/* The SPEC does as the class does. */
static void a_class_that_writes_another_order_is_said_to(void **state)
{
    static const struct {
        const char *line;
        int         says;
    } all[] = {{"{'model_type': 'deepseek_v3', " SMALL "}", 1},
               {"{'model_type': 'deepseek_v3', " SMALL ", 'rope_interleave': false}", 0},
               {"{'model_type': 'deepseek_v2', " SMALL "}", 0},
               {"{'model_type': 'longcat_flash', " SMALL "}", 1}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_model *model = read_line(all[i].line);
        assert_int_equal(strstr(posenc_model_group_at(model, 0)->spec, "layout_out=half") != NULL,
                         all[i].says);
        posenc_model_free(model);
    }
}

/* The SPEC and the parameters of a group are what the library needs to rotate as the model does. */
static void every_spec_creates_an_encoding(void **state)
{
    static const char *const lines[] = {
        LLAMA "}",
        "{'model_type': 'llama4_text', " SMALL ", 'head_dim': 16}",
        "{'model_type': 'ministral3', " SMALL "}",
        "{'model_type': 'nanochat', " SMALL "}",
        "{'model_type': 'deepseek_v3', " SMALL ", 'rope_scaling': {'type': 'yarn', 'factor': 40, 'mscale': 1,"
        " 'mscale_all_dim': 1}}",
        "{'model_type': 'gemma4_text', " SMALL "}",
        "{'model_type': 'qwen3_5_text', " SMALL "}",
        "{'model_type': 'granitemoehybrid', " SMALL "}",
        "{'model_type': 'bert'}",
        "{'model_type': 'xglm'}",
        "{'model_type': 'umt5'}",
        "{'model_type': 'mpnet'}",
        "{'model_type': 'deberta', 'relative_attention': true, 'pos_att_type': ['c2p']}",
        "{'model_type': 'xlnet', 'clamp_len': 100}",
        "{'model_type': 'bloom'}",
        "{'model_type': 'whisper'}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        posenc_model *model = read_line(lines[i]);
        assert_true(posenc_model_describe(model)->group_count > 0);
        for (int k = 0; k < posenc_model_describe(model)->group_count; k++) {
            posenc_encoding *e;
            posenc_error     err;
            if (posenc_encoding_create(&e, posenc_model_group_at(model, k)->spec, NULL, &err))
                fail_msg("%s: %s", lines[i], err.message);
            posenc_encoding_free(e);
        }
        posenc_model_free(model);
    }
}

/* Where heads turn their tails, a fraction counts for the classes that read one, is no news to the class that
   sets it to the share itself, and is not read by all others. */
static void fractions_of_heads_that_turn_their_tails(void **state)
{
    static const struct {
        const char *line;
        int64_t     dim;
        int         warned;
    } all[] = {
        {"{'model_type': 'mistral4', " SMALL ", 'qk_rope_head_dim': 32, 'qk_nope_head_dim': 64}", 32, 0},
        {"{'model_type': 'mistral4', " SMALL ", 'qk_rope_head_dim': 32, 'qk_nope_head_dim': 96,"
         " 'rope_theta': 1e4, 'partial_rotary_factor': 0.25}",
         32, 0},
        {"{'model_type': 'deepseek_v3', " SMALL ", 'qk_rope_head_dim': 64, 'qk_nope_head_dim': 64,"
         " 'rope_theta': 1e4, 'partial_rotary_factor': 0.5}",
         64, 1},
        {"{'model_type': 'glm4_moe_lite', " SMALL ", 'rope_theta': 1e4, 'partial_rotary_factor': 0.25}", 16,
         0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char          codes[LONGEST_LINE];
        posenc_model *model = read_line(all[i].line);
        codes_of(codes, model);
        assert_int_equal(fact(model, 0, "dim")->integer, all[i].dim);
        assert_int_equal(strstr(codes, "partial-ignored") != NULL, all[i].warned);
        posenc_model_free(model);
    }
}

static void the_language_model_is_found_inside(void **state)
{
    posenc_model *model = read_line("{'model_type': 'gemma3', 'vision_config': {'hidden_size': 7},"
                                    " 'text_config': {" SMALL ", 'head_dim': 32}}");
    (void)state;
    assert_string_equal(posenc_model_describe(model)->type, "gemma3_text");
    assert_int_equal(fact(model, 0, "head_dim")->integer, 32);
    posenc_model_free(model);
}

static void the_parts_beside_it_are_models_too(void **state)
{
    posenc_model *model = read_line(
        "{'model_type': 'siglip', 'text_config': {'hidden_size': 32}, 'vision_config': {'image_size': 64}, "
        "'audio_config': {'rope_theta': 1e4, 'hidden_size': 64, 'num_attention_heads': 4}, "
        "'backbone_config': {'model_type': 'swin', 'depths': [0]}, 'quantization_config': {'bits': 4}}");
    (void)state;
    assert_string_equal(posenc_model_describe(model)->type, "siglip_text_model");
    assert_string_equal(posenc_model_describe(model)->tower, "text");
    assert_int_equal(posenc_model_describe(model)->tower_count, 3);
    const posenc_model *vision = posenc_model_tower(model, 0), *audio = posenc_model_tower(model, 1),
                       *backbone = posenc_model_tower(model, 2);
    assert_string_equal(posenc_model_describe(vision)->tower, "vision");
    assert_string_equal(posenc_model_describe(vision)->type, "siglip_vision_model");
    assert_string_equal(posenc_model_group_at(vision, 0)->spec, "learned[rows=16,dim=768,offset=0]");
    assert_string_equal(posenc_model_describe(audio)->encoding, "unknown"); /* never taken for a llama */
    assert_string_equal(posenc_model_describe(backbone)->encoding, "unknown");
    assert_non_null(strstr(posenc_model_warning_at(backbone, 0)->sentence, "it cannot be read: "));
    assert_null(posenc_model_tower(model, 3));
    assert_null(posenc_model_tower(NULL, 0));
    posenc_model_free(model);
}

static void bytes_are_read_as_their_file_is(void **state)
{
    static const char line[] = "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_attention_heads\": 4, "
                               "\"num_hidden_layers\": 2, \"rope_theta\": 5e5}";
    char              bytes[sizeof line];
    posenc_model     *model;
    posenc_error      err;
    (void)state;
    memcpy(bytes, line, sizeof line);
    assert_int_equal(posenc_model_read_memory(&model, bytes, sizeof line - 1, NULL, &err), POSENC_OK);
    memset(bytes, 0, sizeof bytes); /* they may go */
    assert_string_equal(posenc_model_describe(model)->encoding, "rope");
    assert_int_equal(posenc_model_describe(model)->layers, 2);
    posenc_model_free(model);
}

static void bytes_that_are_no_model_are_refused_by_name(void **state)
{
    static const struct {
        const char *bytes;
        size_t      n;
        const char *name, *words;
    } rows[] = {{"", 0, "config", "config: it is empty"},
                {NULL, 5, NULL, "memory: bytes must not be NULL"},
                {"[1]", 3, NULL, "memory: it is JSON but not an object"},
                {"PK\3\4....", 8, "a.pt", "a.pt: it is a checkpoint of PyTorch"},
                {"GGUF", 4, "m.gguf", "m.gguf: "},
                {"\2\0\0\0\0\0\0\0{}", 10, "w", "needs the config.json"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model *model = (posenc_model *)(uintptr_t)1;
        posenc_error  err;
        assert_int_not_equal(posenc_model_read_memory(&model, rows[i].bytes, rows[i].n, rows[i].name, &err),
                             POSENC_OK);
        assert_null(model);
        if (!strstr(err.message, rows[i].words))
            fail_msg("\"%s\" does not say \"%s\"", err.message, rows[i].words);
    }
    assert_int_equal(posenc_model_read_memory(NULL, "{}", 2, NULL, NULL), POSENC_ERROR_ARGUMENT);
}

/* ---------------------------------------------------------------- windows, JSON ------------- */

#define SIX(type) "{'model_type': '" type "', " SMALL ", 'rope_theta': 1e4"

static void each_layer_has_its_window(void **state)
{
    static const struct {
        const char *line;
        int64_t     windows[6];
    } rows[] = {
        {SIX("gemma2") ", 'sliding_window': 8}", {8, 0, 8, 0, 8, 0}},
        {SIX("gemma2") "}", {4096, 0, 4096, 0, 4096, 0}},
        {SIX("gpt_oss") ", 'sliding_window': 4}", {4, 0, 4, 0, 4, 0}},
        {GEMMA3 ", 'sliding_window': 8, 'sliding_window_pattern': 3}", {8, 8, 0, 8, 8, 0}},
        {SIX("mistral") "}", {4096, 4096, 4096, 4096, 4096, 4096}},
        {SIX("mistral") ", 'sliding_window': null}", {0}},
        {SIX("mixtral") "}", {0}},
        {SIX("mixtral") ", 'sliding_window': 9}", {9, 9, 9, 9, 9, 9}},
        {SIX("qwen2") ", 'sliding_window': 9, 'max_window_layers': 4}", {0}},
        {SIX("qwen2") ", 'sliding_window': 9, 'max_window_layers': 4, 'use_sliding_window': true}",
         {0, 0, 0, 0, 9, 9}},
        {SIX("qwen2_moe") ", 'sliding_window': 9, 'max_window_layers': 4, 'use_sliding_window': true}",
         {9, 0, 9, 0, 0, 0}},
        {SIX("qwen3") ", 'sliding_window': 9, 'use_sliding_window': true, 'layer_types': ['full_attention', "
                      "'sliding_attention', 'full_attention', 'full_attention', 'full_attention', "
                      "'sliding_attention']}",
         {0, 9, 0, 0, 0, 9}},
        {"{'model_type': 'modernbert', " SMALL ", 'local_attention': 16}", {0, 9, 9, 0, 9, 9}},
        {SIX("exaone4") ", 'sliding_window': null}", {0}},
        {SIX("cwm") ", 'sliding_window': 5}", {0, 5, 5, 5, 0, 5}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model *model = read_line(rows[i].line);
        for (int64_t layer = 0; layer < 6; layer++)
            if (posenc_model_window(model, layer) != rows[i].windows[layer])
                fail_msg("%s: layer %lld has %lld", rows[i].line, (long long)layer,
                         (long long)posenc_model_window(model, layer));
        assert_int_equal(posenc_model_window(model, 6), 0);
        assert_int_equal(posenc_model_window(model, -1), 0);
        posenc_model_free(model);
    }
    assert_int_equal(posenc_model_window(NULL, 0), 0);
}

static void a_group_s_window_is_a_number_or_one_for_each_layer(void **state)
{
    posenc_model      *model = read_line(SIX("gemma2") ", 'sliding_window': 8}");
    const posenc_fact *f     = posenc_model_fact(posenc_model_group_at(model, 0), "sliding_window");
    (void)state;
    assert_int_equal(posenc_model_describe(model)->group_count, 1);
    assert_int_equal(f->kind, POSENC_FACT_INTEGERS);
    assert_int_equal(f->count, 6);
    assert_float_equal(f->list[2], 8, 0);
    posenc_model_free(model);
    model = read_line(GEMMA3 ", 'sliding_window': 8}");
    f     = posenc_model_fact(posenc_model_group_at(model, 0), "sliding_window");
    assert_int_equal(f->kind, POSENC_FACT_INTEGER);
    assert_int_equal(f->integer, 8);
    assert_null(posenc_model_fact(posenc_model_group_at(model, 1), "sliding_window"));
    posenc_model_free(model);
}

static void json_is_a_text_of_the_caller_s(void **state)
{
    posenc_model *model = read_line(GEMMA3 ", 'sliding_window': 8}");
    char         *all, *one, *none = (char *)(uintptr_t)1;
    posenc_error  err;
    (void)state;
    assert_int_equal(posenc_model_json(&all, model, -1, &err), POSENC_OK);
    assert_int_equal(posenc_model_json(&one, model, 1, &err), POSENC_OK);
    assert_non_null(strstr(all, "\"model_type\": \"gemma3_text\""));
    assert_non_null(strstr(all, "\"sliding_window\": 8"));
    assert_non_null(strstr(all, "\"spec\": \"rope[layout=half,dim=256,base=10000]\""));
    assert_non_null(strstr(one, "\"layers\": [5]"));
    assert_null(strstr(one, "\"layers\": [0"));
    posenc_model_json_free(all);
    posenc_model_json_free(one);
    posenc_model_json_free(NULL);
    assert_int_equal(posenc_model_json(&none, model, 2, &err), POSENC_ERROR_ARGUMENT);
    assert_null(none);
    assert_non_null(strstr(err.message, "the model's 2 groups"));
    assert_int_equal(posenc_model_json(NULL, model, 0, NULL), POSENC_ERROR_ARGUMENT);
    assert_int_equal(posenc_model_json(&none, NULL, 0, NULL), POSENC_ERROR_ARGUMENT);
    posenc_model_free(model);
}

/* A plan wants heads and their width, or neither. */
static void heads_have_the_width_that_the_file_tells_where_nothing_rotates(void **state)
{
    static const struct {
        const char *line;
        int64_t     D;
    } files[] = {
        {"{'model_type': 't5', 'd_model': 768, 'd_kv': 32, 'num_heads': 12, 'num_layers': 12}", 32},
        {"{'model_type': 'bert', 'hidden_size': 768, 'num_attention_heads': 12, "
         "'max_position_embeddings': 512}",
         64},
    };
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        posenc_model     *model = read_line(files[i].line);
        const posenc_dims dims  = posenc_model_group_at(model, 0)->dims;
        assert_int_equal(dims.H, 12);
        assert_int_equal(dims.D, files[i].D);
        posenc_model_free(model);
    }
}

static void a_stage_of_swin_has_a_window_of_its_own(void **state)
{
    posenc_model *model = read_line("{'model_type': 'swinv2', 'image_size': 64, 'window_size': 8, "
                                    "'pretrained_window_sizes': [4, 4, 4, 2]}");
    (void)state;
    assert_int_equal(posenc_model_describe(model)->layers, 12);
    assert_int_equal(posenc_model_describe(model)->group_count, 4);
    assert_string_equal(posenc_model_group_at(model, 0)->spec, "swin_v2[window=8:8,pretrained_window=4:4]");
    assert_string_equal(posenc_model_group_at(model, 3)->spec, "swin_v2[window=2:2,pretrained_window=2:2]");
    assert_int_equal(posenc_model_group_at(model, 3)->dims.H, 24);
    assert_int_equal(posenc_model_group_of(model, 9), 2);
    posenc_model_free(model);
}

/* ---------------------------------------------------------------- nothing misread ----------- */

static void what_programs_disagree_about_is_said(void **state)
{
    static const struct {
        const char *line, *spec, *words;
    } rows[] = {
        {"{'model_type': 'dbrx', 'attn_config': {'rope_theta': 5e5}}",
         "rope[layout=half,dim=128,base=500000]", "rope_theta of attn_config is 500000"},
        {"{'model_type': 'mpt', 'attn_config': {'softmax_scale': 0.5, 'alibi_bias_max': 16}}",
         "alibi[scale=0.5]", "alibi_bias_max is 16"},
        {"{'model_type': 'mpt', 'attn_config': {'alibi': false}}", "alibi", "alibi of attn_config is false"},
        {"{'model_type': 'bert', 'position_embedding_type': 'relative_key'}",
         "huang_m4[max_positions=512,key_term=no]", "position_embedding_type is relative_key"},
        {"{'model_type': 'roberta', 'position_embedding_type': 'relative_key_query'}",
         "huang_m4[max_positions=512,key_term=yes]", "position_embedding_type is relative_key_query"},
        {"{'model_type': 'bert', 'position_embedding_type': 'alibi'}", "alibi",
         "position_embedding_type is alibi"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model *model = read_line(rows[i].line);
        int           said  = 0;
        assert_string_equal(posenc_model_group_at(model, 0)->spec, rows[i].spec);
        for (int k = 0; k < posenc_model_describe(model)->warning_count; k++)
            said |= !strcmp(posenc_model_warning_at(model, k)->code, "programs-disagree") &&
                    strstr(posenc_model_warning_at(model, k)->sentence, rows[i].words);
        if (!said)
            fail_msg("no warning says \"%s\"", rows[i].words);
        posenc_model_free(model);
    }
}

static void what_no_spec_says_is_a_fact(void **state)
{
    static const struct {
        const char *line;
        int         group;
        const char *text; /* NULL: nothing */
    } rows[] = {
        {SIX("diffllama") "}", 0, "differential attention"},
        {SIX("gemma2") "}", 0, NULL},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model      *model = read_line(rows[i].line);
        const posenc_fact *f = posenc_model_fact(posenc_model_group_at(model, rows[i].group), "other_terms");
        if (rows[i].text) {
            assert_non_null(f);
            assert_string_equal(f->text, rows[i].text);
        } else
            assert_null(f);
        posenc_model_free(model);
    }
}

/* A cap, sinks and a temperature are settings. */
static void what_scores_have_besides_is_in_the_spec(void **state)
{
    static const struct {
        const char *line;
        int         group;
        const char *fact, *says, *without; /* what the SPEC says, or does not */
    } rows[] = {
        {SIX("gemma2") "}", 0, "softcap", ",softcap=50]", "sink"},
        {SIX("gemma2") ", 'attn_logit_softcapping': null}", 0, NULL, "rope", "softcap"},
        {GEMMA3 ", 'attn_logit_softcapping': 30}", 0, "softcap", ",softcap=30]", "sink"},
        {GEMMA3 "}", 0, NULL, "rope", "softcap"},
        {SIX("gpt_oss") "}", 0, "sink", ",sink=head]", "softcap"},
        {"{'model_type': 'mimo_v2_flash', " SMALL "}", 0, NULL, "rope",
         "sink"}, /* the full layers come first */
        {"{'model_type': 'mimo_v2_flash', " SMALL "}", 1, "sink", ",sink=head]", "softcap"},
        {SIX("inkling_text") ", 'log_scaling_n_floor': 4}", 0, "extent", "inkling[extent=512,width=16]",
         "temper"},
        {SIX("inkling_text") ", 'log_scaling_n_floor': 4}", 1, "temperature.rule",
         "inkling[extent=1024,width=16,temperature=inkling,temper_scale=0.1,temper_length=4]", "sink"},
        {SIX("inkling2_text") "}", 1, "sink", ",temper_length=128000,scale=0.", "rope"},
        {SIX("llama4_text") "}", 1, "temperature.rule", "nope[temperature=llama4,temper_scale=0.1,", "rope"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model             *model = read_line(rows[i].line);
        const posenc_model_group *g     = posenc_model_group_at(model, rows[i].group);
        if (rows[i].fact)
            assert_non_null(posenc_model_fact(g, rows[i].fact));
        if (!strstr(g->spec, rows[i].says) || strstr(g->spec, rows[i].without))
            fail_msg("%s: the SPEC is %s", rows[i].line, g->spec);
        posenc_model_free(model);
    }
}

#define MUSE SIX("muse_spark_text") ", 'num_key_value_heads': 2, 'head_dim': 16"

/* Muse says which layers do not rotate by a base of 0; where it does not, every fourth from the last on. */
static void layers_without_a_base_do_not_rotate(void **state)
{
    static const struct {
        const char *line, *rotates; /* a letter for each layer: rotates, nope, no attention */
    } rows[] = {
        {MUSE ", 'layer_types': ['sliding_attention', 'full_attention', 'sliding_attention', "
              "'sliding_attention', 'sliding_attention', 'full_attention'], "
              "'layer_rope_theta': [1e4, 0, 1e4, 1e4, 1e4, 0]}",
         "rnrrrn"},
        {MUSE "}", "rnrrrn"},
        {MUSE ", 'layer_rope_theta': [0, 0, 0, 0, 0, 1e4]}", "nnnnnr"},
        {MUSE ", 'layer_types': ['linear_attention', 'full_attention', 'sliding_attention', "
              "'linear_attention', 'full_attention', 'full_attention']}",
         "-nr-nn"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model *model = read_line(rows[i].line);
        for (int64_t layer = 0; layer < 6; layer++) {
            const posenc_model_group *g = posenc_model_group_at(model, posenc_model_group_of(model, layer));
            const char                kind = !g ? '-' : !strcmp(g->spec, "nope") ? 'n' : 'r';
            if (kind != rows[i].rotates[layer])
                fail_msg("%s: layer %lld is \"%s\"", rows[i].line, (long long)layer, g ? g->spec : "none");
            if (kind == 'r')
                assert_string_equal(g->spec, "rope[layout=half,dim=16,base=10000]");
        }
        posenc_model_free(model);
    }
}

/* Each of these readers serves one type. Files as transformers 5.24 writes them, with small sizes. */
static void types_that_stand_alone_are_read(void **state)
{
    static const struct {
        const char *line, *spec, *fact;
        int64_t     is;
    } rows[] = {
        {"{'model_type': 'vit_mae', 'hidden_size': 64, 'num_attention_heads': 4, 'num_hidden_layers': 2, "
         "'image_size': 32, 'patch_size': 8, 'decoder_hidden_size': 512}",
         "sinusoidal2d[preset=mae,height=4,width=4,dim=64,prefix_rows=1]", "rows", 17},
        {"{'model_type': 'vit_mae'}", "sinusoidal2d[preset=mae,height=14,width=14,dim=768,prefix_rows=1]",
         "prefix_rows", 1},
        {"{'model_type': 'parakeet_encoder', 'hidden_size': 64, 'num_attention_heads': 4, "
         "'num_hidden_layers': 2, 'max_position_embeddings': 5000, 'scale_input': true}",
         "transformer_xl[d_model=64]", "head_dim", 16},
        {"{'model_type': 'pix2struct_text_model', 'hidden_size': 64, 'num_heads': 4, 'd_kv': 16, "
         "'num_layers': 2, 'is_decoder': true, 'relative_attention_max_distance': 128, "
         "'relative_attention_num_buckets': 20}",
         "t5[num_buckets=20,max_distance=128,bidirectional=no,scale=1]", "num_buckets", 20},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_model *model = read_line(rows[i].line);
        assert_int_equal(posenc_model_describe(model)->group_count, 1);
        assert_string_equal(posenc_model_group_at(model, 0)->spec, rows[i].spec);
        assert_int_equal(fact(model, 0, rows[i].fact)->integer, rows[i].is);
        posenc_model_free(model);
    }
}

static void slopes_of_another_maximum_are_arrays(void **state)
{
    posenc_model *model =
        read_line("{'model_type': 'mpt', 'n_heads': 4, 'd_model': 8, 'attn_config': {'alibi_bias_max': 16}}");
    const posenc_model_group *g = posenc_model_group_at(model, 0);
    (void)state;
    assert_int_equal(g->param_count, 1);
    assert_float_equal(((const double *)g->params[0].tensor.data)[0], 1. / 16, 1e-15); /* 2^(-16/4) */
    posenc_model_free(model);
    model = read_line("{'model_type': 'mpt', 'n_heads': 4, 'd_model': 8}");
    assert_int_equal(posenc_model_group_at(model, 0)->param_count, 0); /* what alibi begins with */
    posenc_model_free(model);
}

static void tables_of_albert_and_electra_are_as_wide_as_their_words(void **state)
{
    static const char *const types[] = {"albert", "electra"};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char line[120];
        snprintf(line, sizeof line, "{'model_type': '%s'}", types[i]);
        posenc_model *model = read_line(line);
        assert_string_equal(posenc_model_group_at(model, 0)->spec, "learned[rows=512,dim=128,offset=0]");
        posenc_model_free(model);
    }
}

static void heads_and_fractions_of_unknown_types_are_the_file_s(void **state)
{
    posenc_model *model = read_line(NOVEL ", 'qk_rope_head_dim': 8, 'qk_nope_head_dim': 16}");
    (void)state;
    assert_string_equal(posenc_model_group_at(model, 0)->spec,
                        "rope[layout=interleaved,dim=8,offset_dim=16,base=10000]");
    posenc_model_free(model);
    model = read_line(NOVEL ", 'partial_rotary_factor': 0.5}");
    assert_string_equal(posenc_model_group_at(model, 0)->spec, "rope[layout=half,dim=8,base=10000]");
    posenc_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_read_as_their_file_is),
        cmocka_unit_test(bytes_that_are_no_model_are_refused_by_name),
        cmocka_unit_test(each_warning_has_its_file),
        cmocka_unit_test(what_no_model_could_have_is_refused),
        cmocka_unit_test(a_layer_finds_its_group),
        cmocka_unit_test(both_halves_of_an_old_modernbert_are_scaled),
        cmocka_unit_test(a_windowless_exaone_rotates_everywhere),
        cmocka_unit_test(two_lengths_are_for_the_schedule_and_for_the_temperature),
        cmocka_unit_test(phimoe_has_two_magnitudes),
        cmocka_unit_test(layers_that_are_alike_are_one_group),
        cmocka_unit_test(what_is_said_of_a_missing_base_is_true),
        cmocka_unit_test(llama3_s_factors_may_stand_the_wrong_way_round),
        cmocka_unit_test(a_class_that_writes_another_order_is_said_to),
        cmocka_unit_test(fractions_of_heads_that_turn_their_tails),
        cmocka_unit_test(every_spec_creates_an_encoding),
        cmocka_unit_test(the_language_model_is_found_inside),
        cmocka_unit_test(the_parts_beside_it_are_models_too),
        cmocka_unit_test(what_programs_disagree_about_is_said),
        cmocka_unit_test(what_no_spec_says_is_a_fact),
        cmocka_unit_test(what_scores_have_besides_is_in_the_spec),
        cmocka_unit_test(layers_without_a_base_do_not_rotate),
        cmocka_unit_test(types_that_stand_alone_are_read),
        cmocka_unit_test(slopes_of_another_maximum_are_arrays),
        cmocka_unit_test(tables_of_albert_and_electra_are_as_wide_as_their_words),
        cmocka_unit_test(heads_and_fractions_of_unknown_types_are_the_file_s),
        cmocka_unit_test(each_layer_has_its_window),
        cmocka_unit_test(a_group_s_window_is_a_number_or_one_for_each_layer),
        cmocka_unit_test(json_is_a_text_of_the_caller_s),
        cmocka_unit_test(heads_have_the_width_that_the_file_tells_where_nothing_rotates),
        cmocka_unit_test(a_stage_of_swin_has_a_window_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
