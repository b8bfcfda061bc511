/* SPDX-License-Identifier: MIT */
/*
 * Child processes. Only the task waits.
 *
 *     const char *const arguments[] = {"sort", "-u", NULL};
 *     janus_io          sort, pipes[3];
 *     janus_process_end end;
 *     if (janus_process_start("/usr/bin/sort", arguments,
 *                             JANUS_PROCESS_OPTIONS(.streams = {JANUS_PROCESS_STREAM_PIPE,
 *                                                               JANUS_PROCESS_STREAM_PIPE}),
 *                             &sort, pipes) != JANUS_OK) return -100;
 *     ... janus_io_write(pipes[0], ...); janus_io_close(pipes[0]); janus_io_read(pipes[1], ...)
 *     if (janus_process_wait(sort, &end) == JANUS_OK && end.code == 0) ...
 *     janus_io_close(sort);
 *
 * A process is a janus_io of the kind PROCESS. JANUS_IO_MAY_READ allows to wait for it,
 * JANUS_IO_MAY_WRITE to send signals, JANUS_IO_MAY_CLOSE to close it. A deadline of the direction
 * READ bounds waits.
 *
 * Closing the handle ends the process: the library kills it (SIGKILL) and collects what is left of
 * it. The end of the task that started it closes the handle, as with every handle. A process that
 * was started `detached` goes on. In both cases the library leaves no zombie.
 *
 * The child has no descriptor of the library, an empty signal mask, and the default effect of
 * SIGPIPE. The program must not collect children by itself (wait(2) for any child, SIGCHLD
 * ignored): then the library cannot know how a process ended.
 */
#ifndef JANUSRT_PROCESS_H
#define JANUSRT_PROCESS_H

#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where a standard stream of the child leads. */
typedef enum janus_process_stream {
    JANUS_PROCESS_STREAM_NULL = 0,  /* nowhere: /dev/null */
    JANUS_PROCESS_STREAM_INHERITED, /* where that of this process leads */
    JANUS_PROCESS_STREAM_PIPE,      /* a new pipe, whose other end the caller gets */
    JANUS_PROCESS_STREAM_HANDLE,    /* a handle of the caller; see `handles` */
} janus_process_stream;

typedef struct janus_process_options {
    size_t               struct_bytes; /* sizeof this struct; JANUS_PROCESS_OPTIONS sets it */
    const char *const   *environment; /* "NAME=value", and NULL at the end. NULL: as this process */
    janus_io             directory;   /* a handle of the kind DIRECTORY. None: as this process */
    janus_io             handles[3];  /* for JANUS_PROCESS_STREAM_HANDLE. The child shares them */
    janus_process_stream streams[3];  /* standard input, output, error */
    bool                 search;      /* a name without a slash is searched in PATH */
    bool                 detached;    /* closing the handle lets it live */
    bool                 kept;        /* as in janus_io_options */
    const char          *name;        /* as in janus_io_options */
} janus_process_options;
#define JANUS_PROCESS_OPTIONS(...) JANUS_OPTIONS_(janus_process_options, __VA_ARGS__)

/* How a process ended. */
typedef struct janus_process_end {
    int32_t code;   /* what it returned; 0 if a signal ended it */
    int32_t signal; /* what ended it; 0: it returned */
} janus_process_end;

typedef struct janus_process_info {
    size_t            struct_bytes; /* sizeof this struct; JANUS_PROCESS_INFO sets it */
    int64_t           id;           /* the system's number. It may name another process later */
    bool              ended;        /* somebody has waited for it */
    janus_process_end end;          /* if it has ended */
} janus_process_info;
#define JANUS_PROCESS_INFO() JANUS_SIZED_(janus_process_info)

JANUS_BEGIN_DECLS

/*
 * Starts a program. `arguments` begins with the name that the program sees, and ends with NULL.
 *
 * Handles that the child shares keep their flags. Those of this library do not block, so a child
 * may read EAGAIN from them. New pipes block at the child's end.
 *
 * Context: a task with the right process.spawn, or a plain thread.
 * Yields:  always, in a task.
 * Owns:    *out is the caller's; see io.h. out_pipes[i] is the caller's end of each new pipe, and
 *          names none elsewhere; NULL if no stream is a pipe.
 * Cost:    1 op and 1 syscall of the budget; a helper, some 500 us.
 * Errors:  NOT_FOUND       there is no such program
 *          DENIED          the system forbids to run it
 *          NO_PROCESS_CAP  the task may not
 *          HANDLE_LIMIT    as many processes live as the capability allows; or no place for a pipe
 *          CAP_LIMIT       detached, under a capability or in a pool: it would escape the limit
 *          FULL            no descriptor or no process is left; or too many blocking calls wait
 *          UNAVAILABLE     in a simulated run; or the kernel has no pidfd_open (before 5.3)
 *          CANCELLED       nothing was started
 *          STATE           `directory` is no directory; or a part of the path is a file
 *          CAP_RIGHT       a handle for a stream has not its direction
 *          STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_process_start(const char                  *path,
                                                           const char *const           *arguments,
                                                           const janus_process_options *options,
                                                           janus_io *out, janus_io *out_pipes);

/*
 * Waits until a process has ended, and says how. It may be called again, with the same answer.
 *
 * Context: a task, or a plain thread, which blocks. One waits at a time.
 * Yields:  until it has ended.
 * Owns:    *out is the caller's. The handle stays open.
 * Cost:    1 op and 1 syscall of the budget; one or two system calls.
 * Errors:  CANCELLED    the task is cancelled. The process goes on
 *          DEADLINE     the handle's deadline for reading passed. The process goes on
 *          CLOSED       the handle was closed meanwhile, and the process killed
 *          STATE        another task or thread waits for it, or the handle is no process
 *          SYSTEM       the program has collected this child itself: nobody knows how it ended
 *          FULL         no descriptor to wait with
 *          CAP_RIGHT, STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_process_wait(janus_io process, janus_process_end *out);

/*
 * Sends a signal to a process; 0: none, but asks whether it lives.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    1 op and 1 syscall of the budget; a system call.
 * Errors:  CLOSED  it has ended
 *          DENIED  it runs as another user
 *          STATE   the handle is no process
 *          CAP_RIGHT, STALE, INVALID, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_process_signal(janus_io process, int number);

/*
 * Copies what is known about a process.
 *
 * Context: anyone. Any right will do.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; JANUS_PROCESS_INFO initialises it.
 * Cost:    a copy.
 * Errors:  STATE  the handle is no process
 *          STALE, INVALID
 */
JANUS_NODISCARD JANUS_API janus_status janus_process_inspect(janus_io            process,
                                                             janus_process_info *out);

JANUS_END_DECLS
#endif
