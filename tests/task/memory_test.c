/* SPDX-License-Identifier: MIT */
/* Memory of tasks: its cost, its owner, and that it is freed when they end. */
#include "energy.h"

static janus_memory_info memory(void)
{
    janus_memory_info info = JANUS_MEMORY_INFO();
    CHECK_EQ(janus_memory_inspect(&info), JANUS_OK);
    return info;
}

/* Runs one child with this budget and awaits it. Returns the nursery's status. */
static janus_status run_child(janus_entry *entry, void *argument, const janus_budget *share)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.name = "one")), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, entry, argument, JANUS_SPAWN_OPTIONS(.budget = share), NULL),
             JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t pairs(void *argument)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, 4096, 40000, 300000};
    (void)argument;
    uint64_t start = janus_budget_get_current().memory;
    for (int i = 0; i < 9000; i++) {
        size_t size = sizes[i % 9], cost = size == 0 ? 16 : (size + 15) / 16 * 16;
        char  *block = janus_alloc(size);
        CHECK(block != NULL && (uintptr_t)block % 16 == 0);
        CHECK_EQ(start - janus_budget_get_current().memory, cost);
        CHECK_EQ(memory().live_bytes, cost);
        if (size > 0) block[0] = block[size - 1] = 1;
        janus_free(block);
    }
    CHECK_EQ(janus_budget_get_current().memory, start);
    CHECK_EQ(memory().live_bytes, 0);
    return 0;
}

/* C49, SCHED:3.3.1/allocation. */
TEST("after any number of allocations and frees the memory budget is what it was")
{
    rig_all(pairs, NULL, 1);
}

static int64_t one_op_left(void *argument)
{
    char *block = janus_alloc(100);
    CHECK(block != NULL);
    memset(block, 7, 100);
    CHECK_EQ(block[99], 7);
    check_budget(janus_budget_get_current(), 0, 1024 - 112, 0, 0, 0);
    atomic_fetch_add((atomic_int *)argument, 1);
    JANUS_IGNORE(janus_check());
    atomic_fetch_add((atomic_int *)argument, 1);
    return 0;
}

static int64_t last_op(void *argument)
{
    atomic_int   passed = 0;
    janus_budget share = janus_budget_of(1, 1024, 0, 0, 0);
    (void)argument;
    CHECK_EQ(run_child(one_op_left, &passed, &share), JANUS_CHILD_FAILED);
    CHECK_EQ(passed, 1);
    return 0;
}

/* SCHED:4.1.1/4, C43. */
TEST("with one op an allocation succeeds, and the next operation exhausts the task")
{
    rig_all(last_op, NULL, 5);
}

static int64_t over_budget(void *argument)
{
    atomic_int *passed = argument;
    void       *block = NULL, *before = &block;
    void       *out = before;
    CHECK_EQ(janus_try_alloc(1025, &out), JANUS_BUDGET_EXHAUSTED);
    CHECK(out == before);
    check_explained("memory, 0 of 1024 used", "JANUS_BUDGET_EXHAUSTED");
    check_budget(janus_budget_get_current(), 100, 1024, 0, 0, 0); /* nothing was taken */
    CHECK_EQ(janus_try_alloc(1024, &out), JANUS_OK);
    CHECK_EQ(janus_try_alloc(1, &block), JANUS_BUDGET_EXHAUSTED);
    CHECK_EQ(janus_try_alloc(1, NULL), JANUS_INVALID);
    janus_free(out);
    CHECK_EQ(memory().live_bytes, 0);
    atomic_fetch_add(passed, 1);
    block = janus_alloc(1025); /* this waits, and ends */
    atomic_fetch_add(passed, block == NULL ? 10 : 100);
    return 0;
}

static int64_t memory_exhausts(void *argument)
{
    atomic_int    passed = 0;
    janus_nursery n;
    janus_budget  share = janus_budget_of(100, 1024, 0, 0, 0);
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, over_budget, &passed, JANUS_SPAWN_OPTIONS(.budget = &share), NULL),
        JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(failure_of(&n).lacks, JANUS_COMPONENT_MEMORY);
    check_failure_says(&n, "memory, 0 of 1024 used", "JANUS_BUDGET_EXHAUSTED");
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(passed, 1);
    return 0;
}

/* SCHED:14.1.1/MemoryBudgetExhausted, C43. */
TEST("over budget a try names the component and takes nothing, and an allocation exhausts the task")
{
    rig_all(memory_exhausts, NULL, 5);
}

static int64_t grow(void *argument)
{
    (void)argument;
    char *block = janus_realloc(NULL, 10);
    CHECK(block != NULL);
    memcpy(block, "123456789", 10);
    for (size_t size = 16; size <= 65536; size *= 2) {
        block = janus_realloc(block, size);
        CHECK(block != NULL);
        CHECK_EQ(memory().live_bytes, size);
        CHECK_STR(block, "123456789");
    }
    block = janus_realloc(block, 10);
    CHECK_STR(block, "123456789");
    CHECK_EQ(memory().live_bytes, 16);
    CHECK_EQ(janus_budget_get_current().memory, (1 << 20) - 16);
    int64_t *zeros = janus_alloc_zeroed(100, 8);
    for (int i = 0; i < 100; i++) CHECK_EQ(zeros[i], 0);
    volatile size_t most = SIZE_MAX / 2;
    CHECK(janus_alloc_zeroed(most, 4) == NULL);
    char *page = janus_alloc_aligned(4096, 100);
    CHECK(page != NULL && (uintptr_t)page % 4096 == 0);
    CHECK(janus_alloc_aligned(48, 100) == NULL);
    janus_free(page);
    janus_free(zeros);
    janus_free(block);
    janus_free(NULL);
    CHECK_EQ(janus_budget_get_current().memory, 1 << 20);
    return 0;
}

TEST("a block grows and shrinks, and the budget with it") { rig_all(grow, NULL, 3); }

/* However the task ends. */

enum ending { RETURNS, FAILS, PANICS, OVERFLOWS, UNWINDS, EXHAUSTS, ENDINGS };

static int64_t deepen(const volatile int *above, int depth)
{
    volatile int here[128];
    here[0] = above != NULL ? above[0] : 1;
    return depth == 0 ? 0 : deepen(here, depth - 1) + here[0];
}

static int64_t allocate_and_end(void *argument)
{
    enum ending how = *(enum ending *)argument;
    for (int i = 0; i < 200; i++) CHECK(janus_alloc((size_t)i * 10) != NULL);
    CHECK(janus_alloc(400000) != NULL);
    CHECK(memory().live_bytes >= 400000 + 199000);
    CHECK(memory().held_bytes >= memory().live_bytes);
    CHECK(memory().stack_bytes >= 8192 && memory().record_bytes > 0);
    switch (how) {
    case RETURNS: return 0;
    case FAILS: return -7;
    case PANICS: janus_panic("for the test");
    case OVERFLOWS: return deepen(NULL, 1 << 30);
    case UNWINDS:
        for (;;) JANUS_IGNORE(janus_yield());
    case EXHAUSTS: return janus_alloc(1 << 20) != NULL;
    case ENDINGS: break;
    }
    return 0;
}

static void end_so(enum ending how)
{
    janus_nursery n;
    janus_budget  pool = janus_budget_of(100000, UINT64_C(4) << 20, 8, 0, 0);
    janus_budget  share = janus_budget_of(20000, 1 << 20, 0, 0, 0);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool,
                                                          .policy = JANUS_POLICY_WAIT_ALL,
                                                          .exhaustion = JANUS_EXHAUSTION_MANUAL)),
             JANUS_OK);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(janus_spawn_with(
                     &n, allocate_and_end, &how,
                     JANUS_SPAWN_OPTIONS(.budget = &share, .cancel = JANUS_CANCEL_MODE_UNWIND),
                     NULL),
                 JANUS_OK);
    }
    if (how == UNWINDS) {
        for (int i = 0; i < 5; i++) CHECK_EQ(janus_yield(), JANUS_OK);
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    }
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    janus_nursery_pool_info books = books_of(&n);
    CHECK_EQ(books.left.memory, pool.memory); /* all of it is back */
    CHECK_EQ(books.spent.memory, 0);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
}

static int64_t all_endings(void *argument)
{
    (void)argument;
    for (int how = 0; how < ENDINGS; how++) {
        if (how == OVERFLOWS && JRT_TSAN) continue; /* RIG_OVERFLOWS */
        end_so((enum ending)how);
    }
    return 0;
}

/* C14, SCHED:8.3.1/4. Leaks are the sanitizers' to find. */
TEST("the memory of a task is freed and back in its pool, however the task ends")
{
    rig_all(all_endings, NULL, 3);
}

/* Handing on. */

struct parcel {
    char *_Atomic text;
    size_t size;
};

static int64_t produce(void *argument)
{
    struct parcel *parcel = argument;
    char          *text = janus_alloc(parcel->size);
    CHECK(text != NULL);
    memset(text, 'x', parcel->size);
    uint64_t before = janus_budget_get_current().memory;
    text = janus_detach(text);
    CHECK(text != NULL);
    CHECK_EQ(janus_budget_get_current().memory, before); /* until it is adopted or discarded */
    CHECK_EQ(memory().live_bytes, 0);
    atomic_store(&parcel->text, text);
    return 0;
}

static int64_t consume(void *argument)
{
    struct parcel *parcel = argument;
    char          *text;
    while ((text = atomic_load(&parcel->text)) == NULL) CHECK_EQ(janus_yield(), JANUS_OK);
    uint64_t before = janus_budget_get_current().memory;
    CHECK_EQ(janus_adopt(text), JANUS_OK);
    CHECK_EQ(before - janus_budget_get_current().memory, (parcel->size + 15) / 16 * 16);
    CHECK(text[0] == 'x' && text[parcel->size - 1] == 'x');
    if (parcel->size % 2 == 0) janus_free(text); /* otherwise it ends with the task */
    return 0;
}

static int64_t hand_on(void *argument)
{
    static const size_t sizes[] = {16, 33, 1000, 5001, 100000, 300001};
    (void)argument;
    for (int i = 0; i < 6; i++) {
        struct parcel to_sibling = {.size = sizes[i]}, to_parent = {.size = sizes[i]};
        struct parcel to_nobody = {.size = sizes[i]};
        janus_status  ended;
        JANUS_NURSERY(n, ended)
        {
            CHECK_EQ(janus_spawn(n, consume, &to_sibling), JANUS_OK);
            CHECK_EQ(janus_spawn(n, produce, &to_sibling), JANUS_OK);
            CHECK_EQ(janus_spawn(n, produce, &to_parent), JANUS_OK);
            CHECK_EQ(janus_spawn(n, produce, &to_nobody), JANUS_OK);
        }
        CHECK_EQ(ended, JANUS_OK);
        CHECK_EQ(consume(&to_parent), 0); /* its maker has ended */
        janus_discard(to_nobody.text);
    }
    CHECK_EQ(janus_adopt(NULL), JANUS_OK);
    janus_discard(NULL);
    CHECK(janus_detach(NULL) == NULL);
    return 0;
}

TEST("a block handed to a sibling, to the parent or to nobody is charged to one task at a time")
{
    rig_all(hand_on, NULL, 10);
}

static int64_t adopt_too_much(void *argument)
{
    struct parcel *parcel = argument;
    janus_budget   before = janus_budget_get_current();
    CHECK_EQ(janus_adopt(parcel->text), JANUS_BUDGET_EXHAUSTED);
    check_explained(before.ops == 0 ? "ops" : "memory", "JANUS_BUDGET_EXHAUSTED");
    CHECK(janus_budget_equal(janus_budget_get_current(), before));
    return 0;
}

static int64_t refuse_adoption(void *argument)
{
    struct parcel parcel = {.size = 2000};
    janus_budget  small = janus_budget_of(100, 1999, 0, 0, 0), no_ops = {0, 4000, 0, 0, 0};
    (void)argument;
    CHECK_EQ(produce(&parcel), 0);
    CHECK_EQ(run_child(adopt_too_much, &parcel, &small), JANUS_OK);
    CHECK_EQ(run_child(adopt_too_much, &parcel, &no_ops), JANUS_OK);
    CHECK_EQ(janus_adopt(parcel.text), JANUS_OK); /* it has paid for it all the time */
    CHECK_EQ(memory().live_bytes, 2000);
    janus_free(parcel.text);
    return 0;
}

TEST("an adoption that cannot be paid changes nothing") { rig_all(refuse_adoption, NULL, 5); }

static void *discard_outside(void *argument)
{
    janus_discard(argument);
    return NULL;
}

static int64_t allocate_on(void *argument)
{
    (void)count_me(argument);
    for (;;) {
        void *block = janus_alloc(64);
        if (block == NULL) return JANUS_CANCELLED;
        janus_free(block);
    }
}

static int64_t cancel_allocating(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    begun = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, allocate_on, &begun), JANUS_OK);
    CHECK(rig_wait(&begun));
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

/* NSM:4.3/d. */
TEST("a loop of allocations notices that it is cancelled") { rig_all(cancel_allocating, NULL, 5); }

/* Detached blocks are limited, too. */

enum { ADRIFT = 70 };

static int64_t set_one_adrift(void *argument)
{
    void **out = argument;
    void  *block = janus_alloc((size_t)1 << 20);
    CHECK(block != NULL);
    *out = janus_detach(block);
    if (*out != NULL) return 0;
    char text[400];
    CHECK(janus_explain(text, sizeof text) > 0);
    CHECK(strstr(text, "memory") != NULL && strstr(text, "JANUS_BUDGET_EXHAUSTED") != NULL);
    memset(block, 1, (size_t)1 << 20); /* still here; it ends with the task */
    return 0;
}

/* A task that ends detaches each: while it lives, it pays itself. */
static int64_t set_adrift(void *argument)
{
    void       **blocks = argument;
    janus_budget pool = janus_budget_of(100000, 4 << 20, 4, 0, 0);
    for (int i = 0; i < ADRIFT; i++) {
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, set_one_adrift, &blocks[i]), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        if (blocks[i] != NULL) continue;
        void *other = NULL; /* other schedulers do not miss what these have used up */
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, set_one_adrift, &other), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK(other != NULL);
        janus_discard(other);
        return i;
    }
    return -1;
}

enum { CRUMBS = 500 };

/* Keeps one block of sixteen bytes of each chunk. */
static int64_t keep_crumbs(void *argument)
{
    void **crumbs = argument;
    for (int i = 0; i < CRUMBS; i++) {
        void *rest[60];
        crumbs[i] = janus_alloc(16);
        for (int k = 0; k < 60; k++) rest[k] = janus_alloc(1000);
        crumbs[i] = janus_detach(crumbs[i]);
        CHECK(crumbs[i] != NULL);
        for (int k = 0; k < 60; k++) janus_free(rest[k]);
    }
    CHECK(memory().held_bytes < (size_t)1 << 20);
    return 0;
}

TEST("a small detached block keeps only itself alive")
{
    void *crumbs[CRUMBS];
    rig_run(2, keep_crumbs, crumbs, 1);
    for (int i = 0; i < CRUMBS; i++) janus_discard(crumbs[i]);
}

TEST("detached blocks have a limit, and a task that reaches it keeps its block")
{
    const janus_budget each = JANUS_BUDGET(.memory = (uint64_t)2 << 20);
    void              *blocks[ADRIFT];
    int64_t            kept = 0;
    for (int turn = 0; turn < 2; turn++) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = 2, .max_tasks = 4,
                                                   .task_budget = &each),
                           set_adrift, blocks, &kept),
                 JANUS_OK);
        CHECK_EQ(kept, 64);
        for (int i = 0; i < kept; i++) janus_discard(blocks[i]);
    }
}

TEST("a plain thread discards, and owns nothing")
{
    struct parcel     parcel = {.size = 5000};
    janus_memory_info info = JANUS_MEMORY_INFO();
    void             *out = NULL;
    rig_run(2, produce, &parcel, 1);
    CHECK(discard_outside(parcel.text) == NULL);
    CHECK(janus_alloc(16) == NULL);
    CHECK_EQ(janus_try_alloc(16, &out), JANUS_STATE);
    CHECK_EQ(janus_adopt(&info), JANUS_STATE);
    CHECK_EQ(janus_memory_inspect(&info), JANUS_STATE);
    CHECK_EQ(janus_memory_inspect(NULL), JANUS_INVALID);
}

static int64_t free_foreign(void *argument)
{
    janus_free(argument);
    return 0;
}

static int64_t own_and_spawn(void *argument)
{
    char *block = janus_alloc(100);
    (void)argument;
    return run_child(free_foreign, block, NULL);
}

TEST("a task that frees another task's block panics")
{
    const janus_scheduler_options *options = JANUS_SCHEDULER_OPTIONS(.quiet_panics = true);
    CHECK_EQ(janus_run(options, own_and_spawn, NULL, NULL), JANUS_CHILD_FAILED);
}

static int64_t hold_locks(void *argument)
{
    static janus_mutex  mutex, deep;
    static janus_rwlock one, two;
    (void)argument;
    janus_mutex_init(&mutex, NULL);
    janus_mutex_init_recursive(&deep, NULL);
    CHECK_EQ(janus_rwlock_init(&one, NULL), JANUS_OK);
    CHECK_EQ(janus_rwlock_init(&two, NULL), JANUS_OK);
    CHECK_EQ(memory().lock_count, 0);
    CHECK_EQ(janus_mutex_lock(&mutex), JANUS_OK);
    CHECK_EQ(memory().lock_count, 1);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_mutex_lock(&deep), JANUS_OK);
    CHECK_EQ(janus_rwlock_read_lock(&one), JANUS_OK);
    CHECK_EQ(janus_rwlock_write_lock(&two), JANUS_OK);
    CHECK_EQ(memory().lock_count, 4);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_mutex_unlock(&deep), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&one), JANUS_OK);
    CHECK_EQ(janus_rwlock_unlock(&two), JANUS_OK);
    CHECK_EQ(memory().lock_count, 1);
    CHECK_EQ(janus_mutex_unlock(&mutex), JANUS_OK);
    CHECK_EQ(memory().lock_count, 0);
    return 0;
}

TEST("a task knows how many locks it holds") { rig_all(hold_locks, NULL, 5); }
