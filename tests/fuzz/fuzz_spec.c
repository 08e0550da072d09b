/* SPDX-License-Identifier: MIT */
/*
 * fuzz_spec: any text as SPEC, settings, expression and index map
 *
 * The first line of the input is a SPEC, the second the settings beside it, the third the settings of an
 * index map. What is accepted must have a canonical form that is accepted again and stays itself, and must
 * prepare or be refused at a plan.
 */
#include <posenc/positions.h>
#include <posenc/registry.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_plan(const posenc_encoding *e)
{
    const posenc_dims dims    = {.B = 1, .H = 2, .Lq = 8, .Lk = 8, .D = 4, .L = 8};
    posenc_options    options = posenc_options_default();
    posenc_plan      *plan    = NULL;
    options.mask              = POSENC_MASK_CAUSAL;
    if (posenc_plan_create(&plan, e, &dims, &options, NULL) == POSENC_OK &&
        posenc_plan_workspace(plan, (posenc_run)(POSENC_RUN_FORWARD | POSENC_RUN_BACKWARD), NULL) % 64 != 0)
        abort();
    posenc_plan_free(plan);
}

static void try_spec(const char *spec, const char *settings)
{
    posenc_encoding *e, *again;
    if (posenc_encoding_create(&e, spec, settings, NULL))
        return;
    if (posenc_encoding_create(&again, posenc_encoding_spec(e), NULL, NULL) ||
        strcmp(posenc_encoding_spec(e), posenc_encoding_spec(again)) != 0)
        abort();
    for (int i = 0; i < posenc_param_count(e); i++)
        posenc_param_trainable(e, i);
    try_plan(e);
    posenc_encoding_free(e);
    posenc_encoding_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t rel[4] = {-1000000, -3, 0, 77};
    int64_t       out[4];
    char         *text = malloc(size + 1), *settings, *map;
    memcpy(text, data, size);
    text[size] = '\0';
    settings   = strchr(text, '\n');
    if (settings)
        *settings++ = '\0';
    map = settings ? strchr(settings, '\n') : NULL;
    if (map)
        *map++ = '\0';
    try_spec(text, settings);
    posenc_index_map("t5", map, rel, 4, out, NULL);
    posenc_index_map("deberta", map, rel, 4, out, NULL);
    free(text);
    return 0;
}
