/* SPDX-License-Identifier: MIT */
/* Channels, one thing after the other: what every call says and leaves behind. */
#include "../task/town.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = TOWN_SLOW ? 3 : 20 };

static janus_channel open_channel(uint64_t capacity)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_open(sizeof(int64_t), capacity, NULL, &channel), JANUS_OK);
    return channel;
}

static janus_channel open_outside(uint64_t capacity)
{
    janus_channel channel;
    CHECK_EQ(janus_channel_open(sizeof(int64_t), capacity, JANUS_CHANNEL_OPTIONS(.outside = true),
                                &channel),
             JANUS_OK);
    return channel;
}

static void destroy(janus_channel channel) { CHECK_EQ(janus_channel_destroy(channel), JANUS_OK); }

static janus_channel_info look(janus_channel channel)
{
    janus_channel_info info = {.struct_bytes = sizeof info};
    CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_OK);
    CHECK_EQ(info.struct_bytes, sizeof info);
    return info;
}

/* Gives way until so many wait there. */
static void await_waiting(janus_channel channel, uint64_t senders, uint64_t receivers)
{
    uint64_t limit = janus_now_ns() + 20000 * town_ms;
    for (;;) {
        janus_channel_info info = look(channel);
        if (info.senders == senders && info.receivers == receivers) return;
        CHECK(janus_now_ns() < limit);
        janus_shield_begin();
        if (janus_yield() == JANUS_STATE) (void)janus_sleep(town_ms / 10); /* a plain thread */
        janus_shield_end();
    }
}

/* Values. */

static int64_t ring_around(void *argument)
{
    (void)argument;
    for (uint64_t capacity = 1; capacity < 6; capacity++) {
        janus_channel channel = open_channel(capacity);
        int64_t       sent = 0, received = 0, value = 0;
        for (int round = 0; round < 20; round++) {
            while (janus_channel_try_send(channel, &sent) == JANUS_OK) sent++;
            CHECK_EQ(look(channel).length, capacity);
            CHECK_EQ(janus_channel_try_send(channel, &sent), JANUS_WOULD_WAIT);
            for (uint64_t i = 0; i <= (uint64_t)round % capacity; i++) {
                CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
                CHECK_EQ(value, received++);
            }
        }
        while (janus_channel_try_recv(channel, &value) == JANUS_OK) CHECK_EQ(value, received++);
        CHECK_EQ(sent, received);
        CHECK_EQ(look(channel).high_water, capacity);
        CHECK_EQ(look(channel).length, 0);
        CHECK_EQ(janus_channel_try_recv(channel, &value), JANUS_WOULD_WAIT);
        destroy(channel);
    }
    return 0;
}

TEST("values come out in the order they went in, as many as the capacity, on tasks and threads")
{
    CHECK_EQ(ring_around(NULL), 0);
    town_all(ring_around, NULL, REPEATS);
}

static int64_t all_sizes(void *argument)
{
    static const size_t sizes[] = {0, 1, 2, 3, 7, 8, 9, 16, 64, 4099};
    (void)argument;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char in[4100], out[4100];
        janus_channel channel;
        memset(out, 0xee, sizeof out);
        CHECK_EQ(janus_channel_open(sizes[i], 3, NULL, &channel), JANUS_OK);
        for (unsigned char k = 1; k <= 3; k++) {
            memset(in, k, sizeof in);
            CHECK_EQ(janus_channel_send(channel, sizes[i] > 0 ? in : NULL), JANUS_OK);
        }
        for (unsigned char k = 1; k <= 3; k++) {
            CHECK_EQ(janus_channel_recv(channel, sizes[i] > 0 ? out : NULL), JANUS_OK);
            for (size_t at = 0; at < sizes[i]; at++) CHECK_EQ(out[at], k);
            CHECK_EQ(out[sizes[i]], 0xee);
        }
        CHECK_EQ(look(channel).item_bytes, sizes[i]);
        destroy(channel);
    }
    return 0;
}

TEST("values of any size are copied, and not a byte more") { town_run(2, all_sizes, NULL, 2); }

/* Handles. */

static int64_t rights(void *argument)
{
    janus_channel channel = open_channel(2), only[8], wider;
    int64_t       value = 5;
    (void)argument;
    for (uint32_t r = 1; r <= JANUS_CHANNEL_MAY_ALL; r++) {
        CHECK_EQ(janus_channel_attenuate(channel, r, &only[r]), JANUS_OK);
        CHECK_EQ(look(only[r]).rights, r);
    }
    for (uint32_t r = 1; r <= JANUS_CHANNEL_MAY_ALL; r++) {
        bool sends = r & JANUS_CHANNEL_MAY_SEND, receives = r & JANUS_CHANNEL_MAY_RECV;
        CHECK_EQ(janus_channel_try_send(only[r], &value), sends ? JANUS_OK : JANUS_CAP_RIGHT);
        CHECK_EQ(janus_channel_send(only[r], &value), sends ? JANUS_OK : JANUS_CAP_RIGHT);
        CHECK_EQ(look(channel).length, sends ? 2 : 0);
        if (!sends) CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        if (!sends) CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        CHECK_EQ(janus_channel_try_recv(only[r], &value), receives ? JANUS_OK : JANUS_CAP_RIGHT);
        CHECK_EQ(janus_channel_recv(only[r], &value), receives ? JANUS_OK : JANUS_CAP_RIGHT);
        while (janus_channel_try_recv(channel, &value) == JANUS_OK) continue;
        for (uint32_t w = 1; w <= JANUS_CHANNEL_MAY_ALL; w++) {
            janus_status wanted = (w & ~r) == 0 ? JANUS_OK : JANUS_CAP_WIDENS;
            CHECK_EQ(janus_channel_attenuate(only[r], w, &wider), wanted);
        }
        if (r != JANUS_CHANNEL_MAY_ALL) CHECK_EQ(janus_channel_destroy(only[r]), JANUS_CAP_RIGHT);
        if (!(r & JANUS_CHANNEL_MAY_CLOSE)) CHECK_EQ(janus_channel_close(only[r]), JANUS_CAP_RIGHT);
    }
    CHECK(!look(channel).closed);
    janus_select_case send_case = {
        .channel = only[JANUS_CHANNEL_MAY_RECV], .kind = JANUS_SELECT_SEND, .value = &value};
    CHECK_EQ(janus_try_select(&send_case, 1, NULL), JANUS_CAP_RIGHT);
    CHECK_EQ(janus_channel_attenuate(channel, 0, &wider), JANUS_INVALID);
    CHECK_EQ(janus_channel_attenuate(channel, 8, &wider), JANUS_INVALID);
    CHECK_EQ(janus_channel_close(only[JANUS_CHANNEL_MAY_CLOSE]), JANUS_OK);
    CHECK(look(channel).closed);
    destroy(channel);
    return 0;
}

TEST("a handle can do what its rights say and no other handle can be made of it")
{
    CHECK_EQ(rights(NULL), 0);
    town_run(2, rights, NULL, 1);
}

/* Every call must say that. */
static void check_all(janus_channel channel, janus_status status)
{
    int64_t            value = 1;
    size_t             chosen = 7;
    janus_channel      out;
    janus_channel_info info = {.struct_bytes = sizeof info};
    janus_select_case  one = {.channel = channel, .value = &value};
    CHECK_EQ(janus_channel_send(channel, &value), status);
    CHECK_EQ(janus_channel_send_until(channel, &value, 0), status);
    CHECK_EQ(janus_channel_try_send(channel, &value), status);
    CHECK_EQ(janus_channel_recv(channel, &value), status);
    CHECK_EQ(janus_channel_recv_until(channel, &value, 0), status);
    CHECK_EQ(janus_channel_try_recv(channel, &value), status);
    CHECK_EQ(janus_channel_close(channel), status);
    CHECK_EQ(janus_channel_inspect(channel, &info), status);
    CHECK_EQ(janus_channel_attenuate(channel, 1, &out), status);
    if (status != JANUS_STALE) return;
    CHECK_EQ(janus_channel_destroy(channel), status);
    CHECK_EQ(janus_select(&one, 1, &chosen), status);
    CHECK_EQ(chosen, 0);
}

static int64_t stale(void *argument)
{
    janus_channel old[100];
    (void)argument;
    check_all((janus_channel){{0, 0}}, JANUS_INVALID);
    CHECK_EQ(janus_channel_destroy((janus_channel){{0, 0}}), JANUS_OK);
    for (int i = 0; i < 100; i++) {
        old[i] = open_channel(1);
        for (int k = 0; k < i; k++) check_all(old[k], JANUS_STALE); /* their memory is used again */
        janus_channel forged = old[i];
        forged.opaque[0] ^= 1; /* other rights */
        check_all(forged, JANUS_STALE);
        forged = old[i];
        forged.opaque[1] ^= 2;
        check_all(forged, JANUS_STALE);
        CHECK_EQ(look(old[i]).length, 0);
        destroy(old[i]);
    }
    return 0;
}

TEST("a handle of a channel that is gone, or that was changed, is told so for ever")
{
    CHECK_EQ(stale(NULL), 0);
    town_run(1, stale, NULL, 2);
    town_run(2, stale, NULL, 2);
}

TEST("what no channel can be is refused and nothing is made")
{
    janus_channel         channel = {{1, 2}};
    janus_channel_options options = {.struct_bytes = sizeof options, .overflow = 3};
    janus_channel_options shorter = {.struct_bytes = sizeof(size_t), .overflow = 3};
    janus_channel_info    info = {.struct_bytes = 4};
    janus_overflow        drop = JANUS_OVERFLOW_DROP_OLDEST;
    CHECK_EQ(janus_channel_open(8, 1, NULL, NULL), JANUS_INVALID);
    CHECK_EQ(janus_channel_open(8, 1, &options, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_open(8, UINT64_MAX / 8, NULL, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_open(SIZE_MAX, 1, NULL, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_open(8, 0, JANUS_CHANNEL_OPTIONS(.overflow = drop), &channel),
             JANUS_INVALID);
    CHECK_EQ(janus_channel_open_unbounded(8, 7, NULL, &channel), JANUS_INVALID);
    CHECK_EQ(janus_channel_open_unbounded(8, 0, NULL, &channel), JANUS_INVALID);
    if (!JRT_ASAN && !JRT_TSAN) { /* they end the process where memory is refused */
        CHECK_EQ(janus_channel_open(1, PTRDIFF_MAX, NULL, &channel), JANUS_NO_MEMORY);
    }
    CHECK_EQ(channel.opaque[0], 1);
    CHECK_EQ(channel.opaque[1], 2);
    CHECK_EQ(janus_channel_open(8, 1, &shorter, &channel), JANUS_OK); /* it knows no overflow */
    CHECK_EQ(janus_channel_inspect(channel, NULL), JANUS_INVALID);
    CHECK_EQ(janus_channel_inspect(channel, &info), JANUS_INVALID);
    CHECK_EQ(janus_channel_send(channel, NULL), JANUS_INVALID);
    CHECK_EQ(janus_channel_recv(channel, NULL), JANUS_INVALID);
    CHECK_EQ(janus_select(NULL, 1, NULL), JANUS_INVALID);
    CHECK_EQ(look(channel).length, 0);
    destroy(channel);
}

/* Overflow. */

static int64_t policies(void *argument)
{
    janus_channel failing, dropping;
    int64_t       value = 0;
    (void)argument;
    CHECK_EQ(
        janus_channel_open(8, 3, JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_FAIL), &failing),
        JANUS_OK);
    CHECK_EQ(janus_channel_open(8, 3, JANUS_CHANNEL_OPTIONS(.overflow = JANUS_OVERFLOW_DROP_OLDEST),
                                &dropping),
             JANUS_OK);
    for (int64_t i = 0; i < 10; i++) {
        CHECK_EQ(janus_channel_send(failing, &i), i < 3 ? JANUS_OK : JANUS_FULL);
        CHECK_EQ(janus_channel_try_send(failing, &i), i < 2 ? JANUS_OK : JANUS_FULL);
        if (i < 2) CHECK_EQ(janus_channel_recv(failing, &value), JANUS_OK);
        CHECK_EQ(janus_channel_send(dropping, &i), JANUS_OK);
    }
    CHECK_EQ(look(failing).length, 3);
    CHECK_EQ(look(failing).dropped, 0);
    CHECK_EQ(look(dropping).length, 3);
    CHECK_EQ(look(dropping).dropped, 7);
    CHECK_EQ(look(dropping).high_water, 3);
    for (int64_t i = 7; i < 10; i++) {
        CHECK_EQ(janus_channel_recv(dropping, &value), JANUS_OK);
        CHECK_EQ(value, i);
    }
    CHECK_EQ(janus_channel_try_recv(dropping, &value), JANUS_WOULD_WAIT);
    destroy(failing);
    destroy(dropping);
    return 0;
}

TEST("a full channel fails or drops its oldest value, counted, where it was asked to")
{
    town_run(2, policies, NULL, 1);
}

static int64_t unbounded(void *argument)
{
    enum { MOST = 20000 };
    janus_channel channel;
    int64_t       value = 0, sent = 0, received = 0;
    (void)argument;
    CHECK_EQ(janus_channel_open_unbounded(8, MOST * 8 + 7, NULL, &channel), JANUS_OK);
    CHECK_EQ(look(channel).capacity, MOST);
    CHECK(look(channel).unbounded);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 5; i++, sent++) CHECK_EQ(janus_channel_send(channel, &sent), JANUS_OK);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(janus_channel_recv(channel, &value), JANUS_OK);
            CHECK_EQ(value, received++);
        }
        while (janus_channel_try_send(channel, &sent) == JANUS_OK) sent++;
        CHECK_EQ(look(channel).length, MOST);
        while (janus_channel_try_recv(channel, &value) == JANUS_OK) CHECK_EQ(value, received++);
        CHECK_EQ(sent, received);
    }
    CHECK_EQ(look(channel).high_water, MOST);
    destroy(channel);
    return 0;
}

TEST("an unbounded channel grows to its cap of bytes and not beyond, and keeps the order")
{
    CHECK_EQ(unbounded(NULL), 0);
    town_run(2, unbounded, NULL, 1);
}

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
        JANUS_NURSERY(outer)
        {
            for (int i = 0; i < meeting->receivers; i++) janus_spawn(outer, receive_all, meeting);
            JANUS_NURSERY(inner)
            {
                for (int i = 0; i < meeting->senders; i++) janus_spawn(inner, send_some, meeting);
            }
            CHECK_EQ(janus_channel_close(meeting->channel), JANUS_OK);
            CHECK_EQ(janus_channel_close(meeting->channel), JANUS_OK);
        }
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

TEST("whatever is sent is received once, with and without room, and closing tells all receivers")
{
    static struct meeting meeting = {.senders = 8, .receivers = 5, .each = 500};
    town_all(meet, &meeting, 2);
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
        JANUS_NURSERY(n)
        {
            for (uint64_t i = 0; i < 4; i++) {
                waiting[i] =
                    (struct waiting){.channel = channel, .value = (int64_t)i, .sends = sends};
                janus_spawn(n, wait_there, &waiting[i]);
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
                CHECK(town_wait(&waiting[i].returned));
                CHECK_EQ(waiting[i].status, JANUS_OK);
                if (!sends) CHECK_EQ(waiting[i].value, 100 + i);
            }
        }
    }
    destroy(channel);
    return 0;
}

TEST("who has waited longest is served first") { town_all(first_come, NULL, REPEATS); }

static int64_t close_on_them(void *argument)
{
    struct waiting waiting[5];
    bool           by_destroying = argument != NULL;
    for (int sends = 0; sends < 2; sends++) {
        janus_channel channel = open_channel(sends ? 1 : 0);
        int64_t       value = 77;
        if (sends) CHECK_EQ(janus_channel_send(channel, &value), JANUS_OK);
        JANUS_NURSERY(n)
        {
            for (int64_t i = 0; i < 5; i++) {
                waiting[i] = (struct waiting){.channel = channel, .value = i, .sends = sends};
                janus_spawn(n, wait_there, &waiting[i]);
            }
            await_waiting(channel, sends ? 5 : 0, sends ? 0 : 5);
            if (by_destroying) {
                destroy(channel);
            } else {
                CHECK_EQ(janus_channel_close(channel), JANUS_OK);
            }
        }
        for (int64_t i = 0; i < 5; i++) {
            CHECK_EQ(waiting[i].status, JANUS_CLOSED);
            CHECK_EQ(waiting[i].value, i); /* theirs */
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

TEST("closing or destroying tells all who wait CLOSED; senders keep their values, the rest drains")
{
    static int destroying;
    town_all(close_on_them, NULL, REPEATS);
    town_all(close_on_them, &destroying, REPEATS);
}

static int64_t too_late(void *argument)
{
    janus_channel empty = open_channel(0), full = open_channel(1);
    int64_t       value = 3;
    (void)argument;
    CHECK_EQ(janus_channel_send_until(full, &value, 0), JANUS_OK); /* it can be done at once */
    for (int i = 0; i < 2; i++) {
        uint64_t deadline = i == 0 ? 0 : janus_now_ns() + town_ms / 2;
        CHECK_EQ(janus_channel_recv_until(empty, &value, deadline), JANUS_DEADLINE);
        CHECK_EQ(janus_channel_send_until(empty, &value, deadline), JANUS_DEADLINE);
        CHECK(janus_now_ns() >= deadline);
        deadline = i == 0 ? 0 : janus_now_ns() + town_ms / 2;
        CHECK_EQ(janus_channel_send_until(full, &value, deadline), JANUS_DEADLINE);
        CHECK(janus_now_ns() >= deadline);
    }
    CHECK_EQ(look(empty).senders + look(empty).receivers + look(full).senders, 0);
    CHECK_EQ(janus_channel_recv_until(full, &value, 0), JANUS_OK);
    destroy(empty);
    destroy(full);
    return 0;
}

TEST("a deadline ends a wait, not what can be done at once, and leaves nobody in the queue")
{
    CHECK_EQ(too_late(NULL), 0);
    town_all(too_late, NULL, REPEATS);
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
    for (int64_t i = 1; i <= (TOWN_SLOW ? 200 : 2000); i++) {
        CHECK_EQ(janus_channel_send(both[0], &i), JANUS_OK);
        CHECK_EQ(janus_channel_recv(both[1], &value), JANUS_OK);
        CHECK_EQ(value, -i);
    }
    CHECK_EQ(janus_channel_close(both[0]), JANUS_OK);
    CHECK_EQ(janus_channel_recv(both[1], &value), JANUS_CLOSED);
    return 0;
}

TEST("a plain thread and a task talk, each blocking in its own way")
{
    for (uint64_t capacity = 0; capacity < 2; capacity++) {
        for (uint32_t workers = 1; workers < 3; workers++) {
            janus_channel both[2] = {open_outside(capacity), open_outside(capacity)};
            pthread_t     thread;
            CHECK_EQ(pthread_create(&thread, NULL, echo_thread, both), 0);
            town_run(workers, talk, both, 1);
            CHECK_EQ(pthread_join(thread, NULL), 0);
            destroy(both[0]);
            destroy(both[1]);
        }
    }
}

static int64_t talk_far(void *argument) { return talk(argument); }

static int64_t echo_task(void *argument) { return echo_thread(argument) != NULL; }

TEST("tasks of two schedulers talk")
{
    janus_channel    both[2] = {open_outside(0), open_outside(1)};
    janus_scheduler *here = town_open(JANUS_SCHEDULER_OPTIONS(.worker_count = 1));
    janus_nursery    root;
    CHECK_EQ(janus_nursery_open_in(here, &root, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn(&root, echo_task, both), JANUS_OK);
    town_run(2, talk_far, both, 1);
    CHECK_EQ(janus_nursery_end(&root, NULL), JANUS_OK);
    CHECK_EQ(janus_scheduler_close(here), JANUS_OK);
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
    (void)janus_nursery_end(&nursery, NULL);
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

TEST("a cancel ends waits at channels at once and leaves them as if nobody had waited")
{
    town_all(cancel_them, NULL, REPEATS);
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
        .channel = doomed->channel, .kind = JANUS_SELECT_SEND, .value = &value};
    atomic_store(&doomed->ready, 1);
    while (!janus_cancelled()) (void)janus_yield();
    CHECK_EQ(janus_channel_send(doomed->channel, &value), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_recv(doomed->channel, &value), JANUS_CANCELLED);
    CHECK_EQ(janus_select(&one, 1, NULL), JANUS_CANCELLED);
    CHECK_EQ(janus_channel_try_send(doomed->channel, &value), JANUS_OK); /* it does not wait */
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
    CHECK(town_wait(&doomed.ready));
    CHECK_EQ(janus_nursery_cancel(&nursery), JANUS_OK);
    (void)janus_nursery_end(&nursery, NULL);
    CHECK_EQ(atomic_load(&doomed.told), 1);
    CHECK_EQ(look(doomed.channel).length, 1);
    destroy(doomed.channel);
    return 0;
}

TEST("a cancelled task does not send, though there is room, unless it is shielded or only tries")
{
    town_all(cancel_before, NULL, 2);
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
        town_run(workers, stuck, channel, 1);
        CHECK_EQ(look(channel[0]).receivers + look(channel[1]).senders, 0);
    }
}

TEST(
    "where all tasks wait at channels they are told that nothing can happen, and at what they wait")
{
    int         status = 0;
    const char *text = harness_child(all_stuck, NULL, &status);
    CHECK_EQ(status, 0);
    CHECK(strstr(text, "blocked, waits for a channel to receive from") != NULL);
    CHECK(strstr(text, "blocked, waits for a channel to send to") != NULL);
    CHECK(strstr(text, "blocked, waits for one of several channels") != NULL);
}

/* A thread that is no worker sends late; nobody calls that a deadlock. */
struct late {
    janus_channel channel;
    atomic_int    ended;
};

static void *send_late(void *argument)
{
    struct late *late = argument;
    int64_t      value = 4;
    await_waiting(late->channel, 0, 1);
    (void)janus_sleep(20 * town_ms); /* time for a false alarm */
    CHECK_EQ(janus_channel_send(late->channel, &value), JANUS_OK);
    return NULL;
}

static int64_t receive_late(void *argument)
{
    struct late *late = argument;
    int64_t      value = 0;
    CHECK_EQ(janus_channel_recv(late->channel, &value), JANUS_OK);
    CHECK_EQ(value, 4);
    return 0;
}

TEST("waiting at a channel that others use too is no deadlock")
{
    struct late late = {.channel = open_outside(0)};
    pthread_t   thread;
    CHECK_EQ(pthread_create(&thread, NULL, send_late, &late), 0);
    town_run(2, receive_late, &late, 1);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    destroy(late.channel);
}

/* Taking turns. */

struct hog {
    janus_channel channel;
    atomic_int    others, done;
};

static int64_t talk_to_itself(void *argument)
{
    struct hog *hog = argument;
    int64_t     value = 0;
    uint64_t    limit = janus_now_ns() + 20000 * town_ms;
    while (!atomic_load(&hog->others)) {
        CHECK_EQ(janus_channel_send(hog->channel, &value), JANUS_OK);
        CHECK_EQ(janus_channel_recv(hog->channel, &value), JANUS_OK);
        CHECK(janus_now_ns() < limit);
    }
    return 0;
}

static int64_t run_after_yield(void *argument)
{
    struct hog *hog = argument;
    CHECK_EQ(janus_yield(), JANUS_OK);
    atomic_store(&hog->others, 1);
    return 0;
}

static int64_t share(void *argument)
{
    struct hog hog = {.channel = open_channel(1)};
    (void)argument;
    JANUS_NURSERY(n)
    {
        janus_spawn(n, talk_to_itself, &hog);
        janus_spawn(n, run_after_yield, &hog);
    }
    destroy(hog.channel);
    return 0;
}

TEST("a task whose channel is always ready lets others run") { town_run(1, share, NULL, 3); }
