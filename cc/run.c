/* SPDX-License-Identifier: MIT */
/* Runs other commands. */
#include "cc/cc.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int wait_for(pid_t child)
{
    int ended = 0;
    while (waitpid(child, &ended, 0) < 0) {
        if (errno != EINTR) cc_refuse("waitpid: %s", strerror(errno));
    }
    return ended;
}

int cc_run(char *const *command)
{
    pid_t child;
    int   error = posix_spawn(&child, command[0], NULL, NULL, command, environ);
    if (error != 0) cc_refuse("%s: %s", command[0], strerror(error));
    int ended = wait_for(child);
    if (WIFSIGNALED(ended)) { /* make and shells must see the same end as without the driver */
        (void)signal(WTERMSIG(ended), SIG_DFL);
        (void)raise(WTERMSIG(ended));
        return 128 + WTERMSIG(ended);
    }
    return WEXITSTATUS(ended);
}

bool cc_ask(char *const *command, char *text, size_t bytes)
{
    int                        ends[2];
    pid_t                      child;
    posix_spawn_file_actions_t actions;
    size_t                     used = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) cc_refuse("no pipe: %s", strerror(errno));
    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO) != 0 ||
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) != 0) {
        cc_refuse("no memory");
    }
    int error = posix_spawn(&child, command[0], &actions, NULL, command, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (error != 0) {
        (void)close(ends[0]);
        return false;
    }
    char    rest[256];
    ssize_t got;
    while ((got = used + 1 < bytes ? read(ends[0], text + used, bytes - 1 - used)
                                   : read(ends[0], rest, sizeof rest)) != 0) {
        if (got < 0 && errno != EINTR) break;
        if (got > 0 && used + 1 < bytes) used += (size_t)got;
    }
    text[used] = '\0';
    (void)close(ends[0]);
    int ended = wait_for(child);
    return WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
}
