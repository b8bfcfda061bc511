/* SPDX-License-Identifier: MIT */
/* Signals: which tasks see them, what is caught, and what is refused. */
#include "../task/caps.h"
#include "wire.h"

#include <janusrt/signal.h>
#include <signal.h>

/* Comes first in a test that sends signals. */
#define SIGNALS()                                                                                  \
    do {                                                                                           \
        if (JRT_TSAN) SKIP("ThreadSanitizer keeps a signal until the next call it knows");         \
    } while (0)

static atomic_int waiting, seen;

static int64_t wait_once(void *argument)
{
    (void)argument;
    atomic_fetch_add(&waiting, 1);
    janus_status status = janus_signal_wait(SIGUSR1, JANUS_IO_NEVER);
    if (status == JANUS_OK) atomic_fetch_add(&seen, 1);
    return status;
}

/* Whether a handler is installed. */
static bool is_caught(int number)
{
    struct sigaction now;
    CHECK_EQ(sigaction(number, NULL, &now), 0);
    return now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN;
}

/* Until `count` tasks are about to wait. */
static void await_waiters(int count)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    while (atomic_load(&waiting) < count && janus_now_ns() < limit) JANUS_IGNORE(janus_yield());
}

static int64_t all_see_it(void *argument)
{
    enum { WAITERS = 5 };
    janus_nursery n;
    (void)argument;
    atomic_store(&waiting, 0);
    atomic_store(&seen, 0);
    /* Caught here, so that a signal that comes before a child waits ends nothing. */
    CHECK_EQ(janus_signal_catch(SIGUSR1, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < WAITERS; i++) CHECK_EQ(janus_spawn(&n, wait_once, NULL), JANUS_OK);
    await_waiters(WAITERS);
    while (atomic_load(&seen) < WAITERS) {
        CHECK_EQ(janus_signal_raise(SIGUSR1), JANUS_OK);
        JANUS_IGNORE(janus_yield());
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_signal_release(SIGUSR1), JANUS_OK);
    return 0;
}

TEST("all tasks that wait for a signal see it")
{
    SIGNALS();
    rig_all(all_see_it, NULL, 5);
    CHECK(!is_caught(SIGUSR1));
}

static int64_t count_them(void *argument)
{
    uint64_t count = 0;
    (void)argument;
    CHECK_EQ(janus_signal_catch(SIGUSR2, &count), JANUS_OK);
    uint64_t first = count;
    for (int i = 0; i < 20; i++) {
        CHECK_EQ(janus_signal_raise(SIGUSR2), JANUS_OK); /* nobody waits now */
        CHECK_EQ(janus_signal_wait_next(SIGUSR2, &count, JANUS_IO_NEVER), JANUS_OK);
    }
    CHECK_EQ(count, first + 20);
    CHECK_EQ(janus_signal_wait_next(SIGUSR2, &count, janus_now_ns()), JANUS_DEADLINE);
    CHECK_EQ(janus_signal_wait_next(SIGUSR2, &count, janus_now_ns() + rig_ms), JANUS_DEADLINE);
    CHECK_EQ(count, first + 20);
    CHECK_EQ(janus_signal_release(SIGUSR2), JANUS_OK);
    return 0;
}

TEST("a signal between two waits is not lost, once it is caught")
{
    SIGNALS();
    rig_all(count_them, NULL, 1);
    if (!rig_simulated()) count_them(NULL);
}

TEST("a caught signal has its old effect again after the last release")
{
    RIG_REAL("the handlers are the process's");
    CHECK(!is_caught(SIGHUP));
    CHECK_EQ(janus_signal_catch(SIGHUP, NULL), JANUS_OK);
    CHECK_EQ(janus_signal_catch(SIGHUP, NULL), JANUS_OK);
    CHECK(is_caught(SIGHUP));
    CHECK_EQ(janus_signal_release(SIGHUP), JANUS_OK);
    CHECK(is_caught(SIGHUP));
    CHECK_EQ(janus_signal_release(SIGHUP), JANUS_OK);
    CHECK(!is_caught(SIGHUP));
    CHECK_EQ(janus_signal_release(SIGHUP), JANUS_STATE);
    CHECK_EQ(janus_signal_wait(SIGHUP, janus_now_ns() + rig_ms), JANUS_DEADLINE);
    CHECK(!is_caught(SIGHUP));
}

static int64_t cancel_waiters(void *argument)
{
    janus_nursery n;
    (void)argument;
    atomic_store(&waiting, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, wait_once, NULL), JANUS_OK);
    await_waiters(3);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancel ends the wait for a signal, which then is caught no more")
{
    rig_all(cancel_waiters, NULL, 10);
    CHECK(!is_caught(SIGUSR1));
}

static int64_t release_anothers(void *argument)
{
    uint64_t      limit = janus_now_ns() + rig_patience;
    janus_nursery n;
    (void)argument;
    atomic_store(&waiting, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_once, NULL), JANUS_OK);
    while (!is_caught(SIGUSR1) && janus_now_ns() < limit) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_signal_release(SIGUSR1), JANUS_STATE);
    CHECK(is_caught(SIGUSR1));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a release does not take the signal from a task that waits for it")
{
    RIG_REAL("the handlers are the process's");
    rig_all(release_anothers, NULL, 5);
}

static int64_t raise_at_once(void *argument)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    (void)argument;
    while (!is_caught(SIGUSR1) && janus_now_ns() < limit) continue; /* the wait has just begun */
    return janus_signal_raise(SIGUSR1);
}

static int64_t see_the_first(void *argument)
{
    janus_status status;
    (void)argument;
    JANUS_NURSERY(n, status)
    {
        CHECK_EQ(janus_spawn(n, raise_at_once, NULL), JANUS_OK);
        CHECK_EQ(janus_signal_wait(SIGUSR1, janus_now_ns() + rig_patience), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

TEST("a signal that comes as soon as it is caught ends the wait")
{
    RIG_REAL("the handlers are the process's");
    SIGNALS();
    rig_run(4, see_the_first, NULL, RIG_SLOW ? 50 : 500);
}

/* A signal and a deadline in one moment. */

struct moment {
    uint64_t   when_ns;
    atomic_int raised, seen;
};

static int64_t wait_until_then(void *argument)
{
    struct moment *self = argument;
    janus_status   status = janus_signal_wait(SIGUSR1, self->when_ns);
    int            raised = atomic_load(&self->raised); /* nobody else has run since */
    CHECK(status == JANUS_OK || (status == JANUS_DEADLINE && raised == 0));
    atomic_fetch_add(&self->seen, status == JANUS_OK);
    return 0;
}

static int64_t raise_then(void *argument)
{
    struct moment *self = argument;
    CHECK_EQ(janus_sleep_until(self->when_ns), JANUS_OK);
    CHECK_EQ(janus_signal_raise(SIGUSR1), JANUS_OK);
    atomic_store(&self->raised, 1);
    return 0;
}

static int64_t meet(void *argument)
{
    struct moment *self = argument;
    janus_status   status;
    self->when_ns = janus_now_ns() + rig_ms;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < 4; i++) {
            CHECK_EQ(janus_spawn(n, i == 2 ? raise_then : wait_until_then, self), JANUS_OK);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

TEST("a signal that comes before the wait returns is not lost to the deadline")
{
    struct moment self = {.raised = 0};
    for (uint64_t seed = 1; seed <= 50; seed++) {
        janus_scheduler *world =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .deterministic_seed = seed));
        atomic_store(&self.raised, 0);
        rig_do(world, meet, &self);
        CHECK_EQ(janus_scheduler_destroy(world), JANUS_OK);
    }
    CHECK(atomic_load(&self.seen) > 0);
}

TEST("signals that no program may catch are refused")
{
    const int never[] = {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL,
                         SIGTRAP, SIGSYS,  0,       -1,     65,     1000};
    uint64_t  count = 0;
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        CHECK_EQ(janus_signal_wait(never[i], JANUS_IO_NEVER), JANUS_INVALID);
        CHECK_EQ(janus_signal_catch(never[i], &count), JANUS_INVALID);
        CHECK_EQ(janus_signal_wait_next(never[i], &count, JANUS_IO_NEVER), JANUS_INVALID);
        CHECK_EQ(janus_signal_release(never[i]), JANUS_INVALID);
        CHECK_EQ(janus_signal_raise(never[i]), JANUS_INVALID);
    }
    CHECK_EQ(janus_signal_wait_next(SIGHUP, NULL, JANUS_IO_NEVER), JANUS_INVALID);
    if (!rig_simulated()) {
        CHECK_EQ(janus_signal_wait_next(SIGHUP, &count, JANUS_IO_NEVER), JANUS_STATE);
    }
}

static int64_t not_allowed(void *argument)
{
    (void)argument;
    CHECK_EQ(janus_signal_wait(SIGUSR1, JANUS_IO_NEVER), JANUS_NO_PROCESS_CAP);
    CHECK_EQ(janus_signal_catch(SIGUSR1, NULL), JANUS_NO_PROCESS_CAP);
    CHECK_EQ(janus_signal_raise(SIGUSR1), JANUS_NO_PROCESS_CAP);
    CHECK_EQ(janus_signal_release(SIGUSR1), JANUS_NO_PROCESS_CAP);
    return 0;
}

TEST("in :sovereign signals need process.signal") { caps_all(not_allowed, NULL); }

/* A server that stops gracefully. */

static int64_t stop_on_signal(void *argument)
{
    janus_status status = janus_signal_wait(SIGTERM, JANUS_IO_NEVER);
    if (status != JANUS_OK) return status;
    return janus_io_close(*(janus_io *)argument);
}

static int64_t stop_gracefully(void *argument)
{
    janus_address at;
    janus_io      listener = wire_listen(&at), io;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_signal_catch(SIGTERM, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, stop_on_signal, &listener), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wire_serve_echo, &listener), JANUS_OK);
    CHECK_EQ(janus_connect(&at, NULL, &io), JANUS_OK);
    wire_put(io, "a", 1);
    CHECK_EQ(wire_get(io), 'a');
    janus_io_info info = JANUS_IO_INFO();
    while (janus_io_inspect(listener, &info) == JANUS_OK) { /* until it is closed */
        CHECK_EQ(janus_signal_raise(SIGTERM), JANUS_OK);
        JANUS_IGNORE(janus_yield());
    }
    wire_put(io, "b", 1); /* what was accepted is still served */
    CHECK_EQ(wire_get(io), 'b');
    CHECK_EQ(janus_io_close(io), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_signal_release(SIGTERM), JANUS_OK);
    return 0;
}

TEST("a server closes its listener on a signal, and serves those it has accepted")
{
    SIGNALS();
    rig_all(stop_gracefully, NULL, 3);
}
