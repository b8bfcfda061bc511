/* SPDX-License-Identifier: MIT */
/*
 * The usual read and the usual write.
 *
 * [io-quick]  Nearly all reads and writes are those of a task that may and can pay. They use one
 *   piece, and a stream with all its rights and without a deadline. They take the way through this
 *   file.
 *   Everything else takes the way through stream.c, from its beginning, before anything has
 *   happened. A call that has paid and entered, and then meets something unusual, goes on there.
 *   A usual read that has to wait ends in the switch, [task-finish]: when the task goes on, the
 *   first thing is to receive. In a world no call is usual.
 */
#include "cancel/park.h"
#include "cancel/wait.h"
#include "io/io.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "plat/net_unix.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/worker.h"
#include "work/turn.h"

#include <errno.h>

enum { CALL_TOLLS = 4 }; /* as jrt_call_check takes */

/* A handle with all rights, which nobody closes. True: the call has entered. */
static inline __attribute__((always_inline)) bool enter(janus_io handle, uint32_t right,
                                                        uint32_t exclusive, struct jrt_io **out)
{
    uint64_t place = handle.opaque[0] >> JRT_IO_PLACE_AT;
    uint64_t key = handle.opaque[0] ^ handle.opaque[1];
    /* acquire: the base. */
    if (jrt_unlikely(place >= jrt_load_acquire(&jrt_ready_table.places) || key == 0)) return false;
    /* relaxed: written before `places`. */
    struct jrt_io *io = (struct jrt_io *)(void *)jrt_load_relaxed(&jrt_ready_table.base) + place;
    if (jrt_unlikely(jrt_load_acquire(&io->key) != key)) return false; /* acquire: the record. */
    uint32_t rights = jrt_io_first_rights(io);
    if (jrt_unlikely((handle.opaque[0] & 0xffu) != rights || (rights & right) == 0)) return false;
    uint32_t use = jrt_load_relaxed(&io->use); /* relaxed: the cas decides. */
    if (jrt_unlikely((use & (JRT_IO_CLOSING | exclusive)) != 0)) return false;
    if (jrt_unlikely((use & JRT_IO_COUNT) >= JRT_IO_WAITERS)) return false;
    /* acq_rel: [io-use], what the last caller wrote. */
    if (jrt_unlikely(!jrt_cas_acq_rel(&io->use, &use, (use + 1) | exclusive))) return false;
    *out = io;
    if (jrt_likely(jrt_load_acquire(&io->key) == key)) return true; /* acquire: as above. */
    jrt_io_leave(io, exclusive);                                    /* it changed hands meanwhile */
    return false;
}

static inline void leave(struct jrt_io *io, uint32_t exclusive)
{
    /* acq_rel: [io-use]; the last one sees what all others did. */
    uint32_t use = jrt_fetch_sub_acq_rel(&io->use, 1u | exclusive);
    jrt_debug_invariant("io-quick", (use & JRT_IO_COUNT) > 0 && (use & exclusive) != 0);
    if (jrt_unlikely((use & JRT_IO_CLOSING) != 0 && (use & JRT_IO_COUNT) == 1)) jrt_io_left(io);
}

/* Tolls or syscalls are used up. False: the turn is over, or the task needs more than a portion. */
__attribute__((noinline)) static bool get_more(struct jrt_worker *worker, int32_t tolls)
{
    struct jrt_task *task = worker->current;
    if (worker->tolls < tolls) jrt_turn_look(worker);
    if (worker->tolls < tolls || jrt_purse_need(task) == NULL) return false;
    return task->purse->left.syscalls != 0 || jrt_replenish_syscalls(worker, task);
}

/* Pays and enters. False: nothing happened. */
static inline __attribute__((always_inline)) bool begin(struct jrt_worker *worker, int32_t tolls,
                                                        janus_io handle, uint32_t right,
                                                        uint32_t exclusive, struct jrt_io **out)
{
    struct jrt_purse *purse = worker->current->purse;
    if (jrt_unlikely(!jrt_worker_stack_is_fine(worker))) return false;
    if (jrt_unlikely(worker->tolls < tolls || purse == NULL || purse->left.syscalls == 0)) {
        if (!get_more(worker, tolls)) return false;
        purse = worker->current->purse;
    }
    /* relaxed: set where only one thread was. */
    if (jrt_unlikely(jrt_load_relaxed(&jrt_poller_forked))) return false;
    if (jrt_unlikely(!jrt_fuel_one())) return false;
    if (jrt_unlikely(!enter(handle, right, exclusive, out))) {
        jrt_fuel_put_back();
        return false;
    }
    purse->left.syscalls--;
    worker->tolls -= tolls;
    return true;
}

static inline bool is_usual(const struct jrt_io *io, enum jrt_ready_way way)
{
    /* acquire: as in wait.c. */
    return io->usual && jrt_load_acquire(&io->deadlines[way]) == JRT_NEVER;
}

static inline void count_bytes(struct jrt_io *io, enum jrt_ready_way way, ptrdiff_t bytes)
{
    /* relaxed, both: one writer at a time. Readers accept any value. */
    uint64_t before = jrt_load_relaxed(&io->bytes[way]);
    jrt_store_relaxed(&io->bytes[way], before + (uint64_t)bytes); /* relaxed: as above. */
}

/* Reading. */

/* A read that waits, on its strand. */
struct reading {
    struct jrt_io *io;
    void          *to;
    size_t         max;
    size_t        *out_got;
};
_Static_assert(sizeof(struct reading) <= JRT_PLACE_WORDS * sizeof(void *), "[task-finish]");

static inline struct reading *reading_on(struct jrt_worker *worker)
{
    return (struct reading *)(void *)worker->strand->place;
}

static janus_status read_later(struct jrt_worker *worker, struct jrt_io *io, void *to, size_t max,
                               size_t *out_got);

/* Nothing was received. */
__attribute__((noinline)) static janus_status read_nothing(struct jrt_io *io, void *to, size_t max,
                                                           size_t *out_got, ptrdiff_t got)
{
    io->drained[JRT_READY_READ] = got == -EAGAIN ? JRT_IO_EMPTY : JRT_IO_UNKNOWN;
    if (got == -EAGAIN) return read_later(jrt_worker_self(), io, to, max, out_got);
    janus_status status = got == 0 ? JANUS_CLOSED : jrt_io_error((int)got);
    return jrt_io_read_on(io, to, max, out_got, status);
}

__attribute__((noinline)) static ptrdiff_t receive_local(const struct jrt_io *io, void *to,
                                                         size_t max, bool *out_parted)
{
    struct iovec piece = {to, max};
    return jrt_unix_read(io->fd, &piece, 1, out_parted);
}

static janus_status read_now(struct jrt_io *io, void *to, size_t max, size_t *out_got)
{
    bool      parted = false; /* [io-drained] */
    ptrdiff_t got = jrt_likely(!io->local) ? jrt_net_receive_one(io->fd, to, max)
                                           : receive_local(io, to, max, &parted);
    if (jrt_unlikely(got <= 0)) return read_nothing(io, to, max, out_got, got);
    io->drained[JRT_READY_READ] = (size_t)got < max && !parted ? JRT_IO_SHORT : JRT_IO_UNKNOWN;
    count_bytes(io, JRT_READY_READ, got);
    *out_got = (size_t)got;
    leave(io, JRT_IO_READER);
    if (got >= JRT_IO_BYTES_FOR_A_TOLL) jrt_io_toll((size_t)got);
    return JANUS_OK;
}

/* The wait ended otherwise than by an edge, or the handle is being closed. */
__attribute__((noinline)) static janus_status read_after(const struct reading *given,
                                                         struct jrt_task *task, janus_status ended)
{
    struct reading reading = *given; /* the place is free */
    struct jrt_io *io = reading.io;
    bool           looks = ended == JANUS_OK || ended == JANUS_WOULD_WAIT; /* told, or kicked */
    if (!looks) jrt_ready_leave(&io->ready, JRT_READY_READ, (uintptr_t)task);
    janus_status status = looks ? JANUS_OK : ended;
    if (ended == JANUS_CANCELLED) status = jrt_task_cancelled_only(task);
    if (jrt_io_is_closing(io) && status != JANUS_CANCELLED) status = JANUS_CLOSED;
    return jrt_io_read_on(io, reading.to, reading.max, reading.out_got, status);
}

static void count_waits(struct jrt_worker *worker, int64_t more)
{
    int64_t waits = jrt_load_relaxed(&worker->io_waits); /* relaxed, both: its own. */
    jrt_store_relaxed(&worker->io_waits, waits + more);  /* relaxed: as above. */
}

static janus_status finish_read(struct jrt_worker *worker, struct jrt_task *task,
                                janus_status ended)
{
    const struct reading *reading = reading_on(worker);
    struct jrt_io        *io = reading->io;
    count_waits(worker, -1);
    if (jrt_unlikely(ended != JANUS_OK || jrt_io_is_closing(io))) {
        return read_after(reading, task, ended);
    }
    return read_now(io, reading->to, reading->max, reading->out_got);
}

/* The task has joined the word. Whether nothing has changed that it must see, [ready-look]. */
static inline bool may_wait(const struct jrt_io *io)
{
    /* seq_cst: [ready-look]. */
    return jrt_load_seq_cst(&io->deadlines[JRT_READY_READ]) == JRT_NEVER && jrt_poller_has(&io->at);
}

/* Does not wait after all. */
__attribute__((noinline)) static janus_status read_without(struct jrt_worker *worker,
                                                           struct jrt_task   *task)
{
    struct reading reading = *reading_on(worker);
    if (!jrt_task_park_undo(task)) (void)jrt_task_park(worker, task);
    return jrt_io_read_on(reading.io, reading.to, reading.max, reading.out_got, JANUS_OK);
}

/* What a first wait may need: a stack to go on with, the task in the tree, the descriptor in a set.
 * If something is there, the set tells it, [io-drained]. */
__attribute__((noinline)) static janus_status read_first(struct jrt_worker *worker,
                                                         struct jrt_io *io, void *to, size_t max,
                                                         size_t *out_got)
{
    janus_status status = jrt_worker_can_leave(worker) ? JANUS_OK : JANUS_NO_MEMORY;
    jrt_task_link(worker->current);
    if (status == JANUS_OK && !jrt_poller_has(&io->at)) {
        status = jrt_io_register(io, worker);
        if (status == JANUS_OK) io->drained[JRT_READY_READ] = JRT_IO_EMPTY;
    }
    if (status != JANUS_OK) return jrt_io_read_on(io, to, max, out_got, status);
    return read_later(worker, io, to, max, out_got);
}

__attribute__((noinline)) static janus_status read_later(struct jrt_worker *worker,
                                                         struct jrt_io *io, void *to, size_t max,
                                                         size_t *out_got)
{
    struct jrt_task *task = worker->current;
    uintptr_t        self = (uintptr_t)task;
    /* relaxed: its own. */
    if (jrt_unlikely(jrt_load_relaxed(&task->shield) != 0 || worker->seat != NULL ||
                     worker->trace != NULL || !jrt_task_is_clean(task) || jrt_io_is_closing(io))) {
        return jrt_io_read_on(io, to, max, out_got, JANUS_OK);
    }
    /* acquire: everything above is linked. */
    if (jrt_unlikely(!jrt_load_acquire(&task->linked) || !jrt_poller_has(&io->at) ||
                     worker->spare == NULL)) {
        return read_first(worker, io, to, max, out_got);
    }
    *reading_on(worker) = (struct reading){io, to, max, out_got};
    jrt_task_park_begin_fast(task, JRT_WAIT_READ);
    if (jrt_unlikely(!jrt_ready_join(&io->ready, JRT_READY_READ, self))) {
        return read_without(worker, task); /* the note stays: the next look takes it */
    }
    if (jrt_unlikely(!may_wait(io)) && jrt_ready_retract(&io->ready, JRT_READY_READ, self)) {
        return read_without(worker, task);
    }
    count_waits(worker, 1);
    return jrt_task_park_fast(worker, task, finish_read);
}

janus_status janus_io_read(janus_io handle, void *to, size_t max, size_t *out_got)
{
    const int32_t      tolls = CALL_TOLLS + JRT_IO_TOLLS;
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_io     *io;
    if (jrt_unlikely(worker == NULL || to == NULL || max - 1 >= PTRDIFF_MAX || out_got == NULL ||
                     !begin(worker, tolls, handle, JANUS_IO_MAY_READ, JRT_IO_READER, &io))) {
        return jrt_io_read_slow(handle, to, max, out_got);
    }
    if (jrt_unlikely(!is_usual(io, JRT_READY_READ))) {
        return jrt_io_read_on(io, to, max, out_got, JANUS_OK);
    }
    if (io->drained[JRT_READY_READ] == JRT_IO_UNKNOWN) return read_now(io, to, max, out_got);
    /* relaxed: joining looks again. acquire: set before the edge. [io-drained] */
    if (jrt_likely(jrt_load_relaxed(&io->ready.words[JRT_READY_READ]) == JRT_READY_NOTHING &&
                   jrt_load_acquire(&io->ready.seen) == 0)) { /* acquire: as above. */
        return read_later(worker, io, to, max, out_got);
    }
    return jrt_io_read_on(io, to, max, out_got, JANUS_OK);
}

/* Writing. */

janus_status janus_io_write(janus_io handle, const void *from, size_t count, size_t *out_done)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_io     *io;
    size_t             by_bytes = count / JRT_IO_BYTES_FOR_A_TOLL;
    int32_t            tolls =
        CALL_TOLLS + JRT_IO_TOLLS + (by_bytes < JRT_TOLLS ? (int32_t)by_bytes : JRT_TOLLS);
    if (jrt_unlikely(worker == NULL || from == NULL || count - 1 >= PTRDIFF_MAX ||
                     !begin(worker, tolls, handle, JANUS_IO_MAY_WRITE, JRT_IO_WRITER, &io))) {
        return jrt_io_write_slow(handle, from, count, out_done);
    }
    if (jrt_unlikely(!is_usual(io, JRT_READY_WRITE) ||
                     io->drained[JRT_READY_WRITE] != JRT_IO_UNKNOWN)) {
        return jrt_io_write_on(handle, io, from, count, out_done, 0);
    }
    ptrdiff_t done = jrt_net_send_one(io->fd, from, count);
    if (jrt_unlikely(done != (ptrdiff_t)count)) {
        return jrt_io_write_on(handle, io, from, count, out_done, done);
    }
    count_bytes(io, JRT_READY_WRITE, done);
    if (out_done != NULL) *out_done = count;
    leave(io, JRT_IO_WRITER);
    return JANUS_OK;
}
