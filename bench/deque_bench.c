/* SPDX-License-Identifier: MIT */
/*
 * What does it cost to queue a task and take it again?
 *
 * Timed: for each item, a push and the call that takes it off. Alone: pop with more items below,
 *        pop of the last item, the owner taking from the top. Contended: the owner pushes while a
 *        thief takes; two thieves empty a deque; the owner pops while a thief steals.
 * Moves it: the locked instruction in pop, the second one for the last item, the one in steal, and
 *        cache lines that travel between cores.
 * Expect: 2 to 5 ns alone, the price of the locked instructions. 7 to 30 ns if lines travel.
 */
#include "bench.h"
#include "sched/deque.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { ITEMS = 1000000, BATCH = 32 };

static struct jrt_deque deque;
static int              item; /* only its address is used */
static atomic_bool      at_line;

static void push(void)
{
    if (!jrt_deque_push(&deque, &item)) abort();
}

static double per_item(uint64_t start) { return (double)(bench_now_ns() - start) / (double)ITEMS; }

static double run_pair(void)
{
    push(); /* an item below, so that the popped one is not the last */
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ITEMS; i++) {
        push();
        if (jrt_deque_pop(&deque) == NULL) abort();
    }
    double spent = per_item(start);
    (void)jrt_deque_pop(&deque);
    return spent;
}

static double run_last(void)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ITEMS; i++) {
        push();
        if (jrt_deque_pop(&deque) == NULL) abort();
    }
    return per_item(start);
}

static double run_batch(void)
{
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ITEMS / BATCH; i++) {
        for (int j = 0; j < BATCH; j++) push();
        for (int j = 0; j < BATCH; j++) {
            if (jrt_deque_pop(&deque) == NULL) abort();
        }
    }
    return per_item(start);
}

static double run_own_top(void)
{
    bool     lost;
    uint64_t start = bench_now_ns();
    for (int i = 0; i < ITEMS / BATCH; i++) {
        for (int j = 0; j < BATCH; j++) push();
        for (int j = 0; j < BATCH; j++) {
            if (jrt_deque_steal(&deque, &lost) == NULL) abort();
        }
    }
    return per_item(start);
}

/* The thief waits at the line. The clock starts when it is released. */
static void wait_at_line(void)
{
    atomic_store(&at_line, true);
    while (atomic_load(&at_line)) continue;
}

static uint64_t let_go(void)
{
    while (!atomic_load(&at_line)) sched_yield();
    uint64_t start = bench_now_ns();
    atomic_store(&at_line, false);
    return start;
}

/* Steals `*wanted` items. */
static void *steal_count(void *wanted)
{
    int left = *(const int *)wanted;
    wait_at_line();
    while (left > 0) {
        bool lost;
        if (jrt_deque_steal(&deque, &lost) != NULL) left--;
    }
    return NULL;
}

/* Takes items until the deque is empty. */
static void *steal_all(void *unused)
{
    bool  lost;
    void *got;
    (void)unused;
    wait_at_line();
    do got = jrt_deque_steal(&deque, &lost);
    while (got != NULL || lost);
    return NULL;
}

static pthread_t start_thread(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, argument) != 0) abort();
    return thread;
}

static double run_handoff(void)
{
    static const int all = ITEMS;
    pthread_t        thief = start_thread(steal_count, (void *)(uintptr_t)&all);
    uint64_t         start = let_go();
    for (int i = 0; i < ITEMS; i++) push();
    pthread_join(thief, NULL);
    return per_item(start);
}

static double run_two_thieves(void)
{
    for (int i = 0; i < ITEMS; i++) push();
    pthread_t thief = start_thread(steal_all, NULL);
    uint64_t  start = let_go();
    bool      lost = true;
    void     *got = NULL;
    do got = jrt_deque_steal(&deque, &lost);
    while (got != NULL || lost);
    pthread_join(thief, NULL);
    return per_item(start);
}

static double run_both_ends(void)
{
    for (int i = 0; i < ITEMS; i++) push();
    pthread_t thief = start_thread(steal_all, NULL);
    uint64_t  start = let_go();
    while (jrt_deque_pop(&deque) != NULL) continue;
    pthread_join(thief, NULL);
    return per_item(start);
}

int main(void)
{
    struct contender contenders[] = {
        {.name = "push, pop", .run = run_pair},
        {.name = "push, pop of the last item", .run = run_last},
        {.name = "32 pushes, 32 pops", .run = run_batch},
        {.name = "32 pushes, 32 from the own top", .run = run_own_top},
        {.name = "owner pushes, a thief steals", .run = run_handoff},
        {.name = "two thieves empty a full deque", .run = run_two_thieves},
        {.name = "owner pops, a thief steals", .run = run_both_ends},
    };
    if (!jrt_deque_init(&deque)) return 1;
    puts("One item through a worker's deque:");
    bench_race("deque", contenders, sizeof contenders / sizeof contenders[0]);
    jrt_deque_fini(&deque);
    return 0;
}
