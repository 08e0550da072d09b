/* SPDX-License-Identifier: MIT */
/*
 * posenc rotate gives back every reference case, and refuses what it cannot use
 *
 * The rotary cases of the tree go in as they lie there and their out_q, out_k must come out; their upstream
 * gradients, turned back, must give their gradients. Then what no case has: complex numbers, which must be
 * what neighbours in a real array are; storage in 16 bits; other orders and numbers of axes; one array alone.
 * Expected numbers are the command's own of a form that the cases have proved.
 */
#include <posenc/positions.h>

#include "calls.h"

#include "base/half.h"

#define GOLDEN POSENC_SOURCE_DIR "/tests/golden/rope"

extern const cli_command cli_rotate;

enum { B = 2, H = 4, G = 2, L = 5, D = 8 };

static posenc_arrays done(const char *const *list, const char *path)
{
    return call_done(&cli_rotate, list, path);
}

/* ---------------------------------------------------------------- the reference cases ------- */

static const posenc_array *find(const posenc_arrays *set, const char *name)
{
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->items[i].name, name))
            return &set->items[i];
    return NULL;
}

/* As verify allows for angles: four times what the last bit of a frequency does. */
static double angle_of(const posenc_case *c, const posenc_arrays *file)
{
    const posenc_tensor *pos  = array_of(file, "in_pos");
    double               most = 0;
    for (int64_t i = 0; i < pe_tensor_elements(pos); i++)
        most = fmax(most, fabs(pe_calc_element(pos, i)));
    return c->angle_ulp > 0 ? 4 * c->angle_ulp : ldexp(most, -52);
}

static void compare(const posenc_case *c, const posenc_arrays *want, const char *name, const char *result)
{
    const posenc_arrays  got       = arrays_at(scratch("got.npz"));
    const pe_allowance   allowance = {.kind  = name[0] == 'g' ? PE_CASE_GRADIENT : PE_CASE_OUTPUT,
                                      .angle = angle_of(c, want)};
    const posenc_tensor *t = array_of(&got, result), *reference = array_of(want, name);
    assert_int_equal(t->dtype, POSENC_DTYPE_F64);
    assert_int_equal(pe_tensor_elements(t), pe_tensor_elements(reference));
    const pe_difference m = pe_trial_measure(t, reference, &allowance);
    if (!(m.worst <= 1))
        fail_msg("%s: %s[%lld] is %.17g instead of %.17g", c->file, name, (long long)m.at, m.got, m.want);
    posenc_arrays_free((posenc_arrays *)(uintptr_t)&got);
}

static void rotate_case(const posenc_case *c, const char *path, int is_back)
{
    char *settings = strdup(c->settings);
    words w        = call_of(&cli_rotate, (const char *const[]){c->encoding, "-i", path, NULL});
    for (char *at = strtok(settings, " "); at; at = strtok(NULL, " ")) {
        say(&w, "--set");
        say(&w, at);
    }
    const char *got = scratch("got.npz");
    say(&w, "-o");
    say(&w, got);
    if (is_back)
        say(&w, "--inverse");
    if (call_words(&cli_rotate, &w) != CLI_DONE) {
        size_t n;
        fail_msg("%s: %s", c->file, scratch_read(scratch("said"), &n));
    }
    free(settings);
}

static void rename_array(posenc_arrays *set, const char *from, const char *to)
{
    for (int i = 0; i < set->count; i++)
        if (!strcmp(set->items[i].name, from)) {
            free(set->items[i].name);
            set->items[i].name = strdup(to);
        }
}

/* The upstream gradients in the place of q and k. */
static void turn_back(const posenc_case *c, posenc_arrays *file)
{
    rename_array(file, "in_q", "out_q_was");
    rename_array(file, "in_k", "out_k_was");
    rename_array(file, "gin_dq", "in_q");
    rename_array(file, "gin_dk", "in_k");
    write_arrays(file, "back.npz");
    char path[SCRATCH_PATH];
    snprintf(path, sizeof path, "%s", scratch("back.npz"));
    rotate_case(c, path, 1);
    compare(c, file, "g_q", "out_q");
    compare(c, file, "g_k", "out_k");
}

static void every_rotary_case_comes_out_again_and_its_gradients(void **state)
{
    posenc_cases cases = {0};
    posenc_error err;
    int          ran = 0;
    (void)state;
    if (posenc_cases_read(&cases, GOLDEN, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < cases.count; i++) {
        const posenc_case *c = &cases.items[i];
        char               path[SCRATCH_PATH];
        snprintf(path, sizeof path, "%s/%s", GOLDEN, c->file);
        posenc_arrays file = arrays_at(path);
        if (!find(&file, "in_v") && find(&file, "out_q")) {
            rotate_case(c, path, 0);
            compare(c, &file, "out_q", "out_q");
            compare(c, &file, "out_k", "out_k");
            turn_back(c, &file);
            ran++;
        }
        posenc_arrays_free(&file);
    }
    posenc_cases_free(&cases);
    assert_true(ran >= 15);
}

/* ---------------------------------------------------------------- made inputs --------------- */

static posenc_arrays made(posenc_dtype dtype)
{
    posenc_arrays set = {0};
    add_filled(&set, "q", dtype, (const int64_t[]){B, H, L, D});
    add_filled(&set, "k", dtype, (const int64_t[]){B, G, L, D});
    return set;
}

/* The same numbers as [..., D/2] complex ones. */
static void make_complex(posenc_arrays *set)
{
    for (int i = 0; i < set->count; i++) {
        posenc_tensor *t         = &set->items[i].tensor;
        const int64_t  s[5]      = {t->shape[0], t->shape[1], t->shape[2], t->shape[3] / 2, 2};
        *t                       = posenc_tensor_contiguous(t->data, t->dtype, 5, s);
        set->items[i].is_complex = 1;
    }
}

static void a_complex_number_is_a_pair_of_neighbours(void **state)
{
    static const posenc_dtype types[] = {POSENC_DTYPE_F32, POSENC_DTYPE_F64};
    (void)state;
    for (int i = 0; i < 2; i++) {
        posenc_arrays set = made(types[i]);
        write_arrays(&set, "in.npz");
        posenc_arrays pairs =
            done((const char *const[]){"-i", input, "-o", output, "--set", "dim=6 base=100", NULL}, output);
        make_complex(&set);
        write_arrays(&set, "in.npz");
        posenc_arrays numbers =
            done((const char *const[]){"-i", input, "-o", output, "--set", "dim=6 base=100", NULL}, output);
        for (int n = 0; n < numbers.count; n++) {
            assert_true(numbers.items[n].is_complex && !pairs.items[n].is_complex);
            assert_int_equal(numbers.items[n].tensor.ndim, 5);
            numbers.items[n].is_complex = 0;
        }
        same_sets(&pairs, &numbers);
        posenc_arrays_free(&set);
    }
}

static void the_order_of_the_axes_changes_no_number(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F32);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays plain = done((const char *const[]){"-i", input, "-o", output, NULL}, output);
    for (int i = 0; i < set.count; i++) {
        swap_axes(&set.items[i].tensor);
        swap_axes(&plain.items[i].tensor);
    }
    write_arrays(&set, "in.npz");
    posenc_arrays turned =
        done((const char *const[]){"--heads-layout", "blhd", "-i", input, "-o", output, NULL}, output);
    same_sets(&plain, &turned);
    posenc_arrays_free(&set);
}

/* [H,L,D] of batch item 0, and [L,D] of its head 0: the first numbers of the whole. */
static void axes_left_out_are_one(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F64);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays whole = done((const char *const[]){"-i", input, "-o", output, NULL}, output);
    for (int32_t ndim = 3; ndim >= 2; ndim--) {
        const int64_t  sizes[3] = {H, L, D};
        posenc_arrays  less     = {0};
        posenc_tensor *q        = posenc_arrays_add(&less, "q", POSENC_DTYPE_F64, ndim, sizes + 3 - ndim);
        memcpy(q->data, array_of(&set, "q")->data, (size_t)pe_tensor_elements(q) * sizeof(double));
        for (int blhd = 0; blhd < 2 - (ndim == 3); blhd++) {
            write_arrays(&less, "in.npz");
            posenc_arrays        got = done((const char *const[]){"-i", input, "-o", output, "--heads-layout",
                                                           blhd ? "blhd" : "bhld", NULL},
                                            output);
            const posenc_tensor *t   = array_of(&got, "out_q");
            assert_int_equal(got.count, 1);
            assert_int_equal(t->ndim, ndim);
            assert_memory_equal(t->data, array_of(&whole, "out_q")->data,
                                (size_t)pe_tensor_elements(t) * sizeof(double));
            posenc_arrays_free(&got);
        }
        posenc_arrays_free(&less);
    }
    posenc_arrays_free(&whole);
    posenc_arrays_free(&set);
}

/* Arithmetic is in float whatever the storage: f16 is that result rounded once, bf16, unknown to NumPy, is
   that result. */
static void storage_of_16_bits_is_rounded_once_or_widened(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F32);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays wide = done((const char *const[]){"-i", input, "-o", output, NULL}, output);
    write_halves(&set, "in.safetensors", "F16");
    const char   *file = scratch("in.safetensors");
    posenc_arrays half = done((const char *const[]){"-i", file, "-o", output, NULL}, output);
    for (int i = 0; i < wide.count; i++) {
        const posenc_tensor *h = &half.items[i].tensor, *w = &wide.items[i].tensor;
        assert_int_equal(h->dtype, POSENC_DTYPE_F16);
        for (int64_t n = 0; n < pe_tensor_elements(w); n++)
            assert_int_equal(((const uint16_t *)h->data)[n],
                             pe_half_float_to_f16(((const float *)w->data)[n]));
    }
    write_halves(&set, "in.safetensors", "BF16");
    file                = scratch("in.safetensors");
    posenc_arrays brain = done((const char *const[]){"-i", file, "-o", output, NULL}, output);
    same_sets(&wide, &brain);
    posenc_arrays_free(&half);
    posenc_arrays_free(&set);
}

static void an_offset_is_where_the_first_token_stands(void **state)
{
    static const int64_t pos[L] = {7, 8, 9, 10, 11}, five[] = {L};
    posenc_arrays        set = made(POSENC_DTYPE_F64);
    (void)state;
    write_arrays(&set, "in.npz");
    add_whole(&set, "pos", 1, five, pos);
    write_arrays(&set, "other.npz");
    posenc_arrays by_offset =
        done((const char *const[]){"--offset", "7", "-i", input, "-o", output, NULL}, output);
    posenc_arrays by_array = done((const char *const[]){"-i", other, "-o", output, NULL}, output);
    said(NULL);
    same_sets(&by_offset, &by_array);
    posenc_arrays_free(&set);
}

/* Turned forward and back: rounding alone is left, at most two of each number and its neighbour. */
static void what_is_turned_back_is_what_it_was(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F64);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays there =
        done((const char *const[]){"--offset", "-9", "-i", input, "-o", other, NULL}, other);
    posenc_arrays back =
        done((const char *const[]){"--inverse", "--offset", "-9", "-i", other, "-o", output, NULL}, output);
    for (int64_t i = 0; i < B * H * L * D; i++)
        assert_true(fabs(pe_calc_element(array_of(&back, "out_q"), i) -
                         pe_calc_element(array_of(&set, "q"), i)) < 4 * 0x1p-52);
    posenc_arrays_free(&there);
    posenc_arrays_free(&back);
    posenc_arrays_free(&set);
}

/* One decoded query stands behind the keys; each has an array of its own. */
static void queries_and_keys_stand_where_their_arrays_say(void **state)
{
    static const int64_t q_pos[] = {4}, k_pos[] = {0, 1, 2, 3, 4}, one[] = {1}, five[] = {L};
    posenc_arrays        all = made(POSENC_DTYPE_F64), last = {0};
    (void)state;
    write_arrays(&all, "in.npz");
    posenc_arrays  whole = done((const char *const[]){"-i", input, "-o", output, NULL}, output);
    posenc_tensor *q     = posenc_arrays_add(&last, "q", POSENC_DTYPE_F64, 4, (const int64_t[]){B, H, 1, D});
    for (int i = 0; i < B * H; i++)
        memcpy((double *)q->data + i * D, (double *)array_of(&all, "q")->data + (i * L + L - 1) * D,
               D * sizeof(double));
    add_filled(&last, "k", POSENC_DTYPE_F64, (const int64_t[]){B, G, L, D});
    add_whole(&last, "q_pos", 1, one, q_pos);
    add_whole(&last, "in_k_pos", 1, five, k_pos);
    write_arrays(&last, "in.npz");
    posenc_arrays got = done((const char *const[]){"-i", input, "-o", output, NULL}, output);
    same_array(array_of(&got, "out_k"), array_of(&whole, "out_k"));
    for (int i = 0; i < B * H; i++)
        assert_memory_equal((double *)array_of(&got, "out_q")->data + i * D,
                            (double *)array_of(&whole, "out_q")->data + (i * L + L - 1) * D,
                            D * sizeof(double));
    posenc_arrays_free(&got);
    posenc_arrays_free(&whole);
    posenc_arrays_free(&all);
    posenc_arrays_free(&last);
}

/* xpos grows queries and shrinks keys: so it shows whether a file was taken for the one or the other. */
static void a_lone_npy_is_q_unless_it_is_named_k(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F64), lone = {0};
    char          q_npy[SCRATCH_PATH], k_npy[SCRATCH_PATH], out[SCRATCH_PATH];
    (void)state;
    snprintf(q_npy, sizeof q_npy, "%s", scratch("anything.npy"));
    snprintf(k_npy, sizeof k_npy, "%s", scratch("k.npy"));
    snprintf(out, sizeof out, "%s", scratch("out.npy"));
    write_arrays(&set, "in.npz");
    posenc_arrays both = done((const char *const[]){"xpos", "-i", input, "-o", output, NULL}, output);
    add_filled(&lone, "q", POSENC_DTYPE_F64, (const int64_t[]){B, H, L, D});
    write_arrays(&lone, "anything.npy");
    posenc_arrays q = done((const char *const[]){"xpos", "-i", q_npy, "-o", out, NULL}, out);
    same_array(&q.items[0].tensor, array_of(&both, "out_q"));
    posenc_arrays_free(&lone);
    add_filled(&lone, "k", POSENC_DTYPE_F64, (const int64_t[]){B, G, L, D});
    write_arrays(&lone, "k.npy");
    posenc_arrays k = done((const char *const[]){"xpos", "-i", k_npy, "-o", out, NULL}, out);
    same_array(&k.items[0].tensor, array_of(&both, "out_k"));
    posenc_arrays_free(&lone);
    posenc_arrays_free(&q);
    posenc_arrays_free(&k);
    posenc_arrays_free(&both);
    posenc_arrays_free(&set);
}

/* Two words, an image of 1 x 2 tokens, a word: [L,3] and [1,L,3]; and, as words alone, the range that text
   is. */
static void positions_have_as_many_coordinates_as_the_rotation(void **state)
{
    static const char *const spec      = "rope[axes=3:axis_rule=sections:sections=2:1:1]";
    const posenc_segment     picture[] = {{.tokens = 2},
                                          {.kind = POSENC_SEGMENT_IMAGE, .rows = 1, .columns = 2},
                                          {.tokens = 1}},
                         text          = {.tokens = L};
    int64_t       at[L][3];
    posenc_tensor pos = posenc_tensor_contiguous(at, POSENC_DTYPE_I64, 2, (const int64_t[]){L, 3});
    posenc_arrays set = made(POSENC_DTYPE_F64), got[4];
    (void)state;
    write_arrays(&set, "in.npz");
    got[0] = done((const char *const[]){spec, "-i", input, "-o", output, NULL}, output);
    for (int i = 1; i < 4; i++) {
        posenc_arrays with = made(POSENC_DTYPE_F64);
        assert_int_equal(posenc_positions_segments(i == 1 ? &text : picture, i == 1 ? 1 : 3, 0, &pos, NULL,
                                                   NULL),
                         POSENC_OK);
        add_whole(&with, "pos", i == 3 ? 3 : 2, i == 3 ? (const int64_t[]){1, L, 3} : (const int64_t[]){L, 3},
                  at[0]);
        write_arrays(&with, "in.npz");
        got[i] = done((const char *const[]){spec, "-i", input, "-o", output, NULL}, output);
        posenc_arrays_free(&with);
    }
    assert_memory_not_equal(array_of(&got[0], "out_q")->data, array_of(&got[2], "out_q")->data,
                            B * H * L * D * sizeof(double));
    same_sets(&got[0], &got[1]);
    same_sets(&got[2], &got[3]);
    posenc_arrays_free(&set);
}

/* ---------------------------------------------------------------- models -------------------- */

#define PEERS POSENC_SOURCE_DIR "/tests/golden/peers"

static posenc_arrays queries(int64_t width)
{
    posenc_arrays set = {0};
    add_filled(&set, "q", POSENC_DTYPE_F64, (const int64_t[]){1, H, L, width});
    return set;
}

/* The numbers that the model's file holds, or means, as frequencies of their own: schedule=explicit. */
static void add_frequencies(posenc_arrays *set, const char *path, const char *fact)
{
    posenc_error  err;
    posenc_model *model;
    if (posenc_model_read(&model, path, &err))
        fail_msg("%s", err.message);
    const posenc_fact *f = posenc_model_fact(posenc_model_group_at(model, 0), fact);
    posenc_tensor     *t = posenc_arrays_add(set, "par_inv_freq", POSENC_DTYPE_F64, 1, &f->count);
    memcpy(t->data, f->list, (size_t)f->count * sizeof *f->list);
    posenc_model_free(model);
}

static void close_arrays(const posenc_arrays *a, const posenc_arrays *b, double factor)
{
    const posenc_tensor *x = array_of(a, "out_q"), *y = array_of(b, "out_q");
    assert_int_equal(pe_tensor_elements(x), pe_tensor_elements(y));
    for (int64_t i = 0; i < pe_tensor_elements(x); i++)
        assert_true(fabs(pe_calc_element(x, i) - factor * pe_calc_element(y, i)) <
                    1e-11); /* positions x 2^-52 of w */
}

/* Divisors of a .gguf and both lists of a longrope reach the rotation; a magnitude of 1.19 is its own. */
static void a_model_turns_by_the_frequencies_that_its_file_means(void **state)
{
    static const struct {
        const char *file, *fact, *layout, *offset;
        int64_t     width;
        double      magnitude;
    } rows[] = {
        {PEERS "/gguf/llama32.gguf", "inv_freq", "layout=interleaved", "9", 64, 1},
        {PEERS "/transformers5/phi3_longrope.json", "inv_freq", "layout=half", "9", 96, 1.19023807142380},
        {PEERS "/transformers4/phi3_longrope.json", "inv_freq_long", "layout=half", "5000", 96,
         1.19023807142380},
        {PEERS "/transformers5/gpt_oss.json", "inv_freq", "layout=half", "9", 64, 1.34657359027997},
        {PEERS "/safetensors/model.safetensors", "inv_freq", "layout=half", "9", 16, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        posenc_arrays set = queries(rows[i].width);
        write_arrays(&set, "in.npz");
        posenc_arrays got = done((const char *const[]){"--config", rows[i].file, "--offset", rows[i].offset,
                                                       "-i", input, "-o", output, NULL},
                                 output);
        add_frequencies(&set, rows[i].file, rows[i].fact);
        write_arrays(&set, "in.npz");
        posenc_arrays want =
            done((const char *const[]){"--set", "schedule=explicit", "--set", rows[i].layout, "--offset",
                                       rows[i].offset, "-i", input, "-o", output, NULL},
                 output);
        close_arrays(&got, &want, rows[i].magnitude);
        posenc_arrays_free(&got);
        posenc_arrays_free(&want);
        posenc_arrays_free(&set);
    }
}

/* A model of layout half, whose pairs somebody has put into complex numbers. */
static void complex_numbers_are_pairs_of_a_model_of_any_layout(void **state)
{
    posenc_arrays set = queries(64);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays pairs =
        done((const char *const[]){"--set", "schedule=linear,factor=4", "-i", input, "-o", output, NULL},
             output);
    make_complex(&set);
    write_arrays(&set, "in.npz");
    posenc_arrays numbers = done((const char *const[]){"--config", PEERS "/transformers5/llama_linear.json",
                                                       "-i", input, "-o", output, NULL},
                                 output);
    numbers.items[0].is_complex = 0;
    same_sets(&pairs, &numbers);
    posenc_arrays_free(&set);
}

/* ---------------------------------------------------------------- what is refused ----------- */

static void lose_both(posenc_arrays *set)
{
    rename_array(set, "q", "queries");
    rename_array(set, "k", "keys");
}

static void lose_k(posenc_arrays *set)
{
    rename_array(set, "k", "keys");
}

static void whole_q(posenc_arrays *set)
{
    posenc_arrays_find(set, "q")->dtype = POSENC_DTYPE_I64;
}

static void flat_q(posenc_arrays *set)
{
    posenc_tensor *q = posenc_arrays_find(set, "q");
    *q               = posenc_tensor_contiguous(q->data, q->dtype, 1, (const int64_t[]){B * H * L * D});
}

static void narrow_k(posenc_arrays *set)
{
    posenc_tensor *k = posenc_arrays_find(set, "k");
    *k               = posenc_tensor_contiguous(k->data, k->dtype, 4, (const int64_t[]){B, 2 * G, L, D / 2});
}

static void odd_heads(posenc_arrays *set)
{
    posenc_tensor *q = posenc_arrays_find(set, "q");
    *q               = posenc_tensor_contiguous(q->data, q->dtype, 4, (const int64_t[]){B, 3, L, D});
}

static void short_q(posenc_arrays *set)
{
    posenc_tensor *q = posenc_arrays_find(set, "q");
    *q               = posenc_tensor_contiguous(q->data, q->dtype, 4, (const int64_t[]){B, H, 2, D});
}

static void positions(posenc_arrays *set)
{
    posenc_arrays_add(set, "pos", POSENC_DTYPE_I64, 1, (const int64_t[]){L});
}

static void long_positions(posenc_arrays *set)
{
    posenc_arrays_add(set, "pos", POSENC_DTYPE_I64, 1, (const int64_t[]){L + 1});
}

static void complex_positions(posenc_arrays *set)
{
    posenc_arrays_add(set, "pos", POSENC_DTYPE_F64, 2, (const int64_t[]){L, 2});
    set->items[set->count - 1].is_complex = 1;
}

static void what_cannot_be_used_is_refused_in_a_sentence_and_nothing_is_written(void **state)
{
    static const refusal rows[] = {
        {lose_both, {"rope"}, "in.npz: it has neither q (or in_q) nor k (or in_k)"},
        {whole_q, {"rope"}, "q holds whole numbers; it must be float64"},
        {flat_q, {"rope"}, "q has the shape [320]; it must be [L,D], [H,L,D] or [B,H,L,D]"},
        {flat_q, {"--heads-layout=blhd"}, "q has the shape [320]; it must be [L,D], [L,H,D] or [B,L,H,D]"},
        {narrow_k, {"rope"}, "q has batch 2 and width 8, k 2 and 4; they must be equal"},
        {odd_heads, {"rope"}, "k has 2 heads but q has 3; heads of k must divide heads of q"},
        {short_q, {"rope"}, "q has 2 tokens and k 5; give the positions of both, in arrays q_pos and k_pos"},
        {positions, {"--offset=1"}, "both the file and --offset give positions; leave out one of them"},
        {long_positions, {"rope"}, "q_pos holds 1 x 6 positions"},
        {long_positions, {"rope[axes=2:axis_rule=axial]"}, "q_pos"},
        {complex_positions, {"rope"}, "pos holds complex numbers; it must be real"},
        {NULL,
         {"--set=schedule=explicit"},
         "it has no array inv_freq (or par_inv_freq), which rope[schedule=explicit]"},
        {make_complex,
         {"rope[layout=half]"},
         "q holds complex numbers, which are pairs already; leave out the"},
        {NULL, {"alibi"}, "rotate: alibi acts at place score and rotates nothing; leave it out"},
        {NULL, {"rope+alibi"}, "rotate: alibi acts at place score"},
        {NULL, {"rope", "xpos"}, "rotate: give one rotary encoding, or none for rope, not 2"},
        {NULL, {"rope[dim=10]"}, "dim=10 must be even and at most the head width 8"},
        {NULL, {"--set=base=0"}, "base"},
        {NULL,
         {"--config", PEERS "/transformers5/gemma3.json"},
         "gemma3.json: its layers are rotated differently; choose one by --layer N: "
         "rope[layout=half,dim=256,base=10000] "
         "in layers 0-4, 6; rope[layout=half,dim=256,base=1000000] in layer 5\n"},
        {NULL,
         {"--config", PEERS "/transformers5/gemma3.json", "--layer=7"},
         "--layer is 7; its layers are 0 to 6"},
        {NULL,
         {"--config", PEERS "/transformers5/gemma3.json", "--layer=5"},
         "q is 8 wide but a head of " PEERS "/transformers5/gemma3.json is 256; give whole heads"},
        {NULL,
         {"--config", PEERS "/transformers5/t5.json"},
         "t5.json: no layer is rotated: its encoding is t5"},
        {NULL,
         {"--config", PEERS "/transformers5/bert.json"},
         "no layer is rotated: its encoding is learned"},
        {NULL, {"--config", PEERS "/transformers5/none.json"}, "none.json: "},
        {NULL,
         {"--config", PEERS "/transformers5/bert.json", "rope"},
         "rope and --config both say how to rotate"},
        {NULL, {"--layer=1"}, "--layer selects a layer of a model; give the model with --config F"},
        {NULL, {"--heads-layout=hbld"}, "--heads-layout is \"hbld\"; it must be bhld or blhd"},
        {NULL, {"--offset=1.5"}, "--offset is \"1.5\"; it must be a whole number"},
        {NULL, {"-o", "there.txt"}, "the output there.txt must end in one of .npz .npy .csv, or be -"},
        {NULL, {"-o", "there.npy"}, "it has q and k, but there.npy can hold only one array; name an .npz"},
    };
    (void)state;
    all_are_refused(&cli_rotate, rows, sizeof rows / sizeof *rows, made);
}

static void what_nobody_asked_for_is_named(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F64);
    (void)state;
    lose_k(&set);
    write_arrays(&set, "in.npz");
    posenc_arrays got = done((const char *const[]){"-i", input, "-o", output, NULL}, output);
    said("in.npz: not used: keys");
    assert_int_equal(got.count, 1);
    posenc_arrays_free(&got);
    posenc_arrays_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_rotary_case_comes_out_again_and_its_gradients, scratch_clear),
        cmocka_unit_test_teardown(a_complex_number_is_a_pair_of_neighbours, scratch_clear),
        cmocka_unit_test_teardown(the_order_of_the_axes_changes_no_number, scratch_clear),
        cmocka_unit_test_teardown(axes_left_out_are_one, scratch_clear),
        cmocka_unit_test_teardown(storage_of_16_bits_is_rounded_once_or_widened, scratch_clear),
        cmocka_unit_test_teardown(an_offset_is_where_the_first_token_stands, scratch_clear),
        cmocka_unit_test_teardown(what_is_turned_back_is_what_it_was, scratch_clear),
        cmocka_unit_test_teardown(queries_and_keys_stand_where_their_arrays_say, scratch_clear),
        cmocka_unit_test_teardown(a_lone_npy_is_q_unless_it_is_named_k, scratch_clear),
        cmocka_unit_test_teardown(positions_have_as_many_coordinates_as_the_rotation, scratch_clear),
        cmocka_unit_test_teardown(a_model_turns_by_the_frequencies_that_its_file_means, scratch_clear),
        cmocka_unit_test_teardown(complex_numbers_are_pairs_of_a_model_of_any_layout, scratch_clear),
        cmocka_unit_test_teardown(what_cannot_be_used_is_refused_in_a_sentence_and_nothing_is_written,
                                  scratch_clear),
        cmocka_unit_test_teardown(what_nobody_asked_for_is_named, scratch_clear),
    };
    return cmocka_run_group_tests(tests, name_files, scratch_close);
}
