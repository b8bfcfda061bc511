/* SPDX-License-Identifier: MIT */
/* Calls, asks and answers. The essay is in question.c. */
#include "actor/question.h"
#include "actor/supervisor.h"

#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/ledger.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "work/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALLS_MAX = 4096 };

/* Nobody answers any more. Under the lock. */
static void forget_key(struct jrt_question *question)
{
    jrt_store_relaxed(&question->key, (uint64_t)0); /* relaxed: the lock. */
}

/* Calling. */

struct reply_wait {
    struct jrt_waiting   waiting; /* first */
    struct jrt_question *question;
};

static janus_status join(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct jrt_question *question = ((struct reply_wait *)waiting)->question;
    jrt_spin_lock(&question->lock);
    janus_status status = question->status == JANUS_WOULD_WAIT ? JANUS_WOULD_WAIT : JANUS_OK;
    if (status == JANUS_WOULD_WAIT) question->task = task;
    jrt_spin_unlock(&question->lock);
    return status;
}

static janus_status leave(struct jrt_waiting *waiting, struct jrt_task *task, janus_status ended)
{
    struct jrt_question *question = ((struct reply_wait *)waiting)->question;
    (void)task;
    if (ended == JANUS_OK) return JANUS_OK;
    jrt_spin_lock(&question->lock);
    bool answered = question->status != JANUS_WOULD_WAIT;
    if (!answered) forget_key(question);
    jrt_spin_unlock(&question->lock);
    return answered ? JANUS_OK : ended;
}

/* A call as its task joins: the letter goes out when the task can be woken. */
struct call_wait {
    struct reply_wait      wait; /* first */
    janus_actor            actor;
    struct jrt_letter_head head;
    const void            *message;
    struct jrt_task       *rouses; /* the actor's, [wait-hand]; NULL: it was awake */
    bool                   sent;
};

static janus_status send_and_join(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct call_wait    *call = (struct call_wait *)waiting;
    struct jrt_question *question = call->wait.question;
    question->task = task; /* nobody else knows the question */
    call->sent = jrt_mail_call_fast(call->actor, &call->head, call->message, &call->rouses);
    if (jrt_likely(call->sent)) {
        waiting->outside = question->outside;
        return JANUS_WOULD_WAIT;
    }
    question->task = NULL;
    return JANUS_STATE; /* the caller sends it the long way */
}

/* Sends a question of the current task, if that is easy, and waits for the answer. False: it was
 * not sent. */
static bool send_easily(struct jrt_worker *worker, janus_actor actor,
                        const struct jrt_letter_head *head, const void *message,
                        uint64_t deadline_ns, janus_status *out_status)
{
    struct call_wait call = {.wait = {.waiting = {.why = JRT_WAIT_REPLY,
                                                  .deadline_ns = deadline_ns,
                                                  .join = send_and_join,
                                                  .leave = leave},
                                      .question = head->question},
                             .actor = actor,
                             .head = *head,
                             .message = message};
    janus_status     status = jrt_wait_handing(worker, &call.wait.waiting, &call.rouses);
    if (jrt_unlikely(!call.sent)) return false;
    *out_status = status == JANUS_OK ? head->question->status : status;
    jrt_question_give(head->question);
    return true;
}

/* Waits in a task for the answer. *out_done: the answer has come. */
static janus_status wait_as_task(struct jrt_question *question, uint64_t deadline_ns,
                                 bool *out_done)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct reply_wait  wait = {.waiting = {.why = JRT_WAIT_REPLY,
                                           .outside = question->outside,
                                           .deadline_ns = deadline_ns,
                                           .join = join,
                                           .leave = leave},
                               .question = question};
    janus_status       status = jrt_wait(worker, &wait.waiting);
    *out_done = status == JANUS_OK;
    return status;
}

static janus_status wait_as_thread(struct jrt_question *question, uint64_t deadline_ns,
                                   bool *out_done)
{
    *out_done = jrt_wait_as_thread(&question->done, deadline_ns) == JANUS_OK;
    jrt_spin_lock(&question->lock);
    if (question->status != JANUS_WOULD_WAIT) *out_done = true;
    if (!*out_done) forget_key(question);
    jrt_spin_unlock(&question->lock);
    return *out_done ? JANUS_OK : JANUS_DEADLINE;
}

/* The place that a call goes to, and the bytes of its answers. Unlocked; the table keeps it. */
static struct jrt_actor_place *peek(janus_actor actor, unsigned rights, size_t *out_bytes,
                                    janus_status *status)
{
    struct jrt_actor_place *place = jrt_place_find(actor, rights, status);
    if (place == NULL) return NULL;
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    *out_bytes = behaviour != NULL ? behaviour->reply_bytes : 0;
    jrt_place_unlock(place);
    return place;
}

/* Waits for an answer to the question, which was sent. */
static janus_status await_answer(struct jrt_question *question, uint64_t deadline_ns)
{
    bool         done = false;
    janus_status status = jrt_worker_self() != NULL ? wait_as_task(question, deadline_ns, &done)
                                                    : wait_as_thread(question, deadline_ns, &done);
    if (jrt_likely(done)) {
        status = question->status;
    } else { /* NO_MEMORY: it could not even leave the CPU; nobody may answer any more. */
        jrt_spin_lock(&question->lock);
        forget_key(question);
        jrt_spin_unlock(&question->lock);
    }
    jrt_question_give(question);
    return status;
}

/* Asks with a letter that carries the question. On an error the question is gone. */
static janus_status send(janus_actor actor, unsigned right, struct jrt_question *question,
                         uint64_t key, const void *message, uint64_t deadline_ns, bool tries)
{
    struct jrt_letter_head head = {.question = question, .key = key & INT64_MAX, .is_call = true};
    janus_status           status = jrt_mail_send(actor, right, &head, message, deadline_ns, tries);
    return status == JANUS_CLOSED ? JANUS_GONE : status;
}

/* Notes that the current actor waits for an answer to the question, which was sent. DEADLOCK: that
 * closes a circle, and the question is gone. */
static janus_status note(struct jrt_question *question, const struct jrt_actor_place *place)
{
    bool                   free = jrt_circle_enter(place);
    struct jrt_circle_wait now = jrt_circle_now();
    jrt_spin_lock(&question->lock);
    bool answered = question->status != JANUS_WOULD_WAIT;
    if (!answered && free) question->circle = now;
    if (!answered && !free) forget_key(question);
    jrt_spin_unlock(&question->lock);
    if (answered) jrt_circle_leave();
    if (answered || free) return JANUS_OK;
    jrt_question_give(question);
    return JANUS_DEADLOCK;
}

/* Sends a question that was taken for this, and waits for the answer. */
static janus_status send_and_wait(janus_actor actor, const void *message,
                                  struct jrt_question *question, uint64_t key, uint64_t deadline_ns)
{
    struct jrt_letter_head head = {.question = question, .key = key & INT64_MAX, .is_call = true};
    struct jrt_worker     *worker = jrt_worker_self();
    janus_status           status;
    if (jrt_likely(worker != NULL &&
                   send_easily(worker, actor, &head, message, deadline_ns, &status)))
        return status;
    status = send(actor, JANUS_ACTOR_MAY_CALL, question, key, message, deadline_ns, false);
    if (status == JANUS_OK) return await_answer(question, deadline_ns);
    jrt_question_drop(question, key);
    return status;
}

static const uint64_t far_ns = JANUS_SECONDS; /* the coarse clock is never as far behind */

/* Whether the deadline has passed. Most are far away, so the coarse clock answers. */
static bool is_late(uint64_t deadline_ns)
{
    if (deadline_ns == JRT_NEVER) return false;
    uint64_t coarse = jrt_clock_coarse_ns();
    return (deadline_ns < coarse || deadline_ns - coarse < far_ns) && jrt_wait_is_late(deadline_ns);
}

static janus_status call(janus_actor actor, const void *message, void *reply, uint64_t deadline_ns)
{
    const struct jrt_task        *task = jrt_task_current();
    const struct jrt_actor_place *place = jrt_place_at((uint32_t)(actor.opaque[0] >> 32) - 1);
    janus_status                  status;
    size_t                        bytes;
    uint64_t                      key;
    if (place == NULL) return JANUS_STALE;
    bool cancelled = task != NULL && jrt_task_cancel_reason(task) != JANUS_CANCEL_REASON_NONE;
    /* What is wrong with the handle comes first. */
    if (jrt_unlikely(cancelled || is_late(deadline_ns))) {
        jrt_turn_toll(jrt_worker_self(), JRT_TOLL_REFUSED);
        if (peek(actor, JANUS_ACTOR_MAY_CALL, &bytes, &status) == NULL) return status;
        return cancelled ? JANUS_CANCELLED : JANUS_DEADLINE;
    }
    bool notes = !jrt_circle_never(task);
    if (notes && jrt_unlikely(!jrt_circle_enter(place))) {
        if (peek(actor, JANUS_ACTOR_MAY_CALL, &bytes, &status) == NULL) return status;
        return JANUS_DEADLOCK;
    }
    struct jrt_question *question = jrt_question_take(&key);
    if (question == NULL) {
        if (notes) jrt_circle_leave();
        return JANUS_NO_MEMORY;
    }
    question->reply = reply;
    question->reply_bytes = question->answer_bytes = JRT_ANSWER_ANY;
    jrt_store_relaxed(&question->deadline_ns, deadline_ns); /* relaxed: [question-key]. */
    if (notes) question->circle = jrt_circle_now();
    status = send_and_wait(actor, message, question, key, deadline_ns);
    if (notes) jrt_circle_leave();
    return status;
}

/* Returns CANCELLED, or ends the task. A thread is never cancelled. */
static janus_status cancelled(void)
{
    struct jrt_task *task = jrt_task_current();
    return task != NULL ? jrt_task_cancelled_or_end(task) : JANUS_CANCELLED;
}

janus_status janus_call(janus_actor actor, const void *message, void *reply, uint64_t deadline_ns)
{
    janus_status status = jrt_mail_pay();
    if (status != JANUS_OK) return status;
    const struct jrt_thread *thread = jrt_thread_self();
    /* A blocking call of a task cannot be cancelled, so it must not wait for ever. */
    if (thread->worker == NULL && (thread->calls_back || thread->behalf != NULL))
        return JANUS_STATE;
    status = call(actor, message, reply, jrt_deadline(deadline_ns));
    if (jrt_unlikely(status != JANUS_OK)) (void)jrt_actor_explain(status, "janus_call");
    /* Only now, because this may end the task: nothing of the call is left. */
    return status == JANUS_CANCELLED ? cancelled() : status;
}

bool jrt_question_is_late(const struct jrt_question *question, uint64_t key)
{
    /* acquire: its deadline, [question-key]. */
    if (jrt_load_acquire(&question->key) != key) return true;
    return is_late(jrt_load_relaxed(&question->deadline_ns)); /* relaxed: as above. */
}

/* Several at once. */

struct group_wait {
    struct jrt_waiting waiting; /* first */
    struct jrt_group  *group;
};

static janus_status join_group(struct jrt_waiting *waiting, struct jrt_task *task)
{
    struct jrt_group *group = ((struct group_wait *)waiting)->group;
    jrt_spin_lock(&group->lock);
    janus_status status = group->left == 0 ? JANUS_OK : JANUS_WOULD_WAIT;
    if (group->left != 0) group->task = task;
    jrt_spin_unlock(&group->lock);
    return status;
}

static janus_status leave_group(struct jrt_waiting *waiting, struct jrt_task *task,
                                janus_status ended)
{
    struct jrt_group *group = ((struct group_wait *)waiting)->group;
    (void)task;
    jrt_spin_lock(&group->lock);
    group->task = NULL;
    jrt_spin_unlock(&group->lock);
    return ended;
}

struct one {
    struct jrt_question *question;
    uint64_t             key;
};

static void ask_one(janus_actor actor, const void *message, void *reply, size_t reply_bytes,
                    struct jrt_group *group, struct one *out, janus_status *status,
                    uint64_t deadline_ns)
{
    size_t                  answer_bytes = 0;
    struct jrt_actor_place *place = peek(actor, JANUS_ACTOR_MAY_CALL, &answer_bytes, status);
    if (place == NULL) return;
    if (!jrt_circle_enter(place)) {
        *status = JANUS_DEADLOCK;
        return;
    }
    jrt_circle_leave();
    out->question = jrt_question_take(&out->key);
    *status = JANUS_NO_MEMORY;
    if (out->question == NULL) return;
    out->question->reply = reply;
    out->question->reply_bytes = reply_bytes;
    out->question->answer_bytes = answer_bytes;
    /* relaxed: [question-key]; the letter tells of it. */
    jrt_store_relaxed(&out->question->deadline_ns, deadline_ns);
    out->question->group = group;
    jrt_spin_lock(&group->lock);
    group->left++;
    jrt_spin_unlock(&group->lock);
    *status =
        send(actor, JANUS_ACTOR_MAY_CALL, out->question, out->key, message, deadline_ns, true);
    if (*status == JANUS_OK) group->outside = group->outside || out->question->outside;
    if (*status == JANUS_OK) return;
    jrt_spin_lock(&group->lock);
    group->left--;
    jrt_spin_unlock(&group->lock);
    jrt_question_drop(out->question, out->key);
    out->question = NULL;
}

/* The wait has ended with `ended`: what became of one. */
static janus_status end_one(struct one *one, janus_status sent, janus_status ended)
{
    if (one->question == NULL) return sent;
    jrt_spin_lock(&one->question->lock);
    janus_status status = one->question->status;
    forget_key(one->question);
    jrt_spin_unlock(&one->question->lock);
    jrt_question_give(one->question);
    return status == JANUS_WOULD_WAIT ? ended : status;
}

static janus_status wait_for_all(struct jrt_group *group, uint64_t deadline_ns)
{
    struct jrt_worker *worker = jrt_worker_self();
    struct group_wait  wait = {.waiting = {.why = JRT_WAIT_REPLY,
                                           .outside = group->outside,
                                           .deadline_ns = deadline_ns,
                                           .join = join_group,
                                           .leave = leave_group},
                               .group = group};
    if (jrt_wait_is_late(deadline_ns)) return JANUS_DEADLINE;
    return jrt_wait(worker, &wait.waiting);
}

janus_status janus_call_all(const janus_actor *actors, size_t count, const void *message,
                            void *replies, size_t reply_bytes, janus_status *statuses,
                            uint64_t deadline_ns)
{
    struct jrt_group group = {.left = 0};
    deadline_ns = jrt_deadline(deadline_ns);
    if (count > CALLS_MAX || (count > 0 && (actors == NULL || statuses == NULL)))
        return JANUS_INVALID;
    /* An actor that waits for several could be part of a circle that nobody sees. */
    if (jrt_task_current() == NULL || jrt_place_current() != NULL) return JANUS_STATE;
    /* All is paid before the first question: a task that cannot pay may end there. */
    struct jrt_ledger *ledger;
    size_t             bytes = count * (sizeof(struct one) + sizeof(struct jrt_question));
    for (size_t i = 0; i < count; i++) {
        janus_status paid = jrt_mail_pay();
        if (paid != JANUS_OK) return paid;
    }
    janus_status charged = jrt_ledger_charge(bytes, &ledger);
    if (charged != JANUS_OK) return charged;
    struct one *ones = jrt_calloc(count > 0 ? count : 1, sizeof *ones);
    if (ones == NULL) {
        jrt_ledger_refund(ledger, bytes);
        return JANUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        ask_one(actors[i], message, replies != NULL ? (char *)replies + i * reply_bytes : NULL,
                reply_bytes, &group, &ones[i], &statuses[i], deadline_ns);
    }
    janus_status ended = wait_for_all(&group, deadline_ns);
    if (ended == JANUS_OK) ended = JANUS_DEADLINE; /* not used: all have answered */
    for (size_t i = 0; i < count; i++) statuses[i] = end_one(&ones[i], statuses[i], ended);
    free(ones);
    jrt_ledger_refund(ledger, bytes);
    if (ended == JANUS_CANCELLED) (void)cancelled();
    return JANUS_OK;
}

/* Asking. */

janus_status janus_ask(janus_actor actor, const void *message, uint64_t tag, uint64_t deadline_ns)
{
    struct jrt_actor_place *self = jrt_place_current();
    struct jrt_notice      *notice;
    uint64_t                key;
    size_t                  bytes = 0;
    janus_status            status = jrt_mail_pay();
    if (status != JANUS_OK) return status;
    if (self == NULL) {
        (void)jrt_trouble_said(JANUS_STATE, "only the handler of an actor may call this");
        return jrt_mail_settle(JANUS_STATE, "janus_ask");
    }
    deadline_ns = jrt_deadline(deadline_ns);
    if (peek(actor, JANUS_ACTOR_MAY_CALL, &bytes, &status) == NULL)
        return jrt_mail_settle(status, "janus_ask");
    status = jrt_notice_make(bytes, &notice);
    if (status != JANUS_OK) return jrt_mail_settle(status, "janus_ask");
    notice->kind = JANUS_LETTER_KIND_REPLY;
    notice->tag = tag;
    struct jrt_question *question = jrt_question_take(&key);
    if (question == NULL) {
        jrt_notice_free(notice);
        return jrt_mail_settle(JANUS_NO_MEMORY, "janus_ask");
    }
    jrt_store_relaxed(&question->deadline_ns, deadline_ns); /* relaxed: [question-key]. */
    question->answer_bytes = notice->reply_bytes;
    question->notice = notice;
    question->asker = jrt_place_index(self);
    question->asker_serial = self->serial;
    question->asker_incarnation = self->incarnation;
    jrt_place_lock(self);
    struct jrt_actor_rare *rare = jrt_place_rare(self);
    bool                   noted = rare != NULL && jrt_debt_add(&rare->asks, question, key);
    jrt_place_unlock(self);
    status = noted ? JANUS_OK : JANUS_NO_MEMORY;
    if (status == JANUS_OK && deadline_ns != JRT_NEVER)
        status = jrt_ask_deadline(self, question, key, deadline_ns);
    if (status == JANUS_OK)
        status = send(actor, JANUS_ACTOR_MAY_CALL, question, key, message, deadline_ns, true);
    if (status != JANUS_OK) jrt_question_drop(question, key);
    return jrt_mail_settle(status, "janus_ask");
}

/* Answering. A letter's opaque words: question, key, whether it was answered or kept, reply
 * bytes. */

enum { ASKED = 1, ANSWERED = 2, KEPT = 3 };

bool janus_letter_is_call(const janus_letter *letter)
{
    return letter != NULL && letter->opaque[2] == ASKED;
}

static janus_status answer(struct jrt_question *question, uint64_t key, const void *reply)
{
    bool done = jrt_question_end(question, key, JANUS_OK, reply, SIZE_MAX);
    return done ? JANUS_OK : JANUS_STALE;
}

janus_status janus_reply(janus_letter *letter, const void *reply)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    if (letter == NULL || reply == NULL) return JANUS_INVALID;
    /* What the letter says is checked against what the library knows of the letter in hand. */
    if (self == NULL || letter->opaque[2] == 0) return JANUS_STATE;
    if (letter->opaque[2] != ASKED) return JANUS_STALE;
    if (!self->hand.is_call) return JANUS_STATE;
    letter->opaque[2] = ANSWERED;
    struct jrt_letter_head hand = self->hand;
    self->hand = (struct jrt_letter_head){.block = NULL};
    return answer(hand.question, hand.key, reply);
}

janus_status janus_reply_keep(janus_letter *letter, janus_kept_reply *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    if (letter == NULL || out == NULL) return JANUS_INVALID;
    if (self == NULL || !self->hand.is_call || letter->opaque[2] != ASKED) return JANUS_STATE;
    jrt_place_lock(self);
    struct jrt_actor_rare *rare = jrt_place_rare(self);
    bool noted = rare != NULL && jrt_debt_add(&rare->kept, self->hand.question, self->hand.key);
    jrt_place_unlock(self);
    if (!noted) return JANUS_NO_MEMORY;
    letter->opaque[2] = KEPT;
    *out = (janus_kept_reply){
        {jrt_question_number(self->hand.question), jrt_question_token(self->hand.key)}};
    self->hand = (struct jrt_letter_head){.block = NULL};
    return JANUS_OK;
}

janus_status janus_reply_to(janus_kept_reply kept, const void *reply)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_question *question = jrt_question_find(kept.opaque[0]);
    if (reply == NULL) return JANUS_INVALID;
    if (question == NULL) return JANUS_STALE;
    jrt_spin_lock(&question->lock);
    uint64_t key = jrt_load_relaxed(&question->key); /* relaxed: the lock. */
    jrt_spin_unlock(&question->lock);
    if (key == 0 || jrt_question_token(key) != kept.opaque[1]) return JANUS_STALE;
    return answer(question, key, reply);
}

/* Describing. */

janus_status janus_actor_describe(janus_actor actor, char *buffer, size_t size,
                                  uint64_t deadline_ns)
{
    char         text[JRT_DESCRIBE_BYTES] = "";
    janus_status status = jrt_mail_pay();
    const char  *what = "janus_actor_describe";
    uint64_t     key;
    if (status != JANUS_OK) return status;
    deadline_ns = jrt_deadline(deadline_ns);
    if (buffer == NULL || size == 0) return jrt_mail_settle(JANUS_INVALID, what);
    if (jrt_task_current() == NULL) return JANUS_STATE;
    struct jrt_question *question = jrt_question_take(&key);
    if (question == NULL) return jrt_mail_settle(JANUS_NO_MEMORY, what);
    question->reply = text;
    question->reply_bytes = question->answer_bytes = sizeof text;
    jrt_store_relaxed(&question->deadline_ns, deadline_ns); /* relaxed: [question-key]. */
    struct jrt_actor_place *place = jrt_place_find(actor, JANUS_ACTOR_MAY_STOP, &status);
    if (place != NULL) {
        const janus_behaviour *behaviour = jrt_place_behaviour(place);
        struct jrt_actor_rare *rare = jrt_place_rare(place);
        struct jrt_task       *task = NULL;
        bool runs = place->state == JANUS_ACTOR_STATE_RUNNING && place->task != NULL;
        status = runs ? JANUS_OK : JANUS_GONE;
        if (behaviour == NULL || behaviour->describe == NULL || place == jrt_place_current() ||
            (rare != NULL && rare->describes != NULL &&
             jrt_question_lives(rare->describes, rare->describes_key))) {
            status = JANUS_STATE;
        }
        if (rare == NULL) status = JANUS_NO_MEMORY;
        if (status == JANUS_OK) {
            rare->describes = question;
            rare->describes_key = key;
            task = jrt_place_rouse(place);
        }
        jrt_place_unlock_and_queue(place, task);
    }
    if (status != JANUS_OK) {
        jrt_question_drop(question, key);
        if (status == JANUS_STATE)
            (void)jrt_trouble_said(status, "the behaviour has no describe, another task asks just "
                                           "now, or the actor asks itself");
        return jrt_mail_settle(status, what);
    }
    status = note(question, place);
    if (status != JANUS_OK) return jrt_actor_explain(status, what);
    status = await_answer(question, deadline_ns);
    jrt_circle_leave();
    if (status != JANUS_OK) (void)jrt_actor_explain(status, what);
    if (status == JANUS_OK) (void)snprintf(buffer, size, "%s", text);
    return status == JANUS_CANCELLED ? cancelled() : status;
}
