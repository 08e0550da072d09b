/* SPDX-License-Identifier: MIT */
/* Lengths, grids and lists of positions: contract in rows.h. */
#include "cli/commands/rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1 << 30 };

/* ---------------------------------------------------------------- --grid -------------------- */

int cli_rows_read_grid(cli_rows *p, const char *text)
{
    const char *at    = text;
    double      total = 1;
    for (p->axes = 0; p->axes < CLI_MAX_AXES; at++) {
        char           *end;
        const long long n = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : 0;
        if (n < 1 || (total *= (double)n) > LONGEST || (*end != 'x' && *end))
            break;
        p->grid[p->axes++] = n;
        if (!*end)
            return CLI_DONE;
        at = end;
    }
    return cli_usage(
        "%s: --grid is \"%s\"; it must be 1 to %d sizes joined by x, such as 14x14, at most %d tokens in all",
        p->command, text, CLI_MAX_AXES, LONGEST);
}

static int64_t grid_tokens(const cli_rows *p)
{
    int64_t n = 1;
    for (int a = 0; a < p->axes; a++)
        n *= p->grid[a];
    return n;
}

/* ---------------------------------------------------------------- --positions --------------- */

/* Numbers joined by commas; those of one position, as many as in the first, by colons. */
static void read_list(cli_rows *p, const char *text, pe_calc *in)
{
    int64_t count = 1, N = 1;
    for (size_t i = 0; text[i]; i++)
        count += text[i] == ',' || text[i] == ':';
    for (size_t i = 0; text[i] && text[i] != ','; i++)
        N += text[i] == ':';
    if (count % N == 0)
        p->list = pe_calc_make(in, POSENC_DTYPE_F64, 2, (const int64_t[2]){count / N, N});
    const char *at = p->list.data ? text : NULL;
    for (int64_t i = 0; at && i < count; i++) {
        char        *end;
        const double x              = strtod(at, &end);
        ((double *)p->list.data)[i] = x;
        at = end == at || !isfinite(x) || (*end && *end != ((i + 1) % N ? ':' : ',')) ? NULL
                                                                                      : end + (*end != 0);
    }
    if (!at)
        pe_calc_refuse(in,
                       "--positions is \"%s\"; it must be a file, or positions joined by commas, each with "
                       "the same number of coordinates, joined by colons",
                       text);
}

static void read_file(cli_rows *p, const char *path, pe_calc *in)
{
    static const char *const names[] = {"pos", "in_pos", "positions", NULL};
    if (strcmp(path, "-") && access(path, F_OK))
        pe_calc_refuse(
            in,
            "--positions is \"%s\", which is not a list of numbers such as 0,1.5,7 (coordinates joined by "
            "colons: 0:0,0:1), and there is no file of that name",
            path);
    pe_calc_read(in, path);
    /* the array of such a name, or the only one */
    const char *const only[] = {in->file.count == 1 ? in->file.items[0].name : "", NULL};
    posenc_tensor     t      = in->file.count == 1 ? pe_calc_find(in, only) : pe_calc_need(in, names);
    if (!pe_calc_failed(in) && (t.ndim < 1 || t.ndim > 2 || t.shape[0] < 1 || t.shape[1] < 1))
        pe_calc_refuse(in, "its positions have the shape %s; it must be [L], or [L,N] for N coordinates",
                       pe_calc_shape_text(in, t.ndim, t.shape));
    t = pe_calc_convert(in, POSENC_DTYPE_F64, &t);
    if (pe_calc_failed(in))
        return;
    p->list = posenc_tensor_contiguous(t.data, POSENC_DTYPE_F64, 2,
                                       (const int64_t[2]){t.shape[0], t.ndim == 2 ? t.shape[1] : 1});
    cli_calc_warn_unused(in, "par_"); /* an archive of encode has parameters too */
}

/* ---------------------------------------------------------------- the three ------------------ */

void cli_rows_read(cli_rows *p, const cli_args *args, pe_calc *in)
{
    const char *grid = cli_value(args, "grid"), *positions = cli_value(args, "positions");
    *p = (cli_rows){.command = "encode"};
    if ((cli_value(args, "length") != NULL) + (grid != NULL) + (positions != NULL) != 1)
        pe_calc_refuse(in, "give exactly one of --length L, --grid HxW and --positions LIST|F");
    else if (grid)
        cli_calc_said(in, cli_rows_read_grid(p, grid));
    else if (!positions)
        cli_calc_said(in, cli_integer(args, "length", 1, LONGEST, &p->length) < 0 ? CLI_USAGE : CLI_DONE);
    else if (!positions[strspn(positions, "0123456789+-.eE,:")] && strpbrk(positions, "0123456789"))
        read_list(p, positions, in);
    else
        read_file(p, positions, in);
    if (!p->list.data || pe_calc_failed(in))
        return;
    for (int64_t i = 0; i < pe_tensor_elements(&p->list); i++)
        p->last = fmax(p->last, ((const double *)p->list.data)[i]);
    p->length = p->list.shape[0];
}

/* " shape=2x3x4" after the text so far. */
static void put_list(char text[CLI_GRID_TEXT], const char *name, const int64_t *sizes, int axes)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, CLI_GRID_TEXT - used, "%s%s", used ? " " : "", name);
    for (int a = 0; a < axes && used < CLI_GRID_TEXT; a++)
        used +=
            (size_t)snprintf(text + used, CLI_GRID_TEXT - used, "%c%lld", a ? 'x' : '=', (long long)sizes[a]);
}

/* A shape that holds all positions given: how many coordinates they have is what counts. */
static void put_extent(const cli_rows *p, char text[CLI_GRID_TEXT])
{
    const int64_t L = p->list.shape[0], N = p->list.shape[1];
    int64_t       sizes[CLI_MAX_AXES];
    for (int64_t a = 0; a < N; a++) {
        double most = 0;
        for (int64_t i = 0; i < L; i++)
            most = fmax(most, ((const double *)p->list.data)[i * N + a]);
        sizes[a] = (int64_t)fmin(most, LONGEST >> 10) + 1;
    }
    put_list(text, "shape", sizes, (int)N);
}

int cli_rows_settings(cli_rows *p, const posenc_encoding *e, char text[CLI_GRID_TEXT])
{
    const posenc_encoding_info *info = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    pe_picture_lists(e, p->grid, p->axes, text);
    if (p->axes == 2 && pe_calc_setting(info, "height") && pe_calc_setting(info, "width"))
        snprintf(text, CLI_GRID_TEXT, "height=%lld width=%lld", (long long)p->grid[0], (long long)p->grid[1]);
    p->is_numbered = text[0] != '\0';
    if (p->list.data && p->list.shape[1] > 1 && p->list.shape[1] <= CLI_MAX_AXES &&
        pe_calc_setting(info, "shape") && !pe_calc_is_set(posenc_encoding_spec(e), "shape"))
        put_extent(p, text);
    if (p->axes && !p->is_numbered && p->axes != posenc_rows_coordinates(e))
        return cli_usage("%s: a grid of %d axes does not fit %s, whose positions have %d; give %s",
                         p->command, p->axes, info->name, posenc_rows_coordinates(e),
                         posenc_rows_coordinates(e) == 1 ? "--length" : "as many sizes");
    return CLI_DONE;
}

/* [L,N]: the coordinates of the grid's tokens, the last axis fastest. */
static void list_grid(cli_rows *p, pe_calc *in)
{
    p->list = pe_calc_make(in, POSENC_DTYPE_F64, 2, (const int64_t[2]){grid_tokens(p), p->axes});
    for (int64_t s = 0; p->list.data && s < grid_tokens(p); s++) {
        int64_t rest = s;
        for (int a = p->axes - 1; a >= 0; a--) {
            ((double *)p->list.data)[s * p->axes + a] = (double)(rest % p->grid[a]);
            rest /= p->grid[a];
        }
    }
}

posenc_positions cli_rows_positions(cli_rows *p, const posenc_encoding *e, int64_t tokens, pe_calc *in)
{
    const int N = posenc_rows_coordinates(e);
    if (p->axes)
        p->length = p->is_numbered ? tokens : grid_tokens(p);
    if (p->axes && !p->is_numbered && N > 1)
        list_grid(p, in);
    if (!p->list.data || pe_calc_failed(in))
        return posenc_positions_range(0, 1);
    if (p->list.shape[1] != N)
        cli_calc_said(in, cli_usage("encode: the positions have %lld coordinates each; those of %s have %d",
                                    (long long)p->list.shape[1], posenc_encoding_spec(e), N));
    return posenc_positions_array(posenc_tensor_contiguous(p->list.data, POSENC_DTYPE_F64, N > 1 ? 2 : 1,
                                                           (const int64_t[2]){p->length, N}));
}
