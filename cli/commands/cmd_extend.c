/* SPDX-License-Identifier: MIT */
/*
 * cmd_extend.c: posenc extend: a checkpoint with a longer learned table of positions
 *
 * For whoever has a BERT of 512 positions and texts of 2048, or a ViT of 14x14 patches and larger images. The
 * new rows are a beginning: they need training, and the extension of `compare` shows what each rule is worth.
 */
#include "cli/commands/progress.h"
#include "cli/commands/rows.h"
#include "convert/extend.h"
#include "files/arrays/text.h"

#include <stdlib.h>
#include <string.h>

typedef struct extend_job {
    const char *output, *tensor;
    int64_t     length;
    int         how;
    cli_rows    grid;
    pe_extend   plan;
} extend_job;

#define KINDS                                                                                            \
    "linear|linear_align_corners|bilinear_align_corners|bicubic|bicubic_antialias|bicubic_scale_factor|" \
    "repeat|hierarchical"

static const cli_option options[] = {
    {'o', "output", "F", "where it goes: a .safetensors; its config.json goes beside it", CLI_TEXT,
     offsetof(extend_job, output), .words = ".safetensors"},
    {0, "length", "N", "how many positions the new table has", CLI_WHOLE, offsetof(extend_job, length), 1,
     1 << 24},
    {0, "grid", "HxW", "which grid of patches it has"},
    {0, "how", "NAME",
     "the rule: a kind of learned_resize (linear, linear_align_corners, bilinear_align_corners: the original "
     "ViT; bicubic: DeiT; bicubic_antialias: timm; bicubic_scale_factor: DINO), repeat, or hierarchical",
     CLI_WORD, offsetof(extend_job, how), .words = KINDS},
    {0, "tensor", "NAME", "the table, where the file has several, or one under another name", CLI_TEXT,
     offsetof(extend_job, tensor)},
    {0},
};

static int read_arguments(extend_job *j, const cli_args *args)
{
    const char *grid = cli_value(args, "grid");
    if (args->count != 1)
        return cli_usage("extend: give one checkpoint, a .safetensors, not %d", args->count);
    if (cli_read(args, j))
        return CLI_USAGE;
    if (!j->output)
        return cli_usage("extend: the output is missing: -o F");
    if (!grid == !j->length)
        return cli_usage("extend: give %s: --length N for a line, --grid HxW for a grid of patches",
                         grid ? "one of the two" : "the new size");
    if (j->how < 0)
        return cli_usage("extend: the rule is missing: --how NAME, one of %s", KINDS);
    if (grid && cli_rows_read_grid(&j->grid, grid))
        return CLI_USAGE;
    if (grid && j->grid.axes != 2)
        return cli_usage("extend: --grid is \"%s\"; it must be two sizes, HxW", grid);
    return CLI_DONE;
}

/* Word number i of KINDS. */
static const char *kind_at(char text[40], int i)
{
    const char *at = KINDS;
    while (i--)
        at = strchr(at, '|') + 1;
    snprintf(text, 40, "%.*s", (int)strcspn(at, "|"), at);
    return text;
}

/* A configuration that is not this output's is not written over. */
static int warn_of_config(const extend_job *j)
{
    char *path = pe_extend_config(&j->plan, j->output);
    if (path && pe_text_ends_with(path, ".config.json"))
        cli_warn("%s: the config.json in its folder is not that of this table, and stays; the new one is %s",
                 j->output, path);
    free(path);
    return CLI_DONE;
}

static int write_output(extend_job *j)
{
    posenc_error        err;
    cli_progress        shown;
    const pe_progress   progress = {cli_progress_begin(&shown, "extend", j->plan.c.size), &shown};
    const posenc_status status   = pe_extend_run(&j->plan, j->output, progress, &err);
    cli_progress_end(&shown);
    if (status)
        return cli_error(&err);
    if (j->plan.note[0])
        cli_warn("%s", j->plan.note);
    return warn_of_config(j);
}

static int run(const cli_args *args)
{
    extend_job   j = {.how = -1, .grid = {.command = "extend"}};
    char         how[40];
    posenc_error err;
    int          status = read_arguments(&j, args);
    if (status)
        return status;
    const pe_extend_wish wish = {j.length, {j.grid.grid[0], j.grid.grid[1]}, kind_at(how, j.how), j.tensor};
    if (pe_extend_plan(&j.plan, cli_at(args, 0), &wish, &err))
        status = err.status == POSENC_ERROR_MEMORY ? cli_error(&err) : cli_usage("%s", err.message);
    else
        status = write_output(&j);
    pe_extend_free(&j.plan);
    return status;
}

static void lines(void (*line)(const char *text))
{
    line("A BERT of 512 positions for texts of 2048:");
    line("    posenc extend bert/model.safetensors -o long/model.safetensors \\");
    line("        --length 2048 --how linear");
    line("A ViT of 224x224 pixels in patches of 16 for images of 384x512, as timm does it:");
    line("    posenc extend vit/model.safetensors -o big/model.safetensors \\");
    line("        --grid 24x32 --how bicubic_antialias");
}

const cli_command cli_extend = {
    .name     = "extend",
    .summary  = "write a checkpoint with a longer or resized table of learned positions",
    .synopsis = "F -o F (--length N | --grid HxW) --how NAME [--tensor NAME]",
    .details =
        "The table is found by its name in the checkpoint (position_embeddings, wpe, embed_positions, "
        "pos_embed and others), or --tensor names it: [rows,dim], [1,rows,dim] or [1,h,w,dim]. Rows before "
        "the positions stay as they are: class tokens of a ViT, the rows that RoBERTa and OPT leave free; "
        "how many, the config.json beside the file says. Without one a line begins with row 0, and a grid is "
        "the "
        "square that remains after 0, 1 or 2 rows. Of a sharded checkpoint give the file that has the table; "
        "given the index, posenc says which.\n\n"
        "Interpolations read the old table at positions between its rows, by the rules of five programs "
        "(posenc list learned_resize); repeat begins again with the first position; hierarchical keeps the "
        "first rows and makes N positions from digits, up to the square of the old length (posenc list "
        "hierarchical). The new rows need training.\n\n"
        "max_position_embeddings (or n_positions, max_target_positions) follows in the config.json that is "
        "written beside the output (as NAME.config.json where a config.json is there that is not this "
        "output's, which stays), image_size for a grid, and stored position_ids become as long. Other "
        "tensors are copied, whatever their size; the file is written whole or not at all.",
    .lines   = lines,
    .options = options,
    .run     = run,
    .takes   = ".safetensors",
};
