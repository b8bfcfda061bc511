/* SPDX-License-Identifier: MIT */
/* Helpers for tests of budgets: children that spend, and the books of pools. */
#ifndef JANUSRT_TESTS_TASK_ENERGY_H
#define JANUSRT_TESTS_TASK_ENERGY_H

#include "rig.h"

#include <string.h>

/* Counts its passed checks in *argument. It never ends by itself, and ignores every status. */
static inline int64_t spin(void *argument)
{
    atomic_long *count = argument;
    for (;;) {
        JANUS_IGNORE(janus_check());
        if (count != NULL) atomic_fetch_add(count, 1);
    }
    return 0;
}

/* Counts its checks as generated code does them. */
static inline int64_t spin_generated(void *argument)
{
    atomic_long *count = argument;
    for (;;) {
        janus_check_or_end(1);
        if (count != NULL) atomic_fetch_add(count, 1);
    }
    return 0;
}

/* Counts its passed checks, and obeys a cancel. */
static inline int64_t spin_until_told(void *argument)
{
    atomic_long *count = argument;
    while (janus_check() == JANUS_OK) {
        if (count != NULL) atomic_fetch_add(count, 1);
    }
    return JANUS_CANCELLED;
}

static inline void check_budget(janus_budget budget, uint64_t ops, uint64_t memory, uint64_t spawns,
                                uint64_t channel_ops, uint64_t syscalls)
{
    CHECK_EQ(budget.ops, ops);
    CHECK_EQ(budget.memory, memory);
    CHECK_EQ(budget.spawn_count, spawns);
    CHECK_EQ(budget.channel_ops, channel_ops);
    CHECK_EQ(budget.syscalls, syscalls);
}

/* a - b; no component of b is larger. */
static inline janus_budget less(janus_budget a, janus_budget b)
{
    CHECK_EQ(janus_budget_charge(&a, b), JANUS_COMPONENT_NONE);
    return a;
}

/* The books, which must balance. */
static inline janus_nursery_pool_info books_of(janus_nursery *n)
{
    janus_nursery_pool_info books = JANUS_NURSERY_POOL_INFO();
    CHECK_EQ(janus_nursery_pool_inspect(n, &books), JANUS_OK);
    janus_budget sum = janus_budget_add(books.left, books.shares);
    sum = janus_budget_add(janus_budget_add(sum, books.nested), books.spent);
    CHECK(janus_budget_equal(janus_budget_add(sum, books.refunded), books.granted));
    return books;
}

/* Waits until a child is exhausted; the nursery stays open. */
static inline janus_exhausted await_exhausted(janus_nursery *n)
{
    janus_exhausted child;
    uint64_t        limit = janus_now_ns() + rig_patience;
    while (!janus_nursery_poll_exhausted(n, &child)) {
        CHECK(janus_now_ns() < limit);
        if (janus_task_current_id() != 0) JANUS_IGNORE(janus_yield());
    }
    return child;
}

/* The first failure of an awaited nursery. */
static inline janus_failure failure_of(janus_nursery *n)
{
    janus_failure failure;
    CHECK(janus_nursery_failures(n, &failure, 1) >= 1);
    return failure;
}

/* Checks that the message contains the word. */
static inline void check_says(const char *sentence, const char *word)
{
    if (strstr(sentence, word) == NULL) CHECK_STR(sentence, word);
}

static inline void check_explained(const char *word, const char *other)
{
    char text[500];
    CHECK(janus_explain(text, sizeof text) > 0);
    check_says(text, word);
    check_says(text, other);
}

static inline void check_failure_says(janus_nursery *n, const char *word, const char *other)
{
    char          text[500];
    janus_failure failure = failure_of(n);
    CHECK(janus_failure_text(n, &failure, text, sizeof text) > 0);
    check_says(text, word);
    check_says(text, other);
}

/* A capability for the caller. */
static inline janus_cap mint(const janus_authority *root, janus_cap_kind kind, uint32_t rights,
                             janus_cap_limits limits)
{
    janus_cap cap;
    CHECK_EQ(janus_cap_mint(
                 root, 0, JANUS_CAP_GRANT(.kind = kind, .rights = rights, .limits = &limits), &cap),
             JANUS_OK);
    return cap;
}

/* A budget of this many ops, and a little of the rest. */
static inline janus_cap mint_budget(const janus_authority *root, uint32_t rights, uint64_t ops)
{
    return mint(root, JANUS_CAP_KIND_BUDGET, rights,
                (janus_cap_limits){.budget = {.cpu_budget = ops, .memory_budget = 4096}});
}

/* Runs `entry(argument)` as the first task of a scheduler with these options. It must succeed. */
static inline void rig_first(janus_scheduler_options *options, janus_entry *entry, void *argument)
{
    if (options->max_tasks == 0) options->max_tasks = JANUS_UNLIMITED;
    CHECK_EQ(janus_run(options, entry, argument, NULL), JANUS_OK);
}

#endif
