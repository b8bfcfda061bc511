/* SPDX-License-Identifier: MIT */
/* Resting tasks: they wait without a stack, and otherwise like any other task. */
#include "rests.h"

#include <stdio.h>
#include <string.h>

/* Time. */

static int64_t tick_often(void *argument)
{
    struct script script = {.steps = 0};
    uint64_t      begun = janus_now_ns();
    (void)argument;
    script.rests[0] = janus_rest_sleep_until(begun + 2 * rig_ms);
    script.rests[1] = janus_rest_sleep_until(begun); /* over: it yields */
    script.rests[2] = janus_rest_sleep_until(begun + 4 * rig_ms);
    script.rests[3] = janus_rest_done(0);
    CHECK_EQ(play(&script, janus_rest_sleep(rig_ms), NULL, NULL), JANUS_OK);
    CHECK_EQ(script.steps, 4);
    for (int i = 0; i < 4; i++) CHECK_EQ(script.log[i], JANUS_OK);
    CHECK(janus_now_ns() >= begun + 4 * rig_ms);
    return 0;
}

TEST("a resting task sleeps between its steps") { rig_all(tick_often, NULL, 20); }

/* Results. */

static int64_t join_results(void *argument)
{
    const int64_t results[] = {0, 7, INT64_MAX, INT64_MAX - 1, INT64_MAX - 2};
    (void)argument;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        struct script script = {.rests[0] = janus_rest_done(results[i])};
        int64_t       result = 0;
        janus_task_id id;
        janus_nursery n;
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(rig_ms / 10), follow, &script, NULL, &id),
                 JANUS_OK);
        CHECK_EQ(janus_join(&n, id, &result), JANUS_OK);
        CHECK_EQ(result, results[i]);
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(play(&script, janus_rest_done(results[i]), NULL, NULL), JANUS_OK);
        CHECK_EQ(script.steps, 1); /* the second one ended without a step */
    }
    return 0;
}

TEST("a resting task is joined, and any number is a result") { rig_all(join_results, NULL, 5); }

static int64_t fail_at_rest(void *argument)
{
    struct script        script = {.rests[0] = janus_rest_done(-321)};
    janus_nursery_result result;
    janus_nursery        n;
    janus_failure        failure;
    atomic_int           begun = 0;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&n, sleep_an_hour, &begun), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(rig_ms), follow, &script,
                                 JANUS_SPAWN_OPTIONS(.name = "breaker", .site = JANUS_SITE_HERE),
                                 NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_await_with(&n, NULL), JANUS_CHILD_FAILED);
    CHECK_EQ(janus_nursery_failures(&n, &failure, 1), 1);
    CHECK(strcmp(failure.name, "breaker") == 0);
    CHECK(strstr(failure.site.file, "rest_test.c") != NULL);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.error, -321);
    CHECK_EQ(result.errors, 1);
    return 0;
}

TEST("a resting task that fails cancels the others, and is reported with name and place")
{
    rig_all(fail_at_rest, NULL, 10);
}

/* Channels. */

enum { CROWD = 200, ROUNDS = 5 };

static int64_t feed_crowd(void *argument)
{
    static struct reader readers[CROWD];
    uint64_t             capacity = *(uint64_t *)argument;
    janus_channel        channel;
    janus_nursery        n;
    memset(readers, 0, sizeof readers);
    CHECK_EQ(janus_channel_create(sizeof(uint64_t), capacity, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        readers[i].channel = channel;
        janus_rest first = janus_rest_recv(channel, &readers[i].item);
        CHECK_EQ(janus_spawn_resting(&n, first, read_on, &readers[i], NULL, NULL), JANUS_OK);
    }
    for (uint64_t i = 1; i <= CROWD * ROUNDS; i++) {
        CHECK_EQ(janus_channel_send(channel, &i), JANUS_OK);
    }
    CHECK_EQ(janus_channel_close(channel), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    uint64_t sum = 0, steps = 0;
    for (int i = 0; i < CROWD; i++) {
        sum += readers[i].sum;
        steps += readers[i].steps;
        CHECK_EQ(readers[i].last, JANUS_CLOSED);
    }
    CHECK_EQ(sum, (uint64_t)CROWD * ROUNDS * (CROWD * ROUNDS + 1) / 2);
    CHECK_EQ(steps, CROWD * (ROUNDS + 1));
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("resting tasks receive every value once, and then learn that the channel is closed")
{
    uint64_t capacities[] = {0, 1, 64};
    for (int i = 0; i < 3; i++) rig_all(feed_crowd, &capacities[i], 5);
}

static int64_t use_bad_handles(void *argument)
{
    janus_channel good, mute, gone, forged, none = {{0, 0}};
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof(int), 1, NULL, &good), JANUS_OK);
    CHECK_EQ(janus_channel_create(sizeof(int), 1, NULL, &gone), JANUS_OK);
    CHECK_EQ(janus_channel_attenuate(good, JANUS_CHANNEL_MAY_SEND, &mute), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(gone), JANUS_OK);
    forged = good;
    forged.opaque[1] ^= 1;
    struct script script = {.steps = 0};
    script.rests[0] = janus_rest_recv(forged, &script.item);
    script.rests[1] = janus_rest_recv(gone, &script.item);
    script.rests[2] = janus_rest_recv(none, &script.item);
    script.rests[3] = janus_rest_recv(good, NULL);
    script.rests[4] = janus_rest_recv_until(good, &script.item, 0);
    script.rests[5] = janus_rest_recv_until(good, &script.item, in_ms(2));
    script.rests[6] = janus_rest_done(0);
    CHECK_EQ(play(&script, janus_rest_recv(mute, &script.item), NULL, NULL), JANUS_OK);
    const janus_status expected[] = {JANUS_CAP_RIGHT, JANUS_STALE,    JANUS_STALE,   JANUS_INVALID,
                                     JANUS_INVALID,   JANUS_DEADLINE, JANUS_DEADLINE};
    for (int i = 0; i < 7; i++) CHECK_EQ(script.log[i], expected[i]);
    CHECK_EQ(janus_channel_destroy(good), JANUS_OK);
    return 0;
}

TEST("a step gets the status that the receive would have returned")
{
    rig_all(use_bad_handles, NULL, 10);
}

static int64_t destroy_later(void *argument)
{
    struct script script = {.rests[0] = janus_rest_done(0)};
    janus_channel channel;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof(int), 1, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_recv(channel, &script.item), follow, &script, NULL,
                                 NULL),
             JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(script.steps, 1);
    CHECK(script.log[0] == JANUS_CLOSED || script.log[0] == JANUS_STALE);
    return 0;
}

TEST("a resting task learns that its channel was destroyed") { rig_all(destroy_later, NULL, 10); }

/* Cancels. */

static atomic_int dropped;

static void count_drop(void *argument)
{
    (void)argument;
    atomic_fetch_add(&dropped, 1);
}

static int64_t cancel_crowd(void *argument)
{
    static struct script scripts[CROWD];
    janus_channel        channel;
    janus_nursery        n;
    bool                 unwinds = argument != NULL;
    janus_cancel_mode    mode = unwinds ? JANUS_CANCEL_MODE_UNWIND : JANUS_CANCEL_MODE_RETURN;
    int                  stepped = 0;
    memset(scripts, 0, sizeof scripts);
    atomic_store(&dropped, 0);
    CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &channel), JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CROWD; i++) {
        scripts[i].rests[0] = janus_rest_done(JANUS_CANCELLED);
        janus_rest first = i % 2 != 0 ? janus_rest_sleep(3600 * JANUS_SECONDS)
                                      : janus_rest_recv(channel, &scripts[i].item);
        if (i % 4 == 0) first.deadline_ns = in_ms(3600000);
        CHECK_EQ(janus_spawn_resting(&n, first, follow, &scripts[i],
                                     JANUS_SPAWN_OPTIONS(.cancel = mode, .drop = count_drop), NULL),
                 JANUS_OK);
    }
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    for (int i = 0; i < CROWD; i++) {
        CHECK(scripts[i].steps <= (unwinds ? 0 : 1));
        if (scripts[i].steps == 1) CHECK_EQ(scripts[i].log[0], JANUS_CANCELLED);
        stepped += scripts[i].steps;
    }
    CHECK_EQ(atomic_load(&dropped) + stepped, CROWD); /* either a step got the state, or the drop */
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a cancel wakes resting tasks, whatever they wait for") { rig_all(cancel_crowd, NULL, 5); }

TEST("in the mode UNWIND a cancelled resting task ends without a step, and drops its state")
{
    rig_all(cancel_crowd, &(int){1}, 5);
}

static int64_t cancel_one(void *argument)
{
    struct script script = {.rests[0] = janus_rest_done(JANUS_CANCELLED)}, other = script;
    janus_task_id id;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(JANUS_SECONDS), follow, &script, NULL, &id),
             JANUS_OK);
    other.rests[0] = janus_rest_done(0);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(3 * rig_ms), follow, &other, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel_child(&n, id), JANUS_OK);
    CHECK_EQ(janus_join(&n, id, NULL), JANUS_CHILD_CANCELLED);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(other.log[0], JANUS_OK);
    return 0;
}

TEST("a resting task is cancelled alone, by its id") { rig_all(cancel_one, NULL, 10); }

static janus_rest never_obey(void *state, janus_status woke)
{
    (*(uint64_t *)state)++;
    (void)woke;
    return janus_rest_sleep(JANUS_SECONDS);
}

static int64_t cancel_stubborn(void *argument)
{
    uint64_t      steps = 0;
    janus_nursery n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), never_obey, &steps, NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_sleep(rig_ms), JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&n, NULL));
    CHECK(steps > 1);
    return 0;
}

TEST("a cancelled task that rests on and on ends when its cleanup allowance is used up")
{
    rig_all(cancel_stubborn, NULL, 3);
}

static int64_t cancel_before_start(void *argument)
{
    struct script script = {.rests[0] = janus_rest_done(0)};
    janus_nursery n;
    (void)argument;
    atomic_store(&dropped, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), follow, &script,
                                 JANUS_SPAWN_OPTIONS(.drop = count_drop), NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(script.steps, 0);
    CHECK_EQ(atomic_load(&dropped), 1);
    return 0;
}

TEST("a resting task that is cancelled before it begins drops its state")
{
    rig_run(1, cancel_before_start, NULL, 10);
}

/* Looking at them. */

static void await_blocked(janus_nursery *n, janus_task_id task)
{
    uint64_t limit = janus_now_ns() + rig_patience;
    for (;;) {
        janus_task_info info = JANUS_TASK_INFO();
        CHECK_EQ(janus_task_inspect(n, task, &info), JANUS_OK);
        if (info.state == JANUS_TASK_STATE_BLOCKED) return;
        CHECK(janus_now_ns() < limit);
        CHECK_EQ(janus_yield(), JANUS_OK);
    }
}

static int64_t look(void *argument)
{
    static char   text[1 << 16];
    struct script script = {.rests[0] = janus_rest_done(JANUS_CANCELLED)}, many[20];
    janus_channel channel;
    janus_nursery n;
    janus_task_id sleepers[20], receiver;
    int           ends[2];
    (void)argument;
    CHECK_EQ(
        janus_channel_create(sizeof(int), 0, JANUS_CHANNEL_OPTIONS(.name = "orders"), &channel),
        JANUS_OK);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    janus_rest receive = janus_rest_recv(channel, &script.item);
    CHECK_EQ(janus_spawn_resting(&n, receive, follow, &script, NULL, &receiver), JANUS_OK);
    for (int i = 0; i < 20; i++) {
        many[i] = script;
        CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(JANUS_SECONDS), follow, &many[i],
                                     JANUS_SPAWN_OPTIONS(.site = JANUS_SITE_HERE), &sleepers[i]),
                 JANUS_OK);
    }
    await_blocked(&n, receiver);
    for (int i = 0; i < 20; i++) await_blocked(&n, sleepers[i]);
    janus_task_info info = JANUS_TASK_INFO();
    CHECK_EQ(janus_task_inspect(&n, receiver, &info), JANUS_OK);
    CHECK(info.site.file == NULL);
    CHECK_EQ(janus_task_inspect(&n, sleepers[0], &info), JANUS_OK);
    CHECK_EQ(info.state, JANUS_TASK_STATE_BLOCKED);
    CHECK(strcmp(info.wait, "the clock, without a stack") == 0);
    CHECK(strstr(info.site.file, "rest_test.c") != NULL);
    CHECK_EQ(pipe(ends), 0);
    CHECK_EQ(janus_scheduler_dump(janus_scheduler_current(), ends[1]), JANUS_OK);
    ssize_t bytes = read(ends[0], text, sizeof text - 1);
    CHECK(bytes > 0);
    text[bytes] = '\0';
    CHECK(strstr(text, "channel \"orders\" to receive from, without a stack") != NULL);
    CHECK(strstr(text, "the clock, without a stack") != NULL);
    CHECK(strstr(text, "more like it") != NULL);
    CHECK(strstr(text, "?:0") == NULL && strstr(text, "(null)") == NULL);
    (void)close(ends[0]), (void)close(ends[1]);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("inspections and dumps show what a resting task waits for, and fold a crowd")
{
    rig_all(look, NULL, 3);
}

static int64_t get_stuck(void *argument)
{
    struct script script = {.rests[0] = janus_rest_done(0)};
    janus_channel channel;
    (void)argument;
    CHECK_EQ(janus_channel_create(sizeof(int), 0, NULL, &channel), JANUS_OK);
    CHECK_EQ(play(&script, janus_rest_recv(channel, &script.item), NULL, NULL), JANUS_OK);
    CHECK_EQ(script.log[0], JANUS_DEADLOCK);
    CHECK_EQ(janus_channel_destroy(channel), JANUS_OK);
    return 0;
}

TEST("a resting task that nobody can wake gets DEADLOCK")
{
    FILE *file = tmpfile();
    int   saved = dup(STDERR_FILENO);
    CHECK(file != NULL && saved >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    for (uint32_t workers = 1; workers <= 4; workers *= 2) {
        CHECK_EQ(janus_run(JANUS_SCHEDULER_OPTIONS(.worker_count = workers), get_stuck, NULL, NULL),
                 JANUS_DEADLOCK); /* the run tells of it, too */
    }
    CHECK(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved), (void)fclose(file);
}
