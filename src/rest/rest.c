/* SPDX-License-Identifier: MIT */
/*
 * Resting tasks: the public form of a task at rest, [task-rest] in nursery/rest.c.
 *
 * A resting task is spawned as an ordinary one, whose entry is resting_main. When it first runs, it
 * becomes resident ([rest-adopt]). Its entry then begins the call that its rest stands for. If the
 * task has to wait, the entry returns JRT_REST. Then `rests` registers the task with its wakers,
 * when it has no frame any more. The worker that gets the woken task calls the entry again, which
 * ends the wait and calls the step.
 *
 * [rest-order]  The wait takes the steps of [wait-order], but in two halves. What may yield, or end
 *   the task, is done on the stack: checks of rights, payment, a first try. Arming and joining is
 *   done when the task is PARKING and has no frame. There, nothing may be done that needs a task.
 *   If the wait turns out to be unnecessary, the task runs again at once, and looks again. Then it
 *   has registered with nobody. The park word keeps the waker's status until the entry reads it.
 *
 * [rest-joined]  While `joined` is set, wakers may know the task. Only the end of the wait clears
 *   it: in the entry, or at the end of a task whose entry got no stack. The code that parked the
 *   task does not touch the record any more, because the task may already run elsewhere.
 *
 * [rest-inside]  While `inside` is set, a call has begun and has not ended. A handle counts the
 *   task as a reader, and an operation is paid. If the task ends in between, its end ends the call.
 */
#include "base/options.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/callback.h"
#include "means/terms.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "plat/seam.h"
#include "plat/world.h"
#include "rest/channel.h"
#include "rest/handle.h"
#include "stack/slab.h"
#include "task/worker.h"
#include "work/leave.h"
#include "work/work.h"

#include <janusrt/fiber.h>
#include <janusrt/rest.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct kind;

struct resting {
    struct jrt_resident resident; /* first */
    janus_rest_step    *step;
    void               *state;
    janus_drop         *drop;  /* the spawn's, until the first step; or NULL */
    const janus_site   *site;  /* the task's own, [rest-adopt] */
    janus_rest          rest;  /* what it waits for */
    struct jrt_alarm    alarm; /* ends the wait */
    union {
        struct jrt_chan_rest receive; /* RECV */
        struct jrt_io_rest   visit;   /* IO */
    };
    bool adopted;  /* the task has begun */
    bool refused;  /* there is no stack for its next step */
    bool inside;   /* [rest-inside] */
    bool joined;   /* [rest-joined] */
    bool timed;    /* joined: the alarm was armed */
    bool starving; /* there was no memory to wait */
};

_Static_assert(sizeof(struct resting) <= 304, "as the header promises");

/* What a task can wait for. Each is a public call, cut in two: [rest-order]. */
struct kind {
    /* On the stack. Begins the call, or looks again. WOULD_WAIT: the task must rest. Any other
     * status ends the call. */
    janus_status (*begin)(struct resting *self, struct jrt_task *task);
    janus_status (*again)(struct resting *self, struct jrt_task *task);

    /* Ends a call that must rest, and does not. Returns the status. */
    janus_status (*give_up)(struct resting *self, struct jrt_task *task, janus_status status);

    /* Without a stack. When the alarm has to ring; JRT_NEVER: it need not. */
    uint64_t (*alarm)(struct resting *self, const struct jrt_worker *worker);

    /* Registers the task with its wakers. WOULD_WAIT: it waits. OK: it must look again.
     * NO_MEMORY. */
    janus_status (*join)(struct resting *self, struct jrt_worker *worker, struct jrt_task *task);

    /* The wait has ended with `ended`. Takes back what `join` registered. As `again`. `worker` is
     * NULL if the task has ended. */
    janus_status (*leave)(struct resting *self, struct jrt_worker *worker, struct jrt_task *task,
                          janus_status ended);
};

/* The clock. */

static janus_status sleep_on(struct resting *self, struct jrt_task *task)
{
    if (self->rest.deadline_ns == JRT_NEVER) self->rest.deadline_ns = JRT_NEVER - 1;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) {
        return jrt_task_cancelled_or_end(task);
    }
    return jrt_wait_is_late(self->rest.deadline_ns) ? janus_yield() : JANUS_WOULD_WAIT;
}

static janus_status stop_sleeping(struct resting *self, struct jrt_task *task, janus_status status)
{
    (void)self, (void)task;
    return status;
}

static uint64_t own_deadline(struct resting *self, const struct jrt_worker *worker)
{
    (void)worker;
    return self->rest.deadline_ns;
}

static janus_status join_nobody(struct resting *self, struct jrt_worker *worker,
                                struct jrt_task *task)
{
    (void)self, (void)worker, (void)task;
    return JANUS_WOULD_WAIT;
}

static janus_status leave_nobody(struct resting *self, struct jrt_worker *worker,
                                 struct jrt_task *task, janus_status ended)
{
    (void)self, (void)worker, (void)task;
    return ended;
}

/* A channel. */

/* A receive has paid and looked. */
static janus_status looked(const struct resting *self, const struct jrt_task *task,
                           janus_status status)
{
    if (status != JANUS_WOULD_WAIT) return jrt_chan_rest_settle(task, status);
    if (!jrt_wait_is_late(self->rest.deadline_ns)) return JANUS_WOULD_WAIT;
    return jrt_chan_rest_settle(task, JANUS_DEADLINE);
}

static janus_status receive(struct resting *self, struct jrt_task *task)
{
    janus_status status = jrt_chan_rest_begin(&self->receive, self->rest.channel, self->rest.value);
    return status == JANUS_WOULD_WAIT ? looked(self, task, status) : status;
}

static janus_status receive_again(struct resting *self, struct jrt_task *task)
{
    return looked(self, task,
                  jrt_chan_rest_again(&self->receive, self->rest.channel, self->rest.value));
}

static janus_status stop_receiving(struct resting *self, struct jrt_task *task, janus_status status)
{
    (void)self;
    return jrt_chan_rest_settle(task, status);
}

static janus_status join_channel(struct resting *self, struct jrt_worker *worker,
                                 struct jrt_task *task)
{
    bool waits =
        jrt_chan_rest_join(&self->receive, worker, task, self->rest.channel, self->rest.value);
    return waits ? JANUS_WOULD_WAIT : JANUS_OK;
}

static janus_status leave_channel(struct resting *self, struct jrt_worker *worker,
                                  struct jrt_task *task, janus_status ended)
{
    janus_scheduler *scheduler = task->nursery->scheduler;
    return jrt_chan_rest_settle(task,
                                jrt_chan_rest_leave(&self->receive, worker, scheduler, ended));
}

/* A handle. */

static janus_status visit(struct resting *self, struct jrt_task *task)
{
    (void)task;
    return jrt_io_end(jrt_io_rest_begin(&self->visit, self->rest.io, self->rest.way));
}

static janus_status visit_again(struct resting *self, struct jrt_task *task)
{
    (void)task;
    return jrt_io_rest_again(&self->visit);
}

static janus_status stop_visiting(struct resting *self, struct jrt_task *task, janus_status status)
{
    (void)task;
    return jrt_io_rest_end(&self->visit, status);
}

static uint64_t alarm_of_visit(struct resting *self, const struct jrt_worker *worker)
{
    return jrt_io_rest_alarm(&self->visit, worker);
}

static janus_status join_handle(struct resting *self, struct jrt_worker *worker,
                                struct jrt_task *task)
{
    return jrt_io_rest_join(&self->visit, worker, task);
}

static janus_status leave_handle(struct resting *self, struct jrt_worker *worker,
                                 struct jrt_task *task, janus_status ended)
{
    (void)worker;
    return jrt_io_rest_leave(&self->visit, task, ended);
}

static const struct kind kinds[] = {
    [JANUS_REST_KIND_SLEEP] = {sleep_on, sleep_on, stop_sleeping, own_deadline, join_nobody,
                               leave_nobody},
    [JANUS_REST_KIND_RECV] = {receive, receive_again, stop_receiving, own_deadline, join_channel,
                              leave_channel},
    [JANUS_REST_KIND_IO] = {visit, visit_again, stop_visiting, alarm_of_visit, join_handle,
                            leave_handle},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static const struct kind *kind_of(const struct resting *self)
{
    jrt_debug_invariant("rest-order", self->rest.kind != JANUS_REST_KIND_DONE);
    return &kinds[self->rest.kind];
}

static enum jrt_wait reason_of(const struct resting *self)
{
    if (self->rest.kind == JANUS_REST_KIND_SLEEP) return JRT_WAIT_SLEEP;
    if (self->rest.kind == JANUS_REST_KIND_RECV) return JRT_WAIT_RECV;
    return self->rest.way == JANUS_IO_READ ? JRT_WAIT_READ : JRT_WAIT_WRITE;
}

/* Ends the wait of a task that has joined. */
static janus_status leave(struct resting *self, struct jrt_worker *worker, struct jrt_task *task)
{
    janus_status ended = jrt_park_ended(task);
    /* A sleeper that woke with OK was woken by the alarm, which is then not armed. */
    bool rang = self->rest.kind == JANUS_REST_KIND_SLEEP && ended == JANUS_OK;
    self->joined = false;
    ended = kind_of(self)->leave(self, worker, task, ended);
    if (self->timed && !rang) {
        jrt_sched_timer_disarm(task->nursery->scheduler, &self->alarm.timer);
    }
    return ended;
}

/* Why a call that must rest ends. OK: it does not. */
static janus_status reason_to_stop(struct resting *self, const struct jrt_task *task)
{
    bool starving = self->starving;
    self->starving = false;
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) return JANUS_CANCELLED;
    return starving ? JANUS_NO_MEMORY : JANUS_OK;
}

/* The entry is called again. Returns the status for the next step, or WOULD_WAIT. */
static janus_status come_back(struct resting *self, struct jrt_task *task)
{
    janus_status status = JANUS_WOULD_WAIT;
    if (self->joined) status = leave(self, jrt_worker_self(), task);
    if (status == JANUS_WOULD_WAIT) {
        janus_status stop = reason_to_stop(self, task);
        status = stop == JANUS_OK ? kind_of(self)->again(self, task)
                                  : kind_of(self)->give_up(self, task, stop);
    }
    self->inside = status == JANUS_WOULD_WAIT;
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

/* Steps. */

static bool is_kind(janus_rest_kind kind) { return (unsigned)kind < KINDS; }

static void panic_kind(janus_rest_kind kind)
{
    char message[JRT_MESSAGE_BYTES];
    (void)snprintf(message, sizeof message,
                   "its step returned a janus_rest of kind %u, which is not a janus_rest_kind",
                   (unsigned)kind);
    janus_panic(message);
}

/* Whether the address lies on the part of the stack below `frame`, which steps use. */
static bool is_on_stack(const void *at, const char *frame)
{
    const struct jrt_stack *stack = jrt_worker_self()->strand->stack;
    return (const char *)at >= jrt_stack_low(stack) && (const char *)at < frame;
}

static void check(const struct resting *self)
{
    const char *frame = __builtin_frame_address(0);
    if (jrt_unlikely(!is_kind(self->rest.kind))) panic_kind(self->rest.kind);
    if (self->rest.kind == JANUS_REST_KIND_RECV && is_on_stack(self->rest.value, frame)) {
        janus_panic(
            "its step returned a janus_rest whose value lies on the step's stack, which the "
            "next step uses again: put the value into the state");
    }
}

/* Shields that the step has left: they lay in frames that are gone. */
static void drop_shields(struct jrt_task *task)
{
    if (jrt_likely(jrt_load_relaxed(&task->shield) == 0)) return; /* relaxed: its own. */
    jrt_store_relaxed(&task->shield, (uint16_t)0);                /* relaxed: as above. */
    task->bounds = NULL;
}

static const struct jrt_resident_rules rules, rules_at_end;

static int64_t end(struct resting *self)
{
    self->resident.rules = &rules_at_end; /* the result may be JRT_REST */
    return self->rest.result;
}

/* Calls steps until the task waits or ends. `woke`: OK or an error for the next step. */
static int64_t run(struct resting *self, struct jrt_task *task, janus_status woke)
{
    while (woke != JANUS_WOULD_WAIT) {
        if (jrt_unlikely(!jrt_fuel_one())) (void)jrt_pay_ops(task, 1); /* a cancel is seen below */
        self->drop = NULL; /* from here on the state is the steps' */
        self->rest = self->step(self->state, woke);
        if (jrt_unlikely(task->innermost != NULL)) return 0; /* [ending-open] */
        drop_shields(task);
        check(self);
        if (self->rest.kind == JANUS_REST_KIND_DONE) return end(self);
        woke = kind_of(self)->begin(self, task);
        self->inside = woke == JANUS_WOULD_WAIT;
    }
    return JRT_REST;
}

/* Ends the call that the task rests in, because the task ends. `worker` is as for `leave`. */
static void stop(struct resting *self, struct jrt_worker *worker, struct jrt_task *task)
{
    bool inside = self->inside;
    jrt_debug_invariant("rest-inside", inside || !self->joined);
    self->inside = false;
    if (self->joined) inside = leave(self, worker, task) == JANUS_WOULD_WAIT;
    if (inside) (void)kind_of(self)->give_up(self, task, JANUS_NO_MEMORY);
}

/* The task ends on a smaller stack: its defers run there. */
static int64_t end_refused(struct resting *self, struct jrt_task *task)
{
    stop(self, jrt_worker_self(), task);
    self->rest = janus_rest_done(JANUS_NO_MEMORY);
    return end(self);
}

static int64_t resting_main(void *argument)
{
    struct resting  *self = argument;
    struct jrt_task *task = jrt_task_current();
    janus_status     woke;
    if (jrt_unlikely(self->refused)) return end_refused(self, task);
    if (jrt_likely(self->adopted)) {
        woke = come_back(self, task);
    } else {
        self->resident = (struct jrt_resident){.rules = &rules};
        self->adopted = true;
        self->site = task->site;
        jrt_rest_adopt(task, &self->resident);
        if (self->rest.kind == JANUS_REST_KIND_DONE) return end(self);
        woke = kind_of(self)->begin(self, task);
        self->inside = woke == JANUS_WOULD_WAIT;
    }
    return run(self, task, woke);
}

/* What the nursery asks. */

/* Arms the alarm, if there is a deadline. False: no memory. */
static bool arm(struct resting *self, struct jrt_worker *worker, struct jrt_task *task)
{
    uint64_t deadline_ns = kind_of(self)->alarm(self, worker);
    bool     sleeps = self->rest.kind == JANUS_REST_KIND_SLEEP;
    self->timed = deadline_ns != JRT_NEVER;
    if (!self->timed) return true;
    self->alarm = (struct jrt_alarm){.status = sleeps ? JANUS_OK : JANUS_DEADLINE, .subject = task};
    return jrt_sched_timer_arm(worker->scheduler, &self->alarm.timer, deadline_ns);
}

static bool rests(struct jrt_resident *resident, struct jrt_worker *worker, struct jrt_task *task)
{
    struct resting *self = (struct resting *)resident;
    unsigned        wait = reason_of(self) | JRT_WAIT_AT_REST;
    jrt_debug_invariant("rest-joined", !self->joined);
    jrt_store_relaxed(&task->wait, (uint8_t)wait); /* relaxed: for dumps. */
    if (!arm(self, worker, task)) {
        self->starving = true;
        return false;
    }
    janus_status status = kind_of(self)->join(self, worker, task);
    if (status != JANUS_WOULD_WAIT) {
        self->starving = status == JANUS_NO_MEMORY;
        if (self->timed) jrt_sched_timer_disarm(worker->scheduler, &self->alarm.timer);
        return false;
    }
    self->joined = true;
    return jrt_rest_now(worker, task); /* then the record is not ours, [rest-joined] */
}

static void ending(struct jrt_resident *resident, struct jrt_task *task, bool cancelled)
{
    struct resting *self = (struct resting *)resident;
    (void)cancelled;
    stop(self, NULL, task); /* it got no stack, or panicked before it rested */
    jrt_rest_disown(task, self->site);
    /* No step has seen the state. */
    if (self->drop != NULL) jrt_task_drop(task, self->drop, self->state);
}

static void refused(struct jrt_resident *resident)
{
    struct resting *self = (struct resting *)resident;
    self->refused = true;
}

static void ended(struct jrt_resident *resident) { free(resident); }

static const struct jrt_resident_rules rules = {.entry = resting_main,
                                                .rests = rests,
                                                .refused = refused,
                                                .ending = ending,
                                                .ended = ended,
                                                .is_child = true,
                                                .is_breakable = true};

static const struct jrt_resident_rules rules_at_end = {
    .ending = ending, .ended = ended, .is_child = true};

/* Spawning. */

/* The task ends before it has begun: a callback, [ending-drop]. */
static void drop_resting(void *argument)
{
    struct resting *self = argument;
    janus_drop     *drop = self->drop;
    void           *state = self->state;
    free(self); /* `drop` may be broken off */
    if (drop != NULL) drop(state);
}

/* A nursery that has ended has returned its terms; the spawn refuses it. */
static bool keeps_stacks(const struct jrt_nursery *n)
{
    if (jrt_nursery_state(n) != JANUS_NURSERY_STATE_OPEN) return false;
    return n->terms != NULL && !jrt_backend_on_workers(n->terms->backend);
}

/* What a resting task begins as. */
struct recipe {
    janus_rest       first;
    janus_rest_step *step;
    void            *state;
    janus_drop      *drop;
};

static void *make_resting(const void *given)
{
    const struct recipe *recipe = given;
    struct resting      *self = jrt_malloc(sizeof *self);
    if (self == NULL) return NULL;
    self->step = recipe->step;
    self->state = recipe->state;
    self->drop = recipe->drop;
    self->rest = recipe->first;
    self->refused = false;
    self->adopted = self->inside = self->joined = self->starving = false;
    self->timed = false;
    return self;
}

janus_status janus_spawn_resting(janus_nursery *nursery, janus_rest first, janus_rest_step *step,
                                 void *state, const janus_spawn_options *given, janus_task_id *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_spawn_options options = {.struct_bytes = sizeof options};
    if (nursery == NULL || step == NULL || !is_kind(first.kind)) return JANUS_INVALID;
    if (given != NULL && !jrt_struct_sane(given->struct_bytes, sizeof options)) {
        return JANUS_INVALID;
    }
    if (given != NULL) memcpy(&options, given, given->struct_bytes);
    if (keeps_stacks(jrt_nursery_of(nursery))) return JANUS_STATE;
    const struct recipe recipe = {first, step, state, options.drop};
    options.struct_bytes = sizeof options;
    options.drop = drop_resting;
    return jrt_spawn_made(nursery, resting_main, make_resting, &recipe, &options, out);
}
