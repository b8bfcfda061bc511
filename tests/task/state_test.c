/* SPDX-License-Identifier: MIT */
/*
 * A task's states: the table of moves, and the moves of each event, as a debug build reports them.
 */
#include "rig.h"
#include "task/nursery.h"
#include "task/state.h"
#include "task/task.h"
#include "task/worker.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum {
    READY = JANUS_TASK_STATE_READY,
    RUNNING = JANUS_TASK_STATE_RUNNING,
    BLOCKED = JANUS_TASK_STATE_BLOCKED,
    EXHAUSTED = JANUS_TASK_STATE_BUDGET_EXHAUSTED,
    COMPLETED = JANUS_TASK_STATE_COMPLETED,
    CANCELLED = JANUS_TASK_STATE_CANCELLED,
    STATES,
};

/* The moves of the documents, and the four that they leave out. */
static const bool legal[STATES][STATES] = {
    [READY] = {[RUNNING] = true, [CANCELLED] = true},
    [RUNNING] = {[READY] = true,
                 [BLOCKED] = true,
                 [EXHAUSTED] = true,
                 [COMPLETED] = true,
                 [CANCELLED] = true},
    [BLOCKED] = {[READY] = true, [CANCELLED] = true},
    [EXHAUSTED] = {[READY] = true, [CANCELLED] = true},
};

TEST("of 36 moves between six states 11 are legal, and no move from or to an invalid state is")
{
    int found = 0;
    for (int from = -1; from <= STATES; from++) {
        for (int to = -1; to <= STATES; to++) {
            bool inside = from >= 0 && from < STATES && to >= 0 && to < STATES;
            bool may = jrt_task_may_move((janus_task_state)from, (janus_task_state)to);
            CHECK_EQ(may, inside && legal[from][to]);
            found += may;
        }
    }
    CHECK_EQ(found, 11);
}

/* Death. */

struct wish {
    int from, to;
};

/* A task without an owner, with the fields that a move looks at. */
static void make_move(void *argument)
{
    struct wish       *wish = argument;
    janus_scheduler   *scheduler = aligned_alloc(64, (sizeof *scheduler + 63) / 64 * 64);
    struct jrt_nursery nursery = {.scheduler = scheduler};
    struct jrt_task    task = {.nursery = &nursery};
    CHECK(scheduler != NULL);
    memset(scheduler, 0, sizeof *scheduler);
    atomic_store(&task.state, (uint8_t)wish->from);
    jrt_task_move(&task, (janus_task_state)wish->to);
    CHECK_EQ(atomic_load(&task.state), wish->to);
    free(scheduler);
}

static bool died_saying(struct wish *wish, const char *word)
{
    int         status = 0;
    const char *text = harness_child(make_move, wish, &status);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    return strstr(text, word) != NULL;
}

TEST("every illegal move ends the process and names both states")
{
    if (!JRT_DEBUG) SKIP("only debug builds look");
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            struct wish wish = {from, to};
            char        both[64];
            if (legal[from][to]) continue;
            snprintf(both, sizeof both, "[task-moves] broken: %s -> %s (",
                     janus_task_state_name((janus_task_state)from),
                     janus_task_state_name((janus_task_state)to));
            CHECK(died_saying(&wish, both));
        }
    }
}

TEST("a thread that is no worker may move a waiting task to ready, and make no other move")
{
    if (!JRT_DEBUG) SKIP("only debug builds look");
    for (int from = 0; from < STATES; from++) {
        for (int to = 0; to < STATES; to++) {
            struct wish wish = {from, to};
            bool        wakes = to == READY && (from == BLOCKED || from == EXHAUSTED);
            if (!legal[from][to]) continue;
            if (wakes) make_move(&wish);
            if (!wakes) CHECK(died_saying(&wish, "[task-owner] broken"));
        }
    }
}

/* Events. */

enum { LOG_MAX = 4096 };

static struct {
    atomic_int count;
    struct {
        janus_task_id id;
        int           from, to;
    } moves[LOG_MAX];
} events;

static void note_move(const struct jrt_task *task, janus_task_state from, janus_task_state to)
{
    int at = atomic_fetch_add(&events.count, 1);
    CHECK(at < LOG_MAX);
    events.moves[at].id = jrt_task_id(task);
    events.moves[at].from = (int)from;
    events.moves[at].to = (int)to;
}

/* Runs `entry` as the first task with this many workers, and notes every move. */
static void watch(uint32_t workers, janus_entry *entry, void *argument)
{
    janus_scheduler *scheduler = NULL;
    atomic_store(&events.count, 0);
    CHECK_EQ(
        janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), &scheduler),
        JANUS_OK);
    scheduler->on_move = note_move;
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    rig_do(scheduler, entry, argument);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* A task's states one after another, as letters; it began as R. Valid until the next call. */
static const char *path_of(janus_task_id id)
{
    static const char letters[] = "RrBECX"; /* Ready, running, Blocked, Exhausted, Completed, X */
    static char       path[LOG_MAX + 2];
    size_t            used = 0;
    int               state = READY;
    path[used++] = letters[READY];
    for (int i = 0; i < atomic_load(&events.count); i++) {
        if (events.moves[i].id != id) continue;
        CHECK_EQ(events.moves[i].from, state);
        state = events.moves[i].to;
        path[used++] = letters[state];
    }
    path[used] = '\0';
    return path;
}

/* The place of a move in the log; -1: nowhere. */
static int place_of(janus_task_id id, int from, int to)
{
    for (int i = 0; i < atomic_load(&events.count); i++) {
        if (events.moves[i].id == id && events.moves[i].from == from && events.moves[i].to == to) {
            return i;
        }
    }
    return -1;
}

struct subject {
    janus_entry      *entry;
    void             *argument;
    janus_cancel_mode cancel;
    bool              cancels; /* its parent does so once it has begun */
    bool              high;    /* so that its parent cannot run it in place */
    janus_task_id     id, owner;
};

static atomic_int begun;

static int64_t parent_of_subject(void *argument)
{
    struct subject *subject = argument;
    janus_nursery   n;
    subject->owner = janus_task_current_id();
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(
        janus_spawn_with(&n, subject->entry, subject->argument,
                         JANUS_SPAWN_OPTIONS(.priority = subject->high ? JANUS_PRIORITY_HIGH
                                                                       : JANUS_PRIORITY_DEFAULT,
                                             .cancel = subject->cancel, .unjoinable = true),
                         &subject->id),
        JANUS_OK);
    if (subject->cancels) {
        CHECK(rig_wait(&begun));
        CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    }
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

static const char *path_when(struct subject subject)
{
    atomic_store(&begun, 0);
    watch(1, parent_of_subject, &subject);
    return path_of(subject.id);
}

TEST("a worker that takes a task moves it from ready to running, its return to completed")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    CHECK_STR(path_when((struct subject){.entry = nothing}), "RrC");
    CHECK_STR(path_when((struct subject){.entry = nothing, .high = true}), "RrC");
    CHECK_STR(path_when((struct subject){.entry = minus_seven}), "RrC");
}

static int64_t panic_now(void *argument)
{
    (void)argument;
    janus_panic("on purpose");
}

__attribute__((noinline)) static int64_t dig(int64_t depth)
{
    static volatile bool bottomless = true;
    volatile char        room[400];
    room[0] = (char)depth;
    return (bottomless ? dig(depth + 1) : 0) + room[0];
}

static int64_t overflow(void *argument)
{
    (void)argument;
    return dig(0);
}

TEST("a panic and a stack overflow complete a task as a return does")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    CHECK_STR(path_when((struct subject){.entry = panic_now}), "RrC");
    RIG_OVERFLOWS();
    CHECK_STR(path_when((struct subject){.entry = overflow}), "RrC");
}

static int64_t sleep_a_moment(void *argument)
{
    (void)argument;
    return janus_sleep(20 * rig_ms);
}

static int64_t call_what_blocks(void *argument)
{
    (void)argument;
    return janus_blocking(nothing, NULL, NULL);
}

static int64_t await_a_high_child(void *argument)
{
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL,
                              JANUS_SPAWN_OPTIONS(.priority = JANUS_PRIORITY_HIGH), NULL),
             JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

static int64_t join_a_child(void *argument)
{
    janus_nursery n;
    janus_task_id id;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, nothing, NULL, NULL, &id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, NULL), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a wait moves a task from running to blocked, its end to ready, and a worker to running")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    CHECK_STR(path_when((struct subject){.entry = sleep_a_moment}), "RrBRrC");
    CHECK_STR(path_when((struct subject){.entry = await_a_high_child}), "RrBRrC");
    CHECK_STR(path_when((struct subject){.entry = join_a_child}), "RrBRrC");
    /* The call may return before the task has left: then it has not waited. */
    const char *path = path_when((struct subject){.entry = call_what_blocks});
    CHECK(harness_same(path, "RrBRrC") || harness_same(path, "RrC"));
}

static int64_t yield_twice(void *argument)
{
    (void)argument;
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_yield(), JANUS_OK);
    return 0;
}

static int64_t yield_in_company(void *argument)
{
    janus_nursery  n;
    janus_task_id *id = argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    /* The newest first: it yields while the other is queued, and then again to the other. */
    CHECK_EQ(janus_spawn(&n, yield_twice, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_with(&n, yield_twice, NULL, NULL, id), JANUS_OK);
    return janus_nursery_end(&n, NULL);
}

TEST("a yield moves a task from running to ready and back")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    janus_task_id id = 0;
    watch(1, yield_in_company, &id);
    /* If each turn is too long, a yield may return at once: the other owes it rounds. */
    if (!RIG_SLOW) CHECK_STR(path_of(id), "RrRrRrC");
    CHECK_EQ(strncmp(path_of(id), "RrR", 3), 0);
}

static int64_t yield_on(void *argument)
{
    atomic_store(&begun, 1);
    return yield_for_ever(argument);
}

static int64_t sleep_on(void *argument)
{
    atomic_store(&begun, 1);
    return sleep_an_hour(argument);
}

static int64_t ignore_it(void *argument)
{
    atomic_store(&begun, 1);
    while (argument == NULL) JANUS_IGNORE(janus_yield());
    return 0;
}

TEST("a task that obeys a cancel moves from running to cancelled, once it has cleaned up")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    const char *path = path_when((struct subject){.entry = yield_on, .cancels = true});
    CHECK_STR(path + strlen(path) - 2, "rX");
    CHECK(strchr(path, 'B') == NULL);
    CHECK_STR(path_when((struct subject){.entry = sleep_on, .cancels = true}), "RrBRrX");
    path = path_when(
        (struct subject){.entry = ignore_it, .cancels = true, .cancel = JANUS_CANCEL_MODE_UNWIND});
    CHECK_STR(path + strlen(path) - 2, "rX");
}

/* R:notify: the child's end is reported to its nursery, which wakes the waiter. */
TEST("the last child completes before its waiting owner is made ready")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    for (int fails = 0; fails < 2; fails++) {
        struct subject subject = {.entry = fails ? minus_seven : nothing, .high = true};
        watch(1, parent_of_subject, &subject);
        CHECK_STR(path_of(subject.owner), "RrBRrC");
        int waits = place_of(subject.owner, RUNNING, BLOCKED);
        int ends = place_of(subject.id, RUNNING, COMPLETED);
        int wakes = place_of(subject.owner, BLOCKED, READY);
        CHECK(waits < ends && ends < wakes);
    }
}

/* Cancelled while queued. */

enum { QUEUED = 10 };

static int64_t must_not_run(void *argument)
{
    (void)argument;
    CHECK(false);
    return 0;
}

TEST("tasks cancelled between queue and run are skipped, counted, and reported to their nursery")
{
    janus_scheduler     *scheduler = NULL;
    janus_nursery        busy, n;
    janus_nursery_result result;
    struct gate          gate = {0};
    janus_task_id        ids[QUEUED];
    janus_worker_info    stats = JANUS_WORKER_INFO();
    atomic_store(&events.count, 0);
    CHECK_EQ(janus_scheduler_create_with(JANUS_SCHEDULER_OPTIONS(.worker_count = 1), &scheduler),
             JANUS_OK);
    scheduler->on_move = note_move;
    CHECK_EQ(janus_scheduler_start(scheduler), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &busy, NULL), JANUS_OK);
    CHECK_EQ(janus_nursery_open_in(scheduler, &n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&busy, nothing, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&busy, keep_worker, &gate), JANUS_OK);
    while (!atomic_load(&gate.arrived)) rig_spin();
    for (int i = 0; i < QUEUED; i++) {
        CHECK_EQ(janus_spawn_with(&n, must_not_run, NULL, NULL, &ids[i]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    atomic_store(&gate.open, 1);
    CHECK_EQ(janus_nursery_await_with(&n, &result), JANUS_CANCELLED);
    CHECK_EQ(result.errors, 0);
    CHECK_EQ(janus_worker_inspect(scheduler, JANUS_ALL_WORKERS, &stats), JANUS_OK);
    CHECK_EQ(stats.tasks_cancelled, QUEUED);
    CHECK_EQ(stats.tasks_executed, 2);
    for (int i = 0; i < QUEUED && JRT_DEBUG; i++) CHECK_STR(path_of(ids[i]), "RX");
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_nursery_end(&busy, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(scheduler), JANUS_OK);
}

/* Everything at once: each task's moves are a path from ready to an end. */

static int64_t mixed_tree(void *argument)
{
    int depth = (int)(intptr_t)argument;
    if (depth == 0) return janus_sleep(1000) == JANUS_OK ? 0 : JANUS_CANCELLED;
    janus_nursery n;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(janus_spawn(&n, mixed_tree, (void *)(intptr_t)(depth - 1)), JANUS_OK);
    }
    JANUS_IGNORE(janus_yield());
    if (depth == 1) (void)janus_nursery_cancel(&n);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    return 0;
}

TEST("with eight workers, too, every task's moves are one path from ready to an end")
{
    if (!JRT_DEBUG) SKIP("only debug builds tell");
    watch(8, mixed_tree, (void *)3);
    int ended = 0;
    for (int i = 0; i < events.count; i++) {
        const char *path = path_of(events.moves[i].id);
        char        last = path[strlen(path) - 1];
        if (!janus_task_is_finished((janus_task_state)events.moves[i].to)) continue;
        CHECK(last == 'C' || last == 'X');
        ended++;
    }
    CHECK_EQ(ended, 1 + 3 + 9 + 27);
}
