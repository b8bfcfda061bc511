/* SPDX-License-Identifier: MIT */
/* The model engine finds real mistakes, and only those, and misses none by leaving orders out. */
#include "model.h"

#include "base/rng.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    _Atomic(uint32_t) x, y, z;
    uint32_t          seen[MODEL_THREADS_MAX];
} world;

static void clear(void *state)
{
    (void)state;
    memset(&world, 0, sizeof world);
}

/* Counting without and with an atomic addition. */

static void add_in_two_steps(void *state, int self)
{
    (void)state, (void)self;
    jrt_store_relaxed(&world.x, jrt_load_relaxed(&world.x) + 1);
}

static void add_in_one_step(void *state, int self)
{
    (void)state, (void)self;
    jrt_fetch_add_relaxed(&world.x, 1u);
}

static void both_counted(void *state)
{
    (void)state;
    MODEL_CHECK(world.x == 2);
}

TEST("the engine finds a lost update and prints its steps")
{
    struct model_scenario scenario = {.name = "load, then store",
                                      .setup = clear,
                                      .bodies = {add_in_two_steps, add_in_two_steps},
                                      .names = {"ann", "bob"},
                                      .check = both_counted};
    model_find(&scenario, "world.x == 2");
    struct model_result result = model_explore(&scenario);
    CHECK(strstr(result.failure, "ann        load &world.x") != NULL);
    CHECK(strstr(result.failure, "bob        store &world.x") != NULL);
    scenario.bodies[0] = scenario.bodies[1] = add_in_one_step;
    model_pass(&scenario);
}

TEST("threads without common objects run once, and others in all orders")
{
    struct model_scenario scenario = {
        .name = "two additions each",
        .setup = clear,
        .bodies = {add_in_one_step, add_in_one_step, add_in_one_step}};
    CHECK_EQ(model_explore(&scenario).executions, 6); /* 3! */
    scenario.bodies[2] = NULL;
    scenario.bodies[0] = add_in_two_steps;
    CHECK_EQ(model_explore(&scenario).executions, 3); /* before, between, after */
}

/* Store buffering: each thread writes its own and reads the other's. */

static void write_x_read_y(void *state, int self)
{
    (void)state;
    jrt_store_release(&world.x, 1);
    world.seen[self] = jrt_load_acquire(&world.y);
}

static void write_y_read_x(void *state, int self)
{
    (void)state;
    jrt_store_release(&world.y, 1);
    world.seen[self] = jrt_load_acquire(&world.x);
}

static void write_y_read_x_strongly(void *state, int self)
{
    (void)state;
    jrt_store_seq_cst(&world.y, 1);
    world.seen[self] = jrt_load_seq_cst(&world.x);
}

static void write_x_fence_read_y(void *state, int self)
{
    (void)state;
    jrt_store_relaxed(&world.x, 1);
    jrt_fence_seq_cst();
    world.seen[self] = jrt_load_relaxed(&world.y);
}

static void write_x_membarrier_read_y(void *state, int self)
{
    (void)state;
    jrt_store_relaxed(&world.x, 1);
    model_membarrier();
    world.seen[self] = jrt_load_relaxed(&world.y);
}

static void one_saw_the_other(void *state)
{
    (void)state;
    MODEL_CHECK(world.seen[0] == 1 || world.seen[1] == 1);
}

TEST("two threads that write, then read, may miss each other only if stores come late")
{
    struct model_scenario scenario = {.name = "store buffering",
                                      .setup = clear,
                                      .bodies = {write_x_read_y, write_y_read_x},
                                      .check = one_saw_the_other};
    model_pass(&scenario);
    scenario.memory = MODEL_TSO;
    model_find(&scenario, "world.seen");
    scenario.bodies[1] = write_y_read_x_strongly; /* one side is not enough */
    model_find(&scenario, "world.seen");
    scenario.bodies[0] = write_x_fence_read_y;
    model_pass(&scenario);
}

TEST("a membarrier replaces the missing fence of the other thread")
{
    struct model_scenario scenario = {.name = "asymmetric fences",
                                      .setup = clear,
                                      .bodies = {write_x_membarrier_read_y, write_y_read_x},
                                      .check = one_saw_the_other,
                                      .memory = MODEL_TSO};
    model_pass(&scenario);
    scenario.memory = MODEL_PSO;
    model_pass(&scenario);
}

/* Message passing: data, then a flag. */

static void send_relaxed(void *state, int self)
{
    (void)state, (void)self;
    jrt_store_relaxed(&world.x, 1);
    jrt_store_relaxed(&world.y, 1);
}

static void send_release(void *state, int self)
{
    (void)state, (void)self;
    jrt_store_relaxed(&world.x, 1);
    jrt_store_release(&world.y, 1);
}

static void receive(void *state, int self)
{
    (void)state, (void)self;
    if (jrt_load_acquire(&world.y) == 1) MODEL_CHECK(jrt_load_relaxed(&world.x) == 1);
}

TEST("with unordered stores, a flag that is not released can be seen before its data")
{
    struct model_scenario scenario = {.name = "message passing",
                                      .setup = clear,
                                      .bodies = {send_relaxed, receive},
                                      .memory = MODEL_TSO};
    model_pass(&scenario);
    scenario.memory = MODEL_PSO;
    model_find(&scenario, "world.x");
    scenario.bodies[0] = send_release;
    model_pass(&scenario);
}

/* Waiting. */

static bool x_is_set(void *argument)
{
    (void)argument;
    return atomic_load(&world.x) != 0;
}

static void wait_for_x(void *state, int self)
{
    (void)state, (void)self;
    model_wait_until(x_is_set, NULL);
    MODEL_CHECK(jrt_load_relaxed(&world.x) != 0);
    jrt_store_relaxed(&world.y, 1);
}

static void sleep_on_x(void *state, int self)
{
    (void)state, (void)self;
    while (jrt_load_acquire(&world.x) == 0) model_futex_wait(&world.x, 0);
}

static void set_x(void *state, int self)
{
    (void)state, (void)self;
    jrt_store_release(&world.x, 1);
}

static void set_x_and_wake_one(void *state, int self)
{
    set_x(state, self);
    (void)model_futex_wake(&world.x, 1);
}

static void set_x_and_wake_all(void *state, int self)
{
    set_x(state, self);
    (void)model_futex_wake(&world.x, 9);
}

TEST("a waiting thread goes on when it may, and an endless wait is a failure")
{
    struct model_scenario scenario = {
        .name = "wait until", .setup = clear, .bodies = {wait_for_x, set_x}};
    model_pass(&scenario);
    scenario.bodies[1] = NULL;
    model_find(&scenario, "nobody can go on");
}

TEST("the engine finds a sleeper that no thread wakes, and a sleeper too many")
{
    struct model_scenario scenario = {
        .name = "futex", .setup = clear, .bodies = {sleep_on_x, set_x}};
    model_find(&scenario, "nobody can go on");
    scenario.bodies[1] = set_x_and_wake_one;
    model_pass(&scenario);
    scenario.bodies[2] = sleep_on_x;
    model_find(&scenario, "nobody can go on");
    scenario.bodies[1] = set_x_and_wake_all;
    model_pass(&scenario);
}

static void add_for_ever(void *state, int self)
{
    for (;;) add_in_one_step(state, self);
}

TEST("a thread that never ends is a failure")
{
    struct model_scenario scenario = {.name = "endless", .setup = clear, .bodies = {add_for_ever}};
    model_find(&scenario, "for ever");
}

static uint32_t chosen;

static void choose_twice(void *state, int self)
{
    (void)state, (void)self;
    unsigned first = model_choose(3);
    jrt_fetch_add_relaxed(&world.x, 1u);
    chosen |= 1u << (first * 2 + model_choose(2));
}

TEST("every choice is tried with every other")
{
    struct model_scenario scenario = {.name = "choices", .setup = clear, .bodies = {choose_twice}};
    chosen = 0;
    CHECK_EQ(model_explore(&scenario).executions, 6);
    CHECK_EQ(chosen, 63);
}

static void break_a_contract(void *state, int self)
{
    (void)state, (void)self;
    jrt_contract(jrt_load_relaxed(&world.x) == 0, "x stays zero");
}

TEST("a broken contract of the code under test is a failure of the execution")
{
    struct model_scenario scenario = {
        .name = "contract", .setup = clear, .bodies = {break_a_contract, add_in_one_step}};
    model_find(&scenario, "x stays zero");
}

/* Random programs, with and without reduction: the same outcomes. */

enum { OPS = 3, OUTCOMES_MAX = 4096 };

struct op {
    unsigned verb, object;
};

static struct op program[MODEL_THREADS_MAX][OPS];
static int       program_ops, program_threads;
static uint64_t  outcomes[2][OUTCOMES_MAX];
static size_t    outcome_count[2];
static int       outcome_set;
static int       active; /* threads that neither wait nor have ended */

/* Not for ever: true once no thread is left that could change it. */
static bool x_is_odd_now(void *argument)
{
    (void)argument;
    return world.x % 2 == 1 || active == 0;
}

static void run_program(void *state, int self)
{
    (void)state;
    uint32_t seen = 0;
    for (int i = 0; i < program_ops; i++) {
        const struct op   *op = &program[self][i];
        _Atomic(uint32_t) *object = op->object == 0 ? &world.x : &world.y;
        uint32_t           value = (uint32_t)(1 + self * OPS + i);
        uint32_t           expected = 0;
        switch (op->verb) {
        case 0:
        case 1: seen = seen * 16 + jrt_load_acquire(object); break;
        case 2: jrt_store_relaxed(object, value); break;
        case 3: jrt_store_release(object, value); break;
        case 4: jrt_store_seq_cst(object, value); break;
        case 5: seen = seen * 16 + jrt_exchange_acq_rel(object, value); break;
        case 6: seen = seen * 16 + jrt_cas_seq_cst(object, &expected, value); break;
        case 7: model_membarrier(); break;
        case 8:
            active--;
            model_wait_until(x_is_odd_now, NULL);
            active++;
            break;
        default: model_wait_until(x_is_set, NULL); break;
        }
    }
    world.seen[self] = seen;
    active--;
}

static void open_program(void *state)
{
    clear(state);
    active = program_threads;
}

static void note_outcome(void *state)
{
    (void)state;
    uint64_t hash = world.x * 16 + world.y;
    for (int i = 0; i < MODEL_THREADS_MAX; i++) hash = hash * 1000003 + world.seen[i];
    uint64_t *set = outcomes[outcome_set];
    for (size_t i = 0; i < outcome_count[outcome_set]; i++) {
        if (set[i] == hash) return;
    }
    CHECK(outcome_count[outcome_set] < OUTCOMES_MAX);
    set[outcome_count[outcome_set]++] = hash;
}

static int by_value(const void *left, const void *right)
{
    uint64_t l = *(const uint64_t *)left, r = *(const uint64_t *)right;
    return (l > r) - (l < r);
}

static void compare_on(struct jrt_rng *rng, int threads, int ops, enum model_memory memory,
                       struct model_result total[2])
{
    struct model_scenario scenario = {
        .name = "random", .setup = open_program, .check = note_outcome, .memory = memory};
    program_ops = ops;
    program_threads = threads;
    for (int i = 0; i < threads; i++) {
        scenario.bodies[i] = run_program;
        for (int j = 0; j < ops; j++) {
            program[i][j] = (struct op){jrt_rng_below(rng, i == 0 ? 9 : 10), jrt_rng_below(rng, 2)};
        }
    }
    program[0][0] = (struct op){4, 0}; /* so that no thread waits for ever */
    for (outcome_set = 0; outcome_set < 2; outcome_set++) {
        outcome_count[outcome_set] = 0;
        scenario.every = outcome_set == 0;
        struct model_result result = model_explore(&scenario);
        CHECK(result.failure == NULL);
        total[outcome_set].executions += result.executions;
        total[outcome_set].redundant += result.redundant;
        qsort(outcomes[outcome_set], outcome_count[outcome_set], sizeof(uint64_t), by_value);
    }
    CHECK_EQ(outcome_count[0], outcome_count[1]);
    CHECK(memcmp(outcomes[0], outcomes[1], outcome_count[0] * sizeof(uint64_t)) == 0);
}

static void compare(int programs, int threads, int ops, enum model_memory memory)
{
    struct jrt_rng      rng;
    struct model_result total[2] = {{0}, {0}};
    jrt_rng_seed(&rng, 1);
    for (int i = 0; i < programs; i++) compare_on(&rng, threads, ops, memory, total);
    printf("# %d programs: %llu executions, reduced to %llu (%llu redundant)\n", programs,
           (unsigned long long)total[0].executions, (unsigned long long)total[1].executions,
           (unsigned long long)total[1].redundant);
}

#if JRT_ASAN || JRT_TSAN || defined(__aarch64__)
enum { PROGRAMS = 20 };
#else
enum { PROGRAMS = 300 };
#endif

TEST("reduction loses no outcome if stores are seen at once") { compare(PROGRAMS, 3, 3, MODEL_SC); }

TEST("reduction loses no outcome if stores come late")
{
    compare(PROGRAMS, 2, 3, MODEL_TSO);
    compare(PROGRAMS / 5, 3, 2, MODEL_TSO);
}

TEST("reduction loses no outcome if stores come late and out of order")
{
    compare(PROGRAMS, 2, 3, MODEL_PSO);
    compare(PROGRAMS / 5, 3, 2, MODEL_PSO);
}
