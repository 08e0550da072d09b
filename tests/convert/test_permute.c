/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints of drawn sizes permuted and back: every row where the formula says, every byte as before
 *
 * The expected place of a row is counted here head by head, from which heads rotate in each order; the file
 * is written here too, so nothing of what is tested says what must come out.
 */
#include "convert/permute.h"

#include <posenc/registry.h>

#include "files/scratch.h"

enum { MOST = 1 << 14 };

typedef struct drawn {
    int64_t H, G, D, dim, width; /* of numbers of two bytes in a row */
    int     has_texts;
} drawn;

static int64_t rows_q(const drawn *d)
{
    return d->H * d->D;
}

static int64_t rows_k(const drawn *d)
{
    return d->G * d->D;
}

/* q_proj, k_proj and v_proj; number i of the data is i. */
static void write_file(const char *path, const drawn *d)
{
    char      header[900];
    long long q = (long long)(rows_q(d) * d->width * 2), k = (long long)(rows_k(d) * d->width * 2);
    int       n =
        snprintf(header, sizeof header,
                 "{%s\"self_attn.q_proj.weight\":{\"dtype\":\"BF16\",\"shape\":[%lld,%lld],"
                 "\"data_offsets\":[0,%lld]},\"self_attn.k_proj.weight\":{\"dtype\":\"F16\",\"shape\":[%lld,"
                 "%lld],\"data_offsets\":[%lld,%lld]},\"v\":{\"dtype\":\"I8\",\"shape\":[3],"
                 "\"data_offsets\":[%lld,%lld]}}",
                 d->has_texts ? "\"__metadata__\":{\"format\":\"pt\"}," : "", (long long)rows_q(d),
                 (long long)d->width, q, (long long)rows_k(d), (long long)d->width, q, q + k, q + k,
                 q + k + 3);
    while (n % 8)
        header[n++] = ' ';
    const uint64_t length = (uint64_t)n;
    FILE          *file   = fopen(path, "wb");
    assert_non_null(file);
    fwrite(&length, 8, 1, file);
    fwrite(header, 1, (size_t)n, file);
    for (int64_t i = 0; i < (q + k) / 2; i++)
        fwrite(&(uint16_t){(uint16_t)i}, 2, 1, file);
    fwrite("abc", 1, 3, file);
    fclose(file);
}

static void permute(const char *from, const char *to, const drawn *d, pe_layout layout)
{
    pe_permute            p;
    posenc_error          err;
    const pe_permute_wish wish = {{NULL, {.H = d->H, .G = d->G, .D = d->D, .dim = d->dim}},
                                  PE_LAYOUT_UNTOLD,
                                  layout};
    if (pe_permute_plan(&p, from, &wish, &err) || pe_permute_run(&p, to, (pe_progress){0}, &err))
        fail_msg("%s", err.message);
    pe_permute_free(&p);
}

/* Row r of a projection stood there before it was made interleaved. */
static int64_t before(const drawn *d, int64_t r)
{
    const int64_t in = r % d->D, head = r - in;
    return in < d->dim ? head + in % 2 * (d->dim / 2) + in / 2 : r;
}

static void check_rows(const char *path, const drawn *d)
{
    static uint16_t row[MOST];
    pe_checkpoint   c;
    posenc_error    err;
    int64_t         first = 0;
    assert_int_equal(pe_checkpoint_open(&c, path, &err), POSENC_OK);
    for (int t = 0; t < 2; t++) {
        const int64_t rows = t ? rows_k(d) : rows_q(d);
        for (int64_t r = 0; r < rows; r++) {
            assert_int_equal(pe_checkpoint_read(&c, row, 2 * d->width, c.tensors[t].begin + 2 * r * d->width,
                                                &err),
                             POSENC_OK);
            for (int64_t i = 0; i < d->width; i++)
                assert_int_equal(row[i], (uint16_t)(first + before(d, r) * d->width + i));
        }
        first += rows * d->width;
    }
    pe_checkpoint_close(&c);
}

static int64_t draw(const char *what, int i, int64_t most)
{
    return 1 + (int64_t)(posenc_random_uniform(26, what, (uint64_t)i) * (double)most);
}

static void rows_stand_where_the_formula_says_and_go_back(void **state)
{
    (void)state;
    for (int i = 0; i < 40; i++) {
        drawn d = {.G         = draw("G", i, 3),
                   .dim       = 2 * draw("dim", i, 20),
                   .width     = draw("width", i, 40),
                   .has_texts = i % 2};
        d.H     = d.G * draw("H", i, 3);
        d.D     = d.dim + draw("D", i, 6) - 1;
        size_t n, m;
        write_file(scratch("a"), &d);
        permute(scratch("a"), scratch("b"), &d, PE_LAYOUT_INTERLEAVED);
        check_rows(scratch("b"), &d);
        permute(scratch("b"), scratch("c"), &d, PE_LAYOUT_HALF);
        char *was = scratch_read(scratch("a"), &n), *is = scratch_read(scratch("c"), &m);
        assert_int_equal(n, m);
        assert_memory_equal(was, is, n);
        free(was);
        free(is);
    }
}

/* A block of 70 rows of 32 kB is more than the buffer holds, so its rows go one by one. */
static void a_block_wider_than_the_buffer_is_permuted_too(void **state)
{
    (void)state;
    const drawn d = {.H = 1, .G = 1, .D = 72, .dim = 70, .width = MOST};
    write_file(scratch("a"), &d);
    permute(scratch("a"), scratch("b"), &d, PE_LAYOUT_INTERLEAVED);
    check_rows(scratch("b"), &d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_stand_where_the_formula_says_and_go_back),
        cmocka_unit_test(a_block_wider_than_the_buffer_is_permuted_too),
    };
    return cmocka_run_group_tests(tests, scratch_open, scratch_close);
}
