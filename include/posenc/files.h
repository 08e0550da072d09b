/* SPDX-License-Identifier: MIT */
/*
 * posenc/files.h: tensors on disk, for the second library, libposenc_files
 *
 * Reads and writes .npy and .npz (NumPy's formats) and CSV, reads .safetensors and JSON, says from a model's
 * own file which encoding it was trained with, and writes any file whole or not at all. Uses jansson and,
 * unless built with -DPOSENC_ZIP=OFF, libzip, without which an .npz is refused (UNSUPPORTED); the core
 * library needs neither. Errors are FILE (cannot be opened, read or written; the system's reason is in the
 * sentence) or FORMAT (the content is not what it should be), always with the file's name. Readers trust
 * nothing: sizes are checked for overflow and against the file before allocation.
 */
#ifndef POSENC_FILES_H
#define POSENC_FILES_H

#include <posenc/posenc.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A set of named arrays that owns its data. Zero-initialise; free with posenc_arrays_free. NumPy's
   floats keep their type (<f8 F64, <f4 F32, <f2 F16), |u1 and |b1 are U8, every other integer becomes
   I64. Fortran order is turned into C order. Not read: big-endian numbers, unsigned 64-bit, text,
   records, and Python objects. Of .safetensors, F64 F32 F16 BF16 I64 U8 keep their type, I32
   becomes I64 and BOOL U8; a file with a tensor of another type is refused.
   Complex numbers (<c8, <c16) are read as they lie in memory: F32 or F64 with one
   axis more, the last, of length 2: real and imaginary part. So [B,H,L,M] complex is [B,H,L,M,2], which
   no one can take for a real array of four axes; is_complex says that it was so. An array to which it is
   set (F32 or F64, last axis 2) is written as <c8 or <c16 without that axis.
   CSV: a line "# q 2x3x4" names the array of the lines below it and says its shape; each of them is a row of
   the last axis. Without a shape one line is a list [n], several are [lines,n]; without a line with # it is
   one array. All numbers are F64. */
typedef struct posenc_array {
    char         *name;       /* without ".npy" */
    posenc_tensor tensor;     /* contiguous; data owned by the set */
    int           is_complex; /* the last axis is that of real and imaginary part */
    int           is_text;    /* from CSV, which does not say whether numbers are whole */
    int           is_unnamed; /* no name of its own, so that of the file ("-" from standard input) */
} posenc_array;

typedef struct posenc_arrays {
    posenc_array *items;
    int           count;
} posenc_arrays;

/* Reads every member of an .npz (stored or deflated), a .safetensors or CSV, or the one array of an .npy
   (named by the file's stem); which of them it is, the first bytes say. "-" is standard input. At
   most 4 GiB in all. On failure *set is as it was. */
POSENC_API posenc_status posenc_arrays_read(posenc_arrays *set, const char *path, posenc_error *err);
/* .npz, .npy or .csv by the path's ending; "-" writes .npz to standard output. Whole or not at all; equal
   sets give equal bytes. Takes contiguous arrays of every type but BF16, for which NumPy has none, and
   complex numbers, which CSV has not, nor names with blanks. */
POSENC_API posenc_status posenc_arrays_write(const posenc_arrays *set, const char *path, posenc_error *err);
/* The same as CSV to a stream; whether every byte arrived, closing it says. */
POSENC_API posenc_status posenc_arrays_print(const posenc_arrays *set, FILE *to, posenc_error *err);
POSENC_API void          posenc_arrays_free(posenc_arrays *set); /* NULL is fine */
/* The array of that name, or NULL. */
POSENC_API posenc_tensor *posenc_arrays_find(const posenc_arrays *set, const char *name);
/* Adds an array and returns its tensor with zeroed data, or NULL without memory (or for an
   impossible shape, or where set, name or shape is NULL). The pointer holds until the next array is added,
   its data until the set is freed. */
POSENC_API posenc_tensor *posenc_arrays_add(posenc_arrays *set, const char *name, posenc_dtype dtype,
                                            int32_t ndim, const int64_t *shape);

/* Writing a file whole or not at all: write to file->stream, then commit (which flushes, syncs and
   renames) or discard. Until commit succeeds the path is as it was. A full disk is FILE, never a
   short file. Both end with the file closed and nothing left to free. "-" is standard output;
   devices and pipes are written to directly. */
typedef struct posenc_whole_file {
    FILE *stream;
    char *path, *temporary;
} posenc_whole_file;

POSENC_API posenc_status posenc_whole_file_open(posenc_whole_file *file, const char *path, posenc_error *err);
POSENC_API posenc_status posenc_whole_file_commit(posenc_whole_file *file, posenc_error *err);
POSENC_API void          posenc_whole_file_discard(posenc_whole_file *file); /* NULL is fine */
/* For a program that ends at once: removes the temporary files of all that are open now, in every thread.
   Takes no memory and no lock, so that the handler of a signal may call it. None of those files may be used
   afterwards. */
POSENC_API void posenc_whole_file_abandon(void);

/* A map of the subject index_map: array out_<out> is posenc_index_map(map, settings) of in_rel. */
typedef struct posenc_case_map {
    char *out, *map, *settings;
} posenc_case_map;

/* One entry of a manifest.json of reference cases. `settings` is text for posenc_encoding_create:
   "name=value ..." of everything but causal and q_offset, which belong to the run (JSON null: left
   out; true, false: yes, no; lists joined by ':'; objects as a=8:b=4). A value that cannot be such
   a word stays JSON, which no setting accepts. */
typedef struct posenc_case {
    char   *file, *encoding, *settings;
    char   *raw;    /* the settings object as compact JSON */
    char  **arrays; /* names that the entry lists; NULL-terminated */
    int     causal;
    int64_t q_offset;
    double  scale;     /* also in `settings`; NaN if absent */
    double  angle_ulp; /* details.angle_change_per_frequency_ulp: what one last bit of a frequency does; 0 if
                          absent */

    /* For subjects that are no encodings: which table, and what it is made of. */
    char            *table; /* NULL if absent */
    posenc_case_map *maps;
    int              map_count;
    int64_t         *heads;
    int              head_count;
} posenc_case;

typedef struct posenc_cases {
    posenc_case *items;
    int          count;
} posenc_cases;

/* Reads DIR/manifest.json: strict JSON, duplicate keys refused; sentences name line and column, or
   the entry. */
POSENC_API posenc_status posenc_cases_read(posenc_cases *cases, const char *dir, posenc_error *err);
POSENC_API void          posenc_cases_free(posenc_cases *cases); /* NULL is fine */

/* ---------------------------------------------------------------- models -------------------- */

/* A model's own file, read for its positions: which encoding each layer has, with the very numbers it was
   trained with.
   Formats: a config.json of Hugging Face (transformers before and since 5.0, by the rules of 5.24), a .gguf
   (metadata and frequency tensors), a .safetensors with its config.json beside it. */
typedef struct posenc_model posenc_model;

/* What a fact holds. REALS and INTEGERS are `list`; WORDS is `text`, separated by spaces. NONE: known not to
   be there. */
typedef enum posenc_fact_kind {
    POSENC_FACT_NONE = 0,
    POSENC_FACT_FLAG,
    POSENC_FACT_INTEGER,
    POSENC_FACT_REAL,
    POSENC_FACT_WORD,
    POSENC_FACT_WORDS,
    POSENC_FACT_INTEGERS,
    POSENC_FACT_REALS
} posenc_fact_kind;

/* One number of a group, and the rule that gave it. Names are those of `posenc inspect --json`; a name "a.b"
   is member b of the object a. */
typedef struct posenc_fact {
    const char      *name;
    posenc_fact_kind kind;
    int64_t          integer; /* FLAG, INTEGER */
    double           real;
    const char      *text;
    const double    *list;
    int64_t          count; /* of list */
    const char      *rule;  /* "rope_theta of the file"; "" where the name says all */
} posenc_fact;

/* Layers that are alike. `spec` is text for posenc_encoding_create, with dims as far as the file tells them
   (0: not); params are the values of SPEC's parameters that the file holds (F64, by name: short_factor,
   long_factor, freq_factors, slopes). */
typedef struct posenc_model_group {
    const char         *encoding; /* name in the registry */
    const char         *spec;
    const char         *stack;            /* "encoder" or "decoder"; NULL where there is one */
    int                 is_input, is_all; /* it acts at the embeddings; on every layer */
    const int64_t      *layers;           /* else these, ascending from 0 */
    int64_t             layer_count;
    posenc_dims         dims;
    const posenc_array *params;
    int                 param_count;
    const posenc_fact  *facts;
    int                 fact_count;
} posenc_model_group;

typedef struct posenc_model_warning {
    const char *code;     /* of a closed list: "base-default" */
    const char *sentence; /* what it means for this file */
} posenc_model_warning;

typedef struct posenc_model_info {
    const char *format;   /* "config", "gguf", "safetensors" */
    const char *type;     /* model_type (of a nested model the inner one), architecture; NULL if absent */
    const char *encoding; /* the one besides nope; "mixed", "nope", "none" (no attention), "unknown" */
    int64_t     layers;   /* 0: not told */
    int64_t     max_positions;   /* 0: no limit is told */
    int64_t     original_length; /* of pre-training, where groups have one and the same; else 0 */
    int         group_count, warning_count;
    const char *tower;       /* which part of the file it is: "text", "vision"; NULL: all of it */
    int         tower_count; /* parts beside this one: posenc_model_tower */
} posenc_model_info;

/* Reads a model's file; "-" is standard input. What the file leaves out comes from the table of model types.
   Errors: FILE; FORMAT for a file that is no such thing, or whose numbers no encoding could have; MEMORY. */
POSENC_API posenc_status posenc_model_read(posenc_model **model, const char *path, posenc_error *err);
/* The same of a file's n bytes, which may go afterwards: a config.json, or a whole .gguf. `name` (NULL:
   "memory") stands for the path in sentences. A .safetensors is refused: it needs the config.json in its
   folder. */
POSENC_API posenc_status posenc_model_read_memory(posenc_model **model, const void *bytes, size_t n,
                                                  const char *name, posenc_error *err);
POSENC_API void          posenc_model_free(posenc_model *model); /* NULL is fine */

/* Everything they point to lives as long as the model. NULL where there is no such thing, or no model. */
POSENC_API const posenc_model_info    *posenc_model_describe(const posenc_model *model);
POSENC_API const posenc_model_group   *posenc_model_group_at(const posenc_model *model, int index);
POSENC_API const posenc_model_warning *posenc_model_warning_at(const posenc_model *model, int index);
/* A part of the file beside the language model, such as the encoder of its images: a model like any other,
   that lives as long as this one. What it cannot be read as, a warning of its own says; its encoding is
   "unknown" then. NULL outside. */
POSENC_API const posenc_model *posenc_model_tower(const posenc_model *model, int index);
/* Index of the group that holds the layer (not of those at the input), or -1: that layer has no attention. */
POSENC_API int posenc_model_group_of(const posenc_model *model, int64_t layer);
/* How many keys the layer's sliding window holds: a query sees those at |t| < window (options.window). 0: all
   of them, or no such layer. The fact sliding_window of a group says the same: a number, or one per layer. */
POSENC_API int64_t posenc_model_window(const posenc_model *model, int64_t layer);
/* The fact of that name, or NULL. */
POSENC_API const posenc_fact *posenc_model_fact(const posenc_model_group *group, const char *name);
/* The parameters that the SPEC of group `group` asks for, by their names and in the shapes of
   posenc_param_name and posenc_param_shape for the group's dims: the numbers that the model's own file holds
   (F64), the others (F64 where they are, else F32) out of `checkpoint`, a .safetensors, the .index.json of a
   sharded one, or an .npz. Tensors are found there by the names that the model's type gives them, whatever
   stands before these, and axes of length 1 come and go. `layer` is one of the group's, -1 its first: of
   parameters that each layer has for itself. `checkpoint` may be NULL where nothing is needed from it. On
   failure *params is as it was. Errors: ARGUMENT, FILE, FORMAT (a tensor that lacks, is there twice, or has
   another shape, by its name), UNSUPPORTED (a type whose tensors' names are not known), MEMORY. */
POSENC_API posenc_status posenc_model_params(posenc_arrays *params, const posenc_model *model, int group,
                                             int64_t layer, const char *checkpoint, posenc_error *err);
/* What `posenc inspect --json` prints: one object, of group `group` alone or of all (-1). The text is the
   caller's, who gives it back to posenc_model_json_free (NULL is fine). Errors: ARGUMENT, MEMORY. */
POSENC_API posenc_status posenc_model_json(char **text, const posenc_model *model, int group,
                                           posenc_error *err);
POSENC_API void          posenc_model_json_free(char *text);

#ifdef __cplusplus
}
#endif
#endif
