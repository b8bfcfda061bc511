/* SPDX-License-Identifier: MIT */
/* Waitpoints: a wake that comes early, late, or at the same moment as something else. */
#include "dumped.h"
#include "rig.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { REPEATS = RIG_SLOW ? 5 : 50 };

static const uint64_t run_ns = (RIG_SLOW ? UINT64_C(800) : UINT64_C(500)) * 1000000;
static const uint64_t hour = UINT64_C(3600) * 1000000000;

/* One after another. */

static int64_t early(void *argument)
{
    janus_waitpoint point;
    (void)argument;
    for (int opener = 0; opener < 2; opener++) {
        janus_waitpoint_init(&point, (janus_waker)opener);
        CHECK_EQ(janus_waitpoint_wait_until(&point, "nobody", 0), JANUS_DEADLINE);
        uint64_t soon = janus_now_ns() + rig_ms / 4;
        CHECK_EQ(janus_waitpoint_wait_until(&point, "nobody", soon), JANUS_DEADLINE);
        CHECK(janus_now_ns() >= soon);
        janus_waitpoint_wake(&point);
        janus_waitpoint_wake(&point);
        CHECK_EQ(janus_waitpoint_wait(&point, "nothing"), JANUS_OK);
        CHECK_EQ(janus_waitpoint_wait_until(&point, NULL, 0), JANUS_OK);
    }
    CHECK_EQ(janus_waitpoint_wait(NULL, "nothing"), JANUS_INVALID);
    return 0;
}

TEST("an opening before the wait is not lost, and a wait without one returns DEADLINE")
{
    CHECK_EQ(early(NULL), 0); /* on a plain thread */
    rig_all(early, NULL, REPEATS);
}

struct pair {
    janus_waitpoint there, back;
    int             value;
    atomic_int      waits;
};

static int64_t answer(void *argument)
{
    struct pair *pair = argument;
    CHECK_EQ(janus_waitpoint_wait(&pair->there, "a question"), JANUS_OK);
    CHECK_EQ(pair->value, 1);
    pair->value = 2;
    janus_waitpoint_wake(&pair->back);
    return 0;
}

static void ask(struct pair *pair)
{
    pair->value = 1;
    janus_waitpoint_wake(&pair->there);
    CHECK_EQ(janus_waitpoint_wait(&pair->back, "an answer"), JANUS_OK);
    CHECK_EQ(pair->value, 2);
}

static void init_pair(struct pair *pair, janus_waker opener)
{
    memset(pair, 0, sizeof *pair);
    janus_waitpoint_init(&pair->there, opener);
    janus_waitpoint_init(&pair->back, opener);
}

static int64_t question(void *argument)
{
    struct pair   pair;
    janus_nursery n;
    (void)argument;
    init_pair(&pair, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, answer, &pair), JANUS_OK);
    ask(&pair);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("the waiter sees what the opener wrote before the opening")
{
    rig_all(question, NULL, REPEATS * 10);
}

TEST("threads and tasks wait for each other")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int i = 0; i < REPEATS * 10; i++) {
        struct pair   pair;
        janus_nursery n;
        init_pair(&pair, JANUS_WAKER_ANYBODY);
        CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, answer, &pair), JANUS_OK);
        ask(&pair);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

static int64_t wait_first(void *argument)
{
    struct pair *pair = argument;
    atomic_store(&pair->waits, 1);
    CHECK_EQ(janus_waitpoint_wait(&pair->there, "the second one"), JANUS_OK);
    return 0;
}

static int64_t second_waiter(void *argument)
{
    struct pair   pair;
    janus_nursery n;
    (void)argument;
    init_pair(&pair, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, wait_first, &pair), JANUS_OK);
    CHECK(rig_wait(&pair.waits));
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_waitpoint_wait(&pair.there, "the first one"), JANUS_STATE);
    janus_waitpoint_wake(&pair.there);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a second waiter at the same waitpoint is refused")
{
    rig_run(1, second_waiter, NULL, REPEATS);
}

/* At the same moment. The waiter frees the waitpoint at once, so that a sanitizer finds a late
 * touch. */

struct post {
    _Atomic(janus_waitpoint *) point; /* NULL: no waitpoint to open */
    atomic_int                 stop;
};

static void open_next(struct post *post)
{
    janus_waitpoint *point = atomic_exchange(&post->point, NULL);
    if (point != NULL) janus_waitpoint_wake(point);
}

static void *open_all(void *argument)
{
    struct post *post = argument;
    while (!atomic_load(&post->stop)) open_next(post);
    return NULL;
}

static int64_t open_all_as_task(void *argument)
{
    struct post *post = argument;
    while (!atomic_load(&post->stop)) {
        open_next(post);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
    return 0;
}

static void meet(struct post *post, uint64_t round)
{
    janus_waitpoint *point = malloc(sizeof *point);
    CHECK(point != NULL);
    janus_waitpoint_init(point, JANUS_WAKER_ANYBODY);
    atomic_store(&post->point, point);
    for (uint64_t i = 0; i < round % 64; i++) atomic_signal_fence(memory_order_seq_cst);
    CHECK_EQ(janus_waitpoint_wait(point, "the post"), JANUS_OK);
    memset(point, 0x5a, sizeof *point);
    free(point);
}

static int64_t meet_many(void *argument)
{
    uint64_t end = janus_now_ns() + rig_few(run_ns);
    for (uint64_t round = 0; janus_now_ns() < end; round++) meet(argument, round);
    return 0;
}

static int64_t meet_task(void *argument)
{
    struct post   post = {0};
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, open_all_as_task, &post), JANUS_OK);
    CHECK_EQ(meet_many(&post), 0);
    atomic_store(&post.stop, 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a task's opening at the moment of the wait is not lost, and its last touch comes before")
{
    rig_run(1, meet_task, NULL, 1);
    rig_run(2, meet_task, NULL, 1);
}

TEST("a thread's opening at the moment of the wait is not lost, and its last touch comes before")
{
    RIG_REAL("a thread outside takes part");
    struct post post = {0};
    pthread_t   thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_all, &post), 0);
    rig_run(2, meet_many, &post, 1); /* a task waits */
    CHECK_EQ(meet_many(&post), 0);   /* a thread waits */
    atomic_store(&post.stop, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* An opener that may outlive the scheduler of the task it woke. */

static int64_t meet_once(void *argument)
{
    meet(argument, 0);
    return 0;
}

TEST("a scheduler may be closed as soon as the task that was woken from outside has ended")
{
    RIG_REAL("a thread outside takes part");
    uint64_t    end = janus_now_ns() + rig_few(run_ns);
    struct post post = {0};
    pthread_t   thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_all, &post), 0);
    while (janus_now_ns() < end) rig_run(2, meet_once, &post, 1);
    atomic_store(&post.stop, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
}

/* Cancelled, late or in time, while it is opened. */

struct contest {
    struct post post;
    atomic_long opened, cancelled, late;
};

/* As the header shows it: a waiter that cannot take it back waits on. */
static janus_status contend(struct contest *contest, uint64_t deadline_ns)
{
    janus_waitpoint *point = malloc(sizeof *point), *mine = point;
    CHECK(point != NULL);
    janus_waitpoint_init(point, JANUS_WAKER_ANYBODY);
    janus_waitpoint *none = NULL;
    while (!atomic_compare_exchange_strong(&contest->post.point, &none, point)) {
        none = NULL; /* others have theirs there */
        if (janus_cancelled()) {
            free(point);
            return JANUS_CANCELLED;
        }
        janus_shield_begin(); /* not unwound before it is freed */
        CHECK_EQ(janus_yield(), JANUS_OK);
        janus_shield_end();
    }
    janus_status status = janus_waitpoint_wait_until(point, "the post", deadline_ns);
    if (status == JANUS_OK) {
        atomic_fetch_add(&contest->opened, 1);
    } else {
        CHECK(status == JANUS_CANCELLED || status == JANUS_DEADLINE);
        atomic_fetch_add(status == JANUS_CANCELLED ? &contest->cancelled : &contest->late, 1);
        if (!atomic_compare_exchange_strong(&contest->post.point, &mine, NULL)) {
            janus_shield_begin();
            CHECK_EQ(janus_waitpoint_wait(point, "the post"), JANUS_OK);
            janus_shield_end();
        }
    }
    memset(point, 0x5a, sizeof *point);
    free(point);
    return status;
}

static int64_t contend_for_ever(void *argument)
{
    struct contest *contest = argument;
    for (uint64_t round = 0;; round++) {
        bool         timed = round % 2 == 0;
        uint64_t     deadline = timed ? janus_now_ns() + round % 16 * 500 : UINT64_MAX;
        janus_status status = contend(contest, deadline);
        if (status == JANUS_CANCELLED) return JANUS_CANCELLED;
        uint64_t until = janus_now_ns() + 1000; /* no late wake may end this one */
        status = janus_sleep_until(until);
        if (status != JANUS_OK) return status;
        CHECK(janus_now_ns() >= until);
    }
}

static int64_t cancel_contenders(void *argument)
{
    struct contest *contest = argument;
    uint64_t        now, end = janus_now_ns() + rig_few(run_ns), last = end + rig_patience;
    /* On a busy machine it may take longer until each outcome has come once. */
    for (uint64_t round = 0; (now = janus_now_ns()) < end ||
                             (now < last && (contest->opened == 0 || contest->cancelled == 0));
         round++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        for (int i = 0; i < 4; i++) {
            janus_spawn_options *options =
                JANUS_SPAWN_OPTIONS(.cancel = i % 2 == 0 ? JANUS_CANCEL_MODE_UNWIND
                                                         : JANUS_CANCEL_MODE_RETURN);
            CHECK_EQ(janus_spawn_with(&n, contend_for_ever, contest, options, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_sleep(round % 32 * 1000), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    }
    return 0;
}

TEST("a wait that is opened, cancelled and late at once ends once, with OK if it was opened")
{
    RIG_REAL("a thread outside takes part");
    struct contest contest = {0};
    pthread_t      thread;
    CHECK_EQ(pthread_create(&thread, NULL, open_all, &contest.post), 0);
    rig_run(4, cancel_contenders, &contest, 1);
    atomic_store(&contest.post.stop, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK(contest.opened > 0 && contest.cancelled > 0);
}

/* Cancelling, shields, modes. */

static int64_t wait_for_nobody(void *argument)
{
    janus_waitpoint point;
    janus_shield    shield;
    uint64_t        end = janus_now_ns() + rig_ms;
    janus_waitpoint_init(&point, JANUS_WAKER_ANYBODY);
    atomic_store((atomic_int *)argument, 1);
    CHECK_EQ(janus_waitpoint_wait(&point, "nobody"), JANUS_CANCELLED); /* also when unwinding */
    CHECK_EQ(janus_waitpoint_wait_until(&point, "nobody", hour), JANUS_CANCELLED);
    janus_shield_begin_until(&shield, end);
    CHECK_EQ(janus_waitpoint_wait(&point, "nobody"), JANUS_CANCELLED);
    CHECK(janus_now_ns() >= end);
    janus_shield_end();
    janus_waitpoint_wake(&point);
    CHECK_EQ(janus_waitpoint_wait(&point, "nobody"), JANUS_OK); /* open: cancelled or not */
    atomic_store((atomic_int *)argument, 2);
    return janus_yield();
}

static int64_t cancel_waiter(void *argument)
{
    (void)argument;
    for (int mode = 0; mode < 2; mode++) {
        janus_nursery        n;
        atomic_int           stage = 0;
        janus_spawn_options *options =
            JANUS_SPAWN_OPTIONS(.cancel = mode == 0 ? JANUS_CANCEL_MODE_RETURN
                                                    : JANUS_CANCEL_MODE_UNWIND);
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, wait_for_nobody, &stage, options, NULL), JANUS_OK);
        CHECK(rig_wait(&stage));
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
        CHECK_EQ(stage, 2);
    }
    return 0;
}

TEST("a cancel ends the wait and returns, in both modes; a shield holds it off")
{
    rig_all(cancel_waiter, NULL, REPEATS);
}

/* Reports about a wait. */

static int64_t wait_three_times(void *argument)
{
    struct pair *pair = argument;
    CHECK_EQ(janus_sleep(1), JANUS_OK);
    CHECK_EQ(janus_waitpoint_wait(&pair->there, "the moon to rise"), JANUS_OK);
    janus_waitpoint_init(&pair->there, JANUS_WAKER_ANYBODY);
    janus_waitpoint_wake(&pair->back);
    CHECK_EQ(janus_waitpoint_wait(&pair->there, NULL), JANUS_OK);
    return 0;
}

static void check_told(janus_scheduler *scheduler, janus_nursery *n, janus_task_id id,
                       const char *reason)
{
    janus_task_info info = JANUS_TASK_INFO();
    uint64_t        limit = janus_now_ns() + rig_patience;
    do CHECK_EQ(janus_task_inspect(n, id, &info), JANUS_OK);
    while ((info.state != JANUS_TASK_STATE_BLOCKED || strcmp(info.wait, reason) != 0) &&
           janus_now_ns() < limit);
    CHECK_EQ(info.state, JANUS_TASK_STATE_BLOCKED);
    CHECK_STR(info.wait, reason);
    char  line[100] = "blocked, waits for ";
    char *text = dumped(scheduler);
    CHECK(strstr(text, strcat(line, reason)) != NULL);
    free(text);
}

TEST("dumps and inspections show the reason of a wait")
{
    struct pair      pair;
    janus_nursery    n;
    janus_task_id    id;
    janus_task_info  info = JANUS_TASK_INFO();
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    init_pair(&pair, JANUS_WAKER_ANYBODY);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, wait_three_times, &pair, NULL, &id), JANUS_OK);
    check_told(scheduler, &n, id, "the moon to rise");
    janus_waitpoint_wake(&pair.there);
    CHECK_EQ(janus_waitpoint_wait(&pair.back, "the first half"), JANUS_OK);
    check_told(scheduler, &n, id, "a waitpoint");
    janus_waitpoint_wake(&pair.there);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_task_inspect(&n, id, &info), JANUS_OK);
    CHECK_STR(info.wait, "nothing");
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Deadlocks. */

enum { DEPTH = RIG_SLOW ? 30 : 6000 };

static int64_t wait_deep(void *argument)
{
    int depth = *(int *)argument - 1;
    if (depth > 0) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, wait_deep, &depth), JANUS_OK);
        CHECK_EQ(janus_yield(), JANUS_OK);
        return janus_nursery_end(&n, NULL);
    }
    janus_waitpoint point;
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    CHECK_EQ(janus_waitpoint_wait(&point, "Godot"), JANUS_DEADLOCK);
    CHECK_EQ(janus_waitpoint_wait(&point, "Godot again"), JANUS_DEADLOCK);
    janus_waitpoint_wake(&point);
    return janus_waitpoint_wait(&point, "nobody");
}

static void run_deadlock(void *argument)
{
    rig_run(1, wait_deep, argument, 1);
    rig_run(2, wait_deep, argument, 1);
}

TEST("a wait for tasks that all wait is reported as a deadlock, at any depth")
{
    int         status = 0, depth = 1;
    const char *text = harness_child(run_deadlock, &depth, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "janusrt: deadlock: every task waits\n") != NULL);
    CHECK(strstr(text, "blocked, waits for Godot, ") != NULL);
    depth = DEPTH;
    text = harness_child(run_deadlock, &depth, &status);
    CHECK_EQ(status, 0);
}

struct patient {
    janus_waitpoint  point;
    janus_scheduler *scheduler;
    atomic_long      parks; /* epoch of the only worker while the task runs, plus 1; 0: not yet */
};

static long parks_of(struct patient *patient)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(patient->scheduler, 0, &stats), JANUS_OK);
    return (long)stats.parks;
}

static int64_t wait_for_thread(void *argument)
{
    struct patient *patient = argument;
    atomic_store(&patient->parks, parks_of(patient) + 1);
    CHECK_EQ(janus_waitpoint_wait(&patient->point, "a thread"), JANUS_OK);
    return 0;
}

/* When the worker sleeps, it has found that nothing can happen inside. */
static void *open_later(void *argument)
{
    struct patient *patient = argument;
    while (atomic_load(&patient->parks) == 0) rig_spin();
    while (parks_of(patient) < atomic_load(&patient->parks)) rig_spin();
    janus_waitpoint_wake(&patient->point);
    return NULL;
}

static void run_patient(void *argument)
{
    struct patient patient = {.scheduler = NULL};
    pthread_t      thread;
    (void)argument;
    janus_waitpoint_init(&patient.point, JANUS_WAKER_ANYBODY);
    patient.scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    CHECK_EQ(pthread_create(&thread, NULL, open_later, &patient), 0);
    rig_do(patient.scheduler, wait_for_thread, &patient);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(janus_scheduler_destroy(patient.scheduler), JANUS_OK);
}

TEST("a wait that a thread outside may end is no deadlock")
{
    RIG_REAL("a thread outside takes part");
    int         status = 0;
    const char *text = harness_child(run_patient, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK_STR(text, "");
}
