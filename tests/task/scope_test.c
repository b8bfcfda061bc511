/* SPDX-License-Identifier: MIT */
/* Nurseries in nurseries, limits, deadlines, shields, cleaning up, joining. */
#include "rig.h"

#include <string.h>

enum { REPEATS = RIG_SLOW ? 10 : 100 };

/* The document's scenario runs this often on each number of workers. */
enum { SCENARIOS = 1000 };

/* A log that tasks write words to. */
struct journal {
    atomic_int  count;
    const char *words[16];
};

static void note(struct journal *journal, const char *word)
{
    int at = atomic_fetch_add(&journal->count, 1);
    CHECK(at < 16);
    journal->words[at] = word;
}

struct deferred {
    struct journal *journal;
    const char     *word;
};

static void note_deferred(void *argument)
{
    struct deferred *deferred = argument;
    note(deferred->journal, deferred->word);
}

/* Inner before outer. */

struct inner_outer {
    struct journal  journal;
    struct deferred inner, outer;
    bool            cancel;
    atomic_int      ready;
};

static int64_t innermost_task(void *argument)
{
    struct inner_outer *both = argument;
    CHECK_EQ(janus_defer(note_deferred, &both->inner), JANUS_OK);
    atomic_store(&both->ready, 1);
    while (both->cancel && janus_yield() == JANUS_OK) continue;
    note(&both->journal, "inner done");
    return both->cancel ? JANUS_CANCELLED : 0;
}

static int64_t outer_task(void *argument)
{
    struct inner_outer *both = argument;
    janus_nursery       n;
    CHECK_EQ(janus_defer(note_deferred, &both->outer), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, innermost_task, both), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t lifo_cleanup(void *argument)
{
    struct inner_outer both = {.cancel = argument != NULL};
    both.inner = (struct deferred){&both.journal, "inner cleanup"};
    both.outer = (struct deferred){&both.journal, "outer cleanup"};
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, outer_task, &both), JANUS_OK);
    while (both.cancel && !atomic_load(&both.ready)) CHECK_EQ(janus_yield(), JANUS_OK);
    if (both.cancel) CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), both.cancel ? JANUS_CANCELLED : JANUS_OK);
    CHECK_EQ(both.journal.count, 3);
    CHECK_STR(both.journal.words[0], "inner done");
    CHECK_STR(both.journal.words[1], "inner cleanup");
    CHECK_STR(both.journal.words[2], "outer cleanup");
    return 0;
}

TEST("inner nurseries are done and cleaned up before outer ones")
{
    rig_all(lifo_cleanup, NULL, SCENARIOS);
}

/* The owner of the inner nursery may return the status of its wait: it has obeyed. */
TEST("a task that passes on the CANCELLED of its inner nursery has obeyed")
{
    rig_all(lifo_cleanup, "cancel", SCENARIOS);
}

/* Depth. */

struct chain {
    int         depth;
    atomic_int *bottom, *ended;
    bool        sleep;
};

static int64_t chain_link(void *argument)
{
    struct chain *chain = argument;
    int64_t       status;
    if (chain->depth == 0) {
        atomic_store(chain->bottom, 1);
        status = chain->sleep ? janus_sleep(3600 * 1000 * rig_ms) : yield_for_ever(NULL);
        CHECK_EQ(status, JANUS_CANCELLED);
    } else {
        janus_nursery n;
        struct chain  next = *chain;
        next.depth--;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, chain_link, &next), JANUS_OK);
        status = janus_nursery_end(&n, NULL);
        CHECK_EQ(status, JANUS_CANCELLED);
        CHECK(janus_cancelled());
    }
    atomic_fetch_add(chain->ended, 1);
    return status;
}

static int64_t cancel_chain(void *argument)
{
    for (int sleep = 0; sleep < 2; sleep++) {
        atomic_int           bottom = 0, ended = 0;
        struct chain         chain = {*(int *)argument, &bottom, &ended, sleep != 0};
        janus_nursery        n;
        janus_nursery_result result;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(&n, chain_link, &chain), JANUS_OK);
        CHECK(rig_wait(&bottom));
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
        CHECK_EQ(result.reason, JANUS_CANCEL_REASON_EXPLICIT);
        CHECK_EQ(ended, chain.depth + 1);
    }
    return 0;
}

static int64_t cancel_chains(void *argument)
{
    (void)argument;
    for (int depth = 1; depth <= 64; depth++) CHECK_EQ(cancel_chain(&depth), 0);
    return 0;
}

TEST("a cancel reaches the bottom of 1, 2, 3, up to 64 nested nurseries")
{
    rig_all(cancel_chains, NULL, RIG_SLOW ? 1 : 5);
}

TEST("a cancel reaches the bottom of 3000 nested nurseries")
{
    int depth = RIG_SLOW ? 1000 : 3000;
    rig_all(cancel_chain, &depth, 1);
}

TEST("a cancel from a small stack reaches the bottom of 1500 nested nurseries")
{
    int              depth = 1500;
    size_t           stack_bytes = RIG_SLOW ? 65536 : 32768;
    janus_scheduler *scheduler =
        rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1, .stack_bytes = stack_bytes));
    rig_do(scheduler, cancel_chain, &depth);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Two in one task. */

static int64_t two_in_one(void *argument)
{
    (void)argument;
    atomic_int    count = 0;
    janus_nursery outer, inner;
    struct gate   gate = {0};
    CHECK_EQ(janus_nursery_open(&outer, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&inner, count_me, &count), JANUS_OK);
    CHECK_EQ(janus_spawn(&outer, count_me, &count), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_state_of(&outer), JANUS_NURSERY_STATE_OPEN);
    CHECK_EQ(janus_nursery_cancel(&inner), JANUS_OK);
    CHECK_EQ(janus_nursery_is_cancelled(&outer), false);
    CHECK(janus_cancelled());
    janus_status status = janus_nursery_end(&inner, NULL);
    CHECK_EQ(status, JANUS_CANCELLED);
    CHECK(!janus_cancelled());
    CHECK_EQ(janus_spawn(&outer, count_me, &count), JANUS_OK);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_end(&outer, NULL), JANUS_OK);
    CHECK(count >= 2);
    return 0;
}

TEST("a task has two nurseries, and the outer one cannot end before the inner")
{
    rig_all(two_in_one, NULL, REPEATS);
}

struct owner_of_two {
    atomic_int ready;
    atomic_int waits;
};

static int64_t own_two(void *argument)
{
    struct owner_of_two *two = argument;
    janus_nursery        a, b;
    CHECK_EQ(janus_nursery_open(&a, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&b, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&a, sleep_an_hour, &two->ready), JANUS_OK);
    CHECK_EQ(janus_spawn(&b, yield_for_ever, &two->ready), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&b, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&a, NULL), JANUS_CANCELLED);
    return JANUS_CANCELLED;
}

static int64_t cancel_owner_of_two(void *argument)
{
    (void)argument;
    struct owner_of_two two = {0};
    janus_nursery       n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, own_two, &two), JANUS_OK);
    while (atomic_load(&two.ready) < 2) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("cancelling a task cancels both nurseries it has open")
{
    rig_all(cancel_owner_of_two, NULL, REPEATS);
}

/* Children of children in the same nursery. */

struct sprout {
    janus_nursery *nursery;
    atomic_int    *count;
};

static int64_t sprout_again(void *argument)
{
    struct sprout *sprout = argument;
    if (atomic_fetch_add(sprout->count, 1) < 100) {
        CHECK_EQ(janus_spawn(sprout->nursery, nothing, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn(sprout->nursery, sprout_again, sprout), JANUS_OK);
        JANUS_IGNORE(janus_yield());
    }
    return 0;
}

static int64_t spawn_into_parent(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    count = 0;
    struct sprout sprout = {&n, &count};
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sprout_again, &sprout), JANUS_OK);
    while (atomic_load(&count) <= 100) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(count, 101);
    return 0;
}

TEST("children may start their own siblings, and all are waited for")
{
    rig_all(spawn_into_parent, NULL, REPEATS);
}

/* Limits. */

static int64_t limit_children(void *argument)
{
    (void)argument;
    janus_nursery n;
    struct gate   gate = {0};
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.max_children = 3)), JANUS_OK);
    for (int i = 0; i < 9; i++) {
        CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.priority = 9), NULL),
                 JANUS_INVALID);
    }
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nothing, NULL), JANUS_FULL);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, NULL), JANUS_FULL);
    CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_OPEN);
    atomic_store(&gate.open, 1);
    uint64_t     limit = janus_now_ns() + rig_patience;
    janus_status status = JANUS_FULL;
    while (status == JANUS_FULL && janus_now_ns() < limit) {
        CHECK_EQ(janus_yield(), JANUS_OK);
        status = janus_spawn(&n, nothing, NULL);
    }
    CHECK_EQ(status, JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a full nursery with max_children takes a child again when one has ended")
{
    rig_all(limit_children, NULL, REPEATS);
}

/* Deadlines. */

static int64_t nursery_deadline(void *argument)
{
    janus_entry         *child = argument != NULL ? sleep_an_hour : yield_for_ever;
    uint64_t             deadline = janus_now_ns() + rig_ms;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = deadline)), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        janus_status status = janus_spawn(&n, child, NULL);
        CHECK(status == JANUS_OK || status == JANUS_CLOSED); /* it may have passed already */
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CANCELLED);
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_CANCELLED);
    CHECK_EQ(result.reason, JANUS_CANCEL_REASON_DEADLINE);
    CHECK(janus_now_ns() >= deadline);
    CHECK(!janus_cancelled());
    return 0;
}

TEST("a deadline cancels children that sleep") { rig_all(nursery_deadline, "sleep", 10); }

TEST("a deadline cancels children that yield") { rig_all(nursery_deadline, NULL, 10); }

/* A child under a deadline that waits only for grandchildren that run in place. */
static int64_t busy_with_nurseries(void *argument)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    (void)argument;
    while (!janus_cancelled() && janus_now_ns() < limit) {
        janus_status ended;
        JANUS_NURSERY(n, ended) JANUS_IGNORE(janus_spawn(n, nothing, NULL));
        CHECK(ended == JANUS_OK || ended == JANUS_CANCELLED); /* it may pass in between */
    }
    return janus_now_ns() < limit ? JANUS_CANCELLED : -5;
}

static int64_t deadline_while_busy(void *argument)
{
    (void)argument;
    uint64_t      deadline = janus_now_ns() + rig_ms;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = deadline)), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, busy_with_nurseries, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    return 0;
}

TEST("a deadline reaches a task that only ever waits for children that run in place")
{
    rig_run(1, deadline_while_busy, NULL, 2);
}

/* Shields. */

static int64_t shielded_nap(void *argument)
{
    atomic_int *stage = argument;
    atomic_store(stage, 1);
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_sleep(1), JANUS_CANCELLED);
    CHECK_EQ(janus_yield(), JANUS_CANCELLED);
    janus_shield_begin();
    CHECK(!janus_cancelled());
    CHECK_EQ(janus_yield(), JANUS_OK);
    janus_shield_begin();
    uint64_t until = janus_now_ns() + rig_ms / 10;
    CHECK_EQ(janus_sleep_until(until), JANUS_OK);
    CHECK(janus_now_ns() >= until);
    janus_shield_end();
    int64_t result = 1;
    CHECK_EQ(janus_blocking(nothing, NULL, &result), JANUS_OK);
    CHECK_EQ(result, 0);
    janus_shield_end();
    CHECK_EQ(janus_blocking(nothing, NULL, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_sleep(1), JANUS_CANCELLED);
    atomic_store(stage, 2);
    return JANUS_CANCELLED;
}

static int64_t shield_holds(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    stage = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, shielded_nap, &stage), JANUS_OK);
    while (atomic_load(&stage) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(stage, 2);
    return 0;
}

TEST("a cancelled task waits inside a shield, and not outside of it")
{
    rig_all(shield_holds, NULL, REPEATS);
}

/* The cleanup of a cancelled task may need children, too. */
static int64_t nursery_in_shield(void *argument)
{
    atomic_int *count = argument;
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    janus_shield_begin();
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, count_me, count), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    janus_shield_end();
    return JANUS_CANCELLED;
}

static int64_t shield_covers_children(void *argument)
{
    (void)argument;
    janus_nursery n;
    atomic_int    count = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, nursery_in_shield, &count), JANUS_OK);
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(count, 1);
    return 0;
}

TEST("a nursery opened inside a shield is shielded with its children")
{
    rig_run(1, shield_covers_children, NULL, REPEATS);
}

/* Cleaning up. */

static void nap_in_defer(void *argument)
{
    CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms / 20), JANUS_OK);
    CHECK_EQ(janus_blocking(nothing, NULL, NULL), JANUS_OK);
    atomic_fetch_add((atomic_int *)argument, 1);
}

static int64_t ends_somehow(void *argument)
{
    static const char *const ways[] = {"return", "cancelled", "panic"};
    atomic_int              *ended = argument;
    int                      way = atomic_fetch_add(&ended[1], 1) % 3;
    CHECK_EQ(janus_defer(nap_in_defer, &ended[0]), JANUS_OK);
    CHECK_EQ(janus_defer(nap_in_defer, &ended[0]), JANUS_OK);
    while (janus_yield() == JANUS_OK) continue;
    if (way == 2) janus_panic(ways[way]);
    return way == 0 ? 0 : JANUS_CANCELLED;
}

static int64_t defers_wait(void *argument)
{
    (void)argument;
    atomic_int           ended[2] = {0};
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_spawn(&n, ends_somehow, ended), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, ends_somehow, ended,
                              JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
             JANUS_OK);
    while (atomic_load(&ended[1]) < 3) CHECK_EQ(janus_yield(), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, &result));
    CHECK_EQ(ended[0], 6);
    return 0;
}

TEST("defers can still wait in a task that was cancelled or panicked")
{
    rig_all(defers_wait, NULL, REPEATS / 5);
}

/* Joining. */

struct two_ids {
    janus_nursery *mine;
    janus_task_id  foreign;
};

static int64_t join_foreign(void *argument)
{
    struct two_ids *ids = argument;
    janus_nursery   n;
    janus_task_id   own;
    int64_t         result = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_join(ids->mine, ids->foreign, &result), JANUS_STATE);
    CHECK_EQ(janus_join(&n, ids->foreign, &result), JANUS_STALE);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &own), JANUS_OK);
    CHECK_EQ(janus_join(&n, own, &result), JANUS_OK);
    CHECK_EQ(janus_join(&n, own, &result), JANUS_STALE);
    CHECK_EQ(janus_join(&n, 0, &result), JANUS_STALE);
    CHECK_EQ(janus_join(&n, UINT64_MAX, &result), JANUS_STALE);
    CHECK_EQ(janus_join(&n, janus_task_current_id(), &result), JANUS_STALE);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

static int64_t joins(void *argument)
{
    (void)argument;
    janus_nursery n, m;
    struct gate   gate = {.result = 42};
    janus_task_id id, unasked;
    int64_t       result = 0;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, at_gate, &gate, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&m, NULL), JANUS_OK);
    struct two_ids ids = {&n, id};
    CHECK_EQ(janus_spawn_with(&m, join_foreign, &ids, NULL, &unasked), JANUS_OK);
    CHECK_EQ(janus_join(&m, unasked, NULL), JANUS_OK);
    CHECK_EQ(janus_join(&m, id, &result), JANUS_STALE);
    CHECK_EQ(janus_nursery_end(&m, NULL), JANUS_OK);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_join(&n, id, &result), JANUS_OK);
    CHECK_EQ(result, 42);
    CHECK_EQ(janus_join(&n, id, &result), JANUS_STALE);
    CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_join(&n, id, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result, -7);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CHILD_FAILED);
    return 0;
}

TEST("only the owner joins a child, and only once") { rig_all(joins, NULL, REPEATS); }
