/* SPDX-License-Identifier: MIT */
/*
 * Readiness.
 *
 * [ready-word]  A descriptor has one word for reading and one for writing:
 *
 *     NOTHING   nobody waits, and no edge came since the last try
 *     EDGE      an edge came: it is worth trying
 *     a task    it waits; the address of its record
 *     a thread  a plain thread waits; its struct jrt_ready_thread, and a bit
 *
 *     a teller   NOTHING -> EDGE, or a waiter -> NOTHING, and then wakes the waiter
 *     a caller   EDGE -> NOTHING, and then tries
 *     a waiter   NOTHING -> itself; back to NOTHING if its wait ended otherwise
 *
 * [ready-try]  A call takes the note before it tries. An edge between the try and the wait leaves
 *   EDGE, and then the wait does not begin. In the other order the edge would be lost.
 *
 * [ready-last]  As [point-last]: the teller that takes the waiter out of the word wakes it, once.
 *   If a cancel or an alarm ended the wait first, the waiter finds its word changed. It then stays
 *   until the teller sets `let_go`, the teller's last touch. It leaves EDGE in the word, because
 *   the next caller must try. A thread always waits for `let_go`. models/io_word.pml tries all
 *   orders. A task that steps back before it parks does not wait for `let_go`. If a teller was
 *   first, it wakes the task, which is PARKING, and touches nothing later. So the task parks.
 *
 * [ready-look]  A thread that sets a deadline anew kicks only a waiter that it sees. So it writes
 *   the deadline before it reads the word, and a waiter reads the deadline after it has joined. The
 *   same holds for the closing of a set. A kick is no edge: the waiter looks again, and does not
 *   try. A close always tells, so it leaves EDGE for a caller that does not wait yet.
 *
 * [ready-tag]  An event carries the place and its generation. Places are never unmapped, and an
 *   event of an earlier generation is dropped. The place may change hands at the same moment. Then
 *   the event is an edge for no reason, and the next caller tries once more than it needs to.
 */
#include "work/ready.h"

#include "task/worker.h"
#include "work/work.h"

struct jrt_ready_table jrt_ready_table;

static void wake_thread(struct jrt_ready *ready, enum jrt_ready_way way, uint64_t word)
{
    struct jrt_ready_thread *thread =
        (struct jrt_ready_thread *)(uintptr_t)(word & ~(uint64_t)JRT_READY_THREAD);
    jrt_net()->bell_ring(&thread->bell);
    jrt_store_release(&ready->let_go[way], 1u); /* release: [ready-last]. */
}

static inline __attribute__((always_inline)) void tell(struct jrt_ready  *ready,
                                                       enum jrt_ready_way way)
{
    /* seq_cst: after the close that the teller reports. A caller takes a found note later. */
    uint64_t word = jrt_load_seq_cst(&ready->words[way]);
    uint64_t next;
    do {
        if (word == JRT_READY_EDGE) return;
        next = word == JRT_READY_NOTHING ? JRT_READY_EDGE : JRT_READY_NOTHING;
        /* acq_rel: the waiter's PARKING; the caller sees what came before the edge. */
    } while (!jrt_cas_acq_rel(&ready->words[way], &word, next));
    if (word == JRT_READY_NOTHING) return;
    if (jrt_unlikely((word & JRT_READY_THREAD) != 0)) {
        wake_thread(ready, way, word);
        return;
    }
    struct jrt_task   *task = (struct jrt_task *)(uintptr_t)word;
    struct jrt_worker *worker = jrt_worker_self();
    bool               quiet = worker != NULL && jrt_task_serve_quietly(worker, task);
    /* Not woken: the task stays in jrt_ready_leave until it is let go. */
    if (!quiet && !jrt_task_serve_from_anywhere(task)) {
        jrt_store_release(&ready->let_go[way], 1u); /* release: [ready-last]. */
    }
}

void jrt_ready_tell(struct jrt_ready *ready, enum jrt_ready_way way) { tell(ready, way); }

/* Ends a wait with WOULD_WAIT, as jrt_task_serve_from_anywhere does with OK. */
static bool kick_task(struct jrt_task *task)
{
    janus_scheduler *scheduler = task->nursery->scheduler;
    jrt_fetch_add_relaxed(&scheduler->guests, 1u); /* relaxed: before the wake, [point-guest]. */
    bool woken = jrt_task_wake(task, JANUS_WOULD_WAIT);
    jrt_fetch_sub_release(&scheduler->guests, 1u); /* release: the last touch. */
    return woken;
}

void jrt_ready_kick(struct jrt_ready *ready, enum jrt_ready_way way)
{
    uint64_t word = jrt_load_seq_cst(&ready->words[way]); /* seq_cst: [ready-look]. */
    do {
        if (word <= JRT_READY_EDGE) return;
        /* acq_rel: the waiter's PARKING. */
    } while (!jrt_cas_acq_rel(&ready->words[way], &word, (uint64_t)JRT_READY_NOTHING));
    if ((word & JRT_READY_THREAD) != 0) {
        wake_thread(ready, way, word);
    } else if (!kick_task((struct jrt_task *)(uintptr_t)word)) {
        jrt_store_release(&ready->let_go[way], 1u); /* release: [ready-last]. */
    }
}

enum {
    TELLS_READ = JRT_NET_READ | JRT_NET_RDHUP | JRT_NET_PRI | JRT_NET_HUP | JRT_NET_ERR,
    TELLS_WRITE = JRT_NET_WRITE | JRT_NET_HUP | JRT_NET_ERR,
};

static inline void tell_event(struct jrt_ready *ready, uint32_t what)
{
    uint32_t sticky = what & JRT_READY_STICKY;
    if (jrt_unlikely(sticky != 0)) {
        jrt_fetch_or_release(&ready->seen, sticky); /* release: before the word. */
    }
    if ((what & TELLS_READ) != 0) tell(ready, JRT_READY_READ);
    /* A stream can nearly always be written. seq_cst: as in tell, which would do nothing. */
    if ((what & TELLS_WRITE) != 0 &&
        jrt_load_seq_cst(&ready->words[JRT_READY_WRITE]) != JRT_READY_EDGE) {
        jrt_ready_tell(ready, JRT_READY_WRITE);
    }
}

void jrt_ready_tell_all(const struct jrt_net_event *events, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t place = (uint32_t)events[i].cookie;
        uint32_t places = jrt_load_acquire(&jrt_ready_table.places); /* acquire: the base. */
        if (place >= places) continue;
        /* relaxed: written before `places`. */
        char             *base = jrt_load_relaxed(&jrt_ready_table.base);
        struct jrt_ready *ready =
            (struct jrt_ready *)(void *)(base + place * jrt_ready_table.stride);
        /* relaxed: [ready-tag], an edge for no reason at worst. */
        uint32_t generation = jrt_load_relaxed(&ready->generation);
        if (generation != (uint32_t)(events[i].cookie >> 32)) continue;
        jrt_debug_invariant("ready-tag", generation != 0);
        tell_event(ready, events[i].what);
    }
}

void jrt_ready_tell_everybody(void)
{
    uint32_t places = jrt_load_acquire(&jrt_ready_table.places); /* acquire: the base. */
    for (uint32_t place = 0; place < places; place++) {
        char             *base = jrt_load_relaxed(&jrt_ready_table.base); /* relaxed: see above. */
        struct jrt_ready *ready =
            (struct jrt_ready *)(void *)(base + place * jrt_ready_table.stride);
        for (int way = 0; way < JRT_READY_WAYS; way++) {
            /* seq_cst: a waiter that is not seen here sees the closed set, [ready-look]. */
            if (jrt_load_seq_cst(&ready->words[way]) <= JRT_READY_EDGE) continue;
            jrt_ready_kick(ready, (enum jrt_ready_way)way);
        }
    }
}

void jrt_ready_leave(struct jrt_ready *ready, enum jrt_ready_way way, uint64_t self)
{
    uint64_t word = self;
    /* acq_rel: nobody knows the waiter any more; on failure, the teller. */
    if (jrt_cas_acq_rel(&ready->words[way], &word, (uint64_t)JRT_READY_NOTHING)) return;
    /* acquire: the teller's last touch. */
    while (jrt_load_acquire(&ready->let_go[way]) == 0) jrt_thread_yield();
    jrt_store_relaxed(&ready->let_go[way], 0u); /* relaxed: one waiter at a time. */
    word = JRT_READY_NOTHING;
    /* acq_rel: the next caller tries. If it fails, there is a newer edge. */
    (void)jrt_cas_acq_rel(&ready->words[way], &word, (uint64_t)JRT_READY_EDGE);
}
