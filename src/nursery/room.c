/* SPDX-License-Identifier: MIT */
/*
 * Limits: the number of live children in a nursery, and what happens to one more.
 *
 * REFUSE: a count, changed without a lock.
 *
 * [room-hand]  WAIT: everything is under the nursery's lock. A spawner that finds no room, or finds
 *   others waiting, joins the end of the queue. The end of a child does not lower the count while
 *   a spawner waits. It hands its room to the first spawner: takes it off the queue, notes that in
 *   its entry and wakes it. So nobody overtakes, and a full nursery stays full until the queue is
 *   empty.
 *
 *   A task that closes the nursery changes its state and then, under the lock, sends all spawners
 *   away. A spawner that joins the queue reads the state under the lock. So either it sees that
 *   the nursery is not Open, or it is sent away.
 *
 *   A task's wait may also be interrupted. Before it returns, the task takes the lock. If its
 *   entry is still queued, it takes it off. If it was handed room meanwhile, it passes that on.
 *   Wakers wake under the lock, so no wake comes later. The entry lies on the waiter's stack. A
 *   thread's entry has a word to sleep on. The waker's last touch is under the lock, which the
 *   thread takes.
 */
#include "means/room.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"

/* Turns the end of a wait into a status. */
static janus_status come_back(struct jrt_nursery *n, struct jrt_spawner *spawner,
                              janus_status ended)
{
    jrt_nursery_lock(n);
    bool queued = jrt_load_relaxed(&spawner->woken) == 0; /* relaxed: under the lock. */
    if (queued) jrt_list_remove(&spawner->link);
    if (ended != JANUS_OK && !queued && spawner->outcome == JANUS_OK) jrt_room_give_locked(n);
    jrt_nursery_unlock(n);
    return ended != JANUS_OK ? ended : spawner->outcome;
}

static janus_status queue_up(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct jrt_spawner *spawner = (struct jrt_spawner *)waiting;
    (void)task;
    janus_status status = jrt_room_take_or_queue(spawner->nursery, spawner);
    return status == JANUS_FULL ? JANUS_WOULD_WAIT : status;
}

static janus_status leave_queue(struct jrt_waiting *waiting, struct jrt_task *task,
                                janus_status ended)
{
    struct jrt_spawner *spawner = (struct jrt_spawner *)waiting;
    (void)task;
    return come_back(spawner->nursery, spawner, ended);
}

static janus_status wait_as_task(struct jrt_nursery *n, struct jrt_worker *worker)
{
    struct jrt_task   *task = worker->current;
    struct jrt_spawner spawner = {.waiting = {.why = JRT_WAIT_ROOM,
                                              .deadline_ns = JRT_NEVER,
                                              .join = queue_up,
                                              .leave = leave_queue},
                                  .nursery = n,
                                  .task = task};
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) return JANUS_CANCELLED;
    janus_status status = jrt_wait(worker, &spawner.waiting);
    /* A cancel may send a child of the nursery away before the child learns the reason. */
    bool told = status == JANUS_CLOSED && jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    return told ? JANUS_CANCELLED : status;
}

static janus_status wait_as_thread(struct jrt_nursery *n)
{
    struct jrt_spawner spawner = {.task = NULL};
    if (!jrt_nursery_is_mine(n)) return JANUS_FULL; /* a token's callback, or a blocking call */
    janus_status status = jrt_room_take_or_queue(n, &spawner);
    if (status != JANUS_FULL) return status;
    jrt_nursery_thread_waits(n);
    (void)jrt_wait_as_thread(&spawner.woken, JRT_NEVER);
    jrt_nursery_thread_goes_on(n);
    return come_back(n, &spawner, JANUS_OK);
}

janus_status jrt_room_take(struct jrt_nursery *n)
{
    if (n->when_full == JANUS_WHEN_FULL_REFUSE) return jrt_room_take_or_refuse(n);
    janus_status status = jrt_room_take_or_queue(n, NULL);
    if (status != JANUS_FULL) return status;
    struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL ? wait_as_task(n, worker) : wait_as_thread(n);
}
