/* SPDX-License-Identifier: MIT */
/* scratch.h: an empty folder for a test program, and small files in it. Removed at the end of the
   program's group. */
#ifndef TESTS_FILES_SCRATCH_H
#define TESTS_FILES_SCRATCH_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { SCRATCH_PATH = 512 };

static char scratch_folder[256];

static inline int scratch_open(void **state)
{
    const char *parent = getenv("TMPDIR");
    (void)state;
    snprintf(scratch_folder, sizeof scratch_folder, "%.200s/posenc-test-XXXXXX",
             parent && *parent ? parent : "/tmp");
    return mkdtemp(scratch_folder) ? 0 : -1;
}

/* Path of a file in the folder; one of four buffers in turn. */
static inline const char *scratch(const char *name)
{
    static char paths[4][SCRATCH_PATH];
    static int  turn;
    char       *path = paths[turn++ % 4];
    snprintf(path, SCRATCH_PATH, "%s/%s", scratch_folder, name);
    return path;
}

/* How many files the folder holds. */
static inline int scratch_count(void)
{
    int  n      = 0;
    DIR *folder = opendir(scratch_folder);
    assert_non_null(folder);
    for (const struct dirent *entry; (entry = readdir(folder));)
        n += entry->d_name[0] != '.';
    closedir(folder);
    return n;
}

static inline int scratch_clear(void **state)
{
    (void)state;
    DIR *folder = opendir(scratch_folder);
    if (!folder)
        return -1;
    for (const struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_name[0] != '.')
            unlink(scratch(entry->d_name));
    closedir(folder);
    return 0;
}

static inline int scratch_close(void **state)
{
    scratch_clear(state);
    return rmdir(scratch_folder);
}

static inline void scratch_write(const char *name, const void *bytes, size_t n)
{
    FILE *file = fopen(scratch(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* Content of a file, malloc'd, with a zero behind it. */
static inline char *scratch_read(const char *path, size_t *n)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(1 << 20);
    assert_non_null(file);
    assert_non_null(text);
    *n       = fread(text, 1, (1 << 20) - 1, file);
    text[*n] = '\0';
    fclose(file);
    return text;
}

#endif
