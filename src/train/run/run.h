/* SPDX-License-Identifier: MIT */
/*
 * run.h: one training run of `compare`, from a configuration to numbers
 *
 * A run is one encoding on the text or on a task, one seed, one thread: it depends on nothing but its
 * configuration and the text, so workers may take runs in any order and on any number of threads. The model,
 * optimiser and initialisation are those of docs/experiments.md.
 */
#ifndef PE_TRAIN_RUN_H
#define PE_TRAIN_RUN_H

#include <posenc/files.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "train/model/spec.h"
#include "train/tasks/task.h"

enum { PE_ISA = 16 };

/* Text as bytes, or as ids of tokens: the first part is trained on, the last tenth is held out in windows of
   R L, R being how far beyond L is read. What is said of bytes goes for tokens too. */
typedef struct pe_text {
    const uint16_t *ids;
    int64_t         size;
    int64_t         train_size; /* ids [0, train_size) are for training */
    int64_t         spared;     /* except so many at its end: learning rates are chosen there (trial.h) */
    int64_t         vocabulary; /* ids of tokens are below it; 0: they are bytes */
} pe_text;

struct pe_model;
struct pe_run_config;
struct pe_run_progress;

/* What is done with a trained model before it goes: so many units, one after the other, each from the trained
   model only, whose weights it leaves as they are. Each writes some of the `count` numbers of the result, NaN
   before. Extension (extension.h) is one. It counts its own progress, and returns with *cancelled = 1 where
   progress says so. */
typedef struct pe_run_followup {
    const char *name; /* and all that decides its numbers: belongs to what names the run */
    const void *self;
    int64_t     units, count;
    int64_t (*work)(const void *self, int64_t unit); /* units of progress */
    posenc_status (*unit)(const void *self, const struct pe_run_config *config, struct pe_model *trained,
                          int64_t unit, struct pe_run_progress *progress, float *numbers, int *cancelled,
                          posenc_error *err);
    double (*steps)(const void *self, int64_t unit); /* of training that take about as long */
} pe_run_followup;

/* Where windows of training stand: among the positions 0 .. count - 1 (run_positions.c). ORDER names there */
typedef enum pe_run_places_kind { PE_IN_ORDER, PE_AT_RANDOM, PE_AT_POSE, PE_AT_SHIFT } pe_run_places_kind;
typedef struct pe_run_places {
    pe_run_places_kind kind; /* PE_IN_ORDER: at 0, 1, 2 ..., count is 0 */
    int64_t            count;
} pe_run_places;
enum { PE_MOST_PLACES = 1 << 20 };

/* "random:2048", for windows of L. ARGUMENT with what there is for anything else. */
posenc_status pe_run_positions_read(pe_run_places *places, const char *rule, int64_t L, posenc_error *err);
const char   *pe_run_positions_name(pe_run_places_kind kind); /* "random"; "" */
/* to [length] ascending: those of window number `window` of a run. Not for PE_IN_ORDER. */
void pe_run_positions_draw(int64_t *to, const pe_run_places *places, int64_t length, uint64_t seed,
                           int64_t window);

typedef struct pe_run_config {
    const char    *spec;  /* complete with settings; it may be one per layer (posenc_layer_read) */
    int64_t        L;     /* training length */
    int64_t        reach; /* R: windows of R L are evaluated; a power of two */
    int64_t        d_model, layers, heads, batch;
    int64_t        steps; /* fixed, never adapted to the clock */
    int64_t        warmup;
    double         learning_rate, weight_decay, clip;
    int64_t        windows;       /* held-out windows of R L to evaluate */
    int            bidirectional; /* 1: hidden bytes from both sides instead of the next byte */
    pe_run_places  places;        /* where windows of training stand */
    pe_entry       entry;         /* how rows of an input encoding enter */
    uint64_t       seed;
    int            is_rough;    /* 1: it is only tried or timed: any numbers to begin with, no scoring at L */
    const pe_text *text;        /* NULL: it is a run on a task */
    uint64_t       fingerprint; /* of the text (pe_run_text_fingerprint); 0: whoever needs it works it out */
    const pe_run_followup *followup; /* NULL: none */
    int                    measures; /* 1: the trained model is measured too (trained.h), if it is causal */
    const pe_task *task;      /* NULL: on the text; else text, L, reach, windows, followup, measures are 0 */
    int64_t        sequences; /* of each tested length */
    int            longest;   /* tested: PE_TASK_4 ... */
    /* Not part of what decides the numbers: a file ending in .npz that holds the run while it goes on, or
       NULL. If it exists the run continues from there, bit for bit. */
    const char *checkpoint;
    double      checkpoint_seconds; /* at least so many between two of them */
} pe_run_config;

/* What other threads may watch or ask while a run goes on. */
typedef struct pe_run_progress {
    atomic_llong step;   /* steps done, evaluation counted as further steps: see pe_run_work */
    atomic_int   cancel; /* 1: stop at the next step, with status UNSUPPORTED and cancelled = 1 */
} pe_run_progress;

typedef struct pe_run_result {
    float *train_loss;  /* [steps] nats per byte of each batch; NaN where the run stopped before */
    float *window_loss; /* [windows, R L] nats of each held-out byte, by position; NaN if not evaluated.
                            Column p: byte p + 1 of the window predicted from its bytes 0 .. p.
                            Bidirectional: mean over the hidden bytes of the window, read in pieces of L/2, L,
                           2 L ... R L; column p holds that of the shortest of these lengths above p */
    double *scored; /* [windows, 2] nats per byte in [0, L/2) and [L/2, L), mean over the short windows of a
                       stretch of the held-out part (run_score.c); NaN if bidirectional */
    int64_t parameters, encoding_parameters;
    /* Mean |cos| between the vectors of tokens and of positions (pe_model_cosine), bytes weighted as the
       training part of the text has them: before the first step and after the last. NaN without an input
       encoding. */
    double cosine_before, cosine_after;
    double train_seconds, eval_seconds, tokens_per_second; /* throughput from the second hundred of steps, by
                                                              pe_run_thread_clock */
    char   instructions[PE_ISA];                           /* posenc_isa() where it was done */
    float *trained;                                        /* [pe_trained_layout.count]: trained.h */
    float *followup;                                       /* [followup->count]; NULL without one */
    /* On a task: answers of each test sequence that were right [PE_TASK_LENGTHS, sequences], nats per answer,
       NaN where not tested; of the batches of training. */
    int64_t *right;
    double   loss[PE_TASK_LENGTHS], lowest_loss, last_loss;
    int      cancelled;
    uint8_t  diverged; /* a loss that is not finite: training stopped there */
    /* The encoding's parameters after training, for the pictures; NaN before the end. Layer by layer: those
       of one layer's encoding e are posenc_param_count(e) tensors, one after the other, as posenc_bias and
       its like take them. The part at the place input belongs to the whole model: its tensors are equal in
       every layer. Fixed parameters are listed as well.
     */
    posenc_tensor *params; /* F32, one after the other */
    int            param_count;
    void          *memory; /* of all arrays */
} pe_run_result;

/* A run, where others see how far it is. */
typedef struct pe_run_slot {
    pe_run_result   result;
    pe_run_progress progress;
    atomic_int      ended; /* 1 + the run's status, or 0 while there is no result */
} pe_run_slot;

/* ---------------------------------------------------------------- windows (text_windows.c) -- */

/* How many windows of so many predictions fit into the held-out part: each takes length + 1 bytes, and the
   last byte of one may be the first of the next. 0 if the text is too short. */
int64_t pe_text_windows(const pe_text *text, int64_t length);

/* windows[0 .. batch-1] point at L + 1 bytes each. train_size - spared must exceed L. */
void pe_text_batch(const uint16_t **windows, const pe_text *text, int64_t L, int64_t batch, uint64_t seed,
                   int64_t step);

/* Masked text: which bytes a model must not see. hidden[p] = 1 for those of n bytes whose draw (number first
   + p of the stream named) is below PE_HIDDEN_SHARE, and in any case for the byte with the smallest draw, so
   that no window is without a prediction. The stream names what the bytes are, never an encoding: all see the
   same. */
#define PE_HIDDEN_SHARE 0.15
void pe_text_hide(unsigned char *hidden, int64_t n, uint64_t seed, const char *stream, int64_t first);

/* Held-out window w of `count`: length + 1 bytes. count is at most pe_text_windows(text, length). */
const uint16_t *pe_text_window(const pe_text *text, int64_t length, int64_t count, int64_t w);

/* ---------------------------------------------------------------- a run --------------------- */

/* What its model is made of. */
struct pe_model_config pe_run_model_config(const pe_run_config *config);

/* How many units of progress->step the whole run takes (for time left). */
int64_t pe_run_work(const pe_run_config *config);
/* Of these the calls that score the loss at L, each of a batch of windows of L; none of a model that is only
   tried or timed. */
int64_t pe_run_score_calls(const pe_run_config *config);
/* The short windows of L that are scored, and window i of them, L + 1 ids. */
int64_t         pe_run_scored_windows(const pe_run_config *config);
const uint16_t *pe_run_scored_window(const pe_run_config *config, int64_t i);
/* Counts one of them; nonzero if somebody asked to stop. */
int pe_run_advance(pe_run_progress *progress);
/* What a run then returns. */
posenc_status pe_run_cancelled(int *cancelled, posenc_error *err);
/* Seconds since some moment, by a clock that never goes back. */
double pe_run_clock(void);
/* Seconds that the calling thread was at work, which other work on the machine does not lengthen. */
double pe_run_thread_clock(void);

/* Runs it. result is overwritten; free with pe_run_result_free whatever the status. progress may be
   NULL. A checkpoint is written at intervals and when the run is cancelled, and left in place: FILE if it
   cannot be written, FORMAT or ARGUMENT if the one that exists is damaged or another run's, and then nothing
   was trained. */
posenc_status pe_run(const pe_run_config *config, pe_run_progress *progress, pe_run_result *result,
                     posenc_error *err);
void          pe_run_result_free(pe_run_result *result);

/* Tries it out: one step of one window or sequence, and one of evaluation (on a task, of every length). Finds
   what a plan cannot show, such as a table that ends before R L, in some hundredths of a second. */
posenc_status pe_run_try(const pe_run_config *config, posenc_error *err);

/* Have so many runs ended well? */
int pe_run_all_ended(const pe_run_slot *runs, int64_t count);
/* With their results; NULL is fine. */
void pe_run_slots_free(pe_run_slot *runs, int64_t count);

/* The arrays of a result, NaN, as many as the configuration says; the encoding must be one
   that the model takes. */
posenc_status pe_run_result_create(pe_run_result *result, const pe_run_config *config, posenc_error *err);
/* Takes over the encoding's parameters after training, [param_count] of the model. */
void pe_run_result_take_params(pe_run_result *result, const pe_run_config *config, const posenc_tensor *from);

/* ---------------------------------------------------------------- tasks (run_task.c) -------- */

/* A SPEC of `compare` as it was asked for, divided for the task of config: complete [n] receives the
   library's SPEC with the settings of its rooms, *entry how rows enter. UNSUPPORTED, with a sentence, for
   encodings that have no meaning in it. */
posenc_status pe_run_task_spec(char *complete, size_t n, pe_entry *entry, const char *label,
                               const pe_run_config *config, posenc_error *err);

/* ---------------------------------------------------------------- a run in a file (run_file.c) */

/* Finished or not: named arrays under the identity of the run. One format for what goes on later (a
   checkpoint) and for what came out. An archive may hold several runs: then the names of their arrays begin
   with a prefix, "NAME/". */
enum { PE_MOST_ARRAYS = 16 };

/* The arrays are views of what is written, or filled. */
typedef struct pe_run_file {
    char        *identity; /* pe_run_identity; the owner's to free */
    int          is_finished;
    posenc_array arrays[PE_MOST_ARRAYS];
    int          count;
} pe_run_file;

/* One array more: [rows, columns], or [rows] where columns is 0. */
void pe_run_file_list(pe_run_file *k, const char *name, void *data, posenc_dtype dtype, int64_t rows,
                      int64_t columns);
/* Everything in a result. */
void   pe_run_list(pe_run_file *file, const pe_run_config *config, pe_run_result *result);
size_t pe_run_file_bytes(const posenc_array *a);

/* Adds copies to a set; 0 without memory. */
int pe_run_file_add(posenc_arrays *set, const char *prefix, const pe_run_file *k);
/* Writes one run, whole or not at all. FILE, with what to do. */
posenc_status pe_run_file_write(const char *path, const pe_run_file *k, posenc_error *err);

/* Fills the arrays, all or none. FORMAT if one is missing; ARGUMENT if they are of another run. `path` is for
   the sentence. */
posenc_status pe_run_file_take(const pe_run_file *k, const posenc_arrays *set, const char *prefix,
                               const char *path, posenc_error *err);
/* The identity of the run there, malloc'd; NULL if there is none. */
char *pe_run_file_identity(const posenc_arrays *set, const char *prefix, int *is_finished);

/* ---------------------------------------------------------------- identity ------------------ */

/* What decides the numbers of a run, as one line of JSON: the encoding with all settings, the model, the
   optimiser, the seed, the text (by a fingerprint) or the task, the version of the program. Two runs with the
   same identity have the same numbers, so what was saved under it may take the place of training. Threads,
   machines, names of files and times do not belong to it. Malloc'd, NULL without memory. */
char *pe_run_identity(const pe_run_config *config);
/* Its fingerprint, 16 hexadecimal digits, which name the run's file. */
enum { PE_RUN_NAME = 17 };
void pe_run_name(char name[PE_RUN_NAME], const char *identity);
/* FNV-1a over n bytes; over all ids of a text. */
uint64_t pe_run_fingerprint(const void *bytes, size_t n);
uint64_t pe_run_text_fingerprint(const pe_text *text);
/* In which member the identities differ that should be the same ("steps is 20 there and 30 here"); empty if
   only in which encoding and which seed. Returns in how many. */
int pe_run_identity_difference(char *text, size_t n, const char *there, const char *here);

#endif
