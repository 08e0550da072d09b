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
 * Distrust   What is found as "gnuplot" may hang, die with a child of its own that keeps the socket open,
 * write without end, or be something else. So silence has a limit (a short one once somebody has pressed
 *            Ctrl-C), a death is noticed without the end of the stream, and what came must begin and end as
 *            a picture of that kind does.
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

enum { CHUNK = 1 << 16, LONGEST_COMPLAINT = 120, MOST_BYTES = 1 << 28 };

static int patience = 300, hurry = 10; /* seconds of silence; after a signal that was caught */

void pe_gnuplot_patience(int seconds, int after_signal)
{
    patience = seconds;
    hurry    = after_signal;
}

static posenc_status fail_to_start(int reason, posenc_error *err)
{
    if (reason == ENOENT)
        return pe_draw_fail(
            err, POSENC_ERROR_FILE,
            "pictures need the program gnuplot, which is not installed; install the package gnuplot-nox");
    return pe_draw_fail(err, reason == ENOMEM ? POSENC_ERROR_MEMORY : POSENC_ERROR_FILE,
                        "gnuplot cannot be started: %s", strerror(reason));
}

static posenc_status fail_as_another(posenc_error *err, const char *wanted)
{
    return pe_draw_fail(
        err, POSENC_ERROR_FILE,
        "gnuplot wrote something that is no %s; is the first gnuplot in PATH another program?", wanted);
}

/* Starts gnuplot on the two descriptors. 0, or why it cannot be started. */
static int start_gnuplot(pid_t *pid, int in_and_out, int complaints)
{
    char *const                arguments[] = {"gnuplot", "-d", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    sigset_t                   none, defaults;
    int                        reason;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    if ((reason = posix_spawn_file_actions_init(&actions)))
        return reason;
    if ((reason = posix_spawnattr_init(&attributes))) {
        posix_spawn_file_actions_destroy(&actions);
        return reason;
    }
    /* A group of its own: Ctrl-C is for us only, and a half-drawn picture is still finished. */
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    const int to[] = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
    for (int i = 0; i < 3 && !reason; i++)
        reason = posix_spawn_file_actions_adddup2(&actions, i < 2 ? in_and_out : complaints, to[i]);
    if (!reason)
        reason = posix_spawnp(pid, arguments[0], &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return reason;
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

/* How a conversation goes on, or ended. */
enum { ENDED, GOES_ON, SILENT, TOO_MUCH, NO_MEMORY = -1 };

/* Sends script [n], n > 0, and reads to the end, or until gnuplot (*pid, 0 once it is no more) is dead and
   nothing is left of what it wrote. */
static int exchange(int socket, pid_t *pid, int *how, const char *script, size_t n, char **data, size_t *size)
{
    int more = GOES_ON, silent = 0, limit = patience;
    while (more == GOES_ON) {
        struct pollfd p     = {.fd = socket, .events = (short)(n ? POLLIN | POLLOUT : POLLIN)};
        const int     ready = poll(&p, 1, *pid ? 1000 : 0);
        if (ready < 0 && errno != EINTR)
            more = ENDED;
        if (ready < 0)
            limit = hurry;
        if (ready == 0) {
            silent++;
            more = !*pid ? ENDED : silent < limit ? GOES_ON : SILENT;
            if (more == GOES_ON && waitpid(*pid, how, WNOHANG) > 0)
                *pid = 0;
        }
        if (ready <= 0)
            continue;
        silent = 0;
        if (n && p.revents & (POLLOUT | POLLERR | POLLHUP))
            send_some(socket, &script, &n);
        if (p.revents & (POLLIN | POLLERR | POLLHUP))
            more = *size < MOST_BYTES ? receive_some(socket, data, size) : TOO_MUCH;
    }
    return more;
}

/* Waits for the end of a gnuplot that has closed its output; one that does not end is killed, with all that
   it has started. */
static void await_end(pid_t pid, int *how, int is_over)
{
    const int step = 5; /* milliseconds */
    for (int waited = 0; pid; waited += step) {
        const pid_t ended = waitpid(pid, how, WNOHANG);
        if (ended > 0 || (ended < 0 && errno != EINTR))
            return;
        if (is_over || waited >= 1000 * hurry) {
            kill(-pid, SIGKILL);
            while (waitpid(pid, how, 0) < 0 && errno == EINTR)
                ;
            return;
        }
        poll(NULL, 0, step);
    }
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
    char      complaint[LONGEST_COMPLAINT];
    pid_t     pid;
    int       how    = -1;
    const int reason = start_gnuplot(&pid, ends[1], fileno(complaints));
    close(ends[1]);
    ends[1] = -1;
    if (reason)
        return fail_to_start(reason, err);
    const int end = exchange(ends[0], &pid, &how, script, script_size, output, size);
    await_end(pid, &how, end != ENDED);
    const int status = WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    if (end == NO_MEMORY)
        return pe_draw_fail(err, POSENC_ERROR_MEMORY,
                            "not enough memory for a picture of more than %zu bytes", *size);
    if (end == SILENT)
        return pe_draw_fail(
            err, POSENC_ERROR_FILE,
            "gnuplot does not answer and was ended; try the picture again, or write its numbers "
            "(.csv)");
    if (end == TOO_MUCH)
        return pe_draw_fail(err, POSENC_ERROR_FILE,
                            "gnuplot wrote more than %d bytes and was ended; ask for a smaller picture",
                            (int)MOST_BYTES);
    if (status == 0 && *size > 0)
        return POSENC_OK;
    read_complaint(complaints, complaint);
    /* Some C libraries find out only in the child that there is no such program, and it says nothing; a
       gnuplot whose own libraries cannot be loaded ends in the same way, but complains. */
    if (status == 127 && !complaint[0])
        return fail_to_start(ENOENT, err);
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
    const int           is_one = !status && *version >= '0' && *version <= '9';
    free(version);
    return status || is_one ? status : fail_as_another(err, "version");
}

/* ---------------------------------------------------------------- pictures ------------------ */

/* Has it a title, which a report replaces, and does each element that begins end? Not where gnuplot went on
   after a write that failed. */
static int is_whole_svg(const char *at)
{
    enum { ELEMENT = 4 };
    static const char *const ends[][2] = {
        {"<?", "?>"}, {"<!--", "-->"}, {"<![CDATA[", "]]>"}, {"<!", ">"}, [ELEMENT] = {"<", ">"}};
    int open = 0;
    if (!strstr(at, "<title>"))
        return 0;
    while ((at = strchr(at, '<'))) {
        int kind = 0;
        while (strncmp(at, ends[kind][0], strlen(ends[kind][0])) != 0)
            kind++;
        const char *end = strstr(at, ends[kind][1]);
        if (!end)
            return 0;
        if (at[1] == '/')
            open--;
        else if (kind == ELEMENT && end[-1] != '/')
            open++;
        at = end;
    }
    return open == 0;
}

/* clang-format off */
/* width and height are variables that the script sets first, in pixels. */
static const struct format {
    const char *ending, *terminal, *head, *tail; /* what every file of that kind begins with, and ends with */
    int (*is_whole)(const char *picture);        /* NULL: these are enough */
} formats[] = {
    {".png", "if (strstrt(GPVAL_TERMINALS, ' pngcairo ')) {\n"
             "set terminal pngcairo size width,height font 'Sans,13' background 'white'\n"
             "} else {\nset terminal png size width,height font 'Sans,11' background 'white'\n}",
             "\x89PNG\r\n\x1a\n", "IEND\xae\x42\x60\x82", NULL},
    {".svg", "set terminal svg size width,height dynamic font 'sans-serif,16' background 'white'",
             "<?xml ", "</svg>", is_whole_svg},
    {".pdf", "set terminal pdfcairo size width/100.0,height/100.0 font 'Sans,12.5' background 'white'",
             "%PDF-", "%%EOF", NULL},
    {".csv", "", "", "", NULL}, /* numbers: nothing to draw */
};
/* clang-format on */

enum { FORMATS = sizeof formats / sizeof *formats };

/* The format of a path's ending, or NULL. */
static const struct format *format_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    for (int i = 0; dot && i < FORMATS; i++)
        if (!strcasecmp(dot, formats[i].ending))
            return &formats[i];
    return NULL;
}

posenc_status pe_gnuplot_path_check(const char *path, posenc_error *err)
{
    if (format_of(path))
        return POSENC_OK;
    return pe_draw_fail(err, POSENC_ERROR_ARGUMENT,
                        "%.120s: a picture's name must end in .png, .svg, .pdf or .csv", path);
}

/* Begins and ends as a picture of that kind, but for blanks at its end? */
static int is_picture(const char *picture, size_t size, const struct format *format)
{
    const size_t head = strlen(format->head), tail = strlen(format->tail);
    while (size && strchr(" \r\n", picture[size - 1]) && picture[size - 1])
        size--;
    return size >= head + tail && !memcmp(picture, format->head, head) &&
           !memcmp(picture + size - tail, format->tail, tail) &&
           (!format->is_whole || format->is_whole(picture));
}

/* terminal: NULL: the format's own. */
static posenc_status draw_figure(const pe_figure *figure, const struct format *format, const char *terminal,
                                 char **output, size_t *size, posenc_error *err)
{
    char  *script = NULL;
    size_t script_size;
    FILE  *to = open_memstream(&script, &script_size);
    terminal  = terminal ? terminal : format->terminal;
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
    if (status || is_picture(*output, *size, format))
        return status;
    free(*output);
    *output = NULL;
    return fail_as_another(err, format->ending);
}

posenc_status pe_gnuplot_file(const pe_figure *figure, const char *path, posenc_error *err)
{
    char             *picture;
    size_t            size;
    posenc_whole_file file;
    posenc_status     status = pe_gnuplot_path_check(path, err);
    if (!status)
        status = draw_figure(figure, format_of(path), NULL, &picture, &size, err);
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
    return draw_figure(figure, format_of(".svg"), terminal, svg, &size, err);
}
