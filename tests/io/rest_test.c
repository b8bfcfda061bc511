/* SPDX-License-Identifier: MIT */
/* Resting tasks that wait for descriptors. */
#include "wire.h"

#include <stdio.h>

/* An idle connection: echoes each byte, and closes its end when the other end has closed. */
struct connection {
    janus_io     io;
    uint64_t     bytes, steps;
    janus_status last;
};

static janus_rest echo(void *state, janus_status woke)
{
    struct connection *self = state;
    unsigned char      byte;
    size_t             got = 0, done = 0;
    janus_status       status = woke;
    self->steps++;
    while (status == JANUS_OK) {
        status = janus_io_try_read(self->io, &byte, 1, &got);
        if (status != JANUS_OK) break;
        status = janus_io_write(self->io, &byte, 1, &done);
        self->bytes++;
    }
    self->last = status;
    if (status == JANUS_WOULD_WAIT) return janus_rest_io_wait(self->io, JANUS_IO_READ);
    return janus_rest_done(status == JANUS_CLOSED || status == JANUS_DEADLINE ? 0 : status);
}

static void start(janus_nursery *n, struct connection *connection, janus_io io)
{
    *connection = (struct connection){.io = io};
    CHECK_EQ(
        janus_spawn_resting(n, janus_rest_io_wait(io, JANUS_IO_READ), echo, connection, NULL, NULL),
        JANUS_OK);
}

static void ask(janus_io io, unsigned char byte)
{
    wire_put(io, &byte, 1);
    CHECK_EQ(wire_get(io), byte);
}

enum { CONNECTIONS = RIG_SLOW ? 20 : 100, ASKS = 5 };

static int64_t idle_connections(void *argument)
{
    static struct connection all[CONNECTIONS];
    janus_io                 ends[CONNECTIONS][2];
    janus_nursery            n;
    (void)argument;
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < CONNECTIONS; i++) {
        if (i % 2 == 0) wire_pair(ends[i]);
        if (i % 2 != 0) wire_tcp(ends[i]);
        start(&n, &all[i], ends[i][1]);
    }
    for (int round = 0; round < ASKS; round++) {
        for (int i = 0; i < CONNECTIONS; i++) ask(ends[i][0], (unsigned char)(i + round));
    }
    for (int i = 0; i < CONNECTIONS; i++) CHECK_EQ(janus_io_close(ends[i][0]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    for (int i = 0; i < CONNECTIONS; i++) {
        CHECK_EQ(all[i].bytes, ASKS);
        CHECK_EQ(all[i].last, JANUS_CLOSED);
        CHECK_EQ(janus_io_close(ends[i][1]), JANUS_OK);
    }
    return 0;
}

TEST("resting tasks echo, and learn of the end of their streams")
{
    rig_all(idle_connections, NULL, 3);
}

static int64_t wake_in_many_ways(void *argument)
{
    struct connection connection;
    janus_io          ends[2];
    janus_nursery     n;
    (void)argument;
    wire_pair(ends); /* its own end is closed by another task */
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    start(&n, &connection, ends[1]);
    wire_await_waiter(ends[1], JANUS_IO_READ);
    CHECK_EQ(janus_io_wait(ends[1], JANUS_IO_READ), JANUS_STATE); /* it has a reader */
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(connection.last, JANUS_CLOSED);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);

    wire_pair(ends); /* a deadline set before, and a deadline set meanwhile */
    for (int late = 0; late < 2; late++) {
        CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
        CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ,
                                       janus_now_ns() + (late ? 3600000 : 2) * rig_ms),
                 JANUS_OK);
        start(&n, &connection, ends[1]);
        if (late) { /* the other deadline may pass before anybody sees the waiter */
            wire_await_waiter(ends[1], JANUS_IO_READ);
            (void)janus_io_set_deadline(ends[1], JANUS_IO_READ, janus_now_ns() + rig_ms);
        }
        CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
        CHECK_EQ(connection.last, JANUS_DEADLINE);
        CHECK_EQ(connection.steps, 1);
    }
    CHECK_EQ(janus_io_set_deadline(ends[1], JANUS_IO_READ, JANUS_IO_NEVER), JANUS_OK);

    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK); /* a cancel */
    start(&n, &connection, ends[1]);
    wire_await_waiter(ends[1], JANUS_IO_READ);
    CHECK_EQ(janus_nursery_cancel(&n), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_CANCELLED);
    CHECK_EQ(connection.last, JANUS_CANCELLED);
    wire_put(ends[0], "x", 1);
    CHECK_EQ(wire_get(ends[1]), 'x'); /* the handle has no reader any more */
    wire_close(ends);
    return 0;
}

TEST("a close, a deadline and a cancel end the rest at a handle")
{
    rig_all(wake_in_many_ways, NULL, 10);
}

struct tries {
    janus_rest   rests[6];
    janus_status log[6];
    int          steps;
};

static janus_rest try_next(void *state, janus_status woke)
{
    struct tries *self = state;
    self->log[self->steps] = woke;
    return self->rests[self->steps++];
}

static int64_t use_bad_handles(void *argument)
{
    janus_io      ends[2], gone[2], mute, none = {{0, 0}};
    janus_nursery n;
    struct tries  tries = {.steps = 0};
    (void)argument;
    wire_pair(ends);
    wire_pair(gone);
    wire_close(gone);
    CHECK_EQ(janus_io_attenuate(ends[0], JANUS_IO_MAY_WRITE, &mute), JANUS_OK);
    janus_io forged = ends[0];
    forged.opaque[1] ^= 2;
    tries.rests[0] = janus_rest_io_wait(none, JANUS_IO_READ);
    tries.rests[1] = janus_rest_io_wait(forged, JANUS_IO_READ);
    tries.rests[2] = janus_rest_io_wait(mute, JANUS_IO_READ);
    tries.rests[3] = janus_rest_io_wait(ends[0], 3);
    tries.rests[4] = janus_rest_io_wait(ends[0], JANUS_IO_WRITE);
    tries.rests[5] = janus_rest_done(0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_io_wait(gone[0], JANUS_IO_READ), try_next, &tries,
                                 NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    const janus_status expected[] = {JANUS_STALE,     JANUS_INVALID, JANUS_STALE,
                                     JANUS_CAP_RIGHT, JANUS_INVALID, JANUS_OK};
    for (int i = 0; i < 6; i++) CHECK_EQ(tries.log[i], expected[i]);
    wire_close(ends);
    return 0;
}

TEST("a step gets the status that janus_io_wait would have returned")
{
    rig_all(use_bad_handles, NULL, 10);
}

static int64_t look_at_it(void *argument)
{
    static char       text[1 << 16];
    struct connection connection;
    janus_io          ends[2];
    janus_nursery     n;
    int               fds[2];
    (void)argument;
    wire_pair(ends);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    start(&n, &connection, ends[1]);
    wire_await_waiter(ends[1], JANUS_IO_READ);
    CHECK_EQ(pipe(fds), 0);
    for (int i = 0; i < 100 && strstr(text, ", without a stack") == NULL; i++) {
        CHECK_EQ(janus_yield(), JANUS_OK); /* it has joined, and is about to rest */
        CHECK_EQ(janus_scheduler_dump(janus_scheduler_current(), fds[1]), JANUS_OK);
        ssize_t bytes = read(fds[0], text, sizeof text - 1);
        CHECK(bytes > 0);
        text[bytes] = '\0';
    }
    CHECK(strstr(text, "waits for bytes to read") != NULL);
    CHECK(strstr(text, ", without a stack") != NULL);
    (void)close(fds[0]), (void)close(fds[1]);
    CHECK_EQ(janus_io_close(ends[0]), JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_io_close(ends[1]), JANUS_OK);
    return 0;
}

TEST("a dump shows the handle that a resting task waits for") { rig_all(look_at_it, NULL, 3); }

/* Many writers, deadlines and a cancel at the same moments. */

static atomic_int closed;

static int64_t write_some(void *argument)
{
    janus_io io = *(janus_io *)argument;
    for (int i = 0; i < 30; i++) {
        wire_put(io, "abc", 3);
        (void)janus_io_set_deadline(io, JANUS_IO_READ, janus_now_ns() + 1000 * (uint64_t)i);
        if (i % 4 == 0) CHECK_EQ(janus_sleep(20000), JANUS_OK);
    }
    (void)janus_io_shutdown(io, JANUS_IO_WRITE);
    return 0;
}

static janus_rest swallow(void *state, janus_status woke)
{
    struct connection *self = state;
    char               bytes[2];
    size_t             got = 0;
    janus_status       status = woke;
    if (woke == JANUS_DEADLINE) {
        (void)janus_io_set_deadline(self->io, JANUS_IO_READ, janus_now_ns() + 30000);
        status = JANUS_OK;
    }
    while (status == JANUS_OK) {
        status = janus_io_try_read(self->io, bytes, sizeof bytes, &got);
        if (status == JANUS_OK) self->bytes += got;
    }
    if (status == JANUS_WOULD_WAIT || status == JANUS_DEADLINE)
        return janus_rest_io_wait(self->io, JANUS_IO_READ);
    atomic_fetch_add(&closed, status == JANUS_CLOSED);
    return janus_rest_done(status == JANUS_CLOSED ? 0 : status);
}

static int64_t race(void *argument)
{
    enum { PAIRS = 20 };
    static struct connection all[PAIRS];
    janus_io                 ends[PAIRS][2];
    janus_nursery            n;
    (void)argument;
    atomic_store(&closed, 0);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    for (int i = 0; i < PAIRS; i++) {
        wire_pair(ends[i]);
        all[i] = (struct connection){.io = ends[i][1]};
        (void)janus_io_set_deadline(ends[i][1], JANUS_IO_READ, janus_now_ns() + 20000);
        CHECK_EQ(janus_spawn_resting(&n, janus_rest_io_wait(ends[i][1], JANUS_IO_READ), swallow,
                                     &all[i], NULL, NULL),
                 JANUS_OK);
        CHECK_EQ(janus_spawn(&n, write_some, &ends[i][0]), JANUS_OK);
    }
    CHECK_EQ(janus_nursery_end(&n, NULL), JANUS_OK);
    CHECK_EQ(atomic_load(&closed), PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        CHECK_EQ(all[i].bytes, 90);
        wire_close(ends[i]);
    }
    return 0;
}

TEST("no byte is lost when deadlines race with what arrives") { rig_all(race, NULL, 5); }

/* A task that panics when it is about to rest. */

static janus_rest leave_a_hold(void *state, janus_status woke)
{
    (void)woke;
    janus_hold_begin();
    return janus_rest_io_wait(*(janus_io *)state, JANUS_IO_READ);
}

static int64_t panic_at_rest(void *argument)
{
    janus_io             ends[2];
    janus_nursery        n;
    janus_nursery_result result;
    unsigned char        byte = 0;
    size_t               got = 0;
    (void)argument;
    int before = wire_sockets();
    wire_pair(ends);
    CHECK_EQ(janus_nursery_open(&n, NULL), JANUS_OK);
    CHECK_EQ(janus_spawn_resting(&n, janus_rest_sleep(0), leave_a_hold, &ends[1], NULL, NULL),
             JANUS_OK);
    CHECK_EQ(janus_nursery_end(&n, &result), JANUS_CHILD_FAILED);
    CHECK_EQ(result.panic.kind, JANUS_PANIC_KIND_EXPLICIT);
    wire_put(ends[0], "x", 1);
    CHECK_EQ(janus_io_read(ends[1], &byte, 1, &got), JANUS_OK);
    for (int i = 0; i < 2; i++) CHECK_EQ(janus_io_close(ends[i]), JANUS_OK);
    CHECK_EQ(wire_sockets(), before);
    return 0;
}

TEST("a task that panics between its step and its rest leaves its handle to others")
{
    rig_run(2, panic_at_rest, NULL, 3);
}
