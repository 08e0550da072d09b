/* SPDX-License-Identifier: MIT */
/* Lengths, grids and lists of positions: contract in places.h. */
#include "places.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 1 << 30 };

/* ---------------------------------------------------------------- --grid -------------------- */

int cli_places_read_grid(cli_places *p, const char *text)
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
    return cli_usage("%s: --grid is \"%s\"; it must be 1 to %d sizes joined by x, such as 14x14, with at "
                     "most %d tokens",
                     p->command, text, CLI_MAX_AXES, LONGEST);
}

static int64_t grid_tokens(const cli_places *p)
{
    int64_t n = 1;
    for (int a = 0; a < p->axes; a++)
        n *= p->grid[a];
    return n;
}

/* ---------------------------------------------------------------- --positions --------------- */

/* Numbers joined by commas; those of one position, as many as in the first, by colons. */
static int read_list(cli_places *p, const char *text, cli_problem *in)
{
    int64_t count = 1, N = 1;
    for (size_t i = 0; text[i]; i++)
        count += text[i] == ',' || text[i] == ':';
    for (size_t i = 0; text[i] && text[i] != ','; i++)
        N += text[i] == ':';
    if (count % N == 0)
        p->list = cli_make(in, POSENC_DTYPE_F64, 2, (const int64_t[2]){count / N, N});
    const char *at = p->list.data ? text : NULL;
    for (int64_t i = 0; at && i < count; i++) {
        char        *end;
        const double x              = strtod(at, &end);
        ((double *)p->list.data)[i] = x;
        at = end == at || !isfinite(x) || (*end && *end != ((i + 1) % N ? ':' : ',')) ? NULL
                                                                                      : end + (*end != 0);
    }
    if (!at)
        cli_refuse(in,
                   "--positions is \"%s\"; it must be numbers joined by commas, each position with as many "
                   "coordinates, joined by colons, or a file",
                   text);
    return cli_problem_status(in);
}

static int read_file(cli_places *p, const char *path, cli_problem *in)
{
    static const char *const names[] = {"pos", "in_pos", "positions", NULL};
    if (access(path, F_OK))
        cli_refuse(
            in,
            "--positions is \"%s\", which is no list of numbers such as 0,1.5,7 (coordinates joined by "
            "colons: 0:0,0:1), and there is no file of that name",
            path);
    cli_problem_read(in, path);
    /* the array of such a name, or the only one */
    const char *const only[] = {in->file.count == 1 ? in->file.items[0].name : "", NULL};
    posenc_tensor     t      = in->file.count == 1 ? cli_find(in, only) : cli_need(in, names);
    if (!cli_stopped(in) && (t.ndim < 1 || t.ndim > 2 || t.shape[0] < 1 || t.shape[1] < 1))
        cli_refuse(in, "its positions have the shape %s; it must be [L], or [L,N] for N coordinates",
                   cli_shape_text(in, t.ndim, t.shape));
    t = cli_convert(in, POSENC_DTYPE_F64, &t);
    if (cli_stopped(in))
        return cli_problem_status(in);
    p->list = posenc_tensor_contiguous(t.data, POSENC_DTYPE_F64, 2,
                                       (const int64_t[2]){t.shape[0], t.ndim == 2 ? t.shape[1] : 1});
    cli_warn_unused(in, "par_"); /* an archive of encode has parameters too */
    return CLI_DONE;
}

/* ---------------------------------------------------------------- the three ------------------ */

int cli_places_read(cli_places *p, const cli_args *args, cli_problem *in)
{
    const char *grid = cli_value(args, "grid"), *positions = cli_value(args, "positions");
    *p = (cli_places){.command = "encode"};
    if ((cli_value(args, "length") != NULL) + (grid != NULL) + (positions != NULL) != 1)
        return cli_usage("encode: give exactly one of --length L, --grid HxW and --positions LIST|F");
    if (grid)
        return cli_places_read_grid(p, grid);
    if (!positions)
        return cli_integer(args, "length", 1, LONGEST, &p->length) < 0 ? CLI_USAGE : CLI_DONE;
    const int is_list =
        !positions[strspn(positions, "0123456789+-.eE,:")] && strpbrk(positions, "0123456789");
    const int status = is_list ? read_list(p, positions, in) : read_file(p, positions, in);
    for (int64_t i = 0; !status && i < cli_element_count(&p->list); i++)
        p->last = fmax(p->last, ((const double *)p->list.data)[i]);
    p->length = p->list.shape[0];
    return status;
}

/* " shape=2x3x4" behind what stands there. */
static void put_list(char text[CLI_GRID_TEXT], const char *name, const int64_t *sizes, int axes)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, CLI_GRID_TEXT - used, "%s%s", used ? " " : "", name);
    for (int a = 0; a < axes && used < CLI_GRID_TEXT; a++)
        used +=
            (size_t)snprintf(text + used, CLI_GRID_TEXT - used, "%c%lld", a ? 'x' : '=', (long long)sizes[a]);
}

void cli_places_lists(const cli_places *p, const posenc_encoding *e, char text[CLI_GRID_TEXT])
{
    static const char *const    lists[] = {"shape", "grid_out", "grid_in"};
    const posenc_encoding_info *info    = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    text[0]                             = '\0';
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        if (p->axes && cli_find_setting(info, lists[i]) &&
            !(strstr(lists[i], "_in") && cli_is_said(posenc_encoding_spec(e), lists[i])))
            put_list(text, lists[i], p->grid, p->axes);
}

/* A shape that holds all positions given: how many coordinates they have is what counts. */
static void put_extent(const cli_places *p, char text[CLI_GRID_TEXT])
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

int cli_places_settings(cli_places *p, const posenc_encoding *e, char text[CLI_GRID_TEXT])
{
    const posenc_encoding_info *info = posenc_encoding_part(e, POSENC_PLACE_INPUT);
    cli_places_lists(p, e, text);
    if (p->axes == 2 && cli_find_setting(info, "height") && cli_find_setting(info, "width"))
        snprintf(text, CLI_GRID_TEXT, "height=%lld width=%lld", (long long)p->grid[0], (long long)p->grid[1]);
    p->is_numbered = text[0] != '\0';
    if (p->list.data && p->list.shape[1] > 1 && p->list.shape[1] <= CLI_MAX_AXES &&
        cli_find_setting(info, "shape") && !cli_is_said(posenc_encoding_spec(e), "shape"))
        put_extent(p, text);
    if (p->axes && !p->is_numbered && p->axes != posenc_rows_coordinates(e))
        return cli_usage("%s: a grid of %d axes is nothing to %s, whose positions have %d; give %s",
                         p->command, p->axes, info->name, posenc_rows_coordinates(e),
                         posenc_rows_coordinates(e) == 1 ? "--length" : "as many sizes");
    return CLI_DONE;
}

/* [L,N] of the grid's places, the last axis fastest. */
static void list_grid(cli_places *p, cli_problem *in)
{
    p->list = cli_make(in, POSENC_DTYPE_F64, 2, (const int64_t[2]){grid_tokens(p), p->axes});
    for (int64_t s = 0; p->list.data && s < grid_tokens(p); s++) {
        int64_t rest = s;
        for (int a = p->axes - 1; a >= 0; a--) {
            ((double *)p->list.data)[s * p->axes + a] = (double)(rest % p->grid[a]);
            rest /= p->grid[a];
        }
    }
}

int cli_places_positions(cli_places *p, const posenc_encoding *e, int64_t tokens, cli_problem *in,
                         posenc_positions *pos)
{
    const int N = posenc_rows_coordinates(e);
    if (p->axes)
        p->length = p->is_numbered ? tokens : grid_tokens(p);
    if (p->axes && !p->is_numbered && N > 1)
        list_grid(p, in);
    *pos = posenc_positions_range(0, 1);
    if (!p->list.data)
        return cli_problem_status(in);
    if (p->list.shape[1] != N)
        return cli_usage("encode: the positions have %lld coordinates each; those of %s have %d",
                         (long long)p->list.shape[1], posenc_encoding_spec(e), N);
    *pos = posenc_positions_array(posenc_tensor_contiguous(p->list.data, POSENC_DTYPE_F64, N > 1 ? 2 : 1,
                                                           (const int64_t[2]){p->length, N}));
    return cli_problem_status(in);
}
