/* SPDX-License-Identifier: MIT */
/*
 * test_gradients: combinations and settings that no room tries alone, against finite differences
 *
 * test_rooms compares each encoding with its own settings. Here each attention encoding of the registry is
 * joined to each of another place (a rotation beneath a bias, for instance), and the masks other than causal
 * are tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "differences.h"

static const posenc_dims dims = {
    .B = 2, .H = 2, .G = 1, .Lq = 4, .Lk = 6, .D = 6, .Dv = 4, .d_model = 8, .L = 8};

/* "name[small settings]"; the return value says that it acts in attention. */
static int write_part(char *spec, size_t n, const posenc_encoding_info *info)
{
    char small[256];
    assert_int_equal(posenc_small_model(info->name, &dims, POSENC_MASK_CAUSAL, small, sizeof small, NULL),
                     POSENC_OK);
    snprintf(spec, n, "%s%s%s%s", info->name, *small ? "[" : "", small, *small ? "]" : "");
    return info->place != POSENC_PLACE_INPUT;
}

static void every_pair_of_attention_encodings_has_the_gradients_of_its_loss(void **state)
{
    int pairs = 0;
    (void)state;
    for (int a = 0; a < posenc_encoding_count(); a++)
        for (int b = 0; b < a; b++) {
            const posenc_encoding_info *x = posenc_encoding_info_at(a), *y = posenc_encoding_info_at(b);
            char                        one[300], two[300], spec[602];
            if (!write_part(one, sizeof one, x) || !write_part(two, sizeof two, y) || x->place == y->place)
                continue;
            snprintf(spec, sizeof spec, "%s+%s", one, two);
            if (!case_exists(spec, NULL))
                continue;
            compare_gradients(spec, dims, POSENC_MASK_CAUSAL, (uint64_t)(a * 100 + b));
            pairs++;
        }
    assert_true(pairs >= 3);
}

static void every_mask_has_the_gradients_of_its_loss(void **state)
{
    static const int masks[] = {POSENC_MASK_CAUSAL | POSENC_MASK_WINDOW,
                                POSENC_MASK_CAUSAL | POSENC_MASK_KEY_PADDING,
                                POSENC_MASK_CAUSAL | POSENC_MASK_EXPLICIT,
                                POSENC_MASK_CAUSAL | POSENC_MASK_SEGMENTS};
    (void)state;
    for (int a = 0; a < posenc_encoding_count(); a++)
        for (size_t m = 0; m < sizeof masks / sizeof *masks; m++) {
            char spec[300];
            if (write_part(spec, sizeof spec, posenc_encoding_info_at(a)))
                compare_gradients(spec, dims, masks[m], (uint64_t)(a * 10) + m);
        }
}

/* Settings with parameters, or with a way of reading them, that neither standards nor small models have. */
static void settings_beside_the_standard_have_the_gradients_of_their_loss(void **state)
{
    static const char *const specs[] = {
        "shaw[max_relative=2:beyond=zero]",
        "shaw[min_distance=-1:max_distance=0:per_head=yes:beyond=zero]",
        "deberta[span=3:projected=no:sigma=0.5:biases=query]",
        "deberta[span=3:projected=no:sigma=0.5:biases=both:terms=c2p]",
        "deberta[span=3:projected=no:sigma=0.5:norm_rel_ebd=yes]",
        "deberta[max_relative_positions=6:position_buckets=4:projected=no:sigma=0.5:biases=both:norm_rel_ebd="
        "yes]",
        "urpe[index_offset=7:init=normal:sigma=0.5]",
        "nope[temperature=ssmax:temper_bias=yes:sink=token]",
        "nope[temperature=ssmax:temper_on=score:temper_bias=yes:sink=head:softcap=2]",
        "alibi[learned=yes:temperature=ssmax:temper_on=score:sink=head:softcap=3]",
        "transformer_xl[temperature=ssmax:temper_count=position:sink=token]",
        "xlnet[temperature=llama4:temper_length=2:temper_scale=0.8:temper_on=score:sink=head]",
        "rope[content=position:layout=half]",
        "rope[content=angle:dim=4:temperature=ssmax:softcap=3]",
        "rope[content=step:q_phase=0.7:direction=inverse]+alibi",
        "path[gate=plain:temperature=ssmax:sink=token]",
        "path[gate=scaled:temperature=ssmax:temper_on=score:softcap=3]",
        "wall[gate=yes:temperature=ssmax:sink=token]",
        "wall[temperature=ssmax:temper_on=score:softcap=3]",
        "alibi[learned=yes:temperature=ssmax:softcap=3]+stick_breaking[attend_current=yes]",
        "rope+fox+stick_breaking[remainder=self]",
        "complex_order_attention[temperature=ssmax:sink=token]",
        "swin_v2[window=2x4:mlp_width=4:temperature=ssmax:softcap=4]",
        "shaw[max_relative=3:temperature=inkling:temper_length=2:sink=token]+urpe[rows=33:index_offset=16]",
    };
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        const int causal = !strncmp(specs[i], "path", 4) || !strncmp(specs[i], "wall", 4) ||
                           strstr(specs[i], "stick_breaking"); /* they have no meaning otherwise */
        compare_gradients(specs[i], dims, causal ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE, i);
        compare_gradients(specs[i], dims, POSENC_MASK_CAUSAL, i + 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_attention_encodings_has_the_gradients_of_its_loss),
        cmocka_unit_test(settings_beside_the_standard_have_the_gradients_of_their_loss),
        cmocka_unit_test(every_mask_has_the_gradients_of_its_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
