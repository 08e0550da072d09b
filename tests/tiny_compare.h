/* SPDX-License-Identifier: MIT */
/*
 * tiny_compare.h: a comparison that trains in a moment, for tests; include it behind cmocka.h
 */
#ifndef TINY_COMPARE_H
#define TINY_COMPARE_H

#include "train/compare.h"

#include <jansson.h>

enum { TINY_BYTES = 40000, TINY_LENGTH = 16 };

static unsigned char tiny_bytes[TINY_BYTES];

/* Words in random order: something to learn, and no line twice. */
static inline void tiny_write_words(void)
{
    static const char *const words[] = {"and ",  "the ",    "waters ", "prevailed ",
                                        "upon ", "earth, ", "he ",     "said: "};
    size_t                   used    = 0;
    for (uint64_t i = 0; used < TINY_BYTES; i++) {
        const char *word = words[(size_t)(8 * posenc_random_uniform(3, "words", i))];
        for (; *word && used < TINY_BYTES; word++)
            tiny_bytes[used++] = (unsigned char)*word;
    }
}

static inline pe_compare_config tiny_compare(const char *encodings)
{
    const pe_preset preset = {.name          = "tiny",
                              .encodings     = encodings,
                              .steps         = 20,
                              .seeds         = 1,
                              .L             = TINY_LENGTH,
                              .reach         = 8,
                              .d_model       = 16,
                              .layers        = 2,
                              .heads         = 2,
                              .batch         = 4,
                              .warmup        = 5,
                              .windows       = 30,
                              .learning_rate = 0.024,
                              .weight_decay  = 0.01,
                              .clip          = 1};
    return (pe_compare_config){
        .preset = preset, .text = tiny_bytes, .text_size = TINY_BYTES, .text_name = "words", .workers = 1};
}

static inline pe_compare *tiny_trained(const pe_compare_config *config, const pe_compare_watch *watch)
{
    pe_compare  *c;
    posenc_error err;
    int          interrupted;
    if (pe_compare_create(&c, config, &err))
        fail_msg("%s", err.message);
    if (pe_compare_train(c, watch, &interrupted, &err))
        fail_msg("%s", err.message);
    return c;
}

/* Members called "time" are all that two equal comparisons may differ in. */
static inline void tiny_remove_times(json_t *json)
{
    const char *key;
    json_t     *value;
    size_t      i;
    json_object_del(json, "time");
    json_object_foreach(json, key, value) tiny_remove_times(value);
    json_array_foreach(json, i, value) tiny_remove_times(value);
}

/* results.json of a comparison, without times. */
static inline json_t *tiny_numbers(const pe_compare_config *config)
{
    pe_compare *c = tiny_trained(config, NULL);
    char       *text;
    assert_int_equal(pe_results_json(c, &text, NULL), POSENC_OK);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(json);
    tiny_remove_times(json);
    free(text);
    pe_compare_free(c);
    return json;
}

#endif
