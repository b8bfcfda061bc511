/* SPDX-License-Identifier: MIT */
/*
 * Looking at tasks, workers and nurseries without stopping them.
 *
 * [dump-peek]  Some words belong to a worker or an owner, such as the current task and the plain
 *   count of children. A dump reads them while they change. Any value will do: numbers are
 *   printed, and a task's record stays readable when it is free. A free record's name does not, so
 *   a dump shows names only of tasks in the tree.
 *
 * [peek-time]  A task notes the time only when it leaves the CPU to wait. It uses a clock that
 *   stands still between the kernel's ticks (4 ms at 250 ticks a second). That costs 5 ns for a
 *   wait, and nothing for starting, running and yielding. Where a worker goes from one wait
 *   straight to the next, even that is too much. There, one clock reading serves up to
 *   JRT_SINCE_WAITS waits of a worker, while each task has used few ops since it went on.
 *   So the time of a waiting task is known to a tick and at most JRT_SINCE_WAITS such turns, which
 *   are microseconds in all. If a turn computed for long without a check, the reported time is too
 *   long by that turn. A task that no longer waits has been in its state for less than the
 *   reported time.
 *
 * Order of locks: those of nurseries that callers hold, then the seats'.
 */
#include "look/peek.h"

#include "cancel/wait.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/seat.h"
#include "work/work.h"

#include <stdio.h>

static const char without_stack[] = ", without a stack";

__attribute__((noinline, no_sanitize("thread"))) janus_task_id
jrt_peek_current(const struct jrt_worker *worker)
{
    const struct jrt_task *task = *(struct jrt_task *const volatile *)&worker->current;
    if (task == NULL) return 0;
    uint32_t generation = jrt_load_relaxed(&task->record.generation); /* relaxed: [dump-peek]. */
    return (uint64_t)(*(const volatile uint32_t *)&task->record.index + 1) << 32 | generation;
}

uint64_t jrt_peek_queued(const struct jrt_worker *worker)
{
    uint64_t queued = 0;
    for (unsigned lane = 0; lane < JRT_LANES; lane++) {
        queued += jrt_count_fresh(worker, lane) + jrt_count_again(worker, lane);
    }
    return queued;
}

__attribute__((noinline, no_sanitize("thread"))) static int64_t peek_signed(const int64_t *number)
{
    return *(const volatile int64_t *)number;
}

int64_t jrt_peek_children(const struct jrt_nursery *n)
{
    int64_t pending = jrt_load_acquire(&n->pending); /* acquire: what they did. */
    if (pending > JRT_NURSERY_BIAS / 2) pending += peek_signed(&n->local) - JRT_NURSERY_BIAS;
    return pending > 0 ? pending : 0;
}

/* The worker that runs the task now; UINT32_MAX: none. */
static uint32_t worker_of(const struct jrt_task *task)
{
    janus_scheduler *scheduler = task->nursery->scheduler;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (jrt_peek_current(&scheduler->workers[i]) == jrt_task_id(task)) return i;
    }
    return jrt_seat_running(scheduler, jrt_task_id(task));
}

/*
 * A task that was woken and is not on a CPU yet is ready. A running task may be on no CPU and have
 * open nurseries in which children wait. Such a task awaits them: it lies below a child that it
 * runs in place.
 */
void jrt_peek_task(const struct jrt_task *task, struct jrt_sight *out)
{
    uint8_t  state = jrt_load_acquire(&task->state);   /* acquire: since when, [peek-time]. */
    uint8_t  wait = jrt_load_relaxed(&task->wait);     /* relaxed, all: shown as they are. */
    uint32_t park = jrt_load_relaxed(&task->park);     /* relaxed: as above. */
    bool     linked = jrt_load_relaxed(&task->linked); /* relaxed: under the lock. */
    uint32_t since = jrt_load_relaxed(&task->since);   /* relaxed: as above. */
    uint32_t worker = UINT32_MAX;
    if (since != 0) worker = jrt_load_relaxed(&task->worker); /* relaxed: as above. */
    bool waits = state == JANUS_TASK_STATE_BLOCKED || state == JANUS_TASK_STATE_BUDGET_EXHAUSTED;
    bool at_most = !waits;
    if (waits && (park & JRT_PARK_MASK) == JRT_AWAKE) {
        state = JANUS_TASK_STATE_READY;
        at_most = true;
    }
    /* The task is on its nursery's list of exhausted children. It is leaving the CPU, or has left
     * it since its state was read. */
    bool asleep = (park & JRT_PARK_MASK) != JRT_AWAKE;
    if (state == JANUS_TASK_STATE_RUNNING && wait == JRT_WAIT_BUDGET && asleep) {
        state = JANUS_TASK_STATE_BUDGET_EXHAUSTED;
    }
    if (state == JANUS_TASK_STATE_RUNNING) {
        uint32_t here = worker_of(task);
        if (here != UINT32_MAX) {
            worker = here;
        } else if (linked && !jrt_list_empty(&task->nurseries)) {
            state = JANUS_TASK_STATE_BLOCKED;
            wait = JRT_WAIT_NURSERY;
        }
    }
    waits = state == JANUS_TASK_STATE_BLOCKED || state == JANUS_TASK_STATE_BUDGET_EXHAUSTED;
    bool rests = waits && ((wait & JRT_WAIT_AT_REST) != 0 || wait == JRT_WAIT_MAIL);
    wait = waits ? wait & (uint8_t)~JRT_WAIT_AT_REST : JRT_WAIT_NONE;
    uint32_t units = since != 0 ? jrt_since_now() - since : 0; /* also when the counter wraps */
    *out = (struct jrt_sight){.state = (janus_task_state)state,
                              .kind = (enum jrt_wait)wait,
                              .rests = rests,
                              .worker = worker,
                              .state_ns = units != 0 ? units * JRT_SINCE_NS : since != 0,
                              .at_most = at_most};
    jrt_name_again(out->wait, sizeof out->wait, jrt_wait_text(wait));
    if (rests && wait != JRT_WAIT_MAIL) {
        (void)snprintf(out->wait, sizeof out->wait, "%s%s", jrt_wait_text(wait), without_stack);
    }
    if (state != JANUS_TASK_STATE_BLOCKED || wait != JRT_WAIT_POINT) return;
    const char *reason = jrt_load_acquire(&task->reason); /* acquire: [point-reason]. */
    if (reason != NULL) (void)jrt_name_copy(out->wait, sizeof out->wait, reason);
}

/* Seats. */

void jrt_seats_show(janus_scheduler *scheduler,
                    void (*show)(void *argument, uint32_t number, janus_task_id id), void *argument)
{
    jrt_lock(&scheduler->seats_lock);
    struct jrt_list_node *node = scheduler->seats.next;
    for (; node != &scheduler->seats; node = node->next) {
        const struct jrt_seat *seat = jrt_list_entry(node, struct jrt_seat, link);
        if (jrt_load_acquire(&seat->over)) continue; /* acquire: as in reap, seat.c. */
        show(argument, seat->worker.index, jrt_peek_current(&seat->worker));
    }
    jrt_unlock(&scheduler->seats_lock);
}

struct search {
    janus_task_id id;
    uint32_t      number;
};

static void compare(void *argument, uint32_t number, janus_task_id id)
{
    struct search *search = argument;
    if (id == search->id) search->number = number;
}

uint32_t jrt_seat_running(janus_scheduler *scheduler, janus_task_id id)
{
    struct search search = {id, UINT32_MAX};
    jrt_seats_show(scheduler, compare, &search);
    return search.number;
}
