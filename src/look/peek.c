/* SPDX-License-Identifier: MIT */
/*
 * Looking without asking to wait.
 *
 * [dump-peek]  what only a worker or an owner writes, the current task, children that are counted
 *   without atomics, is read as it lies, while it changes. Any value will do: numbers are
 *   printed, and a task's record stays readable when it is free. Its name does not, so only tasks
 *   in the tree are shown with theirs.
 *
 * [peek-time]  a task notes the time only when it leaves the CPU to wait, by a clock that stands
 *   still between the kernel's ticks (4 ms where it ticks 250 times a second): 5 ns for a wait,
 *   nothing for starting, running and giving way. Where a worker goes from one wait straight to
 *   the next even that is much, so there one look does for up to JRT_SINCE_WAITS waits of a worker,
 *   as long as each task has used few ops since it went on. So the time of a task that waits is
 *   known to a tick and at most JRT_SINCE_WAITS such turns, microseconds in all; more only where
 *   one of them computed for long without a single check, and then it is told as too long, by that.
 *   One that does not wait any more has been in its state for less than that.
 *
 * Locks: the seats', inside those of nurseries that callers hold.
 */
#include "look/peek.h"

#include "work/seat.h"

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

/* What a record says about itself: whether it is, for certain, a child that can be joined. */
__attribute__((noinline, no_sanitize("thread"))) bool jrt_task_peek_joinable(
    const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id)
{
    /* acquire: what the task was given came before its id. */
    if ((uint32_t)id != jrt_load_acquire(&task->record.generation)) return false;
    struct jrt_nursery *nursery = *(struct jrt_nursery *const volatile *)&task->nursery;
    bool                joinable = *(const volatile bool *)&task->joinable;
    jrt_fence_seq_cst(); /* seq_cst: the second look comes after what we read. */
    /* relaxed: after the fence. */
    if ((uint32_t)id != jrt_load_relaxed(&task->record.generation)) return false;
    return joinable && nursery == n;
}

__attribute__((noinline, no_sanitize("thread"))) bool jrt_task_peek_child(
    const struct jrt_task *task, const struct jrt_nursery *n, janus_task_id id, bool *out_linked)
{
    /* acquire: what the task was given came before its id. */
    if ((uint32_t)id != jrt_load_acquire(&task->record.generation)) return false;
    struct jrt_nursery *nursery = *(struct jrt_nursery *const volatile *)&task->nursery;
    bool                kept = *(const volatile bool *)&task->kept;
    *out_linked = *(const volatile bool *)(const volatile void *)&task->linked;
    jrt_fence_seq_cst(); /* seq_cst: the second look comes after what we read. */
    /* relaxed: after the fence. */
    if ((uint32_t)id != jrt_load_relaxed(&task->record.generation)) return false;
    return nursery == n && !kept;
}

/* The worker whose current task it is; UINT32_MAX: none's. */
static uint32_t worker_of(const struct jrt_task *task)
{
    janus_scheduler *scheduler = task->nursery->scheduler;
    for (uint32_t i = 0; i < scheduler->worker_count; i++) {
        if (jrt_peek_current(&scheduler->workers[i]) == jrt_task_id(task)) return i;
    }
    return jrt_seat_running(scheduler, jrt_task_id(task));
}

/*
 * A task that was woken and is not on a CPU yet is ready. One that runs, has open nurseries that
 * somebody waits in, and is on no CPU, awaits them: it lies below a child that it runs in place.
 */
void jrt_peek_task(const struct jrt_task *task, struct jrt_sight *out)
{
    uint8_t  state = jrt_load_acquire(&task->state);   /* acquire: since when, [peek-time]. */
    uint8_t  wait = jrt_load_relaxed(&task->wait);     /* relaxed, all: told as they are. */
    uint32_t park = jrt_load_relaxed(&task->park);     /* relaxed: as above. */
    bool     linked = jrt_load_relaxed(&task->linked); /* relaxed: under the lock. */
    uint32_t since = jrt_load_relaxed(&task->since);   /* relaxed: as above. */
    uint32_t worker = UINT32_MAX;
    if (since != 0) worker = jrt_load_relaxed(&task->worker); /* relaxed: as above. */
    bool waits = state == JANUS_TASK_BLOCKED || state == JANUS_TASK_BUDGET_EXHAUSTED;
    bool at_most = !waits;
    if (waits && (park & JRT_PARK_MASK) == JRT_AWAKE) {
        state = JANUS_TASK_READY;
        at_most = true;
    }
    /* The task is on its nursery's list of exhausted children. It is on its way off the CPU, or has
     * left the CPU since its state was read. */
    bool asleep = (park & JRT_PARK_MASK) != JRT_AWAKE;
    if (state == JANUS_TASK_RUNNING && wait == JRT_WAIT_BUDGET && asleep) {
        state = JANUS_TASK_BUDGET_EXHAUSTED;
    }
    if (state == JANUS_TASK_RUNNING) {
        uint32_t here = worker_of(task);
        if (here != UINT32_MAX) {
            worker = here;
        } else if (linked && !jrt_list_empty(&task->nurseries)) {
            state = JANUS_TASK_BLOCKED;
            wait = JRT_WAIT_NURSERY;
        }
    }
    waits = state == JANUS_TASK_BLOCKED || state == JANUS_TASK_BUDGET_EXHAUSTED;
    if (!waits) wait = JRT_WAIT_NONE;
    uint32_t units = since != 0 ? jrt_since_now() - since : 0; /* around the end of the count too */
    *out = (struct jrt_sight){.state = (janus_task_state)state,
                              .kind = (enum jrt_wait)wait,
                              .worker = worker,
                              .state_ns = units != 0 ? units * JRT_SINCE_NS : since != 0,
                              .at_most = at_most};
    jrt_name_again(out->wait, sizeof out->wait, jrt_wait_text(wait));
    if (state != JANUS_TASK_BLOCKED || wait != JRT_WAIT_POINT) return;
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
