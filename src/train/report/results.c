/* SPDX-License-Identifier: MIT */
/*
 * results.c: the directory of a comparison: numbers as JSON and CSV, pictures, the report
 *
 * results.json holds everything that was measured, with the settings that reproduce it; what was not measured
 * is null. Times, machine and the words of the call are kept apart under "time", because they are all that
 * two runs may differ in that ask for the same, whatever their threads, interruptions and directories.
 * results.csv has one row per encoding, seed and bucket; curves.csv the loss at every position; tasks.csv one
 * row per task, encoding, seed and length. The report comes last, and the directory is renamed into place
 * when all is there.
 */
#include "files/arrays/json.h"
#include "train/jobs/directory.h"
#include "base/status.h"
#include "files/arrays/text.h"
#include "train/jobs/job.h"
#include "train/report/report.h"
#include "train/report/settled.h"
#include "train/jobs/store.h"

#include <math.h>
#include <posenc/files.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 9, FIXED_FILES = 6 };

static json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *interval_json(pe_interval d)
{
    return json_pack("{s:o, s:o, s:o}", "value", number_json(d.value), "low", number_json(d.low), "high",
                     number_json(d.high));
}

static json_t *numbers(const double *x, int64_t n)
{
    json_t *array = json_array();
    for (int64_t i = 0; x && i < n; i++)
        pe_json_add(&array, number_json(x[i]));
    return array;
}

static json_t *settings_json(const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    json_t          *json =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f}", "preset", p->name,
                  "objective", pe_outcome_objective(c->config.bidirectional), "steps", (json_int_t)p->steps,
                  "seeds", (json_int_t)p->seeds, "L", (json_int_t)p->L, "reach", (json_int_t)p->reach,
                  "d_model", (json_int_t)p->d_model, "layers", (json_int_t)p->layers, "heads",
                  (json_int_t)p->heads, "batch", (json_int_t)p->batch, "warmup", (json_int_t)p->warmup,
                  "learning_rate", p->learning_rate, "weight_decay", p->weight_decay, "clip", p->clip);
    if (p->positions)
        pe_json_set(&json, "positions", json_string(p->positions));
    return json;
}

/* How much one run's loss varies between seeds: as estimated from all encodings, and as its own runs show. */
static json_t *spread_json(const pe_outcome *o, int b)
{
    const pe_spread s = o->spread[b], own = o->own_spread[b];
    return json_pack("{s:o, s:o, s:o, s:b}", "deviation", number_json(sqrt(s.variance)), "freedom",
                     number_json(s.freedom), "own_deviation",
                     number_json(own.freedom > 0 ? sqrt(own.variance) : NAN), "is_odd", s.is_odd);
}

/* What can be told apart in each bucket. */
static json_t *resolution_json(const pe_compare *c)
{
    json_t *array = json_array();
    for (int b = 0; b < pe_stats_buckets(c->config.preset.reach); b++)
        pe_json_add(&array,
                    json_pack("{s:s, s:o, s:i}", "name",
                              c->config.bidirectional ? pe_stats_length_name(b) : pe_stats_bucket_name(b),
                              "smallest_difference", number_json(c->resolution[b]), "seeds_to_tell_the_first",
                              c->seeds_to_settle[b]));
    return array;
}

static json_t *buckets_json(const pe_compare *c, const pe_outcome *o)
{
    json_t       *array = json_array();
    const int64_t L     = c->config.preset.L;
    for (int b = 0; b < pe_stats_buckets(o->config.reach); b++) {
        int64_t     first;
        const char *name = pe_outcome_bucket(o, b, &first);
        pe_json_add(&array,
                    json_pack("{s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:i, s:o, s:b}", "name", name, "first",
                              (json_int_t)first, "end", (json_int_t)pe_stats_bucket_edge(L, b + 1), "loss",
                              number_json(o->loss[b]), "loss_per_byte",
                              number_json(c->text.vocabulary ? o->loss[b] / c->token_bytes[b] : o->loss[b]),
                              "ratio", number_json(o->ratio[b]), "to_reference",
                              interval_json(o->difference[b]), "rank", o->rank[b], "spread",
                              spread_json(o, b), "untrained_rows", o->untrained_beyond && b > PE_AT_L));
    }
    return array;
}

static json_t *runs_json(const pe_compare *c, const pe_outcome *o)
{
    json_t       *array   = json_array();
    const int64_t windows = o->config.windows;
    for (int64_t s = 0; s < c->config.preset.seeds; s++) {
        json_t *loss = json_array();
        for (int b = 0; b < pe_stats_buckets(o->config.reach); b++)
            pe_json_add(&loss, number_json(pe_stats_mean(o->window_means[b] + s * windows, windows)));
        pe_json_add(&array,
                    json_pack("{s:I, s:b, s:o, s:{s:f, s:f, s:f}}", "seed", (json_int_t)(s + 1), "diverged",
                              o->runs[s].result.diverged, "loss", loss, "time", "train_seconds",
                              o->runs[s].result.train_seconds, "eval_seconds", o->runs[s].result.eval_seconds,
                              c->text.vocabulary ? "tokens_per_second" : "bytes_per_second",
                              o->runs[s].result.tokens_per_second));
    }
    return array;
}

/* How rows enter, and the angle of the vectors that are combined; null where no rows are combined with them.
 */
static json_t *entry_json(const pe_outcome *o)
{
    if (!pe_outcome_adds_rows(o->e))
        return json_null();
    return json_pack("{s:s, s:s, s:{s:o, s:o, s:o}}", "combine",
                     pe_spec_combine_name(o->config.entry.combine), "inject",
                     pe_spec_inject_name(o->config.entry.inject), "token_position_cosine", "random",
                     number_json(pe_stats_random_cosine(o->config.d_model)), "before",
                     number_json(o->cosine_before), "after", number_json(o->cosine_after));
}

/* Concatenated against added, in each bucket; null where the sum was not trained too. */
static json_t *to_sum_json(const pe_compare *c, const pe_outcome *o)
{
    const int i = (int)(o - c->outcomes), sum = pe_outcome_added(c, i);
    if (sum < 0 || o->diverged || c->outcomes[sum].diverged)
        return json_null();
    json_t *array = json_array();
    for (int b = 0; b < pe_stats_buckets(o->config.reach); b++)
        pe_json_add(&array, interval_json(pe_losses_difference(c, i, sum, b)));
    return array;
}

static json_t *distance_json(int64_t distance)
{
    return distance < 0 ? json_null() : json_integer(distance);
}

static json_t *trained_json(const pe_outcome *o)
{
    const int64_t L = o->config.L, reach = o->config.reach;
    char          held[48], weight[48], sunk[48]; /* what the members about R L are called */
    json_t       *shifts = json_array();
    snprintf(held, sizeof held, "holds_90_percent_at_%lldL", (long long)reach);
    snprintf(weight, sizeof weight, "weight_by_distance_at_%lldL", (long long)reach);
    snprintf(sunk, sizeof sunk, "taken_by_sinks_at_%lldL", (long long)reach);
    for (int i = 0; i < PE_SHIFTS; i++)
        pe_json_add(&shifts,
                    json_pack("{s:I, s:o}", "first_position", (json_int_t)pe_trained_shift_at(&o->config, i),
                              "loss_change", number_json(o->shift[i])));
    return json_pack("{s:o, s:o, s:{s:o, s:o, s:o, s:o, s:o, s:o}}", "shift", shifts,
                     "gain_over_truncated_context", interval_json(o->gain), "attention_weight",
                     "holds_90_percent_at_L", distance_json(o->near_90), held, distance_json(o->far_90),
                     "taken_by_sinks_at_L", number_json(pe_trained_sunk(o->near, L)), sunk,
                     number_json(pe_trained_sunk(o->far, reach * L)), "weight_by_distance_at_L",
                     numbers(o->near, L), weight, numbers(o->far, reach * L));
}

static json_t *outcome_json(const pe_compare *c, const pe_outcome *o)
{
    json_t *json =
        json_pack("{s:s, s:s, s:I, s:I, s:s, s:b, s:I}", "encoding", o->label, "spec", o->config.spec,
                  "parameters", (json_int_t)o->runs[0].result.parameters, "encoding_parameters",
                  (json_int_t)o->runs[0].result.encoding_parameters, "loss_beyond_L", o->verdict, "diverged",
                  o->diverged, "breaks_at", (json_int_t)(o->break_position + 1));
    pe_json_set(&json, "learning_rate", json_real(o->config.learning_rate));
    pe_json_set(&json, "entry", entry_json(o));
    pe_json_set(&json, "to_sum", to_sum_json(c, o));
    pe_json_set(&json, "buckets", buckets_json(c, o));
    pe_json_set(&json, "runs", runs_json(c, o));
    pe_json_set(&json, "trained", c->config.bidirectional ? json_null() : trained_json(o));
    pe_json_set(&json, "curve", numbers(o->curve, o->config.reach * o->config.L));
    pe_json_set(&json, "training", numbers(o->training, o->config.steps));
    return json;
}

/* ---------------------------------------------------------------- tasks --------------------- */

/* A task says what was asked and at which sizes; below it stands every encoding, with rates, their intervals
   and the loss at each length, or with the reason why it does not take part. Seeds are listed one by one, so
   that their spread is seen. */
static json_t *length_json(const pe_cell *cell, int length)
{
    json_t *seeds = json_array();
    for (int64_t s = 0; s < cell->seeds; s++)
        pe_json_add(&seeds, number_json(pe_rates_accuracy(cell, s, length)));
    return json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "length", pe_task_length_name(length), "n",
                     (json_int_t)pe_task_size(cell->task, length), "accuracy",
                     interval_json(cell->accuracy[length]), "exact_match", interval_json(cell->exact[length]),
                     "loss", number_json(cell->loss[length]), "accuracy_by_seed", seeds);
}

/* Why it does not take part; or what came out; or nothing, where it did not finish. */
static json_t *cell_json(const pe_cell *cell)
{
    if (cell->reason[0])
        return json_pack("{s:s, s:s}", "encoding", cell->label, "does_not_apply", cell->reason);
    if (!cell->is_complete)
        return NULL;
    json_t *lengths = json_array();
    for (int i = 0; i <= cell->config.longest; i++)
        if (pe_task_size(cell->task, i))
            pe_json_add(&lengths, length_json(cell, i));
    return json_pack("{s:s, s:s, s:b, s:I, s:I, s:o, s:o, s:i, s:o, s:{s:f}}", "encoding", cell->label,
                     "spec", cell->spec, "diverged", cell->diverged, "parameters",
                     (json_int_t)cell->runs[0].result.parameters, "encoding_parameters",
                     (json_int_t)cell->runs[0].result.encoding_parameters, "lowest_training_loss",
                     number_json(cell->lowest_loss), "beyond_L", number_json(cell->beyond), "rank",
                     cell->rank, "lengths", lengths, "time", "seconds", cell->seconds);
}

static json_t *task_json(const pe_suite *suite, int index)
{
    const pe_task       *task  = suite->tasks[index];
    const pe_run_config *c     = &pe_suite_cell(suite, index, 0)->config;
    json_t              *cells = json_array();
    for (int l = 0; l < suite->label_count; l++) {
        json_t *cell = cell_json(pe_suite_cell(suite, index, suite->order[l]));
        if (cell)
            pe_json_add(&cells, cell);
    }
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:o}", "task", task->name,
                     "title", task->title, "attention", task->full ? "full" : "causal", "L",
                     (json_int_t)task->L, "least_n", (json_int_t)task->least, "tokens_at_L",
                     (json_int_t)pe_task_tokens(task, task->L), "steps", (json_int_t)c->steps, "batch",
                     (json_int_t)c->batch, "layers", (json_int_t)c->layers, "sequences",
                     (json_int_t)c->sequences, "chance", task->chance, "encodings", cells);
}

/* ---------------------------------------------------------------- extension, claims --------- */

/* null where it was not read, as what was not tuned. */
static json_t *extended_json(const pe_extension *x, pe_losses_reading s)
{
    if (!pe_losses_has_extended(x, s))
        return json_null();
    const pe_losses_reading nothing = pe_losses_nothing_done(s.way);
    json_t                 *array   = json_array();
    for (int b = 0; b < PE_FAR_BUCKETS; b++)
        pe_json_add(&array, json_pack("{s:s, s:I, s:I, s:o, s:o}", "name", pe_way_bucket_name(b), "first",
                                      (json_int_t)pe_stats_bucket_edge(x->L, b), "end",
                                      (json_int_t)pe_stats_bucket_edge(x->L, b + 1), "loss",
                                      number_json(pe_losses_extended(x, s, b)), "to_nothing_done",
                                      interval_json(pe_losses_extended_difference(x, s, nothing, b))));
    return array;
}

static json_t *factors_json(const pe_extension *x, int way)
{
    json_t *array = json_array();
    for (int f = 0; f < PE_FACTORS; f++)
        pe_json_add(&array, json_pack("{s:I, s:o, s:o}", "factor", (json_int_t)pe_way_factor(f), "untuned",
                                      extended_json(x, (pe_losses_reading){way, f, PE_UNTUNED}), "tuned",
                                      extended_json(x, (pe_losses_reading){way, f, PE_TUNED})));
    return array;
}

static json_t *extension_json(const pe_extension *x)
{
    json_t *ways = json_array();
    if (!x || !x->count)
        return json_pack("{s:s, s:o}", "reason", x && x->reason[0] ? x->reason : "not asked for", "schedules",
                         ways);
    for (int i = 0; i < PE_WAYS; i++) {
        const pe_way *w = &pe_ways[i];
        pe_json_add(&ways, json_pack("{s:s, s:s, s:s, s:o}", "family", w->family, "schedule", w->name, "what",
                                     w->what, "factors", factors_json(x, i)));
    }
    const pe_extension_plan *p = &x->plans[0];
    return json_pack("{s:s, s:I, s:{s:I, s:I, s:f}, s:o}", "extent", pe_preset_extent_name(p->extend),
                     "windows", (json_int_t)x->windows, "tuning", "steps", (json_int_t)p->steps, "warmup",
                     (json_int_t)p->warmup, "learning_rate", p->learning_rate, "schedules", ways);
}

static json_t *claims_json(const pe_compare *c)
{
    json_t *array = json_array();
    for (int k = 0; c->properties && k < pe_claims_count(); k++) {
        const char *tutorials, *said;
        char        where[1024];
        int         count;
        json_t     *list = json_array();
        said             = pe_claims_said(k, &tutorials, &count);
        pe_report_sources(where, sizeof where, tutorials);
        for (int i = 0; i < count; i++) {
            const pe_evidence e = pe_claims_evidence(c, k, i);
            pe_json_add(&list,
                        json_pack("{s:s, s:s, s:o, s:o, s:o, s:s, s:f, s:s}", "what", e.words, "of", e.of,
                                  "value", number_json(e.value), "low", number_json(e.low), "high",
                                  number_json(e.high), "must_be", e.at_least ? "at least" : "at most",
                                  "limit", e.limit, "verdict", pe_claims_holds_name(e.holds)));
        }
        pe_json_add(&array, json_pack("{s:s, s:s, s:s, s:o}", "sources", where, "said", said, "verdict",
                                      pe_claims_holds_name(pe_claims_judge(c, k)), "evidence", list));
    }
    return array;
}

/* "a, b" as a list; "-" as none. */
static json_t *names_json(const char *names)
{
    json_t *array = json_array();
    while (strcmp(names, "-") != 0 && *names) {
        const size_t n = strcspn(names, ",");
        pe_json_add(&array, json_stringn(names, n));
        names += n + strspn(names + n, ", ");
    }
    return array;
}

static json_t *recommendations_json(const pe_compare *c)
{
    pe_table t;
    json_t  *array = json_array();
    if (pe_answer_table(c, &t, NULL))
        return array;
    for (int row = 0; row < t.row_count; row++)
        pe_json_add(&array, json_pack("{s:s, s:o, s:s, s:s}", "for", pe_table_cell(&t, row, 0), "choose",
                                      names_json(pe_table_cell(&t, row, 1)), "confidence",
                                      pe_table_cell(&t, row, 2), "because", pe_table_cell(&t, row, 3)));
    pe_table_free(&t);
    return array;
}

/* ---------------------------------------------------------------- the file ------------------ */

static json_t *checks_json(const pe_compare *c)
{
    pe_check_result all[PE_MOST_CHECKS];
    json_t         *array = json_array();
    const int       count = pe_claims_check(all, c);
    for (const pe_check_result *r = all; r < all + count; r++)
        pe_json_add(&array, json_pack("{s:i, s:s, s:b, s:b, s:s, s:s, s:o, s:f}", "id", r->number, "verdict",
                                      pe_claims_verdict_name(r->verdict), "applicable",
                                      r->verdict != PE_NOT_APPLICABLE, "passed", r->verdict == PE_PASSED,
                                      "expected", r->claim, "found", r->found, "measured",
                                      interval_json(r->measured), "limit", r->limit));
    return array;
}

/* The files of the directory: what a later call may replace. */
static json_t *files_json(const pe_gallery *g)
{
    static const char *const fixed[FIXED_FILES] = {PE_RESULTS_NAME, "results.csv", "curves.csv",
                                                   "tasks.csv",     PE_RUNS_NAME,  "report.html"};
    json_t                  *files              = json_array();
    for (int i = 0; i < FIXED_FILES; i++)
        pe_json_add(&files, json_string(fixed[i]));
    for (int i = 0; g && i < g->count; i++) {
        pe_json_add(&files, json_sprintf("%s.svg", g->items[i].name));
        pe_json_add(&files, json_sprintf("%s.png", g->items[i].name));
    }
    return files;
}

static json_t *text_json(const pe_compare *c)
{
    const int tokens = c->text.vocabulary > 0;
    json_t *json = json_pack("{s:s, s:I, s:I, s:I}", "name", c->config.text_name, tokens ? "tokens" : "bytes",
                             (json_int_t)c->text.size, tokens ? "train_tokens" : "train_bytes",
                             (json_int_t)c->text.train_size, "windows", (json_int_t)c->windows);
    if (tokens)
        pe_json_set(&json, "vocabulary", json_integer(c->text.vocabulary));
    return json;
}

static json_t *absent_json(const pe_compare *c)
{
    json_t *absent = json_array();
    for (int i = 0; i < c->absent_count; i++)
        pe_json_add(&absent,
                    json_pack("{s:s, s:s}", "encoding", c->absent[i].label, "reason", c->absent[i].reason));
    return absent;
}

static json_t *results_json(const pe_compare *c, const pe_gallery *g)
{
    json_t *encodings = json_array(), *tasks = json_array();
    for (int i = 0; i < c->order_count; i++)
        pe_json_add(&encodings, outcome_json(c, &c->outcomes[c->order[PE_AT_L][i]]));
    for (int t = 0; c->suite->label_count && t < c->suite->task_count; t++)
        pe_json_add(&tasks, task_json(c->suite, t));
    json_t *json = json_pack("{s:s, s:s}", "format", PE_RESULTS_FORMAT, "version", posenc_version());
    pe_json_set(&json, "recommendations", recommendations_json(c));
    pe_json_set(&json, "text", text_json(c));
    pe_json_set(&json, "settings", settings_json(c));
    pe_json_set(&json, "missing_runs", json_integer(c->missing));
    pe_json_set(&json, "reference",
                c->reference >= 0 ? json_string(c->outcomes[c->reference].label) : json_null());
    pe_json_set(&json, "byte_entropy", number_json(c->entropy));
    pe_json_set(&json, "resolution", resolution_json(c));
    pe_json_set(&json, "rates", pe_settled_rates_json(c));
    pe_json_set(&json, "stability", pe_settled_orders_json(c));
    pe_json_set(&json, "encodings", encodings);
    pe_json_set(&json, "does_not_apply", absent_json(c));
    pe_json_set(&json, "tasks", tasks);
    pe_json_set(&json, "extension", extension_json(c->extension));
    pe_json_set(&json, "claims", claims_json(c));
    pe_json_set(&json, "checks", checks_json(c));
    pe_json_set(&json, "time",
                json_pack("{s:s, s:s, s:s, s:I, s:f}", "call", c->config.call ? c->config.call : "",
                          "processor", c->machine, "instructions", posenc_isa(), "threads",
                          (json_int_t)c->workers, "seconds", c->wall_seconds));
    pe_json_set(&json, "files", files_json(g));
    return json;
}

/* As text; the JSON is freed. */
static posenc_status dump(json_t *json, char **text, posenc_error *err)
{
    *text = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(DIGITS)) : NULL;
    json_decref(json);
    return *text ? POSENC_OK
                 : pe_fail(err, POSENC_ERROR_MEMORY,
                           "compare: the results cannot be written as JSON; is a name not UTF-8?");
}

static posenc_status results_text(const pe_compare *c, const pe_gallery *g, char **text, posenc_error *err)
{
    return dump(results_json(c, g), text, err);
}

posenc_status pe_results_json(const pe_compare *compare, char **json, posenc_error *err)
{
    return results_text(compare, NULL, json, err);
}

static json_t *plan_json(const pe_compare *c)
{
    json_t         *encodings = json_array(), *tasks = json_array();
    const pe_suite *suite = c->suite;
    for (int i = 0; i < c->count; i++)
        pe_json_add(&encodings, json_pack("{s:s, s:s}", "encoding", c->outcomes[i].label, "spec",
                                          c->outcomes[i].config.spec));
    for (int t = 0; suite->label_count && t < suite->task_count; t++) {
        int64_t        runs = 0;
        const pe_cell *row  = pe_suite_cell(suite, t, 0);
        for (int l = 0; l < suite->label_count; l++)
            runs += row[l].runs ? row[l].seeds : 0;
        pe_json_add(&tasks, json_pack("{s:s, s:I, s:I}", "task", suite->tasks[t]->name, "steps",
                                      (json_int_t)row->config.steps, "runs", (json_int_t)runs));
    }
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "format", "posenc-plan", "version",
                     posenc_version(), "text", text_json(c), "settings", settings_json(c), "encodings",
                     encodings, "does_not_apply", absent_json(c), "tasks", tasks);
}

posenc_status pe_results_plan_json(const pe_compare *c, const pe_compare_cost *cost, char **json,
                                   posenc_error *err)
{
    json_t *plan = plan_json(c);
    pe_json_set(&plan, "time",
                json_pack("{s:f, s:f, s:I, s:I}", "seconds", cost->seconds, "processor_seconds",
                          cost->processor_seconds, "workers", (json_int_t)cost->workers, "runs",
                          (json_int_t)cost->runs));
    return dump(plan, json, err);
}

/* ---------------------------------------------------------------- tables -------------------- */

/* After a comma; nothing for what is no number. */
static void csv_value(FILE *to, double x)
{
    if (isfinite(x))
        fprintf(to, ",%.9g", x);
    else
        fputc(',', to);
}

static void write_buckets(FILE *to, const pe_outcome *o, int64_t s)
{
    for (int b = 0; b < pe_stats_buckets(o->config.reach); b++) {
        int64_t     first;
        const char *name = pe_outcome_bucket(o, b, &first);
        pe_text_write_csv(to, o->label);
        fprintf(to, ",%lld,%s,%lld,%lld", (long long)s + 1, name, (long long)first,
                (long long)pe_stats_bucket_edge(o->config.L, b + 1));
        csv_value(to, pe_stats_mean(o->window_means[b] + s * o->config.windows, o->config.windows));
        fprintf(to, ",%d\n", o->untrained_beyond && b > PE_AT_L);
    }
}

static void write_curve(FILE *to, const pe_outcome *o, int64_t s)
{
    const int64_t length = o->config.reach * o->config.L;
    for (int64_t p = 0; p < length; p++) {
        double sum = 0;
        for (int64_t w = 0; w < o->config.windows; w++)
            sum += (double)o->runs[s].result.window_loss[w * length + p];
        pe_text_write_csv(to, o->label);
        fprintf(to, ",%lld,%lld", (long long)s + 1, (long long)p);
        csv_value(to, sum / (double)o->config.windows);
        fputc('\n', to);
    }
}

static void write_task_run(FILE *to, const pe_cell *cell, int64_t s)
{
    for (int i = 0; i <= cell->config.longest; i++) {
        if (!pe_task_size(cell->task, i))
            continue;
        pe_text_write_csv(to, cell->task->name);
        fputc(',', to);
        pe_text_write_csv(to, cell->label);
        fprintf(to, ",%lld,%s,%lld", (long long)s + 1, pe_task_length_name(i),
                (long long)pe_task_size(cell->task, i));
        csv_value(to, pe_rates_accuracy(cell, s, i));
        csv_value(to, pe_rates_exact(cell, s, i));
        csv_value(to, cell->runs[s].result.loss[i]);
        fputc('\n', to);
    }
}

static void write_bucket_table(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    fputs("encoding,seed,bucket,first,end,loss,untrained_rows\n", to);
    for (int i = 0; i < c->count; i++)
        for (int64_t s = 0; c->outcomes[i].is_complete && s < c->config.preset.seeds; s++)
            write_buckets(to, &c->outcomes[i], s);
}

static void write_curve_table(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    fputs("encoding,seed,position,loss\n", to);
    for (int i = 0; i < c->count; i++)
        for (int64_t s = 0; c->outcomes[i].is_complete && s < c->config.preset.seeds; s++)
            write_curve(to, &c->outcomes[i], s);
}

static void write_task_table(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    const pe_suite *suite = c->suite;
    fputs("task,encoding,seed,length,n,accuracy,exact_match,loss\n", to);
    for (int i = 0; i < suite->task_count * suite->label_count; i++)
        for (int64_t s = 0; suite->cells[i].is_complete && s < suite->cells[i].seeds; s++)
            write_task_run(to, &suite->cells[i], s);
}

/* ---------------------------------------------------------------- the directory ------------- */

/* Files that are written into a directory until one fails. */
typedef struct output {
    const pe_directory *d;
    const pe_compare   *c;
    const pe_gallery   *g;
    posenc_status       status;
    posenc_error       *err;
} output;

/* DIR/NAMEENDING, malloc'd; NULL where something has failed. */
static char *path_in(output *o, const char *name, const char *ending)
{
    char whole[PE_GALLERY_NAME + 8];
    snprintf(whole, sizeof whole, "%s%s", name, ending);
    char *path = o->status ? NULL : pe_directory_join(o->d->temporary, "/", whole);
    if (!path && !o->status)
        o->status =
            pe_fail(o->err, POSENC_ERROR_MEMORY, "compare: not enough memory to write %s%s", name, ending);
    return path;
}

/* A text, or what `write` writes where there is none. */
static void put_file(output *o, const char *name, const char *ending, const char *text,
                     void (*write)(FILE *to, const pe_compare *c, const pe_gallery *g))
{
    posenc_whole_file file;
    char             *path = path_in(o, name, ending);
    if (path)
        o->status = posenc_whole_file_open(&file, path, o->err);
    free(path);
    if (o->status)
        return;
    if (text)
        fputs(text, file.stream);
    else
        write(file.stream, o->c, o->g);
    o->status = posenc_whole_file_commit(&file, o->err);
}

static posenc_status write_files(const pe_directory *d, const pe_compare *c, const pe_gallery *g,
                                 posenc_error *err)
{
    output o    = {d, c, g, POSENC_OK, err};
    char  *text = NULL;
    o.status    = results_text(c, g, &text, err);
    put_file(&o, PE_RESULTS_NAME, "", text, NULL);
    free(text);
    put_file(&o, "results.csv", "", NULL, write_bucket_table);
    put_file(&o, "curves.csv", "", NULL, write_curve_table);
    put_file(&o, "tasks.csv", "", NULL, write_task_table);
    char *path = path_in(&o, PE_RUNS_NAME, "");
    if (path)
        o.status = pe_store_write(path, c, err);
    for (int i = 0; i < g->count; i++) { /* the SVG is there already; the PNG is drawn */
        put_file(&o, g->items[i].name, ".svg", g->items[i].svg, NULL);
        free(path);
        path = path_in(&o, g->items[i].name, ".png");
        if (path)
            o.status = pe_gnuplot_file(g->items[i].figure, path, err);
    }
    free(path);
    put_file(&o, "report.html", "", NULL, pe_report_write);
    return o.status;
}

posenc_status pe_results_write(const pe_compare *compare, posenc_error *err)
{
    pe_directory  d;
    pe_gallery    g;
    posenc_status status = pe_gallery_create(&g, compare, err);
    if (status)
        return status;
    status = pe_directory_open(&d, compare->config.directory, err);
    if (!status) {
        status = write_files(&d, compare, &g, err);
        if (status)
            pe_directory_discard(&d);
        else
            status = pe_directory_commit(&d, err);
    }
    pe_gallery_free(&g);
    int is_whole = !status && compare->store; /* and every run has ended well */
    for (int64_t job = 0; is_whole && job < pe_job_count(compare); job++)
        is_whole = atomic_load(pe_job_at(compare, job).ended) == 1 + POSENC_OK;
    if (is_whole)
        pe_store_remove(compare->store);
    /* A result that cannot be written loses nothing: the runs are in DIR.partial. */
    const size_t used = err ? strlen(err->message) : 0;
    if (status == POSENC_ERROR_FILE && compare->store && err)
        snprintf(err->message + used, sizeof err->message - used,
                 "; fix that and start again with --resume: every finished run is saved");
    return status;
}
