/* SPDX-License-Identifier: MIT */
/*
 * An incarnation: what the task of an actor does.
 *
 *     init ─► next letter ─► handle ─► tidy up ─► next letter ─► ... ─► terminate
 *                 │ none
 *                 └─► rests: the task has no frames until a letter comes, [task-rest]
 *
 * The order of letters: CONTINUE, the order to end, notices, a wish to be described, messages. A
 * suspended actor takes only the order to end and the wish.
 *
 * [actor-tidy]  What a handler leaves behind ends with it, as it would end with a task: its defers
 *   run, locks are abandoned, shields end. So what an actor holds does not depend on how many
 *   letters it happened to handle in a row. A nursery that is left open lies in a frame that is
 *   gone. So nothing may be called then: the entry returns, and the task ends as any that returns
 *   with an open nursery, [ending-open].
 *
 * [actor-apart]  A letter with a budget of its own: while it is handled, the rest of the actor's
 *   budget is put apart. An actor that has less than the letter may use is refilled as usual. What
 *   a refill has above the letter's limit is put apart, too. What the letter did not use, and the
 *   rest, come together again after it. A letter that needs more than its limit ends the actor,
 *   EXHAUSTED, and its supervisor learns the reason.
 */
#include "actor/supervisor.h"

#include "cancel/cancel.h"
#include "chan/pay.h"
#include "means/call.h"
#include "means/callback.h"
#include "means/holder.h"
#include "means/purse.h"
#include "nursery/nursery.h"
#include "nursery/pay.h"
#include "rt/inside.h"
#include "task/note.h"

#include <janusrt/memory.h>
#include <stdlib.h>
#include <string.h>

/* What the next letter is. */
enum next {
    NEXT_REST,
    NEXT_LETTER,
    NEXT_DESCRIBE,
    NEXT_END,
};

static bool is_cancelled(const struct jrt_task *task)
{
    return jrt_task_cancelled_itself(task) != JANUS_CANCEL_REASON_NONE;
}

/* Whether there is nothing to tidy up. */
static inline bool is_tidy(const struct jrt_task *task)
{
    /* relaxed, both: its own. */
    return task->innermost == NULL && task->defers == NULL &&
           jrt_load_relaxed(&task->shield) == 0 &&
           jrt_load_relaxed(&task->record.holder) == NULL; /* relaxed: as above. */
}

/* Tidying up. False: a nursery is open, and the caller returns at once. */
static inline bool tidy_up(struct jrt_task *task)
{
    if (jrt_unlikely(task->innermost != NULL)) return false;
    /* relaxed, both: its own. */
    if (jrt_unlikely(jrt_load_relaxed(&task->shield) != 0)) {
        jrt_store_relaxed(&task->shield, (uint16_t)0); /* relaxed: as above. */
        task->bounds = NULL;                           /* in frames that are gone */
    }
    bool any = task->defers != NULL;
    while (jrt_unlikely(task->defers != NULL)) {
        struct jrt_defer defer = *task->defers;
        free(task->defers);
        task->defers = defer.next;
        defer.function(defer.argument);
        if (task->innermost != NULL) return false;
    }
    if (jrt_unlikely(any && task->purse != NULL)) task->purse->defers = 0;
    if (jrt_unlikely(jrt_load_relaxed(&task->record.holder) != NULL)) { /* relaxed: its own. */
        jrt_holder_end(jrt_worker_self(), task);
    }
    jrt_debug_invariant("actor-tidy", task->innermost == NULL && task->defers == NULL);
    return true;
}

/* A letter's own budget, [actor-apart]. */

static void set_apart(struct jrt_actor_place *place, struct jrt_task *task)
{
    struct jrt_purse      *purse = task->purse;
    struct jrt_actor_rare *rare = place->rare;
    if (place->spec->options.message_budget == NULL || purse == NULL || !purse->hard) return;
    if (rare == NULL) return;
    jrt_debug_invariant("actor-apart", !rare->is_apart);
    struct jrt_purse_rare *more = jrt_purse_rare(purse); /* without memory nobody gives more */
    janus_budget           has = jrt_purse_read(task), most = place->spec->message_budget;
    janus_budget           letter = janus_budget_min(has, most);
    rare->apart = has;
    (void)janus_budget_charge(&rare->apart, letter);
    (void)janus_budget_charge(&most, letter);
    if (more != NULL) more->more = most;
    if (more != NULL) more->beyond = janus_budget_zero();
    rare->is_apart = true;
    purse->capped = true;
    purse->left = letter;
    purse->handed = 0;
    jrt_purse_fill(purse, 0);
}

void jrt_place_together(struct jrt_actor_place *place, struct jrt_task *task)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare == NULL || !rare->is_apart) return;
    rare->is_apart = false;
    if (task->purse == NULL) return;
    task->purse->capped = false;
    task->purse->left = janus_budget_add(task->purse->left, rare->apart);
    if (task->purse->rare == NULL) return;
    task->purse->left = janus_budget_add(task->purse->left, task->purse->rare->beyond);
    task->purse->rare->beyond = janus_budget_zero();
}

/* Letters. */

/* A letter, as its handler sees it. */
struct reading {
    janus_letter           letter;
    struct jrt_letter_head head;
    struct jrt_notice     *notice; /* owned, or `continuing`; NULL: a message */
};

static struct jrt_notice continuing; /* CONTINUE. A handler may have changed letter->kind */

static void read_notice(struct jrt_actor_place *place, struct reading *out)
{
    struct jrt_notice *notice = jrt_notice_take(place);
    place->notice_count++;
    out->notice = place->rare->in_hand = notice;
    out->letter =
        (janus_letter){.kind = notice->kind,
                       .status = notice->status,
                       .reply = notice->reply_bytes != 0 ? jrt_notice_reply(notice) : NULL,
                       .tag = notice->tag,
                       .end = notice->end};
    if (notice->status != JANUS_OK) out->letter.reply = NULL;
}

/* A message with nothing but itself; the other fields stay zero. */
static inline void read_message(struct reading *out, void *message)
{
    out->notice = NULL;
    out->letter.message = message;
    out->letter.block = NULL;
    out->letter.kind = JANUS_LETTER_KIND_MESSAGE;
    out->letter.tag = 0;
    out->letter.opaque[2] = 0;
}

/* What read_message leaves as it is. */
static inline void blank(struct reading *out)
{
    out->letter.status = JANUS_OK;
    out->letter.reply = NULL;
    out->letter.end.kind = (janus_end_kind)0;
    out->letter.end.final = false;
    out->letter.end.lacks = (janus_component)0;
    out->letter.end.incarnation = 0;
    out->letter.end.error = 0;
    out->letter.opaque[0] = out->letter.opaque[1] = out->letter.opaque[3] = 0;
}

/* Takes a letter that is no message, if there is one. Under the lock. */
static enum next take_other(struct jrt_actor_place *place, struct reading *out)
{
    struct jrt_actor_rare *rare = place->rare;
    bool                   works = !place->suspended;
    if (place->stops != 0 && place->stops != JANUS_STOP_HOW_DRAIN + 1) return NEXT_END;
    if (rare != NULL && rare->continues && works) {
        rare->continues = false;
        place->notice_count++;
        out->notice = &continuing;
        out->letter = (janus_letter){.kind = JANUS_LETTER_KIND_CONTINUE, .tag = rare->continue_tag};
        return NEXT_LETTER;
    }
    if (place->notices != NULL && works) {
        read_notice(place, out);
        return NEXT_LETTER;
    }
    if (rare != NULL && rare->describes != NULL) return NEXT_DESCRIBE;
    return NEXT_REST;
}

/* Where an open window lies, [mail-window]. */
struct window {
    char   *ring; /* NULL: no window was opened */
    uint8_t room_log;
};

/* Takes the next letter, under the lock. */
static enum next take_next(struct jrt_actor_place *place, struct reading *out, void *message,
                           struct window *window)
{
    bool others =
        place->rare != NULL || place->notices != NULL || place->stops != 0 || place->suspended;
    jrt_mail_close_window(place);
    window->ring = NULL;
    if (jrt_unlikely(others)) {
        enum next next = take_other(place, out);
        if (next != NEXT_REST) return next;
    }
    if (!place->suspended && jrt_mail_take(place, &out->head, message)) {
        if (jrt_unlikely(place->rare != NULL)) jrt_senders_serve(place, false);
        if (jrt_mail_open_window(place)) *window = (struct window){place->ring, place->room_log};
        jrt_mail_handled(place, 1); /* `accept` may take it back */
        read_message(out, message);
        return NEXT_LETTER;
    }
    /* It is drained. */
    if (place->stops != 0 && (!place->suspended || jrt_mail_count(place) == 0)) return NEXT_END;
    return NEXT_REST;
}

/* Somebody may wait for the room that was made. */
static __attribute__((noinline)) void serve_sender(struct jrt_actor_place *place)
{
    jrt_place_lock(place);
    jrt_senders_serve(place, false);
    jrt_place_unlock(place);
}

/* Takes the next message of an open window, without the lock. False: the lock is needed. */
static inline bool take_from(const struct window *window, struct jrt_actor_place *place,
                             struct reading *out, void *message)
{
    if (window->ring == NULL) return false;
    uint32_t number = jrt_load_relaxed(&place->at); /* relaxed, both: its own; a first look. */
    if (number == place->head || jrt_load_relaxed(&place->urgent)) return false; /* relaxed */
    size_t      each = jrt_letter_bytes(place);
    const char *at = jrt_ring_slot(window->ring, window->room_log, each, number);
    memcpy(&out->head, at, sizeof out->head);
    if (jrt_unlikely(out->head.block != NULL && !out->head.is_call)) return false;
    jrt_letter_copy(message, at + sizeof out->head, place->message_bytes);
    jrt_store_release(&place->at, number + 1); /* release: the message was read. */
    jrt_fence_light_seq_cst();                 /* seq_cst: [mail-window]. */
    if (jrt_unlikely(jrt_load_relaxed(&place->urgent))) serve_sender(place); /* relaxed: after it */
    jrt_mail_handled(place, 1);
    read_message(out, message);
    return true;
}

/* The message cannot be handled. */
static void reject(struct jrt_actor_place *place, bool call)
{
    jrt_mail_handled(place, -1);
    jrt_place_lock(place);
    *(call ? &place->returned : &place->dead) += 1;
    jrt_place_unlock(place);
}

/* A call that nobody waits for any more is skipped; a block is adopted. */
static inline bool accept(struct jrt_actor_place *place, struct reading *reading)
{
    struct jrt_letter_head *head = &reading->head;
    if (head->is_call) {
        if (jrt_question_is_late(head->question, head->key)) {
            (void)jrt_question_end(head->question, head->key, JANUS_DEADLINE, NULL, 0);
            reject(place, true);
            return false;
        }
        place->hand = *head;
        reading->letter.opaque[2] = 1; /* it can be answered */
        return true;
    }
    jrt_block_unpost(head->block);
    if (janus_adopt(head->block) != JANUS_OK) {
        janus_discard(head->block);
        reject(place, false);
        return false;
    }
    reading->letter.block = head->block;
    return true;
}

/* The actor pays for a letter: an op, and a channel operation if it has books. */
static void pay(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (task->purse != NULL) {
        (void)jrt_chan_pay(&worker); /* CANCELLED is seen in the loop */
    } else if (!jrt_fuel_one()) {
        (void)jrt_pay_ops(task, 1);
    }
}

/* The letter was handled without an answer. */
static void leave_unanswered(struct jrt_actor_place *place)
{
    struct jrt_letter_head hand = place->hand;
    place->hand = (struct jrt_letter_head){.block = NULL};
    if (hand.is_call) (void)jrt_question_end(hand.question, hand.key, JANUS_NO_REPLY, NULL, 0);
}

/* The block that came with the message, unless the handler took it out of the letter. */
static void *block_of(const struct reading *reading)
{
    const struct jrt_letter_head *head = &reading->head;
    return !head->is_call && reading->letter.block == head->block ? head->block : NULL;
}

/* Puts the message aside until janus_actor_take_up. */
static bool put_aside(struct jrt_actor_place *place, void *block, const void *message)
{
    size_t                 each = jrt_letter_bytes(place);
    struct jrt_letter_head head = place->hand;
    if (!head.is_call && block != NULL) { /* it is adopted again later */
        head.block = janus_detach(block);
        if (head.block == NULL) return false;
        head.key = jrt_block_post(head.block) & INT64_MAX;
    }
    jrt_place_lock(place);
    struct jrt_actor_rare *rare = jrt_place_rare(place);
    if (rare != NULL && rare->aside_count == rare->aside_room) {
        uint32_t room = rare->aside_room != 0 ? rare->aside_room * 2 : 4;
        char    *more = jrt_realloc(rare->aside, room * each);
        if (more != NULL) {
            rare->aside = more;
            rare->aside_room = room;
        }
    }
    bool fits = rare != NULL && rare->aside_count < rare->aside_room;
    if (fits) {
        char *at = rare->aside + rare->aside_count++ * each;
        memcpy(at, &head, sizeof head);
        memcpy(at + sizeof head, message, jrt_place_behaviour(place)->message_bytes);
        if (!head.is_call && head.block != NULL) rare->block_bytes += head.key;
        place->hand = (struct jrt_letter_head){.block = NULL};
        jrt_mail_bar(place);
        jrt_mail_handled(place, -1); /* it is counted when it comes again */
    }
    jrt_place_unlock(place);
    if (!fits && !head.is_call && head.block != NULL) {
        jrt_block_unpost(head.block);
        janus_discard(head.block);
    }
    return fits;
}

/* Describing. */

struct description {
    struct jrt_actor_place *place;
    bool                    done;
    char                    text[JRT_DESCRIBE_BYTES];
};

static void describe_state(void *argument)
{
    struct description *description = argument;
    (void)jrt_place_behaviour(description->place)
        ->describe(description->place->self, description->text, sizeof description->text);
    description->done = true;
}

/* As a callback: if it panics, it ends alone, and the actor goes on. The actor pays. */
static void describe(struct jrt_actor_place *place, struct jrt_task *task)
{
    struct description description = {.place = place};
    uint64_t used = jrt_callback_run_for(task, describe_state, &description, "an actor's describe");
    description.text[sizeof description.text - 1] = '\0';
    jrt_place_lock(place);
    struct jrt_question *question = place->rare->describes;
    uint64_t             key = place->rare->describes_key;
    place->rare->describes = NULL;
    jrt_place_unlock(place);
    (void)jrt_question_end(question, key, description.done ? JANUS_OK : JANUS_NO_REPLY,
                           description.text, sizeof description.text);
    (void)jrt_pay_ops(task, used); /* the last step: it may end the task */
}

/* The life of an incarnation. */

bool jrt_place_make_state(struct jrt_actor_place *place)
{
    size_t bytes = jrt_place_behaviour(place)->state_bytes;
    if (bytes != 0)
        place->self = bytes <= sizeof place->small ? place->small : jrt_calloc(1, bytes);
    return bytes == 0 || place->self != NULL;
}

static int64_t begin(struct jrt_actor_place *place)
{
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    if (!jrt_place_make_state(place)) return JANUS_NO_MEMORY;
    if (behaviour->init == NULL) return 0;
    return behaviour->init(place->self, place->spec->child.argument);
}

/* Ends the incarnation: notes how, and runs terminate. */
static int64_t finish(struct jrt_actor_place *place, struct jrt_task *task, janus_end_kind kind,
                      int64_t error)
{
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    struct jrt_shield      grace;
    jrt_place_lock(place);
    place->end = (janus_end){.kind = kind, .incarnation = place->incarnation, .error = error};
    place->phase = JRT_PHASE_CLOSE;
    jrt_place_unlock(place);
    if (behaviour->terminate != NULL) {
        jrt_shield_for_cleanup(task, &grace);
        behaviour->terminate(place->self, &place->end);
        if (!tidy_up(task)) return 0;
    }
    if (kind == JANUS_END_KIND_FAILED) return error;
    return kind == JANUS_END_KIND_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t end_normally(struct jrt_actor_place *place, struct jrt_task *task)
{
    bool cancelled = is_cancelled(task);
    return finish(place, task, cancelled ? JANUS_END_KIND_CANCELLED : JANUS_END_KIND_STOPPED, 0);
}

/* A handler has returned `result`, and there is something to do. *out_over: the incarnation ends
 * with the returned result. */
static __attribute__((noinline)) int64_t after(struct jrt_actor_place *place, struct jrt_task *task,
                                               struct reading *reading, const void *message,
                                               int64_t result, bool *out_over)
{
    *out_over = true;
    if (jrt_unlikely(task->innermost != NULL)) return 0; /* [actor-tidy] */
    jrt_place_together(place, task);
    if (!tidy_up(task)) return 0;
    bool notice = reading->notice != NULL;
    if (notice && reading->notice != &continuing) {
        place->rare->in_hand = NULL;
        jrt_notice_free(reading->notice);
    }
    if (notice) blank(reading);
    reading->notice = NULL;
    *out_over = false;
    if (result == JANUS_ACTOR_LATER && !notice && put_aside(place, block_of(reading), message))
        return 0;
    if (place->hand.question != NULL && result >= 0) leave_unanswered(place);
    bool later = result == JANUS_ACTOR_LATER && notice;
    if (result == JANUS_ACTOR_GO_ON || later) return 0;
    *out_over = true;
    if (result < 0) {
        bool obeyed = result == JANUS_CANCELLED && is_cancelled(task);
        return finish(place, task, obeyed ? JANUS_END_KIND_CANCELLED : JANUS_END_KIND_FAILED,
                      result);
    }
    if (result == JANUS_ACTOR_STOP) return finish(place, task, JANUS_END_KIND_NORMAL, 0);
    /* A number that means nothing, or memory for putting aside was refused. */
    if (result == JANUS_ACTOR_LATER) result = JANUS_NO_MEMORY;
    return finish(place, task, JANUS_END_KIND_FAILED, result);
}

/* Calls the handler. True: all is done. False: `after` has to look at *out_result. */
static inline bool handle(struct jrt_actor_place *place, struct jrt_task *task,
                          const janus_behaviour *behaviour, struct reading *reading,
                          int64_t *out_result)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare != NULL) {
        rare->tag = reading->letter.tag;
        if (jrt_unlikely(place->spec->options.message_budget != NULL)) set_apart(place, task);
    }
    *out_result = behaviour->handle(place->self, &reading->letter);
    rare = place->rare;
    bool apart = rare != NULL && rare->is_apart;
    return jrt_likely(*out_result == JANUS_ACTOR_GO_ON && is_tidy(task) && !apart &&
                      reading->notice == NULL && place->hand.question == NULL);
}

/* Handles letters until no letter is left. *out_over: the incarnation has ended. */
static int64_t work(struct jrt_actor_place *place, struct jrt_task *task, bool *out_over)
{
    const janus_behaviour *behaviour = jrt_place_behaviour(place);
    /* At most JRT_ACTOR_MESSAGE_MAX. */
    void          *message = __builtin_alloca_with_align(behaviour->message_bytes + 16, 128);
    struct reading reading;
    struct window  window = {NULL, 0};
    blank(&reading);
    *out_over = true;
    for (;;) {
        bool ends = is_cancelled(task);
        if (jrt_unlikely(ends || !take_from(&window, place, &reading, message))) {
            jrt_place_lock(place);
            place->resting = false; /* a cancel may have woken it, [task-rest] */
            enum next next = ends ? NEXT_END : take_next(place, &reading, message, &window);
            jrt_place_unlock(place);
            if (jrt_unlikely(next == NEXT_END)) return end_normally(place, task);
            if (next == NEXT_REST) break;
            if (jrt_unlikely(next == NEXT_DESCRIBE)) {
                describe(place, task);
                if (!tidy_up(task)) return 0;
                continue;
            }
        }
        bool carries = reading.letter.message != NULL && reading.head.question != NULL;
        if (jrt_unlikely(carries)) place->hand = reading.head; /* it may end there */
        pay(task);
        if (jrt_unlikely(carries)) {
            place->hand = (struct jrt_letter_head){.block = NULL};
            if (!accept(place, &reading)) continue;
        }
        int64_t result;
        if (jrt_likely(handle(place, task, behaviour, &reading, &result))) continue;
        result = after(place, task, &reading, message, result, out_over);
        if (*out_over) return result;
        *out_over = true;
    }
    *out_over = false;
    return 0;
}

static int64_t actor_main(void *argument)
{
    struct jrt_actor_place *place = argument;
    struct jrt_task        *task = jrt_task_current();
    bool                    over = false;
    if (jrt_unlikely(place->phase == JRT_PHASE_INIT)) { /* it never rested */
        int64_t result = is_cancelled(task) ? JANUS_CANCELLED : begin(place);
        if (!tidy_up(task)) return 0;
        bool ready = result == JANUS_ACTOR_GO_ON || result == JANUS_ACTOR_STOP;
        if (!jrt_place_started(place, result)) {
            /* If only the name was taken, the state is there: terminate runs. */
            if (ready) return finish(place, task, JANUS_END_KIND_FAILED, place->end.error);
            return result < 0 ? result : 0;
        }
        if (result == JANUS_ACTOR_STOP) return finish(place, task, JANUS_END_KIND_NORMAL, 0);
    }
    int64_t result = work(place, task, &over);
    return over ? result : JRT_REST;
}

/* A plain task, or a supervisor, that is supervised. */
static int64_t child_main(struct jrt_actor_place *place)
{
    const janus_child *child = &place->spec->child;
    jrt_place_lock(place);
    place->resting = false;
    place->phase = JRT_PHASE_WORK;
    jrt_place_unlock(place);
    if (child->supervisor != NULL) return jrt_supervisor_main(place);
    if (!jrt_place_started(place, 0)) return 0;
    return child->task(child->argument);
}

static int64_t resident_main(void *argument)
{
    struct jrt_actor_place *place = argument;
    return jrt_place_behaviour(place) != NULL ? actor_main(place) : child_main(place);
}

bool jrt_place_has_letters(const struct jrt_actor_place *place)
{
    const struct jrt_actor_rare *rare = place->rare;
    if (place->stops != 0) return true;
    if (rare != NULL && rare->describes != NULL) return true;
    if (place->suspended) return false;
    return jrt_mail_count(place) != 0 || place->notices != NULL ||
           (rare != NULL && rare->continues);
}

static bool rests(struct jrt_resident *resident, struct jrt_worker *worker, struct jrt_task *task)
{
    struct jrt_actor_place *place = (struct jrt_actor_place *)resident;
    jrt_place_lock(place);
    bool rest = !jrt_place_has_letters(place);
    if (rest) {
        jrt_mail_rest(place);
        if (place->rare != NULL) jrt_place_idle(place, true);
        place->resting = true;
        if (!jrt_rest_now(worker, task)) place->resting = rest = false;
    }
    jrt_place_unlock(place);
    return rest;
}

static void begins(struct jrt_resident *resident, struct jrt_task *task)
{
    struct jrt_actor_place *place = (struct jrt_actor_place *)resident;
    jrt_place_lock(place);
    place->task = task;
    jrt_place_unlock(place);
}

const struct jrt_resident_rules jrt_actor_rules = {.entry = resident_main,
                                                   .begins = begins,
                                                   .rests = rests,
                                                   .ending = jrt_place_ending,
                                                   .ended = jrt_place_ended};
