/* SPDX-License-Identifier: MIT */
/*
 * Waiting for several descriptors at once: for connects that race, and for both directions of a
 * foreign descriptor.
 *
 * [any-last]  The task stands in the words of all its spots. Several tellers may take it out of
 *   words. One of them wakes it. Each other teller finds it awake and sets `let_go` as its last
 *   touch, as in [ready-last]. So a task that a teller woke waits for all `let_go` but one. A task
 *   whose wait ended otherwise waits for all of them: after a cancel, an alarm, or a note that it
 *   found while joining. Then nobody touches the spots any more.
 */
#include "io/io.h"

#include "cancel/wait.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "work/poll.h"

#include <errno.h>

struct round {
    struct jrt_waiting        waiting; /* first */
    const struct jrt_io_spot *spots;
    uint32_t                  count, joined;
    bool                      by_itself; /* the task ended its own wait */
};

static struct jrt_ready *ready_of(const struct jrt_io_spot *spot) { return &spot->io->ready; }

static janus_status join_all(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct round *round = (struct round *)waiting;
    bool          worth = false; /* looking again, instead of waiting */
    jrt_io_count_wait(1);
    for (round->joined = 0; round->joined < round->count && !worth; round->joined++) {
        const struct jrt_io_spot *spot = &round->spots[round->joined];
        worth = !jrt_ready_join(ready_of(spot), spot->way, (uintptr_t)task);
        if (worth) break;                       /* there is a note */
        worth = !jrt_poller_has(&spot->io->at); /* its set was closed, [ready-look] */
    }
    if (worth) round->by_itself = jrt_task_wake(task, JANUS_OK);
    return JANUS_WOULD_WAIT;
}

static janus_status leave_all(struct jrt_waiting *waiting, struct jrt_task *task,
                              janus_status ended)
{
    struct round *round = (struct round *)waiting;
    uint32_t      told = 0, let_go = 0;
    uint64_t      changed = 0; /* bit by spot */
    jrt_io_count_wait(-1);
    for (uint32_t i = 0; i < round->joined; i++) {
        const struct jrt_io_spot *spot = &round->spots[i];
        uint64_t                  word = (uintptr_t)task;
        /* acq_rel: nobody knows the waiter any more; on failure, the teller. */
        if (jrt_cas_acq_rel(&ready_of(spot)->words[spot->way], &word,
                            (uint64_t)JRT_READY_NOTHING)) {
            continue;
        }
        changed |= UINT64_C(1) << i;
        told++;
    }
    bool     by_teller = (ended == JANUS_OK || ended == JANUS_WOULD_WAIT) && !round->by_itself;
    uint32_t others = by_teller ? told - 1 : told; /* [any-last] */
    while (let_go < others) {
        for (uint32_t i = 0; i < round->joined; i++) {
            const struct jrt_io_spot *spot = &round->spots[i];
            _Atomic(uint32_t)        *flag = &ready_of(spot)->let_go[spot->way];
            /* acquire: the teller's last touch. */
            if ((changed >> i & 1u) == 0 || jrt_load_acquire(flag) == 0) continue;
            jrt_store_relaxed(flag, 0u); /* relaxed: one waiter at a time. */
            changed &= ~(UINT64_C(1) << i);
            let_go++;
        }
        if (let_go < others) jrt_thread_yield();
    }
    if (ended == JANUS_CANCELLED) return jrt_task_cancelled_only(task);
    return ended == JANUS_WOULD_WAIT ? JANUS_OK : ended; /* kicked: the caller looks again */
}

/* A plain thread sleeps in a set of its own. */
static janus_status wait_as_thread(const struct jrt_io_spot *spots, uint32_t count,
                                   uint64_t deadline_ns)
{
    const struct jrt_net *net = jrt_net();
    struct jrt_set        set;
    struct jrt_net_event  event;
    if (jrt_thread_self()->calls_back) return JANUS_STATE;
    int error = net->set_open(&set);
    if (error != 0) return jrt_io_error(error);
    for (uint32_t i = 0; i < count && error == 0; i++) {
        if (i > 0 && spots[i].io == spots[i - 1].io) continue;
        error = net->set_add(&set, spots[i].io->fd, i);
    }
    if (error == 0) (void)net->set_wait(&set, &event, 1, deadline_ns);
    net->set_close(&set);
    if (error != 0) return jrt_io_error(error);
    return jrt_wait_is_late(deadline_ns) ? JANUS_DEADLINE : JANUS_OK;
}

janus_status jrt_io_await_any(const struct jrt_io_spot *spots, uint32_t count, uint64_t deadline_ns,
                              enum jrt_wait why)
{
    struct jrt_worker *worker = jrt_worker_self();
    janus_status       status = JANUS_OK;
    jrt_debug_invariant("any-last", count <= 64);
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    if (worker == NULL) return wait_as_thread(spots, count, deadline_ns);
    struct jrt_task *task = worker->current;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
        return jrt_task_cancelled_only(task);
    }
    for (uint32_t i = 0; i < count && status == JANUS_OK; i++) {
        status = jrt_io_register(spots[i].io, worker);
    }
    if (status != JANUS_OK) return status;
    struct round round = {
        .waiting = {.why = why, .deadline_ns = deadline_ns, .join = join_all, .leave = leave_all},
        .spots = spots,
        .count = count};
    jrt_task_link(task);
    worker->waits_at = count > 0 ? (uint32_t)spots[0].io->fd : 0;
    return jrt_wait(worker, &round.waiting);
}
