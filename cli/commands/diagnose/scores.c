/* SPDX-License-Identifier: MIT */
/* posenc diagnose --scores-after: what is expected of scores, and what was done to them. */
#include "cli/commands/diagnose/diagnose.h"

#include <math.h>
#include <posenc/scores.h>
#include <string.h>

/* What --set says beside the encoding's own settings; NULL: nothing. */
static const char *said(const diagnose_job *j, const char *name)
{
    const size_t n = strlen(name);
    for (int i = cli_value_count(j->args, "set") - 1; i >= 0; i--) {
        const char *text = cli_value_at(j->args, "set", i);
        if (!strncmp(text, name, n) && text[n] == '=')
            return text + n + 1;
    }
    return NULL;
}

static double said_number(const diagnose_job *j, const char *name, double otherwise)
{
    const char *text = said(j, name);
    return text ? strtod(text, NULL) : otherwise;
}

/* [B,H,Lq,Lk] of the only array, or of one named so. */
static posenc_tensor read_scores(pe_calc *file, const char *path)
{
    static const char *const names[] = {"scores", "out_score", "S",     "bias",
                                        "logits", "before",    "after", NULL};
    pe_calc_read(file, path);
    const char *const only[] = {file->file.count == 1 ? file->file.items[0].name : "", NULL};
    posenc_tensor     t      = pe_calc_find(file, file->file.count == 1 ? only : names);
    if (!t.data)
        pe_calc_refuse(file, "it has no array scores, and not one array alone");
    else if (!pe_tensor_is_float(t.dtype) || t.ndim < 2 || t.ndim > 4 || pe_tensor_elements(&t) < 1)
        pe_calc_refuse(file, "%s must be real numbers [B,H,Lq,Lk], [H,Lq,Lk] or [Lq,Lk], not %s", "its array",
                       pe_calc_shape_text(file, t.ndim, t.shape));
    return pe_calc_failed(file) ? t : pe_calc_with_axes(t, 4);
}

/* Products of q and k, [B,H,Lq,Lk]. */
static posenc_tensor products(diagnose_job *j)
{
    static const char *const q_names[] = {"q", "in_q", NULL}, *const k_names[] = {"k", "in_k", NULL};
    pe_calc *p = &j->p;
    pe_calc_read(p, j->content);
    posenc_tensor q = pe_calc_with_axes(pe_calc_need(p, q_names), 4),
                  k = pe_calc_with_axes(pe_calc_need(p, k_names), 4);
    q               = pe_calc_convert(p, POSENC_DTYPE_F64, &q);
    k               = pe_calc_convert(p, POSENC_DTYPE_F64, &k);
    if (pe_calc_failed(p))
        return q;
    const int64_t *n = q.shape, *m = k.shape, B = n[0], H = n[1], Lq = n[2], D = n[3], Lk = m[2];
    if (m[0] != B || m[3] != D || m[1] < 1 || H % m[1])
        pe_calc_refuse(
            p,
            "its q has the shape %s and its k %s; batch and width must be equal and heads divide each other",
            pe_calc_shape_text(p, 4, n), pe_calc_shape_text(p, 4, m));
    posenc_tensor s = pe_calc_make(p, POSENC_DTYPE_F64, 4, (const int64_t[4]){B, H, Lq, Lk});
    for (int64_t r = 0; s.data && !pe_calc_failed(p) && r < B * H * Lq; r++) {
        const double *x = (const double *)q.data + r * D;
        const double *y = (const double *)k.data + (r / (H * Lq) * m[1] + r / Lq % H / (H / m[1])) * Lk * D;
        for (int64_t t = 0; t < Lk; t++)
            for (int64_t c = 0; c < D; c++)
                ((double *)s.data)[r * Lk + t] += x[c] * y[t * D + c];
    }
    j->p.dims.D = D;
    return s;
}

static int is_own(const char *name)
{
    return !strcmp(name, "scale") || !strcmp(name, "softcap") || !strcmp(name, "causal") ||
           !strcmp(name, "window") || !strcmp(name, "encoding");
}

/* The settings of the encoding that make its temperature: "temperature=llama4 temper_length=16 "; "" if it
 * has none. */
static const char *temper_settings(pe_calc *p, const char *spec)
{
    const char *text = "";
    for (const char *at = spec; (at = strstr(at, "temper")) != NULL; at++)
        if (at > spec && strchr("[:", at[-1]))
            text = pe_calc_text(p, "%s%.*s ", text, (int)strcspn(at, ":]"), at);
    return text;
}

/* Scores of ones, last queries at last keys: the factor of each row. One that hardly moves is no temperature,
   as in what is found; those of the first rows may be of another rule. */
static void expect_temperature(diagnose_job *j, pe_scores_reading *e, int64_t Lq, int64_t Lk)
{
    pe_calc          *p      = &j->p;
    const char       *temper = temper_settings(p, posenc_encoding_spec(p->e));
    posenc_encoding  *plain  = NULL;
    posenc_plan      *plan   = NULL;
    posenc_workspace  work   = {0};
    posenc_error      why;
    const posenc_dims dims = {
        .B = 1, .H = 1, .G = 1, .Lq = Lq, .Lk = Lk, .D = 1, .Dv = 1, .d_model = 1, .L = Lk};
    double *ones   = pe_calc_block(p, (size_t)Lk * sizeof *ones),
           *scores = *temper ? pe_calc_block(p, (size_t)(Lq * Lk) * sizeof *scores) : NULL;
    if (!ones || !scores)
        return;
    for (int64_t i = 0; i < Lk; i++)
        ones[i] = 1;
    const int64_t    rows[] = {1, 1, Lq, 1}, keys[] = {1, 1, Lk, 1}, all[] = {1, 1, Lq, Lk};
    posenc_attend_in in  = {.size  = sizeof in,
                            .q     = posenc_tensor_contiguous(ones, POSENC_DTYPE_F64, 4, rows),
                            .k     = posenc_tensor_contiguous(ones, POSENC_DTYPE_F64, 4, keys),
                            .q_pos = posenc_positions_range((double)(Lk - Lq), 1)};
    posenc_tensor    S   = posenc_tensor_contiguous(scores, POSENC_DTYPE_F64, 4, all);
    double           low = INFINITY, high = 0;
    if (!posenc_encoding_create(&plain, "nope", temper, &why) && posenc_param_count(plain) == 0 &&
        !posenc_plan_create(&plan, plain, &dims, NULL, &why) &&
        !posenc_workspace_create(&work, plan, POSENC_RUN_SCORES, NULL, &why) &&
        !posenc_scores(plan, &in, &S, &work, &why))
        for (int64_t i = Lq / 8; i < Lq; i++) {
            low  = fmin(low, scores[i * Lk]);
            high = fmax(high, scores[i * Lk]);
        }
    e->has_temperature = high / low - 1 > 1e-4;
    e->first           = e->scale * low;
    e->last            = e->scale * high;
    posenc_workspace_free(&work);
    posenc_plan_free(plan);
    posenc_encoding_free(plain);
}

/* What the encoding expects of scores. */
static void expect_scores(diagnose_job *j, pe_scores_reading *e, int64_t H, int64_t Lq, int64_t Lk)
{
    pe_calc    *p    = &j->p;
    const char *more = "", *spec = j->args->count ? cli_at(j->args, 0) : said(j, "encoding");
    cli_calc_said(p, cli_config_read(&j->config, j->args, CLI_CONFIG_ATTEND));
    const posenc_model_group *g = j->config.group;
    j->is_expected              = g || spec || cli_value_count(j->args, "set");
    for (int i = 0; i < cli_value_count(j->args, "set"); i++) {
        const char *text = cli_value_at(j->args, "set", i),
                   *name = pe_calc_text(p, "%.*s", (int)strcspn(text, "="), text);
        more             = is_own(name) ? more : pe_calc_text(p, "%s%s ", more, text);
    }
    pe_calc_encoding(p, g ? g->spec : spec ? spec : "nope", more);
    if (pe_calc_failed(p))
        return;
    const posenc_encoding_info *part = posenc_encoding_part(p->e, POSENC_PLACE_SCORE);
    const char                 *name = part ? part->name : "none", *all = posenc_encoding_spec(p->e);
    name = !strcmp(name, "nope") ? "none" : name;
    snprintf(e->encoding, sizeof e->encoding, "%s",
             !strcmp(name, "alibi") || !strcmp(name, "t5") || !strcmp(name, "none") ? name : "unknown");
    e->buckets          = (int64_t)strtod(cli_diagnose_setting(p, all, "num_buckets", "32"), NULL);
    e->max_distance     = (int64_t)strtod(cli_diagnose_setting(p, all, "max_distance", "128"), NULL);
    e->is_bidirectional = strcmp(cli_diagnose_setting(p, all, "bidirectional", "yes"), "no") != 0;
    e->heads            = H;
    e->slopes           = pe_calc_block(p, (size_t)H * sizeof(double));
    if (e->slopes)
        pe_scores_slopes(e->slopes, H);
    const double fact   = g ? cli_config_fact(g, "scale") : NAN;
    const double usual  = !j->content           ? 1
                          : !strcmp(name, "t5") ? 1
                          : isfinite(fact)      ? fact
                                                : 1 / sqrt((double)p->dims.D);
    const double cap    = g ? cli_config_fact(g, "softcap") : NAN;
    e->scale            = said_number(j, "scale", usual);
    e->softcap          = said_number(j, "softcap", isfinite(cap) ? cap : 0);
    const double window = said_number(j, "window", g ? cli_config_fact(g, "window") : NAN);
    const char  *causal = said(j, "causal");
    e->seen             = (pe_range){1, 0};
    if (causal || isfinite(window)) {
        const int64_t w = isfinite(window) && window >= 1 ? (int64_t)window - 1 : Lk;
        e->seen         = (pe_range){causal && strcmp(causal, "no") ? 0 : -w, w};
        if (!causal && g)
            e->seen.low = 0;
    }
    expect_temperature(j, e, Lq, Lk);
}

static json_t *scores_json(const pe_scores_reading *r)
{
    json_t *o = json_object(), *slopes = json_array();
    pe_json_set(&o, "encoding", json_string(r->encoding));
    pe_json_set(&o, "scale", r->has_temperature ? json_null() : cli_json_real(r->scale));
    pe_json_set(&o, "temperature", r->has_temperature ? json_pack("[f,f]", r->first, r->last) : json_null());
    pe_json_set(&o, "softcap", r->softcap > 0 ? cli_json_real(r->softcap) : json_null());
    pe_json_set(&o, "mask",
                r->is_irregular              ? json_string("irregular")
                : r->seen.low > r->seen.high ? json_null()
                                             : json_pack("{s:I,s:I}", "low", (json_int_t)r->seen.low, "high",
                                                         (json_int_t)r->seen.high));
    const int is_t5 = !strcmp(r->encoding, "t5");
    pe_json_set(&o, "num_buckets", is_t5 ? json_integer(r->buckets) : json_null());
    pe_json_set(&o, "max_distance", is_t5 ? json_integer(r->max_distance) : json_null());
    pe_json_set(&o, "bidirectional", is_t5 ? json_boolean(r->is_bidirectional) : json_null());
    for (int64_t h = 0; r->slopes && !strcmp(r->encoding, "alibi") && h < r->heads; h++)
        pe_json_add(&slopes, cli_json_real(r->slopes[h]));
    pe_json_set(&o, "slopes", slopes);
    return o;
}

static int print_scores_json(diagnose_job *j, const pe_scores_diagnosis *d, const pe_scores_reading *e)
{
    json_t *o = json_object(), *list = json_array();
    for (int i = 0; i < d->alternative_count; i++) {
        json_t *a = json_object();
        pe_json_set(&a, "departs", cli_diagnose_names(d->alternatives[i]));
        pe_json_set(&a, "words", json_string(d->alternative_words[i]));
        pe_json_add(&list, a);
    }
    pe_json_set(&o, "verdict", json_string(cli_diagnose_verdicts[d->verdict]));
    pe_json_set(&o, "departs", cli_diagnose_names(d->departs));
    pe_json_set(&o, "found", d->verdict == PE_UNEXPLAINED ? json_null() : scores_json(&d->found));
    pe_json_set(&o, "expected", j->is_expected ? scores_json(e) : json_null());
    pe_json_set(&o, "alternatives", list);
    pe_json_set(&o, "residual", cli_diagnose_six_digits(d->residual));
    pe_json_set(&o, "advice", cli_diagnose_fixes(&d->advice));
    return cli_print_json(o, 0);
}

static void print_reading(diagnose_job *j, const char *title, const pe_scores_reading *r)
{
    char range[PE_RANGE_TEXT];
    printf("%-10s bias %s; scale ", title, r->encoding);
    if (r->has_temperature)
        printf("%.6g to %.6g by row", r->first, r->last);
    else
        printf("%.6g", r->scale);
    if (r->softcap > 0)
        printf("; softcap %.6g%s", r->softcap, r->caps == 2 ? " twice" : "");
    if (r->is_irregular)
        printf("; which keys a query sees is not told by their distance");
    else if (r->seen.low <= r->seen.high)
        printf("; queries see %s", pe_scores_range_text(range, &r->seen, j->p.dims.Lk));
    printf("\n");
    if (!strcmp(r->encoding, "t5"))
        printf("           num_buckets %lld, max_distance %lld, %s\n", (long long)r->buckets,
               (long long)r->max_distance, r->is_bidirectional ? "two-sided" : "one-sided");
    if (!strcmp(r->encoding, "alibi"))
        printf("           slopes %.6g to %.6g\n", r->slopes[0], r->slopes[r->heads - 1]);
}

static int print_scores_words(diagnose_job *j, const pe_scores_diagnosis *d, const pe_scores_reading *e)
{
    cli_diagnose_print_verdict(d->verdict, d->departs);
    if (d->verdict != PE_UNEXPLAINED)
        print_reading(j, "found", &d->found);
    if (j->is_expected)
        print_reading(j, "expected", e);
    for (int i = 0; i < d->alternative_count; i++)
        printf("%-10s %s\n", i ? "" : "or", d->alternative_words[i]);
    cli_diagnose_print_fixes(&d->advice);
    return CLI_DONE;
}

void cli_diagnose_scores(diagnose_job *j)
{
    pe_scores           in = {0};
    pe_scores_reading   e  = {0};
    pe_scores_diagnosis d;
    pe_calc            *p = &j->p;
    if (j->content)
        in.before = products(j);
    else
        in.before = read_scores(p, j->scores_before);
    if (pe_calc_failed(p))
        return;
    in.after = read_scores(&j->after, j->scores_after);
    if (pe_calc_failed(&j->after))
        return;
    if (memcmp(in.before.shape, in.after.shape, sizeof(int64_t[4])))
        pe_calc_refuse(p, "the scores before have the shape %s, those after %s; they must be equal",
                       pe_calc_shape_text(p, 4, in.before.shape), pe_calc_shape_text(p, 4, in.after.shape));
    else if (in.after.shape[2] > in.after.shape[3])
        pe_calc_refuse(
            p, "there are %lld queries and %lld keys; queries stand at the last keys, so at most as many",
            (long long)in.after.shape[2], (long long)in.after.shape[3]);
    j->p.dims.Lk = in.after.shape[3];
    if (!pe_calc_failed(p))
        expect_scores(j, &e, in.after.shape[1], in.after.shape[2], in.after.shape[3]);
    in.expected = j->is_expected ? &e : NULL;
    if (pe_calc_failed(p) || pe_scores_judge(&d, &in, &p->err))
        return;
    j->status         = cli_diagnose_status(d.verdict);
    const int printed = (j->is_json ? print_scores_json : print_scores_words)(j, &d, &e);
    j->status         = printed ? printed : j->status;
    pe_scores_diagnosis_free(&d);
    cli_config_warn(&j->config);
}
