/* SPDX-License-Identifier: MIT */
/* errno goes with the task; the signal mask stays with the thread. */
#include "backends.h"

#include <errno.h>
#include <janusrt/channel.h>
#include <janusrt/sync.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

/* Not inline: a compiler would keep the address of the thread's errno over a wait. */
__attribute__((noinline)) static int errno_now(void)
{
    __asm__ volatile("" ::: "memory");
    return errno;
}

__attribute__((noinline)) static void errno_set(int number)
{
    errno = number;
    __asm__ volatile("" ::: "memory");
}

enum { CROWD = 24, ROUNDS = RIG_SLOW ? 50 : 400, CHECKS = 20000 };

static janus_channel lanes[CROWD / 2][2];

struct one {
    int number;
    int (*wait)(struct one *one, unsigned round);
};

static int64_t keep(void *argument)
{
    struct one *one = argument;
    for (unsigned i = 0; i < rig_few(ROUNDS); i++) {
        errno_set(one->number * 1000 + (int)i);
        int status = one->wait(one, i);
        int found = errno_now();
        CHECK_EQ(status, JANUS_OK);
        CHECK_EQ(found, one->number * 1000 + (int)i);
    }
    return 0;
}

static int64_t keep_all(void *argument)
{
    struct one   ones[CROWD];
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CROWD; i++) {
            ones[i] = (struct one){i + 1, *(int (**)(struct one *, unsigned))argument};
            CHECK_EQ(janus_spawn(n, keep, &ones[i]), JANUS_OK);
        }
    }
    CHECK_EQ(status, JANUS_OK);
    return 0;
}

static void check_kept(int (*wait)(struct one *, unsigned))
{
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), keep_all, &wait, NULL),
                 JANUS_OK);
    }
}

static int wait_by_yield(struct one *one, unsigned round)
{
    (void)one, (void)round;
    return janus_yield();
}

TEST("a task keeps its errno over yields") { check_kept(wait_by_yield); }

static int wait_by_check(struct one *one, unsigned round)
{
    (void)one;
    if (round % 16 != 0) return JANUS_OK;
    for (int i = 0; i < CHECKS; i++) {
        if (janus_check() != JANUS_OK) return JANUS_CANCELLED;
    }
    return JANUS_OK;
}

TEST("a task keeps its errno over the ends of its turns") { check_kept(wait_by_check); }

static int wait_by_sleep(struct one *one, unsigned round)
{
    return round % 8 == 0 ? janus_sleep((uint64_t)one->number * 1000) : JANUS_OK;
}

TEST("a task keeps its errno over sleeps") { check_kept(wait_by_sleep); }

/* Pairs that exchange numbers over channels without a buffer. */
static int wait_by_channel(struct one *one, unsigned round)
{
    int      pair = (one->number - 1) / 2, side = (one->number - 1) % 2;
    unsigned value = round;
    int      status;
    if (side == 0) {
        status = janus_channel_send(lanes[pair][0], &value);
        return status == JANUS_OK ? janus_channel_recv(lanes[pair][1], &value) : status;
    }
    status = janus_channel_recv(lanes[pair][0], &value);
    return status == JANUS_OK ? janus_channel_send(lanes[pair][1], &value) : status;
}

static int64_t keep_in_channels(void *argument)
{
    for (int i = 0; i < CROWD / 2 * 2; i++) {
        CHECK_EQ(janus_channel_create(sizeof(unsigned), 0, NULL, &lanes[i / 2][i % 2]), JANUS_OK);
    }
    int64_t result = keep_all(argument);
    for (int i = 0; i < CROWD / 2 * 2; i++) {
        CHECK_EQ(janus_channel_destroy(lanes[i / 2][i % 2]), JANUS_OK);
    }
    return result;
}

TEST("a task keeps its errno over waits for a channel")
{
    int (*wait)(struct one *, unsigned) = wait_by_channel;
    for (uint32_t workers = 1; workers <= 8; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), keep_in_channels,
                           &wait, NULL),
                 JANUS_OK);
    }
}

static janus_mutex shared;

static int wait_by_mutex(struct one *one, unsigned round)
{
    (void)one, (void)round;
    if (janus_mutex_lock(&shared) != JANUS_OK) return JANUS_STATE;
    janus_status status = janus_yield();
    janus_mutex_unlock(&shared);
    return status;
}

TEST("a task keeps its errno over waits for a mutex")
{
    janus_mutex_init(&shared, NULL);
    check_kept(wait_by_mutex);
}

/* Children of all kinds, which leave another errno behind. */

static int64_t spoil(void *argument)
{
    errno_set(99);
    if (argument != NULL) CHECK_EQ(janus_yield(), JANUS_OK);
    errno_set(98);
    return 0;
}

static int wait_for_children(struct one *one, unsigned round)
{
    janus_status status;
    JANUS_NURSERY(n, status)
    {
        for (unsigned i = 0; i < 1 + round % 3; i++) {
            CHECK_EQ(janus_spawn(n, spoil, round % 2 != 0 ? one : NULL), JANUS_OK);
        }
    }
    return status;
}

TEST("children that run in place, or wait there, do not change their parent's errno")
{
    check_kept(wait_for_children);
}

static int wait_for_result(struct one *one, unsigned round)
{
    janus_nursery        nursery;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, spoil, round % 2 != 0 ? one : NULL), JANUS_OK);
    return janus_nursery_end(&nursery, &result); /* the slow path */
}

TEST("asking for a nursery's result does not change its owner's errno")
{
    check_kept(wait_for_result);
}

static int64_t keep_over_backends(void *argument)
{
    for (int i = 0; i < 100; i++) {
        janus_nursery n;
        BACKEND_OPEN(&n, i % 4 < 2 ? JANUS_BACKEND_BLOCKING : JANUS_BACKEND_THREADED,
                     .name = "one");
        errno_set(i);
        janus_status status = janus_spawn(&n, spoil, i % 2 != 0 ? argument : NULL);
        int          spawned = errno_now();
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        int ended = errno_now();
        CHECK_EQ(status, JANUS_OK);
        if (i % 4 < 2) CHECK_EQ(spawned, i); /* a thread is made by the system, which may fail */
        CHECK_EQ(ended, spawned);
    }
    return 0;
}

TEST("a child that a spawn runs to its end does not change its spawner's errno")
{
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        backend_run(workers, keep_over_backends, &first_caps);
    }
}

static void spoil_in_callback(void *argument)
{
    (void)argument;
    errno_set(97);
}

static int wait_for_callback(struct one *one, unsigned round)
{
    janus_token       *token;
    janus_token_handle handle;
    (void)one;
    if (round % 8 != 0) return JANUS_OK;
    int before = errno_now();
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, spoil_in_callback, NULL, &handle), JANUS_OK);
    errno_set(before);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    int after = errno_now();
    janus_token_release(token);
    errno_set(after);
    return JANUS_OK;
}

TEST("a token's callback does not change the errno of the task that cancels")
{
    check_kept(wait_for_callback);
}

/* Blocking calls. */

static int64_t count_errno(void *argument)
{
    (void)argument;
    errno_set(errno_now() + 1);
    return -1;
}

static int64_t ask_errno(void *argument)
{
    (void)argument;
    for (int i = 0; i < 100; i++) {
        int64_t result;
        errno_set(i * 10);
        CHECK_EQ(janus_blocking(count_errno, NULL, &result), JANUS_OK);
        CHECK_EQ(errno_now(), i * 10 + 1);
    }
    return 0;
}

TEST("a blocking call begins with its task's errno, and the task goes on with the call's")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2), ask_errno, NULL, NULL),
             JANUS_OK);
}

/* The mask. */

static bool is_blocked(int number)
{
    sigset_t mask;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &mask), 0);
    return sigismember(&mask, number) == 1;
}

static void change_mask(int how, int number)
{
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, number);
    CHECK_EQ(pthread_sigmask(how, &mask, NULL), 0);
}

/* The signals that a scheduler's threads do not block. */
static const int open_signals[] = {SIGPROF, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

static bool is_open(int number)
{
    for (size_t i = 0; i < sizeof open_signals / sizeof open_signals[0]; i++) {
        if (open_signals[i] == number) return true;
    }
    return false;
}

static void check_mask(void)
{
    for (int number = 1; number <= SIGSYS; number++) {
        if (number == SIGKILL || number == SIGSTOP) continue;
        CHECK_EQ(is_blocked(number), !is_open(number));
    }
}

static int64_t look_at_masks(void *argument)
{
    (void)argument;
    for (unsigned i = 0; i < 100; i++) {
        check_mask();
        CHECK_EQ(i % 10 == 0 ? janus_sleep(1000) : janus_yield(), JANUS_OK);
    }
    check_mask();
    return 0;
}

static int64_t spread_out(void *argument)
{
    janus_status status;
    (void)argument;
    JANUS_NURSERY(n, status)
    {
        for (int i = 0; i < CROWD; i++) CHECK_EQ(janus_spawn(n, look_at_masks, NULL), JANUS_OK);
    }
    return status;
}

TEST("workers block all signals but faults and SIGPROF, before and after waits")
{
    RIG_REAL("in a world the threads are one, which the program made");
    sigset_t before, after;
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 4), spread_out, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
    for (int number = 1; number <= SIGSYS; number++) {
        CHECK_EQ(sigismember(&before, number), sigismember(&after, number));
    }
}

static int64_t find_usr1(void *argument)
{
    CHECK_EQ(is_blocked(SIGUSR1), *(bool *)argument);
    return 0;
}

static int64_t change_for_others(void *argument)
{
    janus_status status;
    bool         blocked;
    (void)argument;
    for (int i = 0; i < 10; i++) {
        blocked = i % 2 != 0;
        change_mask(blocked ? SIG_BLOCK : SIG_UNBLOCK, SIGUSR1);
        CHECK_EQ(janus_sleep(1000), JANUS_OK);
        CHECK_EQ(is_blocked(SIGUSR1), blocked); /* there is one worker */
        JANUS_NURSERY(n, status) { CHECK_EQ(janus_spawn(n, find_usr1, &blocked), JANUS_OK); }
        CHECK_EQ(status, JANUS_OK);
    }
    return 0;
}

TEST("a signal mask that a task changed stays with its worker for the next task")
{
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), change_for_others, NULL, NULL),
             JANUS_OK);
    change_mask(SIG_UNBLOCK, SIGUSR1); /* in a world it was this thread's */
}

static int64_t find_mask_of_opener(void *argument)
{
    (void)argument;
    CHECK(is_blocked(SIGUSR2) && !is_blocked(SIGUSR1));
    return 0;
}

TEST("a deterministic scheduler runs tasks with the mask of the thread that opened it")
{
    change_mask(SIG_BLOCK, SIGUSR2);
    change_mask(SIG_UNBLOCK, SIGUSR1);
    CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .deterministic_seed = 5),
                       find_mask_of_opener, NULL, NULL),
             JANUS_OK);
    change_mask(SIG_UNBLOCK, SIGUSR2);
}
