/* SPDX-License-Identifier: MIT */
/*
 * Shields: sections in which a cancelled task can still wait.
 *
 * A task counts its shields. Shields with a deadline lie in their callers' frames and are linked,
 * each with its place in the count. So the innermost shield has a deadline exactly if the first
 * link's place equals the count. The innermost shield alone decides. A plain shield inside one
 * with a deadline holds as long as it lasts, because its code was promised so.
 *
 * A deadline matters only to a cancelled task. Before the deadline, nothing tells the task. After
 * it, the shield no longer holds, and waits return CANCELLED.
 *
 * [shield-grace]  Where the scheduler has options.grace_ns, a shield without a deadline ends, too.
 *   It ends that long after the first call in which a shielded task could have learned of its
 *   cancel. The time belongs to the task, so that a new shield begins no new time. It does not end
 *   a wait that began before the cancel. A task that is broken off waits for the children of its
 *   open nurseries in a shield that has no end. A cancel there would break it off again.
 *
 * [shield-end]  A wait that begins before the deadline cannot be interrupted, and arms an alarm for
 *   the deadline. The alarm makes the wait interruptible, passes a light fence, and interrupts it
 *   if something above is cancelled. A cancel changes the state, passes a heavy fence, and looks
 *   at the waits ([cancel-park]). Whichever comes second sees the other. The alarm sees a cancel
 *   before the deadline; a later cancel finds a wait that it can interrupt. The task disarms the
 *   alarm before the wait returns, under the lock it rings in, so it meets no other wait.
 *
 * [shield-nursery]  A nursery that is opened in a shield is shielded. A cancel from above stops
 *   there, on its way down and when its children look up. A nursery in a plain shield is shielded
 *   for good. In a shield with a deadline it is shielded until then.
 *   An alarm ends the shield: it clears `shielded`, moves the epoch, passes a light fence, and
 *   looks above. If it finds a reason there, it cancels the nursery. A cancel from above changes
 *   its state, passes a heavy fence, and looks at `shielded`. One of the two sees the other.
 *   The epoch moves because children that looked up before have noted what is above as clean
 *   ([cancel-epoch]) without looking there. A task that reads the new epoch sees no shield.
 */
#include "cancel/cancel.h"
#include "cancel/park.h"
#include "means/call.h"
#include "task/nursery.h"
#include "task/purse.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

_Static_assert(sizeof(struct jrt_shield) <= sizeof(janus_shield), "it fits its storage");

static uint16_t count_of(const struct jrt_task *task)
{
    return jrt_load_relaxed(&task->shield); /* relaxed: only the task writes it. */
}

static void set_count(struct jrt_task *task, uint16_t count)
{
    task->dirty = true;
    jrt_store_relaxed(&task->shield, count); /* relaxed: as above. */
}

/* The innermost shield, if it has a deadline. The task has a shield. */
static struct jrt_shield *bound_of(const struct jrt_task *task)
{
    struct jrt_shield *bound = task->bounds;
    jrt_debug_invariant("scope-shield", bound == NULL || bound->depth <= count_of(task));
    return bound != NULL && bound->depth == count_of(task) ? bound : NULL;
}

void jrt_shield_begin(struct jrt_task *task)
{
    uint16_t count = count_of(task);
    jrt_contract(count < UINT16_MAX,
                 "janus_shield_begin: the task has begun 65535 shields, which is the limit");
    if (count == 0) task->bounds = NULL; /* the record may hold a stale pointer */
    set_count(task, (uint16_t)(count + 1));
}

void jrt_shield_end(struct jrt_task *task)
{
    struct jrt_shield *bound = bound_of(task);
    if (bound != NULL) task->bounds = bound->outer;
    set_count(task, (uint16_t)(count_of(task) - 1));
}

static void begin_until(struct jrt_task *task, struct jrt_shield *shield, uint64_t deadline_ns)
{
    jrt_shield_begin(task);
    *shield = (struct jrt_shield){task->bounds, deadline_ns, count_of(task)};
    task->bounds = shield;
}

void jrt_shield_for_cleanup(struct jrt_task *task, struct jrt_shield *grace)
{
    uint64_t grace_ns = task->nursery->scheduler->grace_ns;
    uint64_t now = grace_ns != 0 ? jrt_clock_now_ns() : 0;
    uint64_t deadline_ns = grace_ns != 0 && now + grace_ns > now ? now + grace_ns : JRT_NEVER;
    set_count(task, 0); /* the shields of the ended call ended with it */
    begin_until(task, grace, deadline_ns);
}

void jrt_shield_only(struct jrt_task *task, struct jrt_shield *grace)
{
    set_count(task, 1);
    task->bounds = grace;
}

/* It has no end, see [shield-grace]. Nobody writes it, so all tasks share it. */
static struct jrt_shield whole = {NULL, JRT_NEVER, 1};

void jrt_shield_whole(struct jrt_task *task)
{
    task->bounds = &whole; /* the others lay in frames that are not entered again */
    set_count(task, 1);
}

/* Whether a shield without a deadline holds, [shield-grace]. */
static bool plain_holds(const struct jrt_task *task)
{
    uint64_t grace_ns = task->nursery->scheduler->grace_ns;
    if (grace_ns == 0) return true;
    if (!jrt_nursery_cancelled_above(task->nursery) && !jrt_task_is_singled(task)) return true;
    struct jrt_purse *purse = jrt_purse_need((struct jrt_task *)(uintptr_t)task); /* current */
    if (purse == NULL) return true;
    uint64_t now = jrt_clock_now_ns();
    if (purse->shield_ns == 0) purse->shield_ns = now + grace_ns > now ? now + grace_ns : JRT_NEVER;
    jrt_debug_invariant("shield-grace",
                        purse->shield_ns == JRT_NEVER || purse->shield_ns - grace_ns <= now);
    return now < purse->shield_ns;
}

bool jrt_shield_holds(const struct jrt_task *task)
{
    const struct jrt_shield *bound = bound_of(task);
    if (bound == &whole) return true;
    if (bound == NULL || bound->deadline_ns == JRT_NEVER) return plain_holds(task);
    return jrt_clock_now_ns() < bound->deadline_ns;
}

/* The public calls. */

void janus_shield_begin(void)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = jrt_task_current();
    if (task != NULL) jrt_shield_begin(task);
}

void janus_shield_begin_until(janus_shield *shield, uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_task *task = jrt_task_current();
    if (task == NULL) return;
    jrt_contract(shield != NULL, "janus_shield_begin_until: shield is NULL");
    begin_until(task, (struct jrt_shield *)(void *)shield, deadline_ns);
}

void janus_shield_end(void)
{
    struct jrt_task *task = jrt_task_current();
    if (task == NULL) return;
    /* The first shield of a task that is cleaning up belongs to the library. */
    jrt_contract(count_of(task) > task->ending, "janus_shield_end without janus_shield_begin");
    jrt_shield_end(task);
}

/* Waiting. */

static void ring_wait(struct jrt_alarm *alarm)
{
    struct jrt_task *task = alarm->subject;
    uint32_t         park = jrt_load_relaxed(&task->park); /* relaxed: the cas decides. */
    do {
        if ((park & JRT_PARK_MASK) == JRT_AWAKE) return;
        /* acq_rel: a later interrupt sees what came before. */
    } while (!jrt_cas_acq_rel(&task->park, &park, park | JRT_INTERRUPTIBLE));
    jrt_debug_invariant("shield-end", count_of(task) > 0); /* no other wait */
    jrt_fence_light_seq_cst();                             /* seq_cst: [shield-end]. */
    if (jrt_nursery_cancelled_above(task->nursery) || jrt_task_is_singled(task) ||
        jrt_task_cancelled_scope(task) != NULL) {
        (void)jrt_task_interrupt(task, JANUS_CANCELLED);
    }
}

/* Arms the alarm for a wait's end. False: memory refused. */
static bool arm_wait(struct jrt_task *task, const struct jrt_shield *bound, struct jrt_alarm *alarm)
{
    *alarm = (struct jrt_alarm){.ring = ring_wait, .subject = task};
    return jrt_sched_timer_arm(task->nursery->scheduler, &alarm->timer, bound->deadline_ns);
}

janus_status jrt_shield_park(struct jrt_task *task)
{
    const struct jrt_shield *bound = bound_of(task);
    struct jrt_alarm         alarm;
    /* relaxed: set by ourselves, when the wait began. */
    bool interruptible = (jrt_load_relaxed(&task->park) & JRT_INTERRUPTIBLE) != 0;
    bool ends = bound != NULL && bound->deadline_ns != JRT_NEVER && !interruptible;
    if (ends && !arm_wait(task, bound, &alarm)) {
        if (jrt_task_park_undo(task)) return JANUS_NO_MEMORY;
        return jrt_task_park(jrt_worker_self(), task);
    }
    jrt_fence_light_seq_cst(); /* seq_cst: [cancel-park]. */
    bool         cancelled = jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    janus_status status = JANUS_CANCELLED;
    if (!cancelled || !jrt_task_park_undo(task)) status = jrt_task_park(jrt_worker_self(), task);
    if (ends) jrt_sched_timer_disarm(task->nursery->scheduler, &alarm.timer);
    return status;
}

/* Nurseries. */

static void ring_nursery(struct jrt_alarm *alarm)
{
    struct jrt_nursery *n = alarm->subject;
    uint64_t            begun = jrt_cancels_begin(n);
    /* relaxed: only this alarm changes it while the nursery is open. */
    jrt_debug_invariant("shield-nursery", jrt_load_relaxed(&n->shielded) == JRT_SHIELDED_UNTIL);
    /* release: a reader of it, or of the epoch, sees what came before. */
    jrt_store_release(&n->shielded, (uint8_t)JRT_SHIELDED_OVER);
    jrt_cancels_finish(n, begun, true); /* [shield-nursery] */
    jrt_fence_light_seq_cst();          /* seq_cst: [shield-nursery]. */
    bool singled = jrt_task_is_singled(n->owner);
    if (singled || jrt_nursery_cancelled_above(jrt_nursery_above(n))) {
        /* Under the timers' lock. */
        (void)jrt_nursery_cancel_locked(n, jrt_task_reason_below(n->owner));
    }
}

janus_status jrt_shield_nursery(struct jrt_nursery *n, const struct jrt_task *owner)
{
    if (count_of(owner) == 0) return JANUS_OK;
    const struct jrt_shield *bound = bound_of(owner);
    bool                     ends = bound != NULL && bound->deadline_ns != JRT_NEVER;
    if (ends && !jrt_shield_holds(owner)) return JANUS_OK;
    n->level = count_of(owner); /* before `shielded`: [scope-shield] */
    /* relaxed: nobody knows the nursery yet. The alarm takes the timers' lock. */
    jrt_store_relaxed(&n->shielded, (uint8_t)(ends ? JRT_SHIELDED_UNTIL : JRT_SHIELDED_FOR_GOOD));
    if (!ends) return JANUS_OK;
    n->shield_alarm = (struct jrt_alarm){.ring = ring_nursery, .subject = n};
    bool armed = jrt_sched_timer_arm(n->scheduler, &n->shield_alarm.timer, bound->deadline_ns);
    return armed ? JANUS_OK : JANUS_NO_MEMORY;
}

void jrt_shield_nursery_end(struct jrt_nursery *n)
{
    jrt_sched_timer_disarm(n->scheduler, &n->shield_alarm.timer);
}
