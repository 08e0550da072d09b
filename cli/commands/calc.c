/* SPDX-License-Identifier: MIT */
/* How a command sets up a calculation and reports on it: contract in calc.h. */
#include "cli/commands/calc.h"
#include "files/arrays/text.h"

#include <string.h>

const char *cli_calc_settings(pe_calc *p, const cli_args *args)
{
    const char *all = "";
    for (int i = 0; i < cli_value_count(args, "set"); i++)
        all = pe_calc_text(p, "%s%s%s", all, i ? " " : "", cli_value_at(args, "set", i));
    return all;
}

void cli_calc_output(pe_calc *p, const cli_args *args, const char *endings)
{
    const char *output = cli_value(args, "output"), *dot = output ? strrchr(output, '.') : NULL;
    if (output && strcmp(output, "-") && !(dot && pe_text_is_among(endings, dot)))
        pe_calc_refuse(p, "the output %s must end in one of %s, or be -", output, endings);
}

posenc_status cli_calc_write(pe_calc *p, const char *output)
{
    if (pe_calc_failed(p))
        return p->err.status;
    return output ? posenc_arrays_write(&p->results, output, &p->err)
                  : posenc_arrays_print(&p->results, stdout, &p->err);
}

void cli_calc_said(pe_calc *p, int status)
{
    if (!pe_calc_failed(p) && status)
        p->err = (posenc_error){.status = status == CLI_USAGE ? POSENC_ERROR_ARGUMENT : POSENC_ERROR_FILE};
}

int cli_calc_status(pe_calc *p)
{
    const int is_system = p->err.status == POSENC_ERROR_FILE || p->err.status == POSENC_ERROR_MEMORY;
    if (!pe_calc_failed(p))
        return CLI_DONE;
    if (p->sentence[0])
        cli_say(is_system ? CLI_FAILED : CLI_USAGE, "%s: %s", p->path, p->sentence);
    else if (p->err.message[0])
        cli_error(&p->err);
    p->sentence[0] = p->err.message[0] = '\0';
    return is_system ? CLI_FAILED : CLI_USAGE;
}

int cli_calc_end(pe_calc *p)
{
    const int status = cli_calc_status(p);
    pe_calc_free(p);
    return status;
}

void cli_calc_need_rotary(pe_calc *p)
{
    const posenc_encoding_info *part = p->count ? posenc_encoding_part(p->e, POSENC_PLACE_ROTARY) : NULL;
    for (int i = 0; part && i < p->count && !pe_calc_failed(p); i++) {
        const posenc_param_info *info = posenc_param_describe(p->e, i);
        if (p->is_initial[i] && info >= part->params && info < part->params + part->param_count)
            pe_calc_refuse(p, "it has no array %s (or par_%s), which %s needs", posenc_param_name(p->e, i),
                           posenc_param_name(p->e, i), posenc_encoding_spec(p->e));
    }
}

void cli_calc_warn_unused(const pe_calc *p, const char *passed_over)
{
    enum { MOST_NAMED = 5 };
    char   list[240] = "";
    size_t used      = 0;
    int    count     = 0;
    for (int i = 0; i < p->file.count; i++) {
        const char *name = p->file.items[i].name;
        if (p->used[i] || !strncmp(name, "out_", 4) || !strncmp(name, "g_", 2) ||
            (*passed_over && !strncmp(name, passed_over, strlen(passed_over))))
            continue;
        if (count++ < MOST_NAMED)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%.40s", used ? ", " : "", name);
    }
    if (count > MOST_NAMED)
        cli_warn("%s: %d arrays are not used: %s, ...", p->path, count, list);
    else if (count)
        cli_warn("%s: not used: %s", p->path, list);
}

void cli_calc_warn_initial(const pe_calc *p)
{
    for (int i = 0; i < p->count; i++)
        if (p->is_initial[i] && posenc_param_trainable(p->e, i))
            cli_warn("%s: it has no array %s; initialised with seed %lld", p->path,
                     posenc_param_name(p->e, i), (long long)p->seed);
}

void cli_calc_check_heads(pe_calc *p, const char *name, const posenc_tensor *t, int32_t axes, int is_text,
                          int is_blhd)
{
    const char *shape = pe_calc_shape_text(p, axes, t->shape);
    if (axes < (is_text ? 1 : 2) || axes > 4) /* a flat dump is no token */
        pe_calc_refuse(p, "%s has the shape %s; it must be %s", name, shape,
                       is_blhd ? "[L,D], [L,H,D] or [B,L,H,D]"
                               : "[L,D], [H,L,D] or [B,H,L,D] (--heads-layout blhd: L before H)");
    else if (pe_tensor_elements(t) < 1)
        pe_calc_refuse(p, "%s has the shape %s; every size must be at least 1", name, shape);
}

posenc_tensor cli_calc_heads(const posenc_array *array, int is_blhd, void *data, posenc_dtype dtype)
{
    const int32_t  n       = array->tensor.ndim - array->is_complex;
    const int64_t *size    = array->tensor.shape;
    const int      swapped = is_blhd && n > 2;
    const int64_t  B = n > 3 ? size[0] : 1, H = n > 2 ? size[swapped ? n - 2 : n - 3] : 1,
                  L = n > 1 ? size[swapped ? n - 3 : n - 2] : 1,
                  D = size[n - 1] * (array->is_complex ? 2 : 1);
    return is_blhd ? posenc_tensor_from_blhd(data, dtype, B, L, H, D)
                   : posenc_tensor_contiguous(data, dtype, 4, (const int64_t[4]){B, H, L, D});
}
