/* SPDX-License-Identifier: MIT */
/*
 * test_rope: numbers of the rotary family that were computed elsewhere with 40 digits
 *
 * Frequencies, their sums and magnitudes of published models; cosines and sines of products at far positions;
 * which coordinate each pair follows; angles as float32 rounds them; temperatures. They are printed with 15
 * digits, so the tolerance is a few of the last: 4e-15 to 6e-15 relative, 2e-14 for sums of 32 to 64 numbers
 * and for the bases that pow makes. Beside them what the settings refuse, and the peers' own float32
 * frequencies out of the reference cases.
 */
#include "rope_case.h"

#include <posenc/files.h>
#include <stdio.h>
#include <string.h>

#define GOLDEN POSENC_SOURCE_DIR "/tests/golden/rope"

/* ---- frequencies and magnitudes ---- */

static const struct {
    const char *spec;
    int64_t     D;
    int         pair;
    double      w, last, sum, magnitude; /* 0: not given */
} models[] = {
    {"rope", 128, 32, 0.01, 1.15478198468946e-4, 7.45995413360035, 1},
    {"rope[base=5e5]", 128, 32, 1.41421356237310e-3, 2.45514079113161e-6, 5.39423389133253, 1},
    {"rope[base=1e6]", 128, 1, 0.805842187761482, 1.24093776075172e-6, 5.15044431367781, 1},
    {"rope", 64, 1, 0.749894209332456, 1.33352143216332e-4, 3.99790823447638, 1},
    {"rope[base=1.5e5]", 64, 1, 0.689044305888163, 9.67523656998149e-6, 0, 1},
    {"rope[schedule=yarn:factor=40:original_length=4096]", 64, 16, 0.0055, 3.33380358040831e-6,
     3.94893627407869, 1.36888794541139},
    {"rope[base=1e6:schedule=yarn:factor=4:original_length=32768]", 128, 31, 8.02959727545230e-4,
     3.10234440187930e-7, 5.14403472174007, 1.13862943611199},
    {"rope[base=1.5e5:schedule=yarn:factor=32:original_length=4096:truncate=no]", 64, 13, 3.86035931719207e-3,
     0, 3.18043827692987, 1.34657359027997},
    {"rope[base=1.5e5:schedule=yarn:factor=32:original_length=4096]", 64, 13, 4.06955471475824e-3, 0,
     3.18165949220188, 1.34657359027997},
    {"rope[base=5e5:schedule=yarn:factor=8:original_length=8192]", 128, 26, 2.84671843865876e-3, 0,
     5.36472945548051, 1.20794415416798},
    {"rope[base=5e4:schedule=yarn:factor=32:original_length=4096]", 64, 14, 4.53455411393023e-3, 0,
     3.43970103141927, 1.34657359027997},
    {"rope[schedule=yarn:factor=36:original_length=8192]", 64, 18, 3.10008679271603e-3, 0, 0,
     1.35835189384561},
    {"rope[base=5e5:schedule=llama3:factor=8:low_freq_factor=1:high_freq_factor=4:original_length=8192]", 128,
     29, 2.16657076350336e-3, 3.06892598891451e-7, 5.38605820072857, 1},
    {"rope[base=5e5:schedule=llama3:factor=32:low_freq_factor=1:high_freq_factor=4:original_length=8192]", 64,
     15, 1.29054792820926e-3, 0, 2.96820229784215, 1},
    {"rope[base=5e5:schedule=llama3:factor=32:low_freq_factor=1:high_freq_factor=4:original_length=8192]",
     128, 29, 2.11840699677961e-3, 0, 5.38518223387815, 1},
    {"rope[schedule=ntk:alpha=8]", 128, 1, 0.837848001918802, 0, 0, 1},
    {"rope[schedule=ntk_mixed:factor=4]", 128, 0, 0.978572062087700, 0, 0, 1},
    {"rope[base=100:schedule=period:axes=2:axis_rule=axial]", 64, 1, 4.71172427801674, 0.0837876226937768, 0,
     1},
    {"rope[base=1e6:schedule=proportional:partial_rotary_factor=0.25]", 512, 63, 0.0333762469429204, 0, 0, 1},
    {"rope[schedule=yarn:factor=40:original_length=4096:mscale=1:mscale_all_dim=1]", 64, 0, 1, 0, 0, 1},
    {"rope[schedule=yarn:factor=40:original_length=4096:magnitude_rule=deepseek:mscale=0.707]", 64, 0, 1, 0,
     0, 1.26080377740586},
    {"rope[schedule=yarn:factor=64:original_length=4096]", 64, 0, 1, 0, 0, 1.41588830833597},
    {"rope[schedule=yarn:factor=16:original_length=4096]", 64, 0, 1, 0, 0, 1.27725887222398},
    {"rope[schedule=yarn:factor=16:original_length=4096:magnitude_rule=vllm:attn_factor=2:mscale=3]", 64, 0,
     1, 0, 0, 2.55451774444796},
    {"rope[schedule=yarn:factor=16:original_length=4096:magnitude_rule=none]", 64, 0, 1, 0, 0, 1},
};

static void models_have_their_frequencies_and_magnitudes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        turning t   = make(models[i].spec, models[i].D);
        double  sum = 0;
        for (int64_t m = 0; m < t.M; m++)
            sum += t.pairs[m].w;
        assert_near(t.pairs[models[i].pair].w, models[i].w, 4e-15, models[i].spec);
        if (models[i].last != 0)
            assert_near(t.pairs[t.M - 1].w, models[i].last, 6e-15, models[i].spec);
        if (models[i].sum != 0)
            assert_near(sum, models[i].sum, 4e-15, models[i].spec);
        assert_near(t.magnitude, models[i].magnitude, 4e-15, models[i].spec);
        drop(&t);
    }
}

/* Kept, blended, divided: counts of Llama 3.1-8B, 3.2-1B, 3.2-3B. */
static void llama3_keeps_blends_and_divides_as_many_pairs_as_meta_s_code(void **state)
{
    static const struct {
        int64_t D;
        double  factor;
        int     kept, blended, divided;
    } all[] = {{128, 8, 29, 6, 29}, {64, 32, 15, 3, 14}, {128, 32, 29, 6, 29}};
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char spec[160];
        int  count[3] = {0};
        snprintf(spec, sizeof spec,
                 "rope[base=5e5:schedule=llama3:factor=%g:low_freq_factor=1:high_freq_factor=4:original_"
                 "length=8192]",
                 all[i].factor);
        turning t = make(spec, all[i].D), plain = make("rope[base=5e5]", all[i].D);
        for (int64_t m = 0; m < t.M; m++) {
            const double ratio = plain.pairs[m].w / t.pairs[m].w;
            count[fabs(ratio - 1) < 1e-14 ? 0 : fabs(ratio - all[i].factor) < 1e-13 ? 2 : 1]++;
        }
        assert_int_equal(count[0], all[i].kept);
        assert_int_equal(count[1], all[i].blended);
        assert_int_equal(count[2], all[i].divided);
        drop(&t), drop(&plain);
    }
}

/* The base that the last pair tells: w_last = base^(-(d-2)/d). */
static void bases_grow_as_they_should(void **state)
{
    static const struct {
        const char *spec;
        double      base;
    } all[] = {{"rope[schedule=ntk:alpha=8]", 82684.6226405622},
               {"rope[schedule=ntk:alpha=1000]", 11158839.9250775},
               {"rope[schedule=dynamic:factor=2:max_length=4096:length=8192]", 30527.7367488067},
               {"rope[schedule=dynamic:factor=2:max_length=4096:length=16384]", 72195.8600865094},
               {"rope[schedule=dynamic:factor=2:max_length=4096:length=4096]", 10000},
               {"rope[schedule=dynamic:factor=2:max_length=4096:length=7]", 10000}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        turning t = make(all[i].spec, 128);
        assert_near(pow(t.pairs[63].w, -128.0 / 126), all[i].base, 2e-14, all[i].spec);
        assert_near(pow(t.pairs[7].w, -128.0 / 14), all[i].base, 4e-14, all[i].spec);
        drop(&t);
    }
}

static void longrope_s_magnitude_is_that_of_its_factor(void **state)
{
    static const struct {
        const char *spec;
        double      magnitude;
    } all[] = {{"rope[schedule=longrope:factor=32:original_length=4096]", 1.19023807142381},
               {"rope[schedule=longrope:max_length=131072:original_length=4096]", 1.19023807142381},
               {"rope[schedule=longrope:factor=16:original_length=4096]", 1.15470053837925},
               {"rope[schedule=longrope:factor=16:original_length=8192]", 1.14354374979373},
               {"rope[schedule=longrope:factor=1:original_length=8192]", 1},
               {"rope[schedule=longrope:factor=16:original_length=8192:attention_factor=1.5]", 1.5},
               {"rope[schedule=longrope:factor=16:original_length=64:attention_factor=1.5:attention_factor_"
                "long=1.75:"
                "length=64]",
                1.5},
               {"rope[schedule=longrope:factor=16:original_length=64:attention_factor=1.5:attention_factor_"
                "long=1.75:"
                "length=65]",
                1.75}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        turning t = make(all[i].spec, 96);
        assert_near(t.magnitude, all[i].magnitude, 4e-15, all[i].spec);
        drop(&t);
    }
}

/* PhiMoE: both lists and both magnitudes by the length of the run. */
static void longrope_takes_its_long_magnitude_beyond_the_first_length(void **state)
{
    turning t = make(
        "rope[schedule=longrope:factor=8:original_length=16:attention_factor=1.1:attention_factor_long=1.3]",
        8);
    const double        ones[4] = {1, 1, 1, 1}, twos[4] = {2, 2, 2, 2};
    const posenc_tensor params[2] = {
        posenc_tensor_contiguous((void *)(uintptr_t)ones, POSENC_DTYPE_F64, 1, (const int64_t[]){4}),
        posenc_tensor_contiguous((void *)(uintptr_t)twos, POSENC_DTYPE_F64, 1, (const int64_t[]){4})};
    (void)state;
    for (int far = 0; far < 2; far++) {
        double              row[8] = {1};
        posenc_error        err;
        const double        p = far ? 16 : 15;
        const posenc_tensor x =
            posenc_tensor_contiguous(row, POSENC_DTYPE_F64, 4, (const int64_t[]){1, 1, 1, 8});
        const posenc_rotate_io io = {.size      = sizeof io,
                                     .q         = x,
                                     .to_q      = x,
                                     .q_pos     = posenc_positions_range(p, 1),
                                     .direction = 1,
                                     .params    = params};
        if (posenc_rotate(t.plan, &io, &t.work, &err))
            fail_msg("%s", err.message);
        assert_near(hypot(row[0], row[1]), far ? 1.3 : 1.1, 1e-15, "the magnitude");
        assert_near(row[0] / hypot(row[0], row[1]), cos(far ? 8 : 15), 1e-14, "the cosine");
    }
    drop(&t);
}

/* ---- angles ---- */

/* `slack`: the last bit of the frequency, times the position. Where the anchor is of the formula's own
   frequency. */
static void far_positions_have_their_cosines_and_sines(void **state)
{
    static const struct {
        const char *spec;
        int64_t     D;
        double      p;
        int         pair;
        double      cosine, sine, slack;
    } all[] = {
        {"rope", 128, 1, 1, 0.647905872266841, 0.761720408471602, 0},
        {"rope", 128, 4096, 1, -0.991331863055973, -0.131381647462547, 4096},
        {"rope[base=5e5]", 128, 131071, 1, -0.817316150023864, 0.576189474834597, 131071},
        {"rope", 128, 1048575, 1, 0.121168248860223, 0.992631983903474, 1048575},
        {"rope", 128, 1048575, 1, 0.121168248866117, 0.992631983902755, 0},
        {"rope[base=5e5]", 128, 1000003, 17, -0.587498955705375, -0.809224923643046, 31000},
        {"rope", 64, -7, 3, -0.982057618421803, -0.188581107483483, 0},
        {"rope", 128, 2147483647, 0, -0.688836691877944, -0.724916555144556, 0},
        {"rope", 128, 2147483647, 1, -0.981492022371695, -0.191503028750774, 0},
        {"rope", 128, 2147483647, 1, -0.981492020043055, -0.191503040685529, 2147483647},
        {"rope[base=5e5:angles=float32]", 128, 131071, 1, -0.817231838319309, 0.576309051149853, 0},
        {"rope[angles=float32]", 128, 1048575, 1, 0.0991707208791368, 0.995070433748442, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        turning t = make(all[i].spec, all[i].D);
        double  c, s;
        turn_one(&t, all[i].p, all[i].pair, &c, &s);
        const double allowed = 1e-15 + all[i].slack * 0x1p-53;
        if (!(fabs(c - all[i].cosine) <= allowed && fabs(s - all[i].sine) <= allowed))
            fail_msg("%s at %.0f, pair %d: %.17g %.17g, not %.17g %.17g", all[i].spec, all[i].p, all[i].pair,
                     c, s, all[i].cosine, all[i].sine);
        drop(&t);
    }
}

static void angle_of(turning *t, double p, double angle[MOST_PAIRS], double *temperature)
{
    posenc_error           err;
    const posenc_positions pos = posenc_positions_range(p, 1);
    const posenc_tensor    a   = posenc_tensor_contiguous(angle, POSENC_DTYPE_F64, 3,
                                                          (const int64_t[]){1, 1, t->M}),
                        f      = posenc_tensor_contiguous(temperature, POSENC_DTYPE_F64, 2,
                                                          (const int64_t[]){1, 1});
    if (posenc_rotary_angles(t->plan, &(posenc_rotary_in){.size = sizeof(posenc_rotary_in), .pos = pos}, &a,
                             &f, &t->work, &err))
        fail_msg("%s", err.message);
}

static void float32_angles_are_rounded_as_python_rounds_them(void **state)
{
    double  angle[MOST_PAIRS], one;
    turning t = make("rope[base=5e5:angles=float32]", 128);
    (void)state;
    angle_of(&t, 131071, angle, &one);
    assert_true(t.pairs[1].w == 0.8146172165870667 && angle[1] == 106772.6953125 && one == 1);
    drop(&t);
    t = make("rope[angles=float32]", 128);
    angle_of(&t, 1048575, angle, &one);
    assert_true(t.pairs[1].w == 0.8659643530845642 && angle[1] == 908028.5625);
    drop(&t);
}

static void temperatures_step_by_whole_lengths(void **state)
{
    static const struct {
        const char *spec;
        double      p, temperature;
    } all[] = {{"rope[temperature_rule=llama4]", 8190, 1},
               {"rope[temperature_rule=llama4]", 8191, 1.06931471805599},
               {"rope[temperature_rule=llama4]", 100000, 1.25649493574615},
               {"rope[temperature_rule=llama4]", -20000, 1},
               {"rope[temperature_rule=ministral:temperature_length=16384]", 16383, 1},
               {"rope[temperature_rule=ministral:temperature_length=16384]", 16384, 1.06931471805599},
               {"rope[temperature_rule=ministral:temperature_length=16384]", 100000, 1.19459101490553},
               {"rope", 100000, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        double  angle[MOST_PAIRS], got;
        turning t = make(all[i].spec, 8);
        angle_of(&t, all[i].p, angle, &got);
        assert_near(got, all[i].temperature, 5e-15, all[i].spec);
        drop(&t);
    }
}

/* ---- axes ---- */

/* The coordinates of all pairs as letters. */
static void pairs_follow_their_coordinates(void **state)
{
    static const struct {
        const char *spec;
        int64_t     D;
        const char *coordinates; /* 0 1 2 3 as t h w e */
    } all[] = {
        {"rope[axes=3:axis_rule=interleaved_sections:sections=24:20:20]", 128,
         "thwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwtttt"},
        {"rope[axes=4:axis_rule=interleaved_sections_ggml:sections=24:20:20:0]", 128,
         "thwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwthwteet"},
        {"rope[axes=3:axis_rule=interleaved_sections:sections=11:11:10]", 64,
         "thwthwthwthwthwthwthwthwthwthwth"},
        {"rope[axes=3:axis_rule=balanced:sections=16:24:24]", 128,
         "thwhwthwhwthwthwhwthwthwhwthwhwthwthwhwthwthwhwthwhwthwthwhwthwt"},
        {"rope[axes=3:axis_rule=balanced:sections=8:12:12]", 64, "thwhwthwhwthwhwthwthwhwthwhwthwt"},
        {"rope[axes=3:axis_rule=alternate_sections:sections=22:22:20]", 128,
         "hwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwhwtttttttttttttttttttt"},
        {"rope[axes=3:sections=2:1:3]", 12, "tthwww"},
        {"rope[axes=2:axis_rule=axial]", 12, "ttthhh"},
        {"rope[axes=3:axis_rule=axial:sections=1:2:3]", 12, "thhwww"},
        {"rope[axes=2:axis_rule=axial_alternate]", 12, "ththth"},
        {"rope[axes=2:axis_rule=alternate]", 12, "ttthhh"},
        {"rope[axes=2:axis_rule=halves]", 12, "ttthhh"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        turning t                   = make(all[i].spec, all[i].D);
        char    got[MOST_PAIRS + 1] = "";
        for (int64_t m = 0; m < t.M; m++)
            got[m] = "thwe"[t.pairs[m].coordinate];
        assert_string_equal(got, all[i].coordinates);
        assert_true(posenc_rotary_coordinates(t.plan) > 1);
        drop(&t);
    }
}

/* Pixtral: row w_0, row w_2, ..., column w_1 from pair 16, the last column w_31. */
static void pixtral_deals_one_list_out_in_turn(void **state)
{
    turning t = make("rope[layout=half:axes=2:axis_rule=alternate]", 64), plain = make("rope", 64);
    (void)state;
    for (int m = 0; m < 32; m++)
        assert_true(t.pairs[m].w == plain.pairs[2 * (m % 16) + m / 16].w);
    drop(&t), drop(&plain);
}

/* In blocks of their own: lists over 2 * section channels. */
static void blocks_have_lists_of_their_own(void **state)
{
    turning t = make("rope[axes=3:axis_rule=axial:sections=8:28:28]", 128), small = make("rope", 16),
            large = make("rope", 56);
    (void)state;
    for (int m = 0; m < 64; m++)
        assert_true(t.pairs[m].w == (m < 8 ? small.pairs[m].w : large.pairs[(m - 8) % 28].w));
    drop(&t), drop(&small), drop(&large);
}

static void channels_are_those_of_the_layout(void **state)
{
    static const struct {
        const char *spec;
        int64_t     from[3][2], to[3][2]; /* of pairs 0, 1 and 2 */
    } all[] = {
        {"rope[dim=6]", {{0, 1}, {2, 3}, {4, 5}}, {{0, 1}, {2, 3}, {4, 5}}},
        {"rope[dim=6:layout=half]", {{0, 3}, {1, 4}, {2, 5}}, {{0, 3}, {1, 4}, {2, 5}}},
        {"rope[dim=6:offset_dim=2:layout_out=half]", {{2, 3}, {4, 5}, {6, 7}}, {{2, 5}, {3, 6}, {4, 7}}},
        {"rope[dim=6:layout=half:layout_out=interleaved]",
         {{0, 3}, {1, 4}, {2, 5}},
         {{0, 1}, {2, 3}, {4, 5}}},
        {"rope[dim=8:layout=half:axes=2:axis_rule=halves]",
         {{0, 2}, {1, 3}, {4, 6}},
         {{0, 2}, {1, 3}, {4, 6}}},
        {"rope[dim=8:layout=half:axes=2:axis_rule=halves:sections=1:3]",
         {{0, 1}, {2, 5}, {3, 6}},
         {{0, 1}, {2, 5}, {3, 6}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        turning t = make(all[i].spec, 8);
        for (int m = 0; m < 3; m++)
            for (int c = 0; c < 2; c++) {
                assert_int_equal(t.pairs[m].from[c], all[i].from[m][c]);
                assert_int_equal(t.pairs[m].to[c], all[i].to[m][c]);
            }
        drop(&t);
    }
}

/* ---- float32 and other types ---- */

/* Without inv_freq32 the library rounds as the Python code does. Its power function may be off by one step of
   float32. */
static void own_float32_frequencies_are_the_peers(void **state)
{
    posenc_cases cases = {0};
    posenc_error err;
    int          tried = 0, off = 0;
    (void)state;
    if (posenc_cases_read(&cases, GOLDEN, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < cases.count; i++) {
        const posenc_case *c = &cases.items[i];
        if (!strstr(c->settings, "angles=float32"))
            continue;
        char          path[512], spec[1024];
        posenc_arrays set = {0};
        snprintf(path, sizeof path, GOLDEN "/%s", c->file);
        snprintf(spec, sizeof spec, "rope[%s]", c->settings);
        if (posenc_arrays_read(&set, path, &err))
            fail_msg("%s", err.message);
        const posenc_tensor *q   = posenc_arrays_find(&set, "in_q"),
                            *w   = posenc_arrays_find(&set, "in_inv_freq32"),
                            *pos = posenc_arrays_find(&set, "in_pos");
        turning       t          = make(spec, q->shape[3]);
        double        length     = 0;
        posenc_tensor params[2]  = {{0}};
        for (int n = 0; n < posenc_param_count(t.e); n++) { /* longrope's lists */
            char name[64];
            snprintf(name, sizeof name, "par_%s", posenc_param_name(t.e, n));
            params[n] = *posenc_arrays_find(&set, name);
        }
        for (int64_t n = 0; n < pos->shape[0] * pos->shape[1] * pos->shape[2]; n++)
            length = fmax(length, (double)((const int64_t *)pos->data)[n] + 1);
        if (posenc_rotary_pairs(t.plan, params, length, t.pairs, &t.work, &err))
            fail_msg("%s", err.message);
        for (int64_t m = 0; m < t.M; m++) {
            const double want = ((const double *)w->data)[m];
            assert_true(fabs(t.pairs[m].w - want) <= 0x1p-23 * want);
            off += t.pairs[m].w != want;
        }
        tried++;
        drop(&t);
        posenc_arrays_free(&set);
    }
    posenc_cases_free(&cases);
    assert_true(tried >= 9);
    if (off > 2) /* pairs 3 and 5 at base 1.5e5: there PyTorch's own power is not the nearest float32 */
        fail_msg("%d frequencies are not the peers'", off);
}

/* bf16 has 8 bits: 1, 0.1 and 0.01 become 1, 0.10009765625 and 0.010009765625. */
static void frequencies_and_tables_are_rounded_to_their_type(void **state)
{
    double  c, s;
    turning t = make("rope[base=1000:frequency_type=bf16]", 6);
    (void)state;
    assert_true(t.pairs[0].w == 1 && t.pairs[1].w == 0.10009765625 && t.pairs[2].w == 0.010009765625);
    drop(&t);
    t = make("rope[base=1000:frequency_type=f32]", 6);
    assert_true(t.pairs[1].w == (double)0.1f && t.pairs[2].w == (double)0.01f);
    drop(&t);
    t = make("rope[table_type=bf16]", 2);
    turn_one(&t, 1, 0, &c, &s); /* 0.5403, 0.8415 */
    assert_true(c == 0.5390625 && s == 0.83984375);
    drop(&t);
    t = make("rope[table_type=f16]", 2);
    turn_one(&t, 1, 0, &c, &s);
    assert_true(c == 0.540527343750 && s == 0.841308593750);
    drop(&t);
    t = make("rope[table_type=f32]", 2);
    turn_one(&t, 1, 0, &c, &s);
    assert_true(c == (double)(float)0.5403023058681398 && s == (double)(float)0.8414709848078965);
    drop(&t);
}

/* The running product of ggml: theta = p, then theta *= fl(base^(-2/dim)). */
static void ggml_angles_are_a_running_product(void **state)
{
    double  angle[MOST_PAIRS], one;
    float   theta = 12345.0f;
    turning t     = make("rope[layout=half:schedule=linear:factor=3:angles=ggml]", 64);
    (void)state;
    angle_of(&t, 12345, angle, &one);
    for (int m = 0; m < 32; m++) {
        assert_true(angle[m] == (double)((1.0f / 3.0f) * theta));
        theta *= (float)pow(10000.0, (double)(-2.0f / 64.0f));
    }
    drop(&t);
    t = make("rope[schedule=linear:factor=23.513356551559447:angles=ggml]",
             64); /* 1/factor is rounded, not factor */
    angle_of(&t, 8, angle, &one);
    assert_true((float)(1 / 23.513356551559447) != 1 / (float)23.513356551559447);
    assert_true(angle[0] == (double)((float)(1 / 23.513356551559447) * 8));
    drop(&t);
}

/* ---- what is refused ---- */

static void settings_that_do_not_fit_are_refused_by_name(void **state)
{
    static const struct {
        const char *spec, *words;
    } all[] = {
        {"rope[dim=5]", "dim=5 must be even"},
        {"rope[dim=10]", "at most the head width 8"},
        {"rope[dim=6:offset_dim=4]", "offset_dim=4 and dim=6 end beyond the head width 8"},
        {"rope[base=1]", "base=1 is out of range"},
        {"rope[schedule=linear]", "needs factor"},
        {"rope[schedule=linear:factor=0]", "factor=0 is out of range"},
        {"rope[schedule=ntk]", "needs alpha"},
        {"rope[schedule=ntk:alpha=2:dim=2]", "need at least 2 pairs in each list"},
        {"rope[schedule=dynamic:factor=2]", "needs max_length"},
        {"rope[schedule=yarn:factor=2]", "needs original_length"},
        {"rope[schedule=longrope:original_length=64]", "needs factor or max_length"},
        {"rope[schedule=llama3:factor=8:low_freq_factor=1:original_length=64]", "needs high_freq_factor"},
        {"rope[schedule=proportional]", "needs partial_rotary_factor"},
        {"rope[schedule=period:min_period=1]", "min_period and max_period together"},
        {"rope[schedule=pixel]", "needs max_freq"},
        {"rope[axes=2]", "axis_rule=sections needs sections, one for each of the 2 axes, not 0"},
        {"rope[axes=2:sections=1:2]", "sections add up to 3 pairs; they must be dim/2 = 4"},
        {"rope[axes=3:axis_rule=axial]", "axes=3 must divide them"},
        {"rope[axes=2:axis_rule=alternate:sections=2:2]", "takes no sections"},
        {"rope[axes=3:axis_rule=interleaved_sections_ggml:sections=2:1:1]", "is for axes=4, not 3"},
        {"rope[axes=3:axis_rule=alternate_sections:sections=2:1:1]", "first two are equal"},
        {"rope[axes=9]", "axes=9 is out of range"},
        {"rope[inv_freq32=yes]", "inv_freq32=yes needs angles=float32"},
        {"rope[theta_scale32=yes]", "theta_scale32=yes needs angles=ggml"},
        {"rope[axis_rule=matrix:schedule=linear:factor=2]", "axis_rule=matrix has its own frequencies"},
        {"rope[schedule=cosine]", "schedule=cosine is unknown"},
    };
    const posenc_dims dims = {.B = 1, .H = 1, .Lq = 4, .Lk = 4, .D = 8};
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        posenc_encoding *e    = NULL;
        posenc_plan     *plan = NULL;
        posenc_error     err  = {POSENC_OK, ""};
        const int        bad  = posenc_encoding_create(&e, all[i].spec, NULL, &err) ||
                        posenc_plan_create(&plan, e, &dims, NULL, &err);
        if (!bad || err.status != POSENC_ERROR_SETTING || !strstr(err.message, all[i].words))
            fail_msg("%s: \"%s\" lacks \"%s\"", all[i].spec, err.message, all[i].words);
        posenc_plan_free(plan);
        posenc_encoding_free(e);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(models_have_their_frequencies_and_magnitudes),
        cmocka_unit_test(llama3_keeps_blends_and_divides_as_many_pairs_as_meta_s_code),
        cmocka_unit_test(bases_grow_as_they_should),
        cmocka_unit_test(longrope_s_magnitude_is_that_of_its_factor),
        cmocka_unit_test(longrope_takes_its_long_magnitude_beyond_the_first_length),
        cmocka_unit_test(far_positions_have_their_cosines_and_sines),
        cmocka_unit_test(float32_angles_are_rounded_as_python_rounds_them),
        cmocka_unit_test(temperatures_step_by_whole_lengths),
        cmocka_unit_test(pairs_follow_their_coordinates),
        cmocka_unit_test(pixtral_deals_one_list_out_in_turn),
        cmocka_unit_test(blocks_have_lists_of_their_own),
        cmocka_unit_test(channels_are_those_of_the_layout),
        cmocka_unit_test(own_float32_frequencies_are_the_peers),
        cmocka_unit_test(frequencies_and_tables_are_rounded_to_their_type),
        cmocka_unit_test(ggml_angles_are_a_running_product),
        cmocka_unit_test(settings_that_do_not_fit_are_refused_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
