/* SPDX-License-Identifier: MIT */
/*
 * short.c: runs a command whose reads and writes are short
 *
 *     short BYTES COMMAND...
 *
 * Every read and write of the command, of its threads and of the programs that it starts moves BYTES bytes at
 * most; of one with several pieces, the first alone. Who goes on where a call ended notices nothing. ptrace
 * does it, as the C library's streams call the system where no library can stand between. What is read of
 * shared libraries stays whole: the loader asks for all or nothing. Status: the command's; 77 where this
 * cannot be done, which is anywhere but on x86-64 Linux.
 */
#define _GNU_SOURCE

#include <stdio.h>
#include <stdlib.h>

enum { CANNOT = 77 };

#if defined(__linux__) && defined(__x86_64__)
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_of_library(pid_t pid, unsigned long long fd)
{
    char link[64], name[256];
    snprintf(link, sizeof link, "/proc/%d/fd/%llu", pid, fd);
    const ssize_t n     = readlink(link, name, sizeof name - 1);
    name[n < 0 ? 0 : n] = 0;
    return strstr(name, ".so") != NULL;
}

/* The third argument of a call that was shortened, which its caller finds unchanged when it returns. */
enum { AT_ONCE = 256 };
static struct {
    pid_t              pid;
    unsigned long long asked;
} changed[AT_ONCE];

static void set_third(pid_t pid, unsigned long long to)
{
    ptrace(PTRACE_POKEUSER, pid, offsetof(struct user, regs.rdx), to);
}

static void restore(pid_t pid)
{
    for (int i = 0; i < AT_ONCE; i++)
        if (changed[i].pid == pid) {
            set_third(pid, changed[i].asked);
            changed[i].pid = 0;
        }
}

/* The third argument says how many bytes, or how many pieces. */
static void shorten(pid_t pid, unsigned long long bytes)
{
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, pid, NULL, &r))
        return;
    if ((long long)r.rax != -ENOSYS) { /* it returns */
        restore(pid);
        return;
    }
    const int is_plain = r.orig_rax == SYS_read || r.orig_rax == SYS_write || r.orig_rax == SYS_pread64 ||
                         r.orig_rax == SYS_pwrite64,
              has_pieces          = r.orig_rax == SYS_readv || r.orig_rax == SYS_writev;
    const unsigned long long most = has_pieces ? 1 : bytes;
    if ((!is_plain && !has_pieces) || r.rdx <= most || is_of_library(pid, r.rdi))
        return;
    for (int i = 0; i < AT_ONCE; i++)
        if (!changed[i].pid) {
            changed[i].pid   = pid;
            changed[i].asked = r.rdx;
            set_third(pid, most);
            return;
        }
}

/* Until the command ends; its status. */
static int follow(pid_t command, unsigned long long bytes)
{
    int   how, status = CANNOT;
    pid_t pid;
    while ((pid = waitpid(-1, &how, __WALL)) > 0) {
        if (!WIFSTOPPED(how)) {
            if (pid == command)
                status = WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
            continue;
        }
        const int stop = WSTOPSIG(how), is_call = stop == (SIGTRAP | 0x80);
        if (is_call)
            shorten(pid, bytes);
        const int is_ours = is_call || stop == SIGTRAP || stop == SIGSTOP;
        ptrace(PTRACE_SYSCALL, pid, NULL, is_ours ? 0L : (long)stop);
    }
    return status;
}

int main(int count, char **words)
{
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    int how;
    if (count < 3)
        return fputs("short BYTES COMMAND...\n", stderr), 2;
    const pid_t command = fork();
    if (!command) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(CANNOT);
        raise(SIGSTOP);
        execvp(words[2], words + 2);
        _exit(127);
    }
    if (waitpid(command, &how, 0) != command || !WIFSTOPPED(how) ||
        ptrace(PTRACE_SETOPTIONS, command, NULL, options) || ptrace(PTRACE_SYSCALL, command, NULL, 0L))
        return CANNOT;
    return follow(command, strtoull(words[1], NULL, 10));
}
#else
int main(void)
{
    fputs("short: this needs Linux on x86-64\n", stderr);
    return CANNOT;
}
#endif
