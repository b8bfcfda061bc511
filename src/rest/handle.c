/* SPDX-License-Identifier: MIT */
/*
 * Waits of resting tasks for descriptors.
 *
 * [io-rest]  The steps are those of janus_io_wait, and of await_once in io/wait.c. A task stays
 *   inside the handle while it rests, as any other reader or writer does. So a close wakes it, and
 *   the last call that leaves closes the descriptor. The word of the readiness names the task
 *   itself. The join takes no note: if it finds one, the task looks again, on a stack.
 */
#include "rest/handle.h"

#include "cancel/wait.h"
#include "io/file.h"
#include "means/call.h"

static uint32_t exclusive_of(enum jrt_ready_way way)
{
    return way == JRT_READY_READ ? JRT_IO_READER : JRT_IO_WRITER;
}

janus_status jrt_io_rest_end(struct jrt_io_rest *rest, janus_status status)
{
    if (status == JANUS_WOULD_WAIT) return status;
    jrt_io_leave(rest->io, exclusive_of(rest->way));
    rest->io = NULL;
    return jrt_io_told_by(status, "janus_io_wait");
}

/* WOULD_WAIT: the task has to wait, and the poller's next edge wakes the task. */
static janus_status look(const struct jrt_io_rest *rest)
{
    struct jrt_io     *io = rest->io;
    enum jrt_ready_way way = rest->way;
    /* acquire: set before the kick that told of it. */
    uint64_t deadline = jrt_load_acquire(&io->deadlines[way]);
    if (jrt_io_is_closing(io)) return JANUS_CLOSED;
    if (jrt_wait_is_late(deadline)) return JANUS_DEADLINE;
    janus_status status = io->helped                 ? jrt_file_look(io, way)
                          : jrt_io_is_worth(io, way) ? JANUS_OK
                                                     : JANUS_WOULD_WAIT;
    if (status != JANUS_WOULD_WAIT || jrt_poller_has(&io->at)) return status;
    status = jrt_io_register(io, jrt_worker_self());
    if (status != JANUS_OK) return status;
    io->drained[way] = JRT_IO_EMPTY; /* if something is there, the set tells it now */
    return JANUS_WOULD_WAIT;
}

janus_status jrt_io_rest_again(struct jrt_io_rest *rest)
{
    return jrt_io_rest_end(rest, look(rest));
}

janus_status jrt_io_rest_begin(struct jrt_io_rest *rest, janus_io handle, uint32_t way)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (way != JANUS_IO_READ && way != JANUS_IO_WRITE) {
        return jrt_io_told_by(JANUS_INVALID, "janus_io_wait");
    }
    rest->way = way == JANUS_IO_READ ? JRT_READY_READ : JRT_READY_WRITE;
    janus_status status = jrt_io_pay_op();
    if (status == JANUS_OK) {
        status = jrt_io_enter(handle, way, exclusive_of(rest->way), &rest->io);
    }
    if (status != JANUS_OK) return jrt_io_told_by(status, "janus_io_wait");
    return jrt_io_rest_again(rest);
}

uint64_t jrt_io_rest_alarm(struct jrt_io_rest *rest, const struct jrt_worker *worker)
{
    /* acquire: as in look. */
    rest->deadline_ns = jrt_load_acquire(&rest->io->deadlines[rest->way]);
    rest->lazy = jrt_io_keeps_alarm(rest->io, worker);
    return rest->lazy ? JRT_NEVER : rest->deadline_ns;
}

/* WOULD_WAIT: the task, which has joined, may wait. */
static janus_status prepare(const struct jrt_io_rest *rest)
{
    struct jrt_io *io = rest->io;
    /* seq_cst: [ready-look]. */
    if (jrt_load_seq_cst(&io->deadlines[rest->way]) != rest->deadline_ns) return JANUS_OK;
    if (!jrt_poller_has(&io->at)) return JANUS_OK;
    if (rest->deadline_ns == JRT_NEVER || !rest->lazy) return JANUS_WOULD_WAIT;
    janus_status status = jrt_io_arm(io, rest->way, rest->deadline_ns);
    return status == JANUS_DEADLINE ? JANUS_OK : status;
}

janus_status jrt_io_rest_join(struct jrt_io_rest *rest, struct jrt_worker *worker,
                              struct jrt_task *task)
{
    struct jrt_ready *ready = &rest->io->ready;
    /* relaxed: its own bit. */
    jrt_debug_invariant("io-rest", jrt_load_relaxed(&rest->io->use) & exclusive_of(rest->way));
    worker->waits_at = (uint32_t)rest->io->fd;
    if (!jrt_ready_join(ready, rest->way, (uintptr_t)task)) return JANUS_OK;
    janus_status status = prepare(rest);
    /* If the poller, a close or a new deadline came first, that wakes the task, which waits. */
    if (status != JANUS_WOULD_WAIT && jrt_ready_retract(ready, rest->way, (uintptr_t)task)) {
        return status;
    }
    jrt_io_count_wait(1);
    return JANUS_WOULD_WAIT;
}

janus_status jrt_io_rest_leave(struct jrt_io_rest *rest, struct jrt_task *task, janus_status ended)
{
    struct jrt_io *io = rest->io;
    jrt_io_count_wait(-1);
    bool told = ended == JANUS_OK;           /* a teller woke it, [ready-last] */
    bool kicked = ended == JANUS_WOULD_WAIT; /* it looks again */
    if (!told && !kicked) jrt_ready_leave(&io->ready, rest->way, (uintptr_t)task);
    if (told) io->drained[rest->way] = JRT_IO_UNKNOWN; /* an edge came */
    if (jrt_io_is_closing(io) && ended != JANUS_CANCELLED) ended = JANUS_CLOSED;
    /* The deadline may have been set anew meanwhile: the next look decides. */
    if (ended == JANUS_DEADLINE || (told && ended == JANUS_OK && io->helped)) {
        ended = JANUS_WOULD_WAIT;
    }
    return jrt_io_rest_end(rest, ended);
}
