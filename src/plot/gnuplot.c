/* SPDX-License-Identifier: MIT */
/*
 * gnuplot.c: a figure becomes a file, or a piece of a page, in a conversation with gnuplot through one socket
 *
 * The idea   One end of a socket pair is gnuplot's standard input and its standard output; we send the
 *            script, say that there is no more, and read the picture. No file is made on the way. gnuplot
 *            draws the first panels of a picture before it reads the script of the last: if we sent
 *            everything before we read, we would wait for a gnuplot that waits for us. So both directions are
 *            served as they are ready.
 * Surprises  -d: the user's ~/.gnuplot must not change our pictures. A socket and not two pipes, because
 *            MSG_NOSIGNAL turns the death of gnuplot into an error where a pipe would kill us with SIGPIPE.
 *            What gnuplot says on its standard error goes to an unnamed file, so that it can be quoted.
 * Pictures   A table gives the gnuplot terminal for each ending. Sizes and fonts are chosen so that a picture
 *            of full width can be read on a page without zooming. "sans-serif" and "Sans" are names that
 *            every viewer replaces by a font that it has; gnuplot cannot embed one.
 */
#include "plot/draw.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <posenc/files.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { CHUNK = 1 << 16, LONGEST_COMPLAINT = 120 };

static posenc_status fail_without_gnuplot(posenc_error *err)
{
    return pe_draw_fail(
        err, POSENC_ERROR_FILE,
        "pictures need the program gnuplot, which is not installed; install the package gnuplot-nox");
}

/* Starts gnuplot on the two descriptors; -1 if it cannot be started. */
static pid_t start_gnuplot(int in_and_out, int complaints)
{
    char *const                arguments[] = {"gnuplot", "-d", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    sigset_t                   none, defaults;
    pid_t                      pid = -1;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    if (posix_spawn_file_actions_init(&actions))
        return -1;
    if (posix_spawnattr_init(&attributes)) {
        posix_spawn_file_actions_destroy(&actions);
        return -1;
    }
    /* A group of its own: Ctrl-C is for us only, and a half-drawn picture is still finished. */
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawn_file_actions_adddup2(&actions, in_and_out, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, in_and_out, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, complaints, STDERR_FILENO);
    if (posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments, environ))
        pid = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return pid;
}

/* Sends what gnuplot takes now, of *n bytes at *data; *n becomes 0 when all are sent, or when gnuplot reads
   no more: its own complaint then says more than our broken pipe would. */
static void send_some(int to, const char **data, size_t *n)
{
    const ssize_t sent = send(to, *data, *n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK))
        return;
    *data += sent > 0 ? sent : 0;
    *n = sent > 0 ? *n - (size_t)sent : 0;
    if (*n == 0)
        shutdown(to, SHUT_WR);
}

/* Appends what has arrived: 1, 0 at the end, -1 without memory. */
static int receive_some(int from, char **data, size_t *size)
{
    char *more = realloc(*data, *size + CHUNK + 1);
    if (!more)
        return -1;
    *data           = more;
    const ssize_t n = read(from, more + *size, CHUNK);
    *size += n > 0 ? (size_t)n : 0;
    more[*size] = 0;
    return n > 0 || (n < 0 && errno == EINTR);
}

/* Sends script [n], n > 0, and reads to the end. 0, or -1 without memory. */
static int exchange(int socket, const char *script, size_t n, char **data, size_t *size)
{
    int more = 1;
    while (more > 0) {
        struct pollfd p = {.fd = socket, .events = (short)(n ? POLLIN | POLLOUT : POLLIN)};
        if (poll(&p, 1, -1) < 0) {
            more = errno == EINTR ? 1 : 0;
            continue;
        }
        if (n && p.revents & (POLLOUT | POLLERR | POLLHUP))
            send_some(socket, &script, &n);
        if (p.revents & (POLLIN | POLLERR | POLLHUP))
            more = receive_some(socket, data, size);
    }
    return more;
}

/* The last line of gnuplot's complaint, not counting lines of carets that point into the script. */
static void read_complaint(FILE *complaints, char line[LONGEST_COMPLAINT])
{
    char next[LONGEST_COMPLAINT];
    line[0] = 0;
    rewind(complaints);
    while (fgets(next, sizeof next, complaints)) {
        next[strcspn(next, "\n")] = 0;
        if (strspn(next, " \t^") < strlen(next))
            memcpy(line, next, sizeof next);
    }
}

static posenc_status converse(int ends[2], FILE *complaints, const char *script, size_t script_size,
                              char **output, size_t *size, posenc_error *err)
{
    char        complaint[LONGEST_COMPLAINT];
    const pid_t pid = start_gnuplot(ends[1], fileno(complaints));
    close(ends[1]);
    ends[1] = -1;
    if (pid < 0)
        return fail_without_gnuplot(err);
    const int lost   = exchange(ends[0], script, script_size, output, size);
    int       status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (lost)
        return pe_draw_fail(err, POSENC_ERROR_MEMORY,
                            "not enough memory for a picture of more than %zu bytes", *size);
    if (status == 127) /* some C libraries find out only in the child that there is no such program */
        return fail_without_gnuplot(err);
    if (status == 0 && *size > 0)
        return POSENC_OK;
    read_complaint(complaints, complaint);
    return pe_draw_fail(err, POSENC_ERROR_FILE, "gnuplot could not draw the picture: %s",
                        complaint[0] ? complaint : "it wrote nothing");
}

/* Feeds `script` to gnuplot and returns what it wrote to its standard output: *output is malloc'd, with a
   zero byte after its *size bytes. FILE if gnuplot is missing, fails or writes nothing. */
static posenc_status run_gnuplot(const char *script, size_t script_size, char **output, size_t *size,
                                 posenc_error *err)
{
    int   ends[2]    = {-1, -1};
    FILE *complaints = tmpfile();
    *output          = NULL;
    *size            = 0;
    posenc_status status;
    if (!complaints || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        status = pe_draw_fail(err, POSENC_ERROR_FILE, "gnuplot cannot be reached: %s", strerror(errno));
    else {
        /* gnuplot must not inherit our end, or it would wait for us forever if we were killed: it gets only
           what start_gnuplot() hands it */
        for (int i = 0; i < 2; i++)
            fcntl(ends[i], F_SETFD, FD_CLOEXEC);
        status = converse(ends, complaints, script, script_size, output, size, err);
    }
    for (int i = 0; i < 2; i++)
        if (ends[i] >= 0)
            close(ends[i]);
    if (complaints)
        fclose(complaints);
    if (status) {
        free(*output);
        *output = NULL;
    }
    return status;
}

posenc_status pe_gnuplot_ready(posenc_error *err)
{
    static const char   hello[] = "set print '-'; print GPVAL_VERSION\n";
    char               *version;
    size_t              size;
    const posenc_status status = run_gnuplot(hello, sizeof hello - 1, &version, &size, err);
    free(version);
    return status;
}

/* ---------------------------------------------------------------- pictures ------------------ */

/* clang-format off */
/* width and height are variables that the script sets first, in pixels. */
static const struct {
    const char *ending, *terminal;
} formats[] = {
    {".png", "if (strstrt(GPVAL_TERMINALS, ' pngcairo ')) {\n"
             "set terminal pngcairo size width,height font 'Sans,13' background 'white'\n"
             "} else {\nset terminal png size width,height font 'Sans,11' background 'white'\n}"},
    {".svg", "set terminal svg size width,height dynamic font 'sans-serif,16' background 'white'"},
    {".pdf", "set terminal pdfcairo size width/100.0,height/100.0 font 'Sans,12.5' background 'white'"},
    {".csv", ""}, /* numbers: nothing to draw */
};
/* clang-format on */

enum { FORMATS = sizeof formats / sizeof *formats };

/* The terminal for a path's ending, "" for numbers, or NULL. */
static const char *terminal_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < FORMATS; i++)
        if (!strcasecmp(dot, formats[i].ending))
            return formats[i].terminal;
    return NULL;
}

posenc_status pe_gnuplot_path_check(const char *path, posenc_error *err)
{
    if (terminal_of(path))
        return POSENC_OK;
    return pe_draw_fail(err, POSENC_ERROR_ARGUMENT,
                        "%.120s: a picture's name must end in .png, .svg, .pdf or .csv", path);
}

static posenc_status draw_figure(const pe_figure *figure, const char *terminal, char **output, size_t *size,
                                 posenc_error *err)
{
    char  *script = NULL;
    size_t script_size;
    FILE  *to = open_memstream(&script, &script_size);
    if (to && *terminal)
        pe_script_write(to, figure, terminal);
    else if (to)
        pe_numbers_write(to, figure);
    if (!to || fclose(to)) {
        free(script);
        return pe_draw_fail(err, POSENC_ERROR_MEMORY, "not enough memory for the picture \"%.80s\"",
                            figure->title ? figure->title : "");
    }
    if (!*terminal) {
        *output = script;
        *size   = script_size;
        return POSENC_OK;
    }
    const posenc_status status = run_gnuplot(script, script_size, output, size, err);
    free(script);
    return status;
}

posenc_status pe_gnuplot_file(const pe_figure *figure, const char *path, posenc_error *err)
{
    char             *picture;
    size_t            size;
    posenc_whole_file file;
    posenc_status     status = pe_gnuplot_path_check(path, err);
    if (!status)
        status = draw_figure(figure, terminal_of(path), &picture, &size, err);
    if (status)
        return status;
    status = posenc_whole_file_open(&file, path, err);
    if (!status) {
        fwrite(picture, 1, size, file.stream); /* commit notices what could not be written */
        status = posenc_whole_file_commit(&file, err);
    }
    free(picture);
    return status;
}

posenc_status pe_gnuplot_svg(const pe_figure *figure, const char *name, char **svg, posenc_error *err)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    char              terminal[256];
    size_t            size;
    *svg = NULL;
    if (!*name || name[strspn(name, letters)] || strlen(name) > 64)
        return pe_draw_fail(err, POSENC_ERROR_ARGUMENT,
                            "picture: name is \"%.70s\"; it must be 1 to 64 letters, digits or '_'", name);
    /* the script of "mouse" knows one pair of axes */
    snprintf(terminal, sizeof terminal,
             "set terminal svg size width,height dynamic %s name '%s' font 'sans-serif,16' "
             "background 'white'",
             figure->kind == PE_PANELS ? "" : "mouse standalone", name);
    return draw_figure(figure, terminal, svg, &size, err);
}
