/* SPDX-License-Identifier: MIT */
/*
 * Sockets: TCP, UDP, Unix. A server of an echo is:
 *
 *     static int64_t serve(janus_io io, void *argument) // one for each connection
 *     {
 *         char   bytes[2048];
 *         size_t got;
 *         while (janus_io_read(io, bytes, sizeof bytes, &got) == JANUS_OK) {
 *             if (janus_io_write(io, bytes, got, NULL) != JANUS_OK) break;
 *         }
 *         return janus_io_close(io);
 *     }
 *
 *     janus_address at;
 *     janus_io      listener;
 *     if (janus_address_parse("127.0.0.1:8080", &at) != JANUS_OK) return -100;
 *     if (janus_listen(&at, NULL, &listener) != JANUS_OK) return -101;
 *     return janus_serve(listener, serve, NULL, NULL, NULL);
 *
 * In a simulated run (a seed, or an exploration) the same calls use a simulated network, and no
 * byte leaves the process.
 */
#ifndef JANUSRT_NET_H
#define JANUSRT_NET_H

#include <janusrt/export.h>
#include <janusrt/io.h>
#include <janusrt/nursery.h>
#include <janusrt/options.h>
#include <janusrt/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum janus_family {
    JANUS_FAMILY_NONE = 0,
    JANUS_FAMILY_IPV4,
    JANUS_FAMILY_IPV6,
    JANUS_FAMILY_UNIX,     /* a path */
    JANUS_FAMILY_ABSTRACT, /* a name that is no path */
} janus_family;

/* The longest path or name of a Unix socket. */
#define JANUS_UNIX_MAX 107

/* An address, by value. */
typedef struct janus_address {
    uint8_t  family; /* janus_family */
    uint8_t  count;  /* bytes used */
    uint16_t port;   /* IPv4, IPv6 */
    uint32_t scope;  /* IPv6: the interface of a link-local address, or 0 */
    uint8_t  bytes[JANUS_UNIX_MAX + 1];
} janus_address;

/* Room for janus_address_text. */
#define JANUS_ADDRESS_TEXT_BYTES 112

typedef struct janus_listen_options {
    size_t      struct_bytes; /* sizeof this struct; JANUS_LISTEN_OPTIONS sets it */
    uint32_t    backlog;      /* 0: 1024 */
    bool        reuse_port;   /* several listeners share the address, SO_REUSEPORT */
    bool        only_v6;      /* "[::]:80" takes no IPv4 */
    bool        kept;         /* as in janus_io_options */
    const char *name;
} janus_listen_options;
#define JANUS_LISTEN_OPTIONS(...) JANUS_OPTIONS_(janus_listen_options, __VA_ARGS__)

typedef struct janus_connect_options {
    size_t               struct_bytes; /* sizeof this struct; JANUS_CONNECT_OPTIONS sets it */
    uint64_t             deadline_ns;  /* 0: none */
    const janus_address *from;         /* binds first, if the capability allows it, too; port 0:
                                          the system chooses one. NULL: it chooses both */
    bool                 delays;       /* leaves Nagle's algorithm on */
    bool                 kept;         /* as in janus_io_options */
    const char          *name;
} janus_connect_options;
#define JANUS_CONNECT_OPTIONS(...) JANUS_OPTIONS_(janus_connect_options, __VA_ARGS__)

/* The process and user at the other end of a Unix socket. */
typedef struct janus_credentials {
    int64_t  process;
    uint32_t user, group;
} janus_credentials;

/* Serves one connection. A negative result is a failure, as a task's. */
typedef int64_t janus_connection_entry(janus_io io, void *argument);

JANUS_BEGIN_DECLS

/*
 * Reads an address: "127.0.0.1:80", "[::1]:80", "[fe80::1%eth0]:80", "unix:/run/x", "unix:@name".
 * Asks no name server.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    nothing.
 * Cost:    some 100 ns; with the name of an interface some system calls.
 * Errors:  INVALID  `text` is no address; *out is not changed
 */
JANUS_NODISCARD JANUS_API janus_status janus_address_parse(const char *text, janus_address *out);

/*
 * Writes an address as janus_address_parse reads it, with a zero at the end, cut to `bytes`.
 *
 * Context: anyone, any thread.
 * Yields:  only if the turn is over.
 * Owns:    `buffer` stays the caller's.
 * Cost:    some 200 ns, or 1 us for IPv6.
 * Errors:  none; an address of no family gives "?". Returns `buffer`.
 */
JANUS_API const char *janus_address_text(const janus_address *address, char *buffer, size_t bytes);

/*
 * Listens for connections. Port 0: the system chooses; janus_io_local says which.
 *
 * Context: anyone with the right net.listen.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; see io.h.
 * Cost:    1 op and 1 syscall of the budget; some system calls.
 * Errors:  IN_USE       somebody listens there
 *          DENIED       the system forbids it
 *          UNREACHABLE  no interface has this address
 *          NO_NET_CAP   the task may not; CAP_LIMIT: not at this address or port
 *          HANDLE_LIMIT as many handles live as the capability allows
 *          FULL         the system has no descriptor left
 *          NOT_FOUND    the folder of a Unix socket does not exist; STATE: it is no folder
 *          CANCELLED, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_listen(const janus_address        *at,
                                                    const janus_listen_options *options,
                                                    janus_io                   *out);

/*
 * Waits for the next connection. If the process has no descriptor left, the call waits until one is
 * closed.
 *
 * Context: a task, or a plain thread, which blocks. Several may wait: first come, first served.
 * Yields:  if no connection waits, or the turn is over.
 * Owns:    *out is the calling task's. `out_peer` may be NULL.
 * Cost:    1 op and 1 syscall of the budget; one or two system calls.
 * Errors:  CLOSED        the listener was closed
 *          HANDLE_LIMIT  as many handles live as the capability allows; the connection waits
 *          CANCELLED     no connection was taken
 *          STATE         it is no listener
 *          FULL          as many handles as the process can have
 *          DENIED        the system forbids this connection
 *          DEADLINE, CAP_RIGHT, STALE, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_accept(janus_io listener, janus_io *out,
                                                    janus_address *out_peer);

/*
 * Serves every connection of a listener with a task that owns it, until the listener is closed or
 * the calling task is cancelled. `entry` gets the connection and `argument`. When the nursery has
 * no room, or as many handles live as may, connections wait in the backlog. A connection that fails
 * does not end the others: the nursery's policy is always WAIT_ALL.
 *
 * `options` are those of the nursery, as a limit of children and the pool of all connections.
 * `each` are those of a connection's task, as its own budget and its stack, without a drop. Both
 * may be NULL. A connection that has used up its budget ends, unless `options` name another policy
 * of exhaustion.
 *
 *     const janus_budget limit = JANUS_BUDGET(.ops = 100000, .memory = 1 << 20, .syscalls = 1000);
 *     return janus_serve(listener, serve, NULL, JANUS_NURSERY_OPTIONS(.max_children = 500),
 *                        JANUS_SPAWN_OPTIONS(.budget = &limit));
 *
 * Context: a task.
 * Yields:  always.
 * Owns:    the connections are the children's; `argument` stays the caller's.
 * Cost:    1 op and 1 syscall for each connection, and a spawn.
 * Errors:  OK            the listener was closed, and all children have ended
 *          CHILD_FAILED  as OK, but a child has failed: its `entry` returned a negative number
 *          CANCELLED, and those of janus_accept and janus_nursery_open
 */
JANUS_NODISCARD JANUS_API janus_status janus_serve(janus_io listener, janus_connection_entry *entry,
                                                   void                        *argument,
                                                   const janus_nursery_options *options,
                                                   const janus_spawn_options   *each);

/*
 * Connects to an address.
 *
 * Context: a task with the right net.connect, or a plain thread, which blocks.
 * Yields:  until the connection stands.
 * Owns:    *out is the caller's; see io.h.
 * Cost:    1 op and 1 syscall of the budget; some system calls.
 * Errors:  REFUSED      nobody listens there
 *          UNREACHABLE  there is no way to it, or nobody answers
 *          NOT_FOUND    the path of a Unix socket does not exist
 *          DEADLINE     options->deadline_ns passed
 *          CANCELLED    no connection was made
 *          NO_NET_CAP   the task may not; CAP_LIMIT: not to this address, or not from options->from
 *          IN_USE       options->from is used
 *          FULL         the system has no descriptor left
 *          RESET, DENIED, HANDLE_LIMIT, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_connect(const janus_address         *to,
                                                     const janus_connect_options *options,
                                                     janus_io                    *out);

/*
 * Looks up the addresses of a name. A numeric address needs no look-up. A nursery with a budget or
 * capabilities has at most 8 look-ups at a time, and so have a scheduler's other tasks together.
 * Further ones wait in order. While many such groups look up, each has fewer, but at least one (up
 * to 48 groups).
 *
 * Context: a task with the right net.resolve, or a plain thread, which blocks.
 * Yields:  until the system answers. A cancelled look-up returns at once.
 * Owns:    *out_count addresses, at most `max`, are written to `out`.
 * Cost:    1 op and 1 syscall of the budget; a thread for names, some milliseconds.
 * Errors:  NOT_FOUND    there is no such name
 *          UNREACHABLE  no name server answers
 *          FULL         simulated runs: too many blocking calls wait for helpers
 *          CANCELLED, NO_NET_CAP, INVALID, NO_MEMORY, BUDGET_EXHAUSTED, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_resolve(const char *host, const char *service,
                                                     janus_address *out, size_t max,
                                                     size_t *out_count);

/*
 * Looks up a name and connects to the first of its addresses that answers. Tries the next address
 * every 250 ms, families in turn, and keeps the first connection.
 *
 * Context: as janus_connect, with the right net.resolve too.
 * Yields:  as janus_connect.
 * Owns:    as janus_connect.
 * Cost:    as janus_resolve and janus_connect.
 * Errors:  as janus_resolve and janus_connect; the error of the first address
 */
JANUS_NODISCARD JANUS_API janus_status janus_connect_name(const char *host, const char *service,
                                                          const janus_connect_options *options,
                                                          janus_io                    *out);

/*
 * Opens a socket for datagrams, bound to `at` (NULL, or port 0: the system chooses a port; then
 * `family` says which kind).
 *
 * Context: anyone with the right net.datagram.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's; see io.h.
 * Cost:    as janus_listen.
 * Errors:  as janus_listen
 */
JANUS_NODISCARD JANUS_API janus_status janus_datagram_open(const janus_address    *at,
                                                           janus_family            family,
                                                           const janus_io_options *options,
                                                           janus_io               *out);

/*
 * Sends one datagram.
 *
 * Context: as janus_io_write. Several may send at once.
 * Yields:  if the system has no room, or the turn is over.
 * Owns:    `from` stays the caller's.
 * Cost:    1 op and 1 syscall.
 * Errors:  INVALID   the datagram is larger than the system sends
 *          REFUSED   an earlier datagram was refused; this one was not sent
 *          CAP_LIMIT the capability forbids this address
 *          STATE     it is no datagram socket, or a janus_io_write is under way there
 *          NOT_FOUND the path of a Unix socket does not exist
 *          NO_NET_CAP, and as janus_io_write
 */
JANUS_NODISCARD JANUS_API janus_status janus_datagram_send(janus_io io, const void *from,
                                                           size_t count, const janus_address *to);

/*
 * Receives one datagram. *out_cut: it was longer than `max`, and the rest is lost. `out_from` and
 * `out_cut` may be NULL.
 *
 * Context: as janus_io_read. Several may wait: first come, first served.
 * Yields:  if none has come, or the turn is over.
 * Owns:    `to` stays the caller's.
 * Cost:    1 op and 1 syscall.
 * Errors:  as janus_io_read. A datagram of no bytes is OK with *out_got 0. STATE: it is no datagram
 *          socket, or a janus_io_read is under way there.
 */
JANUS_NODISCARD JANUS_API janus_status janus_datagram_receive(janus_io io, void *to, size_t max,
                                                              size_t        *out_got,
                                                              janus_address *out_from,
                                                              bool          *out_cut);

/*
 * Makes two connected streams in this process.
 *
 * Context: anyone; needs no capability.
 * Yields:  only if the turn is over.
 * Owns:    both are the caller's; see io.h.
 * Cost:    1 op and 1 syscall; some system calls.
 * Errors:  FULL          the system has no descriptor left
 *          HANDLE_LIMIT  the capability, the pool or the scheduler has no place for both
 *          CANCELLED, NO_MEMORY, BUDGET_EXHAUSTED, INVALID, SYSTEM
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_pair(const janus_io_options *options,
                                                     janus_io                out[2]);

/*
 * Makes a pipe: out[0] reads what is written to out[1].
 *
 * Context: anyone; needs no capability.
 * Yields:  only if the turn is over.
 * Owns:    both are the caller's; see io.h.
 * Cost:    as janus_io_pair.
 * Errors:  as janus_io_pair
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_pipe(const janus_io_options *options,
                                                     janus_io                out[2]);

/*
 * The address of this end.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    1 op and 1 syscall of the budget; a system call.
 * Errors:  UNAVAILABLE  it is no socket
 *          STALE, INVALID, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_local(janus_io io, janus_address *out);

/*
 * The address of the other end.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    1 op and 1 syscall of the budget; a system call.
 * Errors:  STATE        it is not connected
 *          UNAVAILABLE  it is no socket
 *          STALE, INVALID, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_peer(janus_io io, janus_address *out);

/*
 * The process and user at the other end of a Unix socket, when it connected.
 *
 * Context: anyone.
 * Yields:  only if the turn is over.
 * Owns:    *out is the caller's.
 * Cost:    1 op and 1 syscall of the budget; a system call.
 * Errors:  UNAVAILABLE  it is no Unix socket
 *          STALE, INVALID, BUDGET_EXHAUSTED
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_credentials(janus_io io, janus_credentials *out);

/*
 * Sends a handle over a Unix stream, with one byte, to another process or task. The sender keeps
 * its own handle. No limit counts the descriptor on its way.
 *
 * Context: as janus_io_write, with the right net.adopt.
 * Yields:  as janus_io_write.
 * Owns:    nothing.
 * Cost:    as janus_io_write.
 * Errors:  UNAVAILABLE  it is no Unix stream, or the run is simulated; or `passed` is a process, or
 *                       a directory whose rights the message cannot carry
 *          NO_NET_CAP, and those of janus_io_write
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_send_handle(janus_io io, janus_io passed);

/*
 * Receives a handle over a Unix stream. It has the rights that the sender's handle had. It counts
 * as a socket, whatever it is.
 *
 * Context: as janus_io_read, with the right net.adopt.
 * Yields:  as janus_io_read.
 * Owns:    *out is the caller's; see io.h.
 * Cost:    as janus_io_read.
 * Errors:  UNAVAILABLE  it is no Unix stream, or the run is simulated
 *          STATE        the other end sent a byte without a handle; the byte is gone
 *          INVALID      it sent a listener that blocks, which is closed
 *          NO_NET_CAP, HANDLE_LIMIT, and those of janus_io_read
 */
JANUS_NODISCARD JANUS_API janus_status janus_io_receive_handle(janus_io                io,
                                                               const janus_io_options *options,
                                                               janus_io               *out);

JANUS_END_DECLS
#endif
