/* SPDX-License-Identifier: MIT */
/* Send and receive. */
#include "cancel/cancel.h"
#include "cancel/park.h"
#include "cancel/wait.h"
#include "chan/step.h"
#include "means/call.h"
#include "nursery/nursery.h"
#include "task/nursery.h"
#include "task/task.h"
#include "task/worker.h"
#include "work/work.h"

static enum jrt_wait wait_for(enum jrt_chan_kind kind)
{
    return kind == JRT_CHAN_SEND ? JRT_WAIT_SEND : JRT_WAIT_RECV;
}

/* Tries once more, and enters the queue if it must wait. *out_outside: plain threads may end the
 * wait. */
static janus_status step_or_queue(struct jrt_chan *chan, janus_channel handle,
                                  struct jrt_worker *worker, enum jrt_chan_kind kind,
                                  struct jrt_chan_entry *entry, bool *out_outside)
{
    struct jrt_chan_party *wake = NULL;
    char                  *large = NULL;
    bool                   own = jrt_chan_enter(chan, worker);
    janus_status status = jrt_chan_step_valid(chan, handle, kind, entry->value, &wake, &large);
    jrt_chan_note(worker, kind, chan, status);
    if (status == JANUS_WOULD_WAIT) jrt_chan_enqueue(chan, kind, entry);
    entry->index = chan->number;
    if (worker != NULL) worker->waits_at = chan->number;
    *out_outside = chan->outside;
    jrt_chan_leave(chan, own);
    if (wake != NULL) jrt_chan_wake(wake);
    free(large);
    return status;
}

/* Turns the end of a wait into the status to return. No claimer has reported an outcome yet. */
static janus_status come_back(struct jrt_chan *chan, struct jrt_worker *worker,
                              struct jrt_chan_entry *entry, janus_status ended)
{
    bool own = jrt_chan_enter(chan, worker);
    bool queued = entry->queue != NULL;
    if (queued) jrt_chan_dequeue(entry->queue, entry);
    jrt_chan_leave(chan, own);
    if (queued) return ended;
    jrt_chan_await_done(entry->party); /* [chan-last] */
    return entry->party->outcome;
}

struct slow_wait {
    struct jrt_waiting    waiting; /* first */
    struct jrt_chan      *chan;
    janus_channel         handle;
    enum jrt_chan_kind    kind;
    struct jrt_chan_entry entry;
};

static janus_status queue_up(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct slow_wait *wait = (struct slow_wait *)waiting;
    (void)task;
    return step_or_queue(wait->chan, wait->handle, jrt_worker_self(), wait->kind, &wait->entry,
                         &waiting->outside);
}

static janus_status leave_queue(struct jrt_waiting *waiting, struct jrt_task *task,
                                janus_status ended)
{
    struct slow_wait  *wait = (struct slow_wait *)waiting;
    struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
    (void)task;
    /* The outcome belongs to the claimer until it has woken us, or come_back has waited for it. */
    janus_status status = jrt_likely(ended == JANUS_OK)
                              ? wait->entry.party->outcome
                              : come_back(wait->chan, worker, &wait->entry, ended);
    if (status == JANUS_OK) jrt_chan_note_waited(worker, wait->kind, wait->entry.index);
    return status;
}

static janus_status wait_as_task(struct jrt_chan *chan, janus_channel handle,
                                 struct jrt_worker *worker, enum jrt_chan_kind kind, void *value,
                                 uint64_t deadline_ns)
{
    struct jrt_task      *task = worker->current;
    struct jrt_chan_party party = {.task = task};
    struct slow_wait      wait = {.waiting = {.why = wait_for(kind),
                                              .deadline_ns = deadline_ns,
                                              .join = queue_up,
                                              .leave = leave_queue},
                                  .chan = chan,
                                  .handle = handle,
                                  .kind = kind,
                                  .entry = {.party = &party, .value = value}};
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    janus_status status = jrt_wait(worker, &wait.waiting);
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

static janus_status wait_as_thread(struct jrt_chan *chan, janus_channel handle,
                                   enum jrt_chan_kind kind, void *value, uint64_t deadline_ns)
{
    struct jrt_chan_party party = {.task = NULL};
    struct jrt_chan_entry entry = {.party = &party, .value = value};
    bool                  outside = false;
    janus_status          status = step_or_queue(chan, handle, NULL, kind, &entry, &outside);
    if (status != JANUS_WOULD_WAIT) return status;
    status = jrt_wait_as_thread(&party.done, deadline_ns);
    return status == JANUS_OK ? party.outcome : come_back(chan, NULL, &entry, status);
}

/* The slow path of a wait: a deadline, no stack at hand, or a ring that must grow. */
__attribute__((noinline)) static janus_status wait(struct jrt_chan *chan, janus_channel channel,
                                                   enum jrt_chan_kind kind, void *value,
                                                   uint64_t deadline_ns)
{
    janus_status status = JANUS_OK;
    do {
        struct jrt_worker *worker = jrt_worker_self(); /* [worker-again] */
        status = jrt_chan_attempt(chan, channel, worker, kind, value);
        if (status != JANUS_WOULD_WAIT) return status;
        status = worker != NULL ? wait_as_task(chan, channel, worker, kind, value, deadline_ns)
                                : wait_as_thread(chan, channel, kind, value, deadline_ns);
    } while (jrt_unlikely(status == JRT_CHAN_GROW));
    return status;
}

static janus_status transfer_as_thread(janus_channel channel, enum jrt_chan_kind kind, void *value,
                                       uint64_t deadline_ns)
{
    struct jrt_chan *chan = NULL;
    jrt_callback_check();
    janus_status status = jrt_chan_decode(channel, jrt_chan_right_for(kind), &chan);
    return status == JANUS_OK ? wait(chan, channel, kind, value, deadline_ns) : status;
}

/* What a task waits with, kept in its strand. */
struct waiting {
    struct jrt_chan_entry entry;
    struct jrt_chan_party party;
    struct jrt_chan      *chan;
    bool                  outside;
    bool                  sends; /* for the trace */
};

_Static_assert(sizeof(struct waiting) <= JRT_PLACE_WORDS * sizeof(void *), "it has room there");

static struct waiting *waiting_on(struct jrt_worker *worker)
{
    return (struct waiting *)(void *)worker->strand->place;
}

__attribute__((noinline)) static janus_status finish_slow(struct jrt_worker *worker,
                                                          struct jrt_task *task, janus_status ended)
{
    struct waiting *waiting = waiting_on(worker);
    janus_status    status = come_back(waiting->chan, worker, &waiting->entry, ended);
    (void)jrt_chan_settle(task, status);
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

static janus_status finish(struct jrt_worker *worker, struct jrt_task *task, janus_status ended)
{
    const struct waiting *waiting = waiting_on(worker);
    /* relaxed: a count, as in park. */
    if (waiting->outside) jrt_fetch_sub_relaxed(&worker->scheduler->outside, 1u);
    if (jrt_likely(ended == JANUS_OK)) return jrt_chan_settle(task, waiting->party.outcome);
    return finish_slow(worker, task, ended);
}

/* With a trace: records what the task waits for before, and the result after. */

static janus_status finish_traced(struct jrt_worker *worker, struct jrt_task *task,
                                  janus_status ended)
{
    const struct waiting *waiting = waiting_on(worker);
    enum jrt_chan_kind    kind = waiting->sends ? JRT_CHAN_SEND : JRT_CHAN_RECV;
    uint32_t              number = waiting->entry.index;
    janus_status          status = finish(worker, task, ended);
    if (status == JANUS_OK) jrt_chan_note_waited(worker, kind, number);
    return status;
}

__attribute__((cold, noinline)) static jrt_finish *trace_waiting(struct waiting    *waiting,
                                                                 struct jrt_worker *worker,
                                                                 enum jrt_chan_kind kind)
{
    waiting->entry.index = worker->waits_at = waiting->chan->number;
    waiting->sends = kind == JRT_CHAN_SEND;
    return finish_traced;
}

/* Fills in the wait. Field by field, because not everything must be cleared, and compilers clear
 * that much by a slow loop. */
static inline void begin_waiting(struct waiting *waiting, struct jrt_chan *chan,
                                 struct jrt_task *task, void *value)
{
    waiting->entry.party = &waiting->party;
    waiting->entry.value = value;
    waiting->party.task = task;
    waiting->party.selects = false;
    jrt_store_relaxed(&waiting->party.done, 0u); /* relaxed: not published yet. */
    waiting->chan = chan;
}

/* The common wait: a task that has a spare stack, and no deadline. The lock is held, and no step is
 * possible. Ends in the switch, [task-finish]. */
__attribute__((noinline)) static janus_status wait_on_spare(struct jrt_chan   *chan,
                                                            struct jrt_worker *worker,
                                                            enum jrt_chan_kind kind, void *value,
                                                            bool own)
{
    struct jrt_task *task = worker->current;
    struct waiting  *waiting = waiting_on(worker);
    jrt_finish      *then = finish;
    begin_waiting(waiting, chan, task, value);
    waiting->outside = chan->outside;
    if (jrt_unlikely(worker->trace != NULL)) then = trace_waiting(waiting, worker, kind);
    jrt_task_park_begin(task, wait_for(kind));
    jrt_chan_enqueue(chan, kind, &waiting->entry);
    jrt_chan_leave(chan, own);
    /* relaxed: a count, as in park. */
    if (waiting->outside) jrt_fetch_add_relaxed(&worker->scheduler->outside, 1u);
    return jrt_task_park_then(worker, task, then);
}

/* Refuses a handle without the right. Nothing was paid, so an expired turn ends here. */
__attribute__((noinline, cold)) static janus_status refuse(janus_status status)
{
    jrt_stack_check(); /* [turn-call] */
    return status;
}

static inline __attribute__((always_inline)) janus_status transfer(janus_channel      channel,
                                                                   enum jrt_chan_kind kind,
                                                                   void              *value,
                                                                   uint64_t           deadline_ns)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_chan   *chan = NULL;
    if (jrt_unlikely(worker == NULL)) return transfer_as_thread(channel, kind, value, deadline_ns);
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    janus_status status = jrt_chan_decode(channel, jrt_chan_right_for(kind), &chan);
    if (jrt_unlikely(status != JANUS_OK)) return refuse(status);
    struct jrt_task *task = worker->current;
    if (jrt_unlikely(jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE))
        return jrt_task_cancelled_or_end(task);
    status = jrt_chan_pay(&worker);
    if (jrt_unlikely(status != JANUS_OK)) return status;
    struct jrt_chan_party *wake = NULL;
    char                  *large = NULL;
    bool own = worker->alone ? jrt_chan_enter(chan, worker) : jrt_chan_enter_slow(chan, worker);
    status = jrt_chan_step_valid(chan, channel, kind, value, &wake, &large);
    if (status == JANUS_WOULD_WAIT && worker->spare != NULL && deadline_ns == JRT_NEVER) {
        return wait_on_spare(chan, worker, kind, value, own);
    }
    jrt_chan_note(worker, kind, chan, status);
    jrt_chan_leave(chan, own);
    if (wake != NULL) jrt_chan_wake(wake);
    if (jrt_unlikely(large != NULL)) free(large);
    if (jrt_unlikely(status == JANUS_WOULD_WAIT || status == JRT_CHAN_GROW)) {
        return jrt_chan_settle(task, wait(chan, channel, kind, value, deadline_ns));
    }
    jrt_chan_took_a_turn(worker);
    return jrt_chan_settle(task, status);
}

/*
 * The fast path, for nearly all calls: a task that may and can pay, an open channel of words, a
 * free lock. Everything else takes the slow path from its beginning, before anything has happened.
 * So the fast path makes only tail calls, and needs neither a frame nor saved registers.
 */

static janus_status finish_fast(struct jrt_worker *worker, struct jrt_task *task,
                                janus_status ended)
{
    if (jrt_likely(ended == JANUS_OK)) {
        return jrt_chan_settle(task, waiting_on(worker)->party.outcome);
    }
    return finish_slow(worker, task, ended);
}

static inline __attribute__((always_inline)) janus_status
wait_fast(struct jrt_chan *chan, struct jrt_worker *worker, struct jrt_task *task,
          enum jrt_chan_kind kind, void *value, _Atomic(uint32_t) *held)
{
    struct waiting *waiting = waiting_on(worker);
    begin_waiting(waiting, chan, task, value);
    jrt_task_park_begin_fast(task, wait_for(kind));
    jrt_chan_enqueue(chan, kind, &waiting->entry);
    jrt_chan_let_go(held);
    return jrt_task_park_fast(worker, task, finish_fast);
}

__attribute__((noinline)) static janus_status serve(struct jrt_worker     *worker,
                                                    struct jrt_chan_party *party)
{
    struct jrt_task *task = party->task;
    if (jrt_unlikely(task == NULL || !jrt_task_serve_fast(worker, task))) jrt_chan_wake(party);
    return JANUS_OK;
}

/* The next step, if it is usual. The lock is held, and the task has paid. */
enum step { STEP_OTHER, STEP_SERVE, STEP_RING, STEP_WAIT };

static inline __attribute__((always_inline)) enum step usual_step(
    const struct jrt_chan *chan, const struct jrt_worker *worker, enum jrt_chan_kind kind,
    const struct jrt_chan_queue *others)
{
    bool sends = kind == JRT_CHAN_SEND;
    if (jrt_unlikely(chan->any_flag != 0 || chan->item_bytes != sizeof(uint64_t)))
        return STEP_OTHER;
    if (others->count > 0) {
        struct jrt_chan_entry *first =
            jrt_list_entry(others->entries.next, struct jrt_chan_entry, link);
        return jrt_likely(chan->length == 0 && jrt_chan_claim(first)) ? STEP_SERVE : STEP_OTHER;
    }
    if (sends ? chan->length < chan->slots : chan->length > 0) return STEP_RING;
    /* acquire: the way up is complete. relaxed: its own. */
    const struct jrt_task *task = worker->current;
    bool plain = jrt_load_acquire(&task->linked) && jrt_load_relaxed(&task->shield) == 0;
    return jrt_likely(plain && worker->spare != NULL) ? STEP_WAIT : STEP_OTHER;
}

/* Exchanges a value with the first waiting party of the other side, which was claimed. */
static inline __attribute__((always_inline)) struct jrt_chan_party *meet(
    struct jrt_chan_queue *others, enum jrt_chan_kind kind, void *value)
{
    struct jrt_chan_entry *first =
        jrt_list_entry(others->entries.next, struct jrt_chan_entry, link);
    jrt_chan_dequeue(others, first);
    memcpy(kind == JRT_CHAN_SEND ? first->value : value,
           kind == JRT_CHAN_SEND ? value : first->value, sizeof(uint64_t));
    return jrt_chan_done_with(first);
}

static inline __attribute__((always_inline)) void pass_by_ring(struct jrt_chan   *chan,
                                                               enum jrt_chan_kind kind, void *value)
{
    if (kind == JRT_CHAN_SEND) {
        memcpy(jrt_chan_slot(chan, chan->length), value, sizeof(uint64_t));
        if (++chan->length > chan->high_water) chan->high_water = chan->length;
    } else {
        memcpy(value, jrt_chan_slot(chan, 0), sizeof(uint64_t));
        jrt_chan_drop_first(chan);
    }
}

/* Rebuilds the handle. Only the key of its second word is kept, which saves a register. */
static inline __attribute__((always_inline)) janus_channel with_key(uint64_t name, uint64_t key)
{
    return (janus_channel){{name, name ^ key}};
}

/* Whether the call may take the fast path. If so, it has paid. `name` is the handle's first
 * word. */
static inline __attribute__((always_inline)) bool may_be_fast(const struct jrt_chan *chan,
                                                              uint64_t name, uint64_t key,
                                                              const struct jrt_worker *worker,
                                                              enum jrt_chan_kind       kind)
{
    return key != 0 && jrt_chan_has_key(chan, name, key) &&
           (name & jrt_chan_right_for(kind)) != 0 && jrt_task_is_clean(worker->current) &&
           worker->trace == NULL && worker->until_others > 1 && jrt_chan_pay_fast(worker->current);
}

static inline __attribute__((always_inline)) janus_status
transfer_fast(janus_channel channel, enum jrt_chan_kind kind, void *value,
              janus_status (*slow)(janus_channel, void *))
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_chan   *chan = jrt_chan_of(channel);
    uint64_t           key = jrt_chan_key(channel);
    if (jrt_unlikely(worker == NULL || !jrt_worker_stack_is_fine(worker) || value == NULL ||
                     !may_be_fast(chan, channel.opaque[0], key, worker, kind))) {
        return slow(with_key(channel.opaque[0], key), value);
    }
    struct jrt_task       *task = worker->current;
    struct jrt_chan_queue *others = kind == JRT_CHAN_SEND ? &chan->receivers : &chan->senders;
    enum step              step = STEP_OTHER;
    _Atomic(uint32_t)     *held = jrt_chan_lock_fast(&chan->lock, worker->bias);
    if (jrt_likely(held != NULL && jrt_chan_has_key(chan, channel.opaque[0], key))) {
        if (jrt_unlikely(chan->last != worker)) {
            jrt_chan_met(chan, worker);
        } else if (!jrt_chan_lock_owned(&chan->lock, held)) {
            jrt_chan_came_again(chan, worker);
        }
        step = usual_step(chan, worker, kind, others);
    }
    if (step == STEP_SERVE) {
        struct jrt_chan_party *party = meet(others, kind, value);
        jrt_chan_let_go(held);
        worker->until_others--;
        return serve(worker, party);
    }
    if (step == STEP_WAIT) return wait_fast(chan, worker, task, kind, value, held);
    if (step == STEP_RING) {
        pass_by_ring(chan, kind, value);
        jrt_chan_let_go(held);
        worker->until_others--;
        return JANUS_OK;
    }
    if (held != NULL) jrt_chan_let_go(held);
    jrt_chan_pay_back(task);
    return slow(with_key(channel.opaque[0], key), value);
}

static inline __attribute__((always_inline)) janus_status try_transfer(janus_channel      channel,
                                                                       enum jrt_chan_kind kind,
                                                                       void              *value)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_chan   *chan = NULL;
    if (worker != NULL) jrt_worker_stack_check(worker); /* [stack-reserve] */
    janus_status status = jrt_chan_decode(channel, jrt_chan_right_for(kind), &chan);
    if (jrt_unlikely(status != JANUS_OK)) return refuse(status);
    if (worker == NULL) {
        jrt_callback_check();
        return jrt_chan_attempt(chan, channel, worker, kind, value);
    }
    status = jrt_chan_pay(&worker);
    if (jrt_unlikely(status != JANUS_OK)) return status;
    status = jrt_chan_attempt(chan, channel, worker, kind, value);
    return jrt_chan_settle(worker->current, status);
}

/* A sent value is only read. */
static void *as_source(const void *value) { return (void *)(uintptr_t)value; }

__attribute__((noinline)) static janus_status send_slow(janus_channel channel, void *value)
{
    return transfer(channel, JRT_CHAN_SEND, value, JRT_NEVER);
}

janus_status janus_channel_send(janus_channel channel, const void *value)
{
    return transfer_fast(channel, JRT_CHAN_SEND, as_source(value), send_slow);
}

janus_status janus_channel_send_until(janus_channel channel, const void *value,
                                      uint64_t deadline_ns)
{
    return transfer(channel, JRT_CHAN_SEND, as_source(value), deadline_ns);
}

janus_status janus_channel_try_send(janus_channel channel, const void *value)
{
    return try_transfer(channel, JRT_CHAN_SEND, as_source(value));
}

__attribute__((noinline)) static janus_status recv_slow(janus_channel channel, void *value)
{
    return transfer(channel, JRT_CHAN_RECV, value, JRT_NEVER);
}

janus_status janus_channel_recv(janus_channel channel, void *out_value)
{
    return transfer_fast(channel, JRT_CHAN_RECV, out_value, recv_slow);
}

janus_status janus_channel_recv_until(janus_channel channel, void *out_value, uint64_t deadline_ns)
{
    return transfer(channel, JRT_CHAN_RECV, out_value, deadline_ns);
}

janus_status janus_channel_try_recv(janus_channel channel, void *out_value)
{
    return try_transfer(channel, JRT_CHAN_RECV, out_value);
}
