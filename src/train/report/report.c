/* SPDX-License-Identifier: MIT */
/*
 * report.c: the comparison as one self-contained page
 *
 * Order of a reader's questions: what to choose, what was run, the table, the pictures, whether to believe it
 * (checks), the encodings one by one, what papers found, how to read it, how to repeat it. Everything is in
 * the file: style, drawings, text. Whoever has JavaScript gets coordinates and curves that can be switched
 * off; whoever has not, or prints, loses nothing else. Prose and style stand in report.html.
 *
 * Colours are those of Okabe and Ito (src/plot/colours.c) or one hue from light to dark, and never the only
 * sign: curves differ in dashes too, cells have numbers, verdicts words. On paper everything is black on
 * white and what was folded up is open; on a phone wide tables scroll by themselves and the page does not.
 */
#include "train/report/report.h"

#include <math.h>

/* ---------------------------------------------------------------- sections ------------------ */

/* The drawing of that name between two parts of the template, "NAME" and "NAME caption"; nothing where it was
   not measured. */
static void write_drawing(pe_page *page, const pe_gallery *g, const char *name)
{
    const pe_exhibit *x = pe_gallery_find(g, name);
    char              caption[64];
    if (!x)
        return;
    pe_html_part(page, name);
    pe_gallery_draw(page->to, x);
    snprintf(caption, sizeof caption, "%s caption", name);
    pe_html_part(page, caption);
}

/* A value that only says yes, where it is not empty. */
static void set_flag(pe_page *page, const char *name, int is)
{
    pe_html_set(page, name, "%s", is ? "yes" : "");
}

/* What parts of the template speak of. */
static void set_values(pe_page *page, const pe_compare *c)
{
    const pe_preset *p = &c->config.preset;
    char             text[48], rates[PE_RATES_TEXT];
    const struct {
        const char *name;
        int64_t     n;
    } numbers[] = {{"steps", p->steps},
                   {"encodings", c->count},
                   {"layers", p->layers},
                   {"width", p->d_model},
                   {"heads", p->heads},
                   {"batch", p->batch},
                   {"L", p->L},
                   {"smooth", p->L / 8},
                   {"windows", c->windows},
                   {"reach", p->reach * p->L},
                   {"times", p->reach},
                   {"half", p->reach / 2},
                   {"bytes", c->text.size},
                   {"thousand",
                    c->reference >= 0 ? c->outcomes[c->reference].runs[0].result.parameters / 1000 : 0}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        pe_html_set(page, numbers[i].name, "%lld", (long long)numbers[i].n);
    const struct {
        const char *name, *text;
    } texts[] = {{"lang", pe_preset_language_code(c->config.language)},
                 {"text", c->config.text_name},
                 {"warning", c->warning},
                 {"objective", pe_outcome_objective_text(c->config.bidirectional)},
                 {"call", c->config.call ? c->config.call : ""},
                 {"version", posenc_version()},
                 {"machine", c->machine},
                 {"isa", posenc_isa()}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        pe_html_set(page, texts[i].name, "%s", texts[i].text);
    pe_html_set(page, "runs", "%d", c->runs);
    if (c->missing)
        pe_html_set(page, "missing", "%d", c->missing);
    else
        set_flag(page, "missing", 0);
    if (p->seeds > 1)
        pe_html_set(page, "seeds", "%lld", (long long)p->seeds);
    else
        set_flag(page, "seeds", 0);
    pe_trial_write_rates(rates, c->trials);
    pe_html_set(page, "rates", "%s", rates);
    pe_html_set(page, "trained", "%s", pe_html_count(text, p->seeds, "seed"));
    pe_html_set(page, "workers", "%s", pe_html_count(text, c->workers, "worker"));
    pe_html_set(page, "seconds", "%.0f", c->wall_seconds);
    pe_html_set(page, "rate", "%g", p->learning_rate);
    pe_html_set(page, "cosine", "%.3f", pe_stats_random_cosine(p->d_model));
    pe_html_set(page, "cosine_512", "%.3f", pe_stats_random_cosine(512));
    set_flag(page, "bidirectional", c->config.bidirectional);
    set_flag(page, "tasks", c->suite->task_count > 0);
    set_flag(page, "extension", c->extension && c->extension->count && c->extension->means);
    set_flag(page, "claims", c->properties != NULL);
    set_flag(page, "stability", c->orders[PE_ORDER_AT_L] && c->orders[PE_ORDER_AT_L]->levels > 1);
}

/* What to choose, the picture, what it costs. */
static void write_answer(pe_page *page, const pe_compare *c)
{
    pe_table t;
    pe_html_part(page, "answer");
    if (pe_answer_table(c, &t, NULL) == POSENC_OK) {
        pe_html_table(page->to, &t, "stack", 1);
        pe_table_free(&t);
    }
    pe_html_part(page, "picture");
    pe_answer_chart(page->to, c);
    pe_html_part(page, "costs");
    if (pe_answer_costs(c, &t, NULL) == POSENC_OK) {
        pe_html_table(page->to, &t, "", 1);
        pe_html_notes(page->to, t.notes);
        pe_table_free(&t);
    }
    pe_html_part(page, "doubts");
}

static void write_meanings(FILE *to, const pe_table *t)
{
    fputs("<dl>\n", to);
    for (int k = 0; k < t->column_count; k++) {
        pe_html_element(to, "dt", "%s", t->columns[k].head);
        pe_html_element(to, "dd", "%s", t->columns[k].meaning);
    }
    fputs("</dl></details>\n", to);
}

static void write_results(pe_page *page, const pe_compare *c)
{
    pe_table t;
    pe_html_part(page, "results");
    if (pe_summary_table(c, &t, NULL))
        return;
    pe_html_table(page->to, &t, "", 0);
    pe_html_notes(page->to, t.notes);
    pe_html_part(page, "more");
    pe_html_table(page->to, &t, "", 1);
    write_meanings(page->to, &t);
    pe_table_free(&t);
}

/* Adding against concatenating, with the argument that adding is defended by. */
static void write_entries(pe_page *page, const pe_compare *c)
{
    pe_table t;
    int      is_plain;
    if (pe_summary_entries(c, &t, &is_plain, NULL))
        return;
    if (t.row_count > 0) {
        set_flag(page, "plain", is_plain);
        pe_html_part(page, "entries");
        pe_html_table(page->to, &t, "", 1);
        pe_html_part(page, "sum");
        write_meanings(page->to, &t);
    }
    pe_table_free(&t);
}

/* ---------------------------------------------------------------- trained models ------------ */

#define LEAST_SHIFT 1e-4 /* nats: what check 14 allows where nothing may change */

/* ORDER after_ratios, which follow E_2, E_4 ... */
enum { CLASS, BREAK, GAIN, NEAR, FAR, SHIFTS, AFTER_RATIOS = SHIFTS + PE_SHIFTS };
enum { RATIOS = 1, COLUMNS = RATIOS + PE_MOST_BUCKETS + AFTER_RATIOS };

/* A dash where it was not measured. */
static void put_distance(pe_table *t, int row, int column, int64_t distance)
{
    pe_table_number(t, row, column, "%.0f", distance < 0 ? NAN : (double)distance);
}

/* And below it what no key has. */
static void put_weight(pe_table *t, int row, int column, int64_t distance, const double *mass, int64_t n)
{
    const double sunk = distance < 0 ? 0 : pe_trained_sunk(mass, n);
    if (sunk > 0)
        pe_table_set(t, row, column, "%lld\nsinks: %.2f", (long long)distance, sunk);
    else
        put_distance(t, row, column, distance);
}

/* Round-off of sums in float is no finding. */
static void put_shift(pe_table *t, int row, int column, double x)
{
    if (fabs(x) > 0 && fabs(x) < LEAST_SHIFT)
        pe_table_set(t, row, column, "<%g", LEAST_SHIFT);
    else
        pe_table_number(t, row, column, fabs(x) > 0 ? "%+.4f" : "%.0f", isfinite(x) ? x : NAN);
}

static void put_trained(pe_table *t, int row, const pe_outcome *o)
{
    const int furthest = pe_stats_furthest(o->config.reach), after = RATIOS + furthest - PE_AT_L;
    pe_table_text(t, row, 0, o->label);
    for (int b = PE_AT_2L; b <= furthest; b++)
        pe_table_number(t, row, RATIOS + b - PE_AT_2L, "%.2f", isfinite(o->ratio[b]) ? o->ratio[b] : NAN);
    pe_table_text(t, row, after + CLASS, o->verdict);
    put_distance(t, row, after + BREAK, o->break_position + 1);
    if (isfinite(o->gain.value))
        pe_table_set(t, row, after + GAIN, "%+.3f\n%+.3f to %+.3f", o->gain.value, o->gain.low, o->gain.high);
    else
        pe_table_text(t, row, after + GAIN, "-");
    put_weight(t, row, after + NEAR, o->near_90, o->near, o->config.L);
    put_weight(t, row, after + FAR, o->far_90, o->far, o->config.reach * o->config.L);
    for (int i = 0; i < PE_SHIFTS; i++)
        put_shift(t, row, after + SHIFTS + i, o->shift[i]);
}

/* The heads, whose texts stand in `texts`; returns their count. */
static int name_columns(pe_column heads[COLUMNS], char texts[COLUMNS][32], const pe_run_config *c)
{
    const int ratios = pe_stats_furthest(c->reach) - PE_AT_L, after = RATIOS + ratios;
    for (int k = 0; k < after + AFTER_RATIOS; k++)
        heads[k] = (pe_column){.head = texts[k], .is_text = k == 0 || k == after + CLASS};
    snprintf(texts[0], sizeof texts[0], "encoding");
    for (int i = 0; i < ratios; i++)
        snprintf(texts[RATIOS + i], sizeof texts[0], "E_%d", 2 << i);
    snprintf(texts[after + CLASS], sizeof texts[0], "beyond L");
    snprintf(texts[after + BREAK], sizeof texts[0], "breaks at");
    snprintf(texts[after + GAIN], sizeof texts[0], "gain of %lld L over L", (long long)c->reach);
    snprintf(texts[after + NEAR], sizeof texts[0], "at L");
    snprintf(texts[after + FAR], sizeof texts[0], "at %lld L", (long long)c->reach);
    for (int i = 0; i < PE_SHIFTS; i++)
        snprintf(texts[after + SHIFTS + i], sizeof texts[0], "%lld", (long long)pe_trained_shift_at(c, i));
    return after + AFTER_RATIOS;
}

/* One row per encoding, best at L first: how far it carries (extrapolation, break), what it makes of more
   context (gain), how far back it looks (attention), and whether it notices where a text begins (shift). */
static void write_trained(pe_page *page, const pe_compare *c, const pe_gallery *g)
{
    const int ratios = pe_stats_furthest(c->config.preset.reach) - PE_AT_L, after = RATIOS + ratios;
    const pe_column_group groups[] = {{RATIOS, ratios + 1, "loss beyond L / at L"},
                                      {after + NEAR, 2, "90 % of the weight within"},
                                      {after + SHIFTS, PE_SHIFTS, "change of loss from position"}};
    pe_column             heads[COLUMNS];
    char                  texts[COLUMNS][32];
    pe_table              t;
    const int             n = c->config.bidirectional ? 0 : c->order_count;
    if (n == 0 || pe_table_open(&t, heads, name_columns(heads, texts, &c->outcomes[0].config), n, NULL))
        return;
    t.groups      = groups;
    t.group_count = sizeof groups / sizeof *groups;
    for (int i = 0; i < n; i++)
        put_trained(&t, i, &c->outcomes[c->order[PE_AT_L][i]]);
    pe_html_part(page, "trained");
    pe_html_table(page->to, &t, "", 1);
    pe_html_part(page, "trained columns");
    write_drawing(page, g, "attention");
    pe_table_free(&t);
}

/* ---------------------------------------------------------------- the page ------------------ */

static void write_checks(pe_page *page, const pe_compare *c)
{
    static const char *const counted[] = {"passed", "failed", "undecided",
                                          "not_applicable"}; /* ORDER pe_verdict */
    pe_table                 t;
    if (pe_summary_checks(c, &t, 1, NULL))
        return;
    for (pe_verdict v = PE_PASSED; v <= PE_NOT_APPLICABLE; v++) {
        int count = 0;
        for (int row = 0; row < t.row_count; row++)
            count += pe_table_at(&t, row, 2)->kind == pe_claims_verdict_name(v);
        pe_html_set(page, counted[v], "%lld", (long long)count);
    }
    pe_html_part(page, "checks");
    pe_html_table(page->to, &t, "stack", 1);
    pe_table_free(&t);
}

void pe_report_write(FILE *to, const pe_compare *c, const pe_gallery *g)
{
    pe_page page = {.to = to};
    pe_words_speak(c->config.language, c->text.vocabulary > 0);
    set_values(&page, c);
    pe_html_part(&page, "head");
    pe_page_style(to);
    pe_gallery_script(to, g);
    write_answer(&page, c);
    pe_html_part(&page, "run");
    write_results(&page, c);
    pe_report_settled(&page, c);
    write_entries(&page, c);
    write_drawing(&page, g, "length");
    write_drawing(&page, g, "loss");
    write_drawing(&page, g, "training");
    write_trained(&page, c, g);
    pe_report_tasks(&page, c->suite);
    pe_report_extension(&page, c);
    write_checks(&page, c);
    pe_report_cards(&page, c, g);
    pe_report_papers(&page, c);
    pe_report_claims(&page, c);
    pe_html_part(&page, "carries");
    pe_html_part(&page, "reading");
    pe_words_speak(PE_ENGLISH, 0);
}
