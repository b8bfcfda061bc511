/* SPDX-License-Identifier: MIT */
/*
 * Sets of descriptors.
 *
 * [poller-pool]  A handle can outlive the scheduler in whose set it is registered. So the memory of
 *   a set stays for the life of the process and is used again, with another serial number. A handle
 *   remembers the number. Its removal compares the number under the set's lock, under which the set
 *   is closed, too.
 *
 * [poller-fork]  After a fork without exec, the child shares the sets with its parent: to remove a
 *   descriptor there would remove the parent's. So in the child every set counts as closed. No
 *   worker lives there either, so all calls of the io room return STATE, until the child makes a
 *   scheduler of its own.
 *
 * Locks: pool_lock, and each set's own. Under them no other lock is taken.
 */
#include "sched/poller.h"

#include <errno.h>

static pthread_mutex_t    pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct jrt_poller *pool; /* pool_lock */
static struct jrt_poller *all;  /* every set ever made; pool_lock */
static pthread_once_t     once = PTHREAD_ONCE_INIT;

_Atomic(bool) jrt_poller_forked;

/* Runs in the child of a fork. Only its own thread is left. */
static void after_fork(void)
{
    jrt_store_relaxed(&jrt_poller_forked, true); /* relaxed: the only thread. */
    for (struct jrt_poller *poller = all; poller != NULL; poller = poller->older) {
        jrt_fetch_add_relaxed(&poller->serial, (uint64_t)1); /* relaxed: as above. */
        if (poller->open) jrt_net_real.set_close(&poller->set);
        poller->open = false;
    }
}

static void watch_forks(void) { (void)pthread_atfork(NULL, NULL, after_fork); }

static struct jrt_poller *take(void)
{
    jrt_lock(&pool_lock);
    struct jrt_poller *poller = pool;
    if (poller != NULL) pool = poller->next;
    jrt_unlock(&pool_lock);
    if (poller != NULL) return poller;
    poller = jrt_calloc(1, sizeof *poller);
    if (poller == NULL) return NULL;
    pthread_mutex_init(&poller->lock, NULL);
    jrt_lock(&pool_lock);
    poller->older = all;
    all = poller;
    jrt_unlock(&pool_lock);
    return poller;
}

static void give(struct jrt_poller *poller)
{
    jrt_lock(&pool_lock);
    poller->next = pool;
    pool = poller;
    jrt_unlock(&pool_lock);
}

struct jrt_poller *jrt_poller_open(int *out_error)
{
    /* Decided here, not where memory is needed: what earlier worlds left has no influence. */
    struct jrt_poller *poller = jrt_fails(JRT_FAULT_MEMORY) ? NULL : take();
    *out_error = -ENOMEM;
    if (poller == NULL) return NULL;
    jrt_store_relaxed(&poller->members, 0u); /* relaxed: nobody knows it yet. */
    (void)pthread_once(&once, watch_forks);
    /* relaxed: set where only one thread was. */
    jrt_debug_invariant("poller-fork", !jrt_load_relaxed(&jrt_poller_forked));
    *out_error = jrt_net()->set_open(&poller->set);
    poller->open = *out_error == 0 && poller->set.sim == NULL; /* [poller-fork] */
    if (*out_error == 0) return poller;
    give(poller);
    return NULL;
}

void jrt_poller_close(struct jrt_poller *poller)
{
    if (poller == NULL) return;
    jrt_lock(&poller->lock);
    jrt_fetch_add_seq_cst(&poller->serial, (uint64_t)1); /* seq_cst: [ready-look]. */
    if (poller->open || poller->set.sim != NULL) jrt_net()->set_close(&poller->set);
    poller->open = false;
    jrt_unlock(&poller->lock);
    give(poller);
}

int jrt_poller_add(struct jrt_poller *poller, int fd, uint64_t cookie, struct jrt_poller_at *out)
{
    jrt_fetch_add_relaxed(&poller->members, 1u); /* relaxed: a number, for placing. */
    int error = jrt_net()->set_add(&poller->set, fd, cookie);
    if (error != 0) {
        jrt_fetch_sub_relaxed(&poller->members, 1u); /* relaxed: as above. */
    } else {
        /* relaxed, both: its scheduler runs. */
        jrt_store_relaxed(&out->serial, jrt_load_relaxed(&poller->serial));
        jrt_store_release(&out->poller, poller); /* release: the serial. */
    }
    return error;
}

void jrt_poller_leave(struct jrt_poller_at *at, int fd, bool removes)
{
    struct jrt_poller *poller = jrt_load_relaxed(&at->poller); /* relaxed, all: its only user. */
    if (poller == NULL) return;
    jrt_store_relaxed(&at->poller, NULL);            /* relaxed: as above. */
    uint64_t serial = jrt_load_relaxed(&at->serial); /* relaxed: as above. */
    jrt_lock(&poller->lock);
    if (jrt_load_relaxed(&poller->serial) == serial) { /* relaxed: under the lock. */
        jrt_debug_invariant("poller-pool", poller->open || poller->set.sim != NULL);
        if (removes) jrt_net()->set_remove(&poller->set, fd);
        jrt_fetch_sub_relaxed(&poller->members, 1u); /* relaxed: a number, for placing. */
    }
    jrt_unlock(&poller->lock);
}
