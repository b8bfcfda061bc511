/* SPDX-License-Identifier: MIT */
/*
 * Random trees of nested nurseries, with everything that can go wrong in them. There are errors,
 * cancels from inside and from a foreign thread, deadlines, joins, sleeps, yields, panics, stack
 * overflows, blocking calls, shields, shutdown. 1, 2 and 8 workers in turn.
 *
 *     tree_stress [CPU seconds for each number of workers [seed [workers]]]
 *
 * Every task ends exactly once and before its nursery does. Every nursery counts exactly its
 * failed children. A shielded wait is never cut short. Nothing hangs. A watchdog prints what each
 * task was doing and aborts. The program prints the seed first. The same seed makes the same
 * choices; the machine decides the interleaving.
 */
#include "plat/seam.h"

#include "storm.h"

#include <janusrt/janus.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { NODES = 300 };
#else
enum { NODES = 1500 };
#endif

enum { SLOTS = 8, DEPTH_MAX = 5, KIDS_MAX = 5 };

static const uint64_t microsecond = 1000;

/* One task. Nodes lie in an arena, so that they outlive every frame. */
struct node {
    uint64_t       random;
    struct node   *parent;
    janus_nursery *nursery;   /* it is a child of */
    atomic_int    *failures;  /* of that nursery */
    atomic_int     live_kids; /* entered and not left */
    atomic_int     entered, left;
    atomic_int     depth;
    janus_task_id  id;
    /* A nursery of it makes spawns wait: siblings would wait for each other. */
    atomic_int waits;
    int64_t    result;
    const char *_Atomic doing;
};

static struct node arena[NODES];
static atomic_int  arena_used;
static atomic_long spawned;

static uint32_t below(struct node *node, uint32_t bound)
{
    return (uint32_t)(next_random(&node->random) >> 32) % bound;
}

/* Nurseries that the foreign thread may cancel; a slot is taken off before its nursery ends. */
static struct slot {
    pthread_mutex_t lock;
    janus_nursery  *nursery;
} slots[SLOTS];
static atomic_bool foreign_stop;

static void slot_lock(struct slot *slot)
{
    while (pthread_mutex_trylock(&slot->lock) != 0) jrt_thread_yield();
}

static void publish(struct slot *slot, janus_nursery *nursery)
{
    slot_lock(slot);
    if (slot->nursery == NULL) slot->nursery = nursery;
    pthread_mutex_unlock(&slot->lock);
}

static void withdraw(struct slot *slot, janus_nursery *nursery)
{
    slot_lock(slot);
    if (slot->nursery == nursery) slot->nursery = NULL;
    pthread_mutex_unlock(&slot->lock);
}

/* Cancels one of them, if any. */
static void cancel_one(uint64_t *random)
{
    struct slot *slot = &slots[next_random(random) % SLOTS];
    slot_lock(slot);
    if (slot->nursery != NULL) {
        janus_status status = janus_nursery_cancel(slot->nursery);
        MUST(status == JANUS_OK || status == JANUS_STATE, "%d", status);
        bool refused = status == JANUS_STATE && janus_in_task(); /* it is not below it */
        MUST(refused || janus_nursery_is_cancelled(slot->nursery) ||
                 janus_nursery_state_of(slot->nursery) == JANUS_NURSERY_STATE_CLOSED,
             "state %d", janus_nursery_state_of(slot->nursery));
        if (!refused) slot->nursery = NULL;
    }
    pthread_mutex_unlock(&slot->lock);
}

static void *foreign_main(void *argument)
{
    uint64_t random = *(uint64_t *)argument;
    while (!atomic_load(&foreign_stop)) {
        cancel_one(&random);
        struct timespec pause = {0, (long)(next_random(&random) % 200000)};
        (void)ppoll(NULL, 0, &pause, NULL); /* a pace, not a wait */
    }
    return NULL;
}

/* Cancels where there is no outside thread: a task beside the tree, until the tree has ended. */
static int64_t foreign_task(void *argument)
{
    uint64_t random = ~*(uint64_t *)argument;
    while (!atomic_load(&foreign_stop)) {
        cancel_one(&random);
        if (janus_sleep(next_random(&random) % 20000) != JANUS_OK) break;
    }
    return 0;
}

/* The watchdog. */

/* A dprintf for signal handlers, which may not call dprintf. */
__attribute__((format(printf, 1, 2))) static void tell(const char *format, ...)
{
    char    text[300];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length > 0) (void)!write(2, text, (size_t)length);
}

static void on_alarm(int number)
{
    (void)number;
    tell("tree_stress: stuck; seed %llu, round %llu\n", (unsigned long long)seed,
         (unsigned long long)rounds);
    int used = atomic_load(&arena_used);
    for (int i = 0; i < used && i < NODES; i++) {
        struct node *node = &arena[i];
        if (!atomic_load(&node->entered) || atomic_load(&node->left)) continue;
        tell("  node %d of %ld, %d kids: %s\n", i,
             node->parent != NULL ? (long)(node->parent - arena) : -1L,
             atomic_load(&node->live_kids), atomic_load(&node->doing));
    }
    abort();
}

/* Leaves. */

static void doing(struct node *node, const char *what) { atomic_store(&node->doing, what); }

static void on_leave(void *argument)
{
    struct node *node = argument;
    MUST(atomic_load(&node->live_kids) == 0, "%d orphans", atomic_load(&node->live_kids));
    MUST(atomic_exchange(&node->left, 1) == 0, "a task left twice");
    if (node->parent != NULL) atomic_fetch_sub(&node->parent->live_kids, 1);
    if (node->parent == NULL && storm_simulated() != 0) atomic_store(&foreign_stop, true);
}

static void restless_defer(void *argument)
{
    struct node *node = argument;
    doing(node, "a defer that waits");
    janus_status status = janus_yield();
    MUST(status == JANUS_OK, "%d", status);
    status = janus_sleep(5 * microsecond);
    MUST(status == JANUS_OK, "%d", status);
}

static int64_t block_a_little(void *argument)
{
    JANUS_IGNORE(janus_sleep((uint64_t)*(int64_t *)argument)); /* the thread: what blocks */
    return *(int64_t *)argument;
}

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t failed(struct node *node, int64_t code)
{
    atomic_fetch_add(node->failures, 1);
    return code;
}

/* A wait returned CANCELLED; so the task must be cancelled, and obeying is no failure. */
static int64_t obey(struct node *node, janus_status status)
{
    MUST(status == JANUS_CANCELLED, "%s: %d", atomic_load(&node->doing), status);
    MUST(janus_cancelled(), "%s", atomic_load(&node->doing));
    return JANUS_CANCELLED;
}

static int64_t yield_or_sleep(struct node *node)
{
    bool sleeps = below(node, 2) == 0;
    doing(node, sleeps ? "sleeping" : "yielding");
    for (uint32_t i = below(node, 10); i > 0; i--) {
        janus_status status = sleeps ? janus_sleep(below(node, 50) * microsecond) : janus_yield();
        if (status != JANUS_OK) return obey(node, status);
    }
    return 0;
}

static void shielded(struct node *node)
{
    doing(node, "sleeping in a shield");
    janus_shield_begin();
    for (uint32_t i = below(node, 4); i > 0; i--) {
        uint64_t     until = janus_now_ns() + below(node, 30) * microsecond;
        janus_status status = janus_sleep_until(until);
        MUST(status == JANUS_OK, "%d", status);
        MUST(janus_now_ns() >= until, "a shielded sleep was cut short");
    }
    janus_shield_end();
}

/* The time left to clean up, or less if it is cancelled. */
static int64_t shielded_until(struct node *node)
{
    janus_shield shield;
    uint64_t     end = janus_now_ns() + below(node, 40) * microsecond;
    doing(node, "sleeping in a shield with a deadline");
    janus_shield_begin_until(&shield, end);
    uint64_t     until = janus_now_ns() + below(node, 60) * microsecond;
    janus_status status = janus_sleep_until(until);
    bool         whole = janus_now_ns() >= until, over = janus_now_ns() >= end;
    janus_shield_end();
    if (status == JANUS_OK) MUST(whole, "a sleep in a shield was cut short");
    if (status != JANUS_OK) MUST(over, "a shield ended before its deadline");
    return status == JANUS_OK ? 0 : obey(node, status);
}

/* Nobody opens it, or it is open already. */
static int64_t at_waitpoint(struct node *node)
{
    janus_waitpoint point;
    bool            opened = below(node, 3) == 0;
    uint64_t        end = janus_now_ns() + below(node, 40) * microsecond;
    doing(node, "at a waitpoint");
    janus_waitpoint_init(&point, JANUS_WAKER_TASKS);
    if (opened) janus_waitpoint_wake(&point);
    janus_status status = janus_waitpoint_wait_until(&point, "nobody", end);
    MUST(opened == (status == JANUS_OK), "%d", status);
    if (status == JANUS_CANCELLED) return obey(node, status);
    MUST(opened || status == JANUS_DEADLINE, "%d", status);
    return 0;
}

static int64_t blocking(struct node *node)
{
    int64_t nanoseconds = below(node, 30) * 1000, result = -1;
    doing(node, "a blocking call");
    janus_status status = janus_blocking(block_a_little, &nanoseconds, &result);
    if (status != JANUS_OK) return obey(node, status);
    MUST(result == nanoseconds, "%lld", (long long)result);
    return 0;
}

static int64_t act(struct node *node)
{
    switch (below(node, 18)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4: return yield_or_sleep(node);
    case 5: shielded(node); return 0;
    case 6:
    case 7: return blocking(node);
    case 8:
        if (below(node, 4) == 0) (void)janus_nursery_cancel(node->nursery);
        return 0;
    case 9:
        if (below(node, 4) == 0) return failed(node, -5 - (int64_t)below(node, 3));
        return 0;
    case 10:
        doing(node, "panicking");
        if (below(node, 6) == 0) janus_panic((failed(node, 0), "on purpose"));
        return 0;
    case 11:
        doing(node, "overflowing");
        return !JRT_TSAN && below(node, 40) == 0 ? dig(failed(node, 0)) : 0;
    case 16: return shielded_until(node);
    case 17: return at_waitpoint(node);
    case 12: return janus_defer(restless_defer, node) == JANUS_OK ? 0 : failed(node, -99);
    default: return 0;
    }
}

/* Scopes. */

static int64_t node_main(void *argument);

/* Starts a child of `parent` in its nursery; `who` starts it, the parent or another child. */
static bool grow(struct node *who, struct node *parent, janus_nursery *nursery,
                 atomic_int *failures, janus_task_id *out_id, struct node **out)
{
    static const janus_priority priorities[] = {JANUS_PRIORITY_DEFAULT, JANUS_PRIORITY_HIGH,
                                                JANUS_PRIORITY_LOW};
    int                         at = atomic_fetch_add(&arena_used, 1);
    if (at >= NODES) return false;
    struct node *node = &arena[at];
    node->random = next_random(&who->random);
    node->parent = parent;
    node->nursery = nursery;
    node->failures = failures;
    atomic_store(&node->depth, atomic_load(&parent->depth) + 1);
    janus_spawn_options *options =
        JANUS_SPAWN_OPTIONS(.priority = priorities[below(who, 3)],
                            .cancel = below(who, 3) == 0 ? JANUS_CANCEL_MODE_UNWIND
                                                         : JANUS_CANCEL_MODE_RETURN,
                            .stack_bytes = below(who, 10) == 0 ? 512 * 1024 : 0);
    janus_status status = below(who, 2) == 0 && out_id == NULL
                              ? janus_spawn(nursery, node_main, node)
                              : janus_spawn_with(nursery, node_main, node, options, out_id);
    bool known = status == JANUS_CLOSED || status == JANUS_FULL || status == JANUS_CANCELLED;
    MUST(status == JANUS_OK || known, "%d", status);
    if (status != JANUS_OK) return false;
    atomic_fetch_add(&spawned, 1);
    if (out != NULL) *out = node;
    return true;
}

static int64_t join_kid(struct node *node, janus_nursery *nursery, janus_task_id id,
                        struct node *kid)
{
    int64_t result = 0;
    doing(node, "joining");
    janus_status status = janus_join(nursery, id, &result);
    if (status == JANUS_CANCELLED) return obey(node, status);
    MUST(status == JANUS_OK || status == JANUS_CHILD_FAILED || status == JANUS_CHILD_CANCELLED,
         "%d", status);
    MUST((status == JANUS_OK) == (result >= 0), "%d, %lld", status, (long long)result);
    MUST(atomic_load(&kid->entered) == atomic_load(&kid->left), "joined before it ended");
    if (status == JANUS_OK) MUST(result == kid->result, "%lld", (long long)result);
    status = janus_join(nursery, id, &result);
    MUST(status == JANUS_STALE, "%d", status);
    return 0;
}

static void check_result(janus_status status, const janus_nursery_result *result, int failures)
{
    MUST(result->errors == (uint64_t)failures, "%llu, not %d failures",
         (unsigned long long)result->errors, failures);
    MUST((status == JANUS_CHILD_FAILED) == (failures > 0), "%d", status);
    if (status == JANUS_CANCELLED) MUST(result->reason != JANUS_CANCEL_REASON_NONE, "no reason");
    if (failures == 0) MUST(status == JANUS_OK || status == JANUS_CANCELLED, "%d", status);
}

static int64_t scope(struct node *node);

/* What the owner does between opening and waiting. */
static int64_t fill(struct node *node, janus_nursery *nursery, atomic_int *failures)
{
    int64_t status = 0;
    for (uint32_t i = below(node, KIDS_MAX); i > 0 && status >= 0; i--) {
        janus_task_id id = 0;
        struct node  *kid = NULL;
        bool          joins = below(node, 5) == 0;
        doing(node, "spawning");
        if (!grow(node, node, nursery, failures, joins ? &id : NULL, &kid)) continue;
        if (joins) status = join_kid(node, nursery, id, kid);
        if (status >= 0 && below(node, 4) == 0) status = act(node);
    }
    if (status >= 0 && below(node, 6) == 0) status = scope(node);
    if (below(node, 15) == 0) (void)janus_nursery_cancel(nursery);
    if (below(node, 10) == 0) (void)janus_nursery_close(nursery);
    return status;
}

static int64_t scope(struct node *node)
{
    janus_nursery          nursery;
    janus_nursery_result   result;
    atomic_int             failures = 0;
    struct slot           *slot = below(node, 3) == 0 ? &slots[below(node, SLOTS)] : NULL;
    uint64_t               soon = janus_now_ns() + below(node, 500) * microsecond;
    janus_nursery_options *options =
        JANUS_NURSERY_OPTIONS(.policy = below(node, 2) == 0 ? JANUS_POLICY_WAIT_ALL
                                                            : JANUS_POLICY_CANCEL_ON_ERROR,
                              .max_children = below(node, 4) == 0 ? 1 + below(node, 3) : 0,
                              .when_full = below(node, 2) == 0 ? JANUS_WHEN_FULL_WAIT : 0,
                              .deadline_ns = below(node, 6) == 0 ? soon : 0);
    if (options->when_full == JANUS_WHEN_FULL_WAIT) atomic_store(&node->waits, 1);
    janus_status opened = janus_nursery_open(&nursery, options);
    MUST(opened == JANUS_OK, "%d", opened);
    int64_t status = fill(node, &nursery, &failures);
    doing(node, "waiting for its nursery");
    if (slot != NULL) {
        publish(slot, &nursery);
        janus_shield_begin(); /* not unwound before it is withdrawn */
        JANUS_IGNORE(janus_nursery_await_with(&nursery, NULL));
        janus_shield_end();
        withdraw(slot, &nursery);
    }
    if (status < 0) janus_shield_begin(); /* a failure on its way out is not unwound */
    janus_status ended = janus_nursery_end(&nursery, &result);
    if (status < 0) janus_shield_end();
    check_result(ended, &result, atomic_load(&failures));
    /* CANCELLED because of this nursery alone: after its end the task is no longer cancelled. */
    return status == JANUS_CANCELLED && !janus_cancelled() ? 0 : status;
}

/* It has exactly one parent, which is alive. */
static void check_parent(struct node *node)
{
    janus_task_info info = JANUS_TASK_INFO();
    MUST(janus_task_inspect_current(&info) == JANUS_OK, "no task");
    MUST(info.nursery == node->nursery, "a child of another nursery");
    node->id = info.id;
    if (node->parent == NULL) {
        MUST(info.parent == 0, "%#llx", (unsigned long long)info.parent);
    } else {
        MUST(info.parent == node->parent->id, "%#llx", (unsigned long long)info.parent);
        MUST(!atomic_load(&node->parent->left), "an orphan");
    }
}

static int64_t node_main(void *argument)
{
    struct node *node = argument;
    MUST(atomic_exchange(&node->entered, 1) == 0, "a task entered twice");
    check_parent(node);
    if (node->parent != NULL) atomic_fetch_add(&node->parent->live_kids, 1);
    MUST(janus_defer(on_leave, node) == JANUS_OK, "no memory");
    void **local = janus_task_local();
    *local = node;
    int64_t status = act(node);
    if (status >= 0 && below(node, 8) == 0 && node->parent != NULL &&
        !atomic_load(&node->parent->waits)) {
        (void)grow(node, node->parent, node->nursery, node->failures, NULL, NULL);
    }
    if (status >= 0 && atomic_load(&node->depth) < DEPTH_MAX) status = scope(node);
    if (status >= 0) status = act(node);
    MUST(*local == node && janus_task_local() == local, "the local pointer");
    if (status < 0) return status;
    node->result = below(node, 1000);
    return node->result;
}

/* Rounds. */

static void check_arena(void)
{
    int used = atomic_load(&arena_used);
    for (int i = 0; i < used && i < NODES; i++) {
        struct node *node = &arena[i];
        MUST(atomic_load(&node->entered) == atomic_load(&node->left), "node %d: %s", i,
             atomic_load(&node->doing));
        MUST(atomic_load(&node->live_kids) == 0, "node %d", i);
    }
}

static bool one_round(janus_scheduler *scheduler, uint64_t random)
{
    janus_nursery        root;
    janus_nursery_result result;
    atomic_int           failures = 0;
    bool                 stops = random % 16 == 0;
    int                  used = atomic_load(&arena_used);
    memset(arena, 0, sizeof(struct node) * (size_t)(used < NODES ? used : NODES));
    atomic_store(&arena_used, 1);
    alarm(STORM_PATIENCE_S);
    rounds++;
    janus_status status = janus_nursery_open_in(scheduler, &root, NULL);
    MUST(status == JANUS_OK, "%d", status);
    arena[0].random = random;
    arena[0].nursery = &root;
    arena[0].failures = &failures;
    status = janus_spawn(&root, node_main, &arena[0]);
    MUST(status == JANUS_OK, "%d", status);
    atomic_fetch_add(&spawned, 1);
    if (storm_simulated() != 0) {
        atomic_store(&foreign_stop, false);
        if (janus_spawn(&root, foreign_task, &random) == JANUS_OK) atomic_fetch_add(&spawned, 1);
    }
    for (uint64_t i = 0; stops && i < random / 16 % 100000; i++)
        atomic_thread_fence(memory_order_seq_cst);
    if (stops) MUST(janus_scheduler_stop(scheduler) == JANUS_OK, "stop");
    status = janus_nursery_end(&root, &result);
    check_result(status, &result, atomic_load(&failures));
    check_arena();
    return !stops;
}

static void close_scheduler(janus_scheduler *scheduler)
{
    janus_worker_info stats = JANUS_WORKER_INFO();
    MUST(janus_scheduler_stop(scheduler) == JANUS_OK, "stop");
    MUST(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats) == JANUS_OK, "stats");
    MUST(stats.tasks_executed + stats.tasks_cancelled == (uint64_t)atomic_load(&spawned),
         "%llu + %llu of %ld", (unsigned long long)stats.tasks_executed,
         (unsigned long long)stats.tasks_cancelled, atomic_load(&spawned));
    MUST(janus_scheduler_destroy(scheduler) == JANUS_OK, "close");
}

static janus_scheduler *open_scheduler(uint32_t workers, uint64_t random)
{
    janus_scheduler         *scheduler = NULL;
    janus_scheduler_options *options =
        JANUS_SCHEDULER_OPTIONS(.worker_count = workers, .max_tasks = JANUS_UNLIMITED,
                                .deterministic_seed = 0, .victims = (janus_victims)(random % 4),
                                .no_stealing = random / 4 % 8 == 0, .max_blocking_threads = 4);
    atomic_store(&spawned, 0);
    janus_status status = janus_scheduler_create_with(options, &scheduler);
    MUST(status == JANUS_OK, "%d", status);
    status = janus_scheduler_start(scheduler);
    MUST(status == JANUS_OK, "%d", status);
    return scheduler;
}

static void run(uint32_t workers, double seconds)
{
    uint64_t         random = seed + workers;
    uint64_t         before = rounds;
    janus_scheduler *scheduler = open_scheduler(workers, next_random(&random));
    uint64_t         end = storm_end(seconds);
    for (uint64_t number = 0; storm_again(number / 8, end); number++) {
        if (one_round(scheduler, next_random(&random))) continue;
        close_scheduler(scheduler);
        scheduler = open_scheduler(workers, next_random(&random));
    }
    close_scheduler(scheduler);
    printf("# %u workers: %llu rounds\n", workers, (unsigned long long)(rounds - before));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const uint32_t worker_counts[] = {1, 2, 8};
    double                seconds = storm_seconds(argc, argv, 0.5);
    storm_begin(argc > 2 ? argv[2] : NULL);
    uint32_t only = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
    signal(SIGALRM, on_alarm);
    for (int i = 0; i < SLOTS; i++) pthread_mutex_init(&slots[i].lock, NULL);
    pthread_t foreign;
    uint64_t  random = ~seed;
    bool      thread = storm_simulated() == 0;
    if (thread) MUST(pthread_create(&foreign, NULL, foreign_main, &random) == 0, "a thread");
    for (int i = 0; i < 3; i++) {
        if (only == 0 || only == worker_counts[i]) run(worker_counts[i], seconds);
    }
    atomic_store(&foreign_stop, true);
    if (thread) pthread_join(foreign, NULL);
    printf("ok 1 - every task ended once, in its nursery, and nothing hung\n1..1\n");
    return 0;
}
