/* SPDX-License-Identifier: MIT */
/* Mutexes: one at a time, in order, cancelled, too late, left behind. */
#include "../task/rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { TASKS = 8 };

static int rounds(void) { return (int)rig_few(RIG_SLOW ? 200 : 5000); }

/* One at a time. */

struct shop {
    janus_mutex lock;
    long        count; /* plain: the lock guards it */
    atomic_int  inside;
    bool        yields;
};

static void buy(struct shop *shop)
{
    CHECK_EQ(janus_mutex_lock(&shop->lock), JANUS_OK);
    CHECK_EQ(atomic_fetch_add(&shop->inside, 1), 0);
    shop->count++;
    if (shop->yields && shop->count % 3 == 0) JANUS_IGNORE(janus_yield());
    CHECK_EQ(atomic_fetch_sub(&shop->inside, 1), 1);
    CHECK_EQ(janus_mutex_unlock(&shop->lock), JANUS_OK);
}

static int64_t customer(void *argument)
{
    for (int i = 0; i < rounds(); i++) buy(argument);
    return 0;
}

static int64_t open_shop(void *argument)
{
    struct shop  shop = {.lock = JANUS_MUTEX_INIT("shop"), .yields = argument != NULL};
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, customer, &shop), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(shop.count, (long)TASKS * rounds());
    return 0;
}

TEST("only one task at a time has a mutex") { rig_all(open_shop, NULL, 2); }

TEST("only one task at a time has a mutex, even if it waits while it holds it")
{
    rig_all(open_shop, "yields", 1);
}

static void *thread_customer(void *argument)
{
    for (int i = 0; i < rounds() / 4; i++) buy(argument);
    return NULL;
}

TEST("tasks of two schedulers and plain threads share a mutex")
{
    RIG_REAL("a thread outside takes part");
    struct shop      shop = {.lock = JANUS_MUTEX_INIT("mixed")};
    janus_scheduler *schedulers[2];
    janus_nursery    roots[2];
    pthread_t        threads[2];
    for (int i = 0; i < 2; i++) {
        schedulers[i] = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        CHECK_EQ(janus_nursery_open_in(schedulers[i], &roots[i], NULL), JANUS_OK);
        for (int k = 0; k < 3; k++) CHECK_EQ(janus_spawn(&roots[i], customer, &shop), JANUS_OK);
        CHECK_EQ(pthread_create(&threads[i], NULL, thread_customer, &shop), 0);
    }
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_nursery_end(&roots[i], NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_scheduler_destroy(schedulers[i]), JANUS_OK);
    CHECK_EQ(shop.count, 6L * rounds() + 2L * (rounds() / 4));
}

/* Errors: nothing happened. */

static int64_t refused(void *argument)
{
    (void)argument;
    janus_mutex lock;
    janus_mutex_init(&lock, NULL);
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_STATE);
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_STATE);
    CHECK_EQ(janus_mutex_try_lock(&lock), JANUS_STATE);
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_STATE);
    CHECK_EQ(janus_mutex_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_mutex_try_lock(NULL), JANUS_INVALID);
    CHECK_EQ(janus_mutex_unlock(NULL), JANUS_INVALID);
    return 0;
}

static void *refused_thread(void *argument)
{
    (void)refused(argument);
    return NULL;
}

TEST("locking twice and unlocking a free mutex return STATE and change nothing")
{
    pthread_t thread;
    rig_run(1, refused, NULL, 1);
    CHECK_EQ(pthread_create(&thread, NULL, refused_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

struct pair {
    janus_mutex  lock;
    atomic_int   locked, go, asked;
    janus_status want;
    uint64_t     deadline_ns;
    atomic_int   turn, order[TASKS];
};

static int64_t meddle(void *argument)
{
    struct pair *pair = argument;
    CHECK_EQ(janus_mutex_unlock(&pair->lock), JANUS_STATE);
    CHECK_EQ(janus_mutex_try_lock(&pair->lock), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_mutex_lock_until(&pair->lock, 1), JANUS_DEADLINE);
    return 0;
}

static int64_t meddled_with(void *argument)
{
    (void)argument;
    struct pair pair = {.lock = JANUS_MUTEX_INIT("mine")};
    CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended) { CHECK_EQ(janus_spawn(n, meddle, &pair), JANUS_OK); }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
    return 0;
}

TEST("another task cannot unlock a mutex, and its try returns WOULD_WAIT")
{
    rig_all(meddled_with, NULL, 10);
}

/* In the order of arrival, with one worker. */

struct guest {
    struct pair *pair;
    int          number;
};

static int64_t note_turn(void *argument)
{
    struct guest *guest = argument;
    CHECK_EQ(janus_mutex_lock(&guest->pair->lock), JANUS_OK);
    atomic_store(&guest->pair->order[atomic_fetch_add(&guest->pair->turn, 1)], guest->number);
    CHECK_EQ(janus_mutex_unlock(&guest->pair->lock), JANUS_OK);
    return 0;
}

/* Starts a child and gives way until it waits. A call may end the turn before it does anything, so
 * a child that was about to lock may not wait yet. */
static void spawn_until_blocked(janus_nursery *n, janus_entry *entry, void *argument)
{
    janus_task_id   id;
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_spawn_with(n, entry, argument, NULL, &id), JANUS_OK);
    do {
        CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_task_inspect(n, id, &info), JANUS_OK);
    } while (info.state != JANUS_TASK_STATE_BLOCKED);
}

static int64_t in_order(void *argument)
{
    (void)argument;
    struct pair  pair = {.lock = JANUS_MUTEX_INIT("queue")};
    struct guest guests[TASKS];
    CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) {
            guests[i] = (struct guest){&pair, i};
            spawn_until_blocked(n, note_turn, &guests[i]);
        }
        CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    for (int i = 0; i < TASKS; i++) CHECK_EQ(pair.order[i], i);
    return 0;
}

TEST("waiters get the mutex in the order they came") { rig_run(1, in_order, NULL, 20); }

/* One task grabs it as often as it can, and another wants it once. */

static int64_t want_once(void *argument)
{
    struct pair *pair = argument;
    CHECK_EQ(janus_mutex_lock(&pair->lock), JANUS_OK);
    atomic_store(&pair->go, 1);
    CHECK_EQ(janus_mutex_unlock(&pair->lock), JANUS_OK);
    return 0;
}

static int64_t grab_often(void *argument)
{
    (void)argument;
    struct pair pair = {.lock = JANUS_MUTEX_INIT("grabbed")};
    int         grabs = 0;
    CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK);
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        spawn_until_blocked(n, want_once, &pair);
        while (!atomic_load(&pair.go)) {
            CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
            CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK); /* at once: no other task can */
            CHECK_EQ(janus_yield(), JANUS_OK);
            grabs++;
        }
        CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    /* By the real clock the waiter may owe turns, and then does not run at each yield. */
    CHECK(grabs >= 1 && grabs <= (rig_simulated() ? 3 : 200));
    return 0;
}

TEST("a waiter that was overtaken once gets the mutex next") { rig_run(1, grab_often, NULL, 20); }

/* Locks, deadlines and cancels at random: no task is forgotten in the queue. */

static int64_t lock_in_time(void *argument)
{
    struct shop *shop = argument;
    unsigned     seed = (unsigned)janus_task_current_id();
    for (int i = 0; i < rounds() / 4; i++) {
        uint64_t     span_ns = (unsigned)rand_r(&seed) % 8000;
        janus_status status = janus_mutex_lock_until(&shop->lock, janus_now_ns() + span_ns);
        if (status == JANUS_CANCELLED) return status;
        if (status == JANUS_DEADLINE) continue;
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(atomic_fetch_add(&shop->inside, 1), 0);
        shop->count++;
        if (seed % 3 == 0) JANUS_IGNORE(janus_yield());
        CHECK_EQ(atomic_fetch_sub(&shop->inside, 1), 1);
        CHECK_EQ(janus_mutex_unlock(&shop->lock), JANUS_OK);
    }
    return 0;
}

static int64_t give_up_often(void *argument)
{
    (void)argument;
    struct shop   shop = {.lock = JANUS_MUTEX_INIT("given up"), .yields = true};
    janus_nursery patient, hasty;
    CHECK_EQ(janus_nursery_open(&patient, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&patient, customer, &shop), JANUS_OK);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_nursery_open(&hasty, NULL), JANUS_OK);
        for (int k = 0; k < 4; k++) CHECK_EQ(janus_spawn(&hasty, lock_in_time, &shop), JANUS_OK);
        for (int k = 0; k < 20 * i; k++) CHECK_EQ(janus_yield(), JANUS_OK);
        (void)janus_nursery_cancel(&hasty);
        JANUS_IGNORE(janus_nursery_end(&hasty, NULL));
    }
    CHECK_EQ(janus_nursery_end(&patient, NULL), JANUS_OK); /* all of them got it in the end */
    CHECK(shop.count >= 3L * rounds());
    CHECK_EQ(janus_mutex_try_lock(&shop.lock), JANUS_OK);
    return 0;
}

TEST("a waiter that gives up never leaves the others waiting for ever")
{
    rig_all(give_up_often, NULL, 2);
}

/* Too late, cancelled. */

static int64_t wait_for_it(void *argument)
{
    struct pair *pair = argument;
    atomic_fetch_add(&pair->asked, 1);
    uint64_t     deadline_ns = pair->deadline_ns != 0 ? pair->deadline_ns : UINT64_MAX;
    janus_status status = janus_mutex_lock_until(&pair->lock, deadline_ns);
    CHECK_EQ(status, pair->want);
    CHECK_EQ(janus_mutex_unlock(&pair->lock), JANUS_STATE);
    return status == JANUS_CANCELLED ? JANUS_CANCELLED : 0;
}

static int64_t too_late(void *argument)
{
    (void)argument;
    struct pair pair = {.lock = JANUS_MUTEX_INIT("late"), .want = JANUS_DEADLINE};
    CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK);
    pair.deadline_ns = janus_now_ns() + rig_ms / 4;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(n, wait_for_it, &pair), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK(janus_now_ns() >= pair.deadline_ns);
    CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
    CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK); /* the queue is empty */
    return 0;
}

TEST("a lock that is not free until the deadline returns DEADLINE") { rig_all(too_late, NULL, 10); }

static int64_t cancelled(void *argument)
{
    (void)argument;
    struct pair   pair = {.lock = JANUS_MUTEX_INIT("cancelled"), .want = JANUS_CANCELLED};
    janus_nursery n;
    CHECK_EQ(janus_mutex_lock(&pair.lock), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, wait_for_it, &pair), JANUS_OK);
    while (atomic_load(&pair.asked) < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
    CHECK_EQ(janus_mutex_try_lock(&pair.lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&pair.lock), JANUS_OK);
    return 0;
}

TEST("cancelled tasks leave the queue") { rig_all(cancelled, NULL, 20); }

/* Left behind. */

enum leaving { RETURN, PANIC, UNWIND, OVERFLOW, LEAVINGS };

struct left {
    janus_mutex  lock;
    enum leaving how;
    atomic_int   has, asked;
    atomic_int   told;
};

__attribute__((noinline)) static int64_t sink_deep(volatile char *above)
{
    volatile char here[512];
    if (above == NULL) return 0;
    here[0] = (char)(above[0] + 1);
    return sink_deep(here) + here[0];
}

static int64_t leave_it(void *argument)
{
    struct left  *left = argument;
    volatile char zero[1] = {0};
    CHECK_EQ(janus_mutex_lock(&left->lock), JANUS_OK);
    atomic_store(&left->has, 1);
    while (atomic_load(&left->asked) < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
    if (left->how == PANIC) janus_panic("with a lock");
    if (left->how == UNWIND) JANUS_IGNORE(janus_sleep(3600 * 1000 * rig_ms));
    if (left->how == OVERFLOW) return sink_deep(zero);
    return 0;
}

static int64_t find_it(void *argument)
{
    struct left *left = argument;
    CHECK(rig_wait(&left->has));
    atomic_fetch_add(&left->asked, 1);
    CHECK_EQ(janus_mutex_lock(&left->lock), JANUS_OK);
    if (janus_mutex_is_abandoned(&left->lock)) {
        atomic_fetch_add(&left->told, 1);
        CHECK_EQ(janus_mutex_repaired(&left->lock), JANUS_OK);
    }
    CHECK_EQ(janus_mutex_unlock(&left->lock), JANUS_OK);
    return 0;
}

static int64_t leave_and_find(void *argument)
{
    (void)argument;
    for (enum leaving how = RETURN; how < LEAVINGS; how++) {
        if (how == OVERFLOW && JRT_TSAN) continue;
        struct left   left = {.lock = JANUS_MUTEX_INIT("left"), .how = how};
        janus_nursery n, inner;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_open(&inner, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn_with(&inner, leave_it, &left,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
                 JANUS_OK);
        for (int i = 0; i < TASKS; i++) CHECK_EQ(janus_spawn(&n, find_it, &left), JANUS_OK);
        while (atomic_load(&left.asked) < TASKS) CHECK_EQ(janus_yield(), JANUS_OK);
        if (how == UNWIND) CHECK_EQ(janus_nursery_cancel(&inner), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&inner, NULL));
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(left.told, 1);
    }
    return 0;
}

TEST("a mutex goes to a waiter when its task ends, however it ends, and is abandoned once")
{
    rig_all(leave_and_find, NULL, 5);
}

static int64_t lock_and_go(void *argument)
{
    CHECK_EQ(janus_mutex_lock(argument), JANUS_OK);
    return 0;
}

static void *lock_and_exit(void *argument)
{
    (void)lock_and_go(argument);
    return NULL;
}

static void find_gone(janus_mutex *lock)
{
    CHECK_EQ(janus_mutex_try_lock(lock), JANUS_OK);
    CHECK(janus_mutex_is_abandoned(lock));
    CHECK_EQ(janus_mutex_unlock(lock), JANUS_OK);
    CHECK_EQ(janus_mutex_repaired(lock), JANUS_STATE); /* only a holder may call it */
    CHECK_EQ(janus_mutex_lock(lock), JANUS_OK);
    CHECK(janus_mutex_is_abandoned(lock)); /* no holder has repaired it */
    CHECK_EQ(janus_mutex_repaired(lock), JANUS_OK);
    CHECK(!janus_mutex_is_abandoned(lock));
    CHECK_EQ(janus_mutex_unlock(lock), JANUS_OK);
}

TEST("an abandoned mutex is found later, even after its scheduler closed or its thread ended")
{
    static janus_mutex locks[20];
    for (int i = 0; i < 20; i++) rig_run(1, lock_and_go, &locks[i], 1);
    for (int i = 0; i < 20; i++) find_gone(&locks[i]);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, lock_and_exit, &locks[i]), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    for (int i = 19; i >= 0; i--) find_gone(&locks[i]);
}

static int64_t lock_in_frame(void *argument)
{
    (void)argument;
    janus_mutex lock = JANUS_MUTEX_INIT("in the frame");
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_OK);
    memset(&lock, 0x5a, sizeof lock); /* whatever the memory is used for next */
    return 0;
}

TEST("a mutex that was freed while it was locked is not touched again")
{
    rig_all(lock_in_frame, NULL, 200);
}

/* A defer may unlock. */

static void unlock_later(void *lock) { CHECK_EQ(janus_mutex_unlock(lock), JANUS_OK); }

static int64_t lock_and_defer(void *argument)
{
    CHECK_EQ(janus_mutex_lock(argument), JANUS_OK);
    CHECK_EQ(janus_defer(unlock_later, argument), JANUS_OK);
    janus_panic("with a lock and a defer");
}

static int64_t deferred(void *argument)
{
    (void)argument;
    janus_mutex   lock = JANUS_MUTEX_INIT("deferred");
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, lock_and_defer, &lock), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_mutex_lock(&lock), JANUS_OK);
    CHECK_EQ(janus_mutex_unlock(&lock), JANUS_OK);
    return 0;
}

TEST("a defer unlocks what its task held when it ended") { rig_all(deferred, NULL, 10); }

/* The last user frees it. */

struct shared {
    janus_mutex lock;
    int         users;
};

static int64_t use_and_free(void *argument)
{
    struct shared *shared = argument;
    CHECK_EQ(janus_mutex_lock(&shared->lock), JANUS_OK);
    bool last = --shared->users == 0;
    CHECK_EQ(janus_mutex_unlock(&shared->lock), JANUS_OK);
    if (last) {
        memset(shared, 0x5a, sizeof *shared);
        free(shared);
    }
    return 0;
}

static int64_t share(void *argument)
{
    (void)argument;
    for (int i = 0; i < (int)rig_few(RIG_SLOW ? 50 : 2000); i++) {
        struct shared *shared = calloc(1, sizeof *shared);
        CHECK(shared != NULL);
        shared->users = 4;
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (int k = 0; k < 4; k++) CHECK_EQ(janus_spawn(n, use_and_free, shared), JANUS_OK);
        }
        CHECK_EQ(ended, JANUS_OK);
    }
    return 0;
}

TEST("the last user of a mutex may free it as soon as it has unlocked it")
{
    rig_all(share, NULL, 2);
}

/* Tasks that end with it at random, among others that want it. */

struct graves {
    janus_mutex locks[2];
    atomic_long left, told;
};

static void count_told(struct graves *graves, janus_mutex *lock)
{
    if (!janus_mutex_is_abandoned(lock)) return;
    atomic_fetch_add(&graves->told, 1);
    CHECK_EQ(janus_mutex_repaired(lock), JANUS_OK);
}

static int64_t live_or_die(void *argument)
{
    struct graves *graves = argument;
    unsigned       seed = (unsigned)(janus_task_current_id() * 2654435761u);
    for (int i = 0; i < 4; i++) {
        janus_mutex *lock = &graves->locks[(unsigned)rand_r(&seed) % 2];
        CHECK_EQ(janus_mutex_lock(lock), JANUS_OK);
        count_told(graves, lock);
        if ((unsigned)rand_r(&seed) % 4 == 0) JANUS_IGNORE(janus_yield());
        if ((unsigned)rand_r(&seed) % 4 == 0) {
            atomic_fetch_add(&graves->left, 1);
            if ((unsigned)rand_r(&seed) % 2 == 0) janus_panic("with a lock");
            return 0;
        }
        CHECK_EQ(janus_mutex_unlock(lock), JANUS_OK);
    }
    return 0;
}

static int64_t many_graves(void *argument)
{
    (void)argument;
    struct graves graves = {.locks = {JANUS_MUTEX_INIT("left"), JANUS_MUTEX_INIT("right")}};
    janus_nursery n;
    for (int i = 0; i < (RIG_SLOW ? 20 : 200); i++) {
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
                 JANUS_OK);
        for (int k = 0; k < 20; k++) CHECK_EQ(janus_spawn(&n, live_or_die, &graves), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
    }
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(janus_mutex_try_lock(&graves.locks[i]), JANUS_OK);
        count_told(&graves, &graves.locks[i]);
        CHECK_EQ(janus_mutex_unlock(&graves.locks[i]), JANUS_OK);
    }
    CHECK(graves.left > 0);
    CHECK_EQ(graves.told, graves.left);
    return 0;
}

TEST("every abandoned mutex is reported once, whichever task wants it meanwhile")
{
    rig_all(many_graves, NULL, 2);
}
