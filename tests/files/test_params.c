/* SPDX-License-Identifier: MIT */
/*
 * posenc_model_params: what a checkpoint calls its parameters is found, in the shape that the SPEC wants
 *
 * A checkpoint is written here tensor by tensor under the names of transformers (that real models have these
 * names, make test-peers shows); element i of tensor t is 100 t + i, so a number says where it comes from.
 */
#include "files/arrays/formats.h"
#include "files/parse.h"

#include "scratch.h"

#include <sys/stat.h>

enum { MOST_HEADER = 8192 };

typedef struct tensor {
    const char *name, *dtype, *shape;
    int         count;
} tensor;

/* A .safetensors of F32, F16 or BF16 tensors, and before them one of fp8, which nobody may ask for. */
static void write_checkpoint(const char *name, const tensor *tensors)
{
    char   header[MOST_HEADER] = "{\"big\":{\"dtype\":\"F8_E4M3\",\"shape\":[8],\"data_offsets\":[0,8]}";
    char   data[MOST_HEADER]   = {0};
    size_t end                 = 8;
    for (int t = 0; tensors[t].name; t++) {
        const int    is_half = strcmp(tensors[t].dtype, "F32") != 0;
        const size_t begin   = end;
        for (int i = 0; i < tensors[t].count; i++, end += is_half ? 2 : 4) {
            const float x = (float)(100 * t + i);
            uint32_t    bits;
            memcpy(&bits, &x, sizeof bits);
            const uint16_t half = (uint16_t)(bits >> 16); /* exact: few digits */
            memcpy(data + end, is_half ? (const void *)&half : (const void *)&x, is_half ? 2 : 4);
        }
        const size_t n = strlen(header);
        snprintf(header + n, sizeof header - n,
                 ",\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}", tensors[t].name,
                 tensors[t].dtype, tensors[t].shape, begin, end);
    }
    strcat(header, "}");
    FILE          *file = fopen(scratch(name), "wb");
    const uint64_t n    = strlen(header);
    assert_non_null(file);
    fwrite(&n, 1, sizeof n, file);
    fwrite(header, 1, (size_t)n, file);
    fwrite(data, 1, end, file);
    assert_int_equal(fclose(file), 0);
}

static posenc_model *model_of(const char *line)
{
    char          text[1024];
    posenc_model *model;
    posenc_error  err;
    size_t        n = strlen(line);
    for (size_t i = 0; i <= n; i++)
        text[i] = (char)(line[i] == '\'' ? '"' : line[i]);
    if (posenc_model_read_memory(&model, text, n, NULL, &err))
        fail_msg("%s", err.message);
    return model;
}

static posenc_arrays params_of(const char *config, int group, int64_t layer, const char *checkpoint)
{
    posenc_model *model = model_of(config);
    posenc_arrays set   = {0};
    posenc_error  err;
    if (posenc_model_params(&set, model, group, layer, checkpoint, &err))
        fail_msg("%s", err.message);
    posenc_model_free(model);
    return set;
}

static void refused(const char *config, int group, int64_t layer, const char *checkpoint, const char *words)
{
    posenc_model *model = model_of(config);
    posenc_arrays set   = {0};
    posenc_error  err;
    assert_int_not_equal(posenc_model_params(&set, model, group, layer, checkpoint, &err), POSENC_OK);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" does not say \"%s\"", err.message, words);
    assert_int_equal(set.count, 0);
    posenc_model_free(model);
}

/* The array has that shape ("2,3") and its first number is `first`. */
static void holds(const posenc_arrays *set, const char *name, const char *shape, float first)
{
    const posenc_tensor *t        = posenc_arrays_find(set, name);
    char                 text[64] = "";
    assert_non_null(t);
    for (int32_t a = 0; a < t->ndim; a++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld", a ? "," : "",
                 (long long)t->shape[a]);
    assert_string_equal(text, shape);
    assert_int_equal(t->dtype, POSENC_DTYPE_F32);
    assert_float_equal(((const float *)t->data)[0], first, 0);
    assert_float_equal(((const float *)t->data)[1], first + 1, 0);
}

#define T5                                                                  \
    "{'model_type': 't5', 'd_model': 16, 'num_heads': 2, 'num_layers': 3, " \
    "'relative_attention_num_buckets': 4}"
#define SUM ".layer.0.SelfAttention.relative_attention_bias.weight"

static void a_stack_has_the_table_of_its_own(void **state)
{
    static const tensor tensors[] = {{"encoder.block.0" SUM, "F32", "4,2", 8},
                                     {"decoder.block.0" SUM, "BF16", "4,2", 8},
                                     {"decoder.block.0.layer.1.EncDecAttention.q.weight", "F32", "2", 2},
                                     {0}};
    (void)state;
    write_checkpoint("t5.safetensors", tensors);
    for (int group = 0; group < 2; group++) {
        posenc_arrays set = params_of(T5, group, -1, scratch("t5.safetensors"));
        assert_int_equal(set.count, 1);
        holds(&set, "table", "4,2", (float)(100 * group));
        posenc_arrays_free(&set);
    }
}

#define VIT "{'model_type': 'vit', 'image_size': 4, 'patch_size': 2, 'hidden_size': 3}"

static void axes_of_length_1_come_and_go(void **state)
{
    static const tensor tensors[] = {{"vit.embeddings.position_embeddings", "F32", "1,5,3", 15}, {0}};
    (void)state;
    write_checkpoint("vit.safetensors", tensors);
    posenc_arrays set = params_of(VIT, 0, -1, scratch("vit.safetensors"));
    holds(&set, "table", "5,3", 0);
    posenc_arrays_free(&set);
}

#define SELF "deberta.encoder.layer.1.attention.self."
#define DEBERTA                                                                                         \
    "{'model_type': 'deberta-v2', 'hidden_size': 4, 'num_attention_heads': 2, 'num_hidden_layers': 2, " \
    "'max_position_embeddings': 8, 'position_buckets': 2, 'relative_attention': true, 'norm_rel_ebd': " \
    "'layer_norm',"                                                                                     \
    "'position_biased_input': false, 'pos_att_type': ['c2p', 'p2c'], 'share_att_key': true}"

static void deberta_s_positions_are_projected_as_its_words_are(void **state)
{
    static const tensor tensors[] = {{"deberta.encoder.rel_embeddings.weight", "F32", "4,4", 16},
                                     {SELF "key_proj.weight", "F32", "4,4", 16},
                                     {SELF "query_proj.weight", "F32", "4,4", 16},
                                     {SELF "key_proj.bias", "F32", "4", 4},
                                     {SELF "query_proj.bias", "F32", "4", 4},
                                     {"deberta.encoder.LayerNorm.weight", "F32", "4", 4},
                                     {"deberta.encoder.LayerNorm.bias", "F32", "4", 4},
                                     {0}};
    static const struct {
        const char *name, *shape;
    } rows[] = {{"P", "4,4"},  {"W_kr", "4,4"}, {"W_qr", "4,4"}, {"b_kr", "4"},
                {"b_qr", "4"}, {"ln_w", "4"},   {"ln_b", "4"}};
    (void)state;
    write_checkpoint("deberta.safetensors", tensors);
    posenc_arrays set = params_of(DEBERTA, 0, 1, scratch("deberta.safetensors"));
    assert_int_equal(set.count, 7);
    for (int i = 0; i < 7; i++)
        holds(&set, rows[i].name, rows[i].shape, (float)(100 * i));
    posenc_arrays_free(&set);
    refused(DEBERTA, 0, 0, scratch("deberta.safetensors"),
            "it has no tensor encoder.layer.0.attention.self.pos_key_proj");
    refused(DEBERTA, 0, 2, scratch("deberta.safetensors"), "layer 2 is not one of group 0");
}

#define BLOCK "swinv2.encoder.layers.1.blocks.2.attention.self."
#define SWIN                                                                                         \
    "{'model_type': 'swinv2', 'image_size': 16, 'patch_size': 2, 'window_size': 2, 'embed_dim': 4, " \
    "'depths': [1, 3], 'num_heads': [1, 2]}"

static void a_layer_of_swin_is_a_block_of_a_stage(void **state)
{
    static const tensor tensors[] = {{BLOCK "continuous_position_bias_mlp.0.weight", "F32", "512,2", 1024},
                                     {BLOCK "continuous_position_bias_mlp.0.bias", "F32", "512", 512},
                                     {BLOCK "logit_scale", "F32", "2,1,1", 2},
                                     {0}};
    (void)state;
    write_checkpoint("swin.safetensors", tensors);
    refused(SWIN, 1, 3, scratch("swin.safetensors"),
            "it has no tensor layers.1.blocks.2.attention.self.continuous_position_bias_mlp.2.weight, which "
            "is W2");
}

#define XLNET "{'model_type': 'xlnet', 'd_model': 4, 'n_head': 2, 'n_layer': 12}"

static void a_layer_is_not_taken_for_another_that_ends_alike(void **state)
{
#define LAYER(n)                                                        \
    {"transformer.layer." n ".rel_attn.r", "F32", "4,2,2", 16},         \
        {"transformer.layer." n ".rel_attn.r_w_bias", "F32", "2,2", 4}, \
        {"transformer.layer." n ".rel_attn.r_r_bias", "F32", "2,2", 4}, \
        {"transformer.layer." n ".rel_attn.r_s_bias", "F32", "2,2", 4}, \
    {                                                                   \
        "transformer.layer." n ".rel_attn.seg_embed", "F32", "2,2,2", 8 \
    }
    static const tensor tensors[] = {LAYER("1"), LAYER("11"), {0}};
    (void)state;
    write_checkpoint("xlnet.safetensors", tensors);
    posenc_arrays one   = params_of(XLNET, 0, 1, scratch("xlnet.safetensors")),
                  other = params_of(XLNET, 0, 11, scratch("xlnet.safetensors"));
    holds(&one, "Wr", "4,2,2", 0);
    holds(&one, "u_bias", "2,2", 100);
    holds(&other, "Wr", "4,2,2", 500);
    holds(&other, "seg_embed", "2,2,2", 900);
    posenc_arrays_free(&one);
    posenc_arrays_free(&other);
}

#define BERT \
    "{'model_type': 'bert', 'hidden_size': 3, 'num_attention_heads': 1, 'max_position_embeddings': 4}"

static void a_divided_checkpoint_is_read_where_its_index_says(void **state)
{
    static const tensor tensors[] = {{"bert.embeddings.position_embeddings.weight", "F32", "4,3", 12}, {0}};
    static const char   index[]   = "{\"weight_map\":{\"a\":\"missing.safetensors\","
                                    "\"bert.embeddings.position_embeddings.weight\":\"part2.safetensors\"}}";
    static const char   out[]     = "{\"weight_map\":{\"embeddings.position_embeddings.weight\":\"../x\"}}";
    static const char   pipe[] =
        "{\"weight_map\":{\"embeddings.position_embeddings.weight\":\"pipe.safetensors\"}}";
    (void)state;
    write_checkpoint("part2.safetensors", tensors);
    scratch_write("model.safetensors.index.json", index, sizeof index - 1);
    posenc_arrays set = params_of(BERT, 0, -1, scratch("model.safetensors.index.json"));
    holds(&set, "table", "4,3", 0);
    assert_int_equal(posenc_arrays_write(&set, scratch("bert.npz"), NULL), POSENC_OK);
    posenc_arrays_free(&set);
    scratch_write("out.json", out, sizeof out - 1);
    refused(BERT, 0, -1, scratch("out.json"), "weight_map names no file of its folder");
    assert_int_equal(mkfifo(scratch("pipe.safetensors"), 0600), 0); /* nobody would ever write into it */
    scratch_write("pipe.json", pipe, sizeof pipe - 1);
    refused(BERT, 0, -1, scratch("pipe.json"), "pipe.safetensors: it is no regular file");
    scratch_write("none.json", "{}", 2);
    refused(BERT, 0, -1, scratch("none.json"), "it has no object weight_map");
    refused(BERT, 0, -1, scratch("bert.npz"),
            "it has no tensor embeddings.position_embeddings.weight, which is table");
}

static void an_npz_is_a_checkpoint_too(void **state)
{
    posenc_arrays  set = {0};
    posenc_tensor *t   = posenc_arrays_add(&set, "embeddings.position_embeddings.weight", POSENC_DTYPE_F32, 2,
                                           (const int64_t[2]){4, 3});
    (void)state;
    ((float *)t->data)[1] = 1;
    assert_int_equal(posenc_arrays_write(&set, scratch("w.npz"), NULL), POSENC_OK);
    posenc_arrays_free(&set);
    set = params_of(BERT, 0, -1, scratch("w.npz"));
    holds(&set, "table", "4,3", 0);
    posenc_arrays_free(&set);
}

static void what_does_not_fit_is_refused_by_the_tensor_s_name(void **state)
{
    static const tensor small[] = {{"embeddings.position_embeddings.weight", "F32", "2,3", 6}, {0}};
    static const tensor twice[] = {{"a.embeddings.position_embeddings.weight", "F32", "4,3", 12},
                                   {"b.embeddings.position_embeddings.weight", "F32", "4,3", 12},
                                   {0}};
    (void)state;
    write_checkpoint("small.safetensors", small);
    refused(BERT, 0, -1, scratch("small.safetensors"),
            "numbers of the shape [2,3]; table of learned must be real, [4,3]");
    write_checkpoint("twice.safetensors", twice);
    refused(BERT, 0, -1, scratch("twice.safetensors"),
            "it has a.embeddings.position_embeddings.weight and b.");
    refused(BERT, 0, -1, NULL, "give a checkpoint");
    refused(BERT, 1, -1, NULL, "group is 1; the model has 1");
    refused(BERT, 0, -1, scratch("nowhere.safetensors"), "cannot be opened");
    assert_int_equal(posenc_model_params(NULL, NULL, 0, 0, NULL, NULL), POSENC_ERROR_ARGUMENT);
}

static void numbers_of_the_model_s_own_file_need_no_checkpoint(void **state)
{
    static const char phi3[] =
        "{'model_type': 'phi3', 'hidden_size': 8, 'num_attention_heads': 2, 'num_hidden_layers': 1, "
        "'max_position_embeddings': 64, 'original_max_position_embeddings': 16, 'rope_theta': 1e4, "
        "'rope_scaling': {'type': 'longrope', 'short_factor': [1, 2], 'long_factor': [3, 4]}}";
    (void)state;
    posenc_arrays        set = params_of(phi3, 0, -1, NULL);
    const posenc_tensor *t   = posenc_arrays_find(&set, "long_factor");
    assert_int_equal(set.count, 2);
    assert_int_equal(t->dtype, POSENC_DTYPE_F64);
    assert_float_equal(((const double *)t->data)[1], 4, 0);
    posenc_arrays_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stack_has_the_table_of_its_own),
        cmocka_unit_test(axes_of_length_1_come_and_go),
        cmocka_unit_test(deberta_s_positions_are_projected_as_its_words_are),
        cmocka_unit_test(a_layer_of_swin_is_a_block_of_a_stage),
        cmocka_unit_test(a_layer_is_not_taken_for_another_that_ends_alike),
        cmocka_unit_test(a_divided_checkpoint_is_read_where_its_index_says),
        cmocka_unit_test(an_npz_is_a_checkpoint_too),
        cmocka_unit_test(what_does_not_fit_is_refused_by_the_tensor_s_name),
        cmocka_unit_test(numbers_of_the_model_s_own_file_need_no_checkpoint),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
