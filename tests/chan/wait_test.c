/* SPDX-License-Identifier: MIT */
/* Waiting at channels: which task is served, what ends a wait, and what is left behind. */
#include "../task/slumber.h"
#include "channels.h"

#include <pthread.h>
#include <string.h>

/* Meeting. */

struct meeting {
    janus_channel channel;
    int           senders, receivers, each;
    atomic_int    seen[4096];
    atomic_int    closed;
};

static int64_t send_some(void *argument)
{
    struct meeting   *meeting = argument;
    static atomic_int next;
    int               from = atomic_fetch_add(&next, 1) % meeting->senders * meeting->each;
    for (int64_t i = from; i < from + meeting->each; i++) {
        CHECK_EQ(janus_channel_send(meeting->channel, &i), JANUS_OK);
    }
    return 0;
}

static int64_t receive_all(void *argument)
{
    struct meeting *meeting = argument;
    int64_t         value = 0;
    janus_status    status;
    while ((status = janus_channel_recv(meeting->channel, &value)) == JANUS_OK) {
        atomic_fetch_add(&meeting->seen[value], 1);
    }
    CHECK_EQ(status, JANUS_CLOSED);
    atomic_fetch_add(&meeting->closed, 1);
    return 0;
}

static int64_t meet(void *argument)
{
    struct meeting *meeting = argument;
    for (uint64_t capacity = 0; capacity < 3; capacity++) {
        memset(meeting->seen, 0, sizeof meeting->seen);
        atomic_store(&meeting->closed, 0);
        meeting->channel = open_channel(capacity);
        janus_status ended;
        JANUS_NURSERY(outer, ended)
        {
            for (int i = 0; i < meeting->receivers; i++) {
                CHECK_EQ(janus_spawn(outer, receive_all, meeting), JANUS_OK);
            }
            JANUS_NURSERY(inner, ended)
            {
                for (int i = 0; i < meeting->senders; i++)
                    CHECK_EQ(janus_spawn(inner, send_some, meeting), JANUS_OK);
            }
            CHECK_EQ(ended, JANUS_OK);
            CHECK_EQ(janus_channel_close(meeting->channel), JANUS_OK);
            CHECK_EQ(janus_channel_close(meeting->channel), JANUS_OK);
        }
        CHECK_EQ(ended, JANUS_OK);
        CHECK_EQ(atomic_load(&meeting->closed), meeting->receivers);
        for (int i = 0; i < meeting->senders * meeting->each; i++) {
            CHECK_EQ(atomic_load(&meeting->seen[i]), 1);
        }
        CHECK_EQ(look(meeting->channel).length, 0);
        CHECK_EQ(look(meeting->channel).high_water <= capacity, 1);
        destroy(meeting->channel);
    }
    return 0;
}

TEST("each sent value is received once, with and without room, and a close wakes all receivers")
{
    static struct meeting meeting = {.senders = 8, .receivers = 5, .each = 500};
    rig_all(meet, &meeting, 2);
}

struct waiting {
    janus_channel channel;
    int64_t       value;
    janus_status  status;
    uint64_t      deadline_ns;
    atomic_int    returned;
    bool          sends;
};

static int64_t wait_there(void *argument)
{
    struct waiting *waiting = argument;
    uint64_t        until = waiting->deadline_ns != 0 ? waiting->deadline_ns : UINT64_MAX;
    if (waiting->sends) {
        waiting->status = janus_channel_send_until(waiting->channel, &waiting->value, until);
    } else {
        waiting->status = janus_channel_recv_until(waiting->channel, &waiting->value, until);
    }
    atomic_store(&waiting->returned, 1);
    return 0;
}

static int64_t first_come(void *argument)
{
    struct waiting waiting[4];
    janus_channel  channel = open_channel(0);
    (void)argument;
    for (int sends = 0; sends < 2; sends++) {
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (uint64_t i = 0; i < 4; i++) {
                waiting[i] =
                    (struct waiting){.channel = channel, .value = (int64_t)i, .sends = sends};
                CHECK_EQ(janus_spawn(n, wait_there, &waiting[i]), JANUS_OK);
                await_waiting(channel, sends ? i + 1 : 0, sends ? 0 : i + 1);
            }
            for (int64_t i = 0; i < 4; i++) {
                int64_t value = 100 + i;
                if (sends) {
                    CHECK_EQ(janus_channel_try_recv(channel, &value), JANUS_OK);
                    CHECK_EQ(value, i);
                } else {
                    CHECK_EQ(janus_channel_try_send(channel, &value), JANUS_OK);
                }
                CHECK(rig_wait(&waiting[i].returned));
                CHECK_EQ(waiting[i].status, JANUS_OK);
                if (!sends) CHECK_EQ(waiting[i].value, 100 + i);
            }
        }
        CHECK_EQ(ended, JANUS_OK);
    }
    destroy(channel);
    return 0;
}

TEST("the longest waiter is served first") { rig_all(first_come, NULL, REPEATS); }

static int64_t close_on_them(void *argument)
{
    struct waiting waiting[5];
    bool           by_destroying = argument != NULL;
    for (int sends = 0; sends < 2; sends++) {
        janus_channel channel = open_channel(sends ? 1 : 0);
        int64_t       value = 77;
        if (sends) CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        janus_status ended;
        JANUS_NURSERY(n, ended)
        {
            for (int64_t i = 0; i < 5; i++) {
                waiting[i] = (struct waiting){.channel = channel, .value = i, .sends = sends};
                CHECK_EQ(janus_spawn(n, wait_there, &waiting[i]), JANUS_OK);
            }
            await_waiting(channel, sends ? 5 : 0, sends ? 0 : 5);
            if (by_destroying) {
                destroy(channel);
            } else {
                CHECK_EQ(janus_channel_close(channel), JANUS_OK);
            }
        }
        CHECK_EQ(ended, JANUS_OK);
        for (int64_t i = 0; i < 5; i++) {
            CHECK_EQ(waiting[i].status, JANUS_CLOSED);
            CHECK_EQ(waiting[i].value, i); /* still theirs */
        }
        if (by_destroying) continue;
        CHECK_EQ(janus_channel_send(channel, &value), JANUS_CLOSED);
        if (sends) CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
        CHECK_EQ(value, 77);
        CHECK_EQ(janus_channel_recv(channel, &value), JANUS_CLOSED);
        destroy(channel);
    }
    return 0;
}

TEST("a close or destroy wakes all with CLOSED, senders keep their values, receivers drain")
{
    static int destroying;
    rig_all(close_on_them, NULL, REPEATS);
    rig_all(close_on_them, &destroying, REPEATS);
}

static int64_t too_late(void *argument)
{
    janus_channel empty = open_channel(0), full = open_channel(1);
    int64_t       value = 3;
    (void)argument;
    CHECK_EQ(janus_channel_send_until(full, &value, 0), JANUS_OK); /* it can be done at once */
    for (int i = 0; i < 2; i++) {
        uint64_t deadline = i == 0 ? 0 : janus_now_ns() + rig_ms / 2;
        CHECK_EQ(janus_channel_recv_until(empty, &value, deadline), JANUS_DEADLINE);
        CHECK_EQ(janus_channel_send_until(empty, &value, deadline), JANUS_DEADLINE);
        CHECK(janus_now_ns() >= deadline);
        deadline = i == 0 ? 0 : janus_now_ns() + rig_ms / 2;
        CHECK_EQ(janus_channel_send_until(full, &value, deadline), JANUS_DEADLINE);
        CHECK(janus_now_ns() >= deadline);
    }
    CHECK_EQ(look(empty).senders + look(empty).receivers + look(full).senders, 0);
    CHECK_EQ(janus_channel_recv_until(full, &value, 0), JANUS_OK);
    destroy(empty);
    destroy(full);
    return 0;
}

TEST("a deadline ends a wait, not what can be done at once, and leaves no entry in the queue")
{
    CHECK_EQ(too_late(NULL), 0);
    rig_all(too_late, NULL, REPEATS);
}

/* Plain threads. */

static void *echo_thread(void *argument)
{
    janus_channel *both = argument;
    int64_t        value = 0;
    janus_status   status;
    while ((status = janus_channel_recv(both[0], &value)) == JANUS_OK) {
        value = -value;
        CHECK_EQ(janus_channel_send(both[1], &value), JANUS_OK);
    }
    CHECK_EQ(status, JANUS_CLOSED);
    CHECK_EQ(janus_channel_close(both[1]), JANUS_OK);
    return NULL;
}

static int64_t talk(void *argument)
{
    janus_channel *both = argument;
    int64_t        value = 0;
    for (int64_t i = 1; i <= (RIG_SLOW ? 200 : 2000); i++) {
        CHECK_EQ(janus_channel_send(both[0], &i), JANUS_OK);
        CHECK_EQ(janus_channel_recv(both[1], &value), JANUS_OK);
        CHECK_EQ(value, -i);
    }
    CHECK_EQ(janus_channel_close(both[0]), JANUS_OK);
    CHECK_EQ(janus_channel_recv(both[1], &value), JANUS_CLOSED);
    return 0;
}

TEST("a plain thread and a task exchange values, each blocking in its own way")
{
    RIG_REAL("a thread outside takes part");
    for (uint64_t capacity = 0; capacity < 2; capacity++) {
        for (uint32_t workers = 1; workers < 3; workers++) {
            janus_channel both[2] = {open_outside(capacity), open_outside(capacity)};
            pthread_t     thread;
            CHECK_EQ(pthread_create(&thread, NULL, echo_thread, both), 0);
            rig_run(workers, talk, both, 1);
            CHECK_EQ(pthread_join(thread, NULL), 0);
            destroy(both[0]);
            destroy(both[1]);
        }
    }
}

static int64_t talk_far(void *argument) { return talk(argument); }

static int64_t echo_task(void *argument) { return echo_thread(argument) != NULL; }

TEST("tasks of two schedulers exchange values")
{
    janus_channel    both[2] = {open_outside(0), open_outside(1)};
    janus_scheduler *here = rig_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_nursery    root;
    CHECK_EQ(janus_nursery_open_in(here, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, echo_task, both), JANUS_OK);
    rig_run(2, talk_far, both, 1);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_destroy(here), JANUS_OK);
    destroy(both[0]);
    destroy(both[1]);
}

/* Cancelling, deadlocks. */

static int64_t cancel_them(void *argument)
{
    struct waiting waiting[4];
    janus_channel  empty = open_channel(0), full = open_channel(1);
    int64_t        value = 9;
    (void)argument;
    CHECK_EQ(janus_channel_send(full, &value), JANUS_OK);
    janus_nursery nursery;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    for (int i = 0; i < 4; i++) {
        waiting[i] = (struct waiting){.channel = i < 2 ? empty : full, .value = i, .sends = i >= 2};
        CHECK_EQ(janus_spawn(&nursery, wait_there, &waiting[i]), JANUS_OK);
    }
    await_waiting(empty, 0, 2);
    await_waiting(full, 2, 0);
    CHECK_EQ(janus_nursery_cancel(&nursery), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(waiting[i].status, JANUS_CANCELLED);
        CHECK_EQ(waiting[i].value, i);
    }
    CHECK_EQ(look(empty).receivers, 0);
    CHECK_EQ(look(full).senders, 0);
    CHECK_EQ(look(full).length, 1);
    CHECK_EQ(janus_channel_recv(full, &value), JANUS_OK);
    CHECK_EQ(value, 9);
    CHECK_EQ(janus_channel_try_recv(full, &value), JANUS_WOULD_WAIT);
    CHECK_EQ(janus_channel_try_send(empty, &value), JANUS_WOULD_WAIT);
    destroy(empty);
    destroy(full);
    return 0;
}

TEST("a cancel ends waits at channels at once and leaves the channels as before the wait")
{
    rig_all(cancel_them, NULL, REPEATS);
}

struct doomed {
    janus_channel channel;
    atomic_int    ready, told;
};

static int64_t send_cancelled(void *argument)
{
    struct doomed    *doomed = argument;
    int64_t           value = 1;
    janus_select_case one = {
        .channel = doomed->channel, .kind = JANUS_SELECT_KIND_SEND, .value = &value};
    atomic_store(&doomed->ready, 1);
    while (!janus_cancelled()) JANUS_IGNORE(janus_yield());
    CHECK_EQ(janus_channel_send(doomed->channel, &value), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_recv(doomed->channel, &value), JANUS_CANCELLED);
    CHECK_EQ(janus_select(&one, 1, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_try_send(doomed->channel, &value), JANUS_OK); /* it does not wait */
    CHECK_EQ(janus_channel_try_recv(doomed->channel, &value), JANUS_OK);
    CHECK_EQ(janus_try_select(&one, 1, NULL), JANUS_OK);
    CHECK_EQ(janus_channel_try_recv(doomed->channel, &value), JANUS_OK);
    janus_shield_begin();
    CHECK_EQ(janus_channel_send(doomed->channel, &value), JANUS_OK);
    janus_shield_end();
    atomic_store(&doomed->told, 1);
    return JANUS_CANCELLED;
}

static int64_t cancel_before(void *argument)
{
    struct doomed doomed = {.channel = open_channel(3)};
    janus_nursery nursery;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&nursery, send_cancelled, &doomed), JANUS_OK);
    CHECK(rig_wait(&doomed.ready));
    CHECK_EQ(janus_nursery_cancel(&nursery), JANUS_OK);
    JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
    CHECK_EQ(atomic_load(&doomed.told), 1);
    CHECK_EQ(look(doomed.channel).length, 1);
    destroy(doomed.channel);
    return 0;
}

TEST("a cancelled task does not send, even with room, unless it is shielded or only tries")
{
    rig_all(cancel_before, NULL, 2);
}

static int64_t stuck(void *argument)
{
    janus_channel    *channel = argument;
    int64_t           value = 0;
    janus_select_case cases[2] = {{.channel = channel[0], .value = &value},
                                  {.channel = channel[1], .value = &value}};
    CHECK_EQ(janus_channel_recv(channel[0], &value), JANUS_DEADLOCK);
    CHECK_EQ(janus_channel_send(channel[1], &value), JANUS_DEADLOCK);
    CHECK_EQ(janus_select(cases, 2, NULL), JANUS_DEADLOCK);
    return 0;
}

static void all_stuck(void *argument)
{
    (void)argument;
    for (uint32_t workers = 1; workers < 3; workers++) {
        janus_channel channel[2] = {open_channel(0), open_channel(0)};
        rig_run(workers, stuck, channel, 1);
        CHECK_EQ(look(channel[0]).receivers + look(channel[1]).senders, 0);
    }
}

TEST("if all tasks wait at channels, they get DEADLOCK, and the report names the channels")
{
    int         status = 0;
    const char *text = harness_child(all_stuck, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "blocked, waits for a channel to receive from") != NULL);
    CHECK(strstr(text, "blocked, waits for a channel to send to") != NULL);
    CHECK(strstr(text, "blocked, waits for one of several channels") != NULL);
}

/* A thread that is not a worker comes late. That is not a deadlock. */

enum { LATE_TIMES = 3 };
enum late_way { LATE_RECV, LATE_SEND, LATE_SELECT, LATE_WAYS };

struct late {
    janus_channel              inside, channel; /* only the second is open to plain threads */
    enum late_way              way;
    _Atomic(janus_scheduler *) scheduler;
};

static void *come_late(void *argument)
{
    struct late *late = argument;
    int64_t      value = 4;
    for (int round = 0; round < LATE_TIMES; round++) { /* a served task no longer counts */
        await_waiting(late->channel, late->way == LATE_SEND, late->way != LATE_SEND);
        slumber_until(atomic_load(&late->scheduler), 1);
        CHECK_EQ(late->way == LATE_SEND ? janus_channel_recv(late->channel, &value)
                                        : janus_channel_send(late->channel, &value),
                 JANUS_OK);
        CHECK_EQ(value, 4);
    }
    return NULL;
}

static int64_t wait_for_late(void *argument)
{
    struct late      *late = argument;
    int64_t           value = late->way == LATE_SEND ? 4 : 0, other = 0;
    janus_select_case cases[3] = {{.channel = late->inside, .value = &other},
                                  {.channel = late->channel, .value = &value},
                                  {.channel = late->inside, .value = &other}};
    atomic_store(&late->scheduler, jrt_worker_self()->scheduler);
    for (int round = 0; round < LATE_TIMES; round++) { /* the first wait takes another path */
        CHECK_EQ(late->way == LATE_RECV   ? janus_channel_recv(late->channel, &value)
                 : late->way == LATE_SEND ? janus_channel_send(late->channel, &value)
                                          : janus_select(cases, 3, NULL),
                 JANUS_OK);
        CHECK_EQ(value, 4);
    }
    return 0;
}

TEST("waiting at a channel that plain threads may use, alone or among several, is no deadlock")
{
    RIG_REAL("a thread outside takes part");
    for (int i = 0; i < REPEATS * LATE_WAYS; i++) {
        struct late late = {.inside = open_channel(0),
                            .channel = open_outside(0),
                            .way = (enum late_way)(i % LATE_WAYS)};
        pthread_t   thread;
        CHECK_EQ(pthread_create(&thread, NULL, come_late, &late), 0);
        rig_run(1 + (uint32_t)i % 2, wait_for_late, &late, 1);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        destroy(late.inside);
        destroy(late.channel);
    }
}

/* Cancelled tasks that end where they wait. */

struct unwound {
    janus_channel channel;
    atomic_int    waits, cleaned;
    bool          selects;
};

static void clean(void *argument)
{
    struct unwound *unwound = argument;
    int64_t         value = 8;
    CHECK_EQ(janus_channel_send(unwound->channel, &value), JANUS_OK); /* a defer runs in a shield */
    atomic_store(&unwound->cleaned, 1);
}

static int64_t wait_to_be_unwound(void *argument)
{
    struct unwound   *unwound = argument;
    int64_t           value = 0;
    janus_select_case one = {.channel = unwound->channel, .value = &value};
    CHECK_EQ(janus_defer(clean, unwound), JANUS_OK);
    CHECK_EQ(unwound->selects ? janus_select(&one, 1, NULL)
                              : janus_channel_recv(unwound->channel, &value),
             JANUS_STATE); /* it does not return */
    return 0;
}

static int64_t unwind_them(void *argument)
{
    (void)argument;
    for (int selects = 0; selects < 2; selects++) {
        struct unwound unwound = {.channel = open_channel(1), .selects = selects != 0};
        janus_nursery  nursery;
        int64_t        value = 0;
        CHECK_EQ(janus_nursery_open(&nursery, NULL), JANUS_OK);
        CHECK_EQ(janus_spawn_with(&nursery, wait_to_be_unwound, &unwound,
                                  JANUS_SPAWN_OPTIONS(.cancel = JANUS_CANCEL_MODE_UNWIND), NULL),
                 JANUS_OK);
        await_waiting(unwound.channel, 0, 1);
        CHECK_EQ(janus_nursery_cancel(&nursery), JANUS_OK);
        JANUS_IGNORE(janus_nursery_end(&nursery, NULL));
        CHECK_EQ(atomic_load(&unwound.cleaned), 1);
        CHECK_EQ(look(unwound.channel).receivers, 0);
        CHECK_EQ(janus_channel_recv(unwound.channel, &value), JANUS_OK);
        CHECK_EQ(value, 8);
        destroy(unwound.channel);
    }
    return 0;
}

TEST("a task in unwind mode that is cancelled at a channel is off its queue before it ends")
{
    rig_all(unwind_them, NULL, REPEATS);
}

/* Many. */

struct many {
    janus_channel channel;
    atomic_int    told;
};

static int64_t wait_with_many(void *argument)
{
    struct many *many = argument;
    int64_t      value = -1;
    CHECK_EQ(janus_channel_recv(many->channel, &value), JANUS_CLOSED);
    CHECK_EQ(value, -1);
    atomic_fetch_add(&many->told, 1);
    return 0;
}

static int64_t close_on_many(void *argument)
{
    enum { MANY = RIG_SLOW ? 500 : 2000 };
    struct many many = {.channel = open_channel(0)};
    (void)argument;
    janus_status ended;
    JANUS_NURSERY(n, ended)
    {
        for (int i = 0; i < MANY; i++) CHECK_EQ(janus_spawn(n, wait_with_many, &many), JANUS_OK);
        await_waiting(many.channel, 0, MANY);
        CHECK_EQ(janus_channel_close(many.channel), JANUS_OK);
    }
    CHECK_EQ(ended, JANUS_OK);
    CHECK_EQ(atomic_load(&many.told), MANY);
    destroy(many.channel);
    return 0;
}

TEST("a close wakes each of thousands of tasks that wait at a channel")
{
    rig_all(close_on_many, NULL, 1);
}
