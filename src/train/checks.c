/* SPDX-License-Identifier: MIT */
/*
 * checks.c: claims about a comparison that can turn out false
 *
 * Each row of checks.def is a claim; here is how a kind of claim is judged. A claim that is printed as FAILED
 * means that the text, the budget or the code is not what it was when the thresholds were set: a reason to
 * look, and the report says so. Where a claim cannot be judged it is "not applicable", by rule and with the
 * reason:
 *
 *   - the models predict hidden bytes, and the claims are about the next one;
 *   - an encoding that it names was not compared, or only with settings of its own, or its run diverged;
 *   - fewer than 24 held-out windows;
 *   - fewer steps, or another model, than the thresholds are for;
 *   - the text is strange: the loss without positions (BASELINE in checks.def) is not 2 % above the best at
 *     L.
 *
 * This file judges claims about the text; checks_trained.c those about encodings by themselves and trained
 * and extended models, checks_tasks.c those about tasks, which do not depend on the text.
 */
#include "train/outcome.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

typedef enum claim_kind { LOWER, AT_MOST, AT_LEAST } claim_kind;

typedef struct claim {
    int         number;
    claim_kind  kind;
    const char *encoding, *other;
    int         bucket;
    double      limit;
} claim;

static const claim claims[] = {
#define CHECK(number, kind, encoding, other, bucket, limit) {number, kind, encoding, other, bucket, limit},
#define BASELINE(encoding, ratio)
#define TASK_CHECK(...)
#define AMONG(list)
#include "train/checks.def"
#undef CHECK
#undef BASELINE
#undef TASK_CHECK
#undef AMONG
};

enum { CLAIMS = sizeof claims / sizeof *claims };

static const struct {
    const char *encoding;
    double      ratio;
} baseline = {
#define CHECK(number, kind, encoding, other, bucket, limit)
#define BASELINE(encoding, ratio) encoding, ratio
#define TASK_CHECK(...)
#define AMONG(list)
#include "train/checks.def"
#undef CHECK
#undef BASELINE
#undef TASK_CHECK
#undef AMONG
};

int pe_check_count(void)
{
    return CLAIMS + pe_trained_check_count() + pe_task_check_count();
}

const char *pe_verdict_name(pe_verdict verdict)
{
    static const char *const names[] = {"passed", "FAILED", "not applicable"};
    return names[verdict];
}

/* "rope lower than sinusoidal at L/2..L", "E_8 of alibi at most 1.10" */
static void describe(char *text, size_t n, const claim *k)
{
    if (k->kind == LOWER)
        snprintf(text, n, "loss of %s below that of %s at %s", k->encoding, k->other,
                 pe_bucket_name(k->bucket));
    else
        snprintf(text, n, "E_%d of %s at %s %.2f", 1 << (k->bucket - 1), k->encoding,
                 k->kind == AT_MOST ? "most" : "least", k->limit);
}

int pe_check_lists(const char *list, const char *name)
{
    const size_t n = strlen(name);
    for (const char *at = list; *at; at += *at == ',') {
        const size_t length = strcspn(at, ",");
        if (length == n && !strncmp(at, name, n))
            return 1;
        at += length;
    }
    return 0;
}

/* The outcome with the standard settings of that encoding, or -1. */
int pe_check_find(const pe_compare *c, const char *name)
{
    for (int i = 0; name && i < c->count; i++) {
        const pe_outcome *o = &c->outcomes[i];
        if (o->is_plain && o->is_complete && !o->diverged && !strcmp(o->label, name))
            return i;
    }
    return -1;
}

int pe_is_standard_model(const pe_preset *p)
{
    const pe_preset *standard = pe_preset_find(p->name);
    return standard && p->L == standard->L && p->d_model == standard->d_model &&
           p->layers == standard->layers && p->heads == standard->heads && p->batch == standard->batch &&
           p->task_layers == standard->task_layers && p->task_batch == standard->task_batch;
}

/* Is the model, or its training, another than the thresholds are for? */
static int is_another_model(const pe_preset *p)
{
    return !pe_is_standard_model(p) || p->steps < pe_preset_find(p->name)->steps;
}

/* Does position hardly matter in this text? Without the baseline among the encodings nobody knows. */
static int is_strange(const pe_compare *c)
{
    const int without = pe_check_find(c, baseline.encoding);
    return without >= 0 && c->reference >= 0 &&
           c->outcomes[without].loss[PE_AT_L] < baseline.ratio * c->outcomes[c->reference].loss[PE_AT_L];
}

const char *pe_check_reason(const pe_compare *c)
{
    if (c->windows < PE_FEWEST_WINDOWS)
        return "too few held-out windows: give a longer text";
    if (is_another_model(&c->config.preset))
        return "fewer steps or another model than the threshold is for";
    if (is_strange(c))
        return "position hardly matters in this text";
    return NULL;
}

/* Why a claim cannot be judged, or NULL. */
static const char *reason_against(const pe_compare *c, const claim *k)
{
    if (c->config.bidirectional)
        return "the claims are about predicting the next byte";
    if (pe_check_find(c, k->encoding) < 0 || (k->other && pe_check_find(c, k->other) < 0))
        return "not compared with its standard settings";
    return pe_check_reason(c);
}

static void judge_lower(pe_check_result *r, const pe_compare *c, const claim *k)
{
    const pe_interval d =
        pe_outcomes_difference(c, pe_check_find(c, k->encoding), pe_check_find(c, k->other), k->bucket);
    r->verdict = d.high < 0 ? PE_PASSED : PE_FAILED;
    snprintf(r->found, sizeof r->found, "difference %+.3f (%+.3f to %+.3f)", d.value, d.low, d.high);
}

static void judge_ratio(pe_check_result *r, const pe_compare *c, const claim *k)
{
    const double ratio = c->outcomes[pe_check_find(c, k->encoding)].ratio[k->bucket];
    r->verdict         = (k->kind == AT_MOST ? ratio <= k->limit : ratio >= k->limit) ? PE_PASSED : PE_FAILED;
    snprintf(r->found, sizeof r->found, "%.3f", ratio);
}

void pe_check_judge(pe_check_result *result, const pe_compare *c, int index)
{
    const int on_trained = index - CLAIMS, on_tasks = on_trained - pe_trained_check_count();
    if (on_tasks >= 0 || on_trained >= 0) {
        if (on_tasks >= 0)
            pe_task_check_judge(result, c, on_tasks);
        else
            pe_trained_check_judge(result, c, on_trained);
        return;
    }
    const claim *k   = &claims[index];
    const char  *why = reason_against(c, k);
    result->number   = k->number;
    describe(result->claim, sizeof result->claim, k);
    if (why) {
        result->verdict = PE_NOT_APPLICABLE;
        snprintf(result->found, sizeof result->found, "%s", why);
    } else if (k->kind == LOWER)
        judge_lower(result, c, k);
    else
        judge_ratio(result, c, k);
}

/* By insertion, so that those of one number keep their order. */
int pe_checks_judge(pe_check_result results[PE_MOST_CHECKS], const pe_compare *c)
{
    const int count = pe_check_count();
    assert(count <= PE_MOST_CHECKS);
    for (int i = 0; i < count; i++) {
        pe_check_result r;
        int             at = i;
        pe_check_judge(&r, c, i);
        for (; at > 0 && results[at - 1].number > r.number; at--)
            results[at] = results[at - 1];
        results[at] = r;
    }
    return count;
}
