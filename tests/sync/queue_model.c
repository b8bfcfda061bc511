/* SPDX-License-Identifier: MIT */
/*
 * The shipped mutexes, semaphores, groups and events, in all orders of all their atomic steps,
 * between threads. A script is what one thread does:
 *
 *     L lock, or give up waiting at any moment    l lock        U unlock, if it has it
 *     ! end, with what it has                     t try to lock
 *     A acquire, or give up at any moment         a acquire     R release one
 *     w wait for the group and free it            d one of its things is done
 *     W wait for the event and free it            s set it
 *     v, x, e: broken ones of w, A, !
 *
 * A wait that can be given up stands for every wait that ends otherwise than by a grant: a task
 * runs the same code then. models/sync_grant.pml, models/task_park.pml and models/cancel.pml cover
 * three parties, how a task leaves its CPU, and which threads may wake it.
 *
 * In every order these hold. One thread at a time has the mutex. Permits add up. No thread waits
 * for ever for what is there: the engine fails an execution in which no thread can step. A mutex is
 * abandoned exactly when a thread ended with it. Freed memory is not touched. Broken variants show
 * that the model finds mistakes.
 *
 * checks: [sync-word], [sync-grant], [sync-last], [mutex-word], [mutex-abandoned], [holder-end],
 *   [semaphore-word], [event-word]
 */
#include "model.h"

#include "fiber/thread.h"
#include "plat/seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void               pause_until_free(void);
static bool               futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline);
static void               futex_wake(_Atomic(uint32_t) *word);
static struct jrt_thread *own_record(void);

#define jrt_thread_yield() pause_until_free()
#define jrt_cpu_relax() pause_until_free()
#define jrt_futex_wait_until(word, expected, deadline) futex_wait(word, expected, deadline)
#define jrt_futex_wake(word, count) futex_wake(word)
#define jrt_clock_now_ns() UINT64_C(0)
#define jrt_thread_self() own_record()
#define pthread_setspecific(key, value) ((void)(value), 0)

#define take holder_take
#define give holder_give
#define begin holder_begin
#define end holder_end
#include "means/holder.c"
#undef take
#undef give
#undef begin
#undef end

#include "sync/queue.c"

#include "sync/mutex.c"

#include "sync/semaphore.c"

#include "sync/event.c"

enum { SOME_TIME = 1000, HOLDERS = 8, OBJECTS = 4 };

static struct {
    const char       *scripts[MODEL_THREADS_MAX];
    janus_mutex       mutex;
    janus_semaphore   semaphore;
    janus_group       group;
    janus_event       event;
    struct jrt_holder holders[HOLDERS];
    struct jrt_thread own[MODEL_THREADS_MAX];
    bool              has[MODEL_THREADS_MAX];
    int               inside, permits, released, left, gone;
    bool              freed, event_freed;
} world;

static struct jrt_thread *own_record(void) { return &world.own[model_self()]; }

/* Replaces a pause: nothing changes before one of the words has changed. A thread that holds none
 * of them may also find all of them free. */

struct sight {
    uint64_t words[OBJECTS + HOLDERS];
};

static struct sight look_around(void)
{
    struct sight sight = {{world.mutex.opaque[0], world.semaphore.opaque[0], world.group.opaque[0],
                           world.event.opaque[0]}};
    for (int i = 0; i < HOLDERS; i++)
        sight.words[OBJECTS + i] = atomic_load(&world.holders[i].lock);
    return sight;
}

static bool is_worth_a_look(void *before)
{
    struct sight now = look_around();
    if (memcmp(&now, before, sizeof now) != 0) return true;
    bool busy = false;
    for (int i = 0; i < OBJECTS; i++) busy |= (now.words[i] & JRT_SYNC_BUSY) != 0;
    for (int i = 0; i < HOLDERS; i++) busy |= now.words[OBJECTS + i] != 0;
    return !busy;
}

static void pause_until_free(void)
{
    struct sight sight = look_around();
    model_wait_until(is_worth_a_look, &sight);
}

static bool futex_wait(_Atomic(uint32_t) *word, uint32_t expected, uint64_t deadline)
{
    if (deadline != JRT_NEVER && model_choose(2) == 1) return false;
    if (deadline != JRT_NEVER) { /* it may also give up later, which is the same as now */
        if (atomic_load(word) == expected) return false;
        return true;
    }
    model_futex_wait(word, expected);
    return true;
}

static void futex_wake(_Atomic(uint32_t) *word) { (void)model_futex_wake(word, 1); }

static void world_open(void *state)
{
    (void)state;
    janus_mutex_init(&world.mutex, NULL);
    janus_semaphore_init(&world.semaphore, (uint32_t)world.permits, JANUS_WAKER_TASKS, NULL);
    janus_group_init(&world.group, JANUS_WAKER_TASKS, NULL);
    janus_event_init(&world.event, JANUS_WAKER_TASKS, NULL);
    world.group.opaque[0] += 2 * JRT_SYNC_ONE;
    memset(world.holders, 0, sizeof world.holders);
    memset(world.own, 0, sizeof world.own);
    memset(world.has, 0, sizeof world.has);
    world.inside = world.released = world.left = world.gone = 0;
    world.freed = world.event_freed = false;
    pool.free = NULL;
    for (int i = HOLDERS - 1; i >= 0; i--) {
        world.holders[i].next = pool.free;
        pool.free = &world.holders[i];
    }
    for (int i = 0; i < MODEL_THREADS_MAX; i++)
        world.own[i].holder = holder_take(); /* of a thread */
}

/* A guarded object, so that the model tells orders of entering and leaving apart. */
static char door;

static void enter_door(janus_status status, int self)
{
    model_point(MODEL_WRITE, &door, false, MODEL_AT("in"));
    MODEL_CHECK(status == JANUS_OK);
    MODEL_CHECK(world.inside == 0 && "one at a time");
    if (janus_mutex_is_abandoned(&world.mutex)) {
        MODEL_CHECK(janus_mutex_repaired(&world.mutex) == JANUS_OK);
        MODEL_CHECK(world.left > 0 && "somebody left it");
        world.left--;
        world.gone++;
    }
    MODEL_CHECK(world.left == 0 && "who comes after one that left it is told");
    world.inside++;
    world.has[self] = true;
}

static void leave_door(int self)
{
    model_point(MODEL_WRITE, &door, false, MODEL_AT("out"));
    world.inside--;
    world.has[self] = false;
}

static void play_mutex(char verb, int self)
{
    janus_status status;
    switch (verb) {
    case 'l':
        status = janus_mutex_lock(&world.mutex);
        enter_door(status, self);
        return;
    case 'L':
        status = janus_mutex_lock_until(&world.mutex, SOME_TIME);
        if (status != JANUS_DEADLINE) enter_door(status, self);
        return;
    case 't':
        status = janus_mutex_try_lock(&world.mutex);
        if (status != JANUS_WOULD_WAIT) enter_door(status, self);
        return;
    case 'U':
        if (!world.has[self]) return;
        leave_door(self);
        MODEL_CHECK(janus_mutex_unlock(&world.mutex) == JANUS_OK);
        return;
    case 'e': /* broken: leaves what others wait for */
        leave_door(self);
        world.left++;
        struct jrt_holder *own = world.own[self].holder;
        jrt_spin_lock(&own->lock);
        own->dead = true;
        jrt_spin_unlock(&own->lock);
        return;
    default:
        if (world.has[self]) {
            leave_door(self);
            world.left++;
        }
        thread_ends(&world.own[self]);
        return;
    }
}

static void note_permit(int change)
{
    model_point(MODEL_WRITE, &door, false, MODEL_AT("permit"));
    world.released += change;
    MODEL_CHECK(world.permits + world.released >= 0 && "no permit is made");
}

static void free_group(void)
{
    model_point(MODEL_WRITE, &world.group.opaque[0], true, MODEL_AT("free"));
    world.group.opaque[0] = 0x5a00; /* a thread that touches it now changes this, or is lost */
    world.freed = true;
}

static void free_event(void)
{
    model_point(MODEL_WRITE, &world.event.opaque[0], true, MODEL_AT("free"));
    world.event.opaque[0] = 0x5a00;
    world.event_freed = true;
}

/* Broken: frees as soon as it is woken. */
static void break_wait(void)
{
    struct jrt_waiter    waiter = {.task = NULL, .holder = jrt_holder_make(NULL)};
    struct jrt_sync_call call = {
        .sync = (void *)&world.group, .kind = &group_kind, .deadline_ns = JRT_NEVER};
    janus_status status;
    if (join(&call, &waiter, &status)) {
        while (jrt_load_acquire(&waiter.woken) == 0) model_futex_wait(&waiter.woken, 0);
    }
    free_group();
}

/* Broken: gives up without checking whether it was granted. */
static void break_acquire(void)
{
    struct jrt_waiter    waiter = {.task = NULL, .holder = jrt_holder_make(NULL)};
    struct jrt_sync_call call = {
        .sync = (void *)&world.semaphore, .kind = &semaphore_kind, .deadline_ns = JRT_NEVER};
    janus_status status;
    if (!join(&call, &waiter, &status)) {
        note_permit(-1);
        return;
    }
    uint64_t word = jrt_sync_enter(call.sync);
    if (atomic_load(&waiter.woken) == 0) take_out(call.sync, &waiter);
    jrt_sync_leave(call.sync, jrt_sync_marked(call.sync, word));
}

static void play(void *state, int self)
{
    (void)state;
    for (const char *verb = world.scripts[self]; *verb != '\0'; verb++) {
        switch (*verb) {
        case 'a':
            MODEL_CHECK(janus_semaphore_acquire(&world.semaphore) == JANUS_OK);
            note_permit(-1);
            break;
        case 'A':
            if (janus_semaphore_acquire_until(&world.semaphore, SOME_TIME) == JANUS_OK) {
                note_permit(-1);
            }
            break;
        case 'R':
            note_permit(1);
            MODEL_CHECK(janus_semaphore_release(&world.semaphore, 1) == JANUS_OK);
            break;
        case 'x': break_acquire(); break;
        case 'v': break_wait(); break;
        case 'd': MODEL_CHECK(janus_group_done(&world.group) == JANUS_OK); break;
        case 's': janus_event_set(&world.event); break;
        case 'W':
            MODEL_CHECK(janus_event_wait(&world.event) == JANUS_OK);
            free_event();
            break;
        case 'w':
            MODEL_CHECK(janus_group_wait(&world.group) == JANUS_OK);
            free_group();
            break;
        default: play_mutex(*verb, self); break;
        }
    }
}

static void check(void *state)
{
    (void)state;
    MODEL_CHECK(world.inside == 0);
    MODEL_CHECK(world.semaphore.opaque[0] ==
                    ((uint64_t)(world.permits + world.released) * JRT_SYNC_ONE | JRT_SYNC_TASKS) &&
                "the permits add up, and nobody is left in the queue");
    MODEL_CHECK(!world.freed || world.group.opaque[0] == 0x5a00);
    MODEL_CHECK(!world.event_freed || world.event.opaque[0] == 0x5a00);
    MODEL_CHECK(world.mutex.opaque[1] == 0 && "nobody is left in the queue");
    if (world.left == 0) {
        MODEL_CHECK(world.mutex.opaque[0] == 0 && "it is free");
    } else {
        MODEL_CHECK(world.left == 1 && world.mutex.opaque[0] != 0);
    }
}

static struct model_scenario scene(const char *first, const char *second)
{
    static char           name[64];
    struct model_scenario scenario = {
        .name = name, .setup = world_open, .bodies = {play, play}, .check = check};
    world.scripts[0] = first;
    world.scripts[1] = second;
    snprintf(name, sizeof name, "%s | %s", first, second);
    return scenario;
}

static void pass(int permits, const char *first, const char *second)
{
    struct model_scenario scenario = scene(first, second);
    world.permits = permits;
    model_pass(&scenario);
}

TEST("one thread at a time has a mutex, and no thread waits for ever")
{
    pass(0, "lU", "lU");
    pass(0, "lU", "tU");
}

TEST("a waiter that gives up leaves the mutex to the other") { pass(0, "lU", "LU"); }

TEST("a mutex whose holder ends goes to a waiter or newcomer, and is abandoned")
{
    pass(0, "l!", "lU");
    pass(0, "l!", "LU");
    pass(0, "l!", "tU");
    pass(0, "l!", "l!");
}

TEST("permits are neither lost nor made")
{
    pass(0, "R", "a");
    pass(0, "R", "A");
    pass(1, "aR", "aR");
    pass(0, "RR", "aA");
    pass(1, "R", "AA");
}

TEST("a waiter for a group or an event may free it at once")
{
    pass(0, "w", "dd");
    pass(0, "W", "s");
}

static void find_failure(const char *word, const char *first, const char *second)
{
    struct model_scenario scenario = scene(first, second);
    world.permits = 0;
    model_find(&scenario, word);
}

TEST("the model finds a waiter that frees too early, gives up blindly, or leaves others behind")
{
    find_failure("0x5a00", "v", "dd");
    find_failure("add up", "R", "x");
    find_failure("nobody can go on", "le", "lU");
}
