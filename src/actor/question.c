/* SPDX-License-Identifier: MIT */
/*
 * Questions: which task or thread waits for an answer, and where the answer goes.
 *
 * [question-key]  A question is a record of a table that lives as long as the process. The letter,
 *   a kept right to answer and the actor that owes the answer name it by its address and a key. The
 *   key changes when the question ends, whatever ends it: an answer, the deadline, a cancel, the
 *   end of either side. So exactly one of them ends it, under the question's lock, and all others
 *   find another key. Keys never come again, and no program sees them. A kept right to answer has a
 *   keyed function of the key instead, so that a handler cannot answer for others.
 *   An actor looks at the deadline of a letter's question without the lock. If the question ends
 *   after the key was found right, and another caller takes it, the actor reads the other's
 *   deadline. That decides nothing, because an answer to the first finds another key.
 *
 * [question-share]  All pools share the table. While half of it is free nobody counts, so a call
 *   pays nothing for that. Beyond, each question counts for the pool of its task, which has at most
 *   a quarter, [common-share]. So one pool never has more than three quarters, and others can call.
 *
 * A caller waits in its own frame. The answer is copied there under the lock, before the caller is
 * woken. A caller whose wait ended otherwise leaves only after it has taken the lock. The answer to
 * an ask is a notice that was made, and paid for, with the ask. So an answer needs no memory.
 */
#include "actor/question.h"

#include "base/siphash.h"
#include "cancel/cancel.h"
#include "cancel/wait.h"
#include "means/call.h"
#include "means/ledger.h"
#include "means/terms.h"
#include "means/trouble.h"
#include "nursery/nursery.h"
#include "plat/memory.h"
#include "work/turn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { QUESTIONS = 1 << 20, QUESTIONS_LEAST = 1 << 10, KEYS_AT_ONCE = 256 };

/* One mapping, as large as it can become, and committed as it is used. */
static struct {
    pthread_mutex_t                lock; /* guards the rest */
    struct jrt_question           *free;
    _Atomic(struct jrt_question *) base;
    _Atomic(uint32_t)              places; /* of the table; 0: not made yet */
    uint32_t                       used;
    uint32_t                       out; /* of the used ones: not on the free list */
    bool                           seeded;
    struct jrt_sip_key             secret; /* written once, before any use */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Atomic(uint64_t) serials;

static bool make_table(void)
{
    for (uint32_t places = QUESTIONS; places >= QUESTIONS_LEAST; places /= 2) {
        void *base = jrt_map_reserve_for_ever((size_t)places * sizeof(struct jrt_question));
        if (base == NULL) continue;
        jrt_store_relaxed(&pool.base, base); /* relaxed: the number follows. */
        /* release: a thread that reads the number reads the base. */
        jrt_store_release(&pool.places, places);
        return true;
    }
    return false;
}

static struct jrt_question *take_locked(void)
{
    struct jrt_question *question = pool.free;
    if (!pool.seeded && !jrt_random_fill(&pool.secret, sizeof pool.secret)) return NULL;
    pool.seeded = true;
    if (question != NULL) {
        pool.free = question->next;
        pool.out++;
        return question;
    }
    /* relaxed, all: under the lock. */
    if (jrt_load_relaxed(&pool.places) == 0 && !make_table()) return NULL;
    if (pool.used == jrt_load_relaxed(&pool.places)) return NULL; /* relaxed: as above. */
    pool.out++;
    return jrt_load_relaxed(&pool.base) + pool.used++; /* relaxed: as above. */
}

static void put_back(struct jrt_question *question)
{
    jrt_lock(&pool.lock);
    jrt_debug_invariant("question-share", pool.out > 0);
    pool.out--;
    question->next = pool.free;
    pool.free = question;
    jrt_unlock(&pool.lock);
}

/* Takes a question out of the table, and counts it where questions are scarce, [question-share].
 * NULL: no memory, or the pool has its share. */
static struct jrt_question *take_shared(void)
{
    struct jrt_terms *full;
    jrt_lock(&pool.lock);
    struct jrt_question *question = take_locked();
    uint32_t             places = jrt_load_relaxed(&pool.places); /* relaxed: under the lock. */
    bool                 scarce = pool.out > places / 2;
    jrt_unlock(&pool.lock);
    const struct jrt_task *task = jrt_task_current();
    if (jrt_likely(question == NULL || !scarce || task == NULL)) return question;
    struct jrt_terms *terms = jrt_terms_here(task);
    if (!jrt_terms_in_pool(terms)) return question;
    if (jrt_common_take(terms, JRT_COMMON_QUESTIONS, places, &full)) {
        jrt_fetch_add_relaxed(&terms->refs, 1u); /* relaxed: it is alive. */
        question->terms = terms;
        return question;
    }
    put_back(question);
    (void)jrt_trouble_full(JANUS_NO_MEMORY, JRT_TABLE_QUESTIONS, full, places / 4, places / 4);
    return NULL;
}

/* NULL: no question has this number. */
struct jrt_question *jrt_question_find(uint64_t number)
{
    uint32_t places = jrt_load_acquire(&pool.places); /* acquire: the base. */
    if (number == 0 || number > places) return NULL;
    return jrt_load_relaxed(&pool.base) + (number - 1); /* relaxed: after the number. */
}

uint64_t jrt_question_token(uint64_t key)
{
    uint64_t token = jrt_siphash(&pool.secret, key, 0);
    return token != 0 ? token : 1;
}

uint64_t jrt_question_number(const struct jrt_question *question)
{
    return (uint64_t)(question - jrt_load_relaxed(&pool.base)) + 1; /* relaxed: it exists. */
}

/* A number that no question had. A worker takes many at once. */
static uint64_t new_key(struct jrt_worker *worker)
{
    /* relaxed, both: numbers. */
    if (worker == NULL) return jrt_fetch_add_relaxed(&serials, (uint64_t)1) + 1;
    if (jrt_unlikely(worker->keys == worker->keys_end)) {
        worker->keys = jrt_fetch_add_relaxed(&serials, (uint64_t)KEYS_AT_ONCE) + 1; /* relaxed */
        worker->keys_end = worker->keys + KEYS_AT_ONCE;
    }
    return worker->keys++;
}

struct jrt_question *jrt_question_take(uint64_t *out_key)
{
    struct jrt_worker   *worker = jrt_worker_self();
    struct jrt_question *question = worker != NULL ? worker->question : NULL;
    if (jrt_fails(JRT_FAULT_MEMORY)) return NULL;
    if (jrt_likely(question != NULL)) {
        worker->question = NULL;
    } else {
        question = take_shared();
    }
    if (question == NULL) return NULL;
    uint64_t key = new_key(worker);
    /* It is free: a thread that still has an old key takes the lock and finds another key. */
    jrt_debug_invariant("question-key", jrt_load_relaxed(&question->key) == 0); /* relaxed: free */
    question->task = NULL;
    question->reply = NULL;
    question->reply_bytes = question->answer_bytes = 0;
    jrt_store_relaxed(&question->deadline_ns, JRT_NEVER); /* relaxed: [question-key]. */
    question->notice = NULL;
    question->group = NULL;
    question->circle.self = NULL;
    question->status = JANUS_WOULD_WAIT;
    question->outside = false;
    jrt_store_relaxed(&question->done, 0u); /* relaxed: nobody knows it yet. */
    jrt_store_release(&question->key, key); /* release: the rest, for jrt_question_is_late. */
    *out_key = key;
    return question;
}

void jrt_question_give(struct jrt_question *question)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_unlikely(question->terms != NULL)) {
        jrt_common_give(question->terms, JRT_COMMON_QUESTIONS);
        jrt_terms_put(question->terms);
        question->terms = NULL;
    }
    if (worker != NULL && worker->question == NULL) {
        worker->question = question; /* until jrt_question_forget */
        return;
    }
    put_back(question);
}

void jrt_question_forget(struct jrt_worker *worker)
{
    if (worker->question == NULL) return;
    put_back(worker->question);
    worker->question = NULL;
}

/* Ends it, if the key is right, [question-key]. Under the lock. */
static bool close_locked(struct jrt_question *question, uint64_t key)
{
    if (jrt_load_relaxed(&question->key) != key || key == 0) return false; /* relaxed: the lock. */
    jrt_store_relaxed(&question->key, (uint64_t)0);                        /* relaxed: as above. */
    return true;
}

bool jrt_question_lives(const struct jrt_question *question, uint64_t key)
{
    struct jrt_question *own = (struct jrt_question *)(uintptr_t)question;
    if (question == NULL) return false;
    jrt_spin_lock(&own->lock);
    bool lives = jrt_load_relaxed(&own->key) == key && key != 0; /* relaxed: the lock. */
    jrt_spin_unlock(&own->lock);
    return lives;
}

/* Gives the answer to an ask to its actor. The question is closed. */
static void send_notice(struct jrt_question *question, janus_status status, const void *reply,
                        size_t reply_bytes)
{
    struct jrt_notice      *notice = question->notice;
    struct jrt_actor_place *place = jrt_place_at(question->asker);
    uint64_t                serial = question->asker_serial;
    uint32_t                incarnation = question->asker_incarnation;
    jrt_question_give(question);
    notice->status = status;
    if (reply_bytes > notice->reply_bytes) reply_bytes = notice->reply_bytes;
    if (status == JANUS_OK && reply != NULL) memcpy(jrt_notice_reply(notice), reply, reply_bytes);
    jrt_notice_push_to(place, serial, incarnation, notice);
}

static void count_down(struct jrt_group *group)
{
    struct jrt_task *task = NULL;
    jrt_spin_lock(&group->lock);
    if (--group->left == 0) task = group->task;
    /* Under the lock: the group is in the caller's frame. */
    if (task != NULL) (void)jrt_task_wake(task, JANUS_OK);
    jrt_spin_unlock(&group->lock);
}

/* The caller goes on without the question's lock. Its scheduler may be another, and may end. */
static void wake_task(struct jrt_task *task)
{
    struct jrt_worker *worker = jrt_worker_self();
    if (jrt_likely(worker != NULL && jrt_task_serve_fast(worker, task))) return;
    (void)jrt_task_serve_from_anywhere(task); /* [point-guest] */
}

/* Wakes the caller. Under the question's lock. */
static void wake_locked(struct jrt_question *question)
{
    if (question->group != NULL) {
        count_down(question->group);
    } else if (question->task != NULL) {
        wake_task(question->task);
    } else {
        jrt_store_release(&question->done, 1u); /* release: the answer. */
        jrt_futex_wake(&question->done, 1);
    }
}

bool jrt_question_end(struct jrt_question *question, uint64_t key, janus_status status,
                      const void *reply, size_t reply_bytes)
{
    if (question == NULL) return false;
    jrt_spin_lock(&question->lock);
    if (!close_locked(question, key)) {
        jrt_spin_unlock(&question->lock);
        return false;
    }
    if (question->notice != NULL) {
        if (reply_bytes > question->answer_bytes) reply_bytes = question->answer_bytes;
        jrt_spin_unlock(&question->lock);
        send_notice(question, status, reply, reply_bytes);
        return true;
    }
    if (reply_bytes > question->answer_bytes) reply_bytes = question->answer_bytes;
    if (reply_bytes > question->reply_bytes) reply_bytes = question->reply_bytes;
    if (status == JANUS_OK && question->reply != NULL && reply != NULL)
        memcpy(question->reply, reply, reply_bytes);
    question->status = status;
    jrt_circle_over(&question->circle);
    wake_locked(question);
    jrt_spin_unlock(&question->lock);
    return true;
}

void jrt_question_drop(struct jrt_question *question, uint64_t key)
{
    jrt_spin_lock(&question->lock);
    bool mine = close_locked(question, key);
    jrt_spin_unlock(&question->lock);
    if (!mine) return;
    if (question->notice != NULL) jrt_notice_free(question->notice);
    jrt_question_give(question);
}

/* Debts. */

bool jrt_debt_add(struct jrt_debts *debts, struct jrt_question *question, uint64_t key)
{
    uint32_t kept = 0;
    if (debts->count == debts->room && debts->count > 0) { /* forget those that are over */
        for (uint32_t i = 0; i < debts->count; i++) {
            if (jrt_question_lives(debts->list[i].question, debts->list[i].key))
                debts->list[kept++] = debts->list[i];
        }
        debts->count = kept;
    }
    if (debts->count * 2 >= debts->room) {
        uint32_t room = debts->room != 0 ? debts->room * 2 : 4;
        if (room > JRT_ACTOR_KEPT_MAX) room = debts->room;
        struct jrt_debt *list =
            room > debts->room ? jrt_realloc(debts->list, room * sizeof *list) : NULL;
        if (list != NULL) {
            debts->list = list;
            debts->room = room;
        }
    }
    if (debts->count == debts->room) return false;
    debts->list[debts->count++] = (struct jrt_debt){question, key};
    return true;
}

void jrt_asks_forget(struct jrt_actor_rare *rare)
{
    struct jrt_actor_timer **link = &rare->timers;
    while (*link != NULL) {
        struct jrt_actor_timer *timer = *link;
        /* relaxed: a key never comes again. If it ends right now, the next look finds it. */
        if (timer->question == NULL || jrt_load_relaxed(&timer->question->key) == timer->key) {
            link = &timer->next;
            continue;
        }
        *link = timer->next;
        rare->timer_count--;
        jrt_notice_free(&timer->notice);
    }
    jrt_turn_toll(jrt_worker_self(), JRT_TOLL_SWEEP);
}

void jrt_debts_end(struct jrt_debts *debts, janus_status status, bool asks)
{
    for (uint32_t i = 0; i < debts->count; i++) {
        struct jrt_debt *debt = &debts->list[i];
        if (asks) {
            jrt_question_drop(debt->question, debt->key);
        } else {
            (void)jrt_question_end(debt->question, debt->key, status, NULL, 0);
        }
    }
    free(debts->list);
    *debts = (struct jrt_debts){.list = NULL};
}
