/* SPDX-License-Identifier: MIT */
/*
 * attention.c: attention against arithmetic, against itself without positions, and against reading its keys:
 * G8 to G11, G14, G17 to G20
 *
 * Useful arithmetic is 4 D for each pair of a query and a key that the mask allows, backward 10 D, whatever
 * the encoding adds and however many times a kernel computes something again. PEAK: the share of the
 * multiply-add loop of the instruction set in use. OVER: seconds over those of another run: the same shape
 * without positions (G11, G18's biases), in float32 instead of bfloat16 (G19, the other way round), on one
 * thread instead of two (G14). READ: bytes of keys and values per second over those of a loop that only reads
 * them (G20).
 */
#include "bench/attention_run.h"
#include "bench/cases.h"
#include "bench/limits.h"

#include <string.h>

enum { LONG_L = 4096, HEADS = 8, FEW_HEADS = 2, CACHE = 32768 };

/* ---------------------------------------------------------------- three kinds of figures ----- */

static posenc_status measure_peak(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_attention_run r;
    pe_peak          peak;
    posenc_status    status = pe_attention_open(&r, c, effort->threads, err);
    if (!status)
        status = pe_attention_start(&r, err);
    if (!status) {
        const pe_timed kernel = pe_attention_timed(&r, &c->shape, effort->threads),
                       limit  = pe_multiply_add_limit(&peak, c->isa, effort->threads);
        pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    pe_attention_close(&r);
    return status;
}

/* Two problems in turns; ratio as pe_compare. Work is 1, so speeds are runs per second. */
static posenc_status compare_runs(const pe_bench_case *c, const pe_bench_case *other, int threads,
                                  int other_threads, pe_ratio ratio, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_attention_run a, b = {0};
    posenc_status    status = pe_attention_open(&a, c, threads, err);
    if (!status)
        status = pe_attention_open(&b, other, other_threads, err);
    if (!status)
        status = pe_attention_start(&a, err);
    if (!status)
        status = pe_attention_start(&b, err);
    if (!status) {
        const pe_timed kernel = {pe_attention_go, &a, 1, threads},
                       limit  = {pe_attention_go, &b, 1, other_threads};
        pe_compare(figure, &kernel, &limit, ratio, effort);
        figure->limit =
            1e3 * (ratio == PE_SPEED_RATIO ? 1 / figure->limit : figure->limit); /* milliseconds */
    }
    pe_attention_close(&a);
    pe_attention_close(&b);
    return status;
}

static posenc_status measure_over_plain(const pe_bench_case *c, const pe_bench_effort *effort,
                                        pe_bench_figure *figure, posenc_error *err)
{
    pe_bench_case plain = *c;
    plain.shape.spec    = "nope";
    return compare_runs(c, &plain, effort->threads, effort->threads, PE_TIME_RATIO, effort, figure, err);
}

static posenc_status measure_over_float(const pe_bench_case *c, const pe_bench_effort *effort,
                                        pe_bench_figure *figure, posenc_error *err)
{
    pe_bench_case narrow = *c;
    narrow.shape.dtype   = POSENC_F32;
    return compare_runs(c, &narrow, effort->threads, effort->threads, PE_SPEED_RATIO, effort, figure, err);
}

static posenc_status measure_threads(const pe_bench_case *c, const pe_bench_effort *effort,
                                     pe_bench_figure *figure, posenc_error *err)
{
    return compare_runs(c, c, c->shape.threads, 1, PE_SPEED_RATIO, effort, figure, err);
}

/* Keys and values, in the order of attention. */
typedef struct cache {
    pe_pass  keys, values;
    pe_timed read_keys, read_values;
} cache;

static void read_cache(void *context)
{
    cache *both = context;
    both->read_keys.run(both->read_keys.context);
    both->read_values.run(both->read_values.context);
}

static posenc_status measure_read(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    const pe_bench_shape *s     = &c->shape;
    const int64_t         bytes = s->G * s->Lk * s->D * (int64_t)posenc_dtype_size(s->dtype);
    pe_attention_run      r;
    posenc_status         status = pe_attention_open(&r, c, effort->threads, err);
    if (!status)
        status = pe_attention_start(&r, err);
    if (!status) {
        cache both;
        both.read_keys = pe_best_pass(&both.keys, PE_PASS_READ, r.in.k.data, NULL, bytes, effort->threads);
        both.read_values =
            pe_best_pass(&both.values, PE_PASS_READ, r.in.v.data, NULL, bytes, effort->threads);
        const pe_timed kernel = {pe_attention_go, &r, 2.0 * (double)bytes, effort->threads},
                       limit  = {read_cache, &both, both.read_keys.work + both.read_values.work,
                                 effort->threads};
        pe_compare(figure, &kernel, &limit, PE_SPEED_RATIO, effort);
        figure->limit *= 1e-9;
    }
    pe_attention_close(&r);
    return status;
}

/* Seconds of one long run. */
static posenc_status measure_once(const pe_bench_case *c, const pe_bench_effort *effort,
                                  pe_bench_figure *figure, posenc_error *err)
{
    pe_attention_run r;
    posenc_status    status = pe_attention_open(&r, c, effort->threads, err);
    if (!status && !(r.work = pe_plain_buffer(&r.all, r.work_bytes, err)))
        status = err->status;
    const double start = pe_worked(effort->threads);
    if (!status)
        status = posenc_attend(r.plan, &r.in, &r.out, r.work, err);
    if (!status) {
        figure->value = pe_worked(effort->threads) - start;
        figure->q1 = figure->q3 = figure->value;
    }
    pe_attention_close(&r);
    return status;
}

/* ---------------------------------------------------------------- the rows ------------------ */

static const int both_masks[] = {POSENC_MASK_NONE, POSENC_MASK_CAUSAL};

static pe_bench_shape square(const char *spec, int64_t H, int64_t L, int64_t D, int mask)
{
    return (
        pe_bench_shape){.spec = spec, .H = H, .Lq = L, .Lk = L, .D = D, .mask = mask, .dtype = POSENC_F32};
}

static void add_peak(pe_case_list *to, const char *goal, const char *isa, pe_bench_shape shape, double wanted)
{
    pe_add_case(to, goal,
                (pe_bench_case){
                    .unit = "GFLOP/s", .wanted = wanted, .isa = isa, .measure = measure_peak, .shape = shape},
                "attention %s f32%s%s, D %lld, L %lld, %s, of the multiply-add peak",
                shape.backward ? "backward" : "forward", isa ? " " : "", isa ? isa : "", (long long)shape.D,
                (long long)shape.Lk, pe_mask_word(shape.mask));
}

static void add_peaks(pe_case_list *to)
{
    for (int D = 64; D <= 128; D += 64)
        for (int m = 0; m < 2; m++) {
            const int    mask   = both_masks[m];
            const double wanted = D == 64 ? 0.82 : 0.87;
            add_peak(to, "G8", NULL, square("nope", HEADS, LONG_L, D, mask), wanted);
            add_peak(to, "G8", NULL, square("nope", FEW_HEADS, 2 * LONG_L, D, mask), wanted);
            add_peak(to, "G9", NULL, square("nope", HEADS, LONG_L / 4, D, mask), mask ? 0.72 : 0.82);
            add_peak(to, "G10", "avx2", square("nope", FEW_HEADS, LONG_L, D, mask), 0.72);
        }
    pe_bench_shape back = square("nope", FEW_HEADS, LONG_L, 64, POSENC_MASK_CAUSAL);
    back.backward       = 1;
    add_peak(to, "G18", NULL, back, 0.65);
}

static void add_over(pe_case_list *to, const char *goal, pe_bench_fn *measure, pe_bench_shape shape,
                     double wanted, const char *of)
{
    pe_add_case(to, goal,
                (pe_bench_case){.unit    = "ms",
                                .wanted  = wanted,
                                .sense   = wanted > 0 ? PE_AT_MOST : PE_STATED,
                                .measure = measure,
                                .shape   = shape},
                "%s %s f32, D %lld, L %lld, %s, %s", shape.spec, shape.backward ? "backward" : "forward",
                (long long)shape.D, (long long)shape.Lk, pe_mask_word(shape.mask), of);
}

/* What each may cost. 0: stated, for its hook or its second product has a limit of its own
   (docs/performance.md). */
static const struct {
    const char *spec;
    double      wanted;
} encodings[] = {
    {"alibi", 1.03},
    {"t5", 1.03},
    {"kerple_log", 1.03},
    {"kerple_power", 1.03},
    {"sandwich", 1.03},
    {"toeplitz", 1.03},
    {"relative_table", 1.03},
    {"dense_bias", 1.08},
    {"transformer_xl", 1.55},
    {"shaw[values=no]", 1.55},
    {"deberta", 2.1},
    {"urpe", 1.05},
    {"cope", 0},
    {"fire", 0},
    {"shaw", 0},
};

enum { ENCODINGS = sizeof encodings / sizeof *encodings };

static int is_named(const char *name)
{
    for (int i = 0; i < ENCODINGS; i++)
        if (!strcmp(encodings[i].spec, name))
            return 1;
    return !strcmp(name, "nope");
}

static const char over_plain[] = "time over plain, at most";
static const char stated[]     = "time over plain";

static void add_over_plain(pe_case_list *to, const char *spec, double wanted, int mask)
{
    add_over(to, "G11", measure_over_plain, square(spec, FEW_HEADS, LONG_L, 64, mask), wanted,
             wanted > 0 ? over_plain : stated);
}

static void add_encodings(pe_case_list *to)
{
    for (int i = 0; i < ENCODINGS; i++)
        for (int m = 0; m < 2; m++)
            add_over_plain(to, encodings[i].spec, encodings[i].wanted, both_masks[m]);
    for (int i = 0; i < posenc_encoding_count(); i++) { /* every other one that acts in attention, stated */
        const posenc_encoding_info *info = posenc_encoding_info_at(i);
        if (info->place != POSENC_INPUT && !is_named(info->name))
            add_over_plain(to, info->name, 0, POSENC_MASK_CAUSAL);
    }
}

/* Gradients of a bias by distance: backward over backward without one. */
static void add_bias_gradients(pe_case_list *to)
{
    static const char *const specs[] = {"alibi[learned=yes]", "t5",       "kerple_log",
                                        "kerple_power",       "toeplitz", "relative_table"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        pe_bench_shape s = square(specs[i], FEW_HEADS, LONG_L, 64, POSENC_MASK_CAUSAL);
        s.backward       = 1;
        add_over(to, "G18", measure_over_plain, s, 1.05, over_plain);
    }
}

static void add_threads(pe_case_list *to)
{
    for (int i = 0; i < 3; i++) {
        pe_bench_shape s = square("nope", HEADS, LONG_L, 64, i ? POSENC_MASK_CAUSAL : POSENC_MASK_NONE);
        s.backward       = i == 2;
        s.threads        = 2;
        pe_add_case(
            to, "G14",
            (pe_bench_case){
                .unit = "ms", .wanted = 1.85, .processors = 2, .measure = measure_threads, .shape = s},
            "attention %s f32, D 64, L %d, %s, two threads over one", s.backward ? "backward" : "forward",
            LONG_L, pe_mask_word(s.mask));
    }
}

static void add_half_widths(pe_case_list *to)
{
    for (int D = 64; D <= 128; D += 64)
        for (int m = 0; m < 2; m++) {
            pe_bench_shape s = square("nope", FEW_HEADS, LONG_L, D, both_masks[m]);
            s.dtype          = POSENC_BF16;
            pe_add_case(to, "G19",
                        (pe_bench_case){.unit    = "ms",
                                        .wanted  = 1.4,
                                        .isa     = "avx512bf16",
                                        .measure = measure_over_float,
                                        .shape   = s},
                        "attention forward bf16, D %d, L %d, %s, speed over f32", D, LONG_L,
                        pe_mask_word(both_masks[m]));
        }
}

static void add_one_token(pe_case_list *to, const char *spec, posenc_dtype dtype, double wanted)
{
    pe_add_case(to, "G20",
                (pe_bench_case){.unit    = "GB/s",
                                .wanted  = wanted,
                                .sense   = wanted > 0 ? PE_AT_LEAST : PE_STATED,
                                .measure = measure_read,
                                .shape   = {.spec  = spec,
                                            .H     = 32,
                                            .G     = 8,
                                            .Lq    = 1,
                                            .Lk    = CACHE,
                                            .D     = 128,
                                            .mask  = POSENC_MASK_CAUSAL,
                                            .dtype = dtype}},
                "one token against %d keys, heads 32/8, D 128, %s, %s, of read bandwidth", CACHE, spec,
                pe_dtype_word(dtype));
}

static void add_decoding(pe_case_list *to)
{
    static const char *const specs[] = {"nope", "alibi", "t5"};
    for (int i = 0; i < 3; i++)
        add_one_token(to, specs[i], POSENC_F32, 0.85);
    for (int i = 0; i < 3; i++)
        add_one_token(to, specs[i], POSENC_BF16, 0.85);
    add_one_token(to, "rope", POSENC_F32, 0); /* a cache of keys as they came: all are turned on their way */
}

static void add_long(pe_case_list *to)
{
    static const struct {
        const char *name;
        int64_t     L, window;
    } rows[] = {{"causal, window 4096", 1048576, 4096}, {"causal, in full", 262144, 0}};
    for (int i = 0; i < 2; i++) {
        pe_bench_shape s =
            square("alibi", 1, rows[i].L, 64, POSENC_MASK_CAUSAL | (rows[i].window ? POSENC_MASK_WINDOW : 0));
        s.window = rows[i].window;
        pe_add_case(to, "G17",
                    (pe_bench_case){
                        .unit = "s", .sense = PE_STATED, .is_long = 1, .measure = measure_once, .shape = s},
                    "one head with alibi, D 64, L %lld, %s: seconds", (long long)rows[i].L, rows[i].name);
    }
}

void pe_attention_cases(pe_case_list *to)
{
    add_peaks(to);
    add_encodings(to);
    add_threads(to);
    add_bias_gradients(to);
    add_half_widths(to);
    add_decoding(to);
    add_long(to);
}
