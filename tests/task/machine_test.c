/* SPDX-License-Identifier: MIT */
/* The nursery's state machine: every call in every state, every way to a final state, results. */
#include "rig.h"

#include <string.h>

enum call { SPAWN, SPAWN_WITH, CLOSE, CANCEL, WAIT, TRY, IS_CANCELLED, END, CALLS };

enum { S_OPEN, S_CLOSING, S_CANCELLING, S_CLOSED, S_CANCELLED, STATES };

/* What a call returns, and the state after it. TRY and IS_CANCELLED return 0 or 1. */
struct cell {
    int answer;
    int after;
};

/* One child has not ended in the first three states; there is no child in the others. */
static const struct cell table[STATES][CALLS] = {
    [S_OPEN] = {[SPAWN] = {JANUS_OK, S_OPEN},
                [SPAWN_WITH] = {JANUS_OK, S_OPEN},
                [CLOSE] = {JANUS_OK, S_CLOSING},
                [CANCEL] = {JANUS_OK, S_CANCELLING},
                [WAIT] = {JANUS_OK, S_CLOSED},
                [TRY] = {0, S_OPEN},
                [IS_CANCELLED] = {0, S_OPEN},
                [END] = {JANUS_OK, S_CLOSED}},
    [S_CLOSING] = {[SPAWN] = {JANUS_CLOSED, S_CLOSING},
                   [SPAWN_WITH] = {JANUS_CLOSED, S_CLOSING},
                   [CLOSE] = {JANUS_STATE, S_CLOSING},
                   [CANCEL] = {JANUS_OK, S_CANCELLING},
                   [WAIT] = {JANUS_OK, S_CLOSED},
                   [TRY] = {0, S_CLOSING},
                   [IS_CANCELLED] = {0, S_CLOSING},
                   [END] = {JANUS_OK, S_CLOSED}},
    [S_CANCELLING] = {[SPAWN] = {JANUS_CLOSED, S_CANCELLING},
                      [SPAWN_WITH] = {JANUS_CLOSED, S_CANCELLING},
                      [CLOSE] = {JANUS_STATE, S_CANCELLING},
                      [CANCEL] = {JANUS_STATE, S_CANCELLING},
                      [WAIT] = {JANUS_CANCELLED, S_CANCELLED},
                      [TRY] = {0, S_CANCELLING},
                      [IS_CANCELLED] = {1, S_CANCELLING},
                      [END] = {JANUS_CANCELLED, S_CANCELLED}},
    [S_CLOSED] = {[SPAWN] = {JANUS_CLOSED, S_CLOSED},
                  [SPAWN_WITH] = {JANUS_CLOSED, S_CLOSED},
                  [CLOSE] = {JANUS_STATE, S_CLOSED},
                  [CANCEL] = {JANUS_STATE, S_CLOSED},
                  [WAIT] = {JANUS_OK, S_CLOSED},
                  [TRY] = {1, S_CLOSED},
                  [IS_CANCELLED] = {0, S_CLOSED},
                  [END] = {JANUS_OK, S_CLOSED}},
    [S_CANCELLED] = {[SPAWN] = {JANUS_CLOSED, S_CANCELLED},
                     [SPAWN_WITH] = {JANUS_CLOSED, S_CANCELLED},
                     [CLOSE] = {JANUS_STATE, S_CANCELLED},
                     [CANCEL] = {JANUS_STATE, S_CANCELLED},
                     [WAIT] = {JANUS_CANCELLED, S_CANCELLED},
                     [TRY] = {1, S_CANCELLED},
                     [IS_CANCELLED] = {1, S_CANCELLED},
                     [END] = {JANUS_CANCELLED, S_CANCELLED}},
};

static int perform(enum call call, janus_nursery *n)
{
    janus_nursery_result result;
    janus_task_id        id = 77;
    switch (call) {
    case SPAWN: return janus_spawn(n, nothing, NULL);
    case SPAWN_WITH: {
        int status = janus_spawn_with(n, nothing, NULL, NULL, &id);
        CHECK((status == JANUS_OK) == (id != 77));
        return status;
    }
    case CLOSE: return janus_nursery_close(n);
    case CANCEL: return janus_nursery_cancel(n);
    case WAIT: return janus_nursery_await_with(n, NULL);
    case TRY: {
        bool final = janus_nursery_try_await(n, &result);
        CHECK_EQ(final, result.kind != JANUS_RESULT_KIND_PENDING);
        return final;
    }
    case IS_CANCELLED: return janus_nursery_is_cancelled(n);
    case END: return janus_nursery_end(n, NULL);
    default: return -99;
    }
}

/* Opens a nursery and brings it to a state with one call or two. */
static void bring_to(int state, janus_nursery *n, struct gate *gate)
{
    CHECK_EQ(janus_nursery_open(n, NULL), JANUS_OK);
    if (state <= S_CANCELLING) {
        CHECK_EQ(janus_spawn(n, at_gate, gate), JANUS_OK);
        while (atomic_load(&gate->arrived) == 0) CHECK_EQ(janus_yield(), JANUS_OK);
    }
    if (state == S_CLOSING || state == S_CLOSED) CHECK_EQ(janus_nursery_close(n), JANUS_OK);
    if (state == S_CANCELLING || state == S_CANCELLED) CHECK_EQ(janus_nursery_cancel(n), JANUS_OK);
    CHECK_EQ(janus_nursery_state_of(n), state);
}

static int64_t every_cell(void *argument)
{
    (void)argument;
    for (int state = 0; state < STATES; state++) {
        for (int call = 0; call < CALLS; call++) {
            janus_nursery      n;
            struct gate        gate = {0};
            const struct cell *cell = &table[state][call];
            bring_to(state, &n, &gate);
            if (call == WAIT || call == END) atomic_store(&gate.open, 1);
            CHECK_EQ(perform((enum call)call, &n), cell->answer);
            CHECK_EQ(janus_nursery_state_of(&n), cell->after);
            atomic_store(&gate.open, 1);
            if (call != END) JANUS_IGNORE(janus_nursery_end(&n, NULL));
        }
    }
    return 0;
}

TEST("every call in every state returns and moves as the table says")
{
    rig_all(every_cell, NULL, RIG_SLOW ? 5 : 50);
}

TEST("the states have the numbers of the document")
{
    CHECK_EQ(JANUS_NURSERY_STATE_OPEN, 0);
    CHECK_EQ(JANUS_NURSERY_STATE_CLOSING, 1);
    CHECK_EQ(JANUS_NURSERY_STATE_CANCELLING, 2);
    CHECK_EQ(JANUS_NURSERY_STATE_CLOSED, 3);
    CHECK_EQ(JANUS_NURSERY_STATE_CANCELLED, 4);
}

static int64_t of_the_owner_only(void *argument)
{
    janus_nursery      *n = argument;
    janus_nursery_state before = janus_nursery_state_of(n);
    CHECK_EQ(janus_nursery_close(n), JANUS_STATE);
    CHECK_EQ(janus_nursery_await_with(n, NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_end(n, NULL), JANUS_STATE);
    CHECK_EQ(janus_join(n, janus_task_current_id(), NULL), JANUS_STATE);
    CHECK_EQ(janus_nursery_state_of(n), before);
    return 0;
}

static int64_t foreign_calls(void *argument)
{
    (void)argument;
    for (int state = 0; state < STATES; state++) {
        janus_nursery n, m, inner;
        struct gate   gate = {0};
        CHECK_EQ(janus_nursery_open(&m, NULL), JANUS_OK);
        bring_to(state, &n, &gate);
        CHECK_EQ(janus_spawn(&m, of_the_owner_only, &n), JANUS_OK);
        /* Meanwhile the owner does something else. */
        CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_await_with(&m, NULL), JANUS_OK);
        CHECK_EQ(janus_nursery_state_of(&n), state);
        atomic_store(&gate.open, 1);
        JANUS_IGNORE(janus_nursery_end(&n, NULL));
        CHECK_EQ(janus_nursery_end(&m, NULL), JANUS_OK);
    }
    return 0;
}

TEST("only the owner can close, await, end or join, in every state")
{
    rig_all(foreign_calls, NULL, RIG_SLOW ? 5 : 50);
}

TEST("a plain thread's own nursery obeys the same table")
{
    janus_scheduler *scheduler = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 2));
    for (int state = 0; state < STATES; state++) {
        for (int call = 0; call < CALLS; call++) {
            janus_nursery n;
            struct gate   gate = {0};
            CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
            if (state <= S_CANCELLING) {
                CHECK_EQ(janus_spawn(&n, at_gate, &gate), JANUS_OK);
                while (atomic_load(&gate.arrived) == 0) rig_spin();
            }
            if (state == S_CLOSING || state == S_CLOSED) (void)janus_nursery_close(&n);
            if (state == S_CANCELLING || state == S_CANCELLED) (void)janus_nursery_cancel(&n);
            CHECK_EQ(janus_nursery_state_of(&n), state);
            if (call == WAIT || call == END) atomic_store(&gate.open, 1);
            CHECK_EQ(perform((enum call)call, &n), table[state][call].answer);
            CHECK_EQ(janus_nursery_state_of(&n), table[state][call].after);
            atomic_store(&gate.open, 1);
            if (call != END) JANUS_IGNORE(janus_nursery_end(&n, NULL));
        }
    }
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Final without await. */

static int64_t final_by_last_child(void *argument)
{
    bool                 cancel = argument != NULL;
    janus_nursery        n;
    janus_nursery_result result;
    struct gate          gate = {0};
    bring_to(cancel ? S_CANCELLING : S_CLOSING, &n, &gate);
    for (int i = 0; i < 3; i++) CHECK_EQ(janus_yield(), cancel ? JANUS_CANCELLED : JANUS_OK);
    CHECK_EQ(janus_nursery_state_of(&n), cancel ? S_CANCELLING : S_CLOSING);
    CHECK(!janus_nursery_try_await(&n, &result));
    CHECK_EQ(result.kind, JANUS_RESULT_KIND_PENDING);
    atomic_store(&gate.open, 1);
    CHECK(rig_wait_state(&n, cancel ? JANUS_NURSERY_STATE_CANCELLED : JANUS_NURSERY_STATE_CLOSED));
    CHECK(janus_nursery_try_await(&n, &result));
    CHECK_EQ(result.kind, cancel ? JANUS_RESULT_KIND_CANCELLED : JANUS_RESULT_KIND_SUCCESS);
    CHECK_EQ(janus_nursery_end(&n, NULL), cancel ? JANUS_CANCELLED : JANUS_OK);
    return 0;
}

TEST("the last child makes a closing nursery closed, without await")
{
    rig_all(final_by_last_child, NULL, RIG_SLOW ? 20 : 200);
}

TEST("the last child makes a cancelling nursery cancelled, without await")
{
    rig_all(final_by_last_child, "cancel", RIG_SLOW ? 20 : 200);
}

static int64_t cancel_it(void *argument)
{
    (void)janus_nursery_cancel(argument);
    return 0;
}

/* Not by the owner: an error, a child's cancel, a deadline. Nobody closed it before. */
static int64_t final_after_others_cancel(void *argument)
{
    const char          *how = argument;
    janus_nursery        n;
    janus_nursery_result result;
    uint64_t             soon = strcmp(how, "deadline") == 0 ? janus_now_ns() + rig_ms : 0;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.deadline_ns = soon)), JANUS_OK);
    CHECK(janus_spawn(&n, yield_for_ever, NULL) == JANUS_OK || soon != 0);
    if (strcmp(how, "error") == 0) CHECK_EQ(janus_spawn(&n, minus_seven, NULL), JANUS_OK);
    if (strcmp(how, "child") == 0) CHECK_EQ(janus_spawn(&n, cancel_it, &n), JANUS_OK);
    /* A task that only asks for the result gets it. */
    uint64_t limit = janus_now_ns() + rig_patience;
    while (!janus_nursery_try_await(&n, &result) && janus_now_ns() < limit)
        JANUS_IGNORE(janus_yield());
    CHECK(rig_wait_state(&n, JANUS_NURSERY_STATE_CANCELLED));
    CHECK(janus_nursery_try_await(&n, &result));
    CHECK(janus_now_ns() < limit);
    CHECK_EQ(result.kind, soon == 0 && how[0] == 'e' ? JANUS_RESULT_KIND_CHILD_FAILED
                                                     : JANUS_RESULT_KIND_CANCELLED);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("an open nursery cancelled by a child's error is cancelled after its last child")
{
    rig_all(final_after_others_cancel, "error", RIG_SLOW ? 5 : 50);
}

TEST("an open nursery cancelled by a child is cancelled after its last child")
{
    rig_all(final_after_others_cancel, "child", RIG_SLOW ? 5 : 50);
}

TEST("an open nursery cancelled by its deadline is cancelled after its last child")
{
    rig_all(final_after_others_cancel, "deadline", 5);
}

/* Results. */

/* A child that sees its cancellation, then ends with the number it was given. */
static int64_t see_and_return(void *argument)
{
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    return *(int64_t *)argument;
}

static int64_t blind_return(void *argument)
{
    struct gate *gate = argument;
    return at_gate(gate);
}

static int64_t result_matrix(void *argument)
{
    (void)argument;
    static const struct {
        int64_t           child;
        bool              cancel, sees;
        janus_result_kind kind;
        janus_status      status;
        int64_t           error;
    } rows[] = {
        {0, false, false, JANUS_RESULT_KIND_SUCCESS, JANUS_OK, 0},
        {5, false, false, JANUS_RESULT_KIND_SUCCESS, JANUS_OK, 0},
        {INT64_MAX, false, false, JANUS_RESULT_KIND_SUCCESS, JANUS_OK, 0},
        {-1, false, false, JANUS_RESULT_KIND_CHILD_FAILED, JANUS_CHILD_FAILED, -1},
        {-7, false, false, JANUS_RESULT_KIND_CHILD_FAILED, JANUS_CHILD_FAILED, -7},
        {INT64_MIN, false, false, JANUS_RESULT_KIND_CHILD_FAILED, JANUS_CHILD_FAILED, INT64_MIN},
        {0, true, true, JANUS_RESULT_KIND_CANCELLED, JANUS_CANCELLED, 0},
        {3, true, true, JANUS_RESULT_KIND_CANCELLED, JANUS_CANCELLED, 0},
        {-1, true, true, JANUS_RESULT_KIND_CANCELLED, JANUS_CANCELLED, 0},
        {-7, true, true, JANUS_RESULT_KIND_CHILD_FAILED, JANUS_CHILD_FAILED, -7},
        {0, true, false, JANUS_RESULT_KIND_CANCELLED, JANUS_CANCELLED, 0},
        {-1, true, false, JANUS_RESULT_KIND_CANCELLED, JANUS_CANCELLED,
         0}, /* its scope was cancelled */
        {-7, true, false, JANUS_RESULT_KIND_CHILD_FAILED, JANUS_CHILD_FAILED, -7},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        janus_nursery        n;
        janus_nursery_result result;
        int64_t              number = rows[i].child;
        struct gate          gate = {.result = number};
        janus_task_id        id;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        void *subject = rows[i].sees ? (void *)&number : (void *)&gate;
        CHECK_EQ(
            janus_spawn_with(&n, rows[i].sees ? see_and_return : blind_return, subject, NULL, &id),
            JANUS_OK);
        while (!rows[i].sees && !atomic_load(&gate.arrived)) CHECK_EQ(janus_yield(), JANUS_OK);
        if (rows[i].sees) CHECK_EQ(janus_yield(), JANUS_OK);
        if (rows[i].cancel) CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
        atomic_store(&gate.open, 1);
        CHECK_EQ(janus_nursery_end(&n, &result), rows[i].status);
        CHECK_EQ(result.kind, rows[i].kind);
        CHECK_EQ(result.error, rows[i].error);
        CHECK_EQ(result.task, rows[i].kind == JANUS_RESULT_KIND_CHILD_FAILED ? id : 0);
    }
    return 0;
}

TEST("an error counts before a cancellation, and -1 counts as obeying only in a cancelled scope")
{
    rig_run(1, result_matrix, NULL, RIG_SLOW ? 20 : 200);
}

static int64_t error_then_cancel(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    janus_task_id id;
    CHECK_EQ(janus_spawn_with(&n, minus_seven, NULL, NULL, &id), JANUS_OK);
    int64_t value = 0;
    CHECK_EQ(janus_join(&n, id, &value), JANUS_CHILD_FAILED);
    CHECK_EQ(value, -7);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, -7);
    CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_CANCELLED);
    return 0;
}

TEST("an error before a cancel is the result") { rig_all(error_then_cancel, NULL, 50); }

/* An inner nursery that its own task cancelled does not cancel the task. */
static int64_t asks_about_another(void *argument)
{
    (void)argument;
    janus_nursery inner;
    CHECK_EQ(janus_nursery_open(&inner, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&inner), JANUS_OK);
    CHECK(janus_nursery_is_cancelled(&inner));
    CHECK_EQ(janus_nursery_end(&inner, NULL), JANUS_CANCELLED);
    CHECK(!janus_cancelled());
    return -1;
}

static int64_t foreign_cancel_is_no_excuse(void *argument)
{
    (void)argument;
    janus_nursery        n;
    janus_nursery_result result;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, asks_about_another, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, -1);
    return 0;
}

TEST("-1 from a task that was not cancelled is an error, whatever else was cancelled")
{
    rig_all(foreign_cancel_is_no_excuse, NULL, 20);
}

/* Policies. */

static int64_t policies(void *argument)
{
    (void)argument;
    for (int policy = JANUS_POLICY_CANCEL_ON_ERROR; policy <= JANUS_POLICY_WAIT_ALL; policy++) {
        bool                 on_error = policy == JANUS_POLICY_CANCEL_ON_ERROR;
        janus_nursery        n;
        janus_nursery_result result;
        struct gate          last = {.result = -8}, first = {.result = -7};
        janus_task_id        id;
        CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = (janus_policy)policy)),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, at_gate, &last), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&n, at_gate, &first, NULL, &id), JANUS_OK);
        while (!atomic_load(&last.arrived) || !atomic_load(&first.arrived))
            JANUS_IGNORE(janus_yield());
        CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
        atomic_store(&first.open, 1);
        CHECK_EQ(janus_join(&n, id, NULL), JANUS_CHILD_FAILED);
        CHECK_EQ(janus_nursery_state_of(&n), on_error ? S_CANCELLING : S_CLOSING);
        CHECK_EQ(janus_nursery_is_cancelled(&n), on_error);
        atomic_store(&last.open, 1);
        CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CHILD_FAILED);
        CHECK_EQ(janus_nursery_state_of(&n), on_error ? S_CANCELLED : S_CLOSED);
        CHECK_EQ(result.kind, JANUS_RESULT_KIND_CHILD_FAILED);
        CHECK_EQ(result.error, -7);
        CHECK_EQ(result.task, id);
        CHECK_EQ(result.errors, 2);
        janus_nursery_result again;
        CHECK(janus_nursery_try_await(&n, &again));
        CHECK(again.kind == result.kind && again.error == -7 && again.errors == 2);
        CHECK_EQ(janus_nursery_end(&n, &again), JANUS_CHILD_FAILED);
    }
    return 0;
}

TEST("an error cancels a closing nursery, or with WAIT_ALL is only its result; the first wins")
{
    rig_all(policies, NULL, RIG_SLOW ? 10 : 100);
}

struct code {
    int64_t     number;
    atomic_int *turn;
    int         when;
};

static int64_t fail_in_turn(void *argument)
{
    struct code *code = argument;
    while (atomic_load(code->turn) != code->when) JANUS_IGNORE(janus_yield());
    atomic_fetch_add(code->turn, 1);
    return code->number;
}

static int64_t many_failures(void *argument)
{
    (void)argument;
    enum { CODES = 20 };
    janus_nursery        n;
    janus_nursery_result result;
    atomic_int           turn = 0;
    struct code          codes[CODES];
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = JANUS_POLICY_WAIT_ALL)),
             JANUS_OK);
    for (int i = 0; i < CODES; i++) {
        codes[i] = (struct code){-100 - i, &turn, i};
        CHECK_EQ(janus_spawn(&n, fail_in_turn, &codes[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.errors, CODES);
    return result.error == -100 ? 0 : result.error;
}

TEST("of twenty failures the result has the first, and all are counted")
{
    rig_run(1, many_failures, NULL, RIG_SLOW ? 5 : 50);
}

static int64_t bad_options(void *argument)
{
    (void)argument;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.policy = (janus_policy)9)),
             JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, JANUS_NURSERY_OPTIONS(.stack_bytes = 1)), JANUS_INVALID);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.priority = 9), NULL),
             JANUS_INVALID);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, JANUS_SPAWN_OPTIONS(.stack_bytes = 1), NULL),
             JANUS_INVALID);
    CHECK_EQ(janus_nursery_close(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_state_of(&n), JANUS_NURSERY_STATE_CLOSED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    return 0;
}

TEST("a refused call leaves no child behind") { rig_all(bad_options, NULL, 1); }
