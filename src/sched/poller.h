/* SPDX-License-Identifier: MIT */
/* A worker's set of descriptors. It knows descriptors, not tasks. The essay is in work/poll.c. */
#ifndef JRT_SCHED_POLLER_H
#define JRT_SCHED_POLLER_H

#include "base/atomic.h"
#include "plat/net.h"

enum {
    JRT_POLL_EVENTS = 128, /* of one look of its worker */
    JRT_POLL_FEW = 16,     /* of another's look */
};

struct jrt_poller {
    struct jrt_set       set;
    _Atomic(uint32_t)    members;   /* descriptors in it */
    _Atomic(uint64_t)    looked_ns; /* when somebody last looked, [poll-others] */
    pthread_mutex_t      lock;      /* guards `serial`, and closing against removing */
    _Atomic(uint64_t)    serial;    /* changes when it is closed, [poller-pool] */
    bool                 open;      /* a real set; false in the child of a fork, [poller-fork] */
    struct jrt_poller   *next;      /* in the pool */
    struct jrt_poller   *older;     /* of all sets */
    bool                 found;     /* by its worker's last search, which did not sleep */
    struct jrt_net_event events[JRT_POLL_EVENTS]; /* its worker's, not on a stack */
};

/* Where a descriptor is registered. One thread at a time writes it, others may read it. */
struct jrt_poller_at {
    _Atomic(struct jrt_poller *) poller; /* NULL: nowhere */
    _Atomic(uint64_t)            serial;
};

/* Whether it is registered, and the set still exists. */
static inline bool jrt_poller_has(const struct jrt_poller_at *at)
{
    const struct jrt_poller *poller = jrt_load_acquire(&at->poller); /* acquire: the serial. */
    if (poller == NULL) return false;
    uint64_t serial = jrt_load_relaxed(&at->serial); /* relaxed: a number. */
    /* seq_cst: a waiter that has joined looks after the closing thread or before, [ready-look]. */
    return jrt_load_seq_cst(&poller->serial) == serial;
}

/* This process is the child of a fork, and has made no scheduler yet, [poller-fork]. */
extern _Atomic(bool) jrt_poller_forked;

/* Makes a set. NULL: memory or a descriptor was refused; *out_error says which. */
struct jrt_poller *jrt_poller_open(int *out_error);
void               jrt_poller_close(struct jrt_poller *poller);

/* Adds a descriptor. 0, or -errno. It leaves when it is about to be closed. With `removes` it may
 * stay open. Any thread may call these, the second also when the set is gone. */
int  jrt_poller_add(struct jrt_poller *poller, int fd, uint64_t cookie, struct jrt_poller_at *out);
void jrt_poller_leave(struct jrt_poller_at *at, int fd, bool removes);

#endif
