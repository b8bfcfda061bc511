/* SPDX-License-Identifier: MIT */
/* The reasons for which a task can wait. Tasks store them, and dumps and reports print them. */
#ifndef JRT_BASE_WAIT_H
#define JRT_BASE_WAIT_H

#include <stdint.h>

#define JRT_WAIT_MAP(X)                                                                            \
    X(NONE, "nothing")                                                                             \
    X(NURSERY, "its children")                                                                     \
    X(JOIN, "a child")                                                                             \
    X(SLEEP, "the clock")                                                                          \
    X(BLOCKING, "a blocking call")                                                                 \
    X(ROOM, "room in its nursery")                                                                 \
    X(POINT, "a waitpoint")                                                                        \
    X(BUDGET, "more budget")                                                                       \
    X(EXHAUSTED, "a child to be exhausted")                                                        \
    X(RUN, "the child it runs")                                                                    \
    X(SEND, "a channel to send to")                                                                \
    X(RECV, "a channel to receive from")                                                           \
    X(SELECT, "one of several channels")                                                           \
    X(MUTEX, "a mutex")                                                                            \
    X(SEMAPHORE, "a semaphore")                                                                    \
    X(CONDITION, "a condition")                                                                    \
    X(EVENT, "an event")                                                                           \
    X(GROUP, "a wait group")                                                                       \
    X(BROADCAST, "a broadcast")                                                                    \
    X(ONCE, "the first call of a once")                                                            \
    X(BARRIER, "a barrier")                                                                        \
    X(RWLOCK, "a reader-writer lock")                                                              \
    X(LIMIT, "room for another task")                                                              \
    X(READ, "bytes to read")                                                                       \
    X(WRITE, "room to write")                                                                      \
    X(ACCEPT, "a connection to accept")                                                            \
    X(CONNECT, "a connection to stand")                                                            \
    X(NAME, "the addresses of a name")                                                             \
    X(SIGNAL, "a signal")                                                                          \
    X(FILE, "a helper's call for a file")                                                          \
    X(PROCESS, "a process to end")                                                                 \
    X(MAIL, "letters, without a stack")                                                            \
    X(REPLY, "a reply")                                                                            \
    X(MAILBOX, "room in a mailbox")                                                                \
    X(CHILD, "a supervised child")

enum jrt_wait {
#define X(name, text) JRT_WAIT_##name,
    JRT_WAIT_MAP(X)
#undef X
};

/* A bit beside the reason: the task rests, and has no stack meanwhile. */
enum { JRT_WAIT_AT_REST = 0x80 };

/* The text of a reason, as "the clock". For an unknown number it returns "?". */
const char *jrt_wait_text(uint64_t wait);

#endif
