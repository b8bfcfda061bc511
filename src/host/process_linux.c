/* SPDX-License-Identifier: MIT */
/*
 * Child processes of Linux.
 *
 * [process-pidfd]  A child is known by a pidfd, which can be polled and never names another
 *   process. Nobody but this file collects the child, so its number names it until then.
 *
 * [process-reaper]  A process whose handle was closed must still be collected when it ends, or it
 *   stays as a zombie. A killed process may take a while to end, and closing never waits. So closed
 *   ones go to a list. While it has any, a thread sleeps in poll on their pidfds and collects them.
 *   If the thread cannot be started, the next start or close of a process collects instead.
 *
 * Locks: reaper.lock.
 */
#include "host/process.h"

#include "host/file.h"
#include "plat/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { P_PIDFD_ = 3 }; /* P_PIDFD, which older headers lack */

static int open_pidfd(pid_t child)
{
    int fd = (int)syscall(SYS_pidfd_open, child, 0);
    return fd >= 0 ? fd : -errno;
}

/* Starting. */

/* The child's descriptors, copied to numbers from 3 on, so that none is overwritten too early. */
struct sources {
    int streams[3], directory;
};

static void close_sources(const struct sources *sources)
{
    for (int i = 0; i < 3; i++) {
        if (sources->streams[i] >= 0) (void)close(sources->streams[i]);
    }
    if (sources->directory >= 0) (void)close(sources->directory);
}

static int copy_sources(const struct jrt_process_plan *plan, struct sources *out)
{
    int error = 0;
    *out = (struct sources){{-1, -1, -1}, -1};
    for (int i = 0; i < 3 && error == 0; i++) {
        if (plan->streams[i] < 0) continue;
        out->streams[i] = jrt_descriptor_copy(plan->streams[i]);
        if (out->streams[i] < 0) error = out->streams[i];
    }
    if (error == 0 && plan->directory >= 0) {
        out->directory = jrt_descriptor_copy(plan->directory);
        if (out->directory < 0) error = out->directory;
    }
    if (error != 0) close_sources(out);
    return error;
}

static int fill_actions(posix_spawn_file_actions_t *actions, const struct jrt_process_plan *plan,
                        const struct sources *sources)
{
    int error = 0;
    for (int i = 0; i < 3 && error == 0; i++) {
        if (plan->streams[i] >= 0) {
            error = posix_spawn_file_actions_adddup2(actions, sources->streams[i], i);
        } else if (plan->streams[i] == JRT_PROCESS_NOWHERE) {
            error = posix_spawn_file_actions_addopen(actions, i, "/dev/null", O_RDWR, 0);
        }
    }
    if (error == 0 && sources->directory >= 0) {
        error = posix_spawn_file_actions_addfchdir_np(actions, sources->directory);
    }
    return -error;
}

static int fill_attributes(posix_spawnattr_t *attributes)
{
    sigset_t none, defaults;
    sigemptyset(&none);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGPIPE);
    int error = posix_spawnattr_setsigmask(attributes, &none);
    if (error == 0) error = posix_spawnattr_setsigdefault(attributes, &defaults);
    if (error == 0) {
        error =
            posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    }
    return -error;
}

static int spawn(const struct jrt_process_plan *plan, const struct sources *sources, pid_t *out)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t          attributes;
    if (posix_spawn_file_actions_init(&actions) != 0) return -ENOMEM;
    if (posix_spawnattr_init(&attributes) != 0) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return -ENOMEM;
    }
    char *const *arguments = (char *const *)(uintptr_t)plan->arguments;
    char *const *environment =
        plan->environment != NULL ? (char *const *)(uintptr_t)plan->environment : environ;
    int error = fill_actions(&actions, plan, sources);
    if (error == 0) error = fill_attributes(&attributes);
    if (error == 0) {
        error = -(plan->search ? posix_spawnp : posix_spawn)(out, plan->path, &actions, &attributes,
                                                             arguments, environment);
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void sweep(void);

/* The child runs: opens its pidfd, [process-pidfd], or ends it. */
static int name_child(pid_t child, struct jrt_process *process)
{
    process->id = child;
    process->fd = open_pidfd(child);
    if (process->fd >= 0) return 0;
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR) continue;
    return process->fd;
}

int jrt_process_start(const struct jrt_process_plan *plan, struct jrt_process **out)
{
    struct sources sources;
    pid_t          child = 0;
    int            probe = open_pidfd(getpid()); /* before anything runs */
    if (probe < 0) return probe;
    (void)close(probe);
    sweep();
    struct jrt_process *process = jrt_calloc(1, sizeof *process);
    if (process == NULL) return -ENOMEM;
    int error = copy_sources(plan, &sources);
    if (error == 0) {
        error = spawn(plan, &sources, &child);
        close_sources(&sources);
    }
    if (error == 0) error = name_child(child, process);
    if (error != 0) {
        free(process);
        return error == -EAGAIN ? -EMFILE : error; /* as many processes as the user may have */
    }
    *out = process;
    return 0;
}

int jrt_process_pipe(bool input, int *out_ours, int *out_childs)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return -errno;
    *out_ours = ends[input ? 1 : 0];
    *out_childs = ends[input ? 0 : 1];
    (void)fcntl(*out_ours, F_SETFL, fcntl(*out_ours, F_GETFL) | O_NONBLOCK); /* not the child's */
    return 0;
}

/* Ending. */

int jrt_process_look(struct jrt_process *process)
{
    siginfo_t info = {.si_pid = 0};
    int       error;
    if (process->ended) return process->lost ? -ECHILD : 1;
    do error = waitid((idtype_t)P_PIDFD_, (id_t)process->fd, &info, WEXITED | WNOHANG);
    while (error != 0 && errno == EINTR);
    if (error != 0) {
        process->ended = process->lost = true;
        return -ECHILD;
    }
    if (info.si_pid == 0) return 0;
    jrt_debug_invariant("process-pidfd", info.si_pid == process->id);
    process->ended = true;
    if (info.si_code == CLD_EXITED) {
        process->end.code = info.si_status;
    } else {
        process->end.signal = info.si_status;
    }
    return 1;
}

int jrt_process_signal(const struct jrt_process *process, int number)
{
    if (process->ended) return -ESRCH;
    return syscall(SYS_pidfd_send_signal, process->fd, number, NULL, 0) == 0 ? 0 : -errno;
}

static struct {
    pthread_mutex_t      lock; /* guards the rest */
    struct jrt_process  *first;
    unsigned             count;
    bool                 runs; /* the thread; it ends when the list is empty */
    int                  bell; /* eventfd, while it runs */
    struct jrt_os_thread thread;
} reaper = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void free_process(struct jrt_process *process)
{
    (void)close(process->fd);
    free(process);
}

/* Collects those that have ended. Under the lock. */
static void sweep_locked(void)
{
    struct jrt_process **at = &reaper.first;
    while (*at != NULL) {
        struct jrt_process *process = *at;
        if (jrt_process_look(process) == 0) {
            at = &process->next;
            continue;
        }
        jrt_debug_invariant("process-reaper", reaper.count > 0 && process->ended);
        *at = process->next;
        reaper.count--;
        free_process(process);
    }
}

static void sweep(void)
{
    jrt_lock(&reaper.lock);
    sweep_locked();
    jrt_unlock(&reaper.lock);
}

/* The bell and the pidfds. NULL: no memory, so the caller looks again after a while. Under the
 * lock. */
static struct pollfd *list_polled(unsigned *out_count)
{
    struct pollfd *polled = jrt_calloc((size_t)reaper.count + 1, sizeof *polled);
    unsigned       count = 0;
    if (polled == NULL) return NULL;
    polled[count++] = (struct pollfd){.fd = reaper.bell, .events = POLLIN};
    for (struct jrt_process *at = reaper.first; at != NULL; at = at->next) {
        polled[count++] = (struct pollfd){.fd = at->fd, .events = POLLIN};
    }
    *out_count = count;
    return polled;
}

static void reaper_main(void *argument)
{
    (void)argument;
    jrt_lock(&reaper.lock);
    for (sweep_locked(); reaper.first != NULL; sweep_locked()) {
        unsigned       count = 0;
        uint64_t       rings;
        struct pollfd *polled = list_polled(&count);
        jrt_unlock(&reaper.lock);
        int ready = poll(polled, count, polled != NULL ? -1 : 100);
        if (ready > 0 && polled != NULL && polled[0].revents != 0) {
            (void)!read(polled[0].fd, &rings, sizeof rings);
        }
        free(polled);
        jrt_lock(&reaper.lock);
    }
    (void)pthread_detach(pthread_self()); /* before the next one may start */
    (void)close(reaper.bell);
    reaper.runs = false;
    jrt_unlock(&reaper.lock);
}

/* Under the lock, [process-reaper]. */
static void call_reaper(void)
{
    uint64_t one = 1;
    if (reaper.runs) {
        (void)!write(reaper.bell, &one, sizeof one);
        return;
    }
    reaper.bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reaper.bell < 0) return;
    reaper.runs = jrt_os_thread_start(&reaper.thread, reaper_main, NULL, "janus-reaper");
    if (!reaper.runs) (void)close(reaper.bell);
}

void jrt_process_abandon(struct jrt_process *process, bool kills)
{
    if (jrt_process_look(process) == 0 && kills) (void)jrt_process_signal(process, SIGKILL);
    if (jrt_process_look(process) != 0) {
        free_process(process);
        return;
    }
    jrt_lock(&reaper.lock);
    process->next = reaper.first;
    reaper.first = process;
    reaper.count++;
    call_reaper();
    jrt_unlock(&reaper.lock);
}

unsigned jrt_process_abandoned(void)
{
    jrt_lock(&reaper.lock);
    sweep_locked();
    unsigned count = reaper.count;
    jrt_unlock(&reaper.lock);
    return count;
}
