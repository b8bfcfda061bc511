/* SPDX-License-Identifier: MIT */
/*
 * Bytes from and to the outside. Calls look blocking, but only the task waits.
 *
 *     char   line[512];
 *     size_t got;
 *     while (janus_io_read(io, line, sizeof line, &got) == JANUS_OK) {
 *         if (janus_io_write(io, line, got, NULL) != JANUS_OK) break;
 *     }
 *     janus_io_close(io);
 *
 * A janus_io is a handle: two words that a program copies freely. It carries rights. net.h, file.h
 * and process.h make handles. Making one needs a capability (:service and :cluster hold it
 * implicitly, :sovereign holds nothing). Afterwards the handle is enough. The rights net.adopt and
 * process.signal concern the whole process, so a task in a pool needs a capability for them.
 *
 * Ends. A call returns OK exactly if what it promises has happened, and CANCELLED exactly if
 * nothing has: a cancel never loses a byte. Calls that transfer everything report how much they
 * transferred, also when they fail. The task that made a handle owns it, and its end closes the
 * handle, unless the handle is `kept` or was given to another task. The owner pays 512 bytes of
 * memory for it. So by default, with 1 MiB, a task can own some 2,000 handles. A task that accepts
 * more lets others take them (janus_io_take, or janus_serve).
 *
 * One task or thread at a time reads, and one writes. A second reader gets STATE. Several may
 * accept from one listener, or use one datagram socket. They take turns, oldest call first.
 *
 * Each transfer costs one op and one syscall of the task's budget, however long it waits. Each
 * question to the system, such as an address, costs as much. Waiting without a transfer costs one
 * op. Closing and setting a deadline cost nothing. A function in janus_blocking pays syscalls from
 * its task's budget. A callback that a task registered transfers nothing: it gets STATE.
 *
 * Errors that many calls share. The lists below name these statuses, and say more only where they
 * have another meaning:
 *
 *   INVALID           an argument makes no sense, or the handle names none
 *   STALE             the handle was closed
 *   CAP_RIGHT         the handle lacks the right; in janus_io_adopt and the like, the capability
 *   STATE             this process was forked, and has made no scheduler since; or the call may
 *                     wait, and runs in a callback. Every call may return it
 *   FULL              65,535 calls use the handle. Every call with a handle may return it
 *   NO_NET_CAP        the task has no capability and needs one; NO_FILE_CAP and NO_PROCESS_CAP,
 *                     too. A call that may return it may also return the other errors of
 *                     janus_cap_check_in, such as CAP_REVOKED
 *   HANDLE_LIMIT      as many handles live as the capability, the pool or the scheduler allows. A
 *                     call that needs no right may return it, too, and CAP_REVOKED and the like
 *   BUDGET_EXHAUSTED  the budget allows no transfer, or has no memory for the handle. A task whose
 *                     budget nobody refills ends in the call instead, see charge.h
 *   DEADLOCK          simulated runs: no task is left that could end the wait
 *   NO_MEMORY         the system has none
 *   UNAVAILABLE       a call that makes a handle: the system gives no random numbers
 *   SYSTEM            another error of the system; janus_explain names it
 */
#ifndef JANUSRT_IO_H
#define JANUSRT_IO_H

#include <janusrt/export.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <janusrt/task.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Names an open stream, listener, socket or file; all zero names none. */
typedef struct janus_io {
    uint64_t opaque[2];
} janus_io;

/* The two directions. A call that takes `ways` takes one of them or both. */
enum janus_io_way {
    JANUS_IO_READ = 1,
    JANUS_IO_WRITE = 2,
    JANUS_IO_BOTH = 3,
};

/* What a handle allows. */
enum janus_io_right {
    JANUS_IO_MAY_READ = 1,
    JANUS_IO_MAY_WRITE = 2,
    JANUS_IO_MAY_ACCEPT = 4,
    JANUS_IO_MAY_CLOSE = 8, /* also: set deadlines, shut down, give, release */
    JANUS_IO_MAY_ALL = 15,
};

/* What lies behind a handle. */
typedef enum janus_io_kind {
    JANUS_IO_KIND_STREAM = 1, /* a connected socket */
    JANUS_IO_KIND_LISTENER,
    JANUS_IO_KIND_DATAGRAM,
    JANUS_IO_KIND_PIPE,
    JANUS_IO_KIND_FILE, /* a regular file, a block device */
    JANUS_IO_KIND_TERMINAL,
    JANUS_IO_KIND_DIRECTORY,
    JANUS_IO_KIND_PROCESS,
    JANUS_IO_KIND_OTHER, /* anything else that can be polled */
} janus_io_kind;

/* A piece of memory, as struct iovec. */
typedef struct janus_io_piece {
    void  *bytes;
    size_t count;
} janus_io_piece;

/* The most pieces of one call. */
#define JANUS_IO_PIECES_MAX 64

/* No deadline. */
#define JANUS_IO_NEVER UINT64_MAX

typedef struct janus_io_options {
    size_t      struct_bytes; /* sizeof this struct; JANUS_IO_OPTIONS sets it */
    bool        kept;         /* it outlives the task that makes it; somebody must close it. It
                                 ends with the nursery of the capability or pool that counts it */
    const char *name;         /* for dumps, copied, at most 31 bytes; NULL: none */
} janus_io_options;
#define JANUS_IO_OPTIONS(...) JANUS_OPTIONS_(janus_io_options, __VA_ARGS__)

/* What is known about a handle. */
typedef struct janus_io_info {
    size_t        struct_bytes; /* sizeof this struct; JANUS_IO_INFO sets it */
    janus_io_kind kind;
    uint32_t      rights;
    uint32_t      waits;                         /* JANUS_IO_ bits: somebody waits there */
    int           descriptor;                    /* to show; it is the library's */
    uint64_t      read_bytes, written_bytes;     /* so far */
    uint64_t      read_deadline, write_deadline; /* JANUS_IO_NEVER: none */
    char          name[32];
    char          peer[112]; /* the other end as text, "127.0.0.1:80"; "": unknown */
} janus_io_info;
#define JANUS_IO_INFO() JANUS_SIZED_(janus_io_info)

JANUS_BEGIN_DECLS

/*
 * Reads what is there, at least one byte and at most `max`. Waits if there is nothing. Of a
 * datagram socket it reads one datagram, which may have no bytes.
 *
 * Context: a task, or a plain thread, which blocks.
 * Yields:  if nothing is there, or the turn is over.
 * Owns:    `to` stays the caller's. The library uses it only during the call.
 * Cost:    1 op and 1 syscall of the budget; one system call, and a switch each way if it waits.
 * Errors:  CLOSED     the other end sends no more, or the handle was closed; *out_got is 0
 *          CANCELLED  the task is cancelled, and no byte was taken
 *          DEADLINE   the handle's deadline for reading passed
 *          RESET      the other end has reset the connection
 *          UNREACHABLE  the network says that there is no way to the other end any more
 *          REFUSED    a datagram socket: an earlier datagram was refused
 *          STATE      another task or thread reads there; or it is a directory, or not connected
 *          FULL       no descriptor to wait with; or too many blocking calls wait for helpers
 *          UNAVAILABLE  it is a process
 *          CAP_RIGHT, STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_read(janus_io io, void *to, size_t max,
                                                     size_t *out_got);

/*
 * Reads exactly `count` bytes.
 *
 * Context: as janus_io_read.
 * Yields:  as janus_io_read.
 * Owns:    as janus_io_read.
 * Cost:    as janus_io_read, for each transfer.
 * Errors:  as janus_io_read. On any error *out_got bytes were read; out_got may be NULL. CLOSED:
 *          fewer came.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_read_full(janus_io io, void *to, size_t count,
                                                          size_t *out_got);

/*
 * Reads into several pieces, as janus_io_read. Fills each before the next.
 *
 * Context: as janus_io_read.
 * Yields:  as janus_io_read.
 * Owns:    as janus_io_read.
 * Cost:    as janus_io_read, for all pieces together.
 * Errors:  as janus_io_read. INVALID: more than JANUS_IO_PIECES_MAX pieces, or no byte to read.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_readv(janus_io io, const janus_io_piece *pieces,
                                                      uint32_t count, size_t *out_got);

/*
 * Reads what is there, and never waits.
 *
 * Context: as janus_io_read.
 * Yields:  only if the turn is over.
 * Owns:    as janus_io_read.
 * Cost:    as janus_io_read, without a wait.
 * Errors:  as janus_io_read. WOULD_WAIT: nothing is there.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_try_read(janus_io io, void *to, size_t max,
                                                         size_t *out_got);

/*
 * Writes all `count` bytes. Waits while the other end takes none.
 *
 * Context: a task, or a plain thread, which blocks.
 * Yields:  if there is no room, or the turn is over.
 * Owns:    `from` stays the caller's. The library uses it only during the call.
 * Cost:    1 op and 1 syscall of the budget for each transfer; usually one system call.
 * Errors:  CANCELLED  the task is cancelled. *out_done says how many bytes were taken
 *          BROKEN     nobody reads at the other end any more
 *          RESET      the other end has reset the connection
 *          UNREACHABLE  the network says that there is no way to the other end any more
 *          DEADLINE   the handle's deadline for writing passed
 *          CLOSED     the handle was closed meanwhile
 *          STATE      another task or thread writes there; or it is not connected
 *          FULL       the disk is full; or as janus_io_read
 *          CAP_LIMIT  a file: the capability has fewer bytes left to write
 *          DENIED     the system forbids it
 *          UNAVAILABLE, REFUSED as janus_io_read
 *          CAP_RIGHT, STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 *          On any error *out_done bytes were taken; out_done may be NULL.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_write(janus_io io, const void *from, size_t count,
                                                      size_t *out_done);

/*
 * Writes all pieces, as janus_io_write.
 *
 * Context: as janus_io_write.
 * Yields:  as janus_io_write.
 * Owns:    as janus_io_write.
 * Cost:    as janus_io_write, for all pieces together.
 * Errors:  as janus_io_write. INVALID: more than JANUS_IO_PIECES_MAX pieces.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_writev(janus_io io, const janus_io_piece *pieces,
                                                       uint32_t count, size_t *out_done);

/*
 * Writes what there is room for, and never waits.
 *
 * Context: as janus_io_write.
 * Yields:  only if the turn is over.
 * Owns:    as janus_io_write.
 * Cost:    as janus_io_write, without a wait.
 * Errors:  as janus_io_write. WOULD_WAIT: there is no room, and nothing was written.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_try_write(janus_io io, const void *from,
                                                          size_t count, size_t *out_done);

/*
 * Waits until it is worth trying to read, or to write, and takes no byte. A server calls this
 * between requests, so that a connection that idles needs no buffer.
 *
 * Context: a task, or a plain thread, which blocks. `way` is one direction.
 * Yields:  unless it is known to be ready.
 * Owns:    nothing.
 * Cost:    1 op; a switch each way.
 * Errors:  CLOSED     the handle was closed
 *          CANCELLED, DEADLINE, STATE, FULL as janus_io_read, for that direction
 *          CAP_RIGHT, STALE, INVALID, NO_MEMORY, SYSTEM
 *          An end of the stream, or its reset, is OK: the next read reports it.
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_wait(janus_io io, uint32_t way);

/*
 * Sets the deadline of one direction or both. A call that reaches it returns DEADLINE, and so does
 * every later call, until the deadline is set anew. A task that waits there follows the new one.
 *
 * Context: anyone. `deadline_ns` is on the clock of janus_now_ns; JANUS_IO_NEVER: none.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    a store. Timers are armed by waits, and seldom.
 * Errors:  CAP_RIGHT, STALE, INVALID
 */
JANUS_API janus_status janus_io_set_deadline(janus_io io, uint32_t ways, uint64_t deadline_ns);

/*
 * Ends one direction of a connection. After WRITE, the other end reads all that was sent, and then
 * the end. After READ, reads return CLOSED, also those that wait.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    nothing; the handle stays open.
 * Cost:    a system call.
 * Errors:  STATE        it is not connected
 *          UNAVAILABLE  it is no socket
 *          CAP_RIGHT, STALE, INVALID
 */
JANUS_API janus_status janus_io_shutdown(janus_io io, uint32_t ways);

/*
 * Closes. Calls that wait there return CLOSED. Never waits. Bytes that were written are still sent.
 * A socket with unread bytes resets its connection: shut down and read to the end first.
 * To end a connection that another task still uses, shut it down instead, and let that task close.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    takes the handle, and all copies of it.
 * Cost:    some system calls.
 * Errors:  CAP_RIGHT, STALE. A handle that names none: OK.
 */
JANUS_API janus_status janus_io_close(janus_io io);

/*
 * Makes a handle for the same thing with fewer rights.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    *out is a name: the same close ends both.
 * Cost:    some 50 ns. Calls with a narrowed handle take some 20 ns longer.
 * Errors:  CAP_WIDENS  `io` lacks one of the rights
 *          STALE, INVALID
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_attenuate(janus_io io, uint32_t rights,
                                                          janus_io *out);

/*
 * Gives a handle to the current task: from now on its end closes the handle. The task that had it
 * before is no longer charged. A child calls this for a handle that its parent made. The parent
 * must not end before the child has taken the handle.
 *
 * Context: a task.
 * Yields:  only if the turn is over.
 * Owns:    the current task owns what `io` names.
 * Cost:    two locks.
 * Errors:  STATE             not in a task
 *          HANDLE_LIMIT      the task's capability, pool or scheduler has no place for it. A move
 *                            inside a full limit needs none
 *          BUDGET_EXHAUSTED  the task has not the memory that the handle costs
 *          CAP_RIGHT, STALE, INVALID, NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_take(janus_io io);

/*
 * Makes a handle for a descriptor of the system. Its flags stay as they are: other processes may
 * share them. A listener must be non-blocking.
 *
 * Context: anyone with the right net.adopt.
 * Yields:  only if the turn is over.
 * Owns:    takes `fd` if OK.
 * Cost:    1 op and 1 syscall of the budget; some system calls.
 * Errors:  NO_NET_CAP   the task may not
 *          UNAVAILABLE  in a simulated run
 *          FULL         as many handles as the process can have
 *          INVALID      `fd` is no open descriptor, or a listener that blocks
 *          HANDLE_LIMIT, BUDGET_EXHAUSTED, NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_adopt(int fd, const janus_io_options *options,
                                                      janus_io *out);

/*
 * Takes the descriptor out of a handle, and ends the handle. No limit counts the descriptor any
 * more.
 *
 * Context: anyone with the right net.adopt. Nobody uses the handle meanwhile.
 * Yields:  only if the turn is over.
 * Owns:    *out_fd becomes the caller's.
 * Cost:    a system call.
 * Errors:  STATE        a call uses the handle
 *          UNAVAILABLE  in a simulated run; or it is a process
 *          NO_NET_CAP, CAP_RIGHT, STALE, INVALID
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_release(janus_io io, int *out_fd);

/*
 * Waits until a descriptor of another library is ready, as poll(2) does, but only the task waits.
 *
 * Context: a task with the right net.adopt, or a plain thread, which blocks.
 * Yields:  unless it is ready.
 * Owns:    `fd` stays the caller's, and open until the call has returned.
 * Cost:    1 op and 1 syscall; a registration each time.
 * Errors:  DEADLINE     it passed first
 *          CANCELLED    the task is cancelled
 *          INVALID      `fd` is no open descriptor. A file is always ready, as for poll(2)
 *          UNAVAILABLE  in a simulated run
 *          FULL         the process has no descriptor left
 *          NO_NET_CAP, HANDLE_LIMIT, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_wait_fd(int fd, uint32_t ways, uint64_t deadline_ns,
                                                        uint32_t *out_ready);

/*
 * A handle for the standard input, output or error (0, 1, 2). The descriptor stays the process's:
 * closing the handle leaves it open, and its flags are not changed.
 *
 * Context: anyone with the right file.read or file.write.
 * Yields:  only if the turn is over.
 * Owns:    *out as with janus_io_adopt.
 * Cost:    1 op and 1 syscall of the budget; some system calls.
 * Errors:  NO_FILE_CAP  the task may not
 *          INVALID      the stream is closed, or has not that direction
 *          FULL         no descriptor is left, or as many handles as the process can have
 *          UNAVAILABLE  in a simulated run
 *          HANDLE_LIMIT, BUDGET_EXHAUSTED, NO_MEMORY
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_standard(int which, const janus_io_options *options,
                                                         janus_io *out);

/*
 * Copies what is known about a handle.
 *
 * Context: anyone. Any right will do.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; JANUS_IO_INFO initialises it.
 * Cost:    a copy.
 * Errors:  STALE, INVALID
 */
JANUS_API janus_status janus_io_inspect(janus_io io, janus_io_info *out);

JANUS_END_DECLS
#endif
