/* SPDX-License-Identifier: MIT */
/*
 * Waiting for a descriptor.
 *
 * A call tries first, and waits only if the system has nothing. The first wait registers the
 * descriptor in a worker's set, [poll-set]; registering tells an edge if something is there.
 *
 * [io-drained]  After a short transfer of a stream the system has no more: the next call waits
 *   without a try. A later edge leaves a note, and then the call tries. This holds only for a
 *   registered descriptor. It does not hold once the system has reported an end, an error or an
 *   urgent byte, because no further edge may come. The system ends a read of a Unix stream behind
 *   bytes with which a descriptor came, so such a short read proves nothing. Every other call that
 *   takes a note says that it knows nothing (jrt_io_take_note). Other kinds of descriptors always
 *   try.
 *
 * [io-lazy]  Deadlines are numbers in the handle. A wait needs a timer only if none rings early
 *   enough. A timer that rings early finds a later deadline and kicks the waiter, which arms it
 *   again. So a connection whose deadline moves with each request arms a timer once per deadline,
 *   not once per read. A waiter first joins the word, and then reads when the alarm rings. The
 *   alarm first writes that it rings no more, and then reads the word. So one of them sees the
 *   other.
 *   Only a handle whose owner is a task of the same scheduler keeps a timer there, [io-home]. Any
 *   other wait has a timer in its frame.
 *
 * [io-turn]  Several tasks may accept from one listener. One has the turn: it tries, and waits in
 *   the word. The others wait in a list, in the order in which they came, each in a readiness of
 *   its own. The task that passes the turn tells the first of them.
 *
 * [io-descriptors]  If the process has no descriptor left, no edge will say when it has one again.
 *   So an accept waits until a handle is closed, or some time has passed. It waits in the word of
 *   the listener, as if for an edge. So the close of the listener and a new deadline end the wait,
 *   too. It registers nothing: a set may need a descriptor.
 */
#include "io/io.h"

#include "cancel/wait.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "work/poll.h"

#include <errno.h>

struct visit {
    struct jrt_waiting waiting; /* first */
    struct jrt_ready  *ready;
    struct jrt_io     *io; /* NULL: none */
    enum jrt_ready_way way;
    uint64_t           deadline_ns; /* of the handle, as it was before the wait */
    bool               lazy;        /* the handle's own alarm ends the wait, [io-lazy] */
    bool               apart;       /* no edge is waited for, [io-descriptors] */
};

void jrt_io_count_wait(int more)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(worker->seat != NULL)) {
        /* relaxed: a number, read when all sleep. */
        jrt_fetch_add_relaxed(&worker->scheduler->seat_io_waits, (int64_t)more);
        return;
    }
    int64_t waits = jrt_load_relaxed(&worker->io_waits); /* relaxed, both: its own. */
    jrt_store_relaxed(&worker->io_waits, waits + more);  /* relaxed: as above. */
}

bool jrt_io_keeps_alarm(const struct jrt_io *io, const struct jrt_worker *worker)
{
    return jrt_io_home(io) == worker->scheduler && worker->seat == NULL;
}

/* Whether the handle is as it was before the wait. The waiter has joined, [ready-look]. */
static bool is_unchanged(const struct visit *visit)
{
    /* seq_cst: [ready-look]. */
    return jrt_load_seq_cst(&visit->io->deadlines[visit->way]) == visit->deadline_ns;
}

/* WOULD_WAIT: the task waits. DEADLINE: it does not, and looks again. */
static janus_status prepare(struct visit *visit)
{
    struct jrt_io *io = visit->io;
    if (io == NULL) return JANUS_WOULD_WAIT;
    if (jrt_unlikely(!is_unchanged(visit))) return JANUS_DEADLINE;
    if (jrt_unlikely(!visit->apart && !jrt_poller_has(&io->at))) return JANUS_DEADLINE;
    if (visit->deadline_ns == JRT_NEVER || !visit->lazy) return JANUS_WOULD_WAIT;
    jrt_debug_invariant("io-lazy", visit->waiting.deadline_ns == JRT_NEVER);
    return jrt_io_arm(io, visit->way, visit->deadline_ns);
}

static janus_status join(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct visit *visit = (struct visit *)waiting;
    if (!jrt_ready_join(visit->ready, visit->way, (uintptr_t)task)) {
        (void)jrt_ready_take(visit->ready, visit->way);
        return JANUS_OK;
    }
    janus_status status = prepare(visit);
    if (jrt_unlikely(status != JANUS_WOULD_WAIT) &&
        jrt_ready_retract(visit->ready, visit->way, (uintptr_t)task)) {
        return status;
    }
    jrt_io_count_wait(1);
    return JANUS_WOULD_WAIT; /* also if a teller was first: its wake comes */
}

static janus_status leave(struct jrt_waiting *waiting, struct jrt_task *task, janus_status ended)
{
    struct visit *visit = (struct visit *)waiting;
    jrt_io_count_wait(-1);
    if (ended == JANUS_OK) return JANUS_OK;               /* a teller woke it, [ready-last] */
    if (ended == JANUS_WOULD_WAIT) return JANUS_DEADLINE; /* it was kicked, and looks again */
    jrt_ready_leave(visit->ready, visit->way, (uintptr_t)task);
    return ended == JANUS_CANCELLED ? jrt_task_cancelled_only(task) : ended;
}

static janus_status wait_as_task(struct jrt_worker *worker, struct visit *visit)
{
    struct jrt_task *task = worker->current;
    visit->waiting.join = join;
    visit->waiting.leave = leave;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
        return jrt_task_cancelled_only(task);
    }
    jrt_task_link(task);
    return jrt_wait(worker, &visit->waiting);
}

/* Sleeps until the bell rings. It needs no descriptor. */
static int await_bell(struct jrt_net_bell *bell, uint64_t deadline_ns)
{
    while (jrt_load_acquire(&bell->rung) == 0) { /* acquire: what came before the ring. */
        if (jrt_wait_is_late(deadline_ns)) return -ETIMEDOUT;
        (void)jrt_futex_wait_until(&bell->rung, 0, deadline_ns);
    }
    return 0;
}

/* `fd` < 0: waits for a teller only. */
static janus_status wait_as_thread(struct visit *visit, int fd, uint64_t deadline_ns)
{
    struct jrt_ready_thread self = {.bell = {.fd = -1}};
    uint64_t                name = (uintptr_t)&self | JRT_READY_THREAD;
    if (jrt_thread_self()->calls_back) return JANUS_STATE;
    if (fd >= 0 && jrt_net()->bell_open(&self.bell) != 0) return JANUS_FULL;
    int error = 0;
    if (jrt_ready_join(visit->ready, visit->way, name)) {
        if (visit->io == NULL || is_unchanged(visit)) {
            error = fd < 0 ? await_bell(&self.bell, deadline_ns)
                           : jrt_net()->wait_one(fd, 1u << visit->way, deadline_ns, &self.bell);
        }
        jrt_ready_leave(visit->ready, visit->way, name);
    } else {
        (void)jrt_ready_take(visit->ready, visit->way);
    }
    if (fd >= 0) jrt_net()->bell_close(&self.bell);
    if (error == -ETIMEDOUT) return JANUS_DEADLINE;
    if (error == 0 && visit->io != NULL && !is_unchanged(visit)) return JANUS_DEADLINE;
    return error == 0 ? JANUS_OK : jrt_io_error(error);
}

janus_status jrt_io_register(struct jrt_io *io, struct jrt_worker *worker)
{
    int error = 0;
    jrt_io_lock(io->cold); /* a reader and a writer may come at once */
    if (!jrt_poller_has(&io->at)) {
        /* relaxed: only this place's users change it, and they are inside. */
        uint32_t generation = jrt_load_relaxed(&io->ready.generation);
        uint64_t cookie = jrt_ready_cookie(jrt_io_place(io), generation);
        error = jrt_poll_place(worker, io->fd, cookie, &io->at);
    }
    jrt_io_unlock(io->cold);
    return error == 0 ? JANUS_OK : jrt_io_error(error);
}

/* As jrt_io_await. WOULD_WAIT: no edge came, but the caller looks again. */
static janus_status await_once(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why)
{
    struct jrt_worker *worker = jrt_worker_self();
    /* acquire: set before the kick that told of it. */
    uint64_t deadline = jrt_load_acquire(&io->deadlines[way]);
    if (jrt_unlikely(jrt_io_is_closing(io))) return JANUS_CLOSED;
    if (jrt_wait_is_late(deadline)) return JANUS_DEADLINE;
    struct visit visit = {.waiting = {.why = why, .deadline_ns = JRT_NEVER},
                          .ready = &io->ready,
                          .io = io,
                          .way = way,
                          .deadline_ns = deadline};
    janus_status status = JANUS_OK;
    if (jrt_unlikely(worker == NULL)) {
        status = wait_as_thread(&visit, io->fd, deadline);
    } else {
        if (jrt_unlikely(!jrt_poller_has(&io->at))) {
            status = jrt_io_register(io, worker);
            /* If something is there, the set tells it now, [io-drained]. */
            if (status == JANUS_OK) io->drained[way] = JRT_IO_EMPTY;
        }
        if (status != JANUS_OK) return status;
        worker->waits_at = (uint32_t)io->fd;
        visit.lazy = jrt_io_keeps_alarm(io, worker);
        if (!visit.lazy) visit.waiting.deadline_ns = deadline;
        status = wait_as_task(worker, &visit);
    }
    if (jrt_unlikely(jrt_io_is_closing(io)))
        return status == JANUS_CANCELLED ? status : JANUS_CLOSED;
    if (status == JANUS_OK) io->drained[way] = JRT_IO_UNKNOWN; /* an edge came */
    /* The deadline may have been set anew meanwhile: the next look decides. */
    return status == JANUS_DEADLINE ? JANUS_WOULD_WAIT : status;
}

janus_status jrt_io_await(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why)
{
    janus_status status;
    do status = await_once(io, way, why);
    while (jrt_unlikely(status == JANUS_WOULD_WAIT));
    return status;
}

bool jrt_io_worth_trying(struct jrt_io *io, enum jrt_ready_way way)
{
    if (io->drained[way] == JRT_IO_UNKNOWN) return true; /* a note stays: one more try, later */
    if (jrt_ready_take(&io->ready, way)) return true;
    if (io->drained[way] == JRT_IO_EMPTY) return false;
    /* Registering tells at once if something is there. */
    if (!jrt_poller_has(&io->at)) return jrt_worker_self() == NULL;
    return jrt_load_acquire(&io->ready.seen) != 0; /* acquire: set before the edge. */
}

bool jrt_io_is_worth(struct jrt_io *io, enum jrt_ready_way way)
{
    /* acquire: what came before the edge. The note stays for the next call. */
    if (jrt_load_acquire(&io->ready.words[way]) == JRT_READY_EDGE) return true;
    if (!jrt_poller_has(&io->at)) return false;
    if (io->drained[way] == JRT_IO_UNKNOWN) return true;
    /* acquire: set before the edge. */
    return io->drained[way] == JRT_IO_SHORT && jrt_load_acquire(&io->ready.seen) != 0;
}

janus_status jrt_io_await_worth(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why)
{
    return jrt_io_is_worth(io, way) ? JANUS_OK : jrt_io_await(io, way, why);
}

/* Turns. */

janus_status jrt_io_turn_take(struct jrt_io *io, enum jrt_ready_way way, enum jrt_wait why)
{
    struct jrt_io_cold *cold = io->cold;
    struct jrt_io_turn  turn = {.next = NULL};
    uint64_t            deadline = jrt_load_acquire(&io->deadlines[way]); /* acquire: as below. */
    if (jrt_wait_is_late(deadline)) return JANUS_DEADLINE;
    jrt_io_lock(cold);
    bool mine = !cold->taken[way];
    cold->taken[way] = true;
    if (!mine) {
        struct jrt_io_turn **end = &cold->turns[way];
        while (*end != NULL) end = &(*end)->next;
        *end = &turn;
    }
    jrt_io_unlock(cold);
    if (mine) return JANUS_OK;
    janus_status status;
    do {
        deadline = jrt_load_acquire(&io->deadlines[way]); /* acquire: as await_once. */
        status = jrt_io_pause(&turn.ready, deadline, why);
        /* Set later meanwhile: it waits on. acquire: as above. */
    } while (status == JANUS_DEADLINE && jrt_load_acquire(&io->deadlines[way]) > deadline);
    if (status == JANUS_OK) return JANUS_OK; /* it was passed to this one */
    bool waited = false;
    jrt_io_lock(cold);
    for (struct jrt_io_turn **at = &cold->turns[way]; *at != NULL && !waited; at = &(*at)->next) {
        if (*at != &turn) continue;
        *at = turn.next;
        waited = true;
        break;
    }
    jrt_io_unlock(cold);
    if (!waited) jrt_io_turn_pass(io, way); /* it was passed in the same moment, under the lock */
    return status;
}

void jrt_io_turn_pass(struct jrt_io *io, enum jrt_ready_way way)
{
    struct jrt_io_cold *cold = io->cold;
    jrt_io_lock(cold);
    struct jrt_io_turn *next = cold->turns[way];
    jrt_debug_invariant("io-turn", cold->taken[way]);
    if (next != NULL) {
        cold->turns[way] = next->next;
    } else {
        cold->taken[way] = false;
    }
    /* Under the lock: a waiter that gave up takes it before its frame ends. */
    if (next != NULL) jrt_ready_tell(&next->ready, JRT_READY_READ);
    jrt_io_unlock(cold);
}

janus_status jrt_io_pause(struct jrt_ready *ready, uint64_t deadline_ns, enum jrt_wait why)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct visit       visit = {.ready = ready, .way = JRT_READY_READ};
    visit.waiting.why = why;
    visit.waiting.deadline_ns = deadline_ns;
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    if (worker == NULL) return wait_as_thread(&visit, -1, deadline_ns);
    return wait_as_task(worker, &visit);
}

void jrt_io_pause_to_end(struct jrt_ready *ready)
{
    struct visit visit = {
        .waiting = {.why = JRT_WAIT_BLOCKING, /* no cancel and no deadlock ends such a wait */
                    .to_its_end = true,
                    .deadline_ns = JRT_NEVER,
                    .join = join,
                    .leave = leave},
        .ready = ready,
        .way = JRT_READY_READ,
    };
    janus_status status = jrt_wait(jrt_worker_self(), &visit.waiting);
    jrt_invariant("help-begun", status == JANUS_OK);
}

/* Descriptors. */

/* A call that waits for a descriptor, in its frame. The call is inside the handle. */
struct starving {
    struct jrt_io   *io;
    struct starving *next;
};

static struct {
    pthread_mutex_t   lock;
    struct starving  *first; /* oldest first */
    _Atomic(uint32_t) count; /* waiters */
} starved = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const uint64_t starved_ns = 100000000; /* then it tries again, [io-descriptors] */

void jrt_io_descriptor_freed(void)
{
    if (jrt_likely(jrt_load_relaxed(&starved.count) == 0)) return; /* relaxed: the timer helps. */
    jrt_lock(&starved.lock);
    struct starving *first = starved.first;
    if (first != NULL) starved.first = first->next;
    /* Under the lock: a waiter takes it before it leaves the handle. */
    if (first != NULL) jrt_ready_tell(&first->io->ready, JRT_READY_READ);
    jrt_unlock(&starved.lock);
}

static void begin_to_starve(struct starving *self)
{
    jrt_fetch_add_relaxed(&starved.count, 1u); /* relaxed: a hint; the timer helps. */
    jrt_lock(&starved.lock);
    struct starving **end = &starved.first;
    while (*end != NULL) end = &(*end)->next;
    *end = self;
    jrt_unlock(&starved.lock);
}

/* True: a descriptor was freed for this call. */
static bool end_to_starve(const struct starving *self)
{
    jrt_lock(&starved.lock);
    struct starving **at = &starved.first;
    while (*at != NULL && *at != self) at = &(*at)->next;
    bool told = *at == NULL;
    if (!told) *at = self->next;
    jrt_unlock(&starved.lock);
    uint32_t counted = jrt_fetch_sub_relaxed(&starved.count, 1u); /* relaxed: as above. */
    jrt_debug_invariant("io-descriptors", counted > 0);
    return told;
}

void jrt_io_starved_forget(const struct jrt_io *io)
{
    struct starving **at = &starved.first;
    jrt_lock(&starved.lock);
    while (*at != NULL && (*at)->io != io) at = &(*at)->next;
    if (*at != NULL) {
        *at = (*at)->next;
        jrt_fetch_sub_relaxed(&starved.count, 1u); /* relaxed: a hint. */
    }
    jrt_unlock(&starved.lock);
}

janus_status jrt_io_await_descriptor(struct jrt_io *io, bool *out_told)
{
    const enum jrt_ready_way way = JRT_READY_READ;
    struct starving          self = {.io = io};
    struct jrt_worker       *worker = jrt_worker_self();
    uint64_t                 until = jrt_clock_now_ns() + starved_ns;
    uint64_t deadline = jrt_load_acquire(&io->deadlines[way]); /* acquire: as await_once. */
    if (jrt_io_is_closing(io)) return JANUS_CLOSED;
    if (jrt_wait_is_late(deadline)) return JANUS_DEADLINE;
    if (until > deadline) until = deadline;
    struct visit visit = {.waiting = {.why = JRT_WAIT_ACCEPT, .deadline_ns = until},
                          .ready = &io->ready,
                          .io = io,
                          .way = way,
                          .deadline_ns = deadline,
                          .apart = true};
    begin_to_starve(&self);
    janus_status status =
        worker != NULL ? wait_as_task(worker, &visit) : wait_as_thread(&visit, -1, until);
    *out_told = end_to_starve(&self);
    if (status == JANUS_DEADLINE) status = JANUS_OK; /* the caller tries, and then looks again */
    if (status == JANUS_OK && jrt_io_is_closing(io)) status = JANUS_CLOSED;
    return status;
}
