/* SPDX-License-Identifier: MIT */
/*
 * Circles of actors that would wait for each other.
 *
 * [actor-circle]  An actor whose handler waits for another's reply, or for room in its mailbox,
 *   says so in one word. It has the place that the actor waits for, and a version that changes with
 *   each wait. An actor that begins to wait writes the word, passes a fence, and follows the words
 *   from its target. If it comes to itself, or to an actor that one of its own tasks works for,
 *   there is a circle. Of two that close a circle at the same time, the second to write sees the
 *   first. The walk is repeated. If all versions are the same, all these waits existed between the
 *   two walks. Then the circle is real, because none of them can end before another. A wait that
 *   was answered, or got room, can. So the task that ends a wait takes the word back before the
 *   actor goes on, and there are no false alarms. A sender writes its word when it queues up, under
 *   the lock of the mailbox: before that there may be room. A call writes it before it is sent,
 *   because the answer has to wait for the handler in any case. The second walk is under a lock,
 *   and so is the step back of an actor that is refused. So of several that close one circle only
 *   one is refused.
 */
#include "actor/place.h"

#include "means/trouble.h"
#include "work/turn.h"

#include <stdio.h>

enum {
    CIRCLE_STEPS = 4096, /* a longer way is no circle that is found */
    CIRCLE_KEPT = 64,    /* steps that are compared */
    CREW = 8,            /* actors around a task; usually one or none */
    STEPS_OF_A_TOLL = 4,
};

static uint64_t waits_of(const struct jrt_actor_place *place)
{
    return jrt_load_seq_cst(&place->waits); /* seq_cst: [actor-circle]. */
}

/* The actors that a task is, or works for: owners of nurseries around it. */
struct crew {
    const struct jrt_actor_place *of[CREW];
    uint32_t                      count;
    const struct jrt_task        *rest; /* further up; NULL: no task is */
};

static void muster(const struct jrt_task *task, struct crew *crew)
{
    uint32_t steps = 0;
    crew->count = 0;
    for (; task != NULL && crew->count < CREW; task = task->nursery->owner, steps++) {
        const struct jrt_actor_place *place = jrt_place_of(task);
        if (place != NULL) crew->of[crew->count++] = place;
    }
    crew->rest = task;
    jrt_turn_toll(jrt_worker_self(), steps / STEPS_OF_A_TOLL);
}

static bool works_for(const struct crew *crew, const struct jrt_actor_place *place)
{
    for (uint32_t i = 0; i < crew->count; i++) {
        if (crew->of[i] == place) return true;
    }
    for (const struct jrt_task *at = crew->rest; at != NULL; at = at->nursery->owner) {
        if (jrt_place_of(at) == place) return true;
    }
    return false;
}

/* Follows the waits from `target`. The number of steps to an actor that the task works for; 0: the
 * waits lead to no such actor. */
static uint32_t follow(const struct crew *crew, const struct jrt_actor_place *target,
                       uint64_t seen[CIRCLE_KEPT])
{
    const struct jrt_actor_place *at = target;
    uint32_t                      steps = 1;
    bool                          found = false;
    if (crew->count == 0) return 0; /* nobody waits for a task that is no actor's */
    for (; steps < CIRCLE_STEPS; steps++) {
        found = works_for(crew, at);
        if (found) break;
        uint64_t waits = waits_of(at);
        if (steps - 1 < CIRCLE_KEPT) seen[steps - 1] = waits;
        if (waits >> 32 == 0) break;
        at = jrt_place_at((uint32_t)(waits >> 32) - 1);
    }
    jrt_turn_toll(jrt_worker_self(), steps / STEPS_OF_A_TOLL);
    return found ? steps : 0;
}

static pthread_mutex_t circles_lock = PTHREAD_MUTEX_INITIALIZER;

static void tell_circle(const struct crew *crew, const struct jrt_actor_place *target);

void jrt_circle_note(const struct jrt_actor_place *target)
{
    struct jrt_actor_place *self = jrt_place_current();
    if (self == NULL) return;
    uint64_t before = waits_of(self);
    uint32_t version = (uint32_t)before + 1;
    /* It waits for one actor at a time: a call may also wait for room there. */
    jrt_debug_invariant("actor-circle",
                        before >> 32 == 0 || before >> 32 == jrt_place_index(target) + UINT64_C(1));
    /* seq_cst: [actor-circle]. */
    jrt_store_seq_cst(&self->waits, (uint64_t)(jrt_place_index(target) + 1) << 32 | version);
}

bool jrt_circle_look(const struct jrt_actor_place *target)
{
    struct jrt_task *task = jrt_task_current();
    uint64_t         first[CIRCLE_KEPT], again[CIRCLE_KEPT];
    struct crew      crew;
    muster(task, &crew);
    if (jrt_likely(follow(&crew, target, first) == 0)) return true;
    /* One at a time: of those that close a circle, only one is refused. */
    jrt_lock(&circles_lock);
    uint32_t steps = follow(&crew, target, first);
    bool     circle = steps != 0 && follow(&crew, target, again) == steps;
    uint32_t compared = steps < CIRCLE_KEPT ? steps : CIRCLE_KEPT;
    if (circle && steps > 1) circle = memcmp(first, again, (compared - 1) * sizeof *first) == 0;
    if (circle) {
        tell_circle(&crew, target);
        jrt_circle_leave();
    }
    jrt_unlock(&circles_lock);
    if (circle) jrt_turn_toll(jrt_worker_self(), JRT_TOLL_CIRCLE);
    return !circle;
}

bool jrt_circle_enter(const struct jrt_actor_place *target)
{
    jrt_circle_note(target);
    return jrt_circle_look(target);
}

void jrt_circle_leave(void)
{
    struct jrt_actor_place *self = jrt_place_current();
    if (self == NULL) return;
    uint32_t version = (uint32_t)waits_of(self) + 1;
    jrt_store_seq_cst(&self->waits, (uint64_t)version); /* seq_cst: [actor-circle]. */
}

struct jrt_circle_wait jrt_circle_now(void)
{
    struct jrt_actor_place *self = jrt_place_current();
    return (struct jrt_circle_wait){self, self != NULL ? waits_of(self) : 0};
}

void jrt_circle_over(const struct jrt_circle_wait *wait)
{
    uint64_t word = wait->word;
    if (wait->self == NULL) return;
    /* seq_cst: [actor-circle]. If it fails, the actor has noted another wait. */
    (void)jrt_cas_seq_cst(&wait->self->waits, &word, (uint64_t)((uint32_t)word + 1));
}

/* The label of a place that may be about to go. */
static void label(const struct jrt_actor_place *given, char *out, size_t size)
{
    struct jrt_actor_place *place = (struct jrt_actor_place *)(uintptr_t)given;
    jrt_place_lock(place);
    if (place->spec != NULL) {
        jrt_place_label(place, out, size);
    } else {
        (void)snprintf(out, size, "?");
    }
    jrt_place_unlock(place);
}

/* Names the actors of the circle, for janus_explain. */
static void tell_circle(const struct crew *crew, const struct jrt_actor_place *target)
{
    char                          text[160];
    size_t                        used = 0;
    const struct jrt_actor_place *at = target;
    for (uint32_t steps = 0; steps < CIRCLE_KEPT && at != NULL; steps++) {
        char name[JANUS_NAME_BYTES + 24];
        label(at, name, sizeof name);
        int more =
            snprintf(text + used, sizeof text - used, "%s%s", steps == 0 ? "" : " -> ", name);
        if (more < 0 || used + (size_t)more >= sizeof text) break;
        used += (size_t)more;
        if (works_for(crew, at)) break;
        uint64_t waits = waits_of(at);
        at = waits >> 32 != 0 ? jrt_place_at((uint32_t)(waits >> 32) - 1) : NULL;
    }
    char clause[240];
    (void)snprintf(clause, sizeof clause, "these actors would wait for each other: %s", text);
    (void)jrt_trouble_said(JANUS_DEADLOCK, clause);
}
