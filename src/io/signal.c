/* SPDX-License-Identifier: MIT */
/*
 * Waiting for signals.
 *
 * [signal-count]  Signals are counted by number. A waiter remembers a count and waits for a higher
 *   one, so a signal that comes between two waits is not lost. The real counts begin with the
 *   process. A world has its own counts, which only janus_signal_raise changes.
 *
 * [signal-catch]  `caught` counts the waits and catches of a number. The first one adds a watch of
 *   plat/signal.h, which installs a handler. The last one removes it. `kept` counts the catches
 *   alone: a release undoes a catch, and never the catch of a task that waits.
 *
 * Locks: catch_lock around adding and removing watches. wait_lock guards waiters and counts. The
 * watches' thread takes wait_lock under its own list's lock. So no code adds or removes a watch
 * under wait_lock.
 */
#include "plat/signal.h"
#include "io/io.h"
#include "means/call.h"
#include "nursery/nursery.h"

#include <janusrt/signal.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

enum { NUMBERS = JRT_WORLD_SIGNALS };

/* A waiting task or thread, in its frame. */
struct waiter {
    struct waiter          *next;
    const struct jrt_world *world; /* NULL: the real system */
    int                     number;
    struct jrt_ready        ready;
};

static pthread_mutex_t         catch_lock = PTHREAD_MUTEX_INITIALIZER;
static uint32_t                caught[NUMBERS]; /* [signal-catch] */
static uint32_t                kept[NUMBERS];   /* of them, by janus_signal_catch */
static struct jrt_signal_watch watches[NUMBERS];

static pthread_mutex_t wait_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiter  *waiters;
static uint64_t        counts[NUMBERS]; /* [signal-count] */

static uint64_t count_of(const struct jrt_world *world, int number)
{
    return world != NULL ? world->signals[number] : counts[number];
}

/* Under wait_lock, so that no waiter leaves meanwhile. */
static void tell(const struct jrt_world *world, int number)
{
    for (struct waiter *at = waiters; at != NULL; at = at->next) {
        if (at->number == number && at->world == world) jrt_ready_tell(&at->ready, JRT_READY_READ);
    }
}

/* On the thread of the watches. */
static void on_signal(void *subject)
{
    int number = (int)(intptr_t)subject;
    jrt_lock(&wait_lock);
    counts[number]++;
    tell(NULL, number);
    jrt_unlock(&wait_lock);
}

static janus_status may(int number)
{
    char                  text[16];
    struct jrt_handle_ask ask = {.name = text};
    if (!jrt_signal_can_watch(number)) return JANUS_INVALID;
    (void)snprintf(text, sizeof text, "signal %d", number);
    return jrt_handle_check(JANUS_CAP_KIND_PROCESS, JANUS_RIGHT_PROCESS_SIGNAL, &ask);
}

/* Pays for a call that the system hears of, if it is allowed. */
static janus_status may_pay(int number)
{
    janus_status status = may(number);
    return status == JANUS_OK ? jrt_io_end(jrt_io_pay(0)) : status;
}

/* Catching. */

static janus_status catch_it(int number, bool keeps)
{
    janus_status status = JANUS_OK;
    if (jrt_world_now() != NULL) return JANUS_OK;
    jrt_lock(&catch_lock);
    if (caught[number] == 0) {
        watches[number] = (struct jrt_signal_watch){
            .number = number, .call = on_signal, .subject = (void *)(intptr_t)number};
        status = jrt_signal_watch_add(&watches[number]);
    }
    if (status == JANUS_OK) {
        caught[number]++;
        kept[number] += keeps;
    }
    jrt_debug_invariant("signal-catch", status != JANUS_OK || watches[number].number == number);
    jrt_unlock(&catch_lock);
    return status;
}

static janus_status release_it(int number, bool keeps)
{
    if (jrt_world_now() != NULL) return JANUS_OK;
    jrt_lock(&catch_lock);
    bool mine = !keeps || kept[number] > 0;
    if (mine) {
        jrt_debug_invariant("signal-catch", caught[number] >= kept[number] + !keeps);
        kept[number] -= keeps;
        if (--caught[number] == 0) jrt_signal_watch_remove(&watches[number]);
    }
    jrt_unlock(&catch_lock);
    return mine ? JANUS_OK : JANUS_STATE;
}

static bool is_caught(int number)
{
    if (jrt_world_now() != NULL) return true;
    jrt_lock(&catch_lock);
    bool caught_now = caught[number] > 0;
    jrt_unlock(&catch_lock);
    return caught_now;
}

static uint64_t count_now(int number)
{
    jrt_lock(&wait_lock);
    uint64_t count = count_of(jrt_world_now(), number);
    jrt_unlock(&wait_lock);
    return count;
}

janus_status janus_signal_catch(int number, uint64_t *out_count)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = may_pay(number);
    if (status != JANUS_OK) return jrt_io_told(status);
    uint64_t count = count_now(number); /* before it is caught, so that none is lost */
    status = catch_it(number, true);
    if (status == JANUS_OK && out_count != NULL) *out_count = count;
    return jrt_io_told(status);
}

janus_status janus_signal_release(int number)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = may(number);
    return jrt_io_told(status == JANUS_OK ? release_it(number, true) : status);
}

/* Waiting. */

static void leave(struct waiter *waiter)
{
    struct waiter **at = &waiters;
    while (*at != waiter) at = &(*at)->next;
    *at = waiter->next;
}

static janus_status wait_beyond(int number, uint64_t *count, uint64_t deadline_ns)
{
    struct waiter waiter = {.world = jrt_world_now(), .number = number};
    janus_status  status = JANUS_OK;
    jrt_lock(&wait_lock);
    waiter.next = waiters;
    waiters = &waiter;
    uint64_t now = count_of(waiter.world, number);
    while (now == *count && status == JANUS_OK) {
        jrt_unlock(&wait_lock);
        status = jrt_io_pause(&waiter.ready, deadline_ns, JRT_WAIT_SIGNAL);
        jrt_lock(&wait_lock);
        now = count_of(waiter.world, number);
    }
    leave(&waiter);
    jrt_unlock(&wait_lock);
    jrt_debug_invariant("signal-count", now >= *count);
    if (now == *count) return status;
    *count = now; /* it came, perhaps in the moment in which the wait ended otherwise */
    return JANUS_OK;
}

janus_status janus_signal_wait(int number, uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = may_pay(number);
    if (status != JANUS_OK) return jrt_io_told(status);
    uint64_t count = count_now(number); /* before it is caught, so that none is lost */
    status = catch_it(number, false);
    if (status != JANUS_OK) return jrt_io_told(status);
    status = wait_beyond(number, &count, deadline_ns);
    (void)release_it(number, false);
    return jrt_io_told(jrt_io_end(status));
}

janus_status janus_signal_wait_next(int number, uint64_t *count, uint64_t deadline_ns)
{
    jrt_stack_check(); /* [stack-reserve] */
    if (count == NULL) return jrt_io_told(JANUS_INVALID);
    janus_status status = may(number);
    if (status != JANUS_OK) return jrt_io_told(status);
    if (!is_caught(number)) return jrt_io_told(JANUS_STATE);
    status = jrt_io_pay_op();
    if (status == JANUS_OK) status = wait_beyond(number, count, deadline_ns);
    return jrt_io_told(jrt_io_end(status));
}

janus_status janus_signal_raise(int number)
{
    struct jrt_world *world = jrt_world_now();
    jrt_stack_check(); /* [stack-reserve] */
    janus_status status = may_pay(number);
    if (status != JANUS_OK) return jrt_io_told(status);
    if (world == NULL) return jrt_io_told(kill(getpid(), number) == 0 ? JANUS_OK : JANUS_INVALID);
    jrt_lock(&wait_lock);
    world->signals[number]++;
    tell(world, number);
    jrt_unlock(&wait_lock);
    return JANUS_OK;
}
