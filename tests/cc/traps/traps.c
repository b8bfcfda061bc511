/* SPDX-License-Identifier: MIT */
/*
 * What ordinary C may do wrong where a check yields: thread-locals, locks, jumps, frames, code
 * outside of tasks. `janusrt cc` compiles this file at every level.
 */
#define RIG_TURN_NS JANUS_TURN_NS
#include "rig.h"

#include <errno.h>
#include <janusrt/counted.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile int zero; /* the compiler does not know it */

/* Some thousand ops in a loop that the compiler cannot remove. Others run meanwhile. */
static uint64_t turn_over(uint64_t value)
{
    for (int i = 0; i < 20000; i++) value = value * 3 + (uint64_t)zero;
    return value;
}

/* Runs `entry` in nine tasks on two workers. */
static int64_t nine(void *argument)
{
    janus_entry *const *entry = argument;
    janus_nursery       n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 9; i++) CHECK_EQ(janus_spawn(&n, *entry, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

/* Runs a task whose pools may have many ops, on one worker. */
static void run_rich(const janus_budget *most, janus_entry *entry, void *argument)
{
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .max_budget = most));
    rig_do(scheduler, entry, argument);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* The thread-locals of a task that goes on elsewhere. */

struct move {
    janus_entry *entry; /* first, for nine() */
    atomic_long  rounds, moves, wrong;
};

/* Repeats until tasks have often come back from a check on another thread. */
static void until_moved(janus_entry *entry, struct move *move)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    move->entry = entry;
    while (atomic_load(&move->moves) < 100) {
        rig_run(2, nine, move, 20);
        CHECK(janus_now_ns() < limit);
    }
    printf("# %ld moves in %ld rounds, wrong %ld\n", atomic_load(&move->moves),
           atomic_load(&move->rounds), atomic_load(&move->wrong));
}

static atomic_int next_error;

static int64_t keep_errno(void *argument)
{
    struct move *move = argument;
    int          mine = 1000 + atomic_fetch_add(&next_error, 1) % 1000;
    errno = mine;
    for (int i = 0; i < 40; i++) {
        int      thread = gettid();
        uint64_t value = (uint64_t)i;
        for (int j = 0; j < 5000; j++) value = value * 3 + (uint64_t)zero;
        if (errno != mine) atomic_fetch_add(&move->wrong, 1);
        if (gettid() != thread) atomic_fetch_add(&move->moves, 1);
        atomic_fetch_add(&move->rounds, value == UINT64_MAX ? 2 : 1);
        errno = mine;
    }
    return 0;
}

TEST("errno after a check on another thread is the task's own")
{
    struct move move = {.entry = NULL};
    until_moved(keep_errno, &move);
    CHECK_EQ(atomic_load(&move.wrong), 0);
}

static _Thread_local int thread_number;

static int64_t see_thread_local(void *argument)
{
    struct move *move = argument;
    for (int i = 0; i < 40; i++) {
        int before = gettid();
        thread_number = before;
        uint64_t value = (uint64_t)i;
        for (int j = 0; j < 5000; j++) value = value * 3 + (uint64_t)zero;
        /* Now that of this thread: some task wrote it here, or it is 0. */
        int one = gettid(), mine = thread_number, other = gettid();
        if (one != before) atomic_fetch_add(&move->moves, 1);
        if (one == other && one != before && mine == before) atomic_fetch_add(&move->wrong, 1);
        atomic_fetch_add(&move->rounds, value == UINT64_MAX ? 2 : 1);
    }
    return 0;
}

/* By its name. A compiler may keep the address of a thread-local, so janusrt cc warns. */
TEST("a thread-local that is read after a check is that of the thread that runs the task")
{
    struct move move = {.entry = NULL};
    until_moved(see_thread_local, &move);
    CHECK(atomic_load(&move.wrong) * 20 < atomic_load(&move.moves));
}

static int64_t jump_back(void *argument)
{
    struct move  *move = argument;
    jmp_buf       place;
    volatile int  rounds = 0, thread = gettid();
    volatile long sum = 0;
    if (setjmp(place) != 0) {
        rounds = rounds + 1;
        sum = sum + rounds;
    }
    if (gettid() != thread) atomic_fetch_add(&move->moves, 1);
    thread = gettid();
    (void)turn_over(1);
    if (rounds < 20) longjmp(place, 1);
    if (sum != 20 * 21 / 2) atomic_fetch_add(&move->wrong, 1);
    atomic_fetch_add(&move->rounds, 1);
    return 0;
}

TEST("a longjmp works on another thread than its setjmp")
{
    struct move move = {.entry = NULL};
    until_moved(jump_back, &move);
    CHECK_EQ(atomic_load(&move.wrong), 0);
}

/* Locks. */

struct shared {
    pthread_mutex_t lock;
    FILE           *file;
    uint64_t        rounds, sum, most;
};

static int64_t lock_often(void *argument)
{
    struct shared *shared = argument;
    for (uint64_t i = 0; i < shared->most; i++) {
        pthread_mutex_lock(&shared->lock);
        uint64_t sum = shared->sum;
        for (int j = 0; j < 8; j++) sum += (uint64_t)j;
        shared->sum = sum;
        shared->rounds++;
        pthread_mutex_unlock(&shared->lock);
    }
    return 0;
}

static int64_t write_often(void *argument)
{
    struct shared *shared = argument;
    for (uint64_t i = 0; i < shared->most; i++) {
        flockfile(shared->file);
        for (int j = 0; j < 100; j++) putc_unlocked('a' + j % 26, shared->file);
        shared->rounds++;
        funlockfile(shared->file);
        fprintf(shared->file, "%d\n", (int)i);
    }
    return 0;
}

struct pair {
    janus_entry   *entry;
    struct shared *shared;
};

static int64_t two(void *argument)
{
    struct pair  *pair = argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, pair->entry, pair->shared), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("two tasks of one worker lock a mutex half a million times each, and checks do not deadlock")
{
    struct shared shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .most = 500000};
    struct pair   pair = {lock_often, &shared};
    rig_run(1, two, &pair, 1);
    CHECK_EQ(shared.rounds, 2 * shared.most);
    CHECK_EQ(shared.sum, 2 * shared.most * 28);
}

TEST("two tasks of one worker lock a stream")
{
    struct shared shared = {.file = fopen("/dev/null", "w"), .most = 20000};
    struct pair   pair = {write_often, &shared};
    CHECK(shared.file != NULL);
    rig_run(1, two, &pair, 1);
    CHECK_EQ(shared.rounds, 2 * shared.most);
    fclose(shared.file);
}

static int64_t block_signals(void *argument)
{
    struct shared *shared = argument;
    sigset_t       all, before, now;
    sigfillset(&all);
    for (uint64_t i = 0; i < shared->most; i++) {
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, NULL, &now), 0);
        CHECK_EQ(sigismember(&now, SIGPROF), 0); /* the other task has not left its mask here */
        CHECK_EQ(pthread_sigmask(SIG_BLOCK, &all, &before), 0);
        (void)turn_over(i);
        CHECK_EQ(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
        shared->rounds++;
    }
    return 0;
}

TEST("a signal mask that a task blocks for a while is not seen by its neighbour")
{
    struct shared shared = {.most = 500};
    struct pair   pair = {block_signals, &shared};
    rig_run(1, two, &pair, 1);
    CHECK_EQ(shared.rounds, 2 * shared.most);
}

/* Signals. */

static volatile sig_atomic_t handled;

JANUS_NO_OPS static void on_signal(int number)
{
    (void)number;
    for (int i = 0; i < 20000; i++) handled = handled + 1;
}

static int64_t raise_often(void *argument)
{
    uint64_t value = 1;
    for (int i = 0; i < 50; i++) {
        CHECK_EQ(raise(SIGSYS), 0);
        value = turn_over(value);
    }
    return (int64_t)(value == 0 && argument != NULL);
}

TEST("a handler without ops may run on the stack of a task")
{
    struct sigaction action = {.sa_handler = on_signal}, before;
    janus_entry     *entry = raise_often;
    CHECK_EQ(sigaction(SIGSYS, &action, &before), 0);
    handled = 0;
    rig_run(1, nine, &entry, 1);
    CHECK_EQ(handled, 9 * 50 * 20000);
    CHECK_EQ(sigaction(SIGSYS, &before, NULL), 0);
}

/* Cancellation. */

enum { CELLS = 1 << 22 };

struct cut {
    uint32_t  *cells; /* filled from the first on */
    atomic_int begun, defers;
    uint64_t   plain; /* not atomic: the end of the nursery makes it visible */
};

static void note_defer(void *argument) { atomic_fetch_add((atomic_int *)argument, 1); }

static int64_t cut_strip(void *argument)
{
    struct cut *cut = argument;
    CHECK_EQ(janus_defer(note_defer, &cut->defers), JANUS_OK);
    atomic_store(&cut->begun, 1);
    for (;;) {
        memset(cut->cells, 0, 64);
        for (uint32_t i = 0; i < CELLS; i++) cut->cells[i] = i + 1;
        for (uint32_t i = 0; i < CELLS; i++) cut->cells[i] = 0;
    }
    return 0;
}

static int64_t cut_registers(void *argument)
{
    struct cut *cut = argument;
    CHECK_EQ(janus_defer(note_defer, &cut->defers), JANUS_OK);
    atomic_store(&cut->begun, 1);
    for (uint32_t i = 0;; i = (i + 1) % CELLS) {
        cut->plain++;
        if (cut->cells[i] == UINT32_MAX) return 0;
        cut->cells[i]++;
    }
}

__attribute__((noinline)) static void add_one(uint64_t *to) { *to += 1; }

static int64_t cut_calls(void *argument) /* what is owed is paid before the next call */
{
    struct cut *cut = argument;
    CHECK_EQ(janus_defer(note_defer, &cut->defers), JANUS_OK);
    atomic_store(&cut->begun, 1);
    for (uint32_t i = 0;; i = (i + 1) % CELLS) {
        add_one(&cut->plain);
        if (i & 1) add_one(&cut->plain);
        cut->cells[i] = (uint32_t)cut->plain;
    }
}

struct cutting {
    janus_entry *entry;
    struct cut  *cut;
};

static int64_t cancel_it(void *argument)
{
    struct cutting *cutting = argument;
    janus_nursery   n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, cutting->entry, cutting->cut), JANUS_OK);
    CHECK(rig_wait(&cutting->cut->begun));
    for (int i = 0; i < 20; i++) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK_EQ(atomic_load(&cutting->cut->defers), 1);
    return 0;
}

static struct cut *cut_off(janus_entry *entry, uint32_t workers, uint32_t *cells)
{
    static struct cut cut;
    memset(cells, 0, CELLS * sizeof cells[0]);
    cut = (struct cut){.cells = cells};
    rig_run(workers, cancel_it, &(struct cutting){entry, &cut}, 1);
    return &cut;
}

TEST("a task cancelled in a strip, a register loop or between calls runs its defers")
{
    uint32_t *cells = calloc(CELLS, sizeof cells[0]);
    CHECK(cells != NULL);
    for (uint32_t workers = 1; workers <= 2; workers++) {
        (void)cut_off(cut_strip, workers, cells);
        uint64_t changes = 0; /* filled, then empty; or empty, then filled */
        for (uint32_t i = 1; i < CELLS; i++) changes += (cells[i] == 0) != (cells[i - 1] == 0);
        CHECK(changes <= 2);

        const struct cut *cut = cut_off(cut_registers, workers, cells);
        uint64_t          sum = 0;
        for (uint32_t i = 0; i < CELLS; i++) sum += cells[i];
        CHECK(cut->plain > 0);
        CHECK(sum == cut->plain || sum + 1 == cut->plain);

        cut = cut_off(cut_calls, workers, cells);
        uint64_t largest = 0;
        for (uint32_t i = 0; i < CELLS; i++)
            if (cells[i] > largest) largest = cells[i];
        CHECK(cut->plain > 0);
        CHECK(largest <= cut->plain && largest + 2 >= cut->plain);
    }
    free(cells);
}

/* Exhaustion. */

struct filled {
    uint32_t *cells;
    uint64_t  ops;
};

static int64_t fill_cells(void *argument)
{
    struct filled *filled = argument;
    for (uint32_t i = 0; i < CELLS; i++) filled->cells[i] = 1;
    return 0;
}

static int64_t fill_with_budget(void *argument)
{
    struct filled          *filled = argument;
    janus_nursery           n;
    janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
    janus_budget            pool = JANUS_BUDGET(.ops = filled->ops + 1, .spawn_count = 1);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, fill_cells, filled), JANUS_OK);
    JANUS_IGNORE(janus_nursery_await_with(&n, NULL));
    CHECK_EQ(janus_nursery_pool_inspect(&n, &info), JANUS_OK);
    CHECK_EQ(info.spent.ops, filled->ops + 1);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    uint64_t rounds = 0;
    while (rounds < CELLS && filled->cells[rounds] == 1) rounds++;
    CHECK(rounds == filled->ops || rounds == filled->ops + 1); /* a round pays at its end */
    for (uint64_t i = rounds; i < CELLS; i++) CHECK_EQ(filled->cells[i], 0);
    return 0;
}

TEST("a loop of strips ends after exactly the rounds that its budget pays")
{
    static const uint64_t budgets[] = {1, 31, 671, 1023, 1024, 1025, 9999, 10007, 99999, 1000003};
    uint32_t             *cells = malloc(CELLS * sizeof cells[0]);
    CHECK(cells != NULL);
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        memset(cells, 0, CELLS * sizeof cells[0]);
        struct filled filled = {cells, budgets[i]};
        janus_budget  most = janus_budget_of(UINT64_C(1) << 40, 1 << 30, 1000, 1000, 1000);
        run_rich(&most, fill_with_budget, &filled);
    }
    free(cells);
}

static int64_t cost_much(void *argument)
{
    janus_op((uint64_t)1 << (40 + zero));
    return argument != NULL;
}

static int64_t set_much(void *argument)
{
    size_t bytes = (size_t)1 << 26;
    char  *block = calloc(1, bytes);
    CHECK(block != NULL);
    CHECK_EQ(janus_defer(free, block), JANUS_OK);
    for (;;) memset(block, argument != NULL, bytes - (size_t)zero);
    return 0;
}

static int64_t cost_too_much(void *argument)
{
    janus_entry *const *entry = argument;
    janus_nursery       n;
    janus_budget        pool = JANUS_BUDGET(.ops = 200000, .spawn_count = 1);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, *entry, NULL), JANUS_OK);
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, JANUS_BUDGET_EXHAUSTED);
    return 0;
}

TEST("a cost above every slice ends a task that cannot pay")
{
    janus_budget most = janus_budget_of(UINT64_C(1) << 40, 1 << 30, 1000, 1000, 1000);
    janus_entry *one = cost_much, *other = set_much;
    run_rich(&most, cost_too_much, &one);
    run_rich(&most, cost_too_much, &other);
}

/* Counts with many changes of thread. */

enum { YIELDS = 37 };

static int64_t yield_in_loop(void *argument)
{
    for (int i = 0; i < YIELDS; i++) JANUS_IGNORE(janus_yield());
    return argument == NULL;
}

static int64_t yield_and_move(void *argument) /* 3 ops: the calls */
{
    int     thread = gettid();
    int64_t result = yield_in_loop(argument);
    if (gettid() != thread) atomic_fetch_add((atomic_long *)argument, 1);
    return result;
}

static int64_t many_nurseries(void *argument)
{
    for (int i = 0; i < 1500; i++) {
        janus_nursery           n;
        janus_nursery_pool_info info = JANUS_NURSERY_POOL_INFO();
        janus_budget            pool = JANUS_BUDGET(.ops = 9 * 1000, .spawn_count = 9);
        janus_budget            share = JANUS_BUDGET(.ops = 100);
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.budget = &pool)), JANUS_OK);
        for (int j = 0; j < 9; j++) {
            const janus_spawn_options options = {.struct_bytes = sizeof options, .budget = &share};
            CHECK_EQ(janus_spawn_with(&n, yield_and_move, argument, &options, NULL), JANUS_OK);
        }
        CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_pool_inspect(&n, &info), JANUS_OK);
        CHECK_EQ(info.spent.ops, 9 * (YIELDS + 3 + 1)); /* and the spawn */
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    }
    return 0;
}

static int64_t two_owners(void *argument)
{
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, many_nurseries, argument), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("3000 nurseries of nine tasks that yield in a loop have spent exactly what they cost")
{
    atomic_long moves = 0;
    uint64_t    limit = janus_now_ns() + rig_patience;
    for (int runs = 0; runs == 0 || atomic_load(&moves) < 1000; runs++) {
        rig_run(2, two_owners, &moves, 1);
        CHECK(janus_now_ns() < limit);
    }
    printf("# %ld tasks came back on another thread\n", atomic_load(&moves));
}

/* Outside of tasks. */

static uint64_t constructed, at_thread;

__attribute__((constructor)) static void construct(void)
{
    uint64_t value = 1;
    for (int i = 0; i < 50; i++) value = turn_over(value);
    constructed = value;
}

static void at_the_end(void)
{
    uint64_t value = 1;
    for (int i = 0; i < 50; i++) value = turn_over(value);
    if (value != constructed) _exit(9);
}

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void *on_thread(void *argument)
{
    static uint32_t list[20000];
    for (uint32_t i = 0; i < 20000; i++) list[i] = i * 2654435761u;
    qsort(list, 20000, sizeof list[0], by_value);
    for (uint32_t i = 1; i < 20000; i++) CHECK(list[i - 1] <= list[i]);
    memset(list, 0, sizeof list - (size_t)zero);
    construct();
    at_thread = constructed;
    return argument;
}

TEST("constructors, threads and exit handlers run outside of tasks, and never block")
{
    pthread_t thread;
    uint64_t  value = constructed;
    CHECK(value != 0);
    CHECK_EQ(pthread_create(&thread, NULL, on_thread, NULL), 0);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(at_thread, value);
    CHECK_EQ(atexit(at_the_end), 0);
}
