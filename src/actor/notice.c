/* SPDX-License-Identifier: MIT */
/*
 * Notices: timers, watches, replies, and the other letters that are no messages.
 *
 * [actor-due]  An alarm rings under the timers' lock. It must not take a place's lock there,
 *   because an actor arms its alarm under its own lock. So an alarm only puts its place on a list,
 *   which that lock guards. The thread that fires timers flushes the list afterwards. A place has
 *   one alarm, for the earliest of its times. When it has rung, the place looks at the clock
 *   itself. So an alarm that rings for nothing does no harm. It may be armed again before the
 *   flush.
 */
#include "actor/notice.h"
#include "actor/supervisor.h"

#include "means/call.h"
#include "means/ledger.h"
#include "work/turn.h"
#include "work/work.h"

#include <stdlib.h>
#include <string.h>

void *jrt_notice_room(size_t bytes, struct jrt_ledger **out_ledger, janus_status *out_status)
{
    *out_status = jrt_ledger_charge(bytes, out_ledger);
    if (*out_status != JANUS_OK) return NULL;
    void *memory = jrt_calloc(1, bytes);
    if (memory != NULL) return memory;
    jrt_ledger_refund(*out_ledger, bytes);
    *out_status = JANUS_NO_MEMORY;
    return NULL;
}

janus_status jrt_notice_make(size_t more, struct jrt_notice **out)
{
    janus_status       status;
    struct jrt_ledger *ledger;
    size_t             bytes = sizeof **out + more;
    *out = jrt_notice_room(bytes, &ledger, &status);
    if (*out == NULL) return status;
    (*out)->ledger = ledger;
    (*out)->bytes = (uint32_t)bytes;
    (*out)->reply_bytes = (uint32_t)more;
    return JANUS_OK;
}

/* The struct that a notice is a part of. */
static void *whole_of(struct jrt_notice *notice)
{
    if (notice->kind == JANUS_LETTER_KIND_DOWN)
        return (char *)notice - offsetof(struct jrt_actor_watch, notice);
    if (notice->kind == JANUS_LETTER_KIND_TIMER)
        return (char *)notice - offsetof(struct jrt_actor_timer, notice);
    return notice;
}

void jrt_notice_free(struct jrt_notice *notice)
{
    struct jrt_ledger *ledger = notice->ledger;
    uint32_t           bytes = notice->bytes;
    if (notice->kind == JANUS_LETTER_KIND_IDLE) return; /* part of the place */
    free(whole_of(notice));
    jrt_ledger_refund(ledger, bytes);
}

static void push_locked(struct jrt_actor_place *place, struct jrt_notice *notice)
{
    notice->next = notice;
    if (place->notices != NULL) {
        notice->next = place->notices->next;
        place->notices->next = notice;
    }
    place->notices = notice;
}

struct jrt_notice *jrt_notice_take(struct jrt_actor_place *place)
{
    struct jrt_notice *oldest = place->notices->next;
    if (oldest == place->notices) {
        place->notices = NULL;
    } else {
        place->notices->next = oldest->next;
    }
    return oldest;
}

void jrt_notice_push_to(struct jrt_actor_place *place, uint64_t serial, uint32_t incarnation,
                        struct jrt_notice *notice)
{
    struct jrt_task *task = NULL;
    jrt_place_lock(place);
    bool here = place->serial == serial && place->incarnation == incarnation &&
                place->task != NULL && place->phase != JRT_PHASE_CLOSE;
    if (here) {
        push_locked(place, notice);
        if (!place->suspended) task = jrt_place_rouse(place);
    }
    jrt_place_unlock_and_queue(place, task);
    if (!here) jrt_notice_free(notice);
}

/* The alarm. */

static struct jrt_actor_place *due; /* places whose alarm rang; due_lock */
static _Atomic(bool)           any_due;
static pthread_mutex_t         due_lock = PTHREAD_MUTEX_INITIALIZER; /* of several schedulers */

static void ring(struct jrt_alarm *alarm)
{
    struct jrt_actor_place *place = alarm->subject;
    struct jrt_actor_rare  *rare = (struct jrt_actor_rare *)alarm;
    jrt_lock(&due_lock);
    if (!rare->due) {
        rare->due = true;
        rare->due_serial = rare->serial;
        rare->due_next = due;
        due = place;
        jrt_store_relaxed(&any_due, true); /* relaxed: this thread flushes. */
    }
    jrt_unlock(&due_lock);
}

static void sooner(uint64_t *next, uint64_t time)
{
    if (time != 0 && time < *next) *next = time;
}

bool jrt_place_arm(struct jrt_actor_place *place)
{
    struct jrt_actor_rare *rare = place->rare;
    uint64_t               next = JRT_NEVER;
    if (rare == NULL) return true;
    if (rare->timers != NULL) sooner(&next, rare->timers->deadline_ns);
    sooner(&next, rare->idle_at);
    sooner(&next, rare->step_at);
    sooner(&next, rare->refill_at);
    /* An actor that waits to be idle keeps the memory of its timer. */
    if (rare->idle_ns != 0) sooner(&next, JRT_NEVER - 2);
    janus_scheduler *scheduler = jrt_supervisor_scheduler(place->supervisor);
    if (next == JRT_NEVER) {
        if (rare->alarm.ring != NULL) jrt_sched_timer_disarm(scheduler, &rare->alarm.timer);
        rare->armed = false;
        return true;
    }
    if (!rare->armed) {
        rare->alarm.ring = ring;
        rare->alarm.subject = place;
        rare->serial = place->serial;
    }
    if (next == JRT_NEVER - 1) next--;
    bool armed = jrt_sched_timer_arm(scheduler, &rare->alarm.timer, next);
    if (armed) rare->armed = true;
    return armed;
}

static struct jrt_actor_place *take_due(uint64_t *out_serial)
{
    jrt_lock(&due_lock);
    struct jrt_actor_place *place = due;
    if (place != NULL) {
        struct jrt_actor_rare *rare = place->rare;
        jrt_debug_invariant("actor-due", rare->due);
        due = rare->due_next;
        rare->due = false;
        *out_serial = rare->due_serial;
    }
    if (due == NULL) jrt_store_relaxed(&any_due, false); /* relaxed: under the lock. */
    jrt_unlock(&due_lock);
    return place;
}

void jrt_place_forget_due(struct jrt_actor_place *place)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare == NULL) return;
    if (rare->alarm.ring != NULL) {
        jrt_sched_timer_disarm(jrt_supervisor_scheduler(place->supervisor), &rare->alarm.timer);
    }
    rare->armed = false;
    jrt_lock(&due_lock);
    for (struct jrt_actor_place **link = &due; *link != NULL && rare->due;
         link = &(*link)->rare->due_next) {
        if (*link != place) continue;
        *link = rare->due_next;
        rare->due = false;
        break;
    }
    jrt_unlock(&due_lock);
}

/* Ends the asks whose deadline has passed, and makes notices of timers. Under the lock. */
static struct jrt_actor_timer *fire_timers(struct jrt_actor_place *place, uint64_t now)
{
    struct jrt_actor_rare  *rare = place->rare;
    struct jrt_actor_timer *asks = NULL;
    while (rare->timers != NULL && rare->timers->deadline_ns <= now) {
        struct jrt_actor_timer *timer = rare->timers;
        rare->timers = timer->next;
        rare->timer_count--;
        if (timer->question != NULL) {
            timer->next = asks;
            asks = timer;
        } else {
            push_locked(place, &timer->notice);
        }
    }
    if (rare->idle_at != 0 && rare->idle_at <= now && place->resting) {
        rare->idle_at = rare->idle_ns = 0;
        rare->idle.kind = JANUS_LETTER_KIND_IDLE;
        rare->idle.tag = rare->idle_tag;
        push_locked(place, &rare->idle);
    }
    return asks;
}

/* What has become due at a place. */
static void look(struct jrt_actor_place *place, uint64_t serial)
{
    uint64_t                now = jrt_clock_now_ns();
    struct jrt_task        *task = NULL;
    struct jrt_actor_timer *asks = NULL;
    bool                    step = false, refill = false;
    jrt_place_lock(place);
    if (place->serial == serial && place->rare != NULL) {
        struct jrt_actor_rare *rare = place->rare;
        rare->armed = false;
        asks = fire_timers(place, now);
        step = rare->step_at != 0 && rare->step_at <= now;
        refill = rare->refill_at != 0 && rare->refill_at <= now;
        if (step) rare->step_at = 0;
        if (refill) rare->refill_at = 0;
        (void)jrt_place_arm(place); /* it was armed: there is memory */
        if (place->notices != NULL && !place->suspended) task = jrt_place_rouse(place);
    }
    jrt_place_unlock_and_queue(place, task);
    while (asks != NULL) {
        struct jrt_actor_timer *next = asks->next;
        (void)jrt_question_end(asks->question, asks->key, JANUS_DEADLINE, NULL, 0);
        jrt_notice_free(&asks->notice);
        asks = next;
    }
    if (refill) jrt_place_refill(place, serial);
    if (step) jrt_place_step(place, serial);
}

void jrt_actors_flush(void)
{
    uint64_t serial;
    if (jrt_likely(!jrt_load_relaxed(&any_due))) return; /* relaxed: this thread set it. */
    for (;;) {
        struct jrt_actor_place *place = take_due(&serial);
        if (place == NULL) return;
        look(place, serial);
    }
}

/* Timers. */

/* Adds a timer by its deadline, and arms the alarm. Under the lock. */
static bool add_timer(struct jrt_actor_place *place, struct jrt_actor_timer *timer)
{
    struct jrt_actor_timer **link = &place->rare->timers;
    while (*link != NULL && (*link)->deadline_ns <= timer->deadline_ns) link = &(*link)->next;
    timer->next = *link;
    *link = timer;
    place->rare->timer_count++;
    if (jrt_place_arm(place)) return true;
    *link = timer->next;
    place->rare->timer_count--;
    return false;
}

static janus_status new_timer(struct jrt_actor_place *self, uint64_t deadline_ns, uint64_t tag,
                              struct jrt_question *question, uint64_t key, uint64_t *out_number)
{
    janus_status            status;
    struct jrt_ledger      *ledger;
    struct jrt_actor_timer *timer = jrt_notice_room(sizeof *timer, &ledger, &status);
    if (timer == NULL) return status;
    timer->deadline_ns = deadline_ns;
    timer->question = question;
    timer->key = key;
    timer->notice.kind = JANUS_LETTER_KIND_TIMER;
    timer->notice.tag = tag;
    timer->notice.ledger = ledger;
    timer->notice.bytes = sizeof *timer;
    jrt_place_lock(self);
    struct jrt_actor_rare *rare = jrt_place_rare(self);
    uint32_t               others = rare != NULL ? rare->timer_count : 0;
    status = rare == NULL ? JANUS_NO_MEMORY : JANUS_OK;
    if (rare != NULL && rare->timer_count >= JRT_ACTOR_TIMERS_MAX) jrt_asks_forget(rare);
    if (rare != NULL && rare->timer_count >= JRT_ACTOR_TIMERS_MAX) status = JANUS_FULL;
    if (status == JANUS_OK) {
        timer->number = *out_number = ++rare->timer_number;
        if (!add_timer(self, timer)) status = JANUS_NO_MEMORY;
    }
    jrt_place_unlock(self);
    jrt_notice_walked(others);
    if (status != JANUS_OK) jrt_notice_free(&timer->notice);
    return status;
}

janus_status jrt_ask_deadline(struct jrt_actor_place *self, struct jrt_question *question,
                              uint64_t key, uint64_t deadline_ns)
{
    uint64_t number;
    return new_timer(self, deadline_ns, 0, question, key, &number);
}

janus_status janus_actor_after(uint64_t delay_ns, uint64_t tag, janus_actor_timer *out)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    uint64_t                number = 0, now = jrt_clock_now_ns();
    if (self == NULL || jrt_place_behaviour(self) == NULL)
        return jrt_actor_outside("janus_actor_after");
    uint64_t     deadline = now + delay_ns < now ? JRT_NEVER - 2 : now + delay_ns;
    janus_status status = new_timer(self, deadline, tag, NULL, 0, &number);
    if (status == JANUS_OK && out != NULL) *out = (janus_actor_timer){{number, self->incarnation}};
    return status;
}

bool jrt_notice_take_out(struct jrt_actor_place *place, const struct jrt_notice *notice)
{
    struct jrt_notice *before = place->notices;
    if (before == NULL) return false;
    while (before->next != notice && before->next != place->notices) before = before->next;
    if (before->next != notice) return false;
    before->next = notice->next;
    if (place->notices == notice) place->notices = before != notice ? before : NULL;
    return true;
}

struct jrt_notice *jrt_notice_find(struct jrt_actor_place *place, janus_letter_kind kind,
                                   uint64_t number, uint32_t *steps)
{
    const struct jrt_notice *newest = place->notices;
    struct jrt_notice       *at = place->notices;
    for (bool more = at != NULL; more; more = at != newest) {
        at = at->next;
        ++*steps;
        if (at->kind != kind) continue;
        const void *whole = whole_of(at);
        uint64_t    has = kind == JANUS_LETTER_KIND_TIMER
                              ? ((const struct jrt_actor_timer *)whole)->number
                              : ((const struct jrt_actor_watch *)whole)->number;
        if (has == number) return at;
    }
    return NULL;
}

janus_status janus_actor_cancel_timer(janus_actor_timer timer)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    struct jrt_notice      *notice = NULL;
    uint32_t                steps = 0;
    if (self == NULL) return JANUS_STATE;
    if (timer.opaque[1] != self->incarnation || timer.opaque[0] == 0) return JANUS_STALE;
    jrt_place_lock(self);
    if (self->rare != NULL) {
        struct jrt_actor_timer **link = &self->rare->timers;
        steps = self->rare->timer_count;
        while (*link != NULL && (*link)->number != timer.opaque[0]) link = &(*link)->next;
        if (*link != NULL && (*link)->question == NULL) {
            notice = &(*link)->notice;
            *link = (*link)->next;
            self->rare->timer_count--;
            (void)jrt_place_arm(self);
        } else {
            notice = jrt_notice_find(self, JANUS_LETTER_KIND_TIMER, timer.opaque[0], &steps);
            if (notice != NULL) (void)jrt_notice_take_out(self, notice);
        }
    }
    jrt_place_unlock(self);
    jrt_notice_walked(steps);
    if (notice == NULL) return JANUS_STALE;
    jrt_notice_free(notice);
    return JANUS_OK;
}

void jrt_place_idle(struct jrt_actor_place *place, bool begins)
{
    struct jrt_actor_rare *rare = place->rare;
    if (rare->idle_ns == 0) return;
    uint64_t now = begins ? jrt_clock_now_ns() : 0;
    rare->idle_at = begins ? now + rare->idle_ns : 0;
    if (begins && rare->idle_at < now) rare->idle_at = JRT_NEVER - 2;
    if (begins) (void)jrt_place_arm(place); /* the alarm exists: memory was reserved */
}

janus_status janus_actor_idle_after(uint64_t delay_ns, uint64_t tag)
{
    jrt_stack_check(); /* [stack-reserve] */
    struct jrt_actor_place *self = jrt_place_current();
    if (self == NULL || jrt_place_behaviour(self) == NULL)
        return jrt_actor_outside("janus_actor_idle_after");
    jrt_place_lock(self);
    struct jrt_actor_rare *rare = jrt_place_rare(self);
    bool                   armed = rare != NULL;
    if (armed) {
        rare->idle_ns = delay_ns;
        rare->idle_tag = tag;
        rare->idle_at = delay_ns != 0 ? JRT_NEVER - 2 : 0; /* reserves the alarm's memory */
        armed = jrt_place_arm(self);
        if (!armed) rare->idle_ns = rare->idle_at = 0;
        (void)jrt_notice_take_out(self, &rare->idle);
    }
    jrt_place_unlock(self);
    return armed ? JANUS_OK : JANUS_NO_MEMORY;
}

/* The end of an incarnation. */

void jrt_notices_end(struct jrt_actor_place *place)
{
    struct jrt_actor_rare *rare = place->rare;
    jrt_watches_end(place);
    jrt_place_lock(place);
    struct jrt_notice      *in_hand = rare != NULL ? rare->in_hand : NULL;
    struct jrt_notice      *notices = place->notices;
    struct jrt_actor_timer *timers = rare != NULL ? rare->timers : NULL;
    place->notices = NULL;
    if (notices != NULL) { /* a list without an end becomes one with an end */
        struct jrt_notice *oldest = notices->next;
        notices->next = NULL;
        notices = oldest;
    }
    if (rare != NULL) {
        rare->timers = NULL;
        rare->in_hand = NULL;
        rare->timer_count = 0;
        rare->idle_ns = rare->idle_at = rare->refill_at = 0;
        rare->continues = false;
        (void)jrt_place_arm(place);
    }
    jrt_place_unlock(place);
    if (in_hand != NULL) jrt_notice_free(in_hand);
    while (notices != NULL) {
        struct jrt_notice *next = notices->next;
        jrt_notice_free(notices);
        notices = next;
    }
    while (timers != NULL) {
        struct jrt_actor_timer *next = timers->next;
        jrt_notice_free(&timers->notice);
        timers = next;
    }
}
