/* SPDX-License-Identifier: MIT */
/* Cancel tokens: alone, in trees, from many threads, and bound to nurseries. */
#include "cancel/token.h"
#include "plat/seam.h"
#include "rig.h"

#include <pthread.h>
#include <string.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { REPEATS = 100, MANY = 1000, DEEP = 1000 };
#else
enum { REPEATS = 2000, MANY = 100000, DEEP = 100000 };
#endif

static janus_token *make(void)
{
    janus_token *token = NULL;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    return token;
}

static janus_token *child_of(janus_token *parent)
{
    janus_token *token = NULL;
    CHECK_EQ(janus_token_create_child(parent, &token), JANUS_OK);
    return token;
}

static void count(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

TEST("a new token is not cancelled, and a cancelled token keeps its first reason")
{
    janus_token *token = make();
    CHECK(!janus_token_is_cancelled(token));
    CHECK_EQ(janus_token_check(token), JANUS_OK);
    CHECK_EQ(janus_token_reason(token), JANUS_CANCEL_REASON_NONE);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_DEADLINE), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_STATE);
    CHECK(janus_token_is_cancelled(token));
    CHECK_EQ(janus_token_check(token), JANUS_CANCELLED);
    CHECK_EQ(janus_token_reason(token), JANUS_CANCEL_REASON_DEADLINE);
    janus_token_release(token);
}

TEST("a NULL token or an invalid reason is refused")
{
    janus_token *token = make();
    CHECK_EQ(janus_token_create(NULL), JANUS_INVALID);
    CHECK_EQ(janus_token_create_child(NULL, &token), JANUS_INVALID);
    CHECK_EQ(janus_token_cancel(NULL, JANUS_CANCEL_REASON_EXPLICIT), JANUS_INVALID);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_NONE), JANUS_INVALID);
    CHECK_EQ(janus_token_cancel(token, (janus_cancel_reason)99), JANUS_INVALID);
    CHECK_EQ(janus_token_on_cancel(token, NULL, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_token_remove(NULL, 1), JANUS_INVALID);
    CHECK_EQ(janus_token_remove(token, 0), JANUS_STALE);
    CHECK_EQ(janus_token_remove(token, UINT64_MAX), JANUS_STALE);
    CHECK_EQ(janus_token_check(NULL), JANUS_OK);
    janus_token_release(token);
    janus_token_release(NULL);
}

TEST("cancelling a parent cancels its children, and cancelling a child does not cancel its parent")
{
    janus_token *parent = make(), *left = child_of(parent), *right = child_of(parent);
    janus_token *below = child_of(left);
    CHECK_EQ(janus_token_cancel(left, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK(janus_token_is_cancelled(below));
    CHECK_EQ(janus_token_reason(below), JANUS_CANCEL_REASON_PARENT);
    CHECK(!janus_token_is_cancelled(parent));
    CHECK(!janus_token_is_cancelled(right));
    CHECK_EQ(janus_token_cancel(parent, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_token_reason(left), JANUS_CANCEL_REASON_EXPLICIT);
    CHECK_EQ(janus_token_reason(right), JANUS_CANCEL_REASON_PARENT);
    janus_token *late = child_of(parent);
    CHECK(janus_token_is_cancelled(late));
    janus_token *all[] = {parent, left, right, below, late};
    for (size_t i = 0; i < 5; i++) janus_token_release(all[i]);
}

TEST("a chain of any length is cancelled and released without recursion")
{
    janus_token *first = make(), *last = janus_token_retain(first);
    for (int i = 0; i < DEEP; i++) {
        janus_token *next = child_of(last);
        janus_token_release(last); /* kept by its child */
        last = next;
    }
    CHECK_EQ(janus_token_cancel(first, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK(janus_token_is_cancelled(last));
    janus_token_release(first);
    janus_token_release(last);
}

static char log_text[16];

static void log_letter(void *argument) { log_text[strlen(log_text)] = *(const char *)argument; }

TEST("callbacks run the last registered first, and a parent's before its child's")
{
    memset(log_text, 0, sizeof log_text);
    janus_token       *parent = make(), *child = child_of(parent);
    janus_token_handle b = 0;
    CHECK_EQ(janus_token_on_cancel(child, log_letter, "d", NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(parent, log_letter, "a", NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(parent, log_letter, "b", &b), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(parent, log_letter, "c", NULL), JANUS_OK);
    CHECK_EQ(janus_token_remove(parent, b), JANUS_OK);
    CHECK_EQ(janus_token_remove(parent, b), JANUS_STALE);
    CHECK_EQ(janus_token_on_cancel(parent, log_letter, "e", NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(parent, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_STR(log_text, "ecad");
    janus_token_release(parent);
    janus_token_release(child);
}

TEST("a callback of a cancelled token runs at once")
{
    atomic_int         calls = 0;
    janus_token_handle handle = 77;
    janus_token       *token = make();
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, count, &calls, &handle), JANUS_OK);
    CHECK_EQ(calls, 1);
    CHECK_EQ(handle, 0);
    janus_token_release(token);
}

TEST("any number of callbacks can be registered, and those of a released token never run")
{
    atomic_int   calls = 0, never = 0;
    janus_token *token = make(), *other = make();
    for (int i = 0; i < MANY; i++) {
        CHECK_EQ(janus_token_on_cancel(token, count, &calls, NULL), JANUS_OK);
        CHECK_EQ(janus_token_on_cancel(other, count, &never, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(other);
    janus_token_release(token);
    CHECK_EQ(calls, MANY);
    CHECK_EQ(never, 0);
}

struct self {
    janus_token       *token;
    janus_token_handle handle;
    int                calls;
};

static void remove_self(void *argument)
{
    struct self *self = argument;
    self->calls++;
    CHECK_EQ(janus_token_remove(self->token, self->handle), JANUS_STALE);
    CHECK_EQ(janus_token_cancel(self->token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_STATE);
    janus_token_release(self->token); /* the last reference but the canceller's own */
}

TEST("a callback may remove itself, cancel again and release its token")
{
    struct self self = {.token = make()};
    CHECK_EQ(janus_token_on_cancel(self.token, remove_self, &self, &self.handle), JANUS_OK);
    CHECK_EQ(janus_token_cancel(self.token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(self.calls, 1);
}

/* Removal against cancellation, on two threads. */

struct race {
    janus_token *token;
    atomic_int   go;
    atomic_int   inside, calls;
};

static void stay_a_while(void *argument)
{
    struct race *race = argument;
    atomic_store(&race->inside, 1);
    for (int i = 0; i < 100; i++) jrt_thread_yield();
    atomic_fetch_add(&race->calls, 1);
    atomic_store(&race->inside, 0);
}

static void *cancel_it(void *argument)
{
    struct race *race = argument;
    while (!atomic_load(&race->go)) jrt_thread_yield();
    (void)janus_token_cancel(race->token, JANUS_CANCEL_REASON_EXPLICIT);
    return NULL;
}

TEST("after removal a callback is not running and never will")
{
    RIG_REAL("a thread outside takes part");
    int ran = 0;
    for (int i = 0; i < REPEATS / 10; i++) {
        struct race        race = {.token = make()};
        janus_token_handle handle;
        pthread_t          thread;
        CHECK_EQ(janus_token_on_cancel(race.token, stay_a_while, &race, &handle), JANUS_OK);
        CHECK_EQ(pthread_create(&thread, NULL, cancel_it, &race), 0);
        atomic_store(&race.go, 1);
        for (int k = 0; k < i % 16; k++) jrt_thread_yield();
        janus_status status = janus_token_remove(race.token, handle);
        CHECK_EQ(atomic_load(&race.inside), 0);
        int calls = atomic_load(&race.calls);
        CHECK_EQ(calls, status == JANUS_OK ? 0 : 1);
        ran += calls;
        CHECK_EQ(pthread_join(thread, NULL), 0);
        CHECK_EQ(atomic_load(&race.calls), calls);
        janus_token_release(race.token);
    }
    (void)ran;
}

static void *make_children(void *argument)
{
    struct race *race = argument;
    while (!atomic_load(&race->go)) jrt_thread_yield();
    for (int i = 0; i < 50; i++) {
        janus_token *child = child_of(race->token);
        CHECK_EQ(janus_token_on_cancel(child, count, &race->calls, NULL), JANUS_OK);
        if (i % 2 == 0) (void)janus_token_cancel(child, JANUS_CANCEL_REASON_EXPLICIT);
        janus_token_release(child);
    }
    return NULL;
}

TEST("threads that cancel, make and release children at the same time do not disturb each other")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < REPEATS / 10; i++) {
        struct race race = {.token = make()};
        pthread_t   threads[4];
        for (size_t k = 0; k < 4; k++) {
            CHECK_EQ(pthread_create(&threads[k], NULL, k < 3 ? make_children : cancel_it, &race),
                     0);
        }
        atomic_store(&race.go, 1);
        for (size_t k = 0; k < 4; k++) CHECK_EQ(pthread_join(threads[k], NULL), 0);
        CHECK(janus_token_is_cancelled(race.token));
        CHECK(race.calls >= 75 && race.calls <= 150);
        janus_token_release(race.token);
    }
}

/* Nurseries. */

static void in_task(janus_entry *entry, void *argument)
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), entry, argument, NULL),
                 JANUS_OK);
    }
}

static int64_t sleep_long(void *argument)
{
    (void)argument;
    return janus_sleep(UINT64_C(3600) * 1000000000);
}

static void check_outside(void *argument)
{
    CHECK(!janus_in_task());
    CHECK_EQ(janus_yield(), JANUS_STATE);
    CHECK(!janus_cancelled());
    count(argument);
}

static int64_t follow(void *argument)
{
    (void)argument;
    for (int i = 0; i < REPEATS / 10; i++) {
        janus_nursery n;
        janus_token  *token, *again;
        atomic_int    calls = 0;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_token(&n, &token), JANUS_OK);
        CHECK_EQ(janus_nursery_token(&n, &again), JANUS_OK);
        CHECK(token == again);
        janus_token_release(again);
        CHECK_EQ(janus_token_on_cancel(token, check_outside, &calls, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, sleep_long, NULL), JANUS_OK);
        CHECK(!janus_token_is_cancelled(token));
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK(janus_token_is_cancelled(token));
        CHECK_EQ(janus_token_reason(token), JANUS_CANCEL_REASON_EXPLICIT);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(calls, 1);
        janus_token_release(token);
    }
    return 0;
}

TEST("a nursery's token is cancelled with it, and outlives it") { in_task(follow, NULL); }

static int64_t end_well(void *argument)
{
    janus_nursery n;
    janus_token  *token;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_token(&n, &token), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, count, argument, NULL), JANUS_OK);
    CHECK_EQ(janus_token_check(token), JANUS_OK);
    janus_token_release(token);
    return 0;
}

TEST("the token of a nursery that ended well is never cancelled")
{
    atomic_int calls = 0;
    in_task(end_well, &calls);
    CHECK_EQ(calls, 0);
}

struct deep {
    int          depth;
    atomic_int  *ready;
    janus_token *token; /* of the innermost nursery */
};

static int64_t go_deep(void *argument)
{
    struct deep  *deep = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    if (--deep->depth > 0) {
        CHECK_EQ(janus_spawn(&n, go_deep, deep), JANUS_OK);
    } else {
        CHECK_EQ(janus_nursery_token(&n, &deep->token), JANUS_OK);
        atomic_store(deep->ready, 1);
        while (!janus_token_is_cancelled(deep->token)) jrt_thread_yield(); /* it never looks up */
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return JANUS_CANCELLED;
}

static int64_t cancel_from_above(void *argument)
{
    (void)argument;
    for (int i = 0; i < REPEATS / 50; i++) {
        janus_nursery n;
        atomic_int    ready = 0;
        struct deep   deep = {8, &ready, NULL};
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, go_deep, &deep), JANUS_OK);
        while (!atomic_load(&ready)) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        CHECK_EQ(janus_token_reason(deep.token), JANUS_CANCEL_REASON_PARENT);
        janus_token_release(deep.token);
    }
    return 0;
}

TEST("cancelling an outer nursery cancels the token of one far below whose task never waits")
{
    for (uint32_t workers = 2; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), cancel_from_above,
                           NULL, NULL),
                 JANUS_OK);
    }
}

static int64_t token_of_cancelled(void *argument)
{
    (void)argument;
    janus_nursery outer;
    janus_token  *token;
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&outer), JANUS_OK);
    CHECK_EQ(janus_nursery_token(&outer, &token), JANUS_OK);
    CHECK_EQ(janus_token_reason(token), JANUS_CANCEL_REASON_EXPLICIT);
    janus_token_release(token);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("the token of a cancelled nursery is cancelled from the start")
{
    in_task(token_of_cancelled, NULL);
}

/* A task that is cancelled cleans up in a shield, with a nursery of its own. */
static int64_t ask_in_shield(void *argument)
{
    (void)argument;
    janus_nursery cancelled, shielded;
    janus_token  *token;
    CHECK_EQ(janus_nursery_open(&cancelled, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&cancelled), JANUS_OK);
    janus_shield_begin();
    CHECK_EQ(janus_nursery_open(&shielded, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_token(&shielded, &token), JANUS_OK);
    CHECK_EQ(janus_token_reason(token), JANUS_CANCEL_REASON_NONE);
    CHECK_EQ(janus_nursery_end(&shielded, NULL), JANUS_OK);
    janus_shield_end();
    janus_token_release(token);
    CHECK_EQ(janus_nursery_end(&cancelled, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a cancel around a shield does not cancel the token of a nursery in the shield")
{
    in_task(ask_in_shield, NULL);
}

static int64_t deadline(void *argument)
{
    janus_nursery n;
    janus_token  *token;
    const int     before = atomic_load((atomic_int *)argument);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = janus_now_ns() + 100000)),
             JANUS_OK);
    CHECK_EQ(janus_nursery_token(&n, &token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, check_outside, argument, NULL), JANUS_OK);
    janus_status spawned = janus_spawn(&n, sleep_long, NULL);
    CHECK(spawned == JANUS_OK || spawned == JANUS_CLOSED); /* the deadline may be past */
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    while (!janus_token_is_cancelled(token)) jrt_thread_yield();
    /* The thread that cancelled it calls back after that. */
    while (atomic_load((atomic_int *)argument) == before) jrt_thread_yield();
    CHECK_EQ(janus_token_reason(token), JANUS_CANCEL_REASON_DEADLINE);
    janus_token_release(token);
    return 0;
}

TEST("a nursery's deadline cancels its token")
{
    atomic_int calls = 0;
    in_task(deadline, &calls);
    CHECK_EQ(calls, 4);
}

static int64_t obey(void *argument)
{
    (void)argument;
    janus_token *token = make();
    for (int i = 0; i < REPEATS / 10; i++) {
        janus_nursery        n;
        janus_nursery_result result;
        janus_token         *child = child_of(token);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel_on(&n, token), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel_on(&n, child), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, sleep_long, NULL), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_token_cancel(child, JANUS_CANCEL_REASON_DEADLINE), JANUS_OK);
        janus_token_release(child);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
        CHECK_EQ(result.reason, JANUS_CANCEL_REASON_DEADLINE);
    }
    janus_nursery n;
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_on(&n, token), JANUS_OK);
    CHECK(janus_nursery_is_cancelled(&n));
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    janus_token_release(token);
    return 0;
}

TEST("a token cancels the nurseries that were bound to it, with its reason")
{
    in_task(obey, NULL);
}

static int64_t come_and_go(void *argument)
{
    struct race *race = argument;
    janus_status status = JANUS_OK;
    while (status == JANUS_OK) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel_on(&n, race->token), JANUS_OK);
        atomic_store(&race->go, 1);
        status = janus_nursery_end(&n, NULL);
    }
    CHECK_EQ(status, JANUS_CANCELLED);
    return 0;
}

TEST("a nursery may end while another thread cancels the token it is bound to")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < REPEATS / 20; i++) {
        struct race race = {.token = make()};
        pthread_t   thread;
        CHECK_EQ(pthread_create(&thread, NULL, cancel_it, &race), 0);
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), come_and_go, &race, NULL),
                 JANUS_OK);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        janus_token_release(race.token);
    }
}

TEST("a thread's token cancels the tasks of its own root nursery")
{
    RIG_REAL("a thread outside takes part");
    janus_scheduler *scheduler;
    janus_nursery    root;
    janus_token     *token = make();
    pthread_t        thread;
    struct race      race = {.token = token, .go = 1};
    CHECK_EQ(janus_scheduler_create_with(NULL, &scheduler), JANUS_OK);
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_on(&root, token), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, sleep_long, NULL), JANUS_OK);
    CHECK_EQ(pthread_create(&thread, NULL, cancel_it, &race), 0);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_CANCELLED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    janus_token_release(token);
}

static void nothing_at_all(void *argument) { (void)argument; }

TEST("the handle of a callback never names another, even after all its generations")
{
    enum { ROUNDS = 20 };
    janus_token       *token;
    janus_token_handle first, handle, last = 0;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    jrt_token_wear(token, UINT32_MAX - 3);
    CHECK_EQ(janus_token_on_cancel(token, nothing_at_all, NULL, &first), JANUS_OK);
    CHECK_EQ(janus_token_remove(token, first), JANUS_OK);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_EQ(janus_token_on_cancel(token, nothing_at_all, NULL, &handle), JANUS_OK);
        CHECK(handle != first && handle != last && handle != 0);
        CHECK_EQ(janus_token_remove(token, first), JANUS_STALE);
        CHECK_EQ(janus_token_remove(token, handle), JANUS_OK);
        last = handle;
    }
    janus_token_release(token);
}
