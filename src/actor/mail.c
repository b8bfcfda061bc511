/* SPDX-License-Identifier: MIT */
/*
 * Mailboxes: sending, and waiting for room.
 *
 * Messages lie in a ring (ring.c) that is made with the first message and freed when the actor
 * rests. It grows up to the actor's limit, which also counts messages put aside. A sender that
 * finds no room waits in a queue. The thread that makes room lets the oldest sender go on, and the
 * others stay behind it: a cast that finds senders waiting waits, too. So the order of one sender's
 * messages holds.
 *
 * [mail-room]  A sender that was served has a place reserved: `served` senders that have not gone
 *   on yet count as messages. A served sender that is cancelled, or cannot deliver, passes its
 *   place on.
 */
#include "actor/question.h"
#include "actor/ring.h"

#include "base/options.h"
#include "base/outside.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "chan/pay.h"
#include "means/call.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "rt/inside.h"
#include "work/work.h"

#include <janusrt/memory.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINGER_LEAST = 8, LINGER_ROUNDS = 64 };

/* Waking. */

/* Ends the rest of an actor for a message. Under the lock, as jrt_place_rouse. */
static struct jrt_task *rouse(struct jrt_actor_place *place)
{
    struct jrt_task *task = place->task;
    place->resting = false;
    if (place->rare != NULL) jrt_place_idle(place, false);
    return jrt_task_claim(task) ? task : NULL; /* false: a cancel was first */
}

struct jrt_task *jrt_place_rouse(struct jrt_actor_place *place)
{
    jrt_mail_urge(place);
    return place->resting ? rouse(place) : NULL;
}

void jrt_place_queue(struct jrt_task *task)
{
    janus_scheduler   *scheduler = task->nursery->scheduler;
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_likely(worker != NULL && worker->scheduler == scheduler)) {
        jrt_submit_served(worker, task);
        return;
    }
    jrt_fetch_add_relaxed(&scheduler->guests, 1u); /* relaxed: the task keeps it open. */
    jrt_submit_outside(scheduler, task);
    jrt_fetch_sub_release(&scheduler->guests, 1u); /* release: the last touch, [point-guest]. */
}

/* Dead letters. */

static void bury(struct jrt_actor_place *place, const struct jrt_letter_head *head,
                 janus_status status)
{
    (void)place;
    if (head->is_call) {
        (void)jrt_question_end(head->question, head->key, status, NULL, 0);
    } else if (head->block != NULL) {
        jrt_block_unpost(head->block);
        jrt_block_discard(head->block);
    }
}

static void serve_all_with_room(struct jrt_actor_place *place);

void jrt_mail_drop(struct jrt_actor_place *place, janus_status status)
{
    struct jrt_letter_head head;
    bool                   any = false;
    if (jrt_place_behaviour(place) == NULL) return;
    jrt_place_lock(place);
    /* A caller that has learnt of the restart sends to the next incarnation. */
    uint32_t left = status == JANUS_RESTARTED ? jrt_mail_count(place) : UINT32_MAX;
    for (;;) {
        jrt_mail_close_window(place);
        bool found = left != 0 && jrt_mail_take(place, &head, NULL);
        if (found) left--;
        if (!found && place->rare != NULL && place->rare->aside_count > 0) {
            const char *at =
                place->rare->aside + --place->rare->aside_count * jrt_letter_bytes(place);
            memcpy(&head, at, sizeof head);
            if (!head.is_call && head.block != NULL) place->rare->block_bytes -= head.key;
            found = true;
        }
        bool call = found && head.is_call;
        if (found && call) place->returned++;
        if (found && !call) place->dead++;
        if (!found) {
            jrt_mail_rest(place);
            serve_all_with_room(place);
        }
        jrt_place_unlock(place);
        if (!found) break;
        any = any || !call;
        bury(place, &head, status);
        jrt_place_lock(place);
    }
    if (any) jrt_dead_letter_tell(place);
}

/* Senders that wait. */

static void take_out(struct jrt_actor_place *place, struct jrt_sender *sender)
{
    *sender->link = sender->next;
    if (sender->next != NULL) {
        sender->next->link = sender->link;
    } else {
        place->rare->senders_end = sender->link;
    }
}

void jrt_senders_serve(struct jrt_actor_place *place, bool all)
{
    struct jrt_actor_rare *rare = place->rare;
    struct jrt_sender     *sender = NULL;
    while (rare != NULL && (sender = rare->senders) != NULL &&
           (all || jrt_mail_taken(place) < jrt_mail_limit(place))) {
        take_out(place, sender);
        sender->served = true;
        if (!all) place->reserved++;
        sender->reserved = !all;
        jrt_mail_bar(place);
        jrt_circle_over(&sender->circle);
        /* Under the lock: the sender goes on only after it has taken the lock. */
        (void)jrt_task_wake(sender->task, JANUS_OK);
        if (!all) return; /* one for each message that left */
    }
}

/* The mailbox is empty: senders go on while there is room. Under the lock. */
static void serve_all_with_room(struct jrt_actor_place *place)
{
    while (jrt_mail_has_senders(place) && jrt_mail_taken(place) < jrt_mail_limit(place))
        jrt_senders_serve(place, false);
}

struct room_wait {
    struct jrt_waiting      waiting; /* first */
    struct jrt_actor_place *place;
    uint64_t                serial;
    bool                    calls; /* it is a call, which has noted its wait already */
    struct jrt_sender       sender;
};

static void reserve(struct room_wait *wait)
{
    wait->place->reserved++;
    wait->sender.reserved = true;
    jrt_mail_bar(wait->place);
}

/* A sender has queued up: tells the actor, and looks once more, [mail-window]. */
static bool room_was_made(struct jrt_actor_place *place)
{
    jrt_mail_urge(place);
    /* relaxed: only to save the fence. If the window is empty, `at` stays: nobody opens one under
     * the lock. */
    if (place->head != jrt_load_relaxed(&place->at))
        jrt_fence_heavy_seq_cst(); /* seq_cst: [mail-window]. */
    return jrt_mail_taken(place) < jrt_mail_limit(place);
}

/* A sender has queued up. If that closes a circle, it leaves the queue again, unless it was served
 * meanwhile. The caller holds no lock. */
static janus_status look_round(struct room_wait *wait)
{
    struct jrt_actor_place *place = wait->place;
    if (jrt_circle_look(place)) return JANUS_WOULD_WAIT;
    jrt_place_lock(place);
    bool served = wait->sender.served;
    if (!served) take_out(place, &wait->sender);
    jrt_place_unlock(place);
    return served ? JANUS_OK : JANUS_DEADLOCK;
}

static janus_status queue_up(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct room_wait       *wait = (struct room_wait *)waiting;
    struct jrt_actor_place *place = wait->place;
    janus_status            status = JANUS_WOULD_WAIT;
    jrt_place_lock(place);
    bool here = place->serial == wait->serial && place->open;
    if (!here || jrt_place_rare(place) == NULL) {
        status = here ? JANUS_NO_MEMORY : JANUS_CLOSED;
    } else if (!jrt_mail_has_senders(place) && jrt_mail_taken(place) < jrt_mail_limit(place)) {
        reserve(wait);
        status = JANUS_OK;
    } else {
        wait->sender.task = task;
        wait->sender.next = NULL;
        wait->sender.link = place->rare->senders_end;
        *place->rare->senders_end = &wait->sender;
        place->rare->senders_end = &wait->sender.next;
        jrt_mail_bar(place);
        if (room_was_made(place) && place->rare->senders == &wait->sender) {
            take_out(place, &wait->sender);
            reserve(wait);
            status = JANUS_OK;
        } else if (!wait->calls) { /* under the lock: it has no room now, [actor-circle] */
            jrt_circle_note(place);
            wait->sender.circle = jrt_circle_now();
        }
    }
    jrt_place_unlock(place);
    return status == JANUS_WOULD_WAIT && !wait->calls ? look_round(wait) : status;
}

static janus_status come_out(struct jrt_waiting *waiting, struct jrt_task *task, janus_status ended)
{
    struct room_wait       *wait = (struct room_wait *)waiting;
    struct jrt_actor_place *place = wait->place;
    (void)task;
    jrt_place_lock(place);
    if (!wait->sender.served) {
        take_out(place, &wait->sender);
    } else if (ended != JANUS_OK && wait->sender.reserved &&
               place->serial == wait->serial) { /* it passes the room on */
        place->reserved--;
        wait->sender.reserved = false;
        jrt_senders_serve(place, false);
    }
    jrt_place_unlock(place);
    return ended;
}

/* Waits for room. OK: a place is reserved, if `reserved`. */
static janus_status wait_for_room(struct jrt_actor_place *place, uint64_t serial, bool outside,
                                  uint64_t deadline_ns, bool *out_reserved)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct jrt_task   *task = worker->current;
    struct room_wait   wait = {.waiting = {.why = JRT_WAIT_MAILBOX,
                                           .outside = outside,
                                           .deadline_ns = deadline_ns,
                                           .join = queue_up,
                                           .leave = come_out},
                               .place = place,
                               .serial = serial};
    if (jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE) return JANUS_CANCELLED;
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    /* A call that waits for room has said so already, and goes on to wait for its answer. */
    const struct jrt_actor_place *self = jrt_place_of(task);
    /* relaxed: its own. */
    wait.calls = self != NULL &&
                 jrt_load_relaxed(&self->waits) >> 32 == jrt_place_index(place) + UINT64_C(1);
    janus_status status = jrt_wait(worker, &wait.waiting);
    if (!wait.calls) jrt_circle_leave();
    *out_reserved = wait.sender.reserved;
    return status;
}

/* Casting. */

/* Whether the block, if there is one, is within max_bytes. Under the lock. OK, FULL, NO_MEMORY. */
static janus_status room_for_block(struct jrt_actor_place       *place,
                                   const struct jrt_letter_head *head)
{
    uint64_t most = place->spec->options.max_bytes;
    if (head->is_call || head->block == NULL) return JANUS_OK;
    const struct jrt_actor_rare *rare = jrt_place_rare(place);
    if (rare == NULL) return JANUS_NO_MEMORY;
    if (most == 0) most = JRT_ACTOR_BLOCKS;
    return head->key > most || rare->block_bytes > most - head->key ? JANUS_FULL : JANUS_OK;
}

/* Whether the mailbox takes the letter now. Under the lock. OK, FULL, WOULD_WAIT (it is full). */
static janus_status room_for(struct jrt_actor_place *place, const struct jrt_letter_head *head)
{
    janus_status status = room_for_block(place, head);
    if (status != JANUS_OK) return status;
    if (jrt_mail_has_senders(place) || jrt_mail_taken(place) >= jrt_mail_limit(place))
        return JANUS_WOULD_WAIT;
    return JANUS_OK;
}

/* Delivers under the lock, which it releases. */
static janus_status deliver(struct jrt_actor_place *place, const struct jrt_letter_head *head,
                            const void *message)
{
    janus_status     status = jrt_ring_put(place, head, message) ? JANUS_OK : JANUS_NO_MEMORY;
    struct jrt_task *task = NULL;
    if (jrt_likely(status == JANUS_OK)) {
        if (!head->is_call && head->block != NULL) place->rare->block_bytes += head->key;
        if (place->resting) task = rouse(place);
    } else {
        jrt_senders_serve(place, false); /* the room is the next one's, [mail-room] */
    }
    jrt_place_unlock_and_queue(place, task);
    return status;
}

/* Whether the caller can wait for room in a mailbox of this scheduler. */
static bool can_wait(const struct jrt_actor_place *place)
{
    const struct jrt_worker *worker = jrt_worker_self();
    return worker != NULL && worker->current != NULL &&
           worker->scheduler == jrt_supervisor_scheduler(place->supervisor);
}

/*
 * Watches for about a microsecond until half of the mailbox is free. True: room was made. A sender
 * that queues up is woken for each room. If its worker has nothing else to do, it would cross over
 * to the worker of the actor and back for each message.
 */
static bool linger(const struct jrt_actor_place *place, uint32_t wanted)
{
    const struct jrt_worker *worker = jrt_worker_self();
    uint32_t                 at = jrt_load_relaxed(&place->at); /* relaxed, both: a hint. */
    uint32_t                 gone = 0;
    if (worker->alone || wanted < LINGER_LEAST || worker->scheduler->world != NULL ||
        jrt_work_for(worker))
        return false;
    for (int i = 0; i < LINGER_ROUNDS && gone < wanted; i++) {
        jrt_cpu_relax();
        gone = jrt_load_relaxed(&place->at) - at;             /* relaxed: as above. */
        if (gone == 0 && i > LINGER_ROUNDS / 8) return false; /* the actor does not run */
    }
    return gone > 0;
}

/* The mailbox is full. Releases the lock. */
static janus_status send_when_full(struct jrt_actor_place       *place,
                                   const struct jrt_letter_head *head, const void *message,
                                   uint64_t deadline_ns, bool tries)
{
    struct jrt_letter_head dropped;
    uint64_t               serial = place->serial;
    bool                   reserved = false;
    bool                   outside = place->spec->options.outside;
    janus_overflow         overflow = place->spec->options.overflow;
    if (overflow == JANUS_OVERFLOW_DROP_OLDEST && jrt_ring_drop_oldest(place, &dropped)) {
        janus_supervisor *supervisor = jrt_supervisor_visit(place);
        janus_status      status = deliver(place, head, message);
        bury(place, &dropped, JANUS_OK);
        jrt_supervisor_dropped(supervisor, place, serial);
        return status;
    }
    bool     waits = overflow == JANUS_OVERFLOW_BLOCK && !tries && can_wait(place);
    bool     behind = jrt_mail_has_senders(place); /* others come first */
    uint32_t half = jrt_mail_limit(place) / 2;
    jrt_place_unlock(place);
    if (tries) return JANUS_WOULD_WAIT;
    if (!waits) return JANUS_FULL;
    if (!behind && linger(place, half)) {
        jrt_place_lock(place);
        bool here = place->serial == serial && place->open;
        if (here && room_for(place, head) == JANUS_OK) return deliver(place, head, message);
        jrt_place_unlock(place);
    }
    janus_status status = wait_for_room(place, serial, outside, deadline_ns, &reserved);
    if (status != JANUS_OK) return status;
    jrt_place_lock(place);
    bool mine = reserved && place->serial == serial;
    jrt_debug_invariant("mail-room", !mine || place->reserved > 0);
    if (mine) place->reserved--;
    /* Without a reservation it was sent away, even if the place is open again. */
    status = mine && place->open ? room_for_block(place, head) : JANUS_CLOSED;
    if (status == JANUS_OK) return deliver(place, head, message);
    if (mine) jrt_senders_serve(place, false); /* [mail-room] */
    jrt_place_unlock(place);
    return status;
}

/* How the actor answers. The question is not sent yet. */
static void set_answer(struct jrt_question *question, const struct jrt_actor_place *place)
{
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    question->outside = place->spec->options.outside;
    if (question->answer_bytes == JRT_ANSWER_ANY)
        question->reply_bytes = question->answer_bytes = behaviour->reply_bytes;
}

janus_status jrt_mail_send(janus_actor actor, unsigned right, const struct jrt_letter_head *head,
                           const void *message, uint64_t deadline_ns, bool tries)
{
    janus_status            status;
    struct jrt_actor_place *place = jrt_place_find(actor, right, &status);
    if (jrt_unlikely(place == NULL)) return status;
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    status = JANUS_OK;
    if (jrt_unlikely(!place->open || behaviour == NULL)) status = JANUS_CLOSED;
    if (status == JANUS_OK && jrt_unlikely(message == NULL && behaviour->message_bytes != 0))
        status = JANUS_INVALID;
    if (status == JANUS_OK && jrt_unlikely(head->is_call && behaviour->reply_bytes == 0))
        status = JANUS_STATE;
    if (jrt_likely(status == JANUS_OK)) {
        if (head->is_call) set_answer(head->question, place);
        status = room_for(place, head);
    }
    if (jrt_likely(status == JANUS_OK)) return deliver(place, head, message);
    if (status == JANUS_WOULD_WAIT) return send_when_full(place, head, message, deadline_ns, tries);
    jrt_place_unlock(place);
    if (status == JANUS_INVALID)
        return jrt_trouble_said(status, "message is NULL, and the behaviour has message_bytes");
    if (status == JANUS_STATE)
        return jrt_trouble_said(status, "the behaviour has no reply_bytes: it answers no calls");
    return status;
}

/* Pays for a letter. A plain thread pays nothing. */
static janus_status pay(void)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (worker == NULL) {
        jrt_plain_check(1);
        return jrt_outside_ask(); /* in a blocking call, or a callback, of a restricted task */
    }
    jrt_worker_stack_check(worker); /* [stack-reserve] */
    return jrt_chan_pay(&worker);
}

/* The channel operation of a letter that was not sent goes back. */
static janus_status settle(janus_status status, const char *call)
{
    struct jrt_task *task = jrt_task_current();
    if (jrt_likely(status == JANUS_OK)) return status;
    (void)jrt_actor_explain(status, call);
    if (task == NULL) return status;
    (void)jrt_chan_settle(task, status);
    /* Only now, because this may end the task: nothing of the call is left. */
    return status == JANUS_CANCELLED ? jrt_task_cancelled_or_end(task) : status;
}

janus_status jrt_mail_pay(void) { return pay(); }
janus_status jrt_mail_settle(janus_status status, const char *call) { return settle(status, call); }

/* A cast that needs a closer look. */
static __attribute__((noinline)) janus_status cast_slowly(janus_actor actor, const void *message)
{
    const struct jrt_letter_head head = {.block = NULL};
    janus_status                 status = pay();
    if (jrt_unlikely(status != JANUS_OK)) return status;
    status = jrt_mail_send(actor, JANUS_ACTOR_MAY_CAST, &head, message, JRT_NEVER, false);
    return settle(status, "janus_cast");
}

/* The message is written, and its actor rests. Releases the lock. */
static __attribute__((noinline)) janus_status cast_to_resting(struct jrt_actor_place *place,
                                                              _Atomic(uint32_t)      *held)
{
    struct jrt_task *task = rouse(place);
    jrt_chan_let_go(held);
    if (task != NULL) jrt_place_queue(task);
    return JANUS_OK;
}

/*
 * The plainest cast: a handle with all rights, to an actor whose ring has room. It calls nothing
 * but as its last step, so it needs no frame.
 */
janus_status janus_cast(janus_actor actor, const void *message)
{
    const struct jrt_letter_head head = {.block = NULL};
    uint64_t                     first = actor.opaque[0], key = actor.opaque[1];
    uint32_t                     index = (uint32_t)(first >> 32) - 1;
    struct jrt_worker           *worker = jrt_worker_self();
    if (jrt_unlikely(worker == NULL || !jrt_worker_stack_is_fine(worker)))
        return cast_slowly(actor, message);
    if (jrt_unlikely((uint32_t)first != JANUS_ACTOR_MAY_ALL || key == 0 || message == NULL))
        return cast_slowly(actor, message);
    /* acquire, then relaxed: as in jrt_place_at. */
    if (jrt_unlikely(index >= jrt_load_acquire(&jrt_actor_table.places) ||
                     !jrt_chan_pay_fast(worker->current)))
        return cast_slowly(actor, message);
    struct jrt_actor_place *place = jrt_load_relaxed(&jrt_actor_table.base) + index; /* relaxed */
    _Atomic(uint32_t)      *held = jrt_chan_lock_fast(&place->lock, worker->bias);
    if (jrt_likely(held != NULL)) {
        /* relaxed: under the lock. It is 0 while the place is hidden. */
        if (jrt_likely(jrt_load_relaxed(&place->keys[0]) == key &&
                       place->until != (uint32_t)place->sent)) {
            jrt_ring_write(place, &head, message);
            if (jrt_unlikely(place->resting)) return cast_to_resting(place, held);
            jrt_chan_let_go(held);
            return JANUS_OK;
        }
        jrt_chan_let_go(held);
    }
    jrt_chan_pay_back(worker->current);
    return cast_slowly(actor, message);
}

bool jrt_mail_call_fast(janus_actor actor, const struct jrt_letter_head *head, const void *message,
                        struct jrt_task **out_task)
{
    uint64_t                first = actor.opaque[0], key = actor.opaque[1];
    struct jrt_worker      *worker = jrt_worker_self();
    struct jrt_actor_place *place = jrt_place_at((uint32_t)(first >> 32) - 1);
    bool plain = (uint32_t)first == JANUS_ACTOR_MAY_ALL && key != 0 && message != NULL;
    if (jrt_unlikely(worker == NULL || !plain || place == NULL)) return false;
    _Atomic(uint32_t) *held = jrt_chan_lock_fast(&place->lock, worker->bias);
    if (jrt_unlikely(held == NULL)) return false;
    /* relaxed: under the lock. */
    if (jrt_unlikely(jrt_load_relaxed(&place->keys[0]) != key ||
                     place->until == (uint32_t)place->sent ||
                     jrt_place_behaviour(place)->reply_bytes == 0)) {
        jrt_chan_let_go(held);
        return false;
    }
    set_answer(head->question, place);
    jrt_ring_write(place, head, message);
    bool             here = worker->scheduler == jrt_supervisor_scheduler(place->supervisor);
    struct jrt_task *task = place->resting ? rouse(place) : NULL;
    jrt_chan_let_go(held);
    if (jrt_unlikely(task != NULL && !here)) {
        jrt_place_queue(task);
        task = NULL;
    }
    *out_task = task;
    return true;
}

janus_status janus_try_cast(janus_actor actor, const void *message)
{
    const struct jrt_letter_head head = {.block = NULL};
    janus_status                 status = pay();
    if (jrt_unlikely(status != JANUS_OK)) return status;
    status = jrt_mail_send(actor, JANUS_ACTOR_MAY_CAST, &head, message, JRT_NEVER, true);
    return settle(status, "janus_try_cast");
}

janus_status janus_cast_with(janus_actor actor, const void *message,
                             const janus_cast_options *given)
{
    janus_cast_options     options = {.struct_bytes = sizeof options};
    struct jrt_letter_head head = {.block = NULL};
    janus_status           status = pay();
    if (status != JANUS_OK) return status;
    if (given != NULL) {
        if (!jrt_struct_sane(given->struct_bytes, sizeof options))
            return settle(JANUS_INVALID, "janus_cast_with");
        memcpy(&options, given, given->struct_bytes);
    }
    if (options.block != NULL) {
        if (jrt_task_current() == NULL) return settle(JANUS_STATE, "janus_cast_with");
        head.block = options.block;
        head.key = jrt_block_post(options.block) & INT64_MAX;
    }
    uint64_t deadline = options.deadline_ns != 0 ? options.deadline_ns : JRT_NEVER;
    status = jrt_mail_send(actor, JANUS_ACTOR_MAY_CAST, &head, message, deadline, options.refuses);
    if (status != JANUS_OK && options.block != NULL) jrt_block_unpost(options.block);
    return settle(status, "janus_cast_with");
}
