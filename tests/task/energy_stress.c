/* SPDX-License-Identifier: MIT */
/*
 * Random trees of tasks in pools within pools. They pay, allocate, hand memory on, spawn, are
 * exhausted, recharged, cancelled and fail. 1, 2 and 8 workers in turn.
 *
 *     energy_stress [CPU seconds for each number of workers [seed [workers]]]
 *
 * Every task counts what it has paid, for its pool and all around it. When all children of a pool
 * have ended, its books must agree:
 * - no share is out, and all memory is back;
 * - the spent spawns are the spawns that happened;
 * - the spent ops are at least those that were paid, and never more than the pool was given;
 * - they are exactly those if nothing was refused, cancelled or broken off.
 *
 * Debug builds check the bank when the scheduler is closed. The program prints the seed first. The
 * same seed makes the same choices; the machine decides the interleaving.
 */
#include "storm.h"

#include <janusrt/janus.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH_MAX = 4, ROUNDS = 100 };

static atomic_long pools_seen, pools_exact, tasks_seen, recharges, refusals;

static uint64_t below(uint64_t *state, uint64_t bound) { return next_random(state) % bound; }

/* What the tasks count for a pool; in the frame of its nursery's owner. */
struct pool {
    struct pool *around;
    atomic_long  paid; /* ops, also in pools within */
    atomic_long  spawned, entered, left;
    atomic_bool  troubled; /* something was refused, cancelled or failed */
};

/* One task, or a task to come. */
struct node {
    uint64_t       random;
    struct pool   *pool; /* source of its budget; NULL: implicit */
    janus_nursery *nursery;
    int            depth;
};

enum { NODES = 4096 };
static struct node arena[NODES];
static atomic_int  arena_used;

static void pay_into(struct pool *pool, long ops)
{
    for (; pool != NULL; pool = pool->around) atomic_fetch_add(&pool->paid, ops);
}

static void trouble(struct pool *pool)
{
    for (; pool != NULL; pool = pool->around) atomic_store(&pool->troubled, true);
}

/* Children. */

static int64_t node_main(void *argument);

static void spawn_kid(struct node *node, janus_nursery *n, struct pool *pool)
{
    int at = atomic_fetch_add(&arena_used, 1);
    if (at >= NODES) return;
    struct node *kid = &arena[at];
    *kid = (struct node){next_random(&node->random), pool, n, node->depth + 1};
    janus_budget share =
        janus_budget_of(1 + below(&node->random, 3000), below(&node->random, 20000),
                        below(&node->random, 3), below(&node->random, 5), 0);
    janus_spawn_options *options =
        JANUS_SPAWN_OPTIONS(.budget = below(&node->random, 8) != 0 ? &share : NULL,
                            .cancel = below(&node->random, 2) ? JANUS_CANCEL_MODE_UNWIND
                                                              : JANUS_CANCEL_MODE_RETURN);
    if (pool == NULL) options->budget = NULL;
    janus_status status = janus_spawn_with(n, node_main, kid, options, NULL);
    if (status == JANUS_OK) {
        for (struct pool *at_pool = pool; at_pool != NULL; at_pool = at_pool->around) {
            atomic_fetch_add(&at_pool->spawned, 1);
        }
        pay_into(pool, 1);
        return;
    }
    bool known = status == JANUS_SPAWN_BUDGET || status == JANUS_CLOSED ||
                 status == JANUS_CANCELLED || status == JANUS_TASK_LIMIT;
    MUST(known, "%s", janus_status_name(status));
    if (status == JANUS_CANCELLED) trouble(node->pool); /* it costs an op, [cancel-patience] */
    atomic_fetch_add(&refusals, 1);
}

static janus_verdict decide(void *argument, const janus_exhausted *child, janus_budget *grant)
{
    struct pool *pool = argument;
    uint64_t     random = child->task ^ child->granted.ops << 20 ^ seed;
    *grant = janus_budget_of(below(&random, 300), below(&random, 2000), below(&random, 2),
                             below(&random, 5), 0);
    janus_verdict verdict = (janus_verdict)below(&random, 3);
    if (verdict != JANUS_VERDICT_RECHARGE) trouble(pool);
    if (verdict == JANUS_VERDICT_RECHARGE) atomic_fetch_add(&recharges, 1);
    return verdict;
}

/* Recharges, dismisses or ignores exhausted children. */
static void supervise(struct node *node, janus_nursery *n, struct pool *pool)
{
    janus_exhausted child;
    while (janus_nursery_poll_exhausted(n, &child)) {
        janus_status status = JANUS_OK;
        janus_budget more = janus_budget_of(below(&node->random, 500), below(&node->random, 5000),
                                            1, 1, below(&node->random, 2));
        switch (below(&node->random, 4)) {
        case 0:
            trouble(pool);
            status = janus_nursery_cancel_exhausted(n, child.task);
            break;
        case 1: break;
        default: status = janus_nursery_recharge(n, child.task, more); break;
        }
        bool known = status == JANUS_OK || status == JANUS_STALE || status == JANUS_STATE ||
                     status == JANUS_BUDGET_EXHAUSTED;
        MUST(known, "%s", janus_status_name(status));
        if (status == JANUS_OK) atomic_fetch_add(&recharges, 1);
    }
}

/* Pools. */

/* All children have ended. */
static void check_pool(janus_nursery *n, struct pool *pool, const janus_budget *given)
{
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    MUST(janus_nursery_pool_inspect(n, &books) == JANUS_OK, "books");
    janus_budget sum = janus_budget_add(books.left, books.spent);
    MUST(janus_budget_equal(sum, books.granted), "ops %llu + %llu of %llu",
         (unsigned long long)books.left.ops, (unsigned long long)books.spent.ops,
         (unsigned long long)books.granted.ops);
    MUST(janus_budget_is_zero(books.shares) && janus_budget_is_zero(books.nested), "something out");
    MUST(books.left.memory == given->memory && books.granted.memory == given->memory,
         "memory %llu of %llu", (unsigned long long)books.left.memory,
         (unsigned long long)given->memory);
    uint64_t paid = (uint64_t)atomic_load(&pool->paid), spent = books.spent.ops;
    long     spawned = atomic_load(&pool->spawned);
    long     broken = atomic_load(&pool->entered) - atomic_load(&pool->left);
    /* A cancel from further out costs its tasks ops, too, [cancel-patience]. */
    bool exact = !atomic_load(&pool->troubled) && broken == 0 && !janus_cancelled();
    MUST(paid <= spent, "%llu paid, %llu spent", (unsigned long long)paid,
         (unsigned long long)spent);
    MUST(spent <= books.granted.ops, "more than there was");
    MUST(books.spent.spawn_count >= (uint64_t)spawned, "%ld spawned", spawned);
    MUST(books.granted.ops - given->ops <= (uint64_t)spawned * JANUS_SLICE, "made from nothing");
    MUST(books.granted.spawn_count == given->spawn_count, "spawns made from nothing");
    if (exact) {
        MUST(paid == spent, "%llu paid, %llu spent", (unsigned long long)paid,
             (unsigned long long)spent);
        MUST(books.granted.ops == given->ops, "made from nothing");
        atomic_fetch_add(&pools_exact, 1);
    }
    atomic_fetch_add(&pools_seen, 1);
}

static janus_nursery_options choose(struct node *node, struct pool *pool, janus_budget *given)
{
    janus_nursery_options options = {.struct_bytes = sizeof options,
                                     .policy = (janus_policy)below(&node->random, 2)};
    *given = node->pool == NULL
                 ? janus_budget_of(1 + below(&node->random, 90000), below(&node->random, 500000),
                                   below(&node->random, 60), 500, 50)
                 : janus_budget_of(1 + below(&node->random, 2000), below(&node->random, 8000),
                                   below(&node->random, 5), 5, 1);
    options.budget = given;
    options.exhaustion = (janus_exhaustion)(1 + below(&node->random, 3));
    if (below(&node->random, 3) == 0) {
        options.exhaustion = JANUS_EXHAUSTION_SUPERVISE;
        options.on_exhausted = decide;
        options.on_exhausted_argument = pool;
    }
    return options;
}

/* Opens a nursery, usually with a pool of its own, fills it and ends it. */
static void nest(struct node *node)
{
    struct pool           own = {.around = node->pool};
    janus_nursery         n;
    janus_budget          given;
    bool                  pooled = node->pool == NULL || below(&node->random, 4) != 0;
    struct pool          *pool = pooled ? &own : node->pool;
    janus_nursery_options options = choose(node, &own, &given);
    janus_status          status = janus_nursery_open(&n, pooled ? &options : NULL);
    if (status == JANUS_BUDGET_EXHAUSTED) {
        atomic_fetch_add(&refusals, 1);
        return;
    }
    MUST(status == JANUS_OK, "%s", janus_status_name(status));
    uint64_t kids = 1 + below(&node->random, node->pool == NULL ? 12 : 4);
    for (uint64_t i = 0; i < kids; i++) spawn_kid(node, &n, pool);
    for (uint64_t i = below(&node->random, 4); i > 0; i--) {
        JANUS_IGNORE(janus_yield());
        supervise(node, &n, pool);
    }
    if (below(&node->random, 6) == 0) {
        trouble(pool);
        (void)janus_nursery_cancel(&n);
    }
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    if (pooled) check_pool(&n, &own, &given);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

/* What a task does. */

/* OK, or it was cancelled. */
static janus_status pay(struct node *node)
{
    uint64_t     ops = 1 + below(&node->random, 400);
    janus_status status = JANUS_OK;
    if (janus_cancelled()) trouble(node->pool); /* it may pay from its cleanup allowance */
    switch (below(&node->random, 4)) {
    case 0: status = janus_check_n((uint32_t)ops); break;
    case 1: status = janus_charge(janus_price_loop(ops)); break;
    case 2: status = janus_try_charge(janus_price_loop(ops), NULL); break;
    default:
        ops = 1;
        status = janus_charge(janus_price_send());
        break;
    }
    if (status == JANUS_OK) pay_into(node->pool, (long)ops);
    if (status == JANUS_BUDGET_EXHAUSTED) return JANUS_OK; /* a try */
    if (status != JANUS_OK) trouble(node->pool);
    return status;
}

static janus_status use_memory(struct node *node)
{
    size_t size = 1 + below(&node->random, 3000);
    void  *block = NULL;
    if (below(&node->random, 2)) {
        block = janus_alloc(size);
    } else if (janus_try_alloc(size, &block) == JANUS_BUDGET_EXHAUSTED) {
        return JANUS_OK;
    }
    if (block == NULL) {
        trouble(node->pool); /* cancelled; it may have paid the op */
        return JANUS_CANCELLED;
    }
    pay_into(node->pool, 1);
    switch (below(&node->random, 4)) {
    case 0: janus_free(block); break;
    case 1: janus_discard(janus_detach(block)); break;
    case 2:
        block = janus_detach(block);
        if (janus_adopt(block) == JANUS_OK) {
            pay_into(node->pool, 1);
        } else {
            janus_discard(block);
        }
        break;
    default: break; /* it ends with the task */
    }
    return JANUS_OK;
}

static int64_t node_main(void *argument)
{
    struct node *node = argument;
    struct pool *pool = node->pool;
    atomic_fetch_add(&tasks_seen, 1);
    for (struct pool *at = pool; at != NULL; at = at->around) atomic_fetch_add(&at->entered, 1);
    janus_status status = JANUS_OK;
    for (uint64_t i = below(&node->random, 12); i > 0 && status == JANUS_OK; i--) {
        switch (below(&node->random, 8)) {
        case 0:
        case 1: status = use_memory(node); break;
        case 2:
            if (node->depth < DEPTH_MAX) nest(node);
            break;
        case 3: status = janus_yield(); break;
        case 4:
            if (pool != NULL) {
                MUST(janus_budget_recharge(janus_price_loop(1000)) == JANUS_NO_BUDGET_CAP, "%s",
                     "an explicit budget was recharged");
            }
            break;
        default: status = pay(node); break;
        }
    }
    bool fails = below(&node->random, 20) == 0;
    if (status != JANUS_OK || fails) trouble(pool);
    if (janus_cancelled()) trouble(pool); /* each CANCELLED costs an op */
    for (struct pool *at = pool; at != NULL; at = at->around) atomic_fetch_add(&at->left, 1);
    return status != JANUS_OK ? JANUS_CANCELLED : fails ? -7 : 0;
}

static int64_t first(void *argument)
{
    struct node *node = argument;
    for (int i = 0; i < 4; i++) nest(node);
    return 0;
}

static void run(uint32_t workers, double seconds)
{
    uint64_t random = seed + workers;
    uint64_t end = storm_end(seconds);
    for (uint64_t number = 0; storm_again(number, end); number++) {
        janus_scheduler *scheduler = NULL;
        alarm(STORM_PATIENCE_S);
        MUST(janus_scheduler_create_with(
                 JANUS_SCHEDULER_OPTIONS(.worker_count = workers,
                                         .max_tasks = 10 + below(&random, 200)),
                 &scheduler) == JANUS_OK,
             "open");
        MUST(janus_scheduler_start(scheduler) == JANUS_OK, "start");
        for (uint64_t i = 0; i < ROUNDS && (i == 0 || storm_again(i, end)); i++) {
            janus_nursery root;
            struct node   node = {.random = next_random(&random)};
            rounds++;
            atomic_store(&arena_used, 0);
            MUST(janus_nursery_open_in(scheduler, &root, NULL) == JANUS_OK, "open");
            MUST(janus_spawn(&root, first, &node) == JANUS_OK, "spawn");
            MUST(janus_nursery_end(&root, NULL) == JANUS_OK, "end");
        }
        MUST(janus_scheduler_destroy(scheduler) == JANUS_OK, "close"); /* the bank balances */
    }
    printf("# %u workers: %llu rounds, %ld tasks, %ld pools (%ld exactly), %ld recharges, "
           "%ld refusals\n",
           workers, (unsigned long long)rounds, atomic_load(&tasks_seen), atomic_load(&pools_seen),
           atomic_load(&pools_exact), atomic_load(&recharges), atomic_load(&refusals));
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const uint32_t worker_counts[] = {1, 2, 8};
    double                seconds = storm_seconds(argc, argv, 0.5);
    storm_begin(argc > 2 ? argv[2] : NULL);
    uint32_t only = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 0) : 0;
    signal(SIGALRM, storm_hangs);
    for (int i = 0; i < 3; i++) {
        if (only == 0 || only == worker_counts[i]) run(worker_counts[i], seconds);
    }
    alarm(0);
    bool seen =
        atomic_load(&pools_exact) > 0 && atomic_load(&recharges) > 0 && atomic_load(&refusals) > 0;
    printf("%s 1 - no unit is lost or made, and no pool gives more than it has\n1..1\n",
           seen ? "ok" : "not ok");
    return !seen;
}
