/* SPDX-License-Identifier: MIT */
/* job.c: the runs of a comparison by number. Contract: job.h. */
#include "train/job.h"

#include "train/extension.h"
#include "train/record.h"
#include "train/record_task.h"

static int64_t text_jobs(const pe_compare *c)
{
    return c->count * c->config.preset.seeds;
}

/* The outcome that run number `job` is one of: of the comparison, then of the families that are extended.
   NULL: a task's. */
static pe_outcome *outcome_of(const pe_compare *c, int64_t job)
{
    const int64_t seeds = c->config.preset.seeds, own = text_jobs(c);
    if (job < own)
        return &c->outcomes[job / seeds];
    return job < own + pe_extension_runs(c->extension) ? &c->extension->outcomes[(job - own) / seeds] : NULL;
}

int64_t pe_job_count(const pe_compare *c)
{
    return text_jobs(c) + pe_extension_runs(c->extension) + pe_suite_runs(c->suite);
}

pe_job pe_job_at(const pe_compare *c, int64_t job)
{
    pe_job        j     = {.outcome = outcome_of(c, job)};
    const int64_t seeds = c->config.preset.seeds, on_text = text_jobs(c) + pe_extension_runs(c->extension);
    if (j.outcome) {
        j.seed     = job % seeds;
        j.progress = &j.outcome->progress[j.seed];
        j.ended    = &j.outcome->ended[j.seed];
    } else {
        j.cell     = pe_suite_run(c->suite, job - on_text, &j.seed);
        j.progress = &j.cell->progress[j.seed];
        j.ended    = &j.cell->ended[j.seed];
    }
    return j;
}

int pe_job_has_ended(const pe_compare *c, int64_t job)
{
    return atomic_load(pe_job_at(c, job).ended) != 0;
}

pe_run_config pe_job_config(const pe_job *job)
{
    pe_run_config config = job->outcome->config;
    config.seed          = (uint64_t)job->seed + 1;
    return config;
}

pe_task_config pe_job_task(const pe_job *job)
{
    pe_task_config config = job->cell->config;
    config.seed           = (uint64_t)job->seed + 1;
    return config;
}

char *pe_job_identity(const pe_job *job)
{
    if (job->cell) {
        const pe_task_config config = pe_job_task(job);
        return pe_task_identity(&config);
    }
    const pe_run_config config = pe_job_config(job);
    return pe_run_identity(&config);
}

posenc_status pe_job_write(char **line, const pe_job *job, posenc_error *err)
{
    if (job->cell) {
        const pe_task_config config = pe_job_task(job);
        return pe_task_record_write(line, job->cell->label, &config, &job->cell->runs[job->seed], err);
    }
    const pe_run_config config = pe_job_config(job);
    return pe_record_write(line, job->outcome->label, &config, &job->outcome->runs[job->seed], err);
}

static posenc_status read_text(const pe_job *job, const char *line, posenc_error *err)
{
    const pe_run_config config = pe_job_config(job);
    pe_run_result      *run    = &job->outcome->runs[job->seed];
    const posenc_status status = pe_record_read(run, &config, line, err);
    if (status)
        pe_run_result_free(run);
    return status;
}

static posenc_status read_task(const pe_job *job, const char *line, posenc_error *err)
{
    const pe_task_config config = pe_job_task(job);
    pe_task_result      *run    = &job->cell->runs[job->seed];
    const posenc_status  status = pe_task_record_read(run, &config, line, err);
    if (status)
        pe_task_result_free(run);
    return status;
}

posenc_status pe_job_read(const pe_job *job, const char *line, posenc_error *err)
{
    const posenc_status status = job->cell ? read_task(job, line, err) : read_text(job, line, err);
    if (!status)
        atomic_store(job->ended, 1 + POSENC_OK);
    return status;
}
