/* SPDX-License-Identifier: MIT */
/*
 * posenc attend gives back every reference case, and refuses what it cannot use
 *
 * The cases of the tree are the test: each goes in as it lies there and its outputs and gradients
 * must come out, from both executors. Then what no case has: the other order of axes, half precision
 * from a .safetensors file, position arrays, segments, parameters left out. The command is called as
 * the tool calls it.
 */
#include "calls.h"

#define GOLDEN POSENC_SOURCE_DIR "/tests/golden"

extern const cli_command cli_attend;

static posenc_arrays done(const char *const *list, const char *path)
{
    return call_done(&cli_attend, list, path);
}

/* ---------------------------------------------------------------- the reference cases ------- */

/* What attend does not take is not its case: tables, places before q and k, inputs of single encodings. */
static int is_attention(const posenc_case *c)
{
    static const char *const    known[] = {"in_q", "in_k", "in_v", "in_allow", "in_segment_ids", NULL};
    const posenc_encoding_info *info    = posenc_encoding_find(c->encoding);
    int                         found   = 0;
    for (char **name = c->arrays; *name; name++) {
        int is_known = strncmp(*name, "in_", 3) != 0;
        for (int i = 0; known[i]; i++)
            is_known = is_known || !strcmp(*name, known[i]);
        if (!is_known)
            return 0;
        found = found || !strcmp(*name, "in_v");
    }
    return found && info && info->place != POSENC_PLACE_INPUT;
}

static int has_array(const posenc_case *c, const char *wanted)
{
    for (char **name = c->arrays; *name; name++)
        if (!strcmp(*name, wanted))
            return 1;
    return 0;
}

/* max |x| of every gradient: what a gradient that is nowhere more than rounding is held against. */
static double largest_gradient(const posenc_arrays *want)
{
    double most = 0;
    for (int i = 0; i < want->count; i++)
        for (int64_t n = 0;
             !strncmp(want->items[i].name, "g_", 2) && n < pe_tensor_elements(&want->items[i].tensor); n++)
            most = fmax(most, fabs(pe_calc_element(&want->items[i].tensor, n)));
    return most;
}

static void compare_case(const posenc_case *c, const posenc_arrays *want, int is_single)
{
    const posenc_arrays got      = arrays_at(scratch("got.npz"));
    int                 compared = 0;
    for (int i = 0; i < want->count; i++) {
        const char          *name     = want->items[i].name;
        const int            gradient = !strncmp(name, "g_", 2);
        const posenc_tensor *t        = posenc_arrays_find(&got, name);
        if (gradient && !t)
            fail_msg("%s: %s does not come out", c->file, name);
        if (!t)
            continue;
        const pe_allowance allowance = {.kind      = gradient ? PE_CASE_GRADIENT : PE_CASE_OUTPUT,
                                        .is_single = is_single,
                                        .others    = largest_gradient(want)};
        assert_int_equal(pe_tensor_elements(t), pe_tensor_elements(&want->items[i].tensor));
        const pe_difference m = pe_trial_measure(t, &want->items[i].tensor, &allowance);
        if (!(m.worst <= 1))
            fail_msg("%s: %s[%lld] is %.17g instead of %.17g", c->file, name, (long long)m.at, m.got, m.want);
        compared++;
    }
    assert_true(compared >= 1);
    posenc_arrays_free((posenc_arrays *)(uintptr_t)&got);
}

/* The case's settings are `--set NAME=VALUE`, but for scale, which has an option of its own. */
static void run_case(const char *folder, const posenc_case *c, const char *executor)
{
    char  path[SCRATCH_PATH], offset[32], *settings = strdup(c->settings);
    words w = call_of(&cli_attend, (const char *const[]){c->encoding, "--executor", executor, NULL});
    snprintf(path, sizeof path, "%s/%s", folder, c->file);
    snprintf(offset, sizeof offset, "--q-offset=%lld", (long long)c->q_offset);
    for (char *at = strtok(settings, " "); at; at = strtok(NULL, " ")) {
        const int is_scale = !strncmp(at, "scale=", 6);
        say(&w, is_scale ? "--scale" : "--set");
        say(&w, is_scale ? at + 6 : at);
    }
    say(&w, offset);
    if (c->causal)
        say(&w, "--causal");
    if (has_array(c, "in_segment_ids"))
        say(&w, "--segments=see");
    if (has_array(c, "gin_do"))
        say(&w, "--grad");
    say(&w, "-i");
    say(&w, path);
    say(&w, "-o");
    const char *got = scratch("got.npz");
    say(&w, got);
    if (call_words(&cli_attend, &w) != CLI_DONE) {
        size_t n;
        fail_msg("%s: %s", c->file, scratch_read(scratch("said"), &n));
    }
    posenc_arrays want = arrays_at(path);
    compare_case(c, &want, !strcmp(executor, "tiled"));
    posenc_arrays_free(&want);
    free(settings);
}

static void every_reference_case_of_attention_comes_out_again(void **state)
{
    static const char *const folders[] = {GOLDEN, GOLDEN "/rope"};
    int                      ran       = 0;
    (void)state;
    for (int f = 0; f < 2; f++) {
        posenc_cases cases = {0};
        posenc_error err;
        if (posenc_cases_read(&cases, folders[f], &err))
            fail_msg("%s", err.message);
        for (int i = 0; i < cases.count; i++) {
            if (!is_attention(&cases.items[i]))
                continue;
            run_case(folders[f], &cases.items[i], "reference");
            run_case(folders[f], &cases.items[i], "tiled");
            ran++;
        }
        posenc_cases_free(&cases);
    }
    assert_true(ran >= 20);
}

/* ---------------------------------------------------------------- made inputs --------------- */

enum { B = 2, H = 4, G = 2, LQ = 3, LK = 5, D = 4, DV = 3 };

static posenc_arrays made(posenc_dtype dtype)
{
    posenc_arrays set = {0};
    add_filled(&set, "q", dtype, (const int64_t[]){B, H, LQ, D});
    add_filled(&set, "k", dtype, (const int64_t[]){B, G, LK, D});
    add_filled(&set, "v", dtype, (const int64_t[]){B, G, LK, DV});
    return set;
}

static void the_order_of_the_axes_changes_no_number(void **state)
{
    static const char *const swapped[] = {"out_o", "g_q", "g_k", "g_v", NULL};
    posenc_arrays            set       = made(POSENC_DTYPE_F32);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays plain =
        done((const char *const[]){"rope+alibi", "--grad", "-i", input, "-o", output, NULL}, output);
    for (int i = 0; i < set.count; i++)
        swap_axes(&set.items[i].tensor);
    write_arrays(&set, "in.npz");
    posenc_arrays turned = done((const char *const[]){"rope+alibi", "--grad", "--heads-layout", "blhd", "-i",
                                                      input, "-o", output, NULL},
                                output);
    assert_int_equal(array_of(&turned, "out_o")->shape[1], LQ);
    for (int i = 0; swapped[i]; i++)
        swap_axes(posenc_arrays_find(&plain, swapped[i]));
    same_sets(&plain, &turned);
    posenc_arrays_free(&set);
}

/* Batch item 0 without its axis, and its first heads without theirs: the first numbers of the whole. */
static void leading_axes_of_one_may_be_left_out(void **state)
{
    static const char *const layouts[] = {"bhld", "blhd"};
    (void)state;
    for (int i = 0; i < 4; i++) {
        const int     axes = 2 + i / 2;
        posenc_arrays set  = {0};
        add_filled(&set, "q", POSENC_DTYPE_F64, (const int64_t[]){1, axes > 2 ? H : 1, LQ, D});
        add_filled(&set, "k", POSENC_DTYPE_F64, (const int64_t[]){1, axes > 2 ? G : 1, LK, D});
        add_filled(&set, "v", POSENC_DTYPE_F64, (const int64_t[]){1, axes > 2 ? G : 1, LK, DV});
        for (int n = 0; i % 2 && n < set.count; n++)
            swap_axes(&set.items[n].tensor);
        const char *const call[] = {"alibi", "--grad", "--heads-layout", layouts[i % 2], "-i", input, "-o",
                                    output,  NULL};
        write_arrays(&set, "in.npz");
        posenc_arrays whole = done(call, output);
        for (int n = 0; n < set.count; n++) {
            posenc_tensor *t      = &set.items[n].tensor;
            const int64_t  L      = t->shape[i % 2 ? 1 : 2];
            const int64_t  flat[] = {L, t->shape[3]};
            *t = posenc_tensor_contiguous(t->data, t->dtype, axes, axes == 2 ? flat : t->shape + 1);
        }
        write_arrays(&set, "in.npz");
        posenc_arrays part = done(call, output);
        assert_int_equal(array_of(&part, "out_o")->ndim, axes);
        assert_int_equal(array_of(&part, "g_k")->ndim, axes);
        assert_int_equal(array_of(&part, "out_lse")->ndim, axes - 1);
        assert_int_equal(array_of(&part, "g_v")->shape[axes == 2 || i % 2 ? 0 : 1], LK);
        same_sets(&whole, &part);
        posenc_arrays_free(&set);
    }
}

static void half_precision_is_widened_not_rounded(void **state)
{
    static const char *const types[] = {"BF16", "F16"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        posenc_arrays set = made(POSENC_DTYPE_F32);
        add_filled(&set, "table", POSENC_DTYPE_F32, (const int64_t[]){1, 1, 32, H});
        write_arrays(&set, "in.npz");
        write_halves(&set, "in.safetensors", types[i]);
        posenc_arrays wide =
            done((const char *const[]){"t5", "--grad", "-i", input, "-o", output, NULL}, output);
        const char   *half = scratch("in.safetensors");
        posenc_arrays narrow =
            done((const char *const[]){"t5", "--grad", "-i", half, "-o", output, NULL}, output);
        same_sets(&wide, &narrow);
        posenc_arrays_free(&set);
    }
}

static void positions_come_as_arrays_too(void **state)
{
    static const int64_t q_pos[] = {6, 7, 8}, k_pos[] = {0, 1, 2, 3, 4}, three[] = {LQ}, one_five[] = {1, LK};
    posenc_arrays        set = made(POSENC_DTYPE_F64);
    (void)state;
    write_arrays(&set, "in.npz");
    add_whole(&set, "q_pos", 1, three, q_pos);
    add_whole(&set, "in_k_pos", 2, one_five, k_pos);
    write_arrays(&set, "other.npz");
    posenc_arrays by_offset = done((const char *const[]){"transformer_xl", "--grad", "--causal", "--q-offset",
                                                         "6", "-i", input, "-o", output, NULL},
                                   output);
    posenc_arrays by_array =
        done((const char *const[]){"transformer_xl", "--grad", "--causal", "-i", other, "-o", output, NULL},
             output);
    same_sets(&by_offset, &by_array);
    posenc_arrays_free(&set);
}

/* Distances of a million from eight positions. */
static void positions_may_have_gaps(void **state)
{
    static const int64_t q_pos[] = {5, 1000, 1000000}, three[] = {LQ};
    posenc_arrays        set = made(POSENC_DTYPE_F64);
    (void)state;
    add_whole(&set, "q_pos", 1, three, q_pos);
    write_arrays(&set, "in.npz");
    posenc_arrays got = done((const char *const[]){"alibi", "-i", input, "-o", output, NULL}, output);
    posenc_arrays_free(&got);
    posenc_arrays_free(&set);
}

/* Segments that part the keys as key_allowed does give the same numbers. */
static void segments_mask_where_they_are_told_to(void **state)
{
    static const int64_t ones[] = {1, 1, 1}, parted[] = {1, 1, 1, 2, 2}, allowed[] = {1, 1, 1, 0, 0},
                         three[] = {1, LQ}, five[] = {LK};
    posenc_arrays a = made(POSENC_DTYPE_F64), b = made(POSENC_DTYPE_F64);
    (void)state;
    add_whole(&a, "q_segments", 2, three, ones);
    add_whole(&a, "k_segments", 1, five, parted);
    add_whole(&b, "key_allowed", 1, five, allowed);
    write_arrays(&a, "in.npz");
    write_arrays(&b, "other.npz");
    posenc_arrays by_segment =
        done((const char *const[]){"nope", "--segments", "mask", "-i", input, "-o", output, NULL}, output);
    posenc_arrays by_key = done((const char *const[]){"nope", "-i", other, "-o", output, NULL}, output);
    same_sets(&by_segment, &by_key);
    posenc_arrays_free(&a);
    posenc_arrays_free(&b);
}

static void an_upstream_gradient_left_out_is_ones(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F64);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays without =
        done((const char *const[]){"nope", "--grad", "-i", input, "-o", output, NULL}, output);
    posenc_tensor *dout = add_filled(&set, "dout", POSENC_DTYPE_F64, (const int64_t[]){B, H, LQ, DV});
    for (int64_t i = 0; i < pe_tensor_elements(dout); i++)
        ((double *)dout->data)[i] = 1;
    write_arrays(&set, "in.npz");
    posenc_arrays with =
        done((const char *const[]){"nope", "--grad", "-i", input, "-o", output, NULL}, output);
    same_sets(&without, &with);
    posenc_arrays_free(&set);
}

/* Adds par_table as the library initialises it for these sizes. */
static void init_table(posenc_arrays *set, uint64_t seed)
{
    const posenc_dims dims = {.B = B, .H = H, .G = G, .Lq = LQ, .Lk = LK, .D = D, .Dv = DV};
    posenc_encoding  *e;
    posenc_error      err;
    posenc_tensor *table = posenc_arrays_add(set, "par_table", POSENC_DTYPE_F64, 2, (const int64_t[]){32, H});
    assert_int_equal(posenc_encoding_create(&e, "t5", NULL, &err), POSENC_OK);
    if (posenc_param_init(e, &dims, table, seed, &err))
        fail_msg("%s", err.message);
    posenc_encoding_free(e);
}

static void a_parameter_left_out_is_initialised_and_named(void **state)
{
    posenc_arrays set = made(POSENC_DTYPE_F64);
    (void)state;
    write_arrays(&set, "in.npz");
    posenc_arrays first =
        done((const char *const[]){"t5", "--seed", "3", "-i", input, "-o", output, NULL}, output);
    said("in.npz: it has no array table; initialised with seed 3\n");
    init_table(&set, 3);
    write_arrays(&set, "in.npz");
    posenc_arrays second = done((const char *const[]){"t5", "-i", input, "-o", output, NULL}, output);
    said(NULL);
    same_sets(&first, &second);

    posenc_arrays third = done((const char *const[]){"alibi", "-i", input, "-o", output, NULL}, output);
    said("in.npz: not used: par_table\n"); /* and nothing about slopes, which nobody trains */
    posenc_arrays_free(&third);
    posenc_arrays_free(&set);
}

/* tupe's table of positions under each of its names, with more rows than the standard; all but the first
   beside positions that are those of a range. `pos` alone must not be taken for positions. */
static void a_parameter_may_have_the_name_of_positions(void **state)
{
    static const char *const names[] = {"par_pos", "pos", "tupe.pos", "par_tupe.pos"};
    static const int64_t     q_pos[] = {0, 1, 2}, k_pos[] = {0, 1, 2, 3, 4}, three[] = {LQ}, five[] = {LK};
    posenc_arrays            first = {0};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        posenc_arrays        set = made(POSENC_DTYPE_F64);
        const posenc_tensor *pos =
            add_filled(&set, names[i], POSENC_DTYPE_F64, (const int64_t[]){1, 1, 9, H * D});
        *(posenc_tensor *)(uintptr_t)pos =
            posenc_tensor_contiguous(pos->data, POSENC_DTYPE_F64, 2, (const int64_t[]){9, H * D});
        for (int64_t x = 0; x < pe_tensor_elements(pos); x++)
            ((double *)pos->data)[x] = eighth("pos", x);
        if (i > 0) {
            add_whole(&set, "q_pos", 1, three, q_pos);
            add_whole(&set, "in_k_pos", 1, five, k_pos);
        }
        write_arrays(&set, "in.npz");
        posenc_arrays got =
            done((const char *const[]){"tupe", "--grad", "-i", input, "-o", output, NULL}, output);
        said("it has no array Uq");
        assert_int_equal(array_of(&got, "g_pos")->shape[0], 9);
        if (i == 0)
            first = got;
        else
            same_array(array_of(&first, "g_pos"), array_of(&got, "g_pos"));
        if (i > 0)
            same_array(array_of(&first, "out_o"), array_of(&got, "out_o"));
        if (i > 0)
            posenc_arrays_free(&got);
        posenc_arrays_free(&set);
    }
    posenc_arrays_free(&first);
}

/* ---------------------------------------------------------------- what is refused ----------- */

/* Removes an array, or gives it other sizes over the same numbers. */
static void reshape(posenc_arrays *set, const char *name, int32_t ndim, const int64_t *shape)
{
    posenc_tensor *t = posenc_arrays_find(set, name);
    if (ndim)
        *t = posenc_tensor_contiguous(t->data, t->dtype, ndim, shape);
    for (int i = 0; !ndim && i < set->count; i++)
        if (&set->items[i].tensor == t)
            set->items[i].name[0] = 'x';
}

static void lose_v(posenc_arrays *set)
{
    reshape(set, "v", 0, NULL);
}

static void flatten_q(posenc_arrays *set)
{
    reshape(set, "q", 1, (const int64_t[]){B * H * LQ * D});
}

static void widen_k(posenc_arrays *set)
{
    reshape(set, "k", 4, (const int64_t[]){B, G, LK / 5, 5 * D});
}

static void shorten_v(posenc_arrays *set)
{
    reshape(set, "v", 4, (const int64_t[]){B, G, 3, 5});
}

static void odd_heads(posenc_arrays *set)
{
    add_filled(set, "in_q", POSENC_DTYPE_F64, (const int64_t[]){B, 3, LQ, D});
    reshape(set, "q", 0, NULL);
}

static void whole_q(posenc_arrays *set)
{
    posenc_arrays_find(set, "q")->dtype = POSENC_DTYPE_I64;
}

static void both_names(posenc_arrays *set)
{
    add_filled(set, "in_v", POSENC_DTYPE_F64, (const int64_t[]){B, G, LK, DV});
}

static void wrong_dout(posenc_arrays *set)
{
    add_filled(set, "dout", POSENC_DTYPE_F64, (const int64_t[]){B, H, LQ, D});
}

static void wrong_table(posenc_arrays *set)
{
    posenc_arrays_add(set, "table", POSENC_DTYPE_F64, 2, (const int64_t[]){31, H});
}

static void wrong_positions(posenc_arrays *set)
{
    posenc_arrays_add(set, "q_pos", POSENC_DTYPE_I64, 1, (const int64_t[]){LQ + 1});
}

static void some_positions(posenc_arrays *set)
{
    posenc_arrays_add(set, "q_pos", POSENC_DTYPE_I64, 1, (const int64_t[]){LQ});
}

static void real_mask(posenc_arrays *set)
{
    posenc_arrays_add(set, "key_allowed", POSENC_DTYPE_F64, 1, (const int64_t[]){LK});
}

static void wrong_mask(posenc_arrays *set)
{
    posenc_arrays_add(set, "allowed", POSENC_DTYPE_U8, 2, (const int64_t[]){LK, LQ});
}

static void half_segments(posenc_arrays *set)
{
    posenc_arrays_add(set, "q_segments", POSENC_DTYPE_I64, 1, (const int64_t[]){LQ});
}

static void some_segments(posenc_arrays *set)
{
    half_segments(set);
    posenc_arrays_add(set, "k_segments", POSENC_DTYPE_I64, 1, (const int64_t[]){LK});
}

/* A query in two parts beside a key that is whole; parts of two shapes. */
static void half_halves(posenc_arrays *set)
{
    add_filled(set, "qr", POSENC_DTYPE_F64, (const int64_t[]){B, H, LQ, D / 2});
    add_filled(set, "qi", POSENC_DTYPE_F64, (const int64_t[]){B, H, LQ, D / 2});
    reshape(set, "q", 0, NULL);
}

static void odd_halves(posenc_arrays *set)
{
    add_filled(set, "qr", POSENC_DTYPE_F64, (const int64_t[]){B, H, LQ, D / 2});
    add_filled(set, "qi", POSENC_DTYPE_F64, (const int64_t[]){B, H, LQ, D});
    reshape(set, "q", 0, NULL);
}

static void what_cannot_be_used_is_refused_in_a_sentence_and_nothing_is_written(void **state)
{
    static const refusal rows[] = {
        {lose_v, {"nope"}, "in.npz: it has no array v (or in_v)"},
        {flatten_q, {"nope"}, "q has the shape [96]; it must be [L,D], [H,L,D] or [B,H,L,D]"},
        {widen_k, {"nope"}, "the width of k is 20 but that of q is 4; they must be equal"},
        {shorten_v, {"nope"}, "the length of v is 3 but that of k is 5"},
        {half_halves, {"nope"}, "some of q, k and v are split in two and some are whole"},
        {odd_halves, {"nope"}, "qr and qi must have the same shape and type"},
        {odd_heads, {"nope"}, "k has 2 heads but q has 3; heads of k must divide heads of q"},
        {whole_q, {"nope"}, "q holds whole numbers; it must be float64"},
        {both_names, {"nope"}, "it has both v and in_v"},
        {wrong_dout, {"nope", "--grad"}, "dout has the shape [2,4,3,4]; it must have that of the output"},
        {wrong_table,
         {"t5[num_buckets=32]"},
         "table has the shape [31,4]; with these settings and sizes it must be [32,4]"},
        {wrong_positions, {"nope"}, "q_pos holds 1 x 4 positions"},
        {some_positions, {"nope", "--q-offset=1"}, "both the file and --q-offset give positions"},
        {real_mask, {"nope"}, "key_allowed holds real numbers"},
        {wrong_mask, {"nope"}, "allowed"},
        {half_segments, {"nope", "--segments=mask"}, "it has only q_segments"},
        {some_segments, {"nope"}, "say what they do: --segments mask"},
        {NULL, {"nope", "--segments=see"}, "it has no q_segments and k_segments"},
        {NULL, {"alibbi"}, "'alibbi'"},
        {NULL,
         {"xpos"},
         "only with a causal mask: its factors grow with the distance of keys in the future; add"},
        {NULL, {"t5", "--set", "num_bukets=8"}, "did you mean 'num_buckets'"},
        {NULL, {"sinusoidal"}, "sinusoidal acts on the embeddings"},
        {NULL, {"sinusoidal+rope"}, "sinusoidal acts on the embeddings"},
        {NULL, {"nope", "rope"}, "give one specification of an encoding, such as alibi or rope+t5, not 2"},
        {NULL, {"nope", "--executor=fast"}, "--executor is \"fast\"; it must be auto, reference or tiled"},
        {NULL, {"nope", "--heads-layout=bldh"}, "--heads-layout is \"bldh\"; it must be bhld or blhd"},
        {NULL, {"nope", "--window=0"}, "--window is \"0\""},
        {NULL, {"nope", "--scale=big"}, "--scale is \"big\""},
        {NULL, {"nope", "--output=out.txt"}, "the output out.txt must end in one of .npz .csv, or be -"},
        {NULL, {"nope", "--input=nowhere.npz"}, "nowhere.npz: it cannot be opened"},
    };
    (void)state;
    all_are_refused(&cli_attend, rows, sizeof rows / sizeof *rows, made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(every_reference_case_of_attention_comes_out_again, scratch_clear),
        cmocka_unit_test_teardown(the_order_of_the_axes_changes_no_number, scratch_clear),
        cmocka_unit_test_teardown(leading_axes_of_one_may_be_left_out, scratch_clear),
        cmocka_unit_test_teardown(half_precision_is_widened_not_rounded, scratch_clear),
        cmocka_unit_test_teardown(positions_come_as_arrays_too, scratch_clear),
        cmocka_unit_test_teardown(positions_may_have_gaps, scratch_clear),
        cmocka_unit_test_teardown(segments_mask_where_they_are_told_to, scratch_clear),
        cmocka_unit_test_teardown(an_upstream_gradient_left_out_is_ones, scratch_clear),
        cmocka_unit_test_teardown(a_parameter_left_out_is_initialised_and_named, scratch_clear),
        cmocka_unit_test_teardown(a_parameter_may_have_the_name_of_positions, scratch_clear),
        cmocka_unit_test_teardown(what_cannot_be_used_is_refused_in_a_sentence_and_nothing_is_written,
                                  scratch_clear),
    };
    return cmocka_run_group_tests(tests, name_files, scratch_close);
}
