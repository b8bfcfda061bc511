/* SPDX-License-Identifier: MIT */
/*
 * Tasks that end their thread, by pthread_exit or pthread_cancel. Threads that end between tasks,
 * and threads that cannot be replaced, are in replace_test.c.
 */
#include "rig.h"
#include "task/worker.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REPEATS = RIG_SLOW ? 3 : 20 };

static const char message[] = "it ended its thread (pthread_exit or pthread_cancel)";

enum way { EXIT, CANCEL };

/* ThreadSanitizer does not allow pthread_exit on any stack but a thread's own. */
#define FOR_EACH_WAY(way) for (enum way way = JRT_TSAN ? CANCEL : EXIT; way <= CANCEL; way++)

static void end_thread(enum way way)
{
    if (way == EXIT) pthread_exit(NULL);
    CHECK_EQ(pthread_cancel(pthread_self()), 0);
    pthread_testcancel();
    harness_fail(__FILE__, __LINE__, "the thread went on");
}

/* Not pthread_self, which compilers call only once. */
static pid_t thread_id(void) { return (pid_t)syscall(SYS_gettid); }

static uint64_t restarts(void)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    CHECK_EQ(janus_worker_inspect(jrt_worker_self()->scheduler, JANUS_ALL_WORKERS, &stats),
             JANUS_OK);
    return stats.restarts;
}

static void for_all(janus_entry *entry) { FOR_EACH_WAY(way) rig_all(entry, &way, REPEATS); }

static int64_t die(void *argument)
{
    end_thread(*(enum way *)argument);
    return 0;
}

/* One task. */

struct mourner {
    enum way   way;
    atomic_int defers, handlers;
    pid_t      before, after;
};

static void note_defer(void *argument)
{
    struct mourner *mourner = argument;
    mourner->after = thread_id();
    atomic_fetch_add(&mourner->defers, 1);
}

static void note_handler(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static int64_t die_mourned(void *argument)
{
    struct mourner *mourner = argument;
    mourner->before = thread_id();
    CHECK_EQ(janus_defer(note_defer, mourner), JANUS_OK);
    CHECK_EQ(janus_defer(note_defer, mourner), JANUS_OK);
    pthread_cleanup_push(note_handler, &mourner->handlers);
    end_thread(mourner->way);
    pthread_cleanup_pop(0);
    return 0;
}

static int64_t survive_one(void *argument)
{
    struct mourner       mourner = {.way = *(enum way *)argument};
    uint64_t             before = restarts();
    volatile char        mine[512]; /* on the stack that the child runs on */
    janus_nursery        n;
    janus_nursery_result result;
    memset((char *)mine, 'm', sizeof mine);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, die_mourned, &mourner), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 1);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    CHECK_STR(result.panic.message, message);
    CHECK_EQ(mourner.handlers, 1);
    CHECK_EQ(mourner.defers, 2);
    CHECK(mourner.before != mourner.after);
    for (size_t i = 0; i < sizeof mine; i++) CHECK_EQ(mine[i], 'm');
    CHECK(restarts() > before || jrt_worker_self()->scheduler->worker_count > 1); /* stolen */
    return 0;
}

TEST("a task that ends its thread has panicked, its defers run, its parent goes on")
{
    RIG_REAL("the one thread cannot be ended");
    for_all(survive_one);
}

static int64_t die_on_top(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, die, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return die(argument);
}

static int64_t survive_tower(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, die_on_top, argument), JANUS_OK);
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 3);
    CHECK_STR(result.panic.message, message);
    return 0;
}

TEST("a task whose child ended its thread can end the next one")
{
    RIG_REAL("the one thread cannot be ended");
    for_all(survive_tower);
}

/* Many. */

struct crowd {
    enum way   way;
    atomic_int ran;
};

struct member {
    struct crowd *crowd;
    int           number;
};

static int64_t tenth_dies(void *argument)
{
    struct member *member = argument;
    if (member->number % 2 == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    if (member->number % 10 == 0) end_thread(member->crowd->way);
    if (member->number % 3 == 0) CHECK_EQ(janus_sleep(1000), JANUS_OK);
    atomic_fetch_add(&member->crowd->ran, 1);
    return 0;
}

enum { CROWD = RIG_SLOW ? 100 : 400 };

static int64_t survive_crowd(void *argument)
{
    static struct member members[CROWD];
    struct crowd         crowd = {.way = *(enum way *)argument};
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        members[i] = (struct member){&crowd, i};
        CHECK_EQ(janus_spawn(&n, tenth_dies, &members[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, CROWD / 10);
    CHECK_EQ(crowd.ran, CROWD - CROWD / 10);
    return 0;
}

TEST("if every tenth task ends its thread, all others run exactly once")
{
    RIG_REAL("the one thread cannot be ended");
    FOR_EACH_WAY(way) rig_all(survive_crowd, &way, 2);
}

TEST("every thread that a task ended was replaced once, and is counted")
{
    RIG_REAL("the one thread cannot be ended");
    FOR_EACH_WAY(way)
    {
        janus_scheduler  *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
        janus_worker_info stats = JANUS_WORKER_INFO();
        for (int i = 0; i < 10; i++) rig_do(scheduler, survive_one, &way);
        CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
        CHECK_EQ(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
        /* The very last may have found that the scheduler had stopped. */
        CHECK(stats.restarts == 10 || stats.restarts == 9);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* With nurseries open. */

static int64_t die_with_children(void *argument)
{
    janus_nursery a, b;
    CHECK_EQ(janus_nursery_open(&a, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&b, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&a, sleep_an_hour, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&b, yield_for_ever, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&a, yield_for_ever, NULL), JANUS_OK);
    JANUS_IGNORE(janus_yield());
    return die(argument);
}

static int64_t survive_families(void *argument)
{
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 4; i++) CHECK_EQ(janus_spawn(&n, die_with_children, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 4);
    return 0;
}

TEST("a task that ends its thread cancels the children of its open nurseries")
{
    RIG_REAL("the one thread cannot be ended");
    for_all(survive_families);
}

/* In a defer. */

static void die_in_defer(void *argument)
{
    struct mourner *mourner = argument;
    atomic_fetch_add(&mourner->defers, 1);
    end_thread(mourner->way);
}

static int64_t die_late(void *argument)
{
    CHECK_EQ(janus_defer(note_defer, argument), JANUS_OK);
    CHECK_EQ(janus_defer(die_in_defer, argument), JANUS_OK);
    CHECK_EQ(janus_defer(die_in_defer, argument), JANUS_OK);
    return 0;
}

static int64_t panic_and_die_late(void *argument)
{
    (void)die_late(argument);
    janus_panic("before");
}

static int64_t survive_late(void *argument)
{
    for (int i = 0; i < 2; i++) {
        struct mourner       mourner = {.way = *(enum way *)argument};
        janus_nursery        n;
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, i == 0 ? die_late : panic_and_die_late, &mourner), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(mourner.defers, 3);
        CHECK_EQ(result.errors, 1);
        CHECK_STR(result.panic.message, i == 0 ? message : "before");
    }
    return 0;
}

TEST("a defer that ends its thread ends there, and the others still run")
{
    RIG_REAL("the one thread cannot be ended");
    for_all(survive_late);
}

/* In a fiber of the task's own. */

static int64_t survive_fiber(void *argument)
{
    janus_fiber_pool *pool = NULL;
    janus_fiber      *fiber = NULL;
    janus_outcome     outcome;
    CHECK_EQ(janus_fiber_pool_create(NULL, &pool), JANUS_OK);
    CHECK_EQ(janus_fiber_create(pool, die, argument, NULL, &fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_resume(fiber, NULL, &outcome), JANUS_OK);
    CHECK_EQ(outcome.state, JANUS_FIBER_STATE_PANICKED);
    CHECK_STR(outcome.panic.message, message);
    CHECK_EQ(janus_fiber_current(), NULL);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_fiber_destroy(fiber), JANUS_OK);
    CHECK_EQ(janus_fiber_pool_destroy(pool), JANUS_OK);
    return 0;
}

TEST("a fiber that ends its task's thread has panicked, and the task goes on")
{
    RIG_REAL("the one thread cannot be ended");
    for_all(survive_fiber);
}

/* On the smallest stacks. */

TEST("a task on the smallest stack can end its thread")
{
    RIG_REAL("the one thread cannot be ended");
    FOR_EACH_WAY(way)
    {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .stack_bytes = 8192));
        for (int i = 0; i < REPEATS; i++) rig_do(scheduler, survive_tower, &way);
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

/* What the thread had. */

static pthread_key_t key;
static atomic_int    destroyed;

static void destroy(void *value) { atomic_fetch_add((atomic_int *)value, 1); }

static int64_t set_and_die(void *argument)
{
    CHECK_EQ(pthread_setspecific(key, &destroyed), 0);
    return die(argument);
}

static int64_t survive_data(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, set_and_die, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("a thread that a task ended really ends: its thread-specific data is destroyed")
{
    RIG_REAL("the one thread cannot be ended");
    CHECK_EQ(pthread_key_create(&key, destroy), 0);
    atomic_store(&destroyed, 0);
    int expected = 0;
    FOR_EACH_WAY(way)
    {
        rig_run(2, survive_data, &way, 5);
        expected += 5;
        CHECK_EQ(destroyed, expected);
    }
    CHECK_EQ(pthread_key_delete(key), 0);
}

/* Blocking calls. */

static int64_t call_blocking(void *argument)
{
    int64_t result = 0;
    JANUS_IGNORE(janus_blocking(die, argument, &result));
    harness_fail(__FILE__, __LINE__, "a blocking call without a thread came back");
}

static int64_t call_well(void *argument)
{
    int64_t result = 0;
    CHECK_EQ(janus_blocking(count_me, argument, &result), JANUS_OK);
    return result;
}

static int64_t survive_blocking(void *argument)
{
    atomic_int           well = 0;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(janus_spawn(&n, call_blocking, argument), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, call_well, &well), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, 10);
    CHECK_EQ(well, 10);
    CHECK_STR(result.panic.message,
              "a blocking call ended its thread (pthread_exit or pthread_cancel)");
    CHECK_EQ(restarts(), 0);
    return 0;
}

TEST("a blocking call that ends its helper thread panics its task, and other calls still run")
{
    RIG_REAL("the one thread cannot be ended");
    for (enum way way = EXIT; way <= CANCEL; way++) { /* on threads' own stacks: also with TSan */
        for (uint32_t helpers = 1; helpers <= 4; helpers += 3) {
            janus_scheduler *scheduler = rig_open(
                JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_blocking_threads = helpers));
            for (int i = 0; i < REPEATS; i++) rig_do(scheduler, survive_blocking, &way);
            CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
        }
    }
}

/* While the scheduler is being stopped. */

static int64_t die_when_cancelled(void *argument)
{
    while (janus_sleep(3600 * 1000 * rig_ms) == JANUS_OK) continue;
    return die(argument);
}

TEST("a stop of the scheduler awaits tasks that end their thread meanwhile")
{
    RIG_REAL("the one thread cannot be ended");
    static const uint32_t counts[] = {1, 2, 8};
    FOR_EACH_WAY(way)
    for (int i = 0; i < 3 * REPEATS; i++) {
        janus_scheduler *scheduler =
            rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = counts[i % 3]));
        janus_nursery        root;
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_open_in(scheduler, &root, NULL), JANUS_OK);
        for (int j = 0; j < 5; j++) {
            CHECK_EQ(janus_spawn(&root, die_when_cancelled, &way), JANUS_OK);
            CHECK_EQ(janus_spawn(&root, yield_for_ever, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_scheduler_stop(scheduler), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&root, &result));
        CHECK(result.errors <= 5); /* those that had begun */
        CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
    }
}

TEST("janus_run reports that its task ended the thread")
{
    RIG_REAL("the one thread cannot be ended");
    FOR_EACH_WAY(way) CHECK_EQ(janus_run(NULL, die, &way, NULL), JANUS_CHILD_FAILED);
}

/* Ends that the process does not survive. */

static void die_in_callback(void *argument) { end_thread(*(enum way *)argument); }

static int64_t cancel_token(void *argument)
{
    janus_token *token = NULL;
    CHECK_EQ(janus_token_create(&token), JANUS_OK);
    CHECK_EQ(janus_token_on_cancel(token, die_in_callback, argument, NULL), JANUS_OK);
    CHECK_EQ(janus_token_cancel(token, JANUS_CANCEL_REASON_EXPLICIT), JANUS_OK);
    janus_token_release(token);
    return 0;
}

static void cancel_in_thread(void *argument) { (void)cancel_token(argument); }

TEST("a token's callback that ends a worker's thread is reported, and another thread goes on")
{
    RIG_REAL("the one thread cannot be ended");
    FOR_EACH_WAY(way) rig_run(2, cancel_token, &way, 1);
}

TEST("a token's callback that ends a plain thread ends the process with a message")
{
    RIG_REAL("the one thread cannot be ended");
    static const char sentence[] = "a token's callback ended its thread";
    int               status = 0;
    FOR_EACH_WAY(way)
    {
        CHECK(strstr(harness_child(cancel_in_thread, &way, &status), sentence) != NULL);
        CHECK(status != 0);
    }
}

int64_t end_blindly(void *way); /* death_blind.c: without unwind tables */
int64_t end_blindly_by(void (*end)(enum way), enum way way);
int64_t end_blindly(void *way) { return end_blindly_by(end_thread, *(enum way *)way); }

static void go_blind(void *argument) { rig_run(2, end_blindly, argument, 1); }

static int64_t block_blind(void *argument) { return janus_blocking(end_blindly, argument, NULL); }

static void go_blind_in_helper(void *argument) { rig_run(2, block_blind, argument, 1); }

TEST("ending the thread in code without unwind tables ends the process with a message")
{
    RIG_REAL("the one thread cannot be ended");
    static const char sentence[] = "in code without unwind tables";
    int               status = 0;
    FOR_EACH_WAY(way)
    {
        CHECK(strstr(harness_child(go_blind, &way, &status), sentence) != NULL);
        CHECK(status != 0);
        CHECK(strstr(harness_child(go_blind_in_helper, &way, &status), sentence) != NULL);
        CHECK(status != 0);
    }
}

static void die_simulated(void *argument)
{
    const janus_scheduler_options *options = JANUS_SCHEDULER_OPTIONS(.deterministic_seed = 1);
    (void)!janus_run(options, die, argument, NULL);
}

static int64_t die_in_call(void *argument) { return janus_blocking(die, argument, NULL); }

static void die_simulated_in_call(void *argument)
{
    const janus_scheduler_options *options = JANUS_SCHEDULER_OPTIONS(.deterministic_seed = 1);
    (void)!janus_run(options, die_in_call, argument, NULL);
}

TEST("a task that ends the thread of a deterministic scheduler ends the process with a message")
{
    static const char sentence[] = "the thread of a deterministic scheduler ended";
    void              (*const bodies[])(void *) = {die_simulated, die_simulated_in_call};
    for (int i = 0; i < 2; i++) {
        FOR_EACH_WAY(way)
        {
            int         status = 0;
            const char *text = harness_child(bodies[i], &way, &status);
            CHECK(strstr(text, sentence) != NULL);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        }
    }
}

TEST("these tests end threads by pthread_exit as well as by pthread_cancel")
{
    if (JRT_TSAN) SKIP("ThreadSanitizer's pthread_exit refuses any stack but the thread's own");
    CHECK_EQ(EXIT + 1, CANCEL);
}
